"""Divide an evaluation into shards for workers; evaluate here if they fail or disagree."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from pathlib import Path

from pytest_loop.cluster.job import (
    Answer,
    FencePlan,
    Job,
    Piece,
    describe_environment,
    find_shadowing_distributions,
    list_modules,
)
from pytest_loop.cluster.pool import ClusterError, Pool, open_pool
from pytest_loop.cluster.worker import judge_shard
from pytest_loop.core.judging.shards import find_plan_difference
from pytest_loop.core.model.rules import Outcome, SessionPlan
from pytest_loop.core.model.session_order import SessionOrder
from pytest_loop.core.text.wording import PrintLine, list_names
from pytest_loop.session.history import is_failure
from pytest_loop.session.isolated_items import run_items_alone
from pytest_loop.session.result import SessionResult
from pytest_loop.session.runner import SessionStoppedError, SubprocessSession
from pytest_loop.workspace.file_scan import read_entry, scan_files
from pytest_loop.workspace.file_tree import FileEntry, FileKind
from pytest_loop.workspace.sealed_files import SealedFiles

MAX_SIZE = 1 << 30
# Fields that stay in this process: its judge, and the results that it keeps.
_LOCAL_FIELDS: dict[str, object] = {"judge_address": "", "judge_key": "", "cached_evidence": {}, "can_reuse": False}
_POLL_SECONDS = 0.1
_GRACE_SECONDS = 30.0
_MAX_TRIES = 4


@dataclass
class ClusterSession:
    """Evaluate on the workers at `address`, or here if they cannot evaluate an order.

    A worker's evidence counts once and only if all shards agree about rules and items, every item has a report, and
    no sealed file has changed. A failure that no session here has seen is repeated here.
    """

    local: SubprocessSession
    project: SealedFiles
    address: str
    print_line: PrintLine
    open_pool: Callable[[str], Pool] = open_pool
    _pool: Pool | None = field(default=None, init=False)
    _entries: Mapping[str, FileEntry] = field(default_factory=dict, init=False)
    _loss_reason: str = field(default="", init=False)
    _printed: set[str] = field(default_factory=set, init=False)

    def evaluate(self, order: SessionOrder, *extra: str) -> SessionResult:
        if extra or _needs_this_process(order):
            return self.local.evaluate(order, *extra)
        try:
            result = self._merge(self._judge_shards(self._make_job(order)), has_canary=bool(order.canary))
        except ClusterError as error:
            self._print_once(f"judged here, not on {self.address}: {error}")
            return self.local.evaluate(order)
        self._repeat_here(order, result)
        self.local.history.add(result.evidence)
        return result

    def connect(self) -> None:
        """Connect to the workers; raise `ClusterError` if there are none."""
        self._pool = self.open_pool(self.address)

    def close(self) -> None:
        """Leave the workers."""
        if self._pool is not None:
            self._pool.close()
            self._pool = None

    def _print_once(self, text: str) -> None:
        if text not in self._printed:
            self._printed.add(text)
            self.print_line(text)

    def _make_job(self, order: SessionOrder) -> Job:
        """Return the job of all shards; raise `ClusterError` for a project that cannot be sent."""
        root = self.project.root
        entries = self._entries = scan_files(root, self.project.scope, self.project.start).entries
        unreadable = [path for path, entry in entries.items() if entry.kind not in (FileKind.FILE, FileKind.LINK)]
        if unreadable := unreadable + [path for path, entry in entries.items() if not entry.digest]:
            raise ClusterError(f"{list_names(unreadable, 3)} cannot be read")
        modules = list_modules(entries)
        if installed := sorted(set(find_shadowing_distributions(root, modules))):
            raise ClusterError(f"{list_names(installed, 3)} is installed, and would be judged in place of the project")
        fence, folder = self.local.fence, self.local.folder.resolve()
        if not folder.is_relative_to(root.resolve()):
            raise ClusterError(f"{folder} is not in the project")
        return Job(
            root=str(root),
            folder=folder.relative_to(root.resolve()).as_posix(),
            pieces={
                path: Piece(kind=entry.kind.value, digest=entry.digest, mode=entry.mode, size=entry.size)
                for path, entry in entries.items()
            },
            sealed=tuple(path for path in self.project.list_sealed_files() if path in entries),
            arguments=self.local.arguments,
            timeout=self.local.timeout,
            order=self.local.history.extend_order(order).model_copy(update=_LOCAL_FIELDS),
            fence=FencePlan(tool=fence.tool.value, read_only=fence.read_only, writable=fence.writable)
            if fence is not None
            else None,
            environment=describe_environment(),
            modules=modules,
        )

    # -- workers

    def _judge_shards(self, job: Job) -> list[Answer]:
        """Return the answer of each shard; lost shards are judged again by the remaining workers."""
        answers: dict[int, Answer] = {}
        pool = self._pool = self._pool or self.open_pool(self.address)
        total, contents = pool.size, dict[str, bytes]()
        for attempt in range(_MAX_TRIES):
            open_shards = [number for number in range(1, total + 1) if number not in answers]
            lost, missing = self._run_round(job, total, open_shards, contents, answers)
            if len(answers) == total:
                return [answers[number] for number in sorted(answers)]
            contents.update(self._read_pieces(job, missing))
            if lost:
                self.close()
                if attempt + 1 < _MAX_TRIES:
                    self._pool = self.open_pool(self.address)
        raise ClusterError(f"a shard was lost {_MAX_TRIES} times: {self._loss_reason}")

    def _run_round(
        self, job: Job, total: int, numbers: Iterable[int], contents: dict[str, bytes], answers: dict[int, Answer]
    ) -> tuple[int, set[str]]:
        """Judge these shards at once; return how many were lost, and the hashes of pieces that workers lack."""
        if self._pool is None:
            raise ClusterError("there are no workers any more")
        futures: dict[Future[bytes], int] = {}
        lost, missing = 0, set[str]()
        for number in numbers:
            order = job.order.model_copy(update={"shard": (number, total)})
            text = job.model_copy(update={"order": order}).model_dump_json().encode()
            try:
                futures[self._pool.executor.submit(judge_shard, text, contents)] = number
            except Exception as error:
                lost += 1
                self._loss_reason = str(error)
        self._wait(futures, total)
        for future, number in futures.items():
            if not future.done() or future.cancelled() or future.exception() is not None:
                lost += 1
                self._loss_reason = str(future.exception()) if future.done() and not future.cancelled() else "no answer"
                continue
            answer = Answer.model_validate_json(future.result())
            if answer.refusal:
                raise ClusterError(f"{answer.worker}: {answer.refusal}")
            missing.update(answer.missing)
            if not answer.missing:
                answers[number] = answer
        return lost, missing

    def _wait(self, futures: dict[Future[bytes], int], total: int) -> None:
        deadline = time.monotonic() + self.local.timeout + _GRACE_SECONDS
        pending = set(futures)

        def describe() -> str:
            return f"{total - len(pending)}/{total} shards"

        with self.local.show_progress(f"running tests on {total} workers", describe):
            while pending and time.monotonic() < deadline:
                if not self.local.should_continue():
                    self.close()
                    raise SessionStoppedError("the evaluation was stopped on request")
                pending = wait(pending, _POLL_SECONDS).not_done

    def _read_pieces(self, job: Job, digests: set[str]) -> dict[str, bytes]:
        """Read files by their hashes; raise `ClusterError` if one has changed since the scan."""
        entries = self._entries
        paths = {piece.digest: path for path, piece in job.pieces.items()}
        contents = {}
        for digest in digests:
            path = paths[digest]
            data = read_entry(Path(job.root), path, entries[path], MAX_SIZE)
            if data is None:
                raise ClusterError(f"{path} changed while it was sent")
            contents[digest] = data
        return contents

    # -- results

    def _merge(self, answers: list[Answer], *, has_canary: bool) -> SessionResult:
        """Return one result of all shards; raise `ClusterError` unless they agree and are complete."""
        plan = answers[0].plan
        if plan is None:
            raise ClusterError(f"shard 1 ended with {answers[0].ending} before its items were known")
        for number, answer in enumerate(answers, 1):
            if difference := find_plan_difference(answer.plan or SessionPlan(), plan):
                raise ClusterError(f"shard {number} does not belong to shard 1: {difference}")
        result = SessionResult(plan=plan, exit_status=0, ending="exit code 0")
        for number, answer in enumerate(answers):
            shard = plan.shards[number]
            if answer.exit_status not in (0, 1, 5) or answer.problems or answer.contradictions:
                raise ClusterError(f"shard {number + 1} ended with {answer.ending}")
            if has_canary and not answer.canaries:
                raise ClusterError(f"shard {number + 1} did not run its hidden test")
            if any(item not in answer.evidence for item in shard if item in plan.items):
                raise ClusterError(f"shard {number + 1} did not report every item")
            result.evidence |= {item: answer.evidence[item] for item in shard if item in answer.evidence}
            result.canaries += answer.canaries
            result.plugins |= frozenset(answer.plugins)
            result.reads |= set(answer.reads)
            result.interference |= set(answer.interference)
            result.pytest_failures += answer.pytest_failures
            result.exit_status = max(result.exit_status or 0, answer.exit_status % 5)
            result.output += answer.output
        result.unmet_items = {item for item, evidence in result.evidence.items() if is_failure(evidence)}
        return result

    def _repeat_here(self, order: SessionOrder, result: SessionResult) -> None:
        """Repeat here the items that ask the judge, and new failures, which the worker's folder may have caused."""
        before = self.local.history.extend_order(order).failed_before
        assumed = {item for item, evidence in result.evidence.items() if evidence.outcome is Outcome.ASSUMED}
        if new := tuple(sorted(assumed | result.unmet_items.difference(before))):
            again = run_items_alone(self.local, order, self.project.root, new)
            if again is not None:
                result.evidence |= {item: again.evidence[item] for item in new if item in again.evidence}
                result.unmet_items = {item for item, evidence in result.evidence.items() if is_failure(evidence)}
                if not result.unmet_items:
                    result.pytest_failures = result.exit_status = 0


def _needs_this_process(order: SessionOrder) -> bool:
    """Return whether an order must be evaluated here: of a document, a workload or a few items, or ending early."""
    return bool(order.artifact or order.manifest or order.only or order.selected or order.can_stop_early)
