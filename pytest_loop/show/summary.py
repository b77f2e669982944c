"""The job summary of a run in Markdown: score by iteration, what was fixed, what blocks, why it ended, how to go on.

What comes from tests and agents stands in code spans only, one line each: nothing in it is read as Markdown or HTML.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from pytest_loop.core.events.event import Event
from pytest_loop.core.events.run_payloads import EvaluationDone
from pytest_loop.core.model.evaluation import Assessment, Complaint, SealFinding
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.model.vocabulary import parse_reason
from pytest_loop.core.reporting.outcome import ask_question, describe_pattern
from pytest_loop.core.text.lengths import shorten
from pytest_loop.core.text.wording import format_count, limit_lines, list_names
from pytest_loop.show.run import go_on
from pytest_loop.show.score_section import format_decimal

VARIABLE = "GITHUB_STEP_SUMMARY"
# How much is told; with these a summary stays far below the megabyte that GitHub takes.
MOST_ROUNDS = 20
MOST_NAMES = 5
MOST_BLOCKING = 10
LONGEST_NAME = 160
LONGEST_TEXT = 400


@dataclass(frozen=True)
class Round:
    """One evaluation: where it stands in the run, what it found, and what changed since the one before."""

    iteration: int
    found: Assessment
    fixed: tuple[str, ...] = ()


def rounds(events: Iterable[Event]) -> list[Round]:
    """The evaluations of a run; a void one has fixed nothing, and nothing is compared with it."""
    told: list[Round] = []
    unmet: frozenset[str] = frozenset()
    for event in events:
        if not isinstance(event.payload, EvaluationDone):
            continue
        one = event.payload.in_phase(event.phase)
        fixed = () if one.void else tuple(sorted(unmet - one.unmet))
        told.append(Round(event.iteration, one, fixed))
        unmet = unmet if one.void else one.unmet
    return told


def summary(state: RunState, events: Iterable[Event]) -> str:
    """The whole summary."""
    blocks = (_head(state), _scores(rounds(events)), _blocking(state), _findings(state), _end(state))
    return "\n\n".join("\n".join(lines) for block in blocks if (lines := list(block))) + "\n"


def append(text: str, environment: Mapping[str, str]) -> str:
    """Add it to the file that GitHub shows, where there is one; gives what went wrong, which ends no run."""
    if not environment.get(VARIABLE):
        return ""
    try:
        with Path(environment[VARIABLE]).open("a", encoding="utf-8", errors="replace") as file:
            file.write(f"{text}\n")
    except (OSError, ValueError) as error:
        return f"the job summary could not be written: {getattr(error, 'strerror', None) or error}"
    return ""


def code(text: str, limit: int = LONGEST_NAME) -> str:
    """A text as a code span: fenced by more backticks than it has in a row."""
    inside = shorten(text, limit) or " "
    fence = "`" * (max(map(len, re.findall("`+", inside)), default=0) + 1)
    space = " " if "`" in (inside[0], inside[-1]) else ""
    return f"{fence}{space}{inside}{space}{fence}"


def _some(names: Sequence[str]) -> str:
    return list_names([code(name) for name in names], MOST_NAMES)


def _head(state: RunState) -> Iterator[str]:
    yield f"## pytest-loop: {state.status.value}"
    yield ""
    why = f" because of {code(state.stop.reason)}" if state.stop.reason else ""
    where = f"iteration {state.iteration} of {state.max_iterations}, phase {state.phase.value}"
    yield f"{code(state.task_alias)} is {state.status.value}{why} in {where}. The task: {code(state.task.prompt)}"


def _scores(told: Sequence[Round]) -> Iterator[str]:
    """The table has no text in it but ours."""
    shown = told[-MOST_ROUNDS:]
    if shown:
        yield "| iteration | phase | score | verdict | rules that pass | fixed | broken |"
        yield "|---:|:---:|---:|:---:|---:|---:|---:|"
    for one in shown:
        found = one.found
        score = format_decimal(Fraction(repr(found.score)))
        counts = f"{found.passing} of {found.total} | {len(one.fixed)} | {len(found.regressions)}"
        yield f"| {one.iteration} | {found.phase.value} | {score} | {_verdict(found)} | {counts} |"
    if len(told) > len(shown):
        yield ""
        yield f"{len(told) - len(shown)} earlier evaluations are left out."
    changed = [one for one in shown if one.fixed or one.found.regressions]
    if changed:
        yield ""
    for one in changed:
        fixed = f"fixed {_some(one.fixed)}" if one.fixed else ""
        broken = f"passed before and fail now: {_some(one.found.regressions)}" if one.found.regressions else ""
        yield f"- iteration {one.iteration}: {'; '.join(filter(None, (fixed, broken)))}"


def _verdict(one: Assessment) -> str:
    return "void" if one.void else "pass" if one.passed else "fail"


def _blocking(state: RunState) -> Iterator[str]:
    failed = state.evaluation.failed if state.evaluation else ()
    if not failed:
        return
    yield f"### What blocks: {format_count(len(failed), 'rule')}"
    yield ""
    yield from limit_lines([_describe_failure(complaint) for complaint in failed], MOST_BLOCKING)


def _describe_failure(complaint: Complaint) -> str:
    return f"- {code(complaint.id)}" + (f": {code(complaint.message, LONGEST_TEXT)}" if complaint.message else "")


def _findings(state: RunState) -> Iterator[str]:
    found = state.evaluation.findings if state.evaluation else ()
    if not found:
        return
    yield "### The judge was tampered with"
    yield ""
    yield from limit_lines([_describe_finding(finding) for finding in found], MOST_BLOCKING)


def _describe_finding(finding: SealFinding) -> str:
    words = (finding.kind, finding.path or finding.rule, finding.detail)
    return f"- {' '.join(code(word, LONGEST_TEXT) for word in words if word)}"


def _end(state: RunState) -> Iterator[str]:
    if state.stop.passed:
        return
    yield "### What comes next"
    yield ""
    if state.is_over:
        yield f"- pattern: {describe_pattern(state)}"
        yield f"- question: {code(ask_question(state, parse_reason(state.stop.reason)), LONGEST_TEXT)}"
    yield f"- go on: {code(go_on(state), LONGEST_TEXT)}"
