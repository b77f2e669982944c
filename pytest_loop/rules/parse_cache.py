"""What texts of rule files come to, kept by a process that forks sessions: texts seldom change."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from pytest_loop.rules.line_numbers import LineLookup
from pytest_loop.rules.rule_schema import RuleFile

MOST = 100


class Known(NamedTuple):
    """A text that nobody had to complain about, and a way to its lines."""

    form: RuleFile
    locate: LineLookup | None


@dataclass
class Meanings:
    """By text, so that another text never gets them; `read` are the files asked for, each with its project.

    What files come to that extend each other is known by their texts, with the folders they lie in.
    """

    is_kept: bool = False
    read: dict[Path, Path] = field(default_factory=dict)
    _files: dict[tuple[str, str], Known] = field(default_factory=dict)
    _rules: dict[Hashable, list[Any]] = field(default_factory=dict)

    def file(self, kind: str, text: str) -> Known | None:
        """What a whole text means, if that is known."""
        return self._files.get((kind, text))

    def keep(self, kind: str, text: str, form: RuleFile, locate: LineLookup | None) -> None:
        """Remember a text."""
        if self.is_kept:
            _make_room(self._files)
            self._files[kind, text] = Known(form, locate)

    def rules(self, texts: Hashable) -> list[Any] | None:
        """What files come to together, if that is known."""
        return self._rules.get(texts)

    def keep_rules(self, texts: Hashable, rules: list[Any]) -> None:
        """Remember what files come to."""
        if self.is_kept:
            _make_room(self._rules)
            self._rules[texts] = rules


def _make_room(known: dict[Any, Any]) -> None:
    """Where there are too many, the old ones are forgotten."""
    if len(known) >= MOST:
        known.clear()


MEANINGS = Meanings()
