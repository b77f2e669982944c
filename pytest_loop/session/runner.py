"""EVALUATE as a child pytest session in a fresh process; what it found comes through a pipe of our own."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from pytest_loop.core.model.rules import Evidence, Outcome, Plan
from pytest_loop.core.model.session_order import SessionOrder
from pytest_loop.errors import LoopError
from pytest_loop.processes import child
from pytest_loop.session.bytecode import VARIABLE as COMPILED
from pytest_loop.session.bytecode import Bytecode
from pytest_loop.session.history import Memory, is_bad
from pytest_loop.session.warm.client import ServerDiedError, Warm
from pytest_loop.session.warm.direct import Here

VARIABLE = "PYTEST_LOOP_SESSION"
# As `python -m pytest`, but a module of the working folder never takes the place of one that is installed.
START = """\
import os, sys
here = os.getcwd()
sys.path[:] = [path for path in sys.path if path not in ("", here)] + [here]
import pytest
sys.exit(pytest.main())
"""


class SessionError(LoopError):
    """The session did not come far enough to judge anything."""


class SessionStoppedError(SessionError):
    """Somebody asked for the end while the session was at work."""


@dataclass
class Judgement:
    """What a session came to: the plan, what its items reported, and how it ended."""

    plan: Plan | None = None
    evidence: dict[str, Evidence] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    canaries: list[bool] = field(default_factory=list)
    plugins: frozenset[str] = frozenset()
    running: str = ""
    finished: int | None = None
    ending: str = ""
    output: str = ""

    def by_rule(self) -> dict[str, list[Evidence]]:
        """The evidence of each rule; an item of the plan without a report died with the session."""
        found: dict[str, list[Evidence]] = {}
        for nodeid, keys in (self.plan.items if self.plan else {}).items():
            for key in keys:
                found.setdefault(key, []).append(self.evidence.get(nodeid) or self.missing(nodeid))
        return found

    def of_module(self, path: str) -> list[Evidence]:
        """The evidence of a module that could not be imported when the run began: all that was found in it since."""
        found = [one for nodeid, one in self.evidence.items() if nodeid.startswith(f"{path}::")]
        return found if found and path not in self.problems else [self.missing()]

    @property
    def is_reused(self) -> bool:
        """Whether a part of it was not found now."""
        return any(one.reused for one in self.evidence.values())

    def missing(self, nodeid: str = "") -> Evidence:
        """What is known of an item that did not report."""
        if self.problems:
            text = f"not verified: {'; '.join(f'{name}: {_last_line(text)}' for name, text in self.problems.items())}"
        elif self.finished is not None:
            text = "not verified: no report arrived"
        elif nodeid == self.running:
            text = f"not verified: the session died here ({self.ending})"
        else:
            text = f"not verified: the session died ({self.ending}) in {self.running or 'its collection'}"
        return Evidence(outcome=Outcome.MISSING, text=text)


class Session(Protocol):
    """Whoever can judge; a faster one may take the place of the cold one."""

    def evaluate(self, order: SessionOrder, *extra: str) -> Judgement:
        """Run one session; raises `SessionError` where nothing could be judged."""


@dataclass
class ChildSession:
    """A process of its own for every session, with the person's own arguments; `warm` may start it sooner."""

    arguments: tuple[str, ...]
    folder: Path
    timeout: float
    environment: Mapping[str, str]
    heard: Callable[[bytes], None]
    wanted: Callable[[], bool] = lambda: True
    bytecode: Bytecode | None = None
    warm: Warm | Here | None = None
    memory: Memory = field(default_factory=Memory)

    def evaluate(self, order: SessionOrder, *extra: str) -> Judgement:
        found = self._judged(self.memory.reminded(order), extra)
        if order.can_stop_early and found.plan is not None and any(map(is_bad, found.evidence.values())):
            found.evidence |= self.memory.of_others(found.plan.items, found.evidence)
        self.memory.learn(found.evidence)
        return found

    def _judged(self, order: SessionOrder, extra: tuple[str, ...]) -> Judgement:
        own: dict[str, str] = {}
        if self.bytecode is not None:
            is_cold = self.warm is None or not self.warm.is_ready
            own = {COMPILED: str(self.bytecode.fresh(is_full=is_cold)), "PYTHONDONTWRITEBYTECODE": ""}
        if self.warm is not None:
            try:
                return self._evaluated(order, extra, own, self.warm.start)
            except ServerDiedError:
                self.warm.broke()
        return self._evaluated(order, extra, own, child.start_process)

    def _evaluated(
        self, order: SessionOrder, extra: tuple[str, ...], own: Mapping[str, str], start: child.Starter
    ) -> Judgement:
        ours, theirs = os.pipe()
        judgement = Judgement()
        listener = threading.Thread(target=_listen, args=(ours, judgement), daemon=True)
        with tempfile.TemporaryDirectory(prefix="pytest-loop-") as folder:
            path = Path(folder) / "order.json"
            path.write_text(order.model_dump_json(), encoding="utf-8")
            listener.start()
            try:
                done = child.run_command(self._order(path, theirs, extra, own), start)
            except child.CannotStartError as error:
                raise SessionError(str(error)) from None
            finally:
                os.close(theirs)
                listener.join(child.GRACE_PERIOD)
        judgement.ending = _ending(done)
        judgement.output = done.output
        self._check(judgement, done)
        return judgement

    def _order(self, path: Path, channel: int, extra: tuple[str, ...], own: Mapping[str, str]) -> child.Command:
        return child.Command(
            [sys.executable, "-c", START, *self.arguments, *extra],
            self.folder,
            self.timeout,
            env={**self.environment, **own, VARIABLE: f"{channel} {path}"},
            pass_fds=(channel,),
            on_output=self.heard,
            should_continue=self.wanted,
            is_thorough=True,
        )

    def _check(self, judgement: Judgement, done: child.CommandResult) -> None:
        """Without a plan nothing was judged; one that ended early has judged what it failed by."""
        if done.ending is child.Ending.REQUEST:
            raise SessionStoppedError("the evaluation was stopped on request")
        is_decided = any(map(is_bad, judgement.evidence.values()))
        interrupted = judgement.finished == 2 and not judgement.problems and not is_decided
        if judgement.plan is None or interrupted or judgement.finished in (3, 4):
            last = [line for line in done.output.splitlines() if line.strip()][-3:]
            raise SessionError(f"the evaluation could not be carried out ({judgement.ending}): {' / '.join(last)}")


def _ending(done: child.CommandResult) -> str:
    if done.ending is not child.Ending.COMPLETED:
        return str(done.ending.value)
    return f"exit code {done.exit_code}" if done.exit_code >= 0 else f"signal {-done.exit_code}"


def _last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


def _listen(descriptor: int, judgement: Judgement) -> None:
    with os.fdopen(descriptor, "rb") as pipe:
        for line in pipe:
            try:
                _note(json.loads(line), judgement)
            except (ValueError, KeyError, TypeError):  # the code under test may have written into our pipe
                continue


def _note(message: dict[str, Any], judgement: Judgement) -> None:
    if "plan" in message:
        judgement.plan = Plan.model_validate(message["plan"])
    elif "evidence" in message:
        for nodeid, evidence in message["evidence"]:
            judgement.evidence[nodeid] = Evidence.model_validate(evidence)
    elif "problem" in message:
        judgement.problems[str(message["problem"])] = str(message["text"])
    elif "canary" in message:
        judgement.canaries.append(message["canary"] is True)
    elif "plugins" in message:
        judgement.plugins = frozenset(map(str, message["plugins"]))
    elif "start" in message:
        judgement.running = str(message["start"])
    elif "finished" in message:
        judgement.finished = int(message["finished"])
