"""Runs that other tools of the format started can be listed, shown and resumed, and keep their unknown keys."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.model.vocabulary import Kind, Place, Step
from pytest_loop.errors import StateError
from pytest_loop.store.foreign_runs import normalize_fields
from pytest_loop.store.project_runs import Store
from tests.pytest_caller import PytestCaller

ARTIFACT = "# Courses\n\nGET /courses\n"
RULES: list[dict[str, Any]] = [
    {
        "id": "a.correctness.endpoints",
        "description": "The endpoints are present",
        "severity": "fail",
        "weight": 2,
        "phase": "A",
        "check": "Both /courses and /courses/{id} exist",
        "owner": "the API team",
    },
    {
        "id": "b.style.naming",
        "description": "Names are consistent",
        "severity": "warn",
        "weight": 1,
        "phase": "B",
        "check": "One naming convention is used",
    },
]
EVALUATION = {
    "artifact_hash": hashlib.sha256(ARTIFACT.encode()).hexdigest()[:8],
    "score": 0.0,
    "passed": False,
    "failed": [{"id": "a.correctness.endpoints", "severity": "fail", "message": "/courses/{id} is missing"}],
    "warnings": [],
    "rule_results": [{"id": "a.correctness.endpoints", "verdict": "fail", "details": "/courses/{id} is missing"}],
}
CHECKS = [
    {
        "rule_id": "a.correctness.endpoints",
        "type": "content",
        "search": "/courses/{id}",
        "expected": "the path of one course",
    }
]
RUN: dict[str, Any] = {
    "run_id": "courses-api-20260101-120000",
    "task_alias": "courses-api",
    "status": "running",
    "iteration": 1,
    "max_iterations": 4,
    "max_completed_phase_seconds": None,
    "completed_phase_seconds": 12,
    "phase_started_epoch_seconds": None,
    "phase": "A",
    "current_step": "EVALUATE",
    "task": {"prompt": "Write an API for courses", "ideal_result": "A spec", "audience": "partners"},
    "criteria": {
        "name": "loop_default_v1",
        "version": 1,
        "phase": {
            "A": {"threshold": 0.8, "active_levels": ["A"]},
            "B": {"threshold": 0.9, "active_levels": ["A", "B"]},
        },
        "rules": RULES,
    },
    "plan": ["Describe the endpoints", "Describe one course", "Check the names"],
    "prepared_checks": {"checks": CHECKS},
    "evaluation": None,
    "critique": None,
    "stop": {"passed": False, "reason": ""},
    "last_score": 0,
    "stagnation_count": 0,
    "created_at": "2026-01-01T12:00:00Z",
    "updated_at": "2026-01-01T12:05:00Z",
    "dispatch": {"planner": "another tool"},
}
AGENT = """
    import json


    def writer(request):
        if request.step == "PREPARE":
            check = {"matches": "^# "}
            return json.dumps({"checks": [{"rule_id": "b.style.naming", "check": check}]})
        assert request.step == "REFINE", request.step
        return "# Courses\\n\\nGET /courses\\nGET /courses/{id}\\n"
