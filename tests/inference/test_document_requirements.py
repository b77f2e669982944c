"""Words about a document become checks."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_loop.inference.document_criteria import DocumentTask, InheritedRule, draft_criteria
from pytest_loop.inference.document_requirements import find_statement_check, stem_word
from pytest_loop.inference.proposal import ProposedRule
from pytest_loop.rules.checks.registry import build_check

COURSES = r"(?#a path for courses)(?:^|[\s{,\"'])/[^\s\"':]*cours[^\s\"':]*[\"']?\s*:"
VERSION = {"json_schema": {"required": ["openapi"], "properties": {"openapi": {"pattern": r"^3\.1"}}}}
NO_EMPTY = {"python": "pytest_loop.rules.templates.docs:check_sections"}


def draft(template: str, text: str, **fields: Any) -> dict[str, Any]:
    """Return the checks of a drafted document by the ids of its rules; every check must be usable."""
    criteria = draft_criteria(template, "", DocumentTask(text, **fields), can_judge=True)
    for rule in criteria.rules:
        build_check(rule.entry["check"])
    return {rule.id: rule.entry["check"] for rule in criteria.rules}


@pytest.mark.parametrize(
    ("template", "task", "checks"),
    [
        (
            "api-spec",
            "OpenAPI 3.1 spec + DDD notes + JSON examples",
            {
                "a.task.version": VERSION,
                "a.task.ddd-notes": "The document has DDD notes.",
            },
        ),
        (
            "api-spec",
            "Write an OpenAPI 3.1 spec for courses",
            {"a.task.version": VERSION, "a.task.entities": {"matches": [COURSES], "ignore_case": True}},
        ),
        (
            "api-spec",
            "an API spec with /orders, and GET, DELETE /orders/{id}.",
            {
                "a.task.endpoints": {
                    "json_schema": {
                        "type": "object",
                        "required": ["paths"],
                        "properties": {
                            "paths": {
                                "type": "object",
                                "required": ["/orders", "/orders/{id}"],
                                "properties": {"/orders": {}, "/orders/{id}": {"required": ["get", "delete"]}},
                            }
                        },
                    }
                }
            },
        ),
        (
            "api-spec",
            "Write an API spec of the billing gateway, see https://example.org/docs/api",
            {
                "a.task.subject": {
                    "matches": r"(?#a word about the billing gateway)\b(?:billing|gateway)",
                    "ignore_case": True,
                }
            },
        ),
        ("api-spec", "Write an API spec with examples of errors", {}),
        (
            "docs",
            "Write docs for the backup tool (and its daemon)",
            {"a.task.subject": {"matches": r"(?#a word about the backup tool)\b(?:backup)", "ignore_case": True}},
        ),
        (
            "docs",
            "Document the shops",
            {"a.task.subject": {"matches": r"(?#a word about the shops)\b(?:shop)", "ignore_case": True}},
        ),
        ("docs", "Write a README", {}),
        ("docs", "Write a guide for administrators", {}),
        ("docs", "Write a changelog", {"a.completeness.sections": NO_EMPTY}),
        (
            "docs",
            "Write a README with sections Installation, Usage and FAQ in at most 300 words",
            {
                "a.completeness.sections": [{"sections": ["Installation", "Usage", "FAQ"]}, NO_EMPTY],
                "a.task.size": {"size": {"words": {"max": 300}}},
            },
        ),
        (
            "docs",
            'Write a guide with Installation and Getting started, 100 lines or more, for "Acme Shop"',
            {
                "a.completeness.sections": [{"sections": ["Installation", "Getting started"]}, NO_EMPTY],
                "a.task.names": {"contains": ["Acme Shop"]},
                "a.task.size": {"size": {"lines": {"min": 100}}},
            },
        ),
        (
            "docs",
            'Write a guide about --dry-run and RETRY_LIMIT with a "Next steps" section',
            {
                "a.completeness.sections": [{"sections": ["Next steps"]}, NO_EMPTY],
                "a.task.names": {"contains": ["--dry-run", "RETRY_LIMIT"]},
            },
        ),
        (
            "config",
            "write an nginx config that listens on port 8080 and proxies to http://app:3000",
            {
                "a.task.names": {"contains": ["http://app:3000"]},
                "a.task.ports": {"matches": [r"(?#port 8080)\b8080\b"]},
            },
        ),
        (
            "config",
            "write a config with the keys server and database, in under 50 lines",
            {
                "a.task.keys": {
                    "matches": [
                        r"""(?#the key server)^[ \t'-]*\"?server\b""",
                        r"""(?#the key database)^[ \t'-]*\"?database\b""",
                    ]
                },
                "a.task.size": {"size": {"lines": {"max": 49}}},
            },
        ),
        ("code", "write a function `slugify`", {"a.task.names": {"contains": ["slugify"]}}),
        (
            "",
            "Write a poem about cats",
            {"a.task.subject": {"matches": r"(?#a word about cats)\b(?:cat)", "ignore_case": True}},
        ),
    ],
)
def test_names_in_a_task_become_checks(template: str, task: str, checks: dict[str, Any]) -> None:
    assert draft(template, task) == checks


