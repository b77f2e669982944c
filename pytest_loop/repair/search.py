"""One round of the search, which finds one edit beside those so far: run the tests, rank lines, try edits."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from pathlib import Path

from pytest_loop.repair.baseline_run import BaselineResult, run_baseline
from pytest_loop.repair.candidates import EditCandidate, rank_candidates
from pytest_loop.repair.code_swap import LoadedCode
from pytest_loop.repair.collected_tests import CollectedTests
from pytest_loop.repair.python_source import PythonSource
from pytest_loop.repair.repair_request import SearchPlan
from pytest_loop.repair.round_context import RoundContext
from pytest_loop.repair.search_state import SearchState
from pytest_loop.repair.source_overlay import resolve_source
from pytest_loop.repair.suspicion import add_definition_scores, rank_lines
from pytest_loop.repair.template_hints import collect_hints, list_exceptions
from pytest_loop.repair.tracer import make_tracer
from pytest_loop.repair.trial import CandidateTrial
from pytest_loop.repair.trial_loop import TrialLoop

_BASELINE_SHARE = 0.2


class Search:
    """Search for one edit that fixes collected tests. Tests are numbered by their position in the collection."""

    def __init__(self, context: RoundContext, tests: CollectedTests) -> None:
        self._context = context
        self._request = context.request
        self._tests = tests
        self._files = context.make_editable_files(item.path for item in tests.items)
        self._pool = context.make_fork_pool()
        self.state = SearchState()
        self._loop = TrialLoop(context, self._pool, self.state)
        self._baseline: dict[int, BaselineResult] = {}
        self._targets: list[int] = []
        self._guards: list[int] = []
        self._is_restricted = False

    @property
    def seconds_spent(self) -> float:
        return self._loop.seconds_spent

    def run(self) -> SearchState:
        with self._pool:
            self.state.end_reason = self._run()
        self.state.plausible_edits.sort(key=lambda edit: edit.sort_key)
        return self.state

    def _run(self) -> str:
        if not self._tests.items:
            return "no tests"
        self._run_baseline()
        if not self._targets:
            return "held back" if self._is_restricted else "nothing fails"
        if not self.state.suspects:
            return "nothing to edit"
        if self._request.localise_only:
            return "localised"
        sources = self._read_sources()
        candidates = self._rank_candidates(sources)
        trial = CandidateTrial(
            self._tests, make_tracer(self._files), LoadedCode(sources), self._baseline, self._targets, self._guards
        )
        gc.collect()
        gc.freeze()  # a collection in a fork would copy the memory that all forks share
        trial.choose_batch_size(self._pool)
        self._context.send_plan(SearchPlan(plan=self._describe_plan(trial)))
        return self._loop.run(candidates, trial)

    def _describe_plan(self, trial: CandidateTrial) -> str:
        """Return one sentence with the number of tests, suspicious lines and edits that fit into the time."""
        seconds = self._loop.seconds_left
        edits = round(seconds * self._context.workers / trial.estimate_seconds())
        untested = len(self._tests.items) - len(self._baseline)
        skipped = f" ({untested} more did not fit into the time)" if untested else ""
        return (
            f"{len(self._targets)} failing and {len(self._guards)} passing tests{skipped}, "
            f"{len(self.state.suspects):,} suspicious lines; {seconds:.0f} s are left, enough for about {edits:,} edits"
        )

    def _run_baseline(self) -> None:
        """Run the tests before any edit while time lasts: requested ones first, then those of the same files."""
        names = [item.nodeid for item in self._tests.items]
        requested = set(self._request.failing).intersection(names) or set(names)
        near = {item.path for item in self._tests.items if item.nodeid in requested}
        order = sorted(
            range(len(names)),
            key=lambda index: (names[index] not in requested, self._tests.items[index].path not in near),
        )
        seconds = self._request.seconds * _BASELINE_SHARE
        baseline = run_baseline(self._tests, self._pool, self._files, order, seconds)
        failing = [
            index for index, result in baseline.items() if not result.spectrum.passed and not result.is_restricted
        ]
        targets = [index for index in failing if names[index] in requested]
        self._baseline = baseline
        self._targets = sorted(targets, key=lambda index: (baseline[index].fuel, baseline[index].seconds > 1, index))
        self._guards = [index for index, result in baseline.items() if result.spectrum.passed]
        self.state.failing = self._tests.get_node_ids(failing)
        self.state.passing = self._tests.get_node_ids(self._guards)
        self.state.targets = self._tests.get_node_ids(targets)
        self.state.restricted_tests = {
            names[index]: result.failure.message for index, result in baseline.items() if result.is_restricted
        }
        self._is_restricted = not requested.isdisjoint(self.state.restricted_tests)
        self._rank_lines([*targets, *self._guards])

    def _rank_lines(self, indexes: list[int]) -> None:
        spectra = [self._baseline[index].spectrum for index in indexes]
        paths = {path for spectrum in spectra for path, _ in spectrum.lines}
        mtimes = {path: Path(path).stat().st_mtime for path in paths}
        self.state.suspects = rank_lines(spectra, mtimes)

    def _read_sources(self) -> list[PythonSource]:
        """Read the files that failing tests execute, and all other imported files that may be edited."""
        names = (resolve_source(getattr(module, "__file__", None)) for module in list(sys.modules.values()))
        imported = sorted(path for name in names if (path := self._files.find_file(name)) is not None)
        return self._context.read_sources([*(Path(suspect.path) for suspect in self.state.suspects), *imported])

    def _rank_candidates(self, sources: list[PythonSource]) -> Iterator[EditCandidate]:
        scores = {(suspect.path, suspect.line): suspect.score for suspect in self.state.suspects}
        failures = [self._baseline[index].failure for index in self._targets]
        items = [self._tests.items[index] for index in self._targets]
        hints = collect_hints(failures, (item.nodeid for item in items), (item.path for item in items))
        return rank_candidates(
            sources,
            add_definition_scores(sources, scores),
            hints,
            list_exceptions(failures),
        )
