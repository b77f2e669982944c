"""A small project that warm and cold sessions judge."""

from __future__ import annotations

import os
import re
import site
import sys
import time
import venv
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from pytest_loop.core.model.session_order import SessionOrder
from pytest_loop.session.result import SessionResult
from pytest_loop.session.runner import ColdLauncher, SubprocessSession
from pytest_loop.session.warm.launcher import WarmLauncher

TIMEOUT = 60.0


@dataclass
class Project:
    """The files of a project, and a launcher of warm sessions for it."""

    path: Path
    arguments: tuple[str, ...] = ()
    lines: list[str] = field(default_factory=list)
    timeout: float = TIMEOUT

    def __post_init__(self) -> None:
        self.write("pytest.ini", "[pytest]\n")
        place = ("--rootdir", str(self.path), "-c", str(self.path / "pytest.ini"))
        self.arguments = ("-q", "-p", "no:cacheprovider", *self.arguments, *place)
        self.launcher = WarmLauncher(self.arguments, self.path, time.time(), print_line=self.lines.append)

    def write(self, name: str, text: str) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text).lstrip("\n"), encoding="utf-8")
        return path

    def run_session(self, *extra: str, is_warm: bool = True, **order: Any) -> SessionResult:
        launcher = self.launcher if is_warm else ColdLauncher()
        session = SubprocessSession(
            self.arguments, self.path, self.timeout, os.environ, lambda _data: None, launcher=launcher
        )
        return session.evaluate(SessionOrder(**order), *extra)

    def find_outcomes(self, *, is_warm: bool = True) -> dict[str, str]:
        """Run a session, and return the outcome of each test and of each module that cannot be imported."""
        return _get_outcomes(self.run_session(is_warm=is_warm))

    def compare_sessions(self) -> dict[str, str]:
        """Run a warm and a cold session, check that their results are equal, and return the outcomes."""
        warm, cold = self.run_session(), self.run_session(is_warm=False)
        assert _normalize(warm) == _normalize(cold)
        return _get_outcomes(warm)

    @property
    def server_pid(self) -> int | None:
        """The process of the current fork server."""
        return self.launcher.pid

    def wait_until(self, holds: Callable[[], bool]) -> None:
        """Run sessions until a condition holds: the server loads modules between them."""
        for _ in range(40):
            if holds():
                return
            time.sleep(1.3)  # it does so once it has been idle for a second
            self.run_session()
        raise AssertionError("the condition never held")


def _get_outcomes(result: SessionResult) -> dict[str, str]:
    tests = {name.partition("::")[2]: evidence.outcome.value for name, evidence in result.evidence.items()}
    return tests | dict.fromkeys(result.problems, "problem")


def _normalize(result: SessionResult) -> dict[str, object]:
    """Return a result without what differs between sessions: times, processes and addresses."""
    evidence = {name: piece.model_dump(exclude={"seconds", "inputs"}) for name, piece in result.evidence.items()}
    return {
        "evidence": re.sub(r"0x[0-9a-f]+|\bpid \d+", "", str(sorted(evidence.items()))),
        "problems": result.problems,
        "plan": sorted(result.plan.items) if result.plan else None,
        "plugins": result.plugins,
        "exit_status": result.exit_status,
        "ending": result.ending,
    }


@dataclass
class Environment:
    """A virtual environment with the packages of this one, to which tests add their own."""

    path: Path

    def __post_init__(self) -> None:
        venv.create(self.path, with_pip=False)
        self.site.joinpath("beside.pth").write_text("\n".join([*site.getsitepackages(), *sys.path[1:]]))

    @property
    def python(self) -> str:
        return str(self.path / "bin" / "python")

    @property
    def site(self) -> Path:
        return next(self.path.glob("lib/python*/site-packages"))

    def install(self, name: str, text: str) -> Path:
        path = self.site / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text).lstrip("\n"), encoding="utf-8")
        for bytecode in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
            bytecode.unlink()  # as pip does: Python would take it for a source of the same second and size
        return path


MakeProject = Callable[..., Project]


@pytest.fixture
def make_project(tmp_path: Path) -> Iterator[MakeProject]:
    """Return a function that makes a project; its server ends with the test."""
    projects: list[Project] = []

    def make(*arguments: str) -> Project:
        folder = tmp_path / "project"
        folder.mkdir(exist_ok=True)
        projects.append(Project(folder, arguments))
        return projects[-1]

    yield make
    for project in projects:
        project.launcher.close()


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Environment:
    """An environment whose interpreter sessions use."""
    environment = Environment(tmp_path / "environment")
    monkeypatch.setattr(sys, "executable", environment.python)
    return environment
