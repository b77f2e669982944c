from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from textwrap import dedent
from typing import Any

import jsonschema
import pytest
import yaml
from pydantic import BaseModel

from pytest_loop.core.model.rules import Phase, Severity
from pytest_loop.errors import RuleFileError
from pytest_loop.rules.rule_files import LoadedRuleFile, build_json_schema, load_rule_file
from pytest_loop.rules.sources import TEMPLATES, list_templates, name_source

Load = Callable[..., LoadedRuleFile]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Write a rule file and load it."""

    def load_text(text: str | bytes, name: str = "it.rules.yaml") -> LoadedRuleFile:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else dedent(text).lstrip("\n").encode())
        return load_rule_file(path, tmp_path)

    return load_text


def list_problems(load: Load, text: str | bytes, name: str = "it.rules.yaml") -> list[str]:
    with pytest.raises(RuleFileError) as caught:
        load(text, name)
    return str(caught.value).splitlines()


RULE = "{id: a.x.y, description: d, check: {command: 'true'}}"


def test_wrong_fields_and_wrong_checks_are_reported_in_one_round(load: Load) -> None:
    problems = list_problems(
        load,
        """
        rules:
          - {id: a.x.one, descripton: One, check: {absentt: x}}
          - {id: a.x.two, description: Two, severity: fatal, check: {size: {lines: {max: many}}}}
        """,
    )
    assert len(problems) == 4
    assert "did you mean `absent`?" in "".join(problems)


def test_omitted_fields_have_defaults(load: Load) -> None:
    loaded = load("""
        rules:
          - {id: a.x.one, description: One, check: {command: "true"}}
          - {id: b.x.two, description: Two, severity: warn, check: {command: "true"}}
          - {id: c.x.three, description: Three, severity: info, check: {command: "true"}, weight: 0.1}
          - {id: b.x.four, description: Four, phase: A, check: {command: "true"}, weight: 3}
    """)
    assert loaded.criteria.name == "it"
    assert loaded.criteria.version == 1
    assert loaded.criteria.thresholds == {Phase.A: Fraction(4, 5), Phase.B: Fraction(9, 10)}
    assert [(rule.id, rule.severity, rule.weight, rule.phase) for rule in loaded.criteria.rules] == [
        ("a.x.one", Severity.FAIL, 2, Phase.A),
        ("b.x.two", Severity.WARN, 1, Phase.B),
        ("c.x.three", Severity.INFO, Fraction(1, 10), Phase.A),
        ("b.x.four", Severity.FAIL, 3, Phase.A),
    ]
    assert [rule.line for rule in loaded.rules] == [2, 3, 4, 5]


def test_every_field_is_loaded(load: Load, tmp_path: Path) -> None:
    loaded = load("""
        criteria: mine
        version: 3
        artifact: sub/doc.md
        phases: {A: {threshold: 0.5}, B: {threshold: 1}}
        rules:
          - id: a.x.y
            description: Everything
            severity: warn
            must_not: true
            repeat: 5
            need: 0.8
            fixtures: [server]
            fix: {command: make fix}
            check: {contains: x}
    """)
    assert (loaded.criteria.name, loaded.criteria.version) == ("mine", 3)
    assert loaded.criteria.thresholds == {Phase.A: Fraction(1, 2), Phase.B: 1}
    assert loaded.artifact == tmp_path / "sub/doc.md"
    (rule,) = loaded.criteria.rules
    assert (rule.must_not, rule.repeat, rule.need, rule.fix) == (True, 5, "0.8", "run `make fix`")
    assert loaded.rules[0].fixtures == ("server",)


TOML = """
[[rules]]
id = "a.x.y"
description = "D"
check = {command = "true"}
"""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("it.rules.yaml", f"rules: [{RULE}]"),
        ("it.rules.yml", f"rules: [{RULE}]"),
        ("it.rules.json", '{"rules": [{"id": "a.x.y", "description": "D", "check": {"command": "true"}}]}'),
        ("it.rules.toml", TOML),
    ],
)
def test_all_formats_load_the_same_rules(load: Load, name: str, text: str) -> None:
    loaded = load(text, name)
    assert (loaded.criteria.name, loaded.criteria.source) == ("it", name)
    assert [rule.id for rule in loaded.criteria.rules] == ["a.x.y"]


BAD = {
    "it.rules.yaml": """
        versoin: 1
        phases: {A: {threshold: 1.5}}
        rules:
          - id: a.x.y
            description: 5
            severity: fial
            check: {contains: [1]}
          - id: a.x.y
            weight: -1
    """,
    "it.rules.json": """
        {"versoin": 1,
         "phases": {"A": {"threshold": 1.5}},
         "rules": [
          {"id": "a.x.y",
           "description": 5,
           "severity": "fial",
           "check": {"contains": [1]}},
          {"id": "a.x.y",
           "weight": -1}
        ]}
    """,
    "it.rules.toml": """
        versoin = 1
        phases.A.threshold = 1.5

        [[rules]]
        id = "a.x.y"
        description = 5
        severity = "fial"
        check = {contains = [1]}
        [[rules]]
        id = "a.x.y"
        weight = -1
    """,
}


@pytest.mark.parametrize(
    ("name", "lines"),
    [("it.rules.yaml", [1, 2, 5, 6, 9]), ("it.rules.json", [1, 2, 5, 6, 9]), ("it.rules.toml", [1, 2, 6, 7, 11])],
)
def test_all_problems_are_reported_with_lines_in_every_format(load: Load, name: str, lines: list[int]) -> None:
    texts = [
        "expected `version`, found the unknown key `versoin`",
        "expected a number <= 1 for `threshold`, found 1.5",
        "expected text for `description`, found 5",
        "expected 'fail', 'warn' or 'info' for `severity`, found 'fial'",
        "expected a number >= 0 for `weight`, found -1",
    ]
    expected = [f"{name}:{line}: {text}" for line, text in zip(lines, texts, strict=True)]
    assert list_problems(load, BAD[name], name) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ["it.rules.yaml:1: expected a mapping with `rules`, found an empty file"]),
        ("[1]", ["it.rules.yaml:1: expected a mapping with `rules`, found [1]"]),
        ("rules: []", ["it.rules.yaml:1: expected at least one rule in `rules`, found none"]),
        ("criteria: x", ["it.rules.yaml:1: expected at least one rule in `rules`, found none"]),
        ("rules: 5", ["it.rules.yaml:1: expected a list for `rules`, found 5"]),
        ("rules: [5]", ["it.rules.yaml:1: expected a mapping, found 5"]),
        ("rules:\n  - {description: x}", ["it.rules.yaml:2: expected the key `id`, found none"]),
        (
            "rules:\n  - {id: a b, description: x, check: y}",
            ["it.rules.yaml:2: expected an id such as a.correctness.totals for `id`, found 'a b'"],
        ),
        (
            "rules:\n  - {id: a.b, description: x}",
            ["it.rules.yaml:2: expected the key `check` for the rule a.b, found none"],
        ),
        (
            "rules:\n  - {id: a.b, check: x}",
            ["it.rules.yaml:2: expected the key `description` for the rule a.b, found none"],
        ),
        (
            "rules:\n  - {id: a.b, description: x, check: y}\n  - {id: a.c, description: x, check: y}\n  - {id: a.b, description: x, check: y}",
            ["it.rules.yaml:4: expected each id once, found 'a.b' again (first in line 2)"],
        ),
        (
            "rules:\n  - id: a.b\n    id: a.c\n    description: x\n    check: y",
            ["it.rules.yaml:3: expected each key once, found 'id' twice"],
        ),
        (
            f"artifact: ../x\nrules: [{RULE}]",
            ["it.rules.yaml:1: expected a path inside the project for `artifact`, found '../x'"],
        ),
        (
            f"artifact: /etc/passwd\nrules: [{RULE}]",
            ["it.rules.yaml:1: expected a path inside the project for `artifact`, found '/etc/passwd'"],
        ),
        (
            "rules:\n  - {id: a.b, description: x, check: {contains: x}}",
            ["it.rules.yaml:1: expected `artifact` for the check of a.b, found none in the file"],
        ),
        (
            "rules:\n  - {id: a.b, description: x, check: y, need: most}",
            ["it.rules.yaml:2: expected majority, all, any, a count or a share for `need`, found 'most'"],
        ),
        (
            "rules:\n  - {id: a.b, description: x, check: y, need: true}",
            ["it.rules.yaml:2: expected majority, all, any, a count or a share for `need`, found true"],
        ),
        (
            "rules:\n  - {id: a.b, description: x, check: y, repeat: 0}",
            ["it.rules.yaml:2: expected a number >= 1 for `repeat`, found 0"],
        ),
        (
            "rules:\n  - {id: a.b, description: x, check: y, weight: .inf}",
            ["it.rules.yaml:2: expected a finite number for `weight`, found inf"],
        ),
        (
            "rules:\n  - {id: a.b, description: x, check: y, weight: '2'}",
            ["it.rules.yaml:2: expected a number for `weight`, found '2'"],
        ),
        (
            "rules:\n  - {id: a.b, description: x, check: y, fix: 5}",
            ["it.rules.yaml:2: expected text for `fix`, found 5"],
        ),
        (
            "rules:\n  - id: a.b\n    description: x\n    check:\n      all:\n        - contains: x\n        - absent: 5\nartifact: x",
            ["it.rules.yaml:7: expected a list for `absent`, found 5"],
        ),
        ("a: [", ["it.rules.yaml:2: expected YAML, found an error: did not find expected node content"]),
        ("rules:\n\t- id: x", ["it.rules.yaml:2: expected spaces for indentation, found a tab"]),
        (b"rules:\n  - id: \xff", ["it.rules.yaml:2: expected UTF-8 text, found the byte 0xff"]),
        (b"x" * (9 * 1024 * 1024), ["it.rules.yaml:1: expected at most 8 MB, found 9.0 MB"]),
        (
            f"extends: none\nrules: [{RULE}]",
            ["it.rules.yaml:1: expected a rule file or one of the templates TEMPLATES for `extends`, found 'none'"],
        ),
        (
            f"extends: ../x.rules.yaml\nrules: [{RULE}]",
            ["it.rules.yaml:1: expected a file inside the project for `extends`, found '../x.rules.yaml'"],
        ),
        (
            "extends: it.rules.yaml",
            [
                "it.rules.yaml:1: expected files that extend each other in one direction, found it.rules.yaml -> it.rules.yaml"
            ],
        ),
    ],
)
def test_each_problem_is_one_line(load: Load, text: str | bytes, expected: list[str]) -> None:
    names = ", ".join(list_templates())
    assert list_problems(load, text) == [line.replace("TEMPLATES", names) for line in expected]


def test_extending_a_file_of_another_type_is_a_problem(load: Load, tmp_path: Path) -> None:
    (tmp_path / "x.ini").write_text("")
    assert list_problems(load, "extends: x.ini") == [
        "it.rules.yaml:1: expected a .yaml, .yml, .json or .toml file for `extends`, found 'x.ini'"
    ]


def test_problems_of_an_extended_file_name_that_file(load: Load, tmp_path: Path) -> None:
    (tmp_path / "base.rules.yaml").write_text("rules:\n  - {id: a.b, description: x, check: {conains: x}}\n")
    (line,) = list_problems(load, "extends: base.rules.yaml")
    assert line.startswith("base.rules.yaml:2: expected one kind of check (")


BASE = """
artifact: base.md
phases: {A: {threshold: 0.5}, B: {threshold: 0.6}}
rules:
  - {id: a.x.one, description: One, severity: warn, check: {command: "true"}, fix: old}
  - {id: a.x.two, description: Two, check: {json_schema: schema.json}}
