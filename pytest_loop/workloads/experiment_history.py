"""An experiment read back from its events: what was measured, believed, decided and found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_loop.core.events.event import Event
from pytest_loop.core.workload.analysis import Analysis, Option
from pytest_loop.core.workload.hypotheses import Decision, Hypothesis, Judgement
from pytest_loop.core.workload.measurement import Measurement


@dataclass
class Trail:
    """By iteration: what each left behind. Measurements are in order; the first one is the baseline.

    Cases that were held out are not in them: `held_out` says how many of those pass at the end, and of how many.
    """

    settings: dict[str, Any] = field(default_factory=dict)
    hidden: frozenset[str] = frozenset()
    held_out: tuple[int, int] | None = None
    calibration: dict[str, Any] = field(default_factory=dict)
    measurements: list[Measurement] = field(default_factory=list)
    hypotheses: dict[int, Hypothesis] = field(default_factory=dict)
    judgements: dict[int, Judgement] = field(default_factory=dict)
    analyses: dict[int, Analysis] = field(default_factory=dict)
    decisions: dict[int, Decision] = field(default_factory=dict)
    edits: dict[int, Option] = field(default_factory=dict)
    regressions: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    reason: str = ""

    @property
    def baseline(self) -> Measurement | None:
        return self.measurements[0] if self.measurements else None

    @property
    def final(self) -> Measurement | None:
        return self.measurements[-1] if self.measurements else None

    @property
    def iterations(self) -> list[int]:
        """The iterations that left something, in order."""
        return sorted({*self.hypotheses, *self.analyses, *self.decisions, *self.edits})

    def pairs(self) -> list[tuple[Measurement, Measurement]]:
        """Each measurement with the one before."""
        return list(zip(self.measurements, self.measurements[1:], strict=False))


def trail(events: Iterable[Event]) -> Trail:
    """The experiment that these events tell; kinds and keys that nobody knows here are left out."""
    found = Trail()
    for event in events:
        _note(found, event)
    return found


def _note(found: Trail, event: Event) -> None:
    payload, at = event.payload, event.iteration
    if event.event == "run_started":
        found.settings = dict(payload)
        book = (payload.get("state") or {}).get("notebook") or {}
        found.hidden = frozenset(book.get("hidden", ()))
    elif event.event == "calibration_done":
        found.calibration = dict(payload)
    elif event.event in ("baseline_done", "evaluation_done") and "measurement" in payload:
        whole = Measurement.model_validate(payload["measurement"])
        found.measurements.append(whole.exclude_cases(found.hidden))
        unseen = [one.passed for one in whole.results if one.id in found.hidden]
        found.held_out = (sum(unseen), len(unseen)) if unseen else None
    elif event.event in ("stopped", "failed"):
        found.reason = str(payload.get("reason", ""))
    else:
        _note_belief(found, event.event, at, payload)


def _note_belief(found: Trail, kind: str, at: int, payload: Mapping[str, Any]) -> None:
    if kind == "hypothesis_formed":
        found.hypotheses[at] = Hypothesis.model_validate(payload)
    elif kind == "hypothesis_judged":
        judgement = Judgement.model_validate(payload)
        found.judgements[judgement.iteration] = judgement
    elif kind == "critique_done" and "analysis" in payload:
        found.analyses[at] = Analysis.model_validate(payload["analysis"])
    elif kind == "refinement_done" and "decision" in payload:
        found.decisions[at] = Decision.model_validate(payload["decision"])
        if payload.get("option"):
            found.edits[at] = Option.model_validate(payload["option"])
    elif kind == "regression_detected":
        found.regressions[at] = payload
