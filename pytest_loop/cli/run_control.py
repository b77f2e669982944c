"""Commands that change a run: stop it, pause it, restore its files, delete it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

from pytest_loop.cli.background import pause
from pytest_loop.cli.output import build_result, write_json
from pytest_loop.cli.runs import SavedRun, find_active_run, find_run, read_run
from pytest_loop.core.events.event import Event
from pytest_loop.core.events.run_payloads import Stopped, StopRequested
from pytest_loop.core.machine.experiment_machine import select_machine
from pytest_loop.core.model.evaluation import SealFinding
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.model.vocabulary import Reason, Target, name_user_stop
from pytest_loop.core.reporting.decision import decide
from pytest_loop.errors import StateError
from pytest_loop.run import restore, worktree
from pytest_loop.run.console import Console
from pytest_loop.run.ending import add_diff
from pytest_loop.settings.command_line import NO_VALUE
from pytest_loop.settings.settings import Settings
from pytest_loop.store.clock import read_clock
from pytest_loop.store.project_runs import Store
from pytest_loop.store.run_files import RunFiles
from pytest_loop.workspace import clean_room_journal


@dataclass(frozen=True)
class RunControl:
    """The commands that change runs; each returns its exit code."""

    settings: Settings
    store: Store
    console: Console

    def execute(self, name: str) -> int:
        """Execute a command by the name of its flag."""
        commands = {
            "stop": self._stop,
            "pause": lambda: pause(self.settings, self.store, self.console),
            "restore": self._restore,
            "clean": self._clean,
        }
        return commands[name]()

    def _write_json(self, data: Any) -> None:
        write_json(data, self.settings.output.json, self.console.print_line)

    def _stop(self) -> int:
        files = find_active_run(self.store, self.settings.start.alias, "stop")
        stop = self.settings.commands.stop
        reason = Reason.USER_STOP.value if stop in (None, NO_VALUE) else str(stop)
        if files.is_busy:
            files.requests.ask_to_stop(reason)
            self.console.print_line(f"asked {files.alias} to stop ({reason})")
        elif earlier := self._stop_idle_run(files, reason):
            self.console.print_line(f"{files.alias} is over already: {earlier.status.value}, {earlier.stop.reason}")
        else:
            self.console.print_line(f"stopped {files.alias} ({reason})")
        if self.settings.output.json:
            self._write_json(build_result(files, *files.read()))
        return 0

    def _stop_idle_run(self, files: RunFiles, reason: str) -> RunState | None:
        """Stop a run that no process drives; return its state if it was over already, else None.

        Record a `reason` that names another stop reason as `user_stop`, so that no text of a user makes a success.
        """
        files.acquire()
        try:
            before, history = files.read()
            files.repair(history)
            after = before
            if not before.is_over:
                request = StopRequested(reason=reason, findings=self._put_back_sealed_files(files, before))
                end = Stopped(reason=name_user_stop(reason), decision=decide(before, Reason.USER_STOP))
                payloads = (request, add_diff(end, before, files))
                events = [Event.create(before, payload, read_clock()) for payload in payloads]
                after = reduce(select_machine(before).apply, events, before)
                files.append(events, after)
            self.store.update_current_run(after)
        finally:
            files.release()
        return before if before.is_over else None

    def _put_back_sealed_files(self, files: RunFiles, state: RunState) -> tuple[SealFinding, ...]:
        """Put back sealed files that were edited before the run's process died; print and return the findings."""
        if state.setup.seal is None:
            return ()
        try:
            _, project = restore.open_project(Path(worktree.find_run_root(state, self.store)), files, state)
            findings = restore.put_back_sealed(project, files, state)
            project.close()
        except StateError as error:
            self.console.print_line(str(error))
            return ()
        self.console.print_lines(f"{finding.path}: {finding.detail}" for finding in findings)
        return findings

    def _restore(self) -> int:
        """Restore the files of an iteration that the run has judged."""
        files = find_run(self.store, self.settings.start.alias)
        if files.is_busy:
            raise StateError(f"{files.alias} is running: stop it first with pytest-loop stop --run {files.alias}")
        state, history = files.read()
        if state.setup.target is Target.ARTIFACT:
            raise StateError(f"{files.alias} has improved one document, whose versions are not kept")
        iteration = self.settings.commands.restore or 0
        _, project = restore.open_project(self.store.project, files, state)
        try:
            result = restore.restore_iteration(
                project, history.events, iteration, keeps_new_files=True, is_over=state.is_over
            )
        finally:
            project.close()
        self.console.print_lines(f"{path}: {reason}" for path, reason in result.lost)
        counts = f"{len(result.restored)} written, {len(result.removed)} removed"
        when = f"those of iteration {iteration}" if iteration else "those from before the first edit"
        self.console.print_line(f"the files are {when} of {files.alias}: {counts}")
        return 1 if result.lost else 0

    def _clean(self) -> int:
        alias = str(self.settings.commands.clean)
        runs = self.store.list_runs() if alias == "all" else [self.store.get_existing_run(alias)]
        active = [files.alias for files in runs if files.is_busy]
        self.console.print_lines(
            f"{alias} is running and stays: stop it first with pytest-loop stop --run {alias}" for alias in active
        )
        idle = [files for files in runs if files.alias not in active]
        names = [files.alias for files in idle]
        remaining = active
        if idle and not self.settings.start.yes and not self.console.confirm(f"delete {', '.join(names)} for good?"):
            self.console.print_line("nothing was deleted; --loop-yes deletes without asking")
            remaining, names, idle = [*active, *names], [], []
        for files in idle:
            self._delete_run(files)
        if names:
            self.console.print_line(f"deleted {', '.join(names)}")
        elif not runs:
            self.console.print_line(f"there is no run in {self.store.root}")
        if self.settings.output.json:
            self._write_json({"deleted": names, "kept": remaining})
        return 1 if remaining else 0

    def _delete_run(self, files: RunFiles) -> None:
        run = read_run(files)
        if isinstance(run, SavedRun):
            restore.remove_checkpoints(self.store.project, run.state)
        clean_room_journal.put_back(files.folder)  # the folder that is deleted may hold files of the project
        restore.remove_worktree(self.store.project, files)
        self.store.remove_run(files)
