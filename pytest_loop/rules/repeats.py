"""The votes of repeated rules, shared by all processes of a session."""

from __future__ import annotations

import hashlib
from pathlib import Path

from pytest_loop.core.judging.votes import count_needed_passes, decide_vote


class RepeatVotes:
    """Count passes and failures of a rule's repeats; xdist workers share them as empty files in `folder`."""

    def __init__(self, folder: Path | None = None) -> None:
        self._totals: dict[str, int] = {}
        self._folder = folder
        self._votes: dict[str, dict[int, bool]] = {}

    def expect(self, rule: str) -> None:
        """Add one to the number of repeats of a rule."""
        self._totals[rule] = self._totals.get(rule, 0) + 1

    def add(self, rule: str, index: int, passed: bool) -> None:
        """Add the vote of one repeat."""
        self._votes.setdefault(rule, {})[index] = passed
        if self._folder is not None:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            (self._folder / f"{_hash_name(rule)}.{index}.{int(passed)}").touch()

    def decide(self, rule: str, need: str) -> bool | None:
        """Return whether the rule passes by `need`, or None while more votes can change the result."""
        votes = self._collect_votes(rule)
        passes = sum(votes.values())
        total = self._totals.get(rule, 1)
        return decide_vote(passes, len(votes) - passes, total, count_needed_passes(need, total))

    def _collect_votes(self, rule: str) -> dict[int, bool]:
        votes = dict(self._votes.get(rule, {}))
        if self._folder is not None:
            for path in self._folder.glob(f"{_hash_name(rule)}.*"):
                _, index, passed = path.name.split(".")
                votes[int(index)] = passed == "1"
        return votes


def _hash_name(rule: str) -> str:
    return hashlib.sha256(rule.encode()).hexdigest()[:16]
