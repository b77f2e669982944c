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


def render_score_section(scores: Iterable[CriteriaScore], worse: list[str] | None = None) -> Iterator[StyledLine]:
    """Render all lines of the section; `worse` lists rules worse than the baseline; None without a baseline."""
    scores = list(scores)
    width = max((len(score.criteria) for score in scores), default=0)
    for score in scores:
        is_good = score.passed and not score.unverified
        yield StyledLine(render_headline(score, width), "green" if is_good else "red")
        yield from _render_results(score)
    if worse is not None:
        yield StyledLine(f"worse than the baseline: {', '.join(worse) or 'nothing'}", "red" if worse else "green")


def render_headline(score: CriteriaScore, width: int = 0) -> str:
    """Render `courses-api  PASS  0.917 (11 of 12) >= 0.9 in phase B, 8 rules: 7 passed, 1 warned`."""
    failed = score.select_results(Verdict.FAIL)
    counts = {
        "passed": len(score.select_results(Verdict.PASS)),
        "failed": sum(result.is_blocking for result in failed),
        "info": sum(not result.is_blocking for result in failed),
        "cannot be judged": len(score.select_results(Verdict.ERROR)),
        "warned": len(score.select_results(Verdict.WARN)),
        "not verified": len(score.unverified),
        "not judged": sum(not result.is_unverified for result in score.select_results(Verdict.NA)),
    }
    parts = ", ".join(f"{number} {word}" for word, number in counts.items() if number)
    sign = ">=" if score.score >= score.threshold else "<"
    judged, total = len(score.results), score.total
    rules = f"{judged} of {total} rules selected" if judged < total else format_count(total, "rule")
    ratio, threshold = format_decimal(score.score), format_decimal(score.threshold)
    weights = f"({format_decimal(score.earned)} of {format_decimal(score.possible)})"
    verdict = "PASS" if score.passed and not score.unverified else "FAIL"
    name = score.criteria.ljust(width)
    phase = score.phase.value
    return f"{name}  {verdict}  {ratio} {weights} {sign} {threshold} in phase {phase}, {rules}: {parts}"


def _render_results(score: CriteriaScore) -> Iterator[StyledLine]:
    for result in score.results:
        if result.verdict is Verdict.ERROR:
            yield StyledLine(_format_result("cannot be judged", result), "red")
        elif result.is_blocking:
            yield StyledLine(_format_result("blocks", result), "red")
        elif result.is_unverified:
            yield StyledLine(_format_result("not verified", result), "red")
    for result in score.results:
        if result.verdict is Verdict.WARN:
            yield StyledLine(_format_result("warns", result), "yellow")
        elif result.verdict is Verdict.FAIL and not result.is_blocking:
            yield StyledLine(_format_result("info", result))
    for result in score.select_results(Verdict.NA):
        if not result.is_unverified:
            yield StyledLine(_format_result("not judged", result), "yellow")


def _format_result(word: str, result: Result) -> str:
    details = " ".join(result.details.split())
    text = f"  {word}: {result.rule.id}" + (f": {details}" if details else "")
    return text if len(text) <= MAX_WIDTH else text[: MAX_WIDTH - 3] + "..."
