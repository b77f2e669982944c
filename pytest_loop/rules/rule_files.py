"""Load rule files: merge each with the files it extends, and build criteria and checks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from pytest_loop.core.model.rules import DEFAULT_THRESHOLDS, Criteria, Phase, Proof, Remedy, Rule, Severity, infer_phase
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
from pytest_loop.rules.rule_schema import FixCommand, RuleFile
from pytest_loop.rules.sources import RuleSource, read_chain


@dataclass(frozen=True, slots=True)
class LoadedRule:
    """A rule with its check, the folder where paths of the check start, and its line in the rule file.

    `raw` is the check as written.
    """

    rule: Rule
    check: Any
    folder: Path
    line: int
    fixtures: tuple[str, ...] = ()
    is_slow: bool = False
    raw: Any = None


@dataclass(frozen=True)
class LoadedRuleFile:
    """The criteria and rules of a rule file and of the files that it extends.

    Checks read `artifact`: the `declared_artifact`, which the rule file names, or the replacement of a run.
    """

    criteria: Criteria
    artifact: Path | None
    rules: tuple[LoadedRule, ...]
    declared_artifact: Path | None = None
    extended_files: tuple[Path, ...] = ()


@dataclass
class _MergedRule:
    """The fields of a rule, merged from a chain of files.

    `source` and `index` locate the entry that was merged last; `check_source` and `check_index` locate the entry of the
    check.
    """

    fields: dict[str, Any]
    source: RuleSource
    index: int
    check_source: RuleSource
    check_index: int


def load_rule_file(
    path: Path, root: Path, kinds: Kinds = BUILT_IN_KINDS, name: str | None = None, artifact_override: str | None = None
) -> LoadedRuleFile:
    """Load a rule file with everything it extends; raise `RuleFileError` with all problems.

    `name` is the source of the criteria, by default the path from `root`. `artifact_override` replaces the artifact
    that the file names: a run keeps its artifact elsewhere.
    """
    problems: list[Problem] = []
    chain = read_chain(path, root, problems)
    if not chain:
        raise RuleFileError(problems)
    main = chain[0]
    rules = [rule for merged in _merge_rules(chain) if (rule := _load_rule(merged, main, kinds))]
    declared_artifact = _find_artifact(chain, root)
    artifact = Path(artifact_override) if artifact_override else declared_artifact
    dependent_rule = next((loaded.rule.id for loaded in rules if needs_artifact(loaded.check)), None)
    if artifact is None and dependent_rule:
        main.add_problem(f"expected `artifact` for the check of {dependent_rule}, found none in the file", "rules")
    if problems:
        raise RuleFileError(problems)
    criteria = Criteria(
        name=main.model.criteria or path.name.split(".rules.")[0],
        source=name or main.display_name,
        version=main.model.version,
        thresholds=_merge_thresholds(chain),
        rules=tuple(loaded.rule for loaded in rules),
    )
    extended_files = tuple(source.path for source in chain[1:])
    return LoadedRuleFile(criteria, artifact, tuple(rules), declared_artifact, extended_files)


def _merge_rules(chain: list[RuleSource]) -> list[_MergedRule]:
    merged: dict[str, _MergedRule] = {}
    for source in reversed(chain):
        for index, entry in enumerate(source.model.rules):
            rule = merged.setdefault(entry.id, _MergedRule({}, source, index, source, index))
            values = vars(entry)
            rule.fields |= {name: values[name] for name in entry.model_fields_set}
            rule.source, rule.index = source, index
            if "check" in entry.model_fields_set:
                rule.check_source, rule.check_index = source, index
    return list(merged.values())


def _load_rule(merged: _MergedRule, main: RuleSource, kinds: Kinds) -> LoadedRule | None:
    fields, source = merged.fields, merged.source
    missing = [name for name in ("description", "check") if fields.get(name) is None]
    for name in missing:
        source.add_problem(f"expected the key `{name}` for the rule {fields['id']}, found none", "rules", merged.index)
    if "check" in missing:
        return None
    try:
        check = build_check(fields["check"], kinds)
    except InvalidCheckError as error:
        for problem in error.problems:
            merged.check_source.add_problem(problem.text, "rules", merged.check_index, "check", *problem.path)
        return None
    if missing:
        return None
    parts = list_checks(check)
    remedy = find_fix_command(fields.get("fix"), check, merged.check_source.folder_display_name)
    return LoadedRule(
        rule=build_rule(fields, remedy, find_weakest_proof(parts)),
        check=check,
        folder=merged.check_source.folder,
        # A rule that only an extended file has is reported at `extends`.
        line=main.find_line(("rules", merged.index) if source is main else ("extends",)),
        fixtures=tuple(fields.get("fixtures") or ()),
        is_slow=any(getattr(part, "is_slow", False) for part in parts),
        raw=fields["check"],
    )


def build_rule(fields: dict[str, Any], remedy: Remedy | None = None, proof: Proof = Proof.EXECUTION) -> Rule:
    """Build a rule from its fields; severity, weight and phase have defaults."""
    severity = Severity(fields.get("severity") or "fail")
    guard = bool(fields.get("guard"))
    weight = 0 if guard else fields.get("weight")
    fix = fields.get("fix")
    return Rule(
        id=fields["id"],
        description=fields.get("description") or fields["id"],
        severity=severity,
        weight=severity.weight if weight is None else to_fraction(weight),
        phase=Phase(fields.get("phase") or infer_phase(fields["id"])),
        must_not=bool(fields.get("must_not")),
        held_out=bool(fields.get("holdout")),
        guard=guard,
        repeat=fields.get("repeat") or 1,
        need=str(fields.get("need") or "majority"),
        fix=f"run `{fix.command}`" if isinstance(fix, FixCommand) else fix,
        remedy=remedy,
        proof=proof,
    )


def to_fraction(number: float) -> Fraction:
    """Return a number as the exact fraction of its decimal digits: 1/10 for 0.1."""
    return Fraction(number) if isinstance(number, int) or not math.isfinite(number) else Fraction(repr(number))


def _find_artifact(chain: list[RuleSource], root: Path) -> Path | None:
    """Return the artifact of the first file in the chain that names one; add a problem if it is outside the project."""
    for source in chain:
        artifact = source.model.artifact
        if artifact is not None:
            path = source.folder / artifact
            if not path.resolve().is_relative_to(root.resolve()):
                found = format_value(artifact)
                source.add_problem(f"expected a path inside the project for `artifact`, found {found}", "artifact")
            return path
    return None


def _merge_thresholds(chain: list[RuleSource]) -> dict[Phase, Fraction]:
    thresholds = dict(DEFAULT_THRESHOLDS)
    for source in reversed(chain):
        for phase in Phase:
            declared = getattr(source.model.phases, phase.value, None)
            if declared is not None:
                thresholds[phase] = to_fraction(declared.threshold)
    return thresholds


def build_json_schema(kinds: Kinds = BUILT_IN_KINDS) -> dict[str, Any]:
    """Build the JSON Schema of rule files, for editors."""
    schema = RuleFile.model_json_schema()
    definitions = schema.pop("$defs") | build_check_schemas(kinds)
    definitions["RuleEntry"]["properties"]["check"] = {"$ref": "#/$defs/check"}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **(schema | {"title": "Rule file of pytest-agent-loop"}),
        "$defs": dict(sorted(definitions.items())),
    }
