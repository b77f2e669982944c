"""The document of a run: where it is, and how it is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_loop.cli.document import choose_document
from pytest_loop.core.model.rules import TESTS_SOURCE, Criteria, Rule, SessionPlan
from pytest_loop.settings.options import JudgingSettings, WorkspaceSettings
from pytest_loop.settings.settings import make_default_settings

TEMPLATE = "/package/templates/api-spec.rules.yaml"
ROWS: list[tuple[str, dict[str, str], str, str, str | None]] = [
    # --loop-artifact, documents of the rule files, --loop-template, task, result
    ("mine.md", {"it.rules.yaml": "theirs.md"}, "", "Write a guide", "mine.md"),
    ("", {"it.rules.yaml": "docs/theirs.md"}, "", "Write README.md", "docs/theirs.md"),
    ("", {"it.rules.yaml": "theirs.md", "b.rules.yaml": "theirs.md"}, "", "Write a guide", "theirs.md"),
    ("", {"it.rules.yaml": "theirs.yaml", TEMPLATE: ""}, "api-spec", "Write a spec", "theirs.yaml"),
    ("", {TEMPLATE: ""}, "api-spec", "Write a spec", ".loop/run/openapi.yaml"),
    ("", {TEMPLATE: ""}, "api-spec", "Write docs/api.json", "docs/api.json"),
    ("", {"it.rules.yaml": ""}, "", "Write a guide", ".loop/run/artifact.md"),
    ("", {"it.rules.yaml": ""}, "", "Improve docs/guide.md", "docs/guide.md"),
    ("", {"it.rules.yaml": ""}, "", "Write /etc/../../guide.md", ".loop/run/artifact.md"),
    ("", {"it.rules.yaml": "a.md", "b.rules.yaml": "b.md"}, "", "Write both", None),
    ("", {}, "", "Fix the build", None),
    ("", {".loop/run/inferred.rules.yaml": ""}, "", "Fix the build", None),
]


def choose(
    root: Path, artifact: str, documents: dict[str, str], template: str, task: str, **options: Any
) -> str | None:
    settings = make_default_settings(
        root,
        judging=JudgingSettings(template=template),
        workspace=WorkspaceSettings(artifact=artifact, **options),
        folder=root,
    )
    path = choose_document(settings, SessionPlan(documents=documents), task, root / ".loop/run")
    return path.relative_to(root).as_posix() if path else None


@pytest.mark.parametrize(("artifact", "documents", "template", "task", "chosen"), ROWS)
def test_first_source_that_names_a_document_decides(
    tmp_path: Path, artifact: str, documents: dict[str, str], template: str, task: str, chosen: str | None
) -> None:
    assert choose(tmp_path, artifact, documents, template, task) == chosen


def test_workspace_option_overrides_every_document(tmp_path: Path) -> None:
    assert choose(tmp_path, "mine.md", {"it.rules.yaml": "theirs.md"}, "", "Write", workspace=True) is None


def test_document_that_a_template_cannot_read_is_refused(tmp_path: Path) -> None:
    expected = "--loop-template api-spec: expected a document that it can read, such as openapi.yaml, found notes.md"
    with pytest.raises(pytest.UsageError, match=expected):
        choose(tmp_path, "notes.md", {TEMPLATE: ""}, "api-spec", "Write a spec")


def test_rules_for_several_documents_must_all_name_theirs(tmp_path: Path) -> None:
    documents = {"a.rules.yaml": "a.md", "b.rules.yaml": "b.md", "c.rules.yaml": ""}
    expected = r"several documents \(a.md, b.md\), and c.rules.yaml does not say which: add `artifact: PATH` there"
    with pytest.raises(pytest.UsageError, match=expected):
        choose(tmp_path, "", documents, "", "Write them")


@pytest.mark.parametrize(
    ("task", "artifact", "expected"),
    [
        ("fix until green", "", None),
        ("fix the failing tests", "", None),
        ("Write the README", "", "README.md"),
        ("fix until green", "README.md", "README.md"),
    ],
)
def test_rule_file_beside_tests_does_not_make_a_document_of_fix_until_green(
    tmp_path: Path, task: str, artifact: str, expected: str | None
) -> None:
    tests = Criteria(name="tests", source=TESTS_SOURCE, rules=(Rule(id="test_it.py::test", description="it"),))
    plan = SessionPlan(documents={"it.rules.yaml": "README.md"}, criteria=(tests,))
    settings = make_default_settings(tmp_path, workspace=WorkspaceSettings(artifact=artifact))
    path = choose_document(settings, plan, task, tmp_path / ".loop/run")
    assert (path.name if path else None) == expected
