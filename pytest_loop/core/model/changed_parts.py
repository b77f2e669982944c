"""The parts that one edit has changed: sections of a document, or files of a project."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pytest_loop.core.model.rules import Value
from pytest_loop.core.text.lengths import shorten
from pytest_loop.core.text.wording import list_names

MAX_PARTS = 30
MAX_NAME_LENGTH = 80
_SHOWN_PARTS = 5


class ChangedParts(Value):
    """The names of the parts that were added, modified and removed; `is_first` for the first version of a document."""

    added: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    is_first: bool = False

    @classmethod
    def create(cls, **names: Iterable[str]) -> ChangedParts:
        """Return the parts with names that are short and not too many."""
        limited = {
            action: tuple(shorten(name, MAX_NAME_LENGTH) for name in list(group)[:MAX_PARTS])
            for action, group in names.items()
        }
        return cls(**limited)

    def __str__(self) -> str:
        if self.is_first:
            return "initial generation"
        groups = {"added": self.added, "modified": self.modified, "removed": self.removed}
        texts = [f"{action} {list_names(names, _SHOWN_PARTS)}" for action, names in groups.items() if names]
        return "; ".join(texts) or "nothing"


def compare_parts(before: Mapping[str, str], after: Mapping[str, str]) -> ChangedParts:
    """Compare the parts of two versions by their names and contents."""
    return ChangedParts.create(
        added=(name for name in after if name not in before),
        modified=(name for name in after if name in before and before[name] != after[name]),
        removed=(name for name in before if name not in after),
    )
