"""Make the draft of a run with the user at a terminal: ask for what the task lacks, edit it, and confirm it."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pytest_loop.cli.document_draft import draft_answered_criteria, explain_templates
from pytest_loop.cli.draft import RunDraft, make_draft
from pytest_loop.cli.guards import add_suite_guards
from pytest_loop.cli.inferred_rules import NoTestsError, UncertainCommandError
from pytest_loop.cli.readiness import UnclearError
from pytest_loop.cli.setup_questions import SetupQuestions, UnusableAnswerError, parse_limit
from pytest_loop.cli.task import TaskContext, can_ask
from pytest_loop.core.model.rules import TESTS_SOURCE
from pytest_loop.core.model.vocabulary import Target
from pytest_loop.errors import StateError
from pytest_loop.inference.task_types import detect_task_type, list_document_types
from pytest_loop.run.console import YES, Console
from pytest_loop.run.questions import YES_BY_DEFAULT
from pytest_loop.run.sessions import SessionFactory
from pytest_loop.settings.options import StartSettings
from pytest_loop.settings.settings import Settings
from pytest_loop.store.run_files import RunFiles

_EDIT = ("e", "edit")
_USUAL_EDITORS = ("sensible-editor", "nano", "vi")


@dataclass
class DraftDialogue:
    """Make the draft of one run with the user; `context` contains all answers so far."""

    settings: Settings
    console: Console
    files: RunFiles
    sessions: SessionFactory
    context: TaskContext

    def make_draft(self) -> RunDraft:
        """Return the draft with guards; for a task that cannot be measured, plan tests first or ask for the set-up."""
        while True:
            try:
                draft = make_draft(self.settings, self.context, self.files, self.sessions, self.console)
                return add_suite_guards(draft, self.sessions)
            except UnclearError as error:
                self._resolve(error)

    def make_another_draft(self, error: UnclearError) -> RunDraft:
        """Resolve the error of an unclear draft, and return a new draft."""
        self._resolve(error)
        return self.make_draft()

    def _resolve(self, error: UnclearError) -> None:
        """Plan tests first if the project has none, else ask for the set-up once; raise the error after that."""
        if isinstance(error, NoTestsError):
            start = StartSettings(**(self.settings.start.values | {"tests_first": True}))
            self.settings = replace(self.settings, start=start)
            return
        is_answered = bool(self.context.answers.task_type or self.context.answers.commands)
        if is_answered or isinstance(error, UncertainCommandError):
            raise error
        if not can_ask(self.settings, self.console):
            raise UnclearError(f"{error}\n{explain_templates()}") from None
        self.console.print_line(str(error))
        self._set_up()

    def _set_up(self) -> None:
        """Ask for everything that the words of the task do not say."""
        task = self.context.task
        suggestion = next(iter(list_document_types(task.task)), None) or detect_task_type(task.task)
        questions = SetupQuestions(self.console, lambda answers: draft_answered_criteria(self.context, answers))
        limit = task.iteration_limit or self.context.project.max_iterations or self.settings.limits.max_iterations
        answers = questions.ask(self.context.answers, suggestion.template if suggestion else "", limit)
        task = replace(task, commands=(*task.commands, *answers.commands))
        self.context = replace(self.context, task=task, answers=answers)

    def describe_rule_file(self, draft: RunDraft) -> Iterator[str]:
        """Yield where the drafted rules of a document are kept."""
        if draft.context.document:
            path = self.files.rules
            name = path.relative_to(self.settings.root) if path.is_relative_to(self.settings.root) else path
            yield f"rule file: {name} (yours to keep)"

    def can_revise(self, draft: RunDraft) -> bool:
        """Return whether the user can be asked about the criteria and the limit of a document."""
        return draft.target is Target.ARTIFACT and can_ask(self.settings, self.console)

    def revise(self, draft: RunDraft, question: str, limit: int) -> RunDraft | None:
        """Ask the user to confirm the criteria and the limit; return another draft if they changed one, else None.

        Raises `KeyboardInterrupt` if the user declines.
        """
        paths = self._list_rule_files(draft)
        hint = "(e edits them) [y/N]" if paths else "[y/N]"
        answer = self._read(f"{question} {hint} ").lower()
        if paths and answer in _EDIT:
            return self._edit(paths)
        if answer not in YES:
            raise KeyboardInterrupt
        new_limit = self._ask_limit(limit)
        if new_limit == limit:
            return None
        self._change_answers(max_iterations=new_limit)
        return self.make_draft()

    def _list_rule_files(self, draft: RunDraft) -> list[Path]:
        """Return the rule files that a user may edit: the drafted one, or those of the project."""
        if draft.context.document:
            return [self.files.rules]
        sources = (criteria.source for criteria in draft.plan.criteria if criteria.source != TESTS_SOURCE)
        return [path for source in sources if (path := self.settings.root / source).is_file()]

    def _edit(self, paths: list[Path]) -> RunDraft:
        """Open the rule files in an editor until they can be collected, and return the draft with them."""
        while True:
            edit_files(paths, self.console)
            if self.files.rules in paths:
                self._change_answers(rule_file=self.files.rules.read_text(encoding="utf-8", errors="replace"))
            try:
                return self.make_draft()
            except StateError as error:
                self.console.print_line(str(error))
            if self._read("edit again? [Y/n] ").lower() not in YES_BY_DEFAULT:
                raise KeyboardInterrupt

    def _ask_limit(self, limit: int) -> int:
        """Return the limit that the user confirms or names."""
        while True:
            answer = self._read(f"confirm max iterations = {limit}? (or another number) [y/N] ").lower()
            if answer in YES:
                return limit
            if not answer[:1].isdecimal():
                raise KeyboardInterrupt
            try:
                return parse_limit(answer)
            except UnusableAnswerError as error:
                self.console.print_line(f"  {error}")

    def _change_answers(self, **changes: Any) -> None:
        self.context = replace(self.context, answers=replace(self.context.answers, **changes))

    def _read(self, question: str) -> str:
        answer = self.console.read_answer(question)
        if answer is None:
            raise KeyboardInterrupt
        return answer


def edit_files(paths: Sequence[Path], console: Console) -> None:
    """Open files in `$VISUAL`, `$EDITOR` or a usual editor; without one, wait until the user has edited them."""
    words = _choose_editor()
    if words:
        try:
            if subprocess.run([*words, *map(str, paths)], check=False).returncode == 0:
                return
            problem = f"`{words[0]}` failed"
        except OSError as error:
            problem = f"cannot start `{words[0]}` ({error.strerror})"
    else:
        problem = "there is no editor here: EDITOR names one"
    console.read_answer(f"{problem}. Edit {' and '.join(map(str, paths))} elsewhere, then press Enter: ")


def _choose_editor() -> list[str]:
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""
    try:
        words = shlex.split(editor)
    except ValueError:  # a quote without an end
        words = [editor]
    return words or [name for name in _USUAL_EDITORS if shutil.which(name)][:1]
