"""Runs loops whose calls of the system go wrong where a test says so. Started as a script with a list of stories.

Each story has a copy of a project, and each of its commands a process of its own: forked from this one, which has
imported everything, so that hundreds of stories take seconds. What a story came to is printed as one line of JSON.
"""

from __future__ import annotations

import contextlib
import errno
import importlib
import io
import json
import os
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any

import pytest

from pytest_loop.agents.protocol import AgentReply, AgentRequest, Watch
from pytest_loop.agents.protocol import make_reply as as_reply
from pytest_loop.core.model.rules import Criteria, Evidence, Outcome, Phase, Plan, Rule
from pytest_loop.core.model.session_order import SessionOrder
from pytest_loop.run import sessions
from pytest_loop.session.result import SessionResult
from pytest_loop.session.runner import SubprocessSession
from pytest_loop.store import clock

SOURCE = "guide.rules.yaml"
RULES = {
    "a.content.title": ("It has a title", "# Guide"),
    "a.content.install": ("It says how to install", "pip install"),
    "b.content.note": ("It has a note", "Note"),
}
COUNTED = ("write", "fsync", "replace", "unlink", "ftruncate")


class QuickSession(SubprocessSession):
    """Judges the rules of the project's rule file without a session: only the files of the run are of interest here."""

    def evaluate(self, order: SessionOrder, *_extra: str) -> SessionResult:
        path = Path(order.artifact)
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        rules = {
            f"{SOURCE}::{one}": Rule(id=one, description=description, phase=Phase(one[0].upper()))
            for one, (description, _) in RULES.items()
        }
        plan = Plan(
            criteria=(Criteria(name="guide", source=SOURCE, rules=tuple(rules.values())),),
            items={key: (key,) for key, rule in rules.items() if order.phase.includes(rule.phase)},
        )
        passing = {key for key, rule in rules.items() if RULES[rule.id][1] in text}
        told = {key: Evidence(outcome=Outcome.PASSED if key in passing else Outcome.FAILED) for key in plan.items}
        return SessionResult(plan=plan, evidence=told, exit_status=0)


class QuickAgent:
    """A Python agent of the project, asked inside this process."""

    is_serial = True

    def __init__(self, spec: str) -> None:
        self.name = spec
        _, module, function = spec.split(":")
        sys.path.insert(0, str(Path.cwd()))
        self._function: Callable[[AgentRequest], Any] = getattr(importlib.import_module(module), function)

    def answer(self, request: AgentRequest, _watch: Watch) -> AgentReply:
        return as_reply(self._function(request))

    def close(self) -> None:
        """Nothing is open."""


class Quick:
    """A plugin that makes agents which take no time."""

    def pytest_loop_make_agent(self, spec: str) -> QuickAgent:
        return QuickAgent(spec)


