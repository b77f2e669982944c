"""Runs that do not get in each other's way: in a work tree and on a branch of their own, or on files that lie apart."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_loop.cli import background
from pytest_loop.cli import runs as looking
from pytest_loop.core.model.edit_scopes import can_overlap
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.model.vocabulary import Target
from pytest_loop.core.text.lengths import shorten
from pytest_loop.core.text.wording import PrintLine
from pytest_loop.errors import StateError
from pytest_loop.session.runner import START
from pytest_loop.settings.command_line import build_resume_arguments, build_worktree_arguments
from pytest_loop.settings.settings import Settings
from pytest_loop.store.project_runs import Store
from pytest_loop.store.run_files import RunFiles
from pytest_loop.store.run_names import make_alias
from pytest_loop.workspace.file_scan import ScanScope
from pytest_loop.workspace.git import GitError
from pytest_loop.workspace.git_worktree import Worktree


def branch_of(alias: str) -> str:
    """The branch that a run hands over."""
    return f"loop/{alias}"


def is_inside(root: Path, files: RunFiles) -> bool:
    """Whether this process works in the work tree of the run."""
    return root.is_relative_to(files.worktree)


@dataclass(frozen=True)
class Elsewhere:
    """Other processes that carry out what a person asked this one for: in a work tree, or in the background."""

    store: Store
    settings: Settings
    arguments: Sequence[str]
    folder: Path
    say: PrintLine

    def carried_out(self, root: Path) -> int | None:
        """The exit code; None where this process is the right one."""
        settings = self.settings
        if settings.commands.resume is not None:
            files = looking.chosen(self.store, settings.start.alias or settings.commands.resume)
            if files.worktree.is_dir() and not is_inside(root, files):
                words = build_resume_arguments(self.arguments, keep=("--loop-detach", "--loop-json"))
                return self._in_worktree(files, (*words, f"--loop-resume={files.alias}"))
            return self.detached(files) if settings.start.detach else None
        if not settings.start.worktree:
            return None
        return self._started(
            self.store.get_run(self.store.make_unique_alias(settings.start.alias or make_alias(settings.start.task)))
        )

    def detached(self, files: RunFiles) -> int:
        """Let another process go on with a run in the background."""
        background.attempt(files, force=self.settings.start.force)
        code = background.detach(files, self.arguments, self.folder, self.say)
        if self.settings.output.json == "-":
            looking.give(looking.result(files, *files.read()), "-", self.say)
        return code

    def _started(self, files: RunFiles) -> int:
        """Make a work tree, and let a process in it start the run; nothing stays of one that does not begin."""
        project, runs = self.store.project, self.store.root
        worktree = Worktree(project, files.worktree)
        try:
            worktree.create(
                ScanScope(runs.relative_to(project).as_posix() if runs.is_relative_to(project) else ""),
                branch_of(files.alias),
            )
        except GitError as error:
            raise StateError(f"--loop-worktree: {error}") from None
        try:
            return self._in_worktree(files, (*self.arguments, f"--loop-alias={files.alias}"))
        finally:
            if not files.exists:
                worktree.remove(branch_of(files.alias))

    def _in_worktree(self, files: RunFiles, arguments: Sequence[str]) -> int:
        project = self.store.project
        there = Worktree(project, files.worktree).project
        words = [*build_worktree_arguments(arguments, project, there, self.folder), "-o", f"loop_dir={self.store.root}"]
        sys.stdout.flush()
        place = there / self.folder.relative_to(project) if self.folder.is_relative_to(project) else there
        process = subprocess.Popen([sys.executable, "-c", START, *words], cwd=place)
        while True:
            try:
                return process.wait()
            except KeyboardInterrupt:  # it is told, and leaves the run whole
                process.terminate()


def hand_over(root: Path, files: RunFiles, state: RunState, say: PrintLine) -> None:
    """What a run has changed becomes a branch; the work tree of one that ended well is not needed any more."""
    if not state.is_over or not is_inside(root, files):
        return
    worktree = Worktree(root, files.worktree)
    branch = branch_of(files.alias)
    title = shorten(f"{files.alias}: {state.task.prompt}", 72)
    try:
        commit = worktree.commit_changes(branch, title)
        if state.stop.passed:
            worktree.remove("" if commit else branch)
    except GitError as error:
        say(f"the change stays in {worktree.path}: {error}")
        return
    if commit:
        say(f"the change is on the branch {branch}: take it with git merge {branch}")
    elif state.stop.passed:
        say("nothing was changed: there is no branch to take over")
    if not state.stop.passed:
        say(f"the files are in {worktree.path}")


# -- on the same files


def refuse_overlap(store: Store, files: RunFiles, state: RunState) -> None:
    """Two runs at work never edit the same files: the one that comes later lets go."""
    mine = _scope(state, store)
    for other in store.list_busy_runs():
        theirs = _scope(other.read()[0], store) if other.alias != files.alias else None
        if mine and theirs and mine[0] == theirs[0] and can_overlap(mine[1], theirs[1]):
            files.release()
            raise StateError(
                f"the run {other.alias!r} may edit the same files: give this one a work tree of its own with "
                "--loop-worktree, or say with --loop-allow what each may edit"
            )


def _scope(state: RunState, store: Store) -> tuple[str, tuple[str, ...]] | None:
    """Where a run works, and what it may edit there; None for a document in its own folder."""
    words = list(state.setup.arguments)
    root = words[words.index("--rootdir") + 1] if "--rootdir" in words else str(store.project)
    if state.setup.target is Target.WORKSPACE:
        return root, state.setup.seal.allow if state.setup.seal else ()
    own = store.root / state.task_alias
    return None if (store.project / state.setup.artifact).is_relative_to(own) else (root, (f"/{state.setup.artifact}",))
