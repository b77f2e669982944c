"""What earlier runs teach: which edit mended a failure that said the same as one of now."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from pytest_loop.core.model.rules import Verdict
from pytest_loop.core.model.run_state import Assessment, Event, Kind, RuleResult, RunState
from pytest_loop.core.text.lengths import fit_tokens, shorten
from pytest_loop.core.text.sanitizer import reveal_hidden
from pytest_loop.core.text.wording import limit_lines

MOST_OFFERED = 3
MOST_LINES = 24
MOST_TOKENS = 400
_LONGEST_LINE = 160
_EDITS = (Kind.ARTIFACT_CREATED.value, Kind.REFINEMENT_DONE.value)


@dataclass(frozen=True)
class Lesson:
    """A failure and the edit after which it was gone; `others` counts what the same edit mended beside it."""

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
        """Where it was learnt."""
        return f"{self.run}, iteration {self.iteration}"


def lessons(events: Iterable[Event], run: str) -> list[Lesson]:
    """What the history of a run teaches: only what judges confirmed, and what did not come back later in that run."""
    learnt: dict[tuple[str, str], Lesson] = {}
    before: Assessment | None = None
    edit: Event | None = None
    for event in events:
        if event.event in _EDITS:
            edit = event
        elif event.event == Kind.EVALUATION_DONE.value:
            now = _sound(event)
            for one in _failing(now):
                learnt.pop((one.id, one.signature), None)
            if before and now and edit:
                learnt |= {(one.rule, one.signature): one for one in _mended(before, now, edit, run)}
            before, edit = now, None
    return list(learnt.values())


def _sound(event: Event) -> Assessment | None:
    """An evaluation that can be believed; what a void one says about an edit is nothing."""
    try:
        one = Assessment.model_validate({**event.payload, "phase": event.phase})
    except ValidationError:  # another tool's
        return None
    return None if one.void else one


def _failing(one: Assessment | None) -> list[RuleResult]:
    results = one.rule_results if one else ()
    return [each for each in results if each.verdict in (Verdict.FAIL, Verdict.WARN) and each.signature]


def _mended(before: Assessment, now: Assessment, edit: Event, run: str) -> list[Lesson]:
    diff = edit.payload.get("diff")
    if not isinstance(diff, str) or not diff.strip():
        return []
    left = {one.id for one in now.rule_results}
    gone = [one for one in _failing(before) if one.id not in left and one.details]
    return [
        Lesson(one.signature, one.id, _problem(one), diff, run, edit.iteration, edit.ts, len(gone) - 1) for one in gone
    ]


def _problem(one: RuleResult) -> str:
    return shorten(str(one.findings[0]) if one.findings else one.details, 300)


def recalled(state: RunState, known: Sequence[Lesson]) -> list[Lesson]:
    """The lessons about what fails now, at most three: one for each failure before a second one for any of them.

    A lesson of the same rule comes first, then one of an edit that mended little else, then the newest. What is held
    out is not spoken of.
    """
    hidden = {rule.id for rule in state.criteria.rules if rule.holdout}
    chosen: list[tuple[int, Lesson]] = []
    seen: set[str] = set()
    for failing in _failing(state.evaluation):
        if failing.id in hidden or failing.signature in seen:
            continue
        seen.add(failing.signature)
        fitting = _distinct(one for one in known if one.signature == failing.signature)
        newest = sorted(fitting, key=lambda one: one.ts, reverse=True)
        ranked = sorted(newest, key=lambda one: (one.rule != failing.id, one.others))
        chosen += enumerate(ranked[:MOST_OFFERED])
    chosen.sort(key=lambda pair: pair[0])
    return [one for _, one in chosen[:MOST_OFFERED]]


def _distinct(found: Iterable[Lesson]) -> list[Lesson]:
    """Of several that tell of the same edit, the last."""
    return list({one.diff: one for one in found}.values())


def rendered(offered: Sequence[Lesson]) -> str:
    """The lessons as a prompt has them, within their tokens whatever they hold."""
    return "\n\n".join(_told(number, one) for number, one in enumerate(offered, 1))


def _told(number: int, one: Lesson) -> str:
    more = f", and {one.others} more with it" if one.others else ""
    head = f"{number}. {shorten(one.rule)} said: {one.problem}\n   This edit mended it{more} ({shorten(one.name)}):"
    lines = [reveal_hidden(line[:_LONGEST_LINE]) for line in one.diff.split("\n")]
    shown = limit_lines(lines, MOST_LINES, "... and {} more lines")
    return fit_tokens("\n".join([head, *(f"   | {line}" for line in shown)]), MOST_TOKENS)
