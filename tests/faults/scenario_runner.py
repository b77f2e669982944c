"""Run loops with faults injected into system calls. Started as a script with a list of scenarios on stdin.

Each scenario has a copy of a project. Each of its commands is forked from this process, which has imported everything,
so that hundreds of scenarios take seconds. The report of each scenario is printed as one line of JSON.
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

from pytest_loop.agents.protocol import AgentReply, AgentRequest, Watch, make_reply
from pytest_loop.core.model.rules import Criteria, Evidence, Outcome, Phase, Rule, SessionPlan
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
COUNTED_CALLS = ("write", "fsync", "replace", "unlink", "ftruncate")


class QuickSession(SubprocessSession):
    """Evaluate the rules of the project's rule file in this process: these tests are about the files of the run."""

    def evaluate(self, order: SessionOrder, *_extra: str) -> SessionResult:
        path = Path(order.artifact)
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        rules = {
            f"{SOURCE}::{rule_id}": Rule(id=rule_id, description=description, phase=Phase(rule_id[0].upper()))
            for rule_id, (description, _) in RULES.items()
        }
        plan = SessionPlan(
            criteria=(Criteria(name="guide", source=SOURCE, rules=tuple(rules.values())),),
            items={key: (key,) for key, rule in rules.items() if order.phase.includes(rule.phase)},
            documents={SOURCE: ""},
        )
        passing = {key for key, rule in rules.items() if RULES[rule.id][1] in text}
        evidence = {key: Evidence(outcome=Outcome.PASSED if key in passing else Outcome.FAILED) for key in plan.items}
        return SessionResult(plan=plan, evidence=evidence, canaries=[True], exit_status=0)


class QuickAgent:
    """A Python agent of the project, called in this process."""

    def __init__(self, spec: str) -> None:
        self.name = spec
        _, module, function = spec.split(":")
        sys.path.insert(0, str(Path.cwd()))
        self._function: Callable[[AgentRequest], Any] = getattr(importlib.import_module(module), function)

    def answer(self, request: AgentRequest, _watch: Watch) -> AgentReply:
        return make_reply(self._function(request))

    def close(self) -> None:
        pass


class QuickAgentPlugin:
    """A plugin that makes quick agents."""

    def pytest_loop_make_agent(self, spec: str) -> QuickAgent:
        return QuickAgent(spec)


