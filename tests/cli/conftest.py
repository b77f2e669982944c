"""Saved runs, and commands about them inside this process."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any, NamedTuple

import pytest

from pytest_loop.core.events.event import Event
from pytest_loop.core.machine.run_machine import RUN_MACHINE
from pytest_loop.core.model.run_state import RunState
from pytest_loop.store.project_runs import Store
from pytest_loop.store.run_files import RunFiles

ARTIFACT_HASH = "ab" * 32
STEPS: list[tuple[str, dict[str, Any]]] = [
    ("plan_created", {"plan": ["Write it"], "seconds": 1.0}),
    ("artifact_created", {"artifact_hash": ARTIFACT_HASH, "usage": {"tokens": 10}, "seconds": 2.0}),
    ("evaluation_done", {"artifact_hash": "abababab", "score": 0.5, "passed": False, "total": 2, "passing": 1}),
    ("critique_done", {"issues": []}),
    ("refinement_done", {"artifact_hash": ARTIFACT_HASH}),
    ("iteration_advanced", {}),
    ("plan_created", {"plan": ["Mend it"]}),
    ("evaluation_done", {"artifact_hash": "abababab", "score": 0.75, "passed": False, "total": 2, "passing": 1}),
]
GOOD: tuple[str, dict[str, Any]] = (
    "evaluation_done",
    {"artifact_hash": "abababab", "phase": "B", "score": 1.0, "passed": True, "total": 2, "passing": 2},
)
HOLDER = """
    import sys, time
    from pathlib import Path
    from pytest_loop.store.project_runs import Store

    for alias in sys.argv[1:]:
        Store(Path()).get_run(alias).acquire()
    print("held", flush=True)
    time.sleep(60)
"""
RULES = """
    rules:
      - id: a.content.title
        description: It has a title
        check: {contains: "# Guide"}
      - id: b.content.note
        description: It has a note
        check: {contains: "Note"}
"""
WRITERS = """
    import time
    from pathlib import Path


    def sleeper(request):
        Path("started").touch()
        time.sleep(60)
"""
MakeRun = Callable[..., RunFiles]
Command = Callable[..., "CommandResult"]
HoldRuns = Callable[..., int]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "guide.rules.yaml").write_text(dedent(RULES))
    (tmp_path / "writers.py").write_text(dedent(WRITERS))
    return tmp_path


@pytest.fixture
def make_run(project: Path) -> MakeRun:
    """Return a function that writes a run after some of its steps, or stopped for a reason, without a process."""

    def write(
        alias: str = "guide", steps: int = 8, reason: str = "", updated: str = "2026-01-02", **state: Any
    ) -> RunFiles:
        rule = {"id": "a.content.title", "key": "a.content.title", "description": "It has a title"}
        fields = {
            "run_id": f"{alias}-1",
            "task_alias": alias,
            "task": {"prompt": "Write"},
            "criteria": {"rules": [rule]},
        }
        is_good = reason == "threshold_reached"
        first = RunState.model_validate({**fields, "phase": "B" if is_good else "A"})
        first = first.replace(**{"artifact": "guide.md", **state})
        events = [_make_event(first, "run_started", {"state": first.model_dump(mode="json")}, updated)]
        saved = first
        done = [*STEPS[:2], GOOD] if is_good else STEPS[:steps]
        for kind, payload in [*done, *([("stopped", {"reason": reason})] if reason else [])]:
            events.append(_make_event(saved, kind, payload, updated))
            saved = RUN_MACHINE.apply(saved, events[-1])
        files = Store(project).get_run(alias)
        files.acquire()
        files.append(events, saved)
        files.write_artifact("# Guide\n")
        files.release()
        return files

    return write


def _make_event(state: RunState, kind: str, payload: dict[str, Any], updated: str) -> Event:
    return Event(
        ts=updated,
        run_id=state.run_id,
        iteration=state.iteration,
        phase=state.phase,
        step=state.current_step.value,
        event=kind,
        payload=payload,
    )


@pytest.fixture
def hold_runs(project: Path) -> Iterator[HoldRuns]:
    """Return a function that starts a process which holds runs, and returns its pid."""
    processes = []

    def begin(*aliases: str) -> int:
        command = [sys.executable, "-c", dedent(HOLDER), *aliases]
        processes.append(subprocess.Popen(command, cwd=project, stdout=subprocess.PIPE))
        assert processes[-1].stdout is not None
        processes[-1].stdout.readline()
        return processes[-1].pid

    yield begin
    for process in processes:
        process.kill()
        process.communicate()


class CommandResult(NamedTuple):
    """The exit code and the output of a command."""

    code: int
    out: str
    err: str

    def get_lines(self, code: int = 0) -> list[str]:
        """Return the lines of a command without errors."""
        assert (self.code, self.err) == (code, ""), self
        return self.out.splitlines()

    def get_json(self, code: int = 0) -> Any:
        """Return the JSON that a command has printed."""
        assert self.code == code, self
        return json.loads(self.out)

    @property
    def refusal(self) -> str:
        assert (self.code, self.out) == (pytest.ExitCode.USAGE_ERROR, ""), self
        return self.err.strip().removeprefix("ERROR: ")


@pytest.fixture
def command(project: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    """Return a function that runs pytest inside this process."""

    def execute(*arguments: str) -> CommandResult:
        capsys.readouterr()
        try:
            code: Any = pytest.main(["-s", *arguments])
        except SystemExit as end:
            code = end.code
        return CommandResult(int(code), *capsys.readouterr())

    return execute
