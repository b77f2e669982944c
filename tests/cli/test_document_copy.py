"""The copy of a document that a run has finished."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from pytest_loop.cli.document_copy import DocumentCopy
from pytest_loop.core.model.vocabulary import Target
from pytest_loop.run.console import Console
from pytest_loop.settings.options import OutputSettings, StartSettings
from pytest_loop.settings.settings import Settings, make_default_settings
from tests.cli.conftest import MakeRun
from tests.cli.typing_console import Answer, TypingConsole

ARTIFACT = ".loop/guide/artifact.md"
NEXT = "next: link it from the page where its readers begin, and check its commands once by hand"
QUESTION = f"copy it to which path? [y is artifact.md, Enter leaves it at {ARTIFACT}] "


def make_settings(project: Path, output: str | None = None, **groups: Any) -> Settings:
    return make_default_settings(project, folder=project, output=OutputSettings(output=output or ""), **groups)


def offer(
    project: Path,
    make_run: MakeRun,
    output: str = "",
    reason: str = "threshold_reached",
    answers: list[Answer] | None = None,
    state: dict[str, Any] | None = None,
    **groups: Any,
) -> list[str]:
    """Offer a copy of the document of a run, at a terminal if there are answers, and return what is shown."""
    files = make_run(reason=reason, artifact=ARTIFACT)
    run_state = files.read()[0].replace(**(state or {}))
    console = Console(io.StringIO()) if answers is None else TypingConsole(answers=answers)
    DocumentCopy(make_settings(project, output, **groups), console, run_state, files).offer()
    return console.stream.getvalue().splitlines()  # type: ignore[attr-defined, no-any-return]


def test_document_is_copied_to_the_path_of_the_option(project: Path, make_run: MakeRun) -> None:
    assert offer(project, make_run, "GUIDE.md") == ["copied to GUIDE.md", NEXT]
    assert (project / "GUIDE.md").read_text() == "# Guide\n"


def test_folder_receives_the_document_under_its_name(
    project: Path, make_run: MakeRun, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("elsewhere")
    assert offer(project, make_run, str(folder))[0] == f"copied to {folder}/artifact.md"
    assert (folder / "artifact.md").exists()


def test_document_that_does_not_pass_is_copied_and_named_as_such(project: Path, make_run: MakeRun) -> None:
    assert offer(project, make_run, "a.md", "iteration_limit") == ["copied to a.md, although it does not pass"]


def test_copy_onto_itself_changes_nothing(project: Path, make_run: MakeRun) -> None:
    assert offer(project, make_run, ARTIFACT)[0] == f"copied to {ARTIFACT}"
    assert (project / ARTIFACT).read_text() == "# Guide\n"


def test_missing_folders_are_made(project: Path, make_run: MakeRun) -> None:
    assert offer(project, make_run, "new/docs/") == ["copied to new/docs/artifact.md", NEXT]
    assert (project / "new/docs/artifact.md").read_text() == "# Guide\n"


def test_copy_that_fails_is_reported(project: Path, make_run: MakeRun) -> None:
    (project / "mine").write_text("mine")
    assert offer(project, make_run, "mine/a.md") == [
        "the document could not be copied to mine/a.md: File exists",
        NEXT,
    ]


def test_user_is_asked_until_the_document_can_be_copied(project: Path, make_run: MakeRun) -> None:
    (project / "mine.md").write_text("mine")
    lines = offer(project, make_run, answers=["mine.md/a.md", "mine.md", "n", "b.md"])
    assert lines == [
        QUESTION,
        "the document could not be copied to mine.md/a.md: File exists",
        QUESTION,
        "mine.md exists: overwrite it? [y/N] ",
        QUESTION,
        "copied to b.md",
        NEXT,
    ]
    assert (project / "mine.md").read_text() == "mine"


def test_yes_copies_the_document_under_its_name(project: Path, make_run: MakeRun) -> None:
    assert offer(project, make_run, answers=["y"]) == [QUESTION, "copied to artifact.md", NEXT]


@pytest.mark.parametrize("answer", ["", "n", None])
def test_document_stays_where_it_is_without_an_answer(project: Path, make_run: MakeRun, answer: str | None) -> None:
    assert offer(project, make_run, answers=[answer]) == [QUESTION, NEXT]


COMMAND = "copy it: cp .loop/guide/artifact.md artifact.md"


@pytest.mark.parametrize("start", [{"yes": True}, {"ask": "never"}, None], ids=str)
def test_command_that_copies_is_printed_where_nothing_is_asked(
    project: Path, make_run: MakeRun, start: dict[str, Any] | None
) -> None:
    answers: list[Answer] | None = None if start is None else []
    assert offer(project, make_run, answers=answers, start=StartSettings(**start or {})) == [COMMAND, NEXT]


def test_document_of_a_stopped_run_is_offered_too(project: Path, make_run: MakeRun) -> None:
    assert offer(project, make_run, reason="iteration_limit") == [COMMAND]


@pytest.mark.parametrize(
    ("state", "groups"),
    [
        ({"artifact": "guide.md"}, {}),
        ({"target": Target.WORKSPACE}, {}),
    ],
    ids=["a file of the project", "the files of the project"],
)
def test_copy_is_offered_only_of_a_document_apart_from_the_project(
    project: Path, make_run: MakeRun, state: dict[str, Any], groups: dict[str, Any]
) -> None:
    (project / "guide.md").write_text("# Guide\n")
    lines = offer(project, make_run, answers=[], state=state, **groups)
    assert lines == ([] if "target" in state else [NEXT])


def test_document_that_was_not_created_is_not_offered(project: Path, make_run: MakeRun) -> None:
    assert offer(project, make_run, "a.md", state={"artifact": "nowhere.md"}) == []
