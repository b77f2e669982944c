"""Drafts made with a user: set-up, confirmations, edits and other limits, inside this process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_loop.cli.draft import RunDraft
from pytest_loop.cli.draft_dialogue import DraftDialogue
from pytest_loop.cli.readiness import UnclearError
from pytest_loop.cli.task import read_task_context
from pytest_loop.core.model.vocabulary import Target
from pytest_loop.inference.task_phrases import parse_task
from pytest_loop.run.sessions import SessionFactory
from pytest_loop.settings.options import AgentSettings, JudgingSettings, StartSettings
from pytest_loop.settings.settings import make_default_settings
from pytest_loop.store.project_runs import Store
from tests.cli.typing_console import Answer, TypingConsole

CRITERIA = "confirm these success criteria? (e edits them) [y/N] "
LIMIT = "confirm max iterations = 4? (or another number) [y/N] "


@contextmanager
def open_dialogue(
    root: Path, task: str, *answers: Answer, rules: tuple[str, ...] = (), **start: Any
) -> Iterator[DraftDialogue]:
    """Open a dialogue with a user who gives these answers."""
    console = TypingConsole(answers=list(answers))
    settings = make_default_settings(
        root, judging=JudgingSettings(session="cold", rules=rules), start=StartSettings(**start)
    )
    sessions = SessionFactory(settings, console.print_line)
    context = read_task_context(parse_task(task), root, can_judge=False)
    try:
        yield DraftDialogue(settings, console, Store(root).get_run("run"), sessions, context)
    finally:
        sessions.close()


def revise(dialogue: DraftDialogue, draft: RunDraft) -> RunDraft | None:
    return dialogue.revise(draft, "confirm these success criteria?", draft.build_state("run").max_iterations)


def get_lines(dialogue: DraftDialogue) -> list[str]:
    assert isinstance(dialogue.console, TypingConsole)
    return dialogue.console.lines


def test_criteria_and_limit_are_confirmed_one_by_one(tmp_path: Path) -> None:
    with open_dialogue(tmp_path, "Write a README", "y", "Yes") as dialogue:
        draft = dialogue.make_draft()
        assert dialogue.can_revise(draft)
        assert draft.target is Target.ARTIFACT
        assert revise(dialogue, draft) is None
        assert get_lines(dialogue) == [CRITERIA, LIMIT]


@pytest.mark.parametrize(
    "answers",
    [
        ("y", "n"),
        *(
            pytest.param(answers, marks=pytest.mark.thorough)
            for answers in [("n",), ("",), ("y", ""), (None,), ("y", None)]
        ),
    ],
)
def test_declining_either_starts_nothing(tmp_path: Path, answers: tuple[Answer, ...]) -> None:
    with open_dialogue(tmp_path, "Write a README", *answers) as dialogue, pytest.raises(KeyboardInterrupt):
        revise(dialogue, dialogue.make_draft())


@pytest.mark.thorough
def test_another_limit_asks_for_both_again(tmp_path: Path) -> None:
    with open_dialogue(tmp_path, "Write a README", "y", "0", "7", "y", "y") as dialogue:
        changed = revise(dialogue, dialogue.make_draft())
        assert changed is not None
        assert changed.build_state("run").max_iterations == 7
        assert revise(dialogue, changed) is None
        assert get_lines(dialogue) == [
            CRITERIA,
            LIMIT,
            "  expected a number from 1 to 200, found '0'",
            LIMIT,
            CRITERIA,
            LIMIT.replace("4", "7"),
        ]


def test_edited_rules_are_drafted_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Editing changes severities, thresholds and the document; a mistake is shown, and edited away."""
    script = tmp_path / "edit.sh"
    script.write_text(
        'if grep -q mistake "$1"; then sed -i /mistake/d "$1"; else\n'
        'sed -i -e "s/id: a.quality.clarity, severity: warn/id: a.quality.clarity, severity: fail/" \\\n'
        '-e "s/0.75/0.5/" -e "s|^artifact:.*|artifact: docs/README.md|" "$1"; echo mistake: 1 >> "$1"; fi\n'
    )
    monkeypatch.setenv("VISUAL", f"sh {script}")
    with open_dialogue(tmp_path, "Write a README", "e", "", "y", "y") as dialogue:
        changed = revise(dialogue, dialogue.make_draft())
        assert changed is not None
        state = changed.build_state("run")
        assert state.criteria.by_id["a.quality.clarity"].severity.value == "fail"
        assert float(state.criteria.phase["A"].threshold) == 0.5  # type: ignore[index]
        assert state.setup.artifact == "docs/README.md"
        assert revise(dialogue, changed) is None
        lines = get_lines(dialogue)
        assert lines[1] == "the rules cannot be collected:"
        assert "mistake" in lines[2]
        assert lines[-3:] == ["edit again? [Y/n] ", CRITERIA, LIMIT]


