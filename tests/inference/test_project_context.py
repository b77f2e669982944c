"""Files for agents become rules, must-not rules and notes for prompts."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_loop.core.text.lengths import estimate_tokens
from pytest_loop.inference.project_context import (
    ARCHITECTURE,
    DESCRIPTION,
    OVERRIDES,
    RULES,
    extract_context,
    render_notes,
)
from pytest_loop.inference.project_files import Project
from pytest_loop.inference.proposal import make_slug, render_rule_file
from pytest_loop.inference.shape_file import SHAPE_FILE, ShapeEntry, build_must_not_entry, parse_shape_file
from pytest_loop.rules.rule_files import load_rule_file

FENCED = """\
# Shape: login

Spec Score: 8/10
Fit Score: 41/50

## Criteria

```yaml
criteria:
  - "tests pass: all of them"
  - 'API returns 200'
  # a comment
  - UI renders
  - it is reviewed
  - p95 is small
```

| Criterion | Verification Type | Command/Method |
|---|---|---|
| tests pass | execution output | `npm test` |
| API returns 200 | measurement | `curl -w x` < 0.1 s |
| UI renders | observation | look at the page |
| it is reviewed | code review | |

```yaml
mustNot:
  - No new dependencies
  - `grep -rq eval src`
```
"""

BARE = """\
criteria:
- a works
- b works

mustNot: [store passwords, "never sleep"]

verification:
  a works: execution output, run `make a`
  "b works": assumption

## Next
- not a criterion
"""


def test_a_shape_file_is_read_from_fences_and_tables() -> None:
    context = parse_shape_file(FENCED)
    assert [entry.text for entry in context.criteria] == [
        "tests pass: all of them", "API returns 200", "UI renders", "it is reviewed", "p95 is small"
    ]  # fmt: skip
    assert context.criteria[0] == ShapeEntry("tests pass: all of them", 10)
    assert [entry.text for entry in context.must_not] == ["No new dependencies", "`grep -rq eval src`"]
    assert context.find_verification("tests pass: all of them") == ("execution output", "`npm test`")
    assert context.find_verification("p95 is small") == ("", "")
    assert context.clarity == 8


def test_a_shape_file_is_read_from_bare_lists() -> None:
    context = parse_shape_file(BARE)
    assert [entry.text for entry in context.criteria] == ["a works", "b works"]
    assert [entry.text for entry in context.must_not] == ["store passwords", "never sleep"]
    assert context.find_verification("a works") == ("execution output", "execution output, run `make a`")
    assert context.find_verification("b works")[0] == "assumption"
    assert parse_shape_file("") == parse_shape_file("# nothing\n\n| a |\n")


def test_a_shape_file_becomes_rules() -> None:
    rules = {rule.entry["id"]: rule for rule in extract_context(Project.from_texts({SHAPE_FILE: FENCED})).rules}
    checks = {name: rule.entry["check"] for name, rule in rules.items()}
    assert checks == {
        "a.shape.tests-pass-all-of-them": {"command": "npm test", "timeout": 120},
        "a.shape.api-returns-200": "API returns 200: `curl -w x` < 0.1 s",
        "a.shape.ui-renders": {"manual": "UI renders (look at the page)"},
        "a.shape.it-is-reviewed": "it is reviewed",
        "a.shape.p95-is-small": "p95 is small",
        "a.must-not.no-new-dependencies": "new dependencies",
        "a.must-not.grep-rq-eval-src": {"command": "grep -rq eval src", "timeout": 120},
    }
    assert rules["a.must-not.no-new-dependencies"].entry["must_not"] is True
    assert str(rules["a.shape.ui-renders"].sources[0]) == f"{SHAPE_FILE}:13"
    bare = {
        rule.entry["id"]: rule.entry["check"] for rule in extract_context(Project.from_texts({SHAPE_FILE: BARE})).rules
    }
    assert bare["a.shape.b-works"] == {"manual": "b works"}
    assert bare["a.shape.a-works"] == {"command": "make a", "timeout": 120}


@pytest.mark.parametrize(
    ("text", "checked"),
    [
        ("No eval", "eval"),
        ("**Never** use eval", "use eval"),
        ("Do not use eval", "use eval"),
        ("avoid globals", "globals"),
        ("must not sleep", "sleep"),
        ("Passwords must never be logged", "Passwords be logged"),
        ("Users can log in with no password", "Users can log in with no password"),
        ("Casino games are shown", "Casino games are shown"),
        ("Nothing but eval", "Nothing but eval"),
        ("a job that does not end", "a job that does not end"),
        ("`grep -rq eval src`", {"command": "grep -rq eval src", "timeout": 120}),
    ],
)
def test_a_must_not_rule_checks_the_statement_without_its_negation(text: str, checked: Any) -> None:
    assert build_must_not_entry("a.b", text) == {"id": "a.b", "description": text, "must_not": True, "check": checked}


MAPPINGS = """\
criteria:
  - first
  - id: total
    description: "the total is right"

    weight: 3
    verification: pytest tests/test_total.py
  - name: looks
    verification:
      type: observation
      method: look at the page
  - description: it is fast
    command: ./bench --quick
  - id: seen
    type: execution output
  - id: named
    description: it is named
  - method: nothing to say
  - "`grep -q sum shop.py`"
