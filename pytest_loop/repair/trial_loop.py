"""Try candidates in forks, best first, until there is a reason to end."""

from __future__ import annotations

import time
import zlib
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Protocol

from pytest_loop.repair.candidates import DuplicateFilter, EditCandidate
from pytest_loop.repair.fork_pool import ForkPool, ForkResult, Job
from pytest_loop.repair.repair_request import RepairRequest
from pytest_loop.repair.round_context import RoundContext
from pytest_loop.repair.search_state import PlausibleEdit, RankedCandidate, SearchState

# After an edit passes, only candidates with at least a share of its score are tried: the first share after a complete
# fix, the second after a partial fix or a deletion.
_SIMILAR_SCORE, _COMPARABLE_SCORE = 0.3, 0.02
_SHARE_OF_REMAINING_TIME = 0.5
_TRIAL_SHARE = 0.2
_DELETION_FACTOR = 3.0


class Trial(Protocol):
    """A way to try candidates: one per fork, or first a batch per fork to select candidates for forks of their own."""

    @property
    def batch_size(self) -> int: ...

    def make_job(self, key: int, batch: Sequence[RankedCandidate]) -> Job: ...

    def read_result(self, ranked: RankedCandidate, result: ForkResult) -> PlausibleEdit | None: ...


class TrialLoop:
    """Keep the forks busy with candidates; record plausible edits in `state`."""

    def __init__(self, context: RoundContext, pool: ForkPool, state: SearchState) -> None:
        self._context = context
        self._request = context.request
        self._pool = pool
        self._state = state
        self._started = time.monotonic()
        self._deadline = context.started + self._request.seconds
        self._lowest_score = 0.0
        self._untried: Iterator[RankedCandidate] = iter(())
        self._retries: deque[tuple[RankedCandidate, ...]] = deque()
        self._running: dict[int, tuple[RankedCandidate, ...]] = {}
        self._job_count = 0

    @property
    def seconds_spent(self) -> float:
        return time.monotonic() - self._started

    @property
    def seconds_left(self) -> float:
        """The seconds left for trials: the rest of the time limit, but at least a fifth of the limit."""
        return max(self._deadline - time.monotonic(), self._request.seconds * _TRIAL_SHARE)

    def run(self, candidates: Iterable[EditCandidate], trial: Trial) -> str:
        """Try the candidates; return why the search ended."""
        self._untried = _filter_candidates(candidates, self._request)
        self._deadline = time.monotonic() + self.seconds_left
        while True:
            if reason := self._find_end_reason():
                return reason
            while self._pool.has_room and (batch := self._take_batch(trial.batch_size)):
                self._start(batch, trial)
            if self._pool.is_idle:
                is_limit_reached = self._state.tried_count >= self._request.candidates
                return self._success_reason or ("candidates" if is_limit_reached else "exhausted")
            for result in self._pool.collect_results():
                self._handle_result(self._running.pop(result.key), result, trial)

    def _take_batch(self, size: int) -> tuple[RankedCandidate, ...]:
        """Return the next candidates to retry, or else the best untried ones; empty if none is left."""
        if self._retries:
            return self._retries.popleft()
        number = min(size, self._request.candidates - self._state.tried_count)
        batch = tuple(
            ranked for ranked in islice(self._untried, number) if ranked.candidate.score >= self._lowest_score
        )
        self._state.tried_count += len(batch)
        return batch

    def _start(self, batch: tuple[RankedCandidate, ...], trial: Trial) -> None:
        self._job_count += 1
        self._running[self._job_count] = batch
        self._pool.start(trial.make_job(self._job_count, batch))

    def _handle_result(self, batch: tuple[RankedCandidate, ...], result: ForkResult, trial: Trial) -> None:
        """Record the result of a single trial, or queue the promising and the unreached candidates of a batch."""
        self._state.crash_count += not result.is_finished
        if len(batch) == 1:
            self._record_edit(trial.read_result(batch[0], result))
            return
        begun = {message["begun"] for message in result.messages if "begun" in message}
        promising = {message["worth"] for message in result.messages if "worth" in message}
        rest = tuple(ranked for ranked in batch if ranked.rank not in begun)
        self._retries.extend((ranked,) for ranked in batch if ranked.rank in promising)
        if rest:
            self._retries.append(rest)

    def _record_edit(self, edit: PlausibleEdit | None) -> None:
        """Record a plausible edit, and shorten the search: more after a complete fix than after a partial one."""
        if edit is None:
            return
        is_first = not self._state.plausible_edits
        self._state.plausible_edits.append(edit)
        score, seconds = edit.candidate.score, self._request.seconds_after_green
        if edit.is_green and edit.candidate.is_deletion:  # an edit that removes nothing would be better
            self._shorten_search(score * _COMPARABLE_SCORE, seconds * _DELETION_FACTOR)
        elif edit.is_green or edit.is_final:
            self._shorten_search(score * _SIMILAR_SCORE, seconds)
        elif is_first:
            remaining = (self._deadline - time.monotonic()) * _SHARE_OF_REMAINING_TIME
            self._shorten_search(score * _COMPARABLE_SCORE, max(seconds, remaining))

    def _shorten_search(self, lowest_score: float, seconds: float) -> None:
        self._lowest_score = max(self._lowest_score, lowest_score)
        self._deadline = min(self._deadline, time.monotonic() + seconds)

    def _find_end_reason(self) -> str:
        if self._context.is_stop_requested:
            return "asked"
        return "" if time.monotonic() < self._deadline else (self._success_reason or "time")

    @property
    def _success_reason(self) -> str:
        if any(edit.is_green for edit in self._state.plausible_edits):
            return "green"
        return "partly green" if self._state.plausible_edits else ""


def _filter_candidates(candidates: Iterable[EditCandidate], request: RepairRequest) -> Iterator[RankedCandidate]:
    """Yield the candidates of the requested share that parse and differ from all earlier ones."""
    duplicates = DuplicateFilter()
    number, total = request.share
    for rank, candidate in enumerate(candidates):
        tree = duplicates.parse_if_new(candidate)
        if tree is not None and (total == 1 or _hash_edit(candidate, request.folder) % total == number - 1):
            yield RankedCandidate(rank, candidate, tree)


def _hash_edit(candidate: EditCandidate, folder: Path) -> int:
    """Return a number that is the same in every copy of the project, whatever the order of candidates there."""
    path = candidate.source.path.relative_to(folder.resolve()).as_posix()
    return zlib.crc32(repr((path, sorted((edit.start, edit.end, edit.text) for edit in candidate.edits))).encode())