@dataclass
class Fault:
    """What goes wrong, at the n-th counted call of the system or from there on; 0 is never.

    `names` are the calls that count, `path` is a part of the only paths that it happens to.
    """

    kind: str = ""
    at: int = 0
    error: str = ""
    names: Sequence[str] = COUNTED
    path: str = ""
    seen: list[str] = field(default_factory=list)

    def install(self) -> None:
        for name in self.names:
            setattr(os, name, self._wrapped(name, getattr(os, name)))
        if self.kind == "clock":
            vars(clock)["datetime"] = JumpingClock

    def _wrapped(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            if self.path and self.path not in str(args[0]):
                return real(*args, **kwargs)
            self.seen.append(name)
            is_here = len(self.seen) == self.at
            if is_here and self.kind == "before":
                _die()
            if is_here and self.kind == "torn":
                real(args[0], bytes(args[1])[: len(args[1]) // 2])
                _die()
            if self.kind == "fails" and 0 < self.at <= len(self.seen):
                raise OSError(getattr(errno, self.error), os.strerror(getattr(errno, self.error)))
            if self.kind == "short" and name == "write":
                args = (args[0], bytes(args[1])[:7])
            try:
                return real(*args, **kwargs)
            finally:
                if is_here and self.kind == "after":
                    _die()

        return call


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class JumpingClock(datetime):
    """A clock that is set forward and back."""

    jumps = 0

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> JumpingClock:
        cls.jumps += 1
        return super().now(tz) + timedelta(days=(-1) ** cls.jumps * cls.jumps)


def command(folder: Path, arguments: list[str], fault: Fault, calls: Path, is_quick: bool) -> tuple[int, str]:
    """The exit code of a pytest command in a process of its own (negative: the signal), and what it said."""
    output = folder.with_suffix(".out")
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        code = _become(folder, arguments, fault, output, is_quick)
        calls.write_text(json.dumps(fault.seen))
        os._exit(code)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status), output.read_text(encoding="utf-8", errors="replace")


def _become(folder: Path, arguments: list[str], fault: Fault, output: Path, is_quick: bool) -> int:
    descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    fault.install()
    try:
        return _run(folder, arguments, is_quick)
    except BaseException:  # the process ends soon, and nobody else would say why
        traceback.print_exc()
        return 3
    finally:
        sys.stdout.flush()


def _run(folder: Path, arguments: list[str], is_quick: bool) -> int:
    os.chdir(folder)
    vars(sessions)["SubprocessSession"] = QuickSession if is_quick else SubprocessSession
    try:
        return int(pytest.main(["-p", "pytest_loop.plugin", *arguments], plugins=[Quick()] if is_quick else []))
    except SystemExit as end:
        return int(end.code or 0)


def warm(project: str, arguments: list[str]) -> None:
    """One whole run in this process: what is built when it is first used, is then there for all stories."""
    with tempfile.TemporaryDirectory(dir=_memory()) as work, contextlib.redirect_stdout(io.StringIO()):
        _run(Path(shutil.copytree(project, Path(work) / "project")), arguments, is_quick=True)
        os.chdir("/")


def told(story: dict[str, Any], work: Path) -> dict[str, Any]:
    """Carry out the commands of a story; what came of it."""
    folder = (
        Path(story["project"]) if story.get("in_place") else Path(shutil.copytree(story["project"], work / "project"))
    )
    calls = work / "calls.json"
    codes: list[int] = []
    said: list[str] = []
    for one in story["commands"]:
        if "after" in one and codes[-1] != one["after"]:
            continue
        fault = Fault(**one.get("fault", {}))
        code, text = command(folder, one["arguments"], fault, calls, story.get("quick", True))
        codes.append(code)
        said.append(text)
    if "keep" in story:
        shutil.copytree(folder, story["keep"])
    root = folder / ".loop"
    run = root / "write-a-guide"
    return {
        "codes": codes,
        "said": said,
        "calls": json.loads(calls.read_text()) if calls.exists() else [],
        "events": _lines(run / "history.jsonl"),
        "state": json.loads(_text(run / "run.json") or "null"),
        "artifact": _text(run / "artifact.md"),
        "files": sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()),
        "asked": _text(folder / "asked.log").splitlines(),
        "nested": _text(folder / "nested.log"),
    }


def _lines(path: Path) -> list[Any]:
    """The events that can be read of a history."""
    found = []
    for line in path.read_text(errors="replace").splitlines() if path.is_file() else ():
        with contextlib.suppress(ValueError):
            left = line.strip("\ufeff\0 ")
            while left:
                event, end = json.JSONDecoder().raw_decode(left)
                found.append(event)
                left = left[end:]
    return found


def _text(path: Path) -> str:
    return path.read_text() if path.is_file() else ""


def _memory() -> str | None:
    """A disk that flushes at once: what is flushed when is not of interest, only where a process ends."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def main() -> None:
    warm(sys.argv[1], sys.argv[2:])
    for story in json.load(sys.stdin):
        with tempfile.TemporaryDirectory(prefix="driven-", dir=_memory()) as work:
            print(json.dumps(told(story, Path(work))), flush=True)


if __name__ == "__main__":
    main()
