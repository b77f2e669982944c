"""Copy the document of a run to where the user wants it: `--loop-output`, or a question at a terminal."""

from __future__ import annotations

import os
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path

from pytest_loop.cli.task import can_ask
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.model.vocabulary import Target
from pytest_loop.run.console import YES, Console
from pytest_loop.settings.settings import Settings
from pytest_loop.show.next_steps import suggest_next_step
from pytest_loop.store.run_files import RunFiles


@dataclass(frozen=True)
class DocumentCopy:
    """Offer to copy the document of a run that is over."""

    settings: Settings
    console: Console
    state: RunState
    files: RunFiles

    def offer(self) -> None:
        """Copy the document to `--loop-output` or to a path that the user types, and print the next step."""
        source = self.settings.root / self.state.setup.artifact
        if not self.state.is_over or not self.state.setup.artifact or not source.is_file():
            return
        path = ""
        if self.settings.output.output:
            path = self._copy(source, self.settings.output.output)
        elif self._is_in_run_folder(source) and can_ask(self.settings, self.console):
            path = self._ask_and_copy(source)
        elif self._is_in_run_folder(source):
            command = ["cp", os.path.relpath(source, self.settings.folder), source.name]
            self.console.print_line(f"copy it: {shlex.join(command)}")
        if step := suggest_next_step(self.state, path):
            self.console.print_line(f"next: {step}")

    def _is_in_run_folder(self, source: Path) -> bool:
        """Return whether the document is in the folder of the run, not a file of the project."""
        return self.state.setup.target is Target.ARTIFACT and source.is_relative_to(self.files.folder)

    def _ask_and_copy(self, source: Path) -> str:
        """Ask for a path until the document is copied there, and return it; empty if the user leaves it in place."""
        question = f"copy it to which path? [y is {source.name}, Enter leaves it at {self.state.setup.artifact}] "
        while answer := self.console.read_answer(question):
            if answer.lower() in ("n", "no"):
                return ""
            name = source.name if answer.lower() in YES else answer
            target = self._resolve(source, name)
            if target.exists() and not self.console.confirm(f"{name} exists: overwrite it?"):
                continue
            if path := self._copy(source, name):
                return path
        return ""

    def _resolve(self, source: Path, name: str) -> Path:
        path = self.settings.folder / Path(name).expanduser()
        return path / source.name if path.is_dir() or name.endswith("/") else path

    def _copy(self, source: Path, name: str) -> str:
        """Copy the document, and return the path as it is shown; empty if it cannot be written."""
        target = self._resolve(source, name)
        shown = (
            target.relative_to(self.settings.folder).as_posix()
            if target.is_relative_to(self.settings.folder)
            else str(target)
        )
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            if not (target.exists() and target.samefile(source)):
                shutil.copyfile(source, target)
        except OSError as error:
            self.console.print_line(f"the document could not be copied to {shown}: {error.strerror or error}")
            return ""
        self.console.print_line(
            f"copied to {shown}" + ("" if self.state.stop.passed else ", although it does not pass")
        )
        return shown
