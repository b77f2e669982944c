"""Keep runs apart: each in its own worktree and branch, or on files that do not overlap."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.model.vocabulary import Target
from pytest_loop.core.text.lengths import shorten
from pytest_loop.core.text.wording import PrintLine
from pytest_loop.errors import StateError
from pytest_loop.store.project_runs import Store, read_state
from pytest_loop.store.run_files import RunFiles
from pytest_loop.workspace.git import GitError
from pytest_loop.workspace.git_worktree import Worktree
from pytest_loop.workspace.path_patterns import PathPatterns
from pytest_loop.workspace.seal import format_path_pattern

_WILDCARDS = "*?["


def get_branch(alias: str) -> str:
    """Return the name of a run's branch."""
    return f"loop/{alias}"


def is_in_worktree(root: Path, files: RunFiles) -> bool:
    """Return whether this process works in the worktree of the run."""
    return root.is_relative_to(files.worktree)


def hand_over(root: Path, files: RunFiles, state: RunState, print_line: PrintLine) -> None:
    """Commit the change of a finished run to the branch of the run; after success, remove the worktree."""
    if not state.is_over or not is_in_worktree(root, files):
        return
    worktree = Worktree(root, files.worktree)
    branch = get_branch(files.alias)
    title = shorten(f"{files.alias}: {state.task.prompt}", 72)
    try:
        commit = worktree.commit_changes(branch, title)
        if state.stop.passed:
            worktree.remove("" if commit else branch)
    except GitError as error:
        print_line(f"the change stays in {worktree.path}: {error}")
        return
    if commit:
        print_line(f"the change is on the branch {branch}: take it with git merge {branch}")
    elif state.stop.passed:
        print_line("nothing was changed: there is no branch to take over")
    if not state.stop.passed:
        print_line(f"the files are in {worktree.path}")


class EditScope(NamedTuple):
    """The folder in which a run works, and the globs of what it may edit there (none: every file)."""

    root: str
    globs: tuple[str, ...]


def refuse_overlap(store: Store, files: RunFiles, state: RunState) -> None:
    """Raise `StateError`, and release the run, if another run that is active may edit the same files."""
    scope = _find_edit_scope(state, store)
    for other in store.list_busy_runs():
        other_scope = _find_edit_scope(other.read()[0], store) if other.alias != files.alias else None
        if not scope or not other_scope or scope.root != other_scope.root:
            continue
        if can_overlap(scope.globs, other_scope.globs):
            files.release()
            raise StateError(
                f"the run {other.alias!r} may edit the same files: give this one a work tree of its own with "
                "--loop-worktree, or say with --loop-allow what each may edit"
            )


def can_overlap(patterns: Sequence[str], others: Sequence[str]) -> bool:
    """Return whether a path could match a pattern of both sequences; an empty one means every path.

    Patterns are apart only if their leading folders differ.
    """
    return any(_can_match_same_path(first, second) for first in patterns or ("*",) for second in others or ("*",))


def _can_match_same_path(first: str, second: str) -> bool:
    if first.startswith("!") or second.startswith("!"):
        return False
    return all(part == other for part, other in zip(_split_prefix(first), _split_prefix(second), strict=False))


def _split_prefix(pattern: str) -> list[str]:
    """Return the literal folders that every match starts with; a pattern without a slash matches anywhere."""
    if "/" not in pattern.rstrip("/"):
        return []
    parts = pattern.strip("/").split("/")
    is_wild = [any(char in part for char in _WILDCARDS) for part in parts]
    return parts[: is_wild.index(True)] if any(is_wild) else parts


def find_shared_files(store: Store, state: RunState, since: float) -> PathPatterns:
    """Return the patterns of files that other runs may have edited in the same folder since a time."""
    patterns: list[str] = []
    for files in store.list_runs():
        if files.alias != state.task_alias and (files.is_busy or files.last_change >= since):
            other = read_state(files)
            scope = _find_edit_scope(other, store) if other else None
            if scope and scope.root == find_run_root(state, store):
                patterns += scope.globs or ("*",)
    return PathPatterns(patterns)


def _find_edit_scope(state: RunState, store: Store) -> EditScope | None:
    """Return what a run may edit; None for a document in the run's folder."""
    seal = state.setup.work_seal or state.setup.seal
    allow = seal.allow if seal else ()
    if state.setup.target is Target.ARTIFACT:
        document = format_path_pattern(state.setup.artifact)
        is_private = (store.project / state.setup.artifact).is_relative_to(store.root / state.task_alias)
        allow = tuple(pattern for pattern in (allow or (document,)) if pattern != document or not is_private)
        if not allow:
            return None
    return EditScope(find_run_root(state, store), allow)


def find_run_root(state: RunState, store: Store) -> str:
    """Return the folder in which a run works: the project, or its own worktree."""
    arguments = list(state.setup.arguments)
    return arguments[arguments.index("--rootdir") + 1] if "--rootdir" in arguments else str(store.project)
