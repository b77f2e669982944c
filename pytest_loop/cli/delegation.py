"""Run a command line in another process: in a worktree, or in the background."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from pytest_loop.cli import background
from pytest_loop.cli.output import build_result, write_json
from pytest_loop.cli.runs import find_run
from pytest_loop.cli.task import choose_alias
from pytest_loop.errors import StateError
from pytest_loop.inference.task_phrases import parse_task
from pytest_loop.run.console import Console
from pytest_loop.run.worktree import get_branch, is_in_worktree
from pytest_loop.session.runner import START_SCRIPT
from pytest_loop.settings.command_line import build_resume_arguments, build_worktree_arguments
from pytest_loop.settings.settings import Settings
from pytest_loop.store.project_runs import Store
from pytest_loop.store.run_files import RunFiles
from pytest_loop.workspace.file_scan import ScanScope
from pytest_loop.workspace.git import GitError
from pytest_loop.workspace.git_worktree import Worktree


@dataclass(frozen=True)
class Delegation:
    """Choose the process that executes this command line: this one, or another in a worktree or the background."""

    store: Store
    settings: Settings
    console: Console

    def delegate(self) -> int | None:
        """Execute the command line in another process if it belongs there; return the exit code, else None."""
        settings = self.settings
        if settings.commands.resume is not None:
            files = find_run(self.store, settings.start.alias or settings.commands.resume)
            if files.worktree.is_dir() and not is_in_worktree(settings.root, files):
                arguments = build_resume_arguments(settings.arguments, keep=("--loop-detach", "--loop-json"))
                return self._run_in_worktree(files, (*arguments, f"--loop-resume={files.alias}"))
            return self.detach(files) if settings.start.detach else None
        if not settings.start.worktree:
            return None
        alias = self.store.make_unique_alias(choose_alias(settings, parse_task(settings.start.task)))
        return self._start_in_worktree(self.store.get_run(alias))

    def detach(self, files: RunFiles) -> int:
        """Continue a run in a background process; return the exit code of that process if it ends at once, else 0."""
        background.check_attempts(files, force=self.settings.start.force)
        exit_code = background.detach(files, self.settings, self.console.print_line)
        if self.settings.output.json == "-":
            write_json(build_result(files, *files.read()), "-", self.console.print_line)
        return exit_code

    def _start_in_worktree(self, files: RunFiles) -> int:
        """Start a run in a new worktree, which is removed if the run does not start."""
        worktree = Worktree(self.store.project, files.worktree)
        try:
            worktree.create(ScanScope(self.store.folder_in_project), get_branch(files.alias))
        except GitError as error:
            raise StateError(f"--loop-worktree: {error}") from None
        try:
            return self._run_in_worktree(files, (*self.settings.arguments, f"--loop-alias={files.alias}"))
        finally:
            if not files.exists:
                worktree.remove(get_branch(files.alias))

    def _run_in_worktree(self, files: RunFiles, arguments: Sequence[str]) -> int:
        project, folder = self.store.project, self.settings.folder
        copy = Worktree(project, files.worktree).project
        words = [*build_worktree_arguments(arguments, project, copy, folder), "-o", f"loop_dir={self.store.root}"]
        sys.stdout.flush()
        child_folder = copy / folder.relative_to(project) if folder.is_relative_to(project) else copy
        process = subprocess.Popen([sys.executable, "-c", START_SCRIPT, *words], cwd=child_folder)
        while True:
            try:
                return process.wait()
            except KeyboardInterrupt:  # the child saves the run before it ends
                process.terminate()
