"""Normalize runs that other tools of the same format started: complete and convert their fields."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pytest_loop.core.machine.event_changes import list_awaited_steps
from pytest_loop.core.model.rules import Severity, infer_phase
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.model.vocabulary import Place, Step
from pytest_loop.store import disk


def normalize_fields(data: dict[str, Any]) -> dict[str, Any]:
    """Normalize the fields of a `run.json`: drop nulls, and keep unknown values unchanged."""
    fields = {name: _drop_nulls(value) for name, value in data.items() if value is not None}
    criteria = fields.get("criteria")
    if isinstance(criteria, dict) and isinstance(criteria.get("rules"), list):
        fields["criteria"] = criteria | {"rules": [_complete_rule(rule) for rule in criteria["rules"]]}
    prepared = fields.get("prepared_checks")
    if isinstance(prepared, dict) and isinstance(prepared.get("checks"), list):
        fields["prepared_checks"] = prepared | {"checks": _group_checks(prepared["checks"])}
    if isinstance(fields.get("evaluation"), dict):
        phase = {"phase": fields["phase"]} if "phase" in fields else {}
        fields["evaluation"] = phase | _count_verdicts(fields["evaluation"])
    return fields


def _drop_nulls(value: Any) -> Any:
    return {name: item for name, item in value.items() if item is not None} if isinstance(value, dict) else value


def _complete_rule(rule: Any) -> Any:
    """Derive missing fields of a rule from its id, its severity and its description."""
    if not isinstance(rule, dict):
        return rule
    fields = _drop_nulls(rule)
    severity = fields.get("severity", Severity.FAIL.value)
    return {
        "weight": int(Severity(severity).weight) if severity in [item.value for item in Severity] else 0,
        "phase": infer_phase(str(fields.get("id", ""))).value,
        "description": fields.get("id", ""),
        "check": fields.get("description", ""),
        **fields,
    }


def _group_checks(checks: list[Any]) -> list[dict[str, Any]]:
    """Group checks by rule; other tools write each with the id of its rule."""
    groups: dict[str, list[Any]] = {}
    for item in checks:
        if isinstance(item, dict) and isinstance(item.get("rule_id"), str):
            check = item.get("check", {name: value for name, value in item.items() if name != "rule_id"})
            groups.setdefault(item["rule_id"], []).extend(check if isinstance(check, list) else [check])
    return [{"rule_id": rule_id, "check": group} for rule_id, group in groups.items()]


def _count_verdicts(evaluation: dict[str, Any]) -> dict[str, Any]:
    results = evaluation.get("rule_results")
    items = results if isinstance(results, list) else []
    verdicts = [item.get("verdict") for item in items if isinstance(item, dict)]
    return {"total": len(verdicts), "passing": verdicts.count("pass"), **evaluation}


def prepare_state(state: RunState, rule_file: Path, project: Path) -> RunState:
    """Return a state that can be resumed: with the path of its artifact, and with its rules as a rule file.

    Sessions judge the rule file with the project as root folder, as they do with inferred rules.
    """
    artifact = rule_file.with_name("artifact.md")
    prefix = _format_path(rule_file, project)
    rules = [
        rule if rule.key else rule.model_copy(update={"key": f"{prefix}::{rule.id}"}) for rule in state.criteria.rules
    ]
    update: dict[str, Any] = {
        "artifact": state.setup.artifact or _format_path(artifact, project),
        "artifact_hash": state.progress.artifact_hash or disk.hash_file(artifact),
        "criteria": state.criteria.model_copy(update={"rules": tuple(rules)}),
        "arguments": state.setup.arguments or ("--rootdir", str(project), str(rule_file)),
    }
    state = state.replace(**update)
    return _restart_step(state.replace(inferred_rules=_render_rule_file(state)))


def _restart_step(state: RunState) -> RunState:
    """Restart the interrupted step; if its input is missing, restart the step that makes it."""
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


def _format_path(path: Path, project: Path) -> str:
    return path.relative_to(project).as_posix() if path.is_relative_to(project) else str(path)


def _render_rule_file(state: RunState) -> str:
    """Render the rules as a rule file that a session can collect; other tools write none."""
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
        "artifact": state.setup.artifact,
        "phases": phases,
        "rules": rules,
    }
    return json.dumps(data, indent=1, ensure_ascii=False).encode("utf-8", "replace").decode() + "\n"