"""


def _make_event_line(kind: str, **payload: Any) -> str:
    event = {
        "ts": "2026-01-01T12:00:00Z",
        "run_id": RUN["run_id"],
        "iteration": 1,
        "phase": "A",
        "step": "PLAN",
        "event": kind,
        "status": "ok",
        "payload": payload,
    }
    return json.dumps(event, separators=(",", ":"))


HISTORY = [
    _make_event_line("run_started", task="Write an API for courses"),
    _make_event_line("plan_created", plan=RUN["plan"]),
    _make_event_line("prep_dispatched", to="another tool"),
    _make_event_line("artifact_created"),
    _make_event_line("checks_prepared"),
]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    (tmp_path / ".ai-factory" / "evolution" / "courses-api").mkdir(parents=True)
    return Store(tmp_path)


def _write_run(store: Store, **changes: Any) -> None:
    """Write the files of a run as another tool does."""
    folder = store.root / "courses-api"
    (folder / "run.json").write_text(json.dumps(RUN | changes, indent=2))
    (folder / "history.jsonl").write_text("\n".join(HISTORY) + "\n")
    (folder / "artifact.md").write_text(ARTIFACT)
    pointer = {"active_run_id": RUN["run_id"], "task_alias": "courses-api", "status": "running", "updated_at": ""}
    (store.root / "current.json").write_text(json.dumps(pointer))


def _read_run(store: Store, **changes: Any) -> RunState:
    _write_run(store, **changes)
    state, history = store.get_existing_run("courses-api").read()
    assert history.damage == []
    return state


def test_foreign_run_has_the_path_of_its_artifact_and_a_key_for_each_rule(store: Store) -> None:
    state = _read_run(store)
    assert state.setup.artifact == ".ai-factory/evolution/courses-api/artifact.md"
    assert state.progress.artifact_hash == hashlib.sha256(ARTIFACT.encode()).hexdigest()
    source = ".ai-factory/evolution/courses-api/inferred.rules.yaml"
    assert [rule.key for rule in state.criteria.rules] == [f"{source}::{rule['id']}" for rule in RULES]
    assert state.setup.arguments == ("--rootdir", str(store.project), str(store.project / source))
    assert state.current_step is Place.EVALUATE


def test_reading_a_foreign_run_writes_nothing(store: Store) -> None:
    _write_run(store)
    before = {path: path.read_bytes() for path in store.root.rglob("*") if path.is_file()}
    store.get_existing_run("courses-api").read()
    assert {path: path.read_bytes() for path in store.root.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    ("changes", "place", "awaited"),
    [
        ({"current_step": "PLAN"}, Place.PLAN, ()),
        ({"current_step": "PRODUCE_PREPARE"}, Place.PRODUCE_PREPARE, (Step.PRODUCE,)),
        ({"current_step": "PRODUCE_PREPARE", "prepared_checks": None}, Place.PRODUCE_PREPARE, (Step.PRODUCE, Step.PREPARE)),
        ({"current_step": "PRODUCE_PREPARE", "iteration": 2}, Place.EVALUATE, ()),
        ({"current_step": "PRODUCE_PREPARE", "iteration": 2, "prepared_checks": None}, Place.PRODUCE_PREPARE, (Step.PREPARE,)),
        ({"current_step": "PREPARE", "phase": "B"}, Place.PREPARE, ()),
        ({"current_step": "CRITIQUE", "evaluation": EVALUATION}, Place.CRITIQUE, ()),
        ({"current_step": "CRITIQUE"}, Place.EVALUATE, ()),
        ({"current_step": "REFINE", "evaluation": EVALUATION}, Place.CRITIQUE, ()),
        ({"current_step": "REFINE"}, Place.EVALUATE, ()),
    ],
)  # fmt: skip
def test_interrupted_step_restarts_or_the_step_that_makes_its_input(
    store: Store, changes: dict[str, Any], place: Place, awaited: tuple[Step, ...]
) -> None:
    state = _read_run(store, **changes)
    assert (state.current_step, state.progress.awaited) == (place, awaited)


def test_prepared_checks_are_grouped_by_rule(store: Store) -> None:
    command = {
        "rule_id": "a.correctness.endpoints",
        "type": "executable",
        "command": "make lint",
        "expected": "nothing",
    }
    content = {"type": "content", "search": "/courses/{id}", "expected": "the path of one course"}
    ours = {"rule_id": "b.style.naming", "check": [{"contains": "x"}]}
    state = _read_run(store, prepared_checks={"checks": [*CHECKS, ours, command, "nonsense", {"rule_id": 3}]})
    both = [content, {"type": "executable", "command": "make lint", "expected": "nothing"}]
    assert state.prepared_checks
    assert state.prepared_checks.model_dump(mode="json") == {
        "checks": [{"rule_id": "a.correctness.endpoints", "check": both}, ours]
    }


def test_missing_fields_of_a_rule_follow_from_its_id_and_severity(store: Store) -> None:
    rules = [{"id": "b.style.tone", "description": "It is kind", "severity": "warn"}, {"id": "a.x.y", "weight": None}]
    state = _read_run(store, criteria=RUN["criteria"] | {"rules": rules})
    first, second = state.criteria.rules
    assert (int(first.weight), first.phase.value, first.check) == (1, "B", "It is kind")
    assert (int(second.weight), second.phase.value, second.description) == (2, "A", "a.x.y")


@pytest.mark.parametrize("rules", [["text"], [{"id": "a.x.y", "severity": "deadly"}], 3])
def test_invalid_rules_are_damage(store: Store, rules: Any) -> None:
    with pytest.raises(StateError, match=r"run\.json is damaged \(criteria\.rules"):
        _read_run(store, criteria=RUN["criteria"] | {"rules": rules})


def test_rules_of_a_foreign_run_become_a_rule_file(store: Store) -> None:
    _write_run(store)
    files = store.get_existing_run("courses-api")
    files.acquire()
    files.repair(files.read()[1])
    files.release()
    data = json.loads((files.folder / "inferred.rules.yaml").read_text())
    assert data["phases"] == {"A": {"threshold": 0.8}, "B": {"threshold": 0.9}}
    assert [sorted(rule) for rule in data["rules"]] == [
        ["check", "description", "id", "phase", "severity", "weight"],
        ["check", "description", "id", "phase", "severity", "weight"],
    ]
    assert data["rules"][0]["check"] == RULES[0]["check"]
    assert files.read()[1].events[-1].event == Kind.RUN_ADOPTED.value


def test_foreign_run_is_listed_and_resumed_in_the_project_and_keeps_unknown_keys(
    store: Store, caller: PytestCaller
) -> None:
    command = {"rule_id": RULES[0]["id"], "type": "executable", "command": "test -f writers.py", "expected": "a file"}
    _write_run(store, prepared_checks={"checks": [*CHECKS, command]})
    project = store.project
    (project / "writers.py").write_text(dedent(AGENT))
    listed = caller.call("--loop-list", folder=project)
    head, row = listed.stdout.splitlines()
    assert head == "run          status            iteration  score  changed"
    assert row.startswith("courses-api  running (paused)  1 of 4     0      20")
    process = caller.call("--loop-resume", "--loop-yes", "--loop-agent", "python:writers:writer", folder=project)
    assert (process.returncode, process.stderr) == (0, ""), process.stdout
    files = store.get_existing_run("courses-api")
    state, history = files.read()
    assert (state.status.value, state.stop.reason, history.damage) == ("completed", "threshold_reached", [])
    assert state.completed_phase_seconds > 12
    names = [event.event for event in history.events]
    assert names[:6] == [
        "run_started",
        "plan_created",
        "prep_dispatched",
        "artifact_created",
        "checks_prepared",
        Kind.RUN_ADOPTED.value,
    ]
    assert names[-2:] == ["evaluation_done", "stopped"]
    assert files.history.read_text().splitlines()[:5] == HISTORY
    data = json.loads(files.snapshot.read_bytes())
    assert data["dispatch"] == {"planner": "another tool"}
    assert data["task"]["audience"] == "partners"
    assert data["criteria"]["rules"][0]["owner"] == "the API team"
    assert not (store.root / "current.json").exists()


def test_foreign_run_is_resumed_at_its_critique(store: Store, caller: PytestCaller) -> None:
    _write_run(store, current_step="CRITIQUE", evaluation=EVALUATION)
    (store.project / "writers.py").write_text(dedent(AGENT))
    arguments = ("--loop-resume=courses-api", "--loop-agent", "python:writers:writer")
    refused = caller.call(*arguments, folder=store.project)
    assert (refused.returncode, "confirm that it may go on with --loop-yes" in refused.stderr) == (4, True)
    process = caller.call(*arguments, "--loop-yes", folder=store.project)
    assert (process.returncode, process.stderr) == (0, ""), process.stdout
    assert store.get_run("courses-api").read()[0].setup.is_unsigned
    names = [event.event for event in store.get_existing_run("courses-api").read()[1].events]
    assert names[5:9] == [Kind.RUN_ADOPTED.value, "critique_done", "refinement_done", "iteration_advanced"]


def test_evaluation_without_a_phase_has_the_phase_of_the_run() -> None:
    evaluation = {"score": 1, "passed": True}
    assert normalize_fields({"phase": "B", "evaluation": evaluation})["evaluation"]["phase"] == "B"
    assert normalize_fields({"phase": "B", "evaluation": {**evaluation, "phase": "A"}})["evaluation"]["phase"] == "A"