def test_rule_file_of_the_project_is_edited_where_it_is(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VISUAL", "sed -i 's/# Guide/# Guides/'")
    with open_dialogue(project, "Write a guide", "edit", rules=("guide.rules.yaml",)) as dialogue:
        assert revise(dialogue, dialogue.make_draft()) is not None
        assert "# Guides" in (project / "guide.rules.yaml").read_text()


@pytest.mark.thorough
def test_giving_up_an_edit_starts_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VISUAL", "sh -c 'echo mistake: 1 >> $0'")
    with open_dialogue(tmp_path, "Write a README", "e", "n") as dialogue, pytest.raises(KeyboardInterrupt):
        revise(dialogue, dialogue.make_draft())


def test_task_that_cannot_be_measured_leads_to_the_set_up(tmp_path: Path) -> None:
    with open_dialogue(tmp_path, "make it better", "docs", "one page", "", "", "3", "") as dialogue:
        state = dialogue.make_draft().build_state("run")
    assert (state.task.ideal_result, state.max_iterations) == ("one page", 3)
    assert state.setup.artifact == ".loop/run/artifact.md"
    assert len(state.criteria.rules) == 8


def test_program_that_has_to_judge_is_named_before_the_start(tmp_path: Path) -> None:
    note = "note: the agent also judges 2 rules, and has to answer with JSON: --loop-judge names another one"
    with open_dialogue(tmp_path, "Write docs for the backup tool") as dialogue:
        dialogue.context = replace(dialogue.context, can_judge=True)
        assert note not in dialogue.make_draft().render_notes()
        dialogue.settings = replace(dialogue.settings, agents=AgentSettings(agent=("command:sh write.sh",)))
        assert note in dialogue.make_draft().render_notes()


@pytest.mark.parametrize(("answers", "start"), [(("",), {}), ((), {"tests_first": True})])
def test_project_without_tests_begins_with_them(
    tmp_path: Path, answers: tuple[str, ...], start: dict[str, Any]
) -> None:
    (tmp_path / "shop.py").touch()
    with open_dialogue(tmp_path, "fix shop.py", *answers, **start) as dialogue:
        assert dialogue.make_draft().settings.start.tests_first
        asked = ["Which command passes when it is done? [the agent writes failing tests first] "]
        assert get_lines(dialogue)[-1:] == (asked if answers else [])


def test_draft_that_turned_out_to_be_unclear_leads_to_the_set_up_once(tmp_path: Path) -> None:
    error = UnclearError("this is not clear enough to start")
    with open_dialogue(tmp_path, "Write a spec", "docs", "", "", "", "", "") as dialogue:
        assert dialogue.make_another_draft(error).target is Target.ARTIFACT
        assert get_lines(dialogue)[0] == "this is not clear enough to start"
        with pytest.raises(UnclearError):
            dialogue.make_another_draft(error)


@pytest.mark.thorough
def test_commands_of_the_set_up_judge_the_project(tmp_path: Path) -> None:
    with open_dialogue(tmp_path, "make it better", "project", "", "true", "") as dialogue:
        draft = dialogue.make_draft()
        assert not dialogue.can_revise(draft)
    assert draft.target is Target.WORKSPACE
    assert [rule.id for rule in draft.build_state("run").criteria.rules] == ["a.tests.pass"]


def test_user_who_wants_no_questions_is_told_of_the_templates(tmp_path: Path) -> None:
    with open_dialogue(tmp_path, "make it better", yes=True) as dialogue:
        with pytest.raises(UnclearError, match="name its type: --loop-template api-spec, code, config or docs"):
            dialogue.make_draft()
        assert get_lines(dialogue) == []
