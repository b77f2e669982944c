"""What a run is judged by, frozen when it began."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PlainSerializer

from pytest_loop.core.model.rules import DEFAULT_THRESHOLDS, Criteria, Phase, Rule, Value


def _exact(value: Any) -> Any:
    """What a person wrote as 0.9 is nine tenths, and not the nearest binary fraction."""
    return Fraction(repr(value)) if isinstance(value, float) else value


def _number(value: Fraction) -> int | float | str:
    """The number as other tools write it; as a fraction where no decimal number says the same."""
    if value.denominator == 1:
        return int(value)
    return float(value) if Fraction(repr(float(value))) == value else str(value)


Exact = Annotated[Fraction, BeforeValidator(_exact), PlainSerializer(_number)]


class RunRule(Rule):
    """A rule as a run froze it; `key` is its name in a session, `check` the sentence that its author wrote."""

    weight: Exact = Fraction(2)
    key: str = ""
    check: Any = None


class Level(Value):
    """What a phase asks for, and the levels of rules that are active in it."""

    threshold: Exact
    active_levels: tuple[Phase, ...]


def build_levels(thresholds: dict[Phase, Fraction]) -> dict[Phase, Level]:
    """A is judged alone, B with A."""
    return {
        Phase.A: Level(threshold=thresholds[Phase.A], active_levels=(Phase.A,)),
        Phase.B: Level(threshold=thresholds[Phase.B], active_levels=(Phase.A, Phase.B)),
    }


class RunCriteria(Value):
    """The frozen snapshot of what a run is judged by."""

    name: str = "loop_default_v1"
    version: int = 1
    phase: dict[Phase, Level] = Field(default_factory=lambda: build_levels(DEFAULT_THRESHOLDS))
    rules: tuple[RunRule, ...] = ()

    def get_active_rules(self, phase: Phase) -> tuple[RunRule, ...]:
        """The rules that a phase judges."""
        return self._by_phase[phase]

    def get_active_ids(self, phase: Phase) -> frozenset[str]:
        """Their names."""
        return self._ids_by_phase[phase]

    @cached_property
    def _by_phase(self) -> dict[Phase, tuple[RunRule, ...]]:
        return {
            phase: tuple(rule for rule in self.rules if rule.phase in level.active_levels)
            for phase, level in self.phase.items()
        }

    @cached_property
    def by_id(self) -> dict[str, RunRule]:
        return {rule.id: rule for rule in self.rules}

    @cached_property
    def _ids_by_phase(self) -> dict[Phase, frozenset[str]]:
        return {phase: frozenset(rule.id for rule in self.get_active_rules(phase)) for phase in self.phase}

    @cached_property
    def session_criteria(self) -> Criteria:
        """As a session has them, for those who judge; a rule keeps its id alone."""
        return Criteria(
            name=self.name,
            source="",
            version=self.version,
            thresholds={one: level.threshold for one, level in self.phase.items()},
            rules=self.rules,
        )

    @property
    def has_phase_b(self) -> bool:
        """Whether B judges anything that A does not."""
        return any(rule.phase is Phase.B for rule in self.rules)
