"""Run parts of the engine without forks, to measure their coverage: `round REQUEST ANSWER` or `trials REQUEST ANSWER`.

`round` runs one search round. `trials` records all tests, checks some edits of `code_.py`, and tries the last edit
to the end.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from pytest_loop.repair.baseline_run import parse_result, record_tests
from pytest_loop.repair.candidates import rank_candidates
from pytest_loop.repair.code_swap import LoadedCode
from pytest_loop.repair.collected_tests import BriefReports, CollectedTests, build_arguments
from pytest_loop.repair.import_round import ImportFailures, ImportRound
from pytest_loop.repair.python_source import PythonSource
from pytest_loop.repair.repair_request import RepairRequest
from pytest_loop.repair.round_context import RoundContext
from pytest_loop.repair.search_round import SearchRound
from pytest_loop.repair.search_state import RankedCandidate
from pytest_loop.repair.tracer import make_tracer
from pytest_loop.repair.trial import CandidateTrial

EDITS = ("number * 1", "number - 2", "number + 1")


def run_round(context: RoundContext) -> list[Mapping[str, object]]:
    """Return all messages of a search round, and of an import round if the project cannot be imported."""
    messages: list[Mapping[str, object]] = []
    SearchRound(context).run(messages.append)
    if "broken" in messages[-1]:
        ImportRound(context, ImportFailures.model_validate(messages[-1])).run(messages.append)
    return messages


def run_trials(context: RoundContext) -> list[Mapping[str, object]]:
    """Return all messages about the recorded tests, about all edits, and about the trial of the last edit."""
    messages: list[Mapping[str, object]] = []

    def work(collected: CollectedTests) -> None:
        scope = context.make_editable_files(item.path for item in collected.items)
        places = range(len(collected.items))
        record_tests(collected, scope, places, time.monotonic() + 60, messages.append)
        tests = {at: parse_result(dict(message)) for at, message in zip(places, messages, strict=True)}
        targets = [at for at in places if not tests[at].spectrum.passed]
        guards = [at for at in places if tests[at].spectrum.passed]
        path = context.request.folder.resolve() / "code_.py"
        source = PythonSource(path, path.read_text(encoding="utf-8"))
        candidates = {candidate.text: candidate for candidate in rank_candidates([source], {(str(path), 5): 1.0})}
        selection = [candidates[source.text.replace("number - 1", edit)] for edit in EDITS]
        ranked = [
            RankedCandidate(at, candidate, candidate.unit.parse_edited(candidate.edits) or source.tree)
            for at, candidate in enumerate(selection)
        ]
        trial = CandidateTrial(collected, make_tracer(scope), LoadedCode([source]), tests, targets, guards)
        trial.make_job(1, ranked).work(messages.append)
        messages.append({"alone": True})
        trial.make_job(2, ranked[-1:]).work(messages.append)

    pytest.main(
        build_arguments(context.request.pytest_arguments, context.temp_folder),
        plugins=[CollectedTests(work), BriefReports()],
    )
    return messages


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as home:
        request = RepairRequest.model_validate_json(Path(sys.argv[2]).read_bytes())
        sys.path.insert(0, str(request.folder))
        context = RoundContext(request, Path(home).resolve(), {}, lambda _message: None)
        messages = run_round(context) if sys.argv[1] == "round" else run_trials(context)
    Path(sys.argv[3]).write_text(json.dumps(messages), encoding="utf-8")
