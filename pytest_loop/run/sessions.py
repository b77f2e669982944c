"""Create the sessions of a run."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from pytest_loop.core.text.wording import PrintLine
from pytest_loop.session.bytecode import BytecodeCache
from pytest_loop.session.history import SessionHistory
from pytest_loop.session.result import BaselineResult
from pytest_loop.session.runner import Launcher, SubprocessSession
from pytest_loop.session.warm.launcher import make_launcher
from pytest_loop.settings.settings import Settings
from pytest_loop.show.live_view import SHOW_SESSIONS, LiveView
from pytest_loop.show.look import Look


@dataclass
class SessionFactory:
    """Create sessions that share a fork server, a bytecode cache, and the durations and failures of the last one."""

    settings: Settings
    print_line: PrintLine
    bytecode: BytecodeCache | None = None
    live: LiveView | None = None
    baseline_result: BaselineResult | None = None
    _launcher: Launcher | None = None
    _history: SessionHistory = field(default_factory=SessionHistory)

    def make(self, arguments: tuple[str, ...], started_at: float) -> SubprocessSession:
        """Return a session that drops its output; `started_at` is the time when the run was created."""
        judging = self.settings.judging
        if self._launcher is None:
            self._launcher = make_launcher(judging.session, arguments, self.settings.root, started_at, self._print)
        session = SubprocessSession(
            arguments,
            self.settings.folder,
            judging.session_timeout,
            os.environ,
            lambda _data: None,
            bytecode=self.bytecode,
            launcher=self._launcher,
            history=self._history,
        )
        if self.live is not None:
            session.show_progress = self.live.show_session
            session.should_continue = self._refresh_view
        return session

    def _refresh_view(self) -> bool:
        """Refresh the live view, and let the session continue."""
        if self.live is not None:
            self.live.refresh()
        return True

    def cache_bytecode(self, *, is_new: bool) -> BytecodeCache:
        """Give later sessions a bytecode cache, and return it; a new one trusts what the first session compiles."""
        self.bytecode = BytecodeCache(self.settings.root, is_new_run=is_new)
        return self.bytecode

    def _print(self, line: str) -> None:
        self.print_line(line)  # looked up late: a live display may have replaced it

    def close(self) -> None:
        for resource in (self._launcher, self.bytecode):
            if resource is not None:
                resource.close()


def set_display(session: SubprocessSession, look: Look) -> None:
    """Let a session print as much as the user wants to read: nothing, or more with each further `-v`."""
    if look.verbosity >= SHOW_SESSIONS:
        colour = "yes" if look.is_coloured else "no"
        session.columns = look.width
        session.display = (f"--color={colour}", f"--verbosity={look.verbosity - SHOW_SESSIONS}")
