"""The plan of an experiment that a person wrote before it: hypotheses in their order, and the part of each case."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from pytest_loop.errors import ManifestError, Problem
from pytest_loop.rules.syntax import ContentError, read_text
from pytest_loop.workloads.manifest import Text, form

Degree = Literal["high", "medium", "low"]
_RANKS = ("high", "medium", "low")
_WORDS = (".md", ".txt")


class _Form(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Planned(_Form):
    """A hypothesis to be tested, with how much it promises."""

    theory: Text
    observation: str = ""
    mechanism: str = ""
    prediction: list[Text] = Field(default_factory=list)
    priority: Degree = "medium"
    confidence: Degree = "medium"

    def __str__(self) -> str:
        said = [self.theory, self.observation, self.mechanism and f"Mechanism: {self.mechanism}"]
        said.append(f"Predicted: {', '.join(self.prediction)}" if self.prediction else "")
        words = " ".join(one if one.endswith(".") else f"{one}." for one in said if one)
        return f"({self.priority} priority, {self.confidence} confidence) {words}"


class Exclusion(_Form):
    """Cases that are left out, and why."""

    case: Text
    reason: Text


class Success(_Form):
    """What is hoped for."""

    minimum: str = ""
    target: str = ""
    stretch: str = ""


class Plan(_Form):
    """All of it; words alone are for the composer, as they stand."""

    problem: str = ""
    hypotheses: list[Planned] = Field(default_factory=list)
    focus: list[Text] = Field(default_factory=list)
    guards: list[Text] = Field(default_factory=list)
    exclusions: list[Exclusion] = Field(default_factory=list)
    success: Success = Field(default_factory=Success)
    words: str = ""

    def __str__(self) -> str:
        return "\n".join(filter(None, (self.problem, *self._hypotheses(), *self._hopes(), self.words)))

    def _hypotheses(self) -> Iterator[str]:
        ranked = sorted(self.hypotheses, key=lambda one: (_RANKS.index(one.priority), _RANKS.index(one.confidence)))
        yield from (f"{number}. {one}" for number, one in enumerate(ranked, 1))

    def _hopes(self) -> Iterator[str]:
        for name, text in self.success.model_dump().items():
            if text:
                yield f"{name.capitalize()}: {text}"


def read_plan(path: Path, root: Path) -> Plan:
    """The plan in a file: of a certain form in YAML, JSON or TOML, in plain words in Markdown."""
    if path.suffix.lower() in _WORDS:
        try:
            return Plan(words=read_text(path).strip())
        except ContentError as error:
            raise ManifestError([Problem(path.name, error.line, str(error))]) from None
    return form(path, root, Plan, "hypotheses").model
