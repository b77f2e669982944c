"""Repair modules that cannot be imported: edit lines in the traceback, and collect the tests again to try each edit."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from pydantic import BaseModel, ConfigDict

from pytest_loop.repair import repair_report
from pytest_loop.repair.candidates import EditCandidate, rank_candidates
from pytest_loop.repair.collected_tests import BriefReports, CollectedTests, build_arguments
from pytest_loop.repair.editable_files import EditableFiles
from pytest_loop.repair.failure import Failure
from pytest_loop.repair.fork_pool import ForkResult, Job, Send
from pytest_loop.repair.round_context import RoundContext
from pytest_loop.repair.search_state import PlausibleEdit, RankedCandidate, SearchState
from pytest_loop.repair.source_overlay import install_overlay
from pytest_loop.repair.suspicion import Line, Suspect, add_definition_scores
from pytest_loop.repair.template_hints import collect_hints, list_exceptions
from pytest_loop.repair.tracer import FUEL_OF_TEST, make_tracer
from pytest_loop.repair.trial_loop import TrialLoop

_COLLECTION_TIMEOUT, _TEST_TIMEOUT = 15.0, 5.0
_CALLER_SCORE = 0.5  # a caller is half as suspicious as the line it calls


class ImportFailures(BaseModel):
    """The modules that cannot be imported (`broken`), and the tests that were collected and passed nevertheless."""

    model_config = ConfigDict(frozen=True)

    broken: dict[str, Failure]
    collected: tuple[str, ...] = ()
    passing: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()

    def has_other_targets(self, requested: Collection[str]) -> bool:
        """Return whether a collected test fails, among those `requested` if there are any."""
        return bool((set(requested or self.collected) & set(self.collected)) - set(self.passing))


def is_repairable(failure: Failure, files: EditableFiles) -> bool:
    """Return whether editable code raised the exception and can be parsed."""
    is_parsed = not failure.error.endswith(("SyntaxError", "IndentationError", "TabError"))
    return is_parsed and bool(_find_lines(failure, files))


def _find_lines(failure: Failure, files: EditableFiles) -> list[Line]:
    """Return the editable lines of the traceback, innermost first."""
    return [(str(path), line) for name, line in reversed(failure.frames) if (path := files.find_file(name)) is not None]


class ImportRound:
    """Search one round for edits that make modules importable."""

    def __init__(self, context: RoundContext, failures: ImportFailures) -> None:
        self._context = context
        self._failures = failures
        self._files = context.make_editable_files(failures.files)

    def run(self, send: Send) -> None:
        """In a fork: search, and send the result."""
        self._context.handle_stop_signal()
        request, names = self._context.request, tuple(self._failures.broken)
        state = SearchState(
            failing=names, passing=self._failures.passing, targets=names, suspects=self._rank_suspects()
        )
        with self._context.make_fork_pool() as pool:
            loop = TrialLoop(self._context, pool, state)
            trial = _CollectionTrial(request.pytest_arguments, self._context.edited_texts, self._failures, self._files)
            if request.localise_only:
                state.end_reason = "localised"
            else:
                state.end_reason = loop.run(self._rank_candidates(state), trial)
        state.plausible_edits.sort(key=lambda edit: edit.sort_key)
        problem = ""
        if not state.plausible_edits:
            problem = repair_report.describe_import_problem(self._failures.broken, request.folder)
        send(repair_report.make_result(state, request.folder, loop.seconds_spent, problem).model_dump(mode="json"))

    def _rank_suspects(self) -> list[Suspect]:
        scores: dict[Line, float] = {}
        for failure in self._failures.broken.values():
            for depth, line in enumerate(_find_lines(failure, self._files)):
                scores[line] = max(scores.get(line, 0.0), _CALLER_SCORE**depth)
        return [Suspect(*line, scores[line]) for line in sorted(scores, key=lambda line: (-scores[line], line))]

    def _rank_candidates(self, state: SearchState) -> Iterator[EditCandidate]:
        sources = self._context.read_sources(Path(suspect.path) for suspect in state.suspects)
        scores = {(suspect.path, suspect.line): suspect.score for suspect in state.suspects}
        failures = list(self._failures.broken.values())
        return rank_candidates(
            sources,
            add_definition_scores(sources, scores),
            collect_hints(failures, (), ()),
            list_exceptions(failures),
        )


@dataclass(frozen=True)
class _CollectionTrial:
    """Try an edit: collect the tests, then run those newly collected and those that passed before."""

    pytest_arguments: Sequence[str]
    edited_texts: Mapping[str, str]
    failures: ImportFailures
    files: EditableFiles
    batch_size: int = 1  # a process imports a module only once

    def make_job(self, key: int, batch: Sequence[RankedCandidate]) -> Job:
        candidate = batch[0].candidate

        def work(send: Send) -> None:
            install_overlay({**self.edited_texts, str(candidate.source.path): candidate.text})
            tests = CollectedTests(lambda tests: self._run_tests(tests, send))
            arguments = build_arguments(self.pytest_arguments, Path(tempfile.gettempdir()))
            pytest.main(arguments, plugins=[tests, BriefReports()])

        return Job(key, work, _COLLECTION_TIMEOUT)

    def _run_tests(self, tests: CollectedTests, send: Send) -> None:
        send({"broken": list(tests.import_failures)})
        tests.trace_with(make_tracer(self.files), lambda: os._exit(0), is_recording=False)
        names = [item.nodeid for item in tests.items]
        new = [index for index, name in enumerate(names) if name not in self.failures.collected]
        guards = [index for index, name in enumerate(names) if name in self.failures.passing]
        for index in (*new, *guards):
            send({"name": names[index], "passed": False, "within": _TEST_TIMEOUT})
            send({"name": names[index], "passed": tests.run_test(index, None, FUEL_OF_TEST).passed})

    def read_result(self, ranked: RankedCandidate, result: ForkResult) -> PlausibleEdit | None:
        """Return the edit if it makes more modules importable and no passing test fails; otherwise None."""
        broken = next((message["broken"] for message in result.messages if "broken" in message), None)
        passed = {message["name"]: message["passed"] for message in result.messages if "name" in message}
        if broken is None or not set(broken) < set(self.failures.broken):
            return None
        if not result.is_finished or not all(passed.get(name) for name in self.failures.passing):
            return None
        outcomes = {**{name: name not in broken for name in self.failures.broken}, **passed}
        new = {name: has_passed for name, has_passed in outcomes.items() if name not in self.failures.passing}
        fixed = tuple(name for name, has_passed in new.items() if has_passed)
        remaining = tuple(name for name, has_passed in new.items() if not has_passed)
        return PlausibleEdit(ranked.candidate, ranked.rank, fixed, remaining)
