"""Render the `loop score` section: one line per criteria, then the rules that do not pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from pytest_loop.core.model.rules import CriteriaScore, Result, Verdict
from pytest_loop.core.text.score_text import format_decimal
from pytest_loop.core.text.wording import format_count

MAX_WIDTH = 300


class StyledLine(NamedTuple):
    """A line of text and its colour."""

    text: str
    colour: str | None = None


def render_score_section(evaluations: Iterable[CriteriaScore], worse: list[str] | None = None) -> Iterator[StyledLine]:
    """Render all lines of the section; `worse` lists rules worse than the baseline; None without a baseline."""
    evaluations = list(evaluations)
    width = max((len(evaluation.criteria) for evaluation in evaluations), default=0)
    for evaluation in evaluations:
        is_good = evaluation.passed and not evaluation.unverified
        yield StyledLine(render_headline(evaluation, width), "green" if is_good else "red")
        yield from _render_results(evaluation)
    if worse is not None:
        yield StyledLine(f"worse than the baseline: {', '.join(worse) or 'nothing'}", "red" if worse else "green")


def render_headline(evaluation: CriteriaScore, width: int = 0) -> str:
    """Render `courses-api  PASS  0.917 (11 of 12) >= 0.9 in phase B, 8 rules: 7 passed, 1 warned`."""
    failed = evaluation.select_results(Verdict.FAIL)
    counts = {
        "passed": len(evaluation.select_results(Verdict.PASS)),
        "failed": sum(result.is_blocking for result in failed),
        "info": sum(not result.is_blocking for result in failed),
        "cannot be judged": len(evaluation.select_results(Verdict.ERROR)),
        "warned": len(evaluation.select_results(Verdict.WARN)),
        "not verified": len(evaluation.unverified),
        "not judged": sum(not result.is_unverified for result in evaluation.select_results(Verdict.NA)),
    }
    parts = ", ".join(f"{number} {word}" for word, number in counts.items() if number)
    sign = ">=" if evaluation.score >= evaluation.threshold else "<"
    judged, total = len(evaluation.results), evaluation.total
    rules = f"{judged} of {total} rules selected" if judged < total else format_count(total, "rule")
    score, threshold = format_decimal(evaluation.score), format_decimal(evaluation.threshold)
    weights = f"({format_decimal(evaluation.earned)} of {format_decimal(evaluation.possible)})"
    verdict = "PASS" if evaluation.passed and not evaluation.unverified else "FAIL"
    name = evaluation.criteria.ljust(width)
    phase = evaluation.phase.value
    return f"{name}  {verdict}  {score} {weights} {sign} {threshold} in phase {phase}, {rules}: {parts}"


def _render_results(evaluation: CriteriaScore) -> Iterator[StyledLine]:
    for result in evaluation.results:
        if result.verdict is Verdict.ERROR:
            yield StyledLine(_format_result("cannot be judged", result), "red")
        elif result.is_blocking:
            yield StyledLine(_format_result("blocks", result), "red")
        elif result.is_unverified:
            yield StyledLine(_format_result("not verified", result), "red")
    for result in evaluation.results:
        if result.verdict is Verdict.WARN:
            yield StyledLine(_format_result("warns", result), "yellow")
        elif result.verdict is Verdict.FAIL and not result.is_blocking:
            yield StyledLine(_format_result("info", result))
    for result in evaluation.select_results(Verdict.NA):
        if not result.is_unverified:
            yield StyledLine(_format_result("not judged", result), "yellow")


def _format_result(word: str, result: Result) -> str:
    details = " ".join(result.details.split())
    text = f"  {word}: {result.rule.id}" + (f": {details}" if details else "")
    return text if len(text) <= MAX_WIDTH else text[: MAX_WIDTH - 3] + "..."
