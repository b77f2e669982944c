"""What a search knows: suspicious lines, what was tried, and the candidates that passed."""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from pytest_loop.repair.candidates import Candidate
from pytest_loop.repair.suspicion import Suspect


class Try(NamedTuple):
    """A candidate, its place in the order, and its tree."""

    rank: int
    candidate: Candidate
    tree: ast.stmt | ast.Module


@dataclass(frozen=True)
class Plausible:
    """A candidate that breaks nothing, the tests that it fixed, and those that still fail, by their node ids.

    It is final where what still fails does so in another way, or without its function: that is another bug's work.
    """

    candidate: Candidate
    rank: int
    fixed: tuple[str, ...]
    remaining: tuple[str, ...] = ()
    is_final: bool = False

    @property
    def is_green(self) -> bool:
        return not self.remaining

    def order(self) -> tuple[object, ...]:
        """Best first: most fixed, no behaviour taken away, fewest tokens, then what was tried first."""
        one = self.candidate
        return -len(self.fixed), one.is_deletion, one.tokens, -one.score, self.rank


@dataclass
class Found:
    """What is known so far; `targets` are the tests that are to pass."""

    failing: tuple[str, ...] = ()
    passing: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    held: dict[str, str] = field(default_factory=dict)
    """The tests that were kept from doing something, and from what."""
    suspects: list[Suspect] = field(default_factory=list)
    plausible: list[Plausible] = field(default_factory=list)
    templates: Counter[str] = field(default_factory=Counter)
    known: int = 0
    died: int = 0
    ended: str = ""

    @property
    def tried(self) -> int:
        return self.templates.total()
