"""All runs of a project: their names, the pointer at the one that is active, and how many may be so at once."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

from pytest_loop.core.model.run_state import RunState
from pytest_loop.errors import StateError
from pytest_loop.store import disk
from pytest_loop.store.lock import lock_folder
from pytest_loop.store.run_files import RunFiles
from pytest_loop.store.run_names import ALIAS_PATTERN, ALL_RUNS, find_default_folder

MAX_ACTIVE_RUNS = 4


class Store:
    """The folder of all runs."""

    def __init__(self, project: Path, folder: str = "") -> None:
        self.project = project
        self.root = project / (folder or find_default_folder(project))
        self.pointer = self.root / "current.json"

    # -- runs by their names

    def get_run(self, alias: str) -> RunFiles:
        """The files of a run, whether it exists or not."""
        if not ALIAS_PATTERN.fullmatch(alias) or alias == ALL_RUNS:
            raise StateError(
                "expected a name of 3 to 64 lowercase letters, digits and hyphens for a run"
                + (f" other than {ALL_RUNS!r}" if alias == ALL_RUNS else "")
                + f", found {alias!r}"
            )
        return RunFiles(self.root / alias, self.project)

    def get_existing_run(self, alias: str) -> RunFiles:
        """An existing run by its whole name."""
        files = self.get_run(alias)
        if not files.exists:
            names = ", ".join(one.alias for one in self._runs()) or "none"
            raise StateError(f"there is no run {alias!r} in {self.root}: known are {names}")
        return files

    def find_run(self, alias: str) -> RunFiles:
        """An existing run, by its name or by a beginning that no other one has."""
        fitting = [one.alias for one in self._runs() if alias and one.alias.startswith(alias)]
        if alias not in fitting and len(fitting) > 1:
            raise StateError(f"{alias!r} may be any of {', '.join(fitting)}: name one of them")
        return self.get_existing_run(fitting[0] if len(fitting) == 1 else alias)

    def list_runs(self) -> list[RunFiles]:
        """Every run, in the order of their names."""
        return list(self._runs())

    def _runs(self) -> Iterator[RunFiles]:
        with disk.translate_errors("read", self.root, "try again"):
            folders = sorted(self.root.iterdir()) if self.root.is_dir() else []
        for folder in folders:
            if ALIAS_PATTERN.fullmatch(folder.name) and (files := RunFiles(folder, self.project)).exists:
                yield files

    def make_unique_alias(self, wanted: str) -> str:
        """The name itself, or with a number where a run has it already."""
        taken = {one.alias for one in self._runs()}
        number = 2
        alias = wanted
        while alias in taken:
            alias = f"{wanted[:60].rstrip('-')}-{number}"
            number += 1
        return alias

    # -- how many at once

    def list_busy_runs(self) -> list[RunFiles]:
        """The runs that a living process works on."""
        return [one for one in self._runs() if one.is_busy]

    def admit(self, files: RunFiles, *, is_new: bool, force: bool = False) -> None:
        """Become the writer of a run, unless as many as may be are active, or its name was taken meanwhile."""
        disk.make_folder(self.root)
        with lock_folder(self.root):
            active = [one.alias for one in self.list_busy_runs() if one.alias != files.alias]
            if len(active) >= MAX_ACTIVE_RUNS + int(force):
                names = "\n".join(f"  {alias}" for alias in active)
                raise StateError(
                    f"{len(active)} runs are active already:\n{names}\nstop one with --loop-stop --loop-alias NAME"
                    + ("" if force else ", or use --loop-force for one more")
                )
            files.acquire()
            if is_new and files.exists:
                files.release()
                raise StateError(f"another run was given the name {files.alias!r} just now: use --loop-alias")

    # -- current.json: the run last worked on, only while one is active

    def find_current_run(self) -> RunFiles | None:
        """The run that the pointer names, if it exists."""
        alias = self._pointed()
        files = self.get_run(alias) if ALIAS_PATTERN.fullmatch(alias) and alias != ALL_RUNS else None
        return files if files and files.exists else None

    def _pointed(self) -> str:
        """The name in the pointer; empty where there is none, or something that is not one."""
        with disk.translate_errors("read", self.pointer, "try again"):
            data = disk.read_file(self.pointer)
        try:
            return str(json.loads(data or b"{}")["task_alias"])
        except (ValueError, KeyError, TypeError):
            return ""

    def set_current_run(self, state: RunState) -> None:
        disk.make_folder(self.root)
        with lock_folder(self.root):
            self._point(state)

    def _point(self, state: RunState) -> None:
        data = {
            "active_run_id": state.run_id,
            "task_alias": state.task_alias,
            "status": "running",
            "updated_at": state.updated_at or state.created_at,
        }
        disk.write_atomically(self.pointer, json.dumps(data).encode() + b"\n")

    def clear_current_run(self, state: RunState) -> None:
        """The run is over; another one that is still going on takes its place."""
        if self._pointed() != state.task_alias:
            return
        with lock_folder(self.root):
            others = [
                one for files in self.list_busy_runs() if files.alias != state.task_alias and (one := _state(files))
            ]
            if others:
                self._point(max(others, key=lambda one: one.updated_at))
            else:
                disk.remove_file(self.pointer)

    def remove_run(self, files: RunFiles) -> None:
        """Delete a run for good; never one that is being worked on."""
        files.acquire()
        gone = self.root / f".{files.alias}.deleted"
        try:
            with disk.translate_errors("remove", files.folder, "try again"):
                shutil.rmtree(gone, ignore_errors=True)
                files.folder.rename(gone)  # at once, so that nobody finds half of it
                shutil.rmtree(gone)
        finally:
            files.release()
        if self._pointed() == files.alias:
            disk.remove_file(self.pointer)


def _state(files: RunFiles) -> RunState | None:
    try:
        return files.read()[0]
    except StateError:
        return None
