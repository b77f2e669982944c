"""What texts of rule files come to, kept by a process that forks sessions: texts seldom change."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from pytest_loop.rules.checks.kinds import BUILT_IN, Kinds, check
from pytest_loop.rules.form import RuleFile
from pytest_loop.rules.positions import Locate

MOST = 100


class Known(NamedTuple):
    """A text that nobody had to complain about, and a way to its lines."""

    form: RuleFile
    locate: Locate | None


@dataclass
class Meanings:
    """By text, so that another text never gets them; `read` are the files asked for, each with its project."""

    is_kept: bool = False
    read: dict[Path, Path] = field(default_factory=dict)
    _files: dict[tuple[str, str], Known] = field(default_factory=dict)
    _checks: dict[str, Any] = field(default_factory=dict)

    def check(self, raw: Any, kinds: Kinds) -> Any:
        """The check that is meant; those of third parties are made anew. Raises `Invalid`."""
        if not self.is_kept or kinds is not BUILT_IN:
            return check(raw, kinds)
        text = repr(raw)
        if text not in self._checks:
            self._checks[text] = check(raw, kinds)
        return self._checks[text]

    def file(self, kind: str, text: str) -> Known | None:
        """What a whole text means, if that is known."""
        return self._files.get((kind, text))

    def keep(self, kind: str, text: str, form: RuleFile, locate: Locate | None) -> None:
        """Remember a text; where there are too many of them, the old ones are forgotten."""
        if not self.is_kept:
            return
        if len(self._files) >= MOST:
            self._files.clear()
            self._checks.clear()
        self._files[kind, text] = Known(form, locate)


MEANINGS = Meanings()
