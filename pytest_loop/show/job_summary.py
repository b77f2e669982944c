"""Render the job summary of a run in Markdown: scores, fixes, blockers, stop reason and next command.

Text of tests and agents appears only in one-line code spans, so that GitHub reads none of it as Markdown or HTML.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_loop.core.events.event import Event
from pytest_loop.core.events.run_payloads import EvaluationDone
from pytest_loop.core.machine.stop_reasons import find_row
from pytest_loop.core.model.evaluation import Evaluation, SealFinding
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.model.vocabulary import parse_reason
from pytest_loop.core.reporting.escalation import ask_question, describe_pattern
from pytest_loop.core.text.lengths import shorten
from pytest_loop.core.text.score_text import format_score
from pytest_loop.core.text.wording import format_count, limit_lines, list_names
from pytest_loop.show.ending_text import format_answer_command, format_resume_command

VARIABLE = "GITHUB_STEP_SUMMARY"
# These limits keep a summary far below GitHub's maximum of one megabyte.
MAX_EVALUATIONS = 20
MAX_NAMES = 5
MAX_BLOCKERS = 10
MAX_NAME = 160
MAX_TEXT = 400


@dataclass(frozen=True)
class EvaluationEntry:
    """One evaluation, and the rules fixed since the previous evaluation that is not void."""

    iteration: int
    evaluation: Evaluation
    fixed: tuple[str, ...] = ()


def list_evaluations(events: Iterable[Event]) -> list[EvaluationEntry]:
    """List the evaluations of a run; a void evaluation fixes nothing, and later ones are not compared with it."""
    entries: list[EvaluationEntry] = []
    unmet: frozenset[str] = frozenset()
    for event in events:
        if not isinstance(event.payload, EvaluationDone):
            continue
        evaluation = event.payload.extract_evaluation(event.phase)
        fixed = () if evaluation.void else tuple(sorted(unmet - evaluation.unmet))
        entries.append(EvaluationEntry(event.iteration, evaluation, fixed))
        unmet = unmet if evaluation.void else evaluation.unmet
    return entries


def render_summary(state: RunState, events: Iterable[Event]) -> str:
    """Render the whole summary."""
    blocks = (
        _render_head(state),
        _render_scores(list_evaluations(events)),
        _render_blockers(state),
        _render_findings(state),
        _render_end(state),
    )
    return "\n\n".join("\n".join(lines) for block in blocks if (lines := list(block))) + "\n"


def append_summary(text: str, environment: Mapping[str, str]) -> str:
    """Append `text` to the file that GitHub shows, if any; return an error message, empty on success."""
    if not environment.get(VARIABLE):
        return ""
    try:
        with Path(environment[VARIABLE]).open("a", encoding="utf-8", errors="replace") as file:
            file.write(f"{text}\n")
    except (OSError, ValueError) as error:
        return f"the job summary could not be written: {getattr(error, 'strerror', None) or error}"
    return ""


def format_code(text: str, limit: int = MAX_NAME) -> str:
    """Format a text as a code span, fenced by more backticks than it contains in a row."""
    inside = shorten(text, limit) or " "
    fence = "`" * (max(map(len, re.findall("`+", inside)), default=0) + 1)
    space = " " if "`" in (inside[0], inside[-1]) else ""
    return f"{fence}{space}{inside}{space}{fence}"


def _list_names(names: Sequence[str]) -> str:
    return list_names([format_code(name) for name in names], MAX_NAMES)


def _render_head(state: RunState) -> Iterator[str]:
    yield f"## pytest-loop: {state.status.value}"
    yield ""
    why = f" because of {format_code(state.stop.reason)}" if state.stop.reason else ""
    where = f"iteration {state.iteration} of {state.max_iterations}, phase {state.phase.value}"
    task = format_code(state.task.prompt)
    yield f"{format_code(state.task_alias)} is {state.status.value}{why} in {where}. The task: {task}"


def _render_scores(entries: Sequence[EvaluationEntry]) -> Iterator[str]:
    """Render the table of scores, which has no text of tests or agents."""
    shown = entries[-MAX_EVALUATIONS:]
    if shown:
        yield "| iteration | phase | score | verdict | rules that pass | fixed | broken |"
        yield "|---:|:---:|---:|:---:|---:|---:|---:|"
    for entry in shown:
        evaluation = entry.evaluation
        score = format_score(evaluation.score)
        counts = f"{evaluation.passing} of {evaluation.total} | {len(entry.fixed)} | {len(evaluation.regressions)}"
        yield f"| {entry.iteration} | {evaluation.phase.value} | {score} | {evaluation.verdict} | {counts} |"
    if len(entries) > len(shown):
        yield ""
        yield f"{len(entries) - len(shown)} earlier evaluations are left out."
    changed = [entry for entry in shown if entry.fixed or entry.evaluation.regressions]
    if changed:
        yield ""
    for entry in changed:
        regressions = entry.evaluation.regressions
        fixed = f"fixed {_list_names(entry.fixed)}" if entry.fixed else ""
        broken = f"passed before and fail now: {_list_names(regressions)}" if regressions else ""
        yield f"- iteration {entry.iteration}: {'; '.join(filter(None, (fixed, broken)))}"


def _render_blockers(state: RunState) -> Iterator[str]:
    evaluation = state.evaluation
    failed = (*evaluation.failed, *evaluation.blocking_errors) if evaluation else ()
    if not failed:
        return
    yield f"### Failing: {format_count(len(failed), 'rule')}"
    yield ""
    lines = [
        f"- {format_code(complaint.id)}"
        + (f": {format_code(complaint.message, MAX_TEXT)}" if complaint.message else "")
        for complaint in failed
    ]
    yield from limit_lines(lines, MAX_BLOCKERS)


def _render_findings(state: RunState) -> Iterator[str]:
    findings = state.evaluation.findings if state.evaluation else ()
    if not findings:
        return
    yield "### The judge was tampered with"
    yield ""
    yield from limit_lines([_describe_finding(finding) for finding in findings], MAX_BLOCKERS)


def _describe_finding(finding: SealFinding) -> str:
    words = (finding.kind, finding.path or finding.rule, finding.detail)
    return f"- {' '.join(format_code(word, MAX_TEXT) for word in words if word)}"


def _render_end(state: RunState) -> Iterator[str]:
    if state.stop.passed:
        return
    yield "### What comes next"
    yield ""
    if state.is_over:
        yield f"- pattern: {describe_pattern(state)}"
        yield f"- question: {format_code(ask_question(state, parse_reason(state.stop.reason)), MAX_TEXT)}"
        yield f"- answer: {format_code(format_answer_command(state), MAX_TEXT)}"
        if find_row(state.stop.reason).needs_answer:
            return
    yield f"- continue: {format_code(format_resume_command(state), MAX_TEXT)}"
