"""Ask for the set-up of a run at a terminal: six questions for a task whose words name no criteria."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from pytest_loop.cli.document_draft import list_drafted_rules
from pytest_loop.cli.task import SetupAnswers
from pytest_loop.core.text.lengths import shorten
from pytest_loop.inference.document_criteria import DocumentCriteria, InheritedRule
from pytest_loop.inference.task_limits import MAX_ITERATIONS
from pytest_loop.inference.task_types import TaskType
from pytest_loop.rules.sources import list_templates
from pytest_loop.run.console import Console

OTHER, PROJECT = "other", "project"
_MAJOR, _MINOR = "fail", "warn"
Answer = TypeVar("Answer")


class UnusableAnswerError(ValueError):
    """An answer that cannot be used."""

    def __init__(self, expected: str, answer: str) -> None:
        super().__init__(f"expected {expected}, found {answer!r}")


@dataclass(frozen=True)
class SetupQuestions:
    """Ask for the set-up of a run; raise `KeyboardInterrupt` at the end of the input.

    `draft` returns the criteria that follow from the answers so far.
    """

    console: Console
    draft: Callable[[SetupAnswers], DocumentCriteria]

    def ask(self, answers: SetupAnswers, suggestion: str, limit: int) -> SetupAnswers:
        """Return the answers to all questions; a task about the project's files needs only commands as checks.

        `suggestion` is the kind of document and `limit` the number of iterations that an empty answer accepts.
        """
        self.console.print_line(
            "set-up      at most six questions: Enter takes what stands in brackets, Ctrl-D ends it"
        )
        kind = self._ask_kind(suggestion)
        ideal = self._ask_until("2/6 the ideal result, in a sentence", answers.ideal, str, placeholder="none")
        answers = replace(answers, ideal=ideal)
        if kind == PROJECT:
            commands = self._ask_checks("commands that must pass, one per line", is_required=True)
            return replace(answers, commands=tuple(command.strip("` ") for command in commands))
        answers = replace(answers, task_type=TaskType("" if kind == OTHER else kind))
        question = "mandatory checks, one per line: a sentence, or a command in backticks"
        answers = replace(answers, mandatory=self._ask_checks(question, is_required=kind == OTHER))
        answers = replace(answers, thresholds=self._ask_thresholds(self.draft(answers).thresholds))
        chosen_limit = self._ask_until("5/6 iterations at most", str(limit), parse_limit)
        answers = replace(answers, max_iterations=chosen_limit if chosen_limit != limit else None)
        return replace(answers, severities=self._ask_severities(list_drafted_rules(self.draft(answers))))

    def _ask_kind(self, suggestion: str) -> str:
        kinds = (*list_templates(), OTHER, PROJECT)

        def parse(text: str) -> str:
            for kind in kinds:
                if text and kind.startswith(text.lower()):
                    return kind
            raise UnusableAnswerError(f"one of {', '.join(kinds)}", text)

        names = f"{', '.join(list_templates())}, {OTHER} (a document of another type), {PROJECT} (this project's files)"
        self.console.print_line(f"  {names}")
        return self._ask_until("1/6 what is it", suggestion, parse)

    def _ask_checks(self, question: str, *, is_required: bool) -> tuple[str, ...]:
        self.console.print_line(f"3/6 {question}; an empty line ends")
        checks: list[str] = []
        while True:
            check = self._read("  > ")
            if not check and (checks or not is_required):
                return tuple(checks)
            if check:
                checks.append(check)
            else:
                self.console.print_line("  expected at least one check, found none: nothing else judges this")

    def _ask_thresholds(self, thresholds: Mapping[str, float]) -> dict[str, float]:
        def parse(text: str) -> dict[str, float]:
            numbers = [float(number) for number in re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.])", text)]
            if len(numbers) != len(thresholds) or any(number > 1 for number in numbers):
                raise UnusableAnswerError("two numbers from 0 to 1, such as 0.8 0.9", text)
            return dict(zip(thresholds, numbers, strict=True))

        default = " ".join(f"{score:g}" for score in thresholds.values())
        return self._ask_until("4/6 the scores that pass in phases A and B", default, parse)

    def _ask_severities(self, rules: Sequence[InheritedRule]) -> dict[str, str]:
        """Return the severities that differ from those of the draft, by the ids of their rules."""

        def parse(text: str) -> set[int]:
            numbers = {int(number) for number in re.findall(r"\d{1,4}", text)}
            if not numbers <= set(range(1, len(rules) + 1)) or not (numbers or text == "none"):
                raise UnusableAnswerError(f"numbers from 1 to {len(rules)}, or none", text)
            return numbers

        self.console.print_line("6/6 what counts as a major issue? A major one blocks, others lower the score:")
        for number, rule in enumerate(rules, 1):
            mark = "*" if rule.severity == _MAJOR else " "
            self.console.print_line(f"  {number:>2} {mark} {rule.id}  {shorten(rule.description, 60)}")
        major = [number for number, rule in enumerate(rules, 1) if rule.severity == _MAJOR]
        chosen = self._ask_until("  numbers of the major ones", " ".join(map(str, major)) or "none", parse)
        return {
            rule.id: _MAJOR if number in chosen else _MINOR
            for number, rule in enumerate(rules, 1)
            if (number in chosen) != (rule.severity == _MAJOR)
        }

    def _ask_until(self, question: str, default: str, parse: Callable[[str], Answer], placeholder: str = "") -> Answer:
        """Ask until the answer can be parsed; an empty answer is the default, shown as the placeholder if empty."""
        brackets = f" [{default or placeholder}]" if default or placeholder else ""
        while True:
            try:
                return parse(self._read(f"{question}{brackets}: ") or default)
            except UnusableAnswerError as error:
                self.console.print_line(f"  {error}")

    def _read(self, question: str) -> str:
        answer = self.console.read_answer(question)
        if answer is None:
            self.console.print_line("")
            raise KeyboardInterrupt
        return answer


def parse_limit(text: str) -> int:
    """Return a number of iterations; raise `UnusableAnswerError` for anything else."""
    if not text.isdecimal() or not 1 <= int(text) <= MAX_ITERATIONS:
        raise UnusableAnswerError(f"a number from 1 to {MAX_ITERATIONS}", text)
    return int(text)
