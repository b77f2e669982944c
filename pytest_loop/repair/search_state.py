"""The state of a search: suspicious lines, counts, and the edits that passed."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import NamedTuple

from pytest_loop.repair.candidates import EditCandidate
from pytest_loop.repair.suspicion import Suspect


class RankedCandidate(NamedTuple):
    """A candidate, its rank in the search order, and its syntax tree."""

    rank: int
    candidate: EditCandidate
    tree: ast.stmt | ast.Module


@dataclass(frozen=True)
class PlausibleEdit:
    """A candidate that broke no test; `fixed` and `remaining` are node ids of targets that now pass or still fail.

    An edit `is_final` if the remaining tests fail in another way or never reach the edited function: another edit has
    to fix these tests.
    """

    candidate: EditCandidate
    rank: int
    fixed: tuple[str, ...]
    remaining: tuple[str, ...] = ()
    is_final: bool = False

    @property
    def is_green(self) -> bool:
        return not self.remaining

    @property
    def sort_key(self) -> tuple[float, ...]:
        """Sort edits by most fixed tests, then those that remove no behaviour, then fewest tokens, score and rank."""
        candidate = self.candidate
        return -len(self.fixed), candidate.is_deletion, candidate.tokens, -candidate.score, self.rank


@dataclass
class SearchState:
    """The state of one round; `targets` are the tests to turn green, `restricted_tests` are stopped by the sandbox."""

    failing: tuple[str, ...] = ()
    passing: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    restricted_tests: dict[str, str] = field(default_factory=dict)
    """Node ids of tests that the sandbox stopped, each with the message of its refusal."""
    suspects: list[Suspect] = field(default_factory=list)
    plausible_edits: list[PlausibleEdit] = field(default_factory=list)
    tried_count: int = 0
    crash_count: int = 0
    end_reason: str = ""
