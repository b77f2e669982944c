"""The repeats of noisy rules that are done, across the processes of a session."""

from __future__ import annotations

import hashlib
from pathlib import Path

from pytest_loop.core.judging.votes import count_needed_passes, decide_vote


class Tally:
    """Counts passes and misses of a rule's repeats; workers of one session share a folder."""

    def __init__(self, folder: Path | None = None) -> None:
        self.totals: dict[str, int] = {}
        self._folder = folder
        self._votes: dict[str, dict[int, bool]] = {}

    def expect(self, rule: str) -> None:
        """One more repeat of this rule was selected."""
        self.totals[rule] = self.totals.get(rule, 0) + 1

    def add(self, rule: str, index: int, passed: bool) -> None:
        self._votes.setdefault(rule, {})[index] = passed
        if self._folder is not None:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            (self._folder / f"{_name(rule)}.{index}.{int(passed)}").touch()

    def decision(self, rule: str, need: str) -> bool | None:
        """What the rule has come to, if that is certain."""
        votes = self._all(rule)
        passes = sum(votes.values())
        total = self.totals.get(rule, 1)
        return decide_vote(passes, len(votes) - passes, total, count_needed_passes(need, total))

    def _all(self, rule: str) -> dict[int, bool]:
        votes = dict(self._votes.get(rule, {}))
        if self._folder is not None:
            for path in self._folder.glob(f"{_name(rule)}.*"):
                _, index, passed = path.name.split(".")
                votes[int(index)] = passed == "1"
        return votes


def _name(rule: str) -> str:
    return hashlib.sha256(rule.encode()).hexdigest()[:16]
