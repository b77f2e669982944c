"""The plan that a person wrote before an experiment: hypotheses in order, and the roles of cases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from pytest_loop.errors import ManifestError, Problem
from pytest_loop.rules.syntax import ContentError, read_text
from pytest_loop.workloads.manifest import Text, load_file

Degree = Literal["high", "medium", "low"]
_RANKS = ("high", "medium", "low")
_PROSE_SUFFIXES = (".md", ".txt")


class _PlanModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class PlannedHypothesis(_PlanModel):
    """A hypothesis to be tested, with its priority and confidence."""

    theory: Text
    observation: str = ""
    mechanism: str = ""
    prediction: list[Text] = Field(default_factory=list)
    priority: Degree = "medium"
    confidence: Degree = "medium"

    @property
    def rank(self) -> tuple[int, int]:
        return _RANKS.index(self.priority), _RANKS.index(self.confidence)

    def __str__(self) -> str:
        sentences = [self.theory, self.observation, self.mechanism and f"Mechanism: {self.mechanism}"]
        sentences.append(f"Predicted: {', '.join(self.prediction)}" if self.prediction else "")
        text = " ".join(sentence.removesuffix(".") + "." for sentence in sentences if sentence)
        return f"({self.priority} priority, {self.confidence} confidence) {text}"


class Exclusion(_PlanModel):
    """An excluded case, and the reason."""

    case: Text
    reason: Text


class Success(_PlanModel):
    """Levels of success."""

    minimum: str = ""
    target: str = ""
    stretch: str = ""


class Plan(_PlanModel):
    """A plan of an experiment; `words` has a plan in prose, which the composer gets unchanged."""

    problem: str = ""
    hypotheses: list[PlannedHypothesis] = Field(default_factory=list)
    focus: list[Text] = Field(default_factory=list)
    guards: list[Text] = Field(default_factory=list)
    exclusions: list[Exclusion] = Field(default_factory=list)
    success: Success = Field(default_factory=Success)
    words: str = ""

    @property
    def ranked_hypotheses(self) -> list[PlannedHypothesis]:
        return sorted(self.hypotheses, key=lambda planned: planned.rank)

    @property
    def first_hypothesis(self) -> str:
        """The hypothesis with the highest rank, or an empty text."""
        return str(self.ranked_hypotheses[0]) if self.hypotheses else ""

    def __str__(self) -> str:
        return "\n".join(filter(None, self._list_lines()))

    def _list_lines(self) -> Iterator[str]:
        yield self.problem
        for number, hypothesis in enumerate(self.ranked_hypotheses, 1):
            yield f"{number}. {hypothesis}"
        for level, text in self.success.model_dump().items():
            yield f"{level.capitalize()}: {text}" if text else ""
        yield self.words


def read_plan(path: Path, root: Path) -> Plan:
    """Read a plan: structured in YAML, JSON or TOML, prose in Markdown or text."""
    if path.suffix.lower() not in _PROSE_SUFFIXES:
        return load_file(path, root, Plan, "hypotheses").model
    try:
        return Plan(words=read_text(path).strip())
    except ContentError as error:
        raise ManifestError([Problem(path.name, error.line, str(error))]) from None
