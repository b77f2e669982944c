"""The decisions from before a run began: agents, limits, the confirmed draft, and what was sealed."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from pytest_loop.core.model.evaluation import Seal
from pytest_loop.core.model.rules import Value
from pytest_loop.core.model.vocabulary import Target

# Counts and limits are whole numbers: neither "600", nor 600.5, nor true.
Count = Annotated[int, Field(strict=True, ge=1)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Limits(Value):
    """The budgets of a run; None is no limit. With `counts_estimates`, estimated costs count too."""

    usd: Amount | None = 25.0
    tokens: int | None = None
    counts_estimates: bool = False


class Breakers(Value):
    """The thresholds of automatic stops, which `core/machine/breakers.py` defines; 0 turns one off."""

    stuck: int = 5
    same_error: int = 3
    thrashing: int = 5
    stagnation: int = 2
    min_gain: float = 0.02
    plateau: float = 0.0
    diminishing: float = 0.0
    confidence: float = 0.0


class IterationControl(Value):
    """The settings of retries and escalations, named as other tools of the format name them."""

    auto_retry_on_test_fail: bool = True
    auto_retry_on_review_reject: bool = True
    escalation_includes_diff: bool = True
    feedback_max_length: Annotated[int, Field(ge=1)] = 500


class ConfirmedDraft(Value):
    """The draft that was confirmed before the run began.

    `shape` decides which questions are asked on the way, `workflow` is the kind of work, `reversal` how hard it is to
    undo. `unjudged` are blocking rules in plain words that are only in the prompt, because no judge was chosen.
    `unmeasured` are names of new code in the task that occur in no test that failed before the first edit.
    """

    shape: str = "tool"
    workflow: str = ""
    reversal: str = "2B"
    clarity: int | None = None
    confirmed_by: str = ""
    unjudged: tuple[str, ...] = ()
    unmeasured: tuple[str, ...] = ()

    @property
    def is_unread(self) -> bool:
        """Whether an option confirmed the draft, and no person who read it."""
        return self.confirmed_by in ("--loop-yes", "loop_ask")


class Origin(Value):
    """How a run was started: its command line, the commit that was checked out, and the versions of programs."""

    command: str = ""
    revision: str = ""
    versions: dict[str, str] = Field(default_factory=dict)


class Setup(Value):
    """The decisions from before the run began; only limits are raised later.

    `inferred_rules` is the text of the rule file that was inferred. With `is_unsigned`, another machine or tool may
    have written the history before the run was resumed. With `edits_first`, an agent works before the first evaluation:
    every rule passes already, and must keep passing. With `work_seal`, an agent first writes tests for the task and may
    change nothing else; this seal is for the work that follows. `written_tests` are the files of these tests.
    """

    target: Target = Target.ARTIFACT
    artifact: str = ""
    agents: tuple[str, ...] = ()
    judge: str = ""
    candidates: Count = 1
    arguments: tuple[str, ...] = ()
    inferred_rules: str = ""
    limits: Limits = Field(default_factory=Limits)
    breakers: Breakers = Field(default_factory=Breakers)
    control: IterationControl = Field(default_factory=IterationControl)
    draft: ConfirmedDraft = Field(default_factory=ConfirmedDraft)
    seal: Seal | None = None
    edits_first: bool = False
    is_unsigned: bool = False
    work_seal: Seal | None = None
    written_tests: tuple[str, ...] = ()
    origin: Origin = Field(default_factory=Origin)