"""


def test_files_are_merged_rule_by_rule_and_field_by_field(load: Load, tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "base.rules.yaml").write_text(BASE)
    loaded = load(
        """
        extends: shared/base.rules.yaml
        phases: {B: {threshold: 0.7}}
        rules:
          - {id: a.x.one, weight: 5, fix: new}
          - {id: a.x.three, description: Three, check: {contains: x}}
          - {id: a.x.two, description: Better}
        """
    )
    first, second, third = loaded.rules
    assert (first.rule.severity, first.rule.weight, first.rule.fix) == (Severity.WARN, Fraction(5), "new")
    assert (second.rule.description, second.folder) == ("Better", tmp_path / "shared")
    assert (third.rule.id, third.folder) == ("a.x.three", tmp_path)
    assert loaded.criteria.thresholds == {Phase.A: Fraction(1, 2), Phase.B: Fraction(7, 10)}
    assert loaded.artifact == tmp_path / "shared" / "base.md"


def test_paths_of_a_template_start_at_the_file_that_extends_it(load: Load, tmp_path: Path) -> None:
    loaded = load("extends: docs\nartifact: x.md", "sub/it.rules.yaml")
    assert {(rule.folder, rule.line) for rule in loaded.rules} == {(tmp_path / "sub", 1)}


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        (f"rules: [{RULE}]", True),
        ("extends: docs", True),
        (
            "artifact: x\nrules: [{id: a.b, description: x, check: [{contains: x, ignore_case: true}, a sentence]}]",
            True,
        ),
        (
            "artifact: x\nrules: [{id: a.b, description: x, check: {any: [{matches: [a, b]}, {not: {absent: x}}]}}]",
            True,
        ),
        ("rules: [{id: a.b, description: x, check: {sections: [A, {heading: B, words: 3}]}}]", True),
        ("rules: [{id: a.b, description: x, check: {parses: {format: json, block: 1}}}]", True),
        ("rules: [{id: a.b, description: x, check: {metric: {command: x, json: a.b, value: 3}, timeout: 5}}]", True),
        ("rules: [{id: a.b, description: x, check: {type: executable, command: x, expected: y}}]", True),
        ("rules: [{id: a.b, description: x, check: {files: {exist: x}}, fix: {command: y}}]", True),
        ("rules: [{id: a.b, description: x, check: {conains: x}}]", False),
        ("rules: [{id: a.b, description: x, check: {contains: x, zzz: 1}}]", False),
        ("rules: [{id: a.b, severity: bad}]", False),
        ("versoin: 1", False),
    ],
)
def test_the_schema_accepts_what_the_plugin_accepts(text: str, valid: bool) -> None:
    validator: Any = jsonschema.Draft202012Validator(build_json_schema())
    assert validator.is_valid(yaml.safe_load(text)) is valid


class Mine(BaseModel):
    low: int


def test_the_schema_has_the_kinds_of_third_parties_too() -> None:
    validator: Any = jsonschema.Draft202012Validator(build_json_schema({"mine": Mine}))
    text = "rules: [{id: a.b, description: x, check: {mine: {low: VALUE}}}]"
    assert validator.is_valid(yaml.safe_load(text.replace("VALUE", "1")))
    assert not validator.is_valid(yaml.safe_load(text.replace("VALUE", "x")))


def test_the_schema_is_a_valid_json_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(build_json_schema())


def test_messages_name_templates_by_name_and_files_by_path() -> None:
    assert name_source(str(TEMPLATES / "docs.rules.yaml")) == "template docs"
    assert name_source("docs/it.rules.yaml") == "docs/it.rules.yaml"
