"""All runs of a project: find them by name, limit active ones, and maintain the file that names the current one."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.text.lengths import shorten
from pytest_loop.errors import StateError
from pytest_loop.store import disk
from pytest_loop.store.lock import lock_folder
from pytest_loop.store.run_files import RunFiles

MAX_ACTIVE_RUNS = 4
ALIAS_PATTERN = re.compile(r"[a-z0-9][a-z0-9-]{1,62}[a-z0-9]")
ALL_RUNS = "all"
# The folder that holds nothing but runs, and the patterns of its `.gitignore`.
_OWN_FOLDER = ".loop"
_IGNORED = b"*\n!/shape/\n!/shape/**\n"


def find_default_folder(project: Path) -> str:
    """Return `.loop`, or the folder of AI Factory in a project that has it."""
    return ".ai-factory/evolution" if (project / ".ai-factory").is_dir() else _OWN_FOLDER


def make_alias(task: str) -> str:
    """Return a run name made from the words of a task: lowercase words with hyphens, 3 to 64 characters."""
    words = "-".join(re.findall(r"[a-z0-9]+", task.lower()))[:40].strip("-")
    return words if len(words) >= 3 and words != ALL_RUNS else f"task-{words}".strip("-")


class Store:
    """The folder of all runs of a project."""

    def __init__(self, project: Path, folder: str = "") -> None:
        self.project = project
        self.root = project / (folder or find_default_folder(project))
        self.pointer = self.root / "current.json"

    @property
    def folder_in_project(self) -> str:
        """The path of the folder from the project's root, empty if it is outside."""
        return self.root.relative_to(self.project).as_posix() if self.root.is_relative_to(self.project) else ""

    # -- runs by name

    def get_run(self, alias: str) -> RunFiles:
        """Return the files of a run, whether it exists or not; a link in place of its folder is never followed."""
        if not ALIAS_PATTERN.fullmatch(alias) or alias == ALL_RUNS:
            raise StateError(
                "expected a name of 3 to 64 lowercase letters, digits and hyphens for a run"
                + (f" other than {ALL_RUNS!r}" if alias == ALL_RUNS else "")
                + f", found {alias!r}"
            )
        folder = self.root / alias
        if folder.is_symlink():
            raise StateError(
                f"expected a folder for the run {alias!r}, found a symbolic link: remove {folder}, or choose another "
                "name with --loop-alias"
            )
        return RunFiles(folder, self.project)

    def get_existing_run(self, alias: str) -> RunFiles:
        """Return a run by its complete name; raise `StateError` if it does not exist."""
        run = self.get_run(alias)
        if not run.exists:
            names = ", ".join(other.alias for other in self.list_runs())
            hint = f"the runs are {names}" if names else "there are no runs"
            raise StateError(f"there is no run {alias!r} in {self.root}: {hint}")
        return run

    def find_run(self, alias: str) -> RunFiles:
        """Return an existing run by its name or by an unambiguous beginning of it."""
        names = [run.alias for run in self.list_runs() if alias and run.alias.startswith(alias)]
        if alias not in names and len(names) > 1:
            raise StateError(f"{alias!r} may be any of {', '.join(names)}: name one of them")
        return self.get_existing_run(names[0] if len(names) == 1 else alias)

    def list_runs(self) -> list[RunFiles]:
        """Return every run, sorted by name."""
        with disk.translate_errors("read", self.root, "try again"):
            folders = sorted(self.root.iterdir()) if self.root.is_dir() else []
        run_folders = [folder for folder in folders if ALIAS_PATTERN.fullmatch(folder.name) and not folder.is_symlink()]
        return [run for folder in run_folders if (run := RunFiles(folder, self.project)).exists]

    def make_unique_alias(self, alias: str) -> str:
        """Return the name, with a number appended if a run already has it."""
        used = {run.alias for run in self.list_runs()}
        number = 2
        candidate = alias
        while candidate in used:
            candidate = f"{alias[:60].rstrip('-')}-{number}"
            number += 1
        return candidate

    # -- the limit

    def list_busy_runs(self) -> list[RunFiles]:
        """Return the runs that a living process works on."""
        return [run for run in self.list_runs() if run.is_busy]

    def acquire_run(self, files: RunFiles, *, is_new: bool, force: bool = False) -> None:
        """Lock a run for writing.

        Raise `StateError` if too many runs are active (`force` allows one more), or if another process has just created
        a run with the name of this new one.
        """
        disk.make_folder(self.root)
        self._write_gitignore()
        with lock_folder(self.root):
            active = [run for run in self.list_busy_runs() if run.alias != files.alias]
            if len(active) >= MAX_ACTIVE_RUNS + int(force):
                lines = "\n".join(f"  {_describe_run(run)}" for run in active)
                raise StateError(
                    f"{len(active)} runs are active already:\n{lines}\nstop one with: pytest-loop stop --run NAME"
                    + ("" if force else ", or use --loop-force for one more")
                )
            files.acquire()
            if is_new and files.exists:
                files.release()
                raise StateError(f"another run was given the name {files.alias!r} just now: use --loop-alias")

    def _write_gitignore(self) -> None:
        """Make git ignore all runs, but not the folder `shape`, which a person writes."""
        path = self.root / ".gitignore"
        if self.root.name == _OWN_FOLDER and not path.exists():
            disk.write_atomically(path, _IGNORED)

    # -- current.json: the run last worked on, only while one is active

    def find_current_run(self) -> RunFiles | None:
        """Return the run that the pointer names, if it exists."""
        alias = self._read_pointer()
        return next((run for run in self.list_runs() if run.alias == alias), None)

    def _read_pointer(self) -> str:
        """Return the name in the pointer, or an empty string if there is none."""
        with disk.translate_errors("read", self.pointer, "try again"):
            data = disk.read_file(self.pointer)
        try:
            return str(json.loads(data or b"{}")["task_alias"])
        except (ValueError, KeyError, TypeError):
            return ""

    def set_current_run(self, state: RunState) -> None:
        """Point to a run."""
        disk.make_folder(self.root)
        with lock_folder(self.root):
            self._write_pointer(state)

    def _write_pointer(self, state: RunState) -> None:
        data = {
            "active_run_id": state.run_id,
            "task_alias": state.task_alias,
            "status": "running",
            "updated_at": state.updated_at or state.created_at,
        }
        disk.write_atomically(self.pointer, json.dumps(data).encode() + b"\n")

    def update_current_run(self, state: RunState) -> None:
        """Update the time in the pointer, or move it if the run has ended, unless the pointer names another run."""
        with lock_folder(self.root):
            if self._read_pointer() not in (state.task_alias, ""):
                return
            if not state.is_over:
                self._write_pointer(state)
            else:
                self._move_pointer(state.task_alias)

    def _move_pointer(self, ended_alias: str) -> None:
        """Point to another active run, or delete the pointer if there is none.

        Leave out the run that has just ended: its process may still hold the lock, so that it seems active.
        """
        others = [run for run in self.list_busy_runs() if run.alias != ended_alias]
        states = [state for run in others if (state := read_state(run)) and not state.is_over]
        if states:
            self._write_pointer(max(states, key=lambda state: state.updated_at))
        else:
            disk.remove_file(self.pointer)

    def remove_run(self, files: RunFiles) -> None:
        """Delete a run; raise `BusyError` if a process works on it."""
        files.acquire()
        trash = self.root / f".{files.alias}.deleted"
        try:
            with disk.translate_errors("remove", files.folder, "try again"):
                shutil.rmtree(trash, ignore_errors=True)
                files.folder.rename(trash)  # first, so that no reader finds half of it
                shutil.rmtree(trash)
        finally:
            files.release()
        with lock_folder(self.root):
            if self._read_pointer() == files.alias:
                self._move_pointer(files.alias)


def _describe_run(files: RunFiles) -> str:
    state = read_state(files)
    return f"{files.alias} (iteration {state.iteration}): {shorten(state.task.prompt, 60)}" if state else files.alias


def read_state(files: RunFiles) -> RunState | None:
    """Return the state of a run, or None if it cannot be read."""
    try:
        return files.read()[0]
    except StateError:
        return None
