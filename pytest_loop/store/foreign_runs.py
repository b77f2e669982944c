"""Runs that other tools of the format began: what they leave out or write otherwise, as this package has it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pytest_loop.core.machine.event_changes import list_awaited_steps
from pytest_loop.core.model.rules import Phase, Severity
from pytest_loop.core.model.run_criteria import RunRule
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.model.vocabulary import Place, Step
from pytest_loop.store import disk

RULE_FILE = "criteria.rules.json"


def normalize_fields(data: dict[str, Any]) -> dict[str, Any]:
    """The fields of a `run.json`; null stands for what is not there, and what cannot be understood stays as it is."""
    made = {name: _present(value) for name, value in data.items() if value is not None}
    criteria = made.get("criteria")
    if isinstance(criteria, dict) and isinstance(criteria.get("rules"), list):
        made["criteria"] = criteria | {"rules": [_rule(one) for one in criteria["rules"]]}
    prepared = made.get("prepared_checks")
    if isinstance(prepared, dict) and isinstance(prepared.get("checks"), list):
        made["prepared_checks"] = prepared | {"checks": _prepared(prepared["checks"])}
    if isinstance(made.get("evaluation"), dict):
        made["evaluation"] = _counted(made["evaluation"])
    return made


def _present(value: Any) -> Any:
    return {name: one for name, one in value.items() if one is not None} if isinstance(value, dict) else value


def _rule(rule: Any) -> Any:
    """All that a rule needs, from its id, its severity and its description where it does not say more."""
    if not isinstance(rule, dict):
        return rule
    given = _present(rule)
    severity = given.get("severity", Severity.FAIL.value)
    known = severity in [one.value for one in Severity]
    later = str(given.get("id", "")).lower().startswith("b.")
    return {
        "weight": int(Severity(severity).weight) if known else 0,
        "phase": Phase.B.value if later else Phase.A.value,
        "description": given.get("id", ""),
        "check": given.get("description", ""),
        **given,
    }


def _prepared(checks: list[Any]) -> list[dict[str, Any]]:
    """The checks of each rule, together; elsewhere each stands beside the id of its rule."""
    found: dict[str, list[Any]] = {}
    for one in checks:
        if isinstance(one, dict) and isinstance(one.get("rule_id"), str):
            own = one.get("check", {name: value for name, value in one.items() if name != "rule_id"})
            found.setdefault(one["rule_id"], []).extend(own if isinstance(own, list) else [_at_home(own)])
    return [{"rule_id": name, "check": own} for name, own in found.items()]


def _at_home(check: Any) -> Any:
    """A command was meant for the project's folder, and rules run in that of their file."""
    if isinstance(check, dict) and check.get("type") == "executable" and isinstance(check.get("command"), str):
        return check | {"command": f"cd {{workspace}} && {check['command']}"}
    return check


def _counted(evaluation: dict[str, Any]) -> dict[str, Any]:
    results = evaluation.get("rule_results")
    verdicts = [one.get("verdict") for one in results if isinstance(one, dict)] if isinstance(results, list) else []
    return {"total": len(verdicts), "passing": verdicts.count("pass"), **evaluation}


def prepare_state(state: RunState, folder: Path, project: Path) -> RunState:
    """A state from which a run can go on: with the place of its artifact, and with a name for each rule."""
    artifact = folder / "artifact.md"
    rules = folder / RULE_FILE
    named = tuple(_named(rule, f"{_shown(rules, project)}::{rule.id}") for rule in state.criteria.rules)
    update: dict[str, Any] = {
        "artifact": state.setup.artifact or _shown(artifact, project),
        "artifact_hash": state.progress.artifact_hash or disk.hash_file(artifact),
        "criteria": state.criteria.model_copy(update={"rules": named}),
        "arguments": state.setup.arguments or ("--rootdir", str(project), str(rules)),
    }
    return _placed(state.replace(**update))


def _named(rule: RunRule, key: str) -> RunRule:
    return rule if rule.key else rule.model_copy(update={"key": key})


def _placed(state: RunState) -> RunState:
    """Where the interrupted step begins again; one whose input is missing begins with what makes it."""
    place = state.current_step
    if place is Place.REFINE and state.critique is None:
        place = Place.CRITIQUE
    if place in (Place.CRITIQUE, Place.REFINE) and state.evaluation is None:
        place = Place.EVALUATE
    awaited: tuple[Step, ...] = ()
    if place is Place.PRODUCE_PREPARE:
        produced = state if state.iteration > 1 else state.replace(artifact_hash="")
        awaited = list_awaited_steps(produced)
        place = place if awaited else Place.EVALUATE
    return state.replace(current_step=place, awaited=awaited)


def _shown(path: Path, project: Path) -> str:
    return path.relative_to(project).as_posix() if path.is_relative_to(project) else str(path)


def render_rule_file(state: RunState) -> bytes:
    """The rules as a session collects them: those of another tool are in no file of their own."""
    phases = {phase.value: {"threshold": float(level.threshold)} for phase, level in state.criteria.phase.items()}
    rules = [
        {
            "id": rule.id,
            "description": rule.description or rule.id,
            "severity": rule.severity.value,
            "weight": float(rule.weight),
            "phase": rule.phase.value,
            "check": rule.check or rule.description or rule.id,
        }
        for rule in state.criteria.rules
    ]
    data = {
        "criteria": state.criteria.name,
        "version": state.criteria.version,
        "artifact": "artifact.md",
        "phases": phases,
        "rules": rules,
    }
    return json.dumps(data, indent=1, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
