"""The `loop score` section: one line per criteria, then what blocks and what could not be judged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import NamedTuple

from pytest_loop.core.model.rules import Evaluation, Result, Verdict

WIDEST = 300


class Line(NamedTuple):
    """A line of text and how it is marked."""

    text: str
    colour: str | None = None


def score_lines(evaluations: Iterable[Evaluation], worse: list[str] | None = None) -> Iterator[Line]:
    """The whole section."""
    done = list(evaluations)
    width = max((len(one.criteria) for one in done), default=0)
    for one in done:
        yield Line(headline(one, width), "green" if one.passed else "red")
        yield from _reasons(one)
    if worse is not None:
        yield Line(f"worse than the baseline: {', '.join(worse) or 'nothing'}", "red" if worse else "green")


def headline(one: Evaluation, width: int = 0) -> str:
    """`courses-api  PASS  0.917 (11 of 12) >= 0.9 in phase B, 8 rules: 7 passed, 1 warned`."""
    failed = one.select_results(Verdict.FAIL)
    counts = {
        "passed": len(one.select_results(Verdict.PASS)),
        "failed": sum(result.is_blocking for result in failed),
        "info": sum(not result.is_blocking for result in failed),
        "warned": len(one.select_results(Verdict.WARN)),
        "not judged": len(one.select_results(Verdict.NA)),
    }
    told = ", ".join(f"{number} {word}" for word, number in counts.items() if number)
    sign = ">=" if one.score >= one.threshold else "<"
    selected = (
        f"{len(one.results)} of {one.total} rules selected" if len(one.results) < one.total else _rules(one.total)
    )
    return (
        f"{one.criteria:<{width}}  {'PASS' if one.passed else 'FAIL'}  {decimal(one.score)} "
        f"({decimal(one.earned)} of {decimal(one.possible)}) {sign} {decimal(one.threshold)} "
        f"in phase {one.phase.value}, {selected}: {told}"
    )


def _rules(number: int) -> str:
    return f"{number} rule" if number == 1 else f"{number} rules"


def _reasons(one: Evaluation) -> Iterator[Line]:
    for result in one.results:
        if result.is_blocking:
            yield Line(_told("blocks", result), "red")
    for result in one.results:
        if result.verdict is Verdict.WARN:
            yield Line(_told("warns", result), "yellow")
        elif result.verdict is Verdict.FAIL and not result.is_blocking:
            yield Line(_told("info", result))
    for result in one.select_results(Verdict.NA):
        yield Line(_told("not judged", result), "yellow")


def _told(word: str, result: Result) -> str:
    details = " ".join(result.details.split())
    text = f"  {word}: {result.rule.id}" + (f": {details}" if details else "")
    return text if len(text) <= WIDEST else text[: WIDEST - 3] + "..."


def format_score(score: float) -> str:
    """Format a score exactly as it was written, so that 0.9 is nine tenths."""
    return decimal(Fraction(repr(score)))


def decimal(number: Fraction) -> str:
    """At most three decimals; rounded towards failure, so that 0.8999 never reads as 0.9."""
    thousandths = number * 1000
    return f"{(thousandths.numerator // thousandths.denominator) / 1000:g}"
