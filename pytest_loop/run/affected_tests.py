"""The tests that a change of files can reach, as far as the recorded calls tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pytest_loop.workspace.file_tree import FileTree, compare_trees


@dataclass
class AffectedTests:
    """The files that each test executed when it ran last (`reach`), and all files at the last evaluation (`tree`).

    Without reach, changes affect no test: it is not recorded, or another process recorded it.
    """

    tree: FileTree
    reach: dict[str, frozenset[str]] = field(default_factory=dict)

    def record(self, tree: FileTree, reach: Mapping[str, frozenset[str]]) -> None:
        """Record an evaluation of these files."""
        self.tree = tree
        self.reach |= reach

    def find(self, tree: FileTree) -> set[str] | None:
        """Return the tests affected by the changes since the last evaluation, or None if it could be any test.

        Any test may depend on a file that no test executes, such as data, settings or a new module.
        """
        if not self.reach:
            return set()
        changed = set(compare_trees(self.tree, tree).paths)
        if not changed.issubset(frozenset().union(*set(self.reach.values()))):
            return None
        return {nodeid for nodeid, paths in self.reach.items() if not changed.isdisjoint(paths)}
