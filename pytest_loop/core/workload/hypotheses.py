"""Hypotheses of an experiment, their outcomes, and the policies that decide how it continues."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import Enum
from typing import Annotated, Literal

from pydantic import Field

from pytest_loop.core.model.rules import Value
from pytest_loop.core.workload.analysis import OPTION_COUNT, Analysis, EditOption
from pytest_loop.core.workload.measurement import Measurement, compare_measurements, find_best

# A plateau is this many measurements without a new best one.
PLATEAU_LENGTH = 2
# After this many measurements, exploration must not pass fewer cases than the baseline.
EXPLORATION_LENGTH = 3


class Truth(str, Enum):
    """The verdict on a hypothesis."""

    UNTESTED = "untested"
    CONFIRMED = "confirmed"
    REJECTED = "rejected"
    PARTIALLY_CONFIRMED = "partially_confirmed"


class Hypothesis(Value):
    """The predicted effect of an edit: its mechanism, the cases that improve (`prediction`), and those it regresses."""

    iteration: int
    theory: str
    mechanism: str = ""
    observation: str = ""
    prediction: tuple[str, ...] = ()
    regresses: tuple[str, ...] = ()


class HypothesisOutcome(Value):
    """The verdict of a measurement on a hypothesis.

    `improved` and `missed` are the predicted cases that improved, and those that did not. `regressions` are all cases
    that regressed: `guards` are the guards among them, `unexpected` the cases that the hypothesis did not name.
    """

    iteration: int
    truth: Truth
    improved: tuple[str, ...] = ()
    missed: tuple[str, ...] = ()
    regressions: tuple[str, ...] = ()
    guards: tuple[str, ...] = ()
    unexpected: tuple[str, ...] = ()


def judge_hypothesis(
    hypothesis: Hypothesis, before: Measurement, after: Measurement, guards: Collection[str] = ()
) -> HypothesisOutcome:
    """Compare a prediction with the change between two measurements.

    The hypothesis is confirmed if all its cases improved and no guard regressed.
    """
    change = compare_measurements(before, after)
    improved = tuple(case for case in hypothesis.prediction if case in change.fixed)
    broken = tuple(case for case in change.regressions if case in guards)
    return HypothesisOutcome(
        iteration=hypothesis.iteration,
        truth=_decide_truth(len(improved), len(hypothesis.prediction), bool(broken)),
        improved=improved,
        missed=tuple(case for case in hypothesis.prediction if case not in change.fixed),
        regressions=change.regressions,
        guards=broken,
        unexpected=tuple(case for case in change.regressions if case not in hypothesis.regresses),
    )


def _decide_truth(improved: int, predicted: int, is_guard_broken: bool) -> Truth:
    if not predicted:
        return Truth.UNTESTED
    if not improved:
        return Truth.REJECTED
    return Truth.CONFIRMED if improved == predicted and not is_guard_broken else Truth.PARTIALLY_CONFIRMED


class OptionDecision(Value):
    """The number of the chosen option, or None to skip the iteration; `feedback` is for the composer."""

    chosen: Annotated[int, Field(ge=1, le=OPTION_COUNT)] | None
    reason: str = ""
    feedback: str = ""

    def get_option(self, analysis: Analysis) -> EditOption | None:
        return None if self.chosen is None else analysis.options[self.chosen - 1]


RECOMMENDED = OptionDecision(chosen=1, reason="recommended")


def form_hypothesis(analysis: Analysis, decision: OptionDecision, iteration: int) -> Hypothesis | None:
    """Return the hypothesis behind the chosen option; None if no option was chosen."""
    option = decision.get_option(analysis)
    if option is None:
        return None
    claim = analysis.hypothesis
    predicted = claim.prediction if decision.chosen == 1 and claim.prediction else option.improves
    return Hypothesis(
        iteration=iteration,
        theory=claim.theory,
        mechanism=option.mechanism,
        observation=claim.observation or analysis.root_cause,
        prediction=predicted,
        regresses=option.regresses,
    )


class ExperimentMode(Value):
    """A style of experiments, with texts for the composer's prompt; some styles accept cases that became worse."""

    role: str
    focus: str
    hypothesis: str
    success: str
    tolerates_regressions: bool = False


