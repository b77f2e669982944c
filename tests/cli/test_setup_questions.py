"""The questions of the set-up at a terminal, and the editor."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_loop.cli.document_draft import draft_answered_criteria
from pytest_loop.cli.draft_dialogue import edit_files
from pytest_loop.cli.setup_questions import SetupQuestions
from pytest_loop.cli.task import SetupAnswers, read_task_context
from pytest_loop.inference.task_phrases import parse_task
from pytest_loop.inference.task_types import TaskType
from tests.cli.typing_console import Answer, TypingConsole


def ask(tmp_path: Path, *answers: Answer, suggestion: str = "", ideal: str = "") -> tuple[SetupAnswers, list[str]]:
    """Return the answers of the set-up, and the lines that were printed."""
    console = TypingConsole(answers=list(answers))
    context = read_task_context(parse_task("make it better"), tmp_path, can_judge=True)
    questions = SetupQuestions(console, lambda answers: draft_answered_criteria(context, answers))
    return questions.ask(SetupAnswers(ideal=ideal), suggestion, 4), console.lines


def test_enter_takes_what_stands_in_brackets(tmp_path: Path) -> None:
    answers, lines = ask(tmp_path, "", "", "", "", "", "", suggestion="docs", ideal="one page")
    assert answers == SetupAnswers(task_type=TaskType("docs", ""), ideal="one page", thresholds={"A": 0.75, "B": 0.85})
    assert [line for line in lines if "/6" in line] == [
        "1/6 what is it [docs]: ",
        "2/6 the ideal result, in a sentence [one page]: ",
        "3/6 mandatory checks, one per line: a sentence, or a command in backticks; an empty line ends",
        "4/6 the scores that pass in phases A and B [0.75 0.85]: ",
        "5/6 iterations at most [4]: ",
        "6/6 what counts as a major issue? A major one blocks, others lower the score:",
    ]


def test_answers_are_asked_for_until_they_can_be_used(tmp_path: Path) -> None:
    kind, ideal = ("", "poem", "API"), ("A spec",)
    checks = ("it is kind", "must mention `x`", "")
    numbers = ("0.8", "1 2", "A=0.5 B=1", "0", "many", "201", "7")
    answers, lines = ask(tmp_path, *kind, *ideal, *checks, *numbers, "99", "x", "1, 9")
    assert answers.task_type == TaskType("api-spec", "")
    assert (answers.ideal, answers.mandatory) == ("A spec", ("it is kind", "must mention `x`"))
    assert (answers.thresholds, answers.max_iterations) == ({"A": 0.5, "B": 1.0}, 7)
    assert answers.severities == {
        "a.correctness.schemas": "warn",
        "a.completeness.examples": "warn",
        "b.completeness.auth": "warn",
        "a.task.must-mention-x": "warn",
    }
    assert [line for line in lines if line.startswith("  expected")] == [
        "  expected one of api-spec, code, config, docs, other, project, found ''",
        "  expected one of api-spec, code, config, docs, other, project, found 'poem'",
        "  expected two numbers from 0 to 1, such as 0.8 0.9, found '0.8'",
        "  expected two numbers from 0 to 1, such as 0.8 0.9, found '1 2'",
        "  expected a number from 1 to 200, found '0'",
        "  expected a number from 1 to 200, found 'many'",
        "  expected a number from 1 to 200, found '201'",
        "  expected numbers from 1 to 11, or none, found '99'",
        "  expected numbers from 1 to 11, or none, found 'x'",
    ]


def test_document_of_another_type_needs_a_check(tmp_path: Path) -> None:
    answers, lines = ask(tmp_path, "other", "", "", "it rhymes", "", "", "", "none")
    assert answers.task_type == TaskType("", "")
    assert answers.severities == {"a.task.it-rhymes": "warn"}
    assert "  expected at least one check, found none: nothing else judges this" in lines


def test_files_of_the_project_need_commands(tmp_path: Path) -> None:
    answers, lines = ask(tmp_path, "project", "fast", "", "`pytest -q`", "ruff check .", "")
    assert answers == SetupAnswers(ideal="fast", commands=("pytest -q", "ruff check ."))
    assert "4/6" not in "".join(lines)


def test_end_of_input_starts_nothing(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        ask(tmp_path, "docs", None)


# -- the editor


def test_editor_of_the_user_edits_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "it.rules.yaml"
    path.write_text("fail\n")
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", "sed -i s/fail/warn/")
    console = TypingConsole()
    edit_files([path], console)
    assert (path.read_text(), console.lines) == ("warn\n", [])


@pytest.mark.parametrize(
    ("editor", "problem"),
    [
        ("false", "`false` failed"),
        ("no-such-editor -w", "cannot start `no-such-editor` (No such file or directory)"),
        ("'", "cannot start `'` (No such file or directory)"),
        ("", "there is no editor here: EDITOR names one"),
    ],
)
def test_without_an_editor_the_user_edits_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, editor: str, problem: str
) -> None:
    monkeypatch.setenv("VISUAL", editor)
    monkeypatch.delenv("EDITOR", raising=False)
    if not editor:
        monkeypatch.setenv("PATH", str(tmp_path))
    console = TypingConsole(answers=[""])
    edit_files([tmp_path / "a", tmp_path / "b"], console)
    assert console.lines == [f"{problem}. Edit {tmp_path}/a and {tmp_path}/b elsewhere, then press Enter: "]
