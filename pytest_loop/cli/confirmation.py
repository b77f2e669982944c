"""Show what a run is going to do, and ask the user to confirm it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass

import pytest

from pytest_loop.agents.installed_clients import list_unobservable_limits
from pytest_loop.cli.leftovers import describe_uncommitted
from pytest_loop.core.model.run_state import RunState, State
from pytest_loop.inference.gates import Confirm
from pytest_loop.run.console import Console
from pytest_loop.run.fence import plan_fence
from pytest_loop.settings.settings import Settings
from pytest_loop.store.project_runs import Store
from pytest_loop.workspace.sealed_files import SealedFiles


def mark_confirmed(state: State, confirmed_by: str) -> State:
    """Return the state with `confirmed_by` in its draft, such as `terminal` or `--loop-yes`."""
    return state.replace(draft=state.setup.draft.model_copy(update={"confirmed_by": confirmed_by}))


@dataclass(frozen=True)
class Confirmation:
    """Print the draft of a run before it starts, and ask the user to confirm it."""

    settings: Settings
    console: Console
    store: Store

    def print_draft(self, lines: Iterable[str]) -> None:
        """Print lines of the draft; with `-q` only if the user is asked to confirm them."""
        is_shown = self.console.look.verbosity >= 0 or not self.settings.start.yes
        for line in lines:  # a draft that is not clear enough to start raises here
            if is_shown:
                for part in self.console.look.wrap(line, 2) if len(line) > self.console.look.width else [line]:
                    self.console.print_line(part)

    def print_conditions(self, state: RunState, project: SealedFiles | None, *, is_detached: bool) -> None:
        """Print what the user should know before confirming: uncommitted sealed files, the fence, and limits."""
        if project:
            self.console.print_lines(describe_uncommitted(project))
            fence = plan_fence(self.settings, self.store.root, project, state)
            self.print_draft(fence.render_draft(is_verbose=self.settings.verbosity > 0))
            if self.settings.verbosity > 0:
                self.print_draft(f"sealed: {path}" for path in project.list_sealed_files())
        self.print_draft(list_unobservable_limits(state.setup.agents, state.setup.limits))
        if is_detached and not self.settings.start.yes:
            self.print_draft(["works in the background"])

    def confirm(self, state: State, question: str) -> State:
        """Return the state with a record of what confirmed it; raise `KeyboardInterrupt` if the user declines."""
        if self.settings.start.yes:
            confirmed_by = "--loop-yes"
        elif self.settings.start.ask == Confirm.NEVER.value:
            confirmed_by = "loop_ask"
        elif self.console.confirm(question):
            confirmed_by = "terminal"
        elif self.console.can_ask:
            raise KeyboardInterrupt
        else:
            arguments = shlex.join(self.settings.arguments)
            raise pytest.UsageError(f"there is no terminal to confirm this at: type pytest {arguments} --loop-yes")
        return mark_confirmed(state, confirmed_by)
