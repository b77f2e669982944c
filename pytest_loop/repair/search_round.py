"""One round in a fork: import the project with the edits so far, collect its tests, and search."""

from __future__ import annotations

import signal
from dataclasses import replace

import pytest

from pytest_loop.repair import repair_report
from pytest_loop.repair.collected_tests import BriefReports, CollectedTests, build_arguments
from pytest_loop.repair.fork_pool import Send
from pytest_loop.repair.import_round import ImportFailures, is_repairable
from pytest_loop.repair.repair_request import RepairResult
from pytest_loop.repair.round_context import RoundContext
from pytest_loop.repair.search import Search
from pytest_loop.repair.search_state import SearchState
from pytest_loop.repair.source_overlay import install_overlay

_SLACK = 30.0  # seconds on top of the search's own limit, in case the search hangs


class SearchRound:
    """Run one round, and send its result or the import failures that must be repaired first."""

    def __init__(self, context: RoundContext, *, ignores_import_failures: bool = False) -> None:
        self._context = context
        self._ignores_import_failures = ignores_import_failures
        self._result: RepairResult | None = None
        self._state = SearchState()

    def run(self, send: Send) -> None:
        """Collect the tests and search; send the result (even after a stop request), or the import failures instead."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        request = self._context.request
        install_overlay(self._context.edited_texts)
        tests = CollectedTests(lambda tests: self._search(tests, send))
        arguments = build_arguments(request.pytest_arguments, self._context.temp_folder)
        code = pytest.main(arguments, plugins=[tests, BriefReports()])
        if self._needs_import_repair(tests):
            send(self._make_import_failures(tests).model_dump(mode="json"))
            return
        problem = repair_report.describe_import_problem(tests.import_failures, request.folder)
        if self._result is None:
            problem = problem or f"pytest ended with exit code {int(code)}"
            self._result = RepairResult(end_reason="no tests", problem=problem)
        send(self._result.model_copy(update={"problem": problem or self._result.problem}).model_dump(mode="json"))

    def _search(self, tests: CollectedTests, send: Send) -> None:
        """Search for edits; if imports must be repaired first, only run the collected tests."""
        request = self._context.request
        send({"within": request.seconds * 1.5 + _SLACK})
        self._context.handle_stop_signal()
        if self._needs_import_repair(tests):
            request = request.model_copy(update={"localise_only": True, "failing": ()})
        search = Search(replace(self._context, request=request), tests)
        self._state = search.run()
        self._result = repair_report.make_result(self._state, request.folder, search.seconds_spent)

    def _needs_import_repair(self, tests: CollectedTests) -> bool:
        """Return whether requested tests were not collected and an edit could change that."""
        requested = set(self._context.request.failing)
        if self._ignores_import_failures:
            return False
        if requested and requested <= {item.nodeid for item in tests.items}:
            return False
        files = self._context.make_editable_files(item.path for item in tests.items)
        return any(is_repairable(failure, files) for failure in tests.import_failures.values())

    def _make_import_failures(self, tests: CollectedTests) -> ImportFailures:
        return ImportFailures(
            broken=tests.import_failures,
            collected=tuple(item.nodeid for item in tests.items),
            passing=self._state.passing,
            files=tuple(dict.fromkeys(item.path for item in tests.items)),
        )
