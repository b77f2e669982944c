"""Rule files: laid over what they extend, and normalised into criteria whose rules can be judged."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from pytest_loop.core.model.rules import DEFAULT_THRESHOLDS, Criteria, Phase, Proof, Remedy, Rule, Severity
from pytest_loop.errors import Problem, RuleFileError
from pytest_loop.rules.checks.check import format_value
from pytest_loop.rules.checks.registry import (
    BUILT_IN_KINDS,
    InvalidCheckError,
    Kinds,
    build_check,
    build_check_schemas,
    find_weakest_proof,
    list_checks,
    needs_artifact,
)
from pytest_loop.rules.fix_commands import find_fix_command
from pytest_loop.rules.parse_cache import MEANINGS
from pytest_loop.rules.rule_schema import FixCommand, RuleFile
from pytest_loop.rules.sources import Source, read_chain


@dataclass(frozen=True, slots=True)
class LoadedRule:
    """A rule with the check that judges it, the folder its paths start from, and where it stands."""

    rule: Rule
    check: Any
    folder: Path
    line: int
    fixtures: tuple[str, ...] = ()
    is_quiet: bool = False
    is_slow: bool = False
    raw: Any = None


@dataclass(frozen=True)
class LoadedRuleFile:
    """What a rule file comes to."""

    criteria: Criteria
    artifact: Path | None
    rules: tuple[LoadedRule, ...]
    artifact_name: str = ""


@dataclass
class _Merged:
    """A rule while files are laid over each other: its fields, and which file said the check."""

    fields: dict[str, Any]
    source: Source
    at: int
    check_source: Source = field(init=False)
    check_at: int = field(init=False)

    def __post_init__(self) -> None:
        self.check_source, self.check_at = self.source, self.at

    def lay_over(self, fields: dict[str, Any], source: Source, at: int) -> None:
        self.fields |= fields
        self.source, self.at = source, at
        if "check" in fields:
            self.check_source, self.check_at = source, at


def load_rule_file(
    path: Path, root: Path, kinds: Kinds = BUILT_IN_KINDS, name: str | None = None, instead: str | None = None
) -> LoadedRuleFile:
    """Read a rule file with everything it extends; raises `RuleFileError` with every problem.

    `name` is what the session calls the file, where that is not its path from `root`; `instead` is the artifact of a
    run, which takes the place of the one that the file names.
    """
    problems: list[Problem] = []
    MEANINGS.read[path] = root
    chain = list(read_chain(path, root, problems))
    if not chain:
        raise RuleFileError(problems)
    source, model = chain[0]
    rules = _rules(chain, kinds)
    declared = _artifact(chain, root)
    artifact = Path(instead) if instead else declared
    if artifact is None:
        for one in rules:
            if needs_artifact(one.check):
                source.complain(f"expected `artifact` for the check of {one.rule.id}, found none in the file", "rules")
                break
    if problems:
        raise RuleFileError(problems)
    criteria = Criteria(
        name=model.criteria or path.name.split(".rules.")[0],
        source=name or source.shown,
        version=model.version,
        thresholds=_thresholds(chain),
        rules=tuple(one.rule for one in rules),
    )
    return LoadedRuleFile(criteria, artifact, tuple(rules), declared.name if declared else "")


def _rules(chain: list[tuple[Source, RuleFile]], kinds: Kinds) -> list[LoadedRule]:
    """What the files say together."""
    texts = tuple((source.path, source.folder, source.text) for source, _ in chain)
    if kinds is BUILT_IN_KINDS and (known := MEANINGS.rules(texts)):
        return known
    merged: dict[str, _Merged] = {}
    for source, model in reversed(chain):
        _lay(merged, source, model)
    main, _ = chain[0]
    rules = [rule for one in merged.values() if (rule := _judged(one, main, kinds))]
    if kinds is BUILT_IN_KINDS and not main.problems:
        MEANINGS.keep_rules(texts, rules)
    return rules


def _lay(merged: dict[str, _Merged], source: Source, model: RuleFile) -> None:
    for at, entry in enumerate(model.rules):
        values = vars(entry)
        fields = {name: values[name] for name in entry.model_fields_set}
        known = merged.get(entry.id)
        if known is None:
            merged[entry.id] = _Merged(fields, source, at)
        else:
            known.lay_over(fields, source, at)


def _line(one: _Merged, main: Source) -> int:
    """Where the rule stands in the file that was collected; one that only its base has stands at `extends`."""
    return main.line("rules", one.at) if one.source is main else main.line("extends")


def _judged(one: _Merged, main: Source, kinds: Kinds) -> LoadedRule | None:
    fields = one.fields
    for name in ("description", "check"):
        if fields.get(name) is None:
            one.source.complain(f"expected the key `{name}` for the rule {fields['id']}, found none", "rules", one.at)
    if fields.get("check") is None:
        return None
    try:
        judge = build_check(fields["check"], kinds)
    except InvalidCheckError as invalid:
        for reason in invalid.complaints:
            one.check_source.complain(reason.text, "rules", one.check_at, "check", *reason.path)
        return None
    if fields.get("description") is None:
        return None
    parts = tuple(list_checks(judge))
    quiet = all(getattr(part, "is_quiet", False) for part in parts)
    slow = any(getattr(part, "is_slow", False) for part in parts)
    fixtures = tuple(fields.get("fixtures") or ())
    folder = one.check_source.folder
    made = build_rule(
        fields, find_fix_command(fields.get("fix"), judge, one.check_source.place), find_weakest_proof(parts)
    )
    return LoadedRule(made, judge, folder, _line(one, main), fixtures, quiet, slow, fields["check"])


def build_rule(fields: dict[str, Any], mended_by: Remedy | None = None, rests_on: Proof = Proof.EXECUTION) -> Rule:
    """A rule with everything derived that may be left out: severity, weight, phase."""
    severity = Severity(fields.get("severity") or "fail")
    weight = fields.get("weight")
    fix = fields.get("fix")
    return Rule(
        id=fields["id"],
        description=fields.get("description") or fields["id"],
        severity=severity,
        weight=severity.weight if weight is None else to_fraction(weight),
        phase=Phase(fields.get("phase") or derive_phase(fields["id"])),
        must_not=bool(fields.get("must_not")),
        holdout=bool(fields.get("holdout")),
        repeat=fields.get("repeat") or 1,
        need=str(fields.get("need") or "majority"),
        fix=f"run `{fix.command}`" if isinstance(fix, FixCommand) else fix,
        remedy=mended_by,
        proof=rests_on,
    )


def derive_phase(name: str) -> str:
    """The phase that an id begins with; A where it says nothing."""
    return "B" if name[:2].lower() == "b." else "A"


def to_fraction(number: float) -> Fraction:
    """The number as it was written: 0.1 is a tenth."""
    return Fraction(number) if isinstance(number, int) or not math.isfinite(number) else Fraction(repr(number))


def _artifact(chain: list[tuple[Source, RuleFile]], root: Path) -> Path | None:
    """What the nearest file names; it must stay inside the project."""
    for source, model in chain:
        if model.artifact is not None:
            path = source.folder / model.artifact
            if not path.resolve().is_relative_to(root.resolve()):
                source.complain(
                    f"expected a path inside the project for `artifact`, found {format_value(model.artifact)}",
                    "artifact",
                )
            return path
    return None


def _thresholds(chain: list[tuple[Source, RuleFile]]) -> dict[Phase, Fraction]:
    found = dict(DEFAULT_THRESHOLDS)
    for _, model in reversed(chain):
        for phase in Phase:
            asked = getattr(model.phases, phase.value) if model.phases else None
            if asked is not None:
                found[phase] = to_fraction(asked.threshold)
    return found


def build_json_schema(kinds: Kinds = BUILT_IN_KINDS) -> dict[str, Any]:
    """The JSON Schema of a rule file, for editors."""
    whole = RuleFile.model_json_schema()
    definitions = whole.pop("$defs") | build_check_schemas(kinds)
    definitions["RuleEntry"]["properties"]["check"] = {"$ref": "#/$defs/check"}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Rule file of pytest-agent-loop",
        **{key: value for key, value in whole.items() if key != "title"},
        "$defs": dict(sorted(definitions.items())),
    }
