"""Execute commands about runs; none of them starts an iteration.

Import inside of a command the modules that no other command needs: this halves the start time of most commands.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import pytest

from pytest_loop.cli.output import build_result, write_comparison, write_debrief, write_json, write_report
from pytest_loop.cli.runs import SavedRun, describe_condition, describe_status, find_run, read_run
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.model.vocabulary import Place
from pytest_loop.core.reporting import iteration_records
from pytest_loop.core.reporting.closing_verdict import render_status_block
from pytest_loop.errors import StateError
from pytest_loop.run.console import Console
from pytest_loop.run.ending import read_change, read_diffstat
from pytest_loop.settings.settings import Settings
from pytest_loop.show import ending_text, failure_lines, run_tables, short_diff, status_text
from pytest_loop.store.clock import parse_time
from pytest_loop.store.history import History
from pytest_loop.store.project_runs import Store
from pytest_loop.store.run_files import RunFiles


@dataclass(frozen=True)
class Commands:
    """The commands of one invocation; each returns its exit code."""

    settings: Settings
    store: Store
    console: Console

    def execute(self, name: str) -> int:
        """Execute a command by the name of its flag."""
        commands = {
            "status": self._show_status,
            "list": self._list_runs,
            "agents": self._list_agents,
            "history": self._show_history,
            "show": self._show_failures,
            "diff": self._show_diff,
            "attach": self._attach,
            "infer": self._infer,
            "report": self._write_report,
            "debrief": self._write_debrief,
        }
        if name in commands:
            return commands[name]()
        from pytest_loop.cli.run_control import RunControl

        return RunControl(self.settings, self.store, self.console).execute(name)

    def _find_run(self, alias: str | None = None) -> RunFiles:
        return find_run(self.store, self.settings.start.alias or alias)

    def _write_json(self, data: Any) -> None:
        write_json(data, self.settings.output.json, self.console.print_line)

    def _print_damage(self, history: History) -> None:
        self.console.print_lines(f"damage: {problem}" for problem in history.damage)

    def _show_status(self) -> int:
        files = self._find_run(self.settings.commands.status)
        state, history = files.read()
        if self.settings.output.json:
            self._write_json(build_result(files, state, history))
            return 0
        if self.settings.output.status_block:
            self.console.print_lines(render_status_block(state, ending_text.describe_next_step(state)))
            return 0
        look = self.console.look
        if look.verbosity > 0:
            row = (state, describe_status(state, files))
            self.console.print_lines(run_tables.render_status_table([row], is_detailed=True))
            self.console.print_line(ending_text.render_breakers(state))
        else:
            self.console.print_lines(status_text.render_position(state, describe_status(state, files), look))
        self._print_damage(history)
        if state.is_over:
            self.console.print_lines(ending_text.render_end(state, look, read_diffstat(files)))
        elif describe_condition(state, files):
            self.console.print_line(f"continue: {ending_text.format_resume_command(state)}")
        else:
            self._show_activity(state, files)
        return 0

    def _show_activity(self, state: RunState, files: RunFiles) -> None:
        """Print what the process of a run does now, and the commands that follow and end it."""
        look = self.console.look
        process = f"working: process {files.pid}" if look.verbosity > 0 else ""
        activity = status_text.describe_activity(state, time.time() - parse_time(state.updated_at))
        progress = files.read_progress() if state.current_step is Place.EVALUATE else ""
        self.console.print_lines(look.wrap_parts(activity, progress, process))
        attach = f"follow: pytest-loop attach --run {files.alias}" if files.log.exists else ""
        self.console.print_lines(look.wrap_parts(attach, f"stop: pytest-loop stop --run {files.alias}"))

    def _list_runs(self) -> int:
        runs: list[SavedRun] = []
        errors: dict[str, str] = {}
        for files in self.store.list_runs():
            run = read_run(files)
            if isinstance(run, StateError):
                errors[files.alias] = str(run)
            else:
                runs.append(run)
        if self.settings.output.json:
            unreadable = [{"task_alias": alias, "status": None, "error": error} for alias, error in errors.items()]
            self._write_json([*(build_result(*run) for run in runs), *unreadable])
            return 0
        if not runs and not errors:
            self.console.print_line(f"there is no run in {self.store.root}")
        if runs:
            states = ((run.state, describe_status(run.state, run.files)) for run in runs)
            self.console.print_lines(
                run_tables.render_status_table(states, is_detailed=self.console.look.verbosity > 0)
            )
        self.console.print_lines(f"{alias}: {error}" for alias, error in errors.items())
        return 0

    def _attach(self) -> int:
        from pytest_loop.cli import background

        return background.attach(self.settings, self.store, self.console)

    def _list_agents(self) -> int:
        from pytest_loop.agents.installed_clients import find_clients
        from pytest_loop.show.client_list import render_client_lines

        clients = find_clients()
        self.console.print_lines(render_client_lines(clients))
        if self.settings.output.json:
            self._write_json([client.model_dump(mode="json", by_alias=True) for client in clients])
        return 0

    def _show_history(self) -> int:
        files = self._find_run(self.settings.commands.history)
        state, history = files.read()
        records = iteration_records.build_records(state, history.events)
        if self.settings.output.json:
            analytics = iteration_records.build_analysis(state, records)
            self._write_json(
                {
                    "run": build_result(files, state, history) | {"analytics": analytics},
                    "iterations": [record.model_dump(mode="json") for record in records],
                    "events": [event.model_dump(mode="json") for event in history.events],
                }
            )
            return 0
        look, events = self.console.look, history.events
        is_short = look.verbosity <= 0 and not history.damage
        lines = status_text.render_story(events, state, look, read_diffstat(files)) if is_short else []
        if not lines:
            lines = [*run_tables.render_history(events), *run_tables.render_iterations(state, records)]
        self.console.print_lines(line.rstrip() for line in lines)
        self._print_damage(history)
        return 0

    def _write_report(self) -> int:
        aliases = self.settings.start.alias.split(",")
        if len(aliases) > 1:
            return self._compare_runs(aliases)
        files = self._find_run()
        state, history = files.read()
        write_report(self.settings.output, files, state, history.events, self.console.print_line)
        self._print_damage(history)
        if self.settings.output.json:
            self._write_json(build_result(files, state, history))
        return 0

    def _compare_runs(self, aliases: list[str]) -> int:
        if len(aliases) > 2:
            raise StateError(f"--loop-report: expected at most two runs to compare, found {len(aliases)}")
        runs = [find_run(self.store, alias) for alias in aliases]
        write_comparison(self.settings.output, runs, self.console.print_line)
        return 0

    def _write_debrief(self) -> int:
        write_debrief(self._find_run(), self.settings.workload.debrief, self.console.print_line)
        return 0

    def _infer(self) -> int:
        """Print the criteria that a task leads to: a proposal, or the rule file of a document."""
        from pytest_loop.cli.document_draft import draft_document, explain_templates, find_task_type
        from pytest_loop.cli.task import choose_alias, read_task_context
        from pytest_loop.inference.project_files import read_project
        from pytest_loop.inference.proposal import render_proposal
        from pytest_loop.inference.synthesis import infer_criteria
        from pytest_loop.inference.task_phrases import parse_task
        from pytest_loop.inference.task_refusal import Refusal

        task = parse_task(self.settings.commands.infer or "")
        context = read_task_context(task, self.settings.root, can_judge=True)
        if task_type := find_task_type(self.settings, context):
            folder = self.store.get_run(choose_alias(self.settings, task)).folder
            drafted, _ = draft_document(self.settings, context, task_type, folder)
            self.console.print_line(drafted.rule_file.rstrip("\n"))
            return 0
        proposal = infer_criteria(task, read_project(self.store.project))
        if isinstance(proposal, Refusal):
            self.console.print_line(str(proposal) if task.loop_command else f"{proposal}\n{explain_templates()}")
            return int(pytest.ExitCode.USAGE_ERROR)
        self.console.print_line(render_proposal(proposal).rstrip("\n"))
        return 0

    def _show_failures(self) -> int:
        """Print every rule that does not pass, with its whole message."""
        files = self._find_run(self.settings.commands.show)
        state, _ = files.read()
        self.console.print_lines(failure_lines.render_unmet_rules(state))
        return 0

    def _show_diff(self) -> int:
        """Print what a run has changed: the project since it began, or the last edit of a document."""
        files = self._find_run(self.settings.commands.diff)
        diff = read_change(files.read()[0], files)
        self.console.print_lines(short_diff.paint_diff(diff, self.console.look) if diff else ["nothing was changed"])
        return 0
