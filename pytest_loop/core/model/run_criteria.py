"""The criteria of a run, frozen when it starts."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PlainSerializer

from pytest_loop.core.model.rules import DEFAULT_THRESHOLDS, TESTS_SOURCE, Criteria, Phase, Rule, Value


def _parse_exactly(value: Any) -> Any:
    """Read 0.9 as nine tenths, not as the nearest binary fraction."""
    return Fraction(repr(value)) if isinstance(value, float) else value


def _serialize(value: Fraction) -> int | float | str:
    """Write a plain number if it is exact, else a fraction such as `1/3`."""
    if value.denominator == 1:
        return int(value)
    return float(value) if Fraction(repr(float(value))) == value else str(value)


Exact = Annotated[Fraction, BeforeValidator(_parse_exactly), PlainSerializer(_serialize)]


class RunRule(Rule):
    """A frozen rule; `key` is its name in a session, `check` is as its author wrote it, a text if in plain words."""

    weight: Exact = Fraction(2)
    key: str = ""
    check: Any = None

    @property
    def source(self) -> str:
        """The rule file, relative to the root of the project if it is inside."""
        return self.key.partition("::")[0]

    @property
    def is_test(self) -> bool:
        """Whether it is a Python test, not a rule of a rule file."""
        return self.key.startswith(f"{TESTS_SOURCE}::")

    @property
    def is_module(self) -> bool:
        """Whether it stands for a test module that could not be imported at the start of the run."""
        return self.is_test and self.id.endswith(".py") and "::" not in self.id

    @property
    def is_command(self) -> bool:
        """Whether it is decided by a program, but not by a Python test."""
        return self.proof.is_executed and not self.is_test

    @property
    def path(self) -> str:
        """The file of the test, or else the rule file."""
        return self.id.partition("::")[0] if self.is_test else self.source


class Level(Value):
    """The score threshold of a phase, and the levels of rules that are active in it."""

    threshold: Exact
    active_levels: tuple[Phase, ...]


def build_levels(thresholds: dict[Phase, Fraction]) -> dict[Phase, Level]:
    """Build the levels of both phases: A is judged alone, B together with A."""
    return {
        Phase.A: Level(threshold=thresholds[Phase.A], active_levels=(Phase.A,)),
        Phase.B: Level(threshold=thresholds[Phase.B], active_levels=(Phase.A, Phase.B)),
    }


class RunCriteria(Value):
    """The frozen criteria of a run."""

    name: str = "loop_default_v1"
    version: int = 1
    phase: dict[Phase, Level] = Field(default_factory=lambda: build_levels(DEFAULT_THRESHOLDS))
    rules: tuple[RunRule, ...] = ()

    def replace_rules(self, rules: Iterable[RunRule]) -> RunCriteria:
        """Return the criteria with other rules; a copy would keep cached properties of the old ones."""
        return RunCriteria(name=self.name, version=self.version, phase=self.phase, rules=tuple(rules))

    def get_active_rules(self, phase: Phase) -> tuple[RunRule, ...]:
        return self._by_phase[phase]

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
    def session_criteria(self) -> Criteria:
        """The same criteria in the form that sessions use."""
        return Criteria(
            name=self.name,
            source="",
            version=self.version,
            thresholds={phase: level.threshold for phase, level in self.phase.items()},
            rules=self.rules,
        )

    @cached_property
    def goals(self) -> tuple[RunRule, ...]:
        """All rules except guards."""
        return tuple(rule for rule in self.rules if not rule.guard)

    @cached_property
    def guards(self) -> tuple[RunRule, ...]:
        """The rules that passed before the first edit and must keep passing."""
        return tuple(rule for rule in self.rules if rule.guard)

    @cached_property
    def has_tests_only(self) -> bool:
        """Whether there are only Python tests, and no linters or other checks."""
        return all(rule.is_test for rule in self.rules)

    @property
    def has_phase_b(self) -> bool:
        return any(rule.phase is Phase.B for rule in self.rules)
