"""Lessons from earlier runs: edits that fixed a failure with the same message."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pytest_loop.core.events.event import Event
from pytest_loop.core.events.run_payloads import EditPayload, EvaluationDone
from pytest_loop.core.model.evaluation import Evaluation, RuleResult
from pytest_loop.core.model.rules import Verdict
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.model.vocabulary import Kind
from pytest_loop.core.text.lengths import fit_tokens, shorten
from pytest_loop.core.text.sanitizer import reveal_hidden
from pytest_loop.core.text.wording import limit_lines

MAX_LESSONS = 3
MAX_LINES = 24
MAX_TOKENS = 400
_MAX_LINE_LENGTH = 160


@dataclass(frozen=True)
class Lesson:
    """A failure and the edit that fixed it; `others` counts the failures that the same edit fixed."""

    signature: str
    rule: str
    problem: str
    diff: str
    run: str = ""
    iteration: int = 1
    ts: str = ""
    others: int = 0

    @property
    def name(self) -> str:
        """The run and iteration of the edit."""
        return f"{self.run}, iteration {self.iteration}"


def find_lessons(events: Iterable[Event], run: str) -> list[Lesson]:
    """Return the lessons of a run, from edits that an evaluation confirmed; failures that came back are left out."""
    lessons: dict[tuple[str, str], Lesson] = {}
    before: Evaluation | None = None
    edit: Event | None = None
    for event in events:
        if isinstance(event.payload, EditPayload):
            edit = event
        elif event.kind is Kind.EVALUATION_DONE:
            now = _find_sound_evaluation(event)
            for result in _list_failing(now):
                lessons.pop((result.id, result.signature), None)
            if before and now and edit:
                lessons |= {(lesson.rule, lesson.signature): lesson for lesson in _make_lessons(before, now, edit, run)}
            before, edit = now, None
    return list(lessons.values())


def _find_sound_evaluation(event: Event) -> Evaluation | None:
    """Return the evaluation of an event; None if it is void or another tool's."""
    payload = event.payload
    return payload if isinstance(payload, EvaluationDone) and not payload.void else None


def _list_failing(evaluation: Evaluation | None) -> list[RuleResult]:
    results = evaluation.rule_results if evaluation else ()
    return [result for result in results if result.verdict in (Verdict.FAIL, Verdict.WARN) and result.signature]


def _make_lessons(before: Evaluation, now: Evaluation, edit: Event, run: str) -> list[Lesson]:
    diff = edit.payload.diff if isinstance(edit.payload, EditPayload) else ""
    if not diff.strip():
        return []
    still_failing = {result.id for result in now.rule_results}
    fixed = [result for result in _list_failing(before) if result.id not in still_failing and result.details]
    return [
        Lesson(result.signature, result.id, _describe(result), diff, run, edit.iteration, edit.ts, len(fixed) - 1)
        for result in fixed
    ]


def _describe(result: RuleResult) -> str:
    return shorten(str(result.findings[0]) if result.findings else result.details, 300)


def choose_lessons(state: RunState, lessons: Sequence[Lesson]) -> list[Lesson]:
    """Return at most three lessons about current failures: a lesson for each before a second one for any of them.

    For each failure, lessons of the same rule come first, then edits that fixed little else, then the newest. Failures
    of held-out rules get none.
    """
    held_out = {rule.id for rule in state.criteria.rules if rule.held_out}
    ranked: list[tuple[int, Lesson]] = []
    signatures: set[str] = set()
    for failing in _list_failing(state.evaluation):
        if failing.id in held_out or failing.signature in signatures:
            continue
        signatures.add(failing.signature)
        fitting = _drop_same_edits(lesson for lesson in lessons if lesson.signature == failing.signature)
        fitting.sort(key=lambda lesson: lesson.ts, reverse=True)
        fitting.sort(key=lambda lesson: (lesson.rule != failing.id, lesson.others))
        ranked += enumerate(fitting[:MAX_LESSONS])
    ranked.sort(key=lambda pair: pair[0])
    return [lesson for _, lesson in ranked[:MAX_LESSONS]]


def _drop_same_edits(lessons: Iterable[Lesson]) -> list[Lesson]:
    """Keep the last of several lessons about the same edit."""
    return list({lesson.diff: lesson for lesson in lessons}.values())


def render_lessons(lessons: Sequence[Lesson]) -> str:
    """Render lessons for a prompt, each within its token budget."""
    return "\n\n".join(_render(number, lesson) for number, lesson in enumerate(lessons, 1))


def _render(number: int, lesson: Lesson) -> str:
    more = f", and {lesson.others} more with it" if lesson.others else ""
    edit = f"   This edit fixed it{more} ({shorten(lesson.name)}):"
    head = f"{number}. {shorten(lesson.rule)} said: {lesson.problem}\n{edit}"
    lines = [reveal_hidden(line[:_MAX_LINE_LENGTH]) for line in lesson.diff.split("\n")]
    shown = limit_lines(lines, MAX_LINES, "... and {} more lines")
    return fit_tokens("\n".join([head, *(f"   | {line}" for line in shown)]), MAX_TOKENS)
