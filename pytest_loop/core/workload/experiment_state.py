"""The notebook of an experiment: what a run of a workload remembers beside its score, and what each event adds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from pydantic import ConfigDict, Field

from pytest_loop.core.model.rules import Value
from pytest_loop.core.model.vocabulary import Kind
from pytest_loop.core.workload.analysis import Analysis, Option, TriedEdit
from pytest_loop.core.workload.hypotheses import (
    Decision,
    Hypothesis,
    Judgement,
    OnPlateau,
    OnRegression,
    Policy,
    at_a_plateau,
    at_a_regression,
    hypothesis,
    judged,
)
from pytest_loop.core.workload.measurement import CaseResult, Measurement, compare_measurements, suggest_cases

Payload = Mapping[str, Any]


class Notebook(Value):
    """What was frozen when an experiment began, and what has been found since.

    `cases` are run, `hidden` are those among them that no composer sees. The last of the `measurements` is whole, of
    the others only the outcomes are kept. `edit` is the last one, `tried` are all of them. `analysis` (with the hashes
    of the `files` that it is about), `decision`, `regression` and `plateau` belong to the last measurement; `settled`
    is the one after which it was last decided to go on at a plateau.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", ignored_types=(cached_property,), defer_build=True)

    manifest: str
    workload: str
    cases: tuple[str, ...]
    artifacts: tuple[str, ...]
    policy: Policy = Policy()
    focus: tuple[str, ...] = ()
    guards: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    hidden: frozenset[str] = frozenset()
    plan: str = ""
    is_calibrated: bool | None = None
    measurements: tuple[Measurement, ...] = ()
    hypotheses: tuple[Hypothesis, ...] = ()
    judgements: tuple[Judgement, ...] = ()
    edit: Option | None = None
    tried: tuple[TriedEdit, ...] = ()
    files: dict[str, str] = Field(default_factory=dict)
    analysis: Analysis | None = None
    decision: Decision | None = None
    regression: OnRegression | None = None
    plateau: OnPlateau | None = None
    settled: int = -1

    @cached_property
    def seen(self) -> tuple[Measurement, ...]:
        """What a composer may know, which is also what decides how the experiment goes on."""
        return tuple(one.exclude_cases(self.hidden) for one in self.measurements)

    @property
    def last(self) -> Measurement | None:
        return self.seen[-1] if self.seen else None

    @property
    def has_converged(self) -> bool:
        return self.last is not None and self.last.has_converged

    @property
    def is_edited(self) -> bool:
        """Whether there is something new to measure."""
        return self.decision is not None and self.decision.chosen is not None

    @property
    def untested(self) -> Hypothesis | None:
        """The hypothesis that the last measurement is about, as long as nobody has said what became of it."""
        known = {one.iteration for one in self.judgements}
        at = self.measurements[-1].iteration if self.measurements else 0
        return next((one for one in self.hypotheses if one.iteration < at and one.iteration not in known), None)

    def held_out(self, measurement: Measurement) -> tuple[int, int] | None:
        """How many of the cases that no composer sees pass, and of how many; None where there are none."""
        hidden = [one for one in measurement.results if one.id in self.hidden]
        return (sum(one.passed for one in hidden), len(hidden)) if hidden else None


# What is noted after a measurement, before anybody decides how to go on, in this order.
NOTES = (Kind.HYPOTHESIS_JUDGED, Kind.REGRESSION_DETECTED, Kind.PLATEAU_REACHED)


def due_note(book: Notebook) -> Kind | None:
    """What has to be noted next about the last measurement."""
    holds = {
        Kind.HYPOTHESIS_JUDGED: book.untested is not None,
        Kind.REGRESSION_DETECTED: book.regression is None
        and at_a_regression(book.seen, book.policy, is_attended=False) is not None,
        Kind.PLATEAU_REACHED: book.plateau is None
        and not book.has_converged
        and book.regression is not OnRegression.STOP
        and at_a_plateau(book.seen, book.policy, book.settled, is_attended=False) is not None,
    }
    return next((kind for kind in NOTES if holds[kind]), None)


def is_hypothesis_due(book: Notebook, iteration: int) -> bool:
    """Whether an edit was made about which nobody has written down what it should do."""
    return book.is_edited and not any(one.iteration == iteration for one in book.hypotheses)


def formed(book: Notebook, iteration: int) -> Payload:
    """What the edit that was decided on should do."""
    if book.analysis is None or book.decision is None:
        return {}
    found = hypothesis(book.analysis, book.decision, iteration)
    return found.model_dump(mode="json") if found else {}