MODES: dict[str, ExperimentMode] = {
    "precision": ExperimentMode(
        role="You fix one pattern of failures at a time, with the smallest edit that does it.",
        focus="One failure pattern and one variable in each iteration.",
        hypothesis="The artifact lacks X at L, which makes cases C fail as F; adding M fixes exactly those.",
        success="The cases aimed at improve, and no other case becomes worse.",
    ),
    "exploration": ExperimentMode(
        role="You question how the artifact is built, and try another structure.",
        focus="Bold changes; cases may break on the way.",
        hypothesis="The artifact assumes X; with Y instead, P may break and Q may become possible.",
        success="More cases pass at the end of the whole arc than at its beginning.",
        tolerates_regressions=True,
    ),
    "convergence": ExperimentMode(
        role="You finish what is nearly done.",
        focus="Only the cases that still fail: edge cases and tolerances.",
        hypothesis="Case C still fails because of the edge X; M covers it and leaves the rest alone.",
        success="No case of those aimed at fails.",
    ),
}
MODES["custom"] = MODES["precision"].model_copy(
    update={
        "role": "You choose in each iteration: a small edit, another structure, or the last edge cases.",
        "focus": "What the failures ask for; where that is unclear, one pattern and one variable.",
    }
)


class OnPlateau(str, Enum):
    """The reaction to a plateau: measurements without improvement."""

    ASK = "ask"
    CONTINUE = "continue"
    STOP = "stop"


class OnRegression(str, Enum):
    """The reaction to cases that became worse; an edit is never reverted silently."""

    ASK = "ask"
    ACCEPT = "accept"
    DIFFERENT = "different"
    STOP = "stop"


class OptionChoice(str, Enum):
    """How an option is chosen: ask the user, or take the recommended one."""

    ASK = "ask"
    RECOMMENDED = "recommended"


class Policy(Value):
    """The user's choices for an experiment; without `on_regression`, the mode decides.

    If there is no user to ask, ASK means STOP for plateaus and regressions.
    """

    mode: Literal["precision", "exploration", "convergence", "custom"] = "precision"
    on_plateau: OnPlateau = OnPlateau.ASK
    on_regression: OnRegression | None = None
    decide: OptionChoice = OptionChoice.ASK


def decide_on_regression(
    measurements: Sequence[Measurement], policy: Policy, *, is_attended: bool
) -> OnRegression | None:
    """Return the action for cases that became worse; None if there are none.

    Without `on_regression`, exploration accepts them, unless fewer cases pass than at the baseline after
    EXPLORATION_LENGTH measurements. If no user is attending, ASK becomes STOP.
    """
    if len(measurements) < 2 or not compare_measurements(measurements[-2], measurements[-1]).regressions:
        return None
    if policy.on_regression is None and MODES[policy.mode].tolerates_regressions:
        has_lost_cases = len(measurements[-1].passing) < len(measurements[0].passing)
        if not has_lost_cases or len(measurements) <= EXPLORATION_LENGTH:
            return OnRegression.ACCEPT
    action = policy.on_regression or OnRegression.ASK
    return OnRegression.STOP if action is OnRegression.ASK and not is_attended else action


def decide_on_plateau(
    measurements: Sequence[Measurement], policy: Policy, continued_after: int = -1, *, is_attended: bool
) -> OnPlateau | None:
    """Return the action at a plateau; None if there is progress.

    `continued_after` is the iteration of the last plateau at which it was decided to continue. If no user is
    attending, ASK becomes STOP.
    """
    if count_flat_measurements(measurements, continued_after) < PLATEAU_LENGTH:
        return None
    return OnPlateau.STOP if policy.on_plateau is OnPlateau.ASK and not is_attended else policy.on_plateau


def count_flat_measurements(measurements: Sequence[Measurement], continued_after: int = -1) -> int:
    """Count the measurements after the best one and after the iteration `continued_after`, whichever is later."""
    since = max(find_best(measurements).iteration, continued_after) if measurements else continued_after
    return sum(measurement.iteration > since for measurement in measurements)


class Trend(str, Enum):
    """The change of the number of passing cases in an iteration."""

    IMPROVED = "Improved"
    DEGRADED = "Degraded"
    NEUTRAL = "Neutral"


def classify_trend(before: Measurement, after: Measurement) -> Trend:
    """Compare the numbers of passing cases."""
    gained = len(after.passing) - len(before.passing)
    return Trend.IMPROVED if gained > 0 else Trend.DEGRADED if gained < 0 else Trend.NEUTRAL
