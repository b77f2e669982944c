"""The draft of a document: its type, its rule file, and its path."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_loop.cli.document_draft import draft_document, draft_document_criteria, find_named_type, find_task_type
from pytest_loop.cli.readiness import UnclearError
from pytest_loop.cli.task import SetupAnswers, TaskContext, read_task_context
from pytest_loop.inference.task_phrases import parse_task
from pytest_loop.inference.task_types import TaskType
from pytest_loop.rules.rule_files import LoadedRuleFile, load_rule_file
from pytest_loop.run.console import Console
from pytest_loop.settings.options import JudgingSettings, WorkspaceSettings
from pytest_loop.settings.settings import Settings, make_default_settings
from tests.cli.typing_console import TypingConsole


def make_settings(root: Path, template: str = "", **workspace: Any) -> Settings:
    return make_default_settings(
        root, judging=JudgingSettings(template=template), workspace=WorkspaceSettings(**workspace)
    )


def read_context(root: Path, task: str, **answers: Any) -> TaskContext:
    context = read_task_context(parse_task(task), root, can_judge=False)
    return replace(context, answers=SetupAnswers(**answers))


def load_draft(root: Path, task: str, template: str, **answers: Any) -> tuple[LoadedRuleFile, str]:
    """Return the rule file of a drafted document as sessions load it, and the path of the document."""
    task_type, folder = TaskType(template, ""), root / ".loop/run"
    context, path = draft_document(make_settings(root), read_context(root, task, **answers), task_type, folder)
    file = root / "it.rules.yaml"
    file.write_text(context.rule_file)
    return load_rule_file(file, root), path.relative_to(root).as_posix()


@pytest.mark.parametrize(
    ("task", "template", "path", "rules", "thresholds"),
    [
        ("OpenAPI 3.1 spec + DDD notes", "api-spec", ".loop/run/openapi.yaml", 10, (0.8, 0.9)),
        ("Write docs for the backup tool", "docs", ".loop/run/artifact.md", 9, (0.75, 0.85)),
        ("Write a README with sections Usage and FAQ", "docs", ".loop/run/README.md", 8, (0.75, 0.85)),
        ("write an nginx config", "config", ".loop/run/nginx.conf", 8, (0.8, 0.9)),
        ("Write docs/guide.md about backups", "docs", "docs/guide.md", 9, (0.75, 0.85)),
        ("Write a poem about cats", "", ".loop/run/artifact.md", 1, (0.8, 0.9)),
    ],
)
def test_drafted_rule_file_is_an_ordinary_one(
    tmp_path: Path, task: str, template: str, path: str, rules: int, thresholds: tuple[float, float]
) -> None:
    loaded, document = load_draft(tmp_path, task, template)
    assert document == path
    assert len(loaded.rules) == rules
    assert loaded.declared_artifact == tmp_path / path
    assert tuple(map(float, loaded.criteria.thresholds.values())) == thresholds


def test_answers_change_severities_thresholds_and_rules(tmp_path: Path) -> None:
    loaded, _ = load_draft(
        tmp_path,
        "Write docs for backups",
        "docs",
        mandatory=("must mention `restore`",),
        thresholds={"B": 1.0},
        severities={"a.quality.clarity": "fail", "a.task.subject": "warn"},
    )
    severities = {entry.rule.id: entry.rule.severity.value for entry in loaded.rules}
    assert severities["a.quality.clarity"] == severities["a.task.must-mention-restore"] == "fail"
    assert severities["a.task.subject"] == "warn"
    assert tuple(map(float, loaded.criteria.thresholds.values())) == (0.75, 1.0)


def test_edited_rule_file_is_used_as_it_is(tmp_path: Path) -> None:
    text = "artifact: x.md\nrules: [{id: a.x, description: x, check: {contains: x}}]\n"
    loaded, _ = load_draft(tmp_path, "Write docs", "docs", rule_file=text)
    assert [entry.rule.id for entry in loaded.rules] == ["a.x"]


def test_existing_document_is_changed_in_place(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("# x\n")
    assert load_draft(tmp_path, "extend the README", "docs")[1] == "README.md"
    assert load_draft(tmp_path, "write a README", "docs")[1] == ".loop/run/README.md"


def test_skill_context_judges_beside_a_template(tmp_path: Path) -> None:
    context = tmp_path / ".ai-factory/skill-context/aif-loop"
    context.mkdir(parents=True)
    (context / "SKILL.md").write_text("- artifact MUST include a Changelog section\n\nthresholds: A 0.7, B 0.8\n")
    loaded, _ = load_draft(tmp_path, "Write a README", "docs")
    rule = next(entry for entry in loaded.rules if entry.rule.id.startswith("a.project."))
    assert (rule.raw, rule.rule.severity.value) == ({"sections": ["Changelog"]}, "fail")
    assert tuple(map(float, loaded.criteria.thresholds.values())) == (0.7, 0.8)


@pytest.mark.parametrize(
    ("task", "files", "workspace", "template"),
    [
        ("Write a README", {}, {}, "docs"),
        ("Write a README", {}, {"workspace": True}, None),
        ("Write a README until `make docs` passes", {}, {}, None),
        ("write a Python script that renames photos", {}, {}, "code"),
        ("write a Python script that renames photos", {"tests/test_a.py": "def test_a(): pass\n"}, {}, None),
        ("document the photos", {"pyproject.toml": "[tool.interrogate]\n", "a.py": ""}, {}, None),
        ("document the photos", {}, {}, "docs"),
        ("fix the failing tests", {}, {}, None),
    ],
)
def test_type_comes_from_the_words_of_a_task_that_nothing_else_measures(
    tmp_path: Path, task: str, files: dict[str, str], workspace: dict[str, Any], template: str | None
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    found = find_task_type(make_settings(tmp_path, **workspace), read_context(tmp_path, task))
    assert (found.template if found else None) == template


def find_named(root: Path, template: str = "", *, is_terminal: bool = False, **fields: Any) -> TaskType | None:
    """Return the type that the user named for a vague task."""
    context = read_context(
        root, "make it better", **{key: fields.pop(key) for key in ("ideal", "task_type") if key in fields}
    )
    console = TypingConsole() if is_terminal else Console(io.StringIO())
    return find_named_type(make_settings(root, template, **fields), context, console)


def test_type_that_the_user_named_needs_no_words(tmp_path: Path) -> None:
    exact = TaskType("config", is_exact=True)
    assert find_named(tmp_path) is None
    assert find_named(tmp_path, "config") is None  # the template alone is enough
    assert find_named(tmp_path, "config", is_terminal=True) == exact
    assert find_named(tmp_path, "config", ideal="short") == exact
    assert find_named(tmp_path, "config", ideal="short", workspace=True) is None
    assert find_named(tmp_path, task_type=TaskType("docs")) == TaskType("docs")
    with pytest.raises(pytest.UsageError, match="expected one of api-spec, code, config, docs, found 'poetry'"):
        find_named(tmp_path, "poetry")


def test_words_of_the_task_add_nothing_to_a_template_that_was_named(tmp_path: Path) -> None:
    context = read_context(tmp_path, "OpenAPI 3.1 spec for courses + DDD notes", ideal="at most 50 lines")
    criteria = draft_document_criteria(context, TaskType("api-spec", is_exact=True))
    assert [rule.id for rule in criteria.rules] == ["a.task.size"]


def test_several_documents_are_too_many_for_a_run(tmp_path: Path) -> None:
    context = read_context(tmp_path, "Write a README and an nginx config")
    expected = r"this asks for several documents \(`README`, `nginx config`\), and a run writes one"
    with pytest.raises(UnclearError, match=expected):
        find_task_type(make_settings(tmp_path), context)
