"""Show a run in progress: events, questions, its end, and the output for build servers."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field

from pytest_loop.core.events.event import Event
from pytest_loop.core.events.experiment_payloads import AnalysisDone, OptionChosen
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.model.vocabulary import Kind
from pytest_loop.core.reporting.closing_verdict import render_status_block
from pytest_loop.core.text.redactor import Redactor
from pytest_loop.run.console import Console
from pytest_loop.run.ending import read_diffstat
from pytest_loop.settings.settings import Settings
from pytest_loop.show import github_annotations, job_summary, run_tables
from pytest_loop.show.ending_text import describe_next_step, render_end
from pytest_loop.show.live_view import SHOW_AGENTS, LiveView
from pytest_loop.show.run_story import RunStory
from pytest_loop.store.run_files import RunFiles

# Events after which `--loop-status-block` prints the state for other loop tools.
_STATUS_EVENTS = frozenset((Kind.EVALUATION_DONE, Kind.STOPPED, Kind.FAILED))
# Events that are shown at every verbosity.
_DECISIVE_EVENTS = frozenset(
    (
        Kind.EVALUATION_DONE,
        Kind.BASELINE_DONE,
        Kind.PHASE_SWITCHED,
        Kind.PHASE_ERROR,
        Kind.REGRESSION_DETECTED,
        Kind.PLATEAU_REACHED,
    )
)


@dataclass
class RunReporter:
    """The live display of one run, and the messages around it."""

    settings: Settings
    console: Console
    redact: Redactor
    story: RunStory = field(init=False)

    def __post_init__(self) -> None:
        self.story = RunStory(self.console.look)

    @property
    def live(self) -> LiveView:
        return self.console.live

    def report_event(self, event: Event, state: RunState) -> None:
        """Show an event in as many lines as the verbosity allows."""
        self.live.write(next(run_tables.render_history([event])).rstrip(), SHOW_AGENTS)
        is_decisive = event.kind in _DECISIVE_EVENTS or isinstance(event.payload, (AnalysisDone, OptionChosen))
        for line in self.story.tell(event, state):
            self.live.write(line, None if is_decisive else -1)
        if self.settings.output.status_block and event.kind in _STATUS_EVENTS:
            self.live.write("\n".join(render_status_block(state, describe_next_step(state))))
        self.show_position(state)

    def show_position(self, state: RunState) -> None:
        """Show the number of the iteration and its limit in the line of progress."""
        self.live.position = f"{state.iteration}/{state.max_iterations}"

    def report_end(self, state: RunState, files: RunFiles) -> None:
        """Show the result, with annotations and a summary where a build server displays them."""
        self.live.hide()
        self.console.print_lines(render_end(state, self.console.look, read_diffstat(files)))
        if github_annotations.is_on_github(os.environ):
            folder = github_annotations.find_folder_in_checkout(self.settings.root, os.environ)
            for line in github_annotations.render_annotations(state, folder):
                self.console.print_line(self.redact(line))
        if os.environ.get(job_summary.VARIABLE):
            text = self.redact(job_summary.render_summary(state, files.read_history().events))
            if problem := job_summary.append_summary(text, os.environ):
                self.console.print_line(problem)

    @contextlib.contextmanager
    def mute_commands(self) -> Iterator[None]:
        """Keep GitHub from obeying commands in the output of tests and agents."""
        nonce = secrets.token_hex(16)
        if github_annotations.is_on_github(os.environ):
            self.console.print_line(github_annotations.format_mute_command(nonce))
        try:
            yield
        finally:
            if github_annotations.is_on_github(os.environ):
                self.console.print_line(github_annotations.format_unmute_command(nonce))