def weighed(book: Notebook) -> Payload:
    """What the last measurement says about the hypothesis before it."""
    said = book.untested
    if said is None or len(book.seen) < 2:
        return {}
    return judged(said, book.seen[-2], book.seen[-1], book.guards).model_dump(mode="json")


def worse(book: Notebook, action: OnRegression) -> Payload:
    """The cases that became worse and better with the last edit, and what is done about it."""
    happened = compare_measurements(book.seen[-2], book.seen[-1])
    return {
        "regressions": list(happened.regressions),
        "fixed": list(happened.fixed),
        "likely_cause": book.edit.name if book.edit else "",
        "action": action.value,
    }


def _measured(book: Notebook, payload: Payload) -> dict[str, Any]:
    """A measurement begins a new page; of the one before only the outcomes stay."""
    new = Measurement.model_validate(payload["measurement"])
    earlier = (_short(one) for one in book.measurements)
    page = {"decision": None, "regression": None, "plateau": None}
    return {"measurements": (*earlier, new), "analysis": None, **page}


def _short(one: Measurement) -> Measurement:
    results = tuple(CaseResult(id=each.id, outcome=each.outcome) for each in one.results)
    return Measurement(iteration=one.iteration, results=results)


def _baseline(book: Notebook, payload: Payload) -> dict[str, Any]:
    """The first measurement also says what to look at, where the person has not."""
    found = _measured(book, payload)
    focus, guards = suggest_cases(found["measurements"][-1], book.hidden)
    return {**found, "focus": book.focus or focus, "guards": book.guards or guards}


def _analysed(_book: Notebook, payload: Payload) -> dict[str, Any]:
    files = dict(payload.get("files") or {})
    return {"analysis": Analysis.model_validate(payload["analysis"]), "files": files, "decision": None}


def _decided(book: Notebook, payload: Payload) -> dict[str, Any]:
    """What was chosen; an edit is remembered with the cases that failed when it was made."""
    decision = Decision.model_validate(payload["decision"])
    if not payload.get("option") or book.last is None:
        return {"decision": decision}
    option = Option.model_validate(payload["option"])
    tried = TriedEdit(edit=option.edit, failing=book.last.failing)
    return {"decision": decision, "edit": option, "tried": (*book.tried, tried)}


def _settled(book: Notebook, payload: Payload) -> dict[str, Any]:
    """A plateau that is gone on from is counted anew."""
    action = OnPlateau(payload["action"])
    goes_on = action is OnPlateau.CONTINUE and bool(book.measurements)
    return {"plateau": action, **({"settled": book.measurements[-1].iteration} if goes_on else {})}


_CHANGES: dict[Kind, Callable[[Notebook, Payload], dict[str, Any]]] = {
    Kind.CALIBRATION_DONE: lambda _book, payload: {"is_calibrated": bool(payload.get("passed"))},
    Kind.BASELINE_DONE: _baseline,
    Kind.EVALUATION_DONE: _measured,
    Kind.CRITIQUE_DONE: _analysed,
    Kind.REFINEMENT_DONE: _decided,
    Kind.HYPOTHESIS_FORMED: lambda book, payload: {
        "hypotheses": (*book.hypotheses, Hypothesis.model_validate(payload))
    },
    Kind.HYPOTHESIS_JUDGED: lambda book, payload: {"judgements": (*book.judgements, Judgement.model_validate(payload))},
    Kind.REGRESSION_DETECTED: lambda _book, payload: {"regression": OnRegression(payload["action"])},
    Kind.PLATEAU_REACHED: _settled,
}


def noted(book: Notebook, kind: Kind, payload: Payload) -> Notebook:
    """The notebook after an event; most kinds write nothing into it."""
    write = _CHANGES.get(kind)
    return Notebook.model_validate({**dict(book), **write(book, payload)}) if write else book


def reconsidered(book: Notebook, payload: Payload) -> Notebook:
    """The notebook after a person has said that an experiment which a policy has stopped is to go on."""
    found, policy = dict(book), book.policy
    if book.regression is OnRegression.STOP and payload.get("on_regression"):
        found["regression"] = OnRegression(payload["on_regression"])
        policy = policy.model_copy(update={"on_regression": found["regression"]})
    if book.plateau is OnPlateau.STOP and payload.get("on_plateau"):
        found |= _settled(book, {"action": payload["on_plateau"]})
        policy = policy.model_copy(update={"on_plateau": found["plateau"]})
    return Notebook.model_validate({**found, "policy": policy})