@pytest.mark.parametrize(
    ("statement", "check"),
    [
        ("artifact MUST include a Changelog section", {"sections": ["Changelog"]}),
        ('Artifact must contain sections "Risks" and "Open questions".', {"sections": ["Risks", "Open questions"]}),
        ("It must not have a Secrets section", {"not": {"sections": ["Secrets"]}}),
        ("Every artifact MUST have a short section", None),
        ('The artifact MUST NOT mention "TODO" and "FIXME"', {"absent": ["TODO", "FIXME"]}),
        ('Never use the word "simply"', {"absent": ["simply"]}),
        ("MUST include \"a\", 'b' and `c`", {"contains": ["a", "b", "c"]}),
        ("The document must be at most 300 words", {"size": {"words": {"max": 300}}}),
        ("The artifact must not exceed 1,000 words", {"size": {"words": {"max": 1000}}}),
        ("It must not have fewer than 10 lines", {"size": {"lines": {"min": 10}}}),
        ("No more than 200 lines", {"size": {"lines": {"max": 200}}}),
        ("The output MUST be valid JSON", {"parses": "json"}),
        ("all links resolve", {"links": True}),
        ("no broken links", {"links": True}),
        ("MUST mention `x`, in at least 5 words", [{"size": {"words": {"min": 5}}}, {"contains": ["x"]}]),
        ("run `ruff check .`", {"command": "ruff check .", "timeout": 120}),
        ("Prices are whole cents", None),
    ],
)
def test_sentence_becomes_a_check_if_a_machine_can_decide_it(statement: str, check: Any) -> None:
    assert find_statement_check(statement) == check
    if check is not None:
        build_check(check)


def test_titles_stand_anywhere_in_a_file_without_headings() -> None:
    found = find_statement_check("MUST include a Changelog section", is_markdown=False)
    assert found == {"contains": ["Changelog"], "ignore_case": True}
    found = find_statement_check("must not have a Secrets section", is_markdown=False)
    assert found == {"absent": ["Secrets"], "ignore_case": True}
    assert find_statement_check("at most 3 lines", is_markdown=False) == {"size": {"lines": {"max": 3}}}


def test_stem_is_shared_with_the_singular() -> None:
    assert [stem_word(word) for word in ("courses", "entries", "boxes", "classes", "glass", "gas")] == [
        "cours",
        "entr",
        "box",
        "class",
        "glass",
        "gas",
    ]


# -- drafts


def test_ideal_result_and_mandatory_checks_become_rules() -> None:
    ideal, mandatory = "A page of at most 200 words that\nconvinces", ("`true` passes", "it is kind", "it is kind")
    task = DocumentTask("Write a README", ideal, mandatory)
    criteria = draft_criteria("docs", "README", task, can_judge=True)
    assert [(rule.id, rule.entry["check"], rule.origin) for rule in criteria.rules] == [
        ("a.task.size", {"size": {"words": {"max": 200}}}, "`at most 200 words` in the ideal result"),
        ("a.task.true-passes", {"command": "true", "timeout": 120}, "mandatory check"),
        ("a.task.it-is-kind", "it is kind", "mandatory check"),
        ("a.task.it-is-kind-2", "it is kind", "mandatory check"),
        ("b.task.ideal", "A page of at most 200 words that convinces", "the ideal result"),
    ]
    assert criteria.rules[-1].entry["severity"] == "warn"
    assert criteria.unjudged == ()


def test_words_of_an_addition_are_looked_for_without_a_judge() -> None:
    criteria = draft_criteria("docs", "", DocumentTask("Write docs + a glossary of terms"), can_judge=False)
    assert criteria.rules[-1].entry == {
        "id": "a.task.a-glossary-of-terms",
        "description": "It has a glossary of terms",
        "severity": "warn",
        "check": {"matches": r"(?#a glossary of terms)\b(?:glossary|terms)\b", "ignore_case": True},
    }


def test_sentences_without_a_judge_are_confirmed_by_a_person_or_left_to_prompts() -> None:
    statement = ProposedRule({"id": "a.project.tone", "description": "kind", "check": "It MUST be kind"})
    task = DocumentTask("Write a README", "A page that convinces", ("it is kind",), (statement,))
    criteria = draft_criteria("docs", "README", task, can_judge=False)
    assert {rule.id: rule.entry["check"] for rule in criteria.rules} == {"a.task.it-is-kind": {"manual": "it is kind"}}
    assert [rule.id for rule in criteria.unjudged] == ["a.project.tone", "b.task.ideal"]


def test_statements_of_the_project_become_checks() -> None:
    statement = ProposedRule({"id": "a.project.x", "description": "x", "check": "MUST include a Changelog section"})
    concrete = ProposedRule({"id": "a.project.y", "description": "y", "check": {"contains": "y"}})
    assert draft("docs", "Write a README", statements=(statement, concrete)) == {
        "a.project.x": {"sections": ["Changelog"]},
        "a.project.y": {"contains": "y"},
    }


def test_long_brief_demands_nothing_of_its_later_words() -> None:
    assert draft("docs", "Write a README. " + "x " * 300 + "It has at most 3 words and `a`.") == {}


def test_rule_file_extends_the_template_and_lists_its_severities() -> None:
    criteria = draft_criteria("docs", "docs", DocumentTask("Write docs for backups"), can_judge=False)
    inherited = [
        InheritedRule("a.completeness.sections", "fail", "It has sections"),
        InheritedRule("b.quality.structure", "warn", "Headings"),
    ]
    assert criteria.render("it's.md", inherited).splitlines()[2:] == [
        "criteria: docs",
        "extends: docs",
        "artifact: 'it''s.md'",
        "rules:",
        "  - {id: a.completeness.sections, severity: fail}  # It has sections",
        "  - {id: b.quality.structure, severity: warn}  # Headings",
        "  # `backups` in the task",
        "  - id: a.task.subject",
        "    description: It is about backups",
        "    check:",
        r"      matches: (?#a word about backups)\b(?:backup)",
        "      ignore_case: true",
    ]
