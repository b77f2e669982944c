"""Judges again whenever files of the project change: what failed first, and warm."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

import pytest

from pytest_loop.cli.draft import NewRun
from pytest_loop.cli.task import Understood
from pytest_loop.core.model.rules import Phase
from pytest_loop.core.model.session_order import SessionOrder
from pytest_loop.core.text.wording import PrintLine, list_names
from pytest_loop.errors import LoopError
from pytest_loop.inference.task_phrases import parse_task
from pytest_loop.processes.interrupts import interrupt_on_signals
from pytest_loop.run.runner import Running
from pytest_loop.session import judge_service
from pytest_loop.session.assess import judged
from pytest_loop.session.bytecode import Bytecode
from pytest_loop.session.runner import Session, SessionError
from pytest_loop.settings.command_line import find_unknown_flag
from pytest_loop.settings.settings import Settings, find_root, read_settings
from pytest_loop.store.project_runs import Store
from pytest_loop.workspace.file_scan import ScanScope, scan_files
from pytest_loop.workspace.file_tree import FileTree, compare_trees

POLL = 0.25
_SHOWN = 5


@dataclass
class Watching:
    """The files of a project, and a session that judges them.

    What a session writes itself is no change: a path that changes while two sessions in a row are at work is left alone
    until it changes while none is.
    """

    root: Path
    scope: ScanScope
    session: Session
    order: SessionOrder
    thresholds: Mapping[str, str]
    say: PrintLine
    ask: Callable[..., float | None]
    has_passed: bool = False
    _own: set[str] = field(default_factory=set)
    _suspects: set[str] = field(default_factory=set)

    def go_on(self) -> NoReturn:
        """Until somebody interrupts."""
        tree = scan_files(self.root, self.scope)
        while True:
            self._judge()
            now = self._look(tree)
            self.say("waiting for a change (Ctrl-C ends)")
            changed = self._by_others(tree, now)
            while not changed:
                time.sleep(POLL)
                tree, now = now, self._look(now)
                changed = set(compare_trees(tree, now).paths)
                self._own -= changed  # nobody but a person writes now
            tree = self._settled(now)
            self.say(f"changed: {list_names(sorted(changed), _SHOWN)}")

    def _by_others(self, before: FileTree, now: FileTree) -> set[str]:
        """What changed while a session was at work, but for what it seems to write itself."""
        during = set(compare_trees(before, now).paths) - self._own
        self._own |= during & self._suspects
        self._suspects = during
        return during - self._own

    def _look(self, before: FileTree) -> FileTree:
        return scan_files(self.root, self.scope, before, trust_stat=True)

    def _settled(self, now: FileTree) -> FileTree:
        """The files once nobody writes any more: an editor, or git, writes many."""
        while True:
            before, now = now, self._look(now)
            if before.digest == now.digest:
                return now
            time.sleep(POLL)

    def _judge(self) -> None:
        try:
            _, found = judged(self.session.evaluate(self.order), self.thresholds, self.ask)
        except SessionError as error:
            self.has_passed = False
            self.say(f"{error}")
        else:
            self.has_passed = found.total > 0 and found.is_reached
            verdict = "PASS" if self.has_passed else "FAIL"
            self.say(f"{verdict}: score {found.score:.3g}, {found.passing} of {found.total} rules pass")


def main(config: pytest.Config, values: argparse.Namespace) -> int:
    """Watch until the person interrupts; the exit code tells the last verdict."""
    if unknown := find_unknown_flag([str(word) for word in config.invocation_params.args]):
        raise pytest.UsageError(unknown)
    try:
        return _watched(config, values, read_settings(config, values))
    except LoopError as error:
        raise pytest.UsageError(str(error)) from None


def _show(data: bytes) -> None:
    sys.stdout.write(data.decode("utf-8", "replace"))
    sys.stdout.flush()


def _watched(config: pytest.Config, values: argparse.Namespace, settings: Settings) -> int:
    _ = settings.command  # two of them are refused
    root = find_root(config, values)
    new = NewRun(config, values, settings, root, Understood(parse_task("")))
    folder = Path(config.invocation_params.dir)
    running = Running(root, folder, settings, (), config.hook, sys.stdout, lambda line: print(line, flush=True))
    session = running.session(new.arguments(), time.time())
    session.bytecode = running.bytecode = Bytecode(root, is_new=False)
    session.heard = _show
    seat = judge_service.seated(config, settings)
    try:
        order = SessionOrder(
            phase=Phase.B,
            artifact=str(new.artifact() or ""),
            confirmed_rules=settings.judging.confirmed,
            judge_address=seat.address if seat else "",
            judge_key=seat.key if seat else "",
            can_reuse=not settings.judging.no_reuse,
            can_stop_early=settings.judging.stop_early,
        )
        runs = Store(root, settings.start.dir).root
        inside = runs.relative_to(root).as_posix() if runs.is_relative_to(root) else ""
        own = config.hook.pytest_loop_score
        watching = Watching(root, ScanScope(inside), session, order, settings.judging.threshold, running.say, own)
        try:
            with interrupt_on_signals():
                watching.go_on()
        except KeyboardInterrupt:
            return int(pytest.ExitCode.OK if watching.has_passed else pytest.ExitCode.TESTS_FAILED)
    finally:
        running.close()
        if seat:
            seat.close()