mustNot:
  - id: leak
    text: No secrets in logs
verification:
  - criterion: first
    method: `make first`
  - id: named
    command: make named
## Next
"""


def test_criteria_may_be_mappings() -> None:
    assert parse_shape_file(MAPPINGS).criteria[1] == ShapeEntry("the total is right", 3, "total")
    rules = {rule.entry["id"]: rule.entry for rule in extract_context(Project.from_texts({SHAPE_FILE: MAPPINGS})).rules}
    assert rules["a.shape.total"]["description"] == "the total is right"
    assert {name: entry["check"] for name, entry in rules.items()} == {
        "a.shape.first": {"command": "make first", "timeout": 120},
        "a.shape.total": {"command": "pytest tests/test_total.py", "timeout": 120},
        "a.shape.looks": {"manual": "looks (look at the page)"},
        "a.shape.it-is-fast": {"command": "./bench --quick", "timeout": 120},
        "a.shape.seen": "seen",
        "a.shape.named": {"command": "make named", "timeout": 120},
        "a.shape.grep-q-sum-shop-py": {"command": "grep -q sum shop.py", "timeout": 120},
        "a.must-not.leak": "secrets in logs",
    }


FACTORY = {
    DESCRIPTION: "A shop.",
    ARCHITECTURE: "Layers.",
    RULES: dedent("""\
        # Rules
        - Routes must use DTO classes
        - Prefer short names
          where they are clear
        - Null checks
        - Null checks
        - run `ruff check .`
        ## Never
        - **Never** use eval
        ## Examples
        - not a rule
        """),
    OVERRIDES: dedent("""\
        # Project Rules for loops
        > Based on: 3 patches. max_iterations: 6; threshold A: 0.85, phase B threshold = 0.95, threshold B: 1.5

        ## Rules

        ### Null checks
        **Source**: x.md
        **Rule**: Always check for null
        before access.

        ### Names
        **Rule**: Use `snake_case`.
        **Rule**: Twice.
        ```
        code
        ```
        ### Last
        **Rule**: The end"""),
}  # fmt: skip


def test_an_ai_factory_becomes_rules_and_overrides() -> None:
    context = extract_context(Project.from_texts(FACTORY))
    rules: dict[str, Any] = {rule.entry["id"]: rule.entry for rule in context.rules}
    assert {name: entry["check"] for name, entry in rules.items()} == {
        "b.project.routes-must-use-dto-classes": "Routes must use DTO classes",
        "b.project.prefer-short-names-where-they-are": "Prefer short names where they are clear",
        "b.project.null-checks": "Always check for null before access.",
        "b.project.null-checks-2": "Null checks",
        "b.project.run-ruff-check": {"command": "ruff check .", "timeout": 120},
        "b.project.never-use-eval": "use eval",
        "b.project.names": "Use `snake_case`.",
        "b.project.names-2": "Twice.",
        "b.project.last": "The end",
    }
    assert {name for name, entry in rules.items() if entry.get("severity") == "warn"} == {
        "b.project.prefer-short-names-where-they-are",
        "b.project.null-checks-2",
    }
    assert rules["b.project.never-use-eval"]["must_not"] is True
    assert (context.max_iterations, context.thresholds) == (6, {"A": 0.85, "B": 0.95})
    assert context.clarity is None


def test_statements_about_artifacts_judge_documents_only() -> None:
    text = dedent("""\
        # Rules for loops
        The artifact MUST include a **Changelog** section. Outputs must not mention "TODO".

        - [ ] Evaluation MUST check that all links resolve
        - The run state is never edited
        - Write short sentences
        ```
        The artifact MUST be ignored in code
        ```
        ### Title
        **Rule**: The document MUST have a title
        """)
    context = extract_context(Project.from_texts({OVERRIDES: text}))
    assert [rule.entry["check"] for rule in context.rules] == ["The document MUST have a title"]
    assert [(rule.id, rule.entry["check"], rule.sources[0].line) for rule in context.document_rules] == [
        ("a.project.include-a-changelog-section", "The artifact MUST include a Changelog section.", 2),
        ("a.project.outputs-must-not-mention-todo", 'Outputs must not mention "TODO".', 2),
        ("a.project.all-links-resolve", "all links resolve", 4),
    ]
    assert context.overriding_rules == (*context.rules, *context.document_rules)


def test_rules_of_a_context_load_from_a_rule_file(tmp_path: Path) -> None:
    context = extract_context(Project.from_texts({**FACTORY, SHAPE_FILE: FENCED}))
    (tmp_path / "it.rules.yaml").write_text(render_rule_file(context.rules, "context"), encoding="utf-8")
    loaded = load_rule_file(tmp_path / "it.rules.yaml", tmp_path)
    assert [entry.rule.id for entry in loaded.rules] == [rule.entry["id"] for rule in context.rules]
    assert context.clarity == 8


def test_notes_for_a_prompt_are_ordered_and_limited() -> None:
    context = extract_context(Project.from_texts({**FACTORY, SHAPE_FILE: BARE}))
    text = render_notes(context)
    places = [text.index(path) for path in (SHAPE_FILE, DESCRIPTION, ARCHITECTURE, RULES, OVERRIDES)]
    assert places == sorted(places)
    assert "they win over everything above" in text
    assert estimate_tokens(render_notes(extract_context(Project.from_texts({DESCRIPTION: "x" * 50_000})), 100)) <= 100
    assert render_notes(extract_context(Project.from_texts({}))) == ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("thresholds: A=0.7, B=0.95", {"A": 0.7, "B": 0.95}),
        ("Thresholds:\n- A: 0.7\n- B: 0.95", {"A": 0.7, "B": 0.95}),
        ('"thresholds": {"A": 0.7, "B": 1}', {"A": 0.7, "B": 1}),
        ("threshold for A: 0.7 and phase B: 0.95", {"A": 0.7, "B": 0.95}),
        ("phase A threshold: 0.6", {"A": 0.6}),
        ("a threshold is a 0.5 of something", {}),
        ("thresholds: A=1.7", {}),
    ],
)
def test_thresholds_are_read_from_a_list(text: str, expected: dict[str, float]) -> None:
    assert extract_context(Project.from_texts({OVERRIDES: text})).thresholds == expected


def test_a_project_without_context_files_has_no_context() -> None:
    context = extract_context(Project.from_texts({"README.md": "# x"}))
    assert (context.rules, context.notes, context.max_iterations, context.thresholds) == ((), (), None, {})


@pytest.mark.parametrize(("text", "expected"), [("A b, C!", "a-b-c"), ("!!!", "rule"), ("x" * 90, "x" * 40)])
def test_a_slug_is_short_and_never_empty(text: str, expected: str) -> None:
    assert make_slug(text) == expected


@settings(deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [
                "criteria:",
                "mustNot:",
                "verification:",
                "\n",
                "- a",
                "- id: a",
                "  method: b",
                "  a: b",
                "| a | assumption |",
                "```",
                "**Rule**: x",
                "# h",
                " ",
            ]
        )
    ).map("".join)
)
def test_any_text_can_be_a_shape_or_an_override(text: str) -> None:
    context = extract_context(Project.from_texts({SHAPE_FILE: text, OVERRIDES: text, RULES: text}))
    ids = [rule.entry["id"] for rule in context.rules]
    assert len(ids) == len(set(ids))
