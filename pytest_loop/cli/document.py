"""Choose the document of a run: its place and its name, which says its format."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_loop.core.model.rules import INFERRED_FILE, TESTS_SOURCE, SessionPlan
from pytest_loop.core.text.wording import list_names
from pytest_loop.inference.command_candidate import Goal
from pytest_loop.inference.document_types import DOCUMENT_TYPES, choose_document_name, find_document_path
from pytest_loop.inference.task_intent import classify_task
from pytest_loop.inference.task_phrases import parse_task
from pytest_loop.inference.task_types import is_edit_of_existing
from pytest_loop.settings.settings import Settings


def choose_document(settings: Settings, plan: SessionPlan, task: str, folder: Path) -> Path | None:
    """Return the path of the run's document; None if the run edits the files of the project.

    The first of these decides: `--loop-artifact`, the `artifact` of the rule files, a path in the task. Else the
    document is in the folder of the run, and its template and the words of the task give it a name. There is no
    document if the rules read none or several, or if the task asks for passing tests.
    """
    if settings.workspace.workspace or _is_about_tests(settings, plan, task):
        return None
    template = settings.judging.template
    if settings.workspace.artifact:
        return locate_document(settings, template, task, folder)
    inferred = (folder / INFERRED_FILE).as_posix()
    readers = {source: name for source, name in plan.documents.items() if not inferred.endswith(source)}
    declared = sorted({name for name in readers.values() if name})
    if not readers or len(declared) > 1:
        _refuse_unnamed(declared, [source for source, name in readers.items() if not name])
        return None
    if declared:
        return check_format(settings.root / declared[0], template)
    return locate_document(settings, template, task, folder)


def _is_about_tests(settings: Settings, plan: SessionPlan, task: str) -> bool:
    """Return whether the task asks for passing tests, and no document or rule file was named."""
    is_named = bool(settings.workspace.artifact or settings.judging.rules or settings.judging.template)
    has_tests = any(criteria.source == TESTS_SOURCE for criteria in plan.criteria)
    return not is_named and has_tests and classify_task(parse_task(task).task).goal is Goal.TEST_PASS


def locate_document(settings: Settings, template: str, task: str, folder: Path) -> Path:
    """Return the path of a document that no rule file names."""
    name = choose_document_name(template, task)
    path = resolve_artifact(settings) or _find_task_path(settings.root, task)
    if path is None and is_edit_of_existing(task) and (settings.root / name).is_file():
        path = settings.root / name
    return check_format(path or folder / name, template)


def check_format(path: Path, template: str) -> Path:
    """Return the path of a document; raise `UsageError` if its template cannot read it."""
    if template and not DOCUMENT_TYPES[template].accepts(path.name):
        example = DOCUMENT_TYPES[template].default
        raise pytest.UsageError(
            f"--loop-template {template}: expected a document that it can read, such as {example}, found {path.name}"
        )
    return path


def resolve_artifact(settings: Settings) -> Path | None:
    """Return the path of `--loop-artifact`, None without one; raise `UsageError` if it is outside the project."""
    name = settings.workspace.artifact
    if not name:
        return None
    path = (settings.folder / name).resolve()
    if not path.is_relative_to(settings.root.resolve()):
        raise pytest.UsageError(f"--loop-artifact: expected a path inside {settings.root}, found {name!r}")
    return path


def _find_task_path(root: Path, task: str) -> Path | None:
    """Return the file of the project that a task says to write or to improve."""
    name = find_document_path(task)
    path = (root / name).resolve()
    return path if name and path.is_relative_to(root.resolve()) else None


def _refuse_unnamed(declared: list[str], unnamed: list[str]) -> None:
    """Raise `UsageError` if rule files declare several documents, and the files `unnamed` declare none."""
    if unnamed:
        raise pytest.UsageError(
            f"the rules are about several documents ({list_names(declared, 3)}), and {list_names(unnamed, 3)} "
            "does not say which: add `artifact: PATH` there, or name one for all with --loop-artifact"
        )