@dataclass
class Fault:
    """A fault at the n-th counted system call, or from there on; 0 means never.

    `names` are the counted calls; with `path`, only calls whose path contains it are counted.
    """

    kind: str = ""
    at: int = 0
    error: str = ""
    names: Sequence[str] = COUNTED_CALLS
    path: str = ""
    calls: list[str] = field(default_factory=list)

    def install(self) -> None:
        for name in self.names:
            setattr(os, name, self._wrap(name, getattr(os, name)))
        if self.kind == "clock":
            vars(clock)["datetime"] = JumpingClock

    def _wrap(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            if self.path and self.path not in str(args[0]):
                return real(*args, **kwargs)
            self.calls.append(name)
            is_at_fault = len(self.calls) == self.at
            if is_at_fault and self.kind == "before":
                _kill_self()
            # The number of calls before a write may differ by a few: git is asked through a pipe.
            if self.kind == "torn" and name == "write" and len(self.calls) >= self.at:
                real(args[0], bytes(args[1])[: len(args[1]) // 2])
                _kill_self()
            if self.kind == "fails" and 0 < self.at <= len(self.calls):
                raise OSError(getattr(errno, self.error), os.strerror(getattr(errno, self.error)))
            if self.kind == "short" and name == "write":
                args = (args[0], bytes(args[1])[:7])
            try:
                return real(*args, **kwargs)
            finally:
                if is_at_fault and self.kind == "after":
                    _kill_self()

        return call


def _kill_self() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class JumpingClock(datetime):
    """A clock that is set forward and back."""

    jumps = 0

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> JumpingClock:
        cls.jumps += 1
        return super().now(tz) + timedelta(days=(-1) ** cls.jumps * cls.jumps)


def run_command(folder: Path, arguments: list[str], fault: Fault, calls: Path, is_quick: bool) -> tuple[int, str]:
    """Run pytest in a forked process; return its exit code (negative: the signal) and its output."""
    output = folder.with_suffix(".out")
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        code = _run_with_fault(folder, arguments, fault, output, is_quick)
        calls.write_text(json.dumps(fault.calls))
        os._exit(code)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status), output.read_text(encoding="utf-8", errors="replace")


def _run_with_fault(folder: Path, arguments: list[str], fault: Fault, output: Path, is_quick: bool) -> int:
    descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    fault.install()
    try:
        return _run_pytest(folder, arguments, is_quick)
    except BaseException:  # the process ends here: print the reason
        traceback.print_exc()
        return 3
    finally:
        sys.stdout.flush()


def _run_pytest(folder: Path, arguments: list[str], is_quick: bool) -> int:
    os.chdir(folder)
    vars(sessions)["SubprocessSession"] = QuickSession if is_quick else SubprocessSession
    try:
        return int(
            pytest.main(["-p", "pytest_loop.plugin", *arguments], plugins=[QuickAgentPlugin()] if is_quick else [])
        )
    except SystemExit as end:
        return int(end.code or 0)


def warm_up(project: str, arguments: list[str]) -> None:
    """Complete one run in this process, so that forked processes inherit what is built at first use."""
    with tempfile.TemporaryDirectory(dir=_find_memory_disk()) as work, contextlib.redirect_stdout(io.StringIO()):
        _run_pytest(Path(shutil.copytree(project, Path(work) / "project")), arguments, is_quick=True)
        os.chdir("/")


def run_scenario(scenario: dict[str, Any], work: Path) -> dict[str, Any]:
    """Run the commands of a scenario and return its report."""
    project = scenario["project"]
    folder = Path(project) if scenario.get("in_place") else Path(shutil.copytree(project, work / "project"))
    calls = work / "calls.json"
    codes: list[int] = []
    outputs: list[str] = []
    for command in scenario["commands"]:
        if "after" in command and codes[-1] != command["after"]:
            continue
        fault = Fault(**command.get("fault", {}))
        code, output = run_command(folder, command["arguments"], fault, calls, scenario.get("quick", True))
        codes.append(code)
        outputs.append(output)
    if "keep" in scenario:
        shutil.copytree(folder, scenario["keep"])
    root = folder / ".loop"
    run = root / "write-a-guide"
    return {
        "codes": codes,
        "outputs": outputs,
        "calls": json.loads(calls.read_text()) if calls.exists() else [],
        "events": _read_events(run / "history.jsonl"),
        "state": json.loads(_read_text(run / "run.json") or "null"),
        "artifact": _read_text(run / "artifact.md"),
        "files": sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()),
        "requests": _read_text(folder / "requests.log").splitlines(),
        "nested": _read_text(folder / "nested.log"),
    }


def _read_events(path: Path) -> list[Any]:
    """Return the readable events of a history."""
    events = []
    for line in path.read_text(errors="replace").splitlines() if path.is_file() else ():
        with contextlib.suppress(ValueError):
            rest = line.strip("\ufeff\0 ")
            while rest:
                event, end = json.JSONDecoder().raw_decode(rest)
                events.append(event)
                rest = rest[end:]
    return events


def _read_text(path: Path) -> str:
    return path.read_text() if path.is_file() else ""


def _find_memory_disk() -> str | None:
    """Return a disk in memory: the tests are about the call at which a process ends, not about flushing."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def main() -> None:
    warm_up(sys.argv[1], sys.argv[2:])
    for scenario in json.load(sys.stdin):
        with tempfile.TemporaryDirectory(prefix="scenario-", dir=_find_memory_disk()) as work:
            print(json.dumps(run_scenario(scenario, Path(work))), flush=True)


if __name__ == "__main__":
    main()
