"""The search process: read a request, search in rounds, write progress and the result as JSON lines."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from pytest_loop.processes.process_tree import die_with_parent
from pytest_loop.repair import repair_report, sandbox
from pytest_loop.repair.fork_pool import ForkPool, ForkResult, Job
from pytest_loop.repair.import_round import ImportFailures, ImportRound
from pytest_loop.repair.repair_request import RepairRequest, RepairResult, SearchPlan
from pytest_loop.repair.round_context import RoundContext
from pytest_loop.repair.search_round import SearchRound

_MAX_ROUNDS = 8
_MIN_ROUND_SECONDS = 1.0
_COLLECTION_SLACK = 15.0
_IMPORT_SHARE = 0.5  # share of the time for an import round if other tests can be fixed too


class Engine:
    """Search round after round until all tests pass or no edit helps.

    Only forks import the project, one for each round, with the edits of earlier rounds.
    """

    def __init__(self, request: RepairRequest, result_file: Path) -> None:
        self._request = request
        self._result_file = result_file
        self._is_stop_requested = False
        self._started = time.monotonic()

    def run(self) -> RepairResult:
        """Search, write the result, and remove all temporary files."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._request_stop)
        with (
            sandbox.enter_project(self._request.folder) as temp_folder,
            ForkPool(temp_folder, 1, enter=lambda _: die_with_parent()) as pool,
        ):
            result = repair_report.merge_results(self._run_rounds(pool, temp_folder), self._seconds)
        self._write(result)
        return result

    @property
    def _seconds(self) -> float:
        return time.monotonic() - self._started

    @property
    def _collection_timeout(self) -> float:
        return self._request.seconds + _COLLECTION_SLACK

    def _write(self, value: SearchPlan | RepairResult) -> None:
        with self._result_file.open("ab") as file:
            file.write(value.model_dump_json().encode() + b"\n")

    def _request_stop(self, *_: object) -> None:
        self._is_stop_requested = True

    def _run_rounds(self, pool: ForkPool, temp_folder: Path) -> list[RepairResult]:
        """Run rounds while each finds an edit that fixes some tests but not all."""
        results: list[RepairResult] = []
        edited_texts: dict[str, str] = {}
        while True:
            tried = sum(result.tried for result in results)
            result = self._run_round(pool, temp_folder / f"round{len(results)}", edited_texts, tried)
            results.append(result)
            if not (result.steps and result.remaining) or not self._can_run_another_round(len(results)):
                return results
            step = result.steps[0]
            edited_texts[str((self._request.folder / step.path).resolve())] = step.after

    def _can_run_another_round(self, rounds: int) -> bool:
        has_time = self._request.seconds - self._seconds > _MIN_ROUND_SECONDS
        return rounds < _MAX_ROUNDS and has_time and not self._is_stop_requested

    def _run_round(self, pool: ForkPool, temp_folder: Path, edited_texts: dict[str, str], tried: int) -> RepairResult:
        """Run a search round; if modules cannot be imported, run an import round first.

        If no edit makes more modules importable, search with the tests that can be collected.
        """
        temp_folder.mkdir()
        search_round = SearchRound(self._make_context(temp_folder, edited_texts, tried))
        result = self._run_in_fork(pool, Job(0, search_round.run, self._collection_timeout))
        message = next((message for message in result.messages if "broken" in message), None)
        if message is None:
            return self._read_result(result)
        failures = ImportFailures.model_validate(message)
        is_search_possible = failures.has_other_targets(self._request.failing)
        share = _IMPORT_SHARE if is_search_possible else 1.0
        import_round = ImportRound(self._make_context(temp_folder, edited_texts, tried, share), failures)
        seconds = self._request.seconds + self._collection_timeout
        import_result = self._read_result(self._run_in_fork(pool, Job(0, import_round.run, seconds)))
        if import_result.steps or not is_search_possible or self._is_stop_requested:
            return import_result
        context = self._make_context(temp_folder, edited_texts, tried + import_result.tried)
        search_round = SearchRound(context, ignores_import_failures=True)
        result = self._run_in_fork(pool, Job(0, search_round.run, self._collection_timeout))
        return repair_report.merge_results([self._read_result(result)], self._seconds, import_result.tried)

    def _make_context(
        self, temp_folder: Path, edited_texts: dict[str, str], tried: int, share: float = 1.0
    ) -> RoundContext:
        remaining = {
            "seconds": max(_MIN_ROUND_SECONDS, (self._request.seconds - self._seconds) * share),
            "candidates": max(1, self._request.candidates - tried),
        }
        request = self._request.model_copy(update=remaining)
        return RoundContext(request, temp_folder, edited_texts, self._write)

    def _run_in_fork(self, pool: ForkPool, job: Job) -> ForkResult:
        """Run a job in a fork and return its result; forward a stop request to the fork."""
        pool.start(job)
        is_forwarded = False
        while not (results := list(pool.collect_results())):
            if self._is_stop_requested and not is_forwarded:
                pool.interrupt()
                is_forwarded = True
        return results[0]

    def _read_result(self, fork: ForkResult) -> RepairResult:
        """Return the result that a round sent, or an empty result with the reason why it sent none."""
        for message in fork.messages:
            if "kind" in message:
                return RepairResult.model_validate(message)
        if self._is_stop_requested:
            return RepairResult(end_reason="asked")
        if fork.is_late:
            problem = f"collecting the tests took longer than {self._collection_timeout:g} s"
        else:
            problem = "the process ended while the tests were collected"
        return RepairResult(end_reason="no tests", problem=problem)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the engine: the arguments are a request file and a result file."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if len(arguments) != 2:
        sys.stderr.write("usage: python -m pytest_loop.repair REQUEST.json RESULT.jsonl\n")
        return 2
    request_file, result_file = map(Path, arguments)
    Engine(RepairRequest.model_validate_json(request_file.read_bytes()), result_file.absolute()).run()
    return 0
