"""Judge again whenever files of the project change (`--loop-watch`)."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

import pytest

from pytest_loop.cli.document import resolve_artifact
from pytest_loop.cli.session_arguments import build_judging_arguments
from pytest_loop.core.model.rules import Phase
from pytest_loop.core.model.session_order import SessionOrder
from pytest_loop.core.text.score_text import format_score
from pytest_loop.core.text.wording import PrintLine, list_names
from pytest_loop.errors import LoopError
from pytest_loop.processes.interrupts import interrupt_on_signals
from pytest_loop.run.console import Console
from pytest_loop.run.sessions import SessionFactory
from pytest_loop.session import judge_service
from pytest_loop.session.result import assess_session
from pytest_loop.session.runner import Session, SessionError
from pytest_loop.settings.command_line import describe_unknown_flag
from pytest_loop.settings.settings import Settings, read_settings
from pytest_loop.store.project_runs import Store
from pytest_loop.workspace.file_scan import ScanScope, scan_files
from pytest_loop.workspace.file_tree import FileTree, compare_trees

POLL_SECONDS = 0.25
_MAX_NAMES = 5


def main(config: pytest.Config, values: argparse.Namespace) -> int:
    """Watch until an interrupt; the exit code tells the last verdict."""
    if problem := describe_unknown_flag([str(argument) for argument in config.invocation_params.args]):
        raise pytest.UsageError(problem)
    try:
        return _watch(config, read_settings(config, values))
    except LoopError as error:
        raise pytest.UsageError(str(error)) from None


def _watch(config: pytest.Config, settings: Settings) -> int:
    _ = settings.command  # raises `UsageError` if there are two commands
    console = Console(sys.stdout)
    sessions = SessionFactory(settings, console.print_line)
    session = sessions.make(build_judging_arguments(settings), time.time())
    session.bytecode = sessions.cache_bytecode(is_new=False)
    session.on_output = _write_output
    artifact = resolve_artifact(settings)
    judge = judge_service.start_judge_for_run(config, settings)
    order = SessionOrder(
        phase=Phase.B,
        artifact=str(artifact or ""),
        confirmed_rules=settings.judging.confirm,
        judge_address=judge.address if judge else "",
        judge_key=judge.key if judge else "",
        can_reuse=not settings.judging.no_reuse,
        can_stop_early=settings.judging.stop_early,
    )
    watcher = Watcher(
        settings.root,
        ScanScope(Store(settings.root, settings.start.dir).folder_in_project),
        session,
        order,
        settings.judging.threshold,
        console.print_line,
        config.hook.pytest_loop_score,
    )
    try:
        with interrupt_on_signals():
            watcher.watch()
    except KeyboardInterrupt:
        return int(pytest.ExitCode.OK if watcher.has_passed else pytest.ExitCode.TESTS_FAILED)
    finally:
        sessions.close()
        if judge:
            judge.close()


def _write_output(data: bytes) -> None:
    sys.stdout.write(data.decode("utf-8", "replace"))
    sys.stdout.flush()


@dataclass
class Watcher:
    """Watch the files of a project, and evaluate them with a session.

    Ignore files that change during two sessions in a row, until they change between sessions: the session seems to
    write them. `score` is the hook that may replace the score.
    """

    root: Path
    scope: ScanScope
    session: Session
    order: SessionOrder
    thresholds: Mapping[str, str]
    print_line: PrintLine
    score: Callable[..., float | None]
    has_passed: bool = False
    _ignored: set[str] = field(default_factory=set)
    _suspects: set[str] = field(default_factory=set)

    def watch(self) -> NoReturn:
        """Judge, and wait for the next change, until an interrupt."""
        tree = scan_files(self.root, self.scope)
        while True:
            self.judge()
            after = self._scan(tree)
            self.print_line("waiting for a change (Ctrl-C ends)")
            changed = self.find_changes(tree, after)
            while not changed:
                time.sleep(POLL_SECONDS)
                tree, after = after, self._scan(after)
                changed = set(compare_trees(tree, after).paths)
                self._ignored -= changed  # written by the user: no session is running
            tree = self._wait_until_stable(after)
            self.print_line(f"changed: {list_names(sorted(changed), _MAX_NAMES)}")

    def find_changes(self, before: FileTree, after: FileTree) -> set[str]:
        """Return files that changed during a session; ignore those that also changed during the session before."""
        changed = set(compare_trees(before, after).paths) - self._ignored
        self._ignored |= changed & self._suspects
        self._suspects = changed
        return changed - self._ignored

    def _scan(self, before: FileTree) -> FileTree:
        return scan_files(self.root, self.scope, before, before)

    def _wait_until_stable(self, tree: FileTree) -> FileTree:
        """Wait until two scans find the same files, because an editor or git may still write; return them."""
        while True:
            before, tree = tree, self._scan(tree)
            if before.digest == tree.digest:
                return tree
            time.sleep(POLL_SECONDS)

    def judge(self) -> None:
        """Run one session, and print its verdict."""
        try:
            _, evaluation = assess_session(self.session.evaluate(self.order), self.thresholds, self.score)
        except SessionError as error:
            self.has_passed = False
            self.print_line(f"{error}")
        else:
            self.has_passed = evaluation.total > 0 and evaluation.is_reached
            verdict = "PASS" if self.has_passed else "FAIL"
            counts = f"{evaluation.passing} of {evaluation.total} rules pass"
            self.print_line(f"{verdict}: score {format_score(evaluation.score)}, {counts}")
