"""One process for what else has several: `round ORDER ANSWER`, or `trials ORDER ANSWER`.

A round searches as ever, but not in a fork of the engine's. Trials record all tests, look at some edits of `code_.py`,
all in this process, and try the last one to the end.
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


def searched(setting: RoundContext) -> list[Mapping[str, object]]:
    """All that a round says; where the project cannot be imported, what the round says that is for that."""
    said: list[Mapping[str, object]] = []
    SearchRound(setting).run(said.append)
    if "broken" in said[-1]:
        ImportRound(setting, ImportFailures.model_validate(said[-1])).run(said.append)
    return said


def tried(setting: RoundContext) -> list[Mapping[str, object]]:
    """All that is said of the tests, by a look at all edits, and by a trial of the last one."""
    said: list[Mapping[str, object]] = []

    def work(bench: CollectedTests) -> None:
        scope = setting.make_editable_files(item.path for item in bench.items)
        places = range(len(bench.items))
        record_tests(bench, scope, places, time.monotonic() + 60, said.append)
        tests = {at: parse_result(dict(message)) for at, message in zip(places, said, strict=True)}
        targets = [at for at in places if not tests[at].spectrum.passed]
        guards = [at for at in places if tests[at].spectrum.passed]
        path = setting.request.folder.resolve() / "code_.py"
        source = PythonSource(path, path.read_text(encoding="utf-8"))
        every = {one.text: one for one in rank_candidates([source], {(str(path), 5): 1.0})}
        chosen = [every[source.text.replace("number - 1", edit)] for edit in EDITS]
        tries = [
            RankedCandidate(at, one, one.unit.parse_edited(one.edits) or source.tree) for at, one in enumerate(chosen)
        ]
        trial = CandidateTrial(bench, make_tracer(scope), LoadedCode([source]), tests, targets, guards)
        trial.make_job(1, tries).work(said.append)
        said.append({"alone": True})
        trial.make_job(2, tries[-1:]).work(said.append)

    pytest.main(
        build_arguments(setting.request.pytest_arguments, setting.home), plugins=[CollectedTests(work), BriefReports()]
    )
    return said


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as home:
        order = RepairRequest.model_validate_json(Path(sys.argv[2]).read_bytes())
        sys.path.insert(0, str(order.folder))
        setting = RoundContext(order, Path(home).resolve(), {}, lambda one: None)
        found = searched(setting) if sys.argv[1] == "round" else tried(setting)
    Path(sys.argv[3]).write_text(json.dumps(found), encoding="utf-8")
