"""All runs of a project: their names, the pointer at the one that is active, and how many may be so at once."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

from pytest_loop.core.model.run_state import RunState
from pytest_loop.errors import StateError
from pytest_loop.store import disk
from pytest_loop.store.lock import alone
from pytest_loop.store.run_files import RunFiles
from pytest_loop.store.run_names import ALIAS, EVERY, default_root

MOST_AT_ONCE = 4


class Store:
    """The folder of all runs."""

    def __init__(self, project: Path, folder: str = "") -> None:
        self.project = project
        self.root = project / (folder or default_root(project))
        self.pointer = self.root / "current.json"

    # -- runs by their names

    def run(self, alias: str) -> RunFiles:
        """The files of a run, whether it exists or not."""
        if not ALIAS.fullmatch(alias) or alias == EVERY:
            raise StateError(
                "expected a name of 3 to 64 lowercase letters, digits and hyphens for a run"
                + (f" other than {EVERY!r}" if alias == EVERY else "")
                + f", found {alias!r}"
            )
        return RunFiles(self.root / alias, self.project)

    def exactly(self, alias: str) -> RunFiles:
        """An existing run by its whole name."""
        files = self.run(alias)
        if not files.exists:
            names = ", ".join(one.alias for one in self._runs()) or "none"
            raise StateError(f"there is no run {alias!r} in {self.root}: known are {names}")
        return files

    def known(self, alias: str) -> RunFiles:
        """An existing run, by its name or by a beginning that no other one has."""
        fitting = [one.alias for one in self._runs() if alias and one.alias.startswith(alias)]
        if alias not in fitting and len(fitting) > 1:
            raise StateError(f"{alias!r} may be any of {', '.join(fitting)}: name one of them")
        return self.exactly(fitting[0] if len(fitting) == 1 else alias)

    def runs(self) -> list[RunFiles]:
        """Every run, in the order of their names."""
        return list(self._runs())

    def _runs(self) -> Iterator[RunFiles]:
        with disk.told("read", self.root, "try again"):
            folders = sorted(self.root.iterdir()) if self.root.is_dir() else []
        for folder in folders:
            if ALIAS.fullmatch(folder.name) and (files := RunFiles(folder, self.project)).exists:
                yield files

    def free_alias(self, wanted: str) -> str:
        """The name itself, or with a number where a run has it already."""
        taken = {one.alias for one in self._runs()}
        number = 2
        alias = wanted
        while alias in taken:
            alias = f"{wanted[:60].rstrip('-')}-{number}"
            number += 1
        return alias

    # -- how many at once

    def busy(self) -> list[RunFiles]:
        """The runs that a living process works on."""
        return [one for one in self._runs() if one.is_busy]

    def admit(self, files: RunFiles, *, is_new: bool, force: bool = False) -> None:
        """Become the writer of a run, unless as many as may be are active, or its name was taken meanwhile."""
        disk.make_folder(self.root)
        with alone(self.root):
            active = [one.alias for one in self.busy() if one.alias != files.alias]
            if len(active) >= MOST_AT_ONCE + int(force):
                names = "\n".join(f"  {alias}" for alias in active)
                raise StateError(
                    f"{len(active)} runs are active already:\n{names}\nstop one with --loop-stop --loop-alias NAME"
                    + ("" if force else ", or use --loop-force for one more")
                )
            files.take()
            if is_new and files.exists:
                files.release()
                raise StateError(f"another run was given the name {files.alias!r} just now: use --loop-alias")

    # -- current.json: the run last worked on, only while one is active

    def current(self) -> RunFiles | None:
        """The run that the pointer names, if it exists."""
        alias = self._pointed()
        files = self.run(alias) if ALIAS.fullmatch(alias) and alias != EVERY else None
        return files if files and files.exists else None

    def _pointed(self) -> str:
        """The name in the pointer; empty where there is none, or something that is not one."""
        with disk.told("read", self.pointer, "try again"):
            data = disk.content(self.pointer)
        try:
            return str(json.loads(data or b"{}")["task_alias"])
        except (ValueError, KeyError, TypeError):
            return ""

    def point_at(self, state: RunState) -> None:
        disk.make_folder(self.root)
        with alone(self.root):
            self._point(state)

    def _point(self, state: RunState) -> None:
        data = {
            "active_run_id": state.run_id,
            "task_alias": state.task_alias,
            "status": "running",
            "updated_at": state.updated_at or state.created_at,
        }
        disk.write_whole(self.pointer, json.dumps(data).encode() + b"\n")

    def point_away(self, state: RunState) -> None:
        """The run is over; another one that is still going on takes its place."""
        if self._pointed() != state.task_alias:
            return
        with alone(self.root):
            others = [one for files in self.busy() if files.alias != state.task_alias and (one := _state(files))]
            if others:
                self._point(max(others, key=lambda one: one.updated_at))
            else:
                disk.remove(self.pointer)

    def remove(self, files: RunFiles) -> None:
        """Delete a run for good; never one that is being worked on."""
        files.take()
        gone = self.root / f".{files.alias}.deleted"
        try:
            with disk.told("remove", files.folder, "try again"):
                shutil.rmtree(gone, ignore_errors=True)
                files.folder.rename(gone)  # at once, so that nobody finds half of it
                shutil.rmtree(gone)
        finally:
            files.release()
        if self._pointed() == files.alias:
            disk.remove(self.pointer)


def _state(files: RunFiles) -> RunState | None:
    try:
        return files.read()[0]
    except StateError:
        return None
