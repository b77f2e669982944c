"""The answer to a stopped run on the command line and at a terminal."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pytest_loop.cli.resume import ask_for_answer, make_answer, make_reopening_event, resume_run
from pytest_loop.core.machine.run_machine import RUN_MACHINE
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.model.vocabulary import Kind
from pytest_loop.errors import StateError
from pytest_loop.run.console import Console
from pytest_loop.settings.options import CommandSettings, StartSettings, WorkspaceSettings
from pytest_loop.settings.settings import Settings, make_default_settings
from pytest_loop.store.project_runs import Store
from tests.cli.conftest import Command, MakeRun
from tests.core.scripted_run import ScriptedRun, make_rule


@dataclass(frozen=True)
class AnsweringConsole(Console):
    """A terminal at which these lines are typed."""

    lines: tuple[str | None, ...] = ()
    questions: list[str] = field(default_factory=list)

    @property
    def can_ask(self) -> bool:
        return True

    def read_answer(self, question: str, *_: Any) -> str | None:
        self.questions.append(question)
        return self.lines[len(self.questions) - 1]


def make_settings(root: Path, answer: str = "", **start: Any) -> Settings:
    return make_default_settings(
        root, start=StartSettings(answer=answer, **start), commands=CommandSettings(resume="guide")
    )


def fail_comparison(name: str = "tests/test_x.py::test_it", key: str = "tests::tests/test_x.py::test_it") -> RunState:
    run = ScriptedRun(make_rule(name, key=key), max_iterations=1).advance_to(Kind.EVALUATION_DONE)
    message = "assert '1' == 1" if "::" in name else "Expected: 1\nReceived: '1'"
    state: RunState = run.record(Kind.EVALUATION_DONE, **run.build_evaluation({name: message})).finish().state
    return state


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("look at the schema", {"text": "look at the schema"}),
        (" 1 ", {"text": "1 is right: change the code"}),
        ("2", {"text": "'1' is right: change the expectation in tests/test_x.py", "unseal": ["/tests/test_x.py"]}),
    ],
)
def test_answer_is_a_text_or_the_number_of_an_alternative(tmp_path: Path, text: str, expected: dict[str, Any]) -> None:
    payload = make_answer(fail_comparison(), make_settings(tmp_path, text), {}).dump()
    assert {name: payload[name] for name in ("text", "unseal") if name in payload} == expected
    assert payload["max_iterations"] == 2
    assert payload["question"].endswith("which of the two is right?")


def test_expectation_without_a_known_file_needs_its_name(tmp_path: Path) -> None:
    state = fail_comparison("a.npm.test", "")
    with pytest.raises(StateError, match="name the file with the expectation too, with --loop-unseal PATH"):
        make_answer(state, make_settings(tmp_path, "2"), {})
    settings = make_default_settings(
        tmp_path,
        start=StartSettings(answer="2"),
        workspace=WorkspaceSettings(unseal=("login.test.ts",)),
        flags=frozenset({"--loop-unseal"}),
    )
    assert make_answer(state, settings, {}).dump()["unseal"] == ["login.test.ts"]


def test_completed_run_has_nothing_to_answer(project: Path, make_run: MakeRun) -> None:
    state = make_run(reason="threshold_reached").read()[0]
    with pytest.raises(StateError, match="guide is completed, and has no question to answer: start a new run"):
        make_answer(state, make_settings(project, "more"), {})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--loop-resume=guide", "--loop-answer="), "--loop-answer: expected an answer, found an empty text"),
        (("--loop-answer=more",), "--loop-answer: expected --loop-resume[=ALIAS] with it, which names the run"),
        (("--loop-resume=good", "--loop-answer=more"), "good is completed, and has no question to answer"),
        (("--loop-resume=none", "--loop-answer=more"), "none"),
    ],
)
def test_answer_that_cannot_be_given_is_refused(
    command: Command, make_run: MakeRun, arguments: tuple[str, ...], message: str
) -> None:
    make_run("good", reason="threshold_reached")
    files = make_run(reason="stuck")
    before = files.history.read_bytes()
    assert message in command(*arguments).refusal
    assert files.history.read_bytes() == before
    assert not files.is_busy


def test_answer_reopens_a_run_and_is_in_its_history(project: Path, make_run: MakeRun) -> None:
    make_run(reason="must_not")
    console = Console(io.StringIO())
    state, files = resume_run(Store(project), make_settings(project, "the key is a test key"), console)
    files.release()
    assert not state.is_over
    assert files.read_history().events[-1].payload.dump()["text"] == "the key is a test key"
    stream = console.stream
    assert isinstance(stream, io.StringIO)
    assert stream.getvalue() == "guide continues after must_not\nanswered: the key is a test key\n"


def test_run_that_is_not_over_is_told_the_answer(project: Path, make_run: MakeRun) -> None:
    make_run()
    state, files = resume_run(Store(project), make_settings(project, "look"), Console(io.StringIO()))
    files.release()
    assert [answer.text for answer in state.signals.answers] == ["look"]


@pytest.mark.parametrize(
    ("first", "second", "answers"),
    [
        ("use a number", "use a number", ["use a number"]),
        ("use a number", "1", ["use a number", "1"]),
        ("1", " 1.", ["1 is right: change the code"]),
        ("1", "use a number", ["1 is right: change the code", "use a number"]),
    ],
)
def test_answer_is_recorded_once_if_it_is_given_again_after_a_crash(
    tmp_path: Path, first: str, second: str, answers: list[str]
) -> None:
    state = fail_comparison()
    for text in (first, second):
        event = make_reopening_event(state, make_settings(tmp_path, text), can_review=False)
        state = RUN_MACHINE.apply(state, event) if event else state
    assert [answer.text for answer in state.signals.answers] == answers


def test_same_words_answer_a_later_question_too(tmp_path: Path) -> None:
    run = ScriptedRun(max_iterations=1).evaluate("a.x.y").finish()
    for count in (1, 2):
        event = make_reopening_event(run.state, make_settings(tmp_path, "try again"), can_review=False)
        assert event is not None
        run.record(event.event, **event.payload.dump())
        assert len(run.state.signals.answers) == count
        run.evaluate("a.x.y", message=f"another message {count}").finish()


def test_higher_limit_is_printed(project: Path, make_run: MakeRun) -> None:
    make_run(reason="iteration_limit", max_iterations=2)
    console = Console(io.StringIO())
    _, files = resume_run(Store(project), make_settings(project, "again"), console)
    files.release()
    assert console.stream.getvalue().splitlines()[-1] == "raised: max_iterations 3"  # type: ignore[attr-defined]


def test_failed_run_shows_what_went_wrong_when_it_is_resumed(project: Path, make_run: MakeRun) -> None:
    files = make_run(steps=1)
    files.acquire()
    state = files.read()[0]
    errors = [("phase_error", {"step": "PRODUCE", "reason": "codex was refused (401)"})] * 2
    run = ScriptedRun()
    run.state, run.events = state, []
    for kind, payload in [*errors, ("failed", {"reason": "phase_error"})]:
        run.record(kind, **payload)
    files.append(run.events, run.state)
    files.release()
    console = Console(io.StringIO())
    state, files = resume_run(Store(project), make_settings(project), console)
    files.release()
    assert not state.is_over
    assert console.stream.getvalue().splitlines() == [  # type: ignore[attr-defined]
        "guide continues after phase_error",
        "writing failed: codex was refused (401)",
    ]


# -- at a terminal


def stop() -> RunState:
    return fail_comparison()


def test_question_at_a_terminal_becomes_settings_that_resume_the_run(tmp_path: Path) -> None:
    console = AnsweringConsole(io.StringIO(), lines=("use a number",))
    settings = ask_for_answer(stop(), make_settings(tmp_path), console)
    assert settings is not None
    assert (settings.start.answer, settings.commands.resume) == ("use a number", "it")


@pytest.mark.parametrize("line", ["", "  ", None])
def test_run_stays_as_it_is_without_an_answer(tmp_path: Path, line: str | None) -> None:
    assert ask_for_answer(stop(), make_settings(tmp_path), AnsweringConsole(io.StringIO(), lines=(line,))) is None


@pytest.mark.parametrize("start", [{"yes": True}, {"ask": "never"}])
def test_question_is_not_asked_of_a_run_without_questions(tmp_path: Path, start: dict[str, Any]) -> None:
    console = AnsweringConsole(io.StringIO())
    assert ask_for_answer(stop(), make_settings(tmp_path, **start), console) is None
    assert console.questions == []


def test_question_is_not_asked_of_a_success_or_of_a_run_that_was_stopped_or_paused(tmp_path: Path) -> None:
    console = AnsweringConsole(io.StringIO())
    stopped = ScriptedRun().evaluate("a.x.y").record(Kind.STOPPED, reason="going home")
    for run in (ScriptedRun(), stopped, ScriptedRun().evaluate().evaluate().finish()):
        assert ask_for_answer(run.state, make_settings(tmp_path), console) is None
    assert console.questions == []
