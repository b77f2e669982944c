"""A small project, judged by warm and by cold sessions side by side."""

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

import pytest

from pytest_loop.core.model.session_order import SessionOrder
from pytest_loop.session.result import SessionResult
from pytest_loop.session.runner import ColdLauncher, SubprocessSession
from pytest_loop.session.warm.launcher import WarmLauncher

TIMEOUT = 60.0


@dataclass
class Project:
    """Its files, and two ways to judge them."""

    path: Path
    words: tuple[str, ...] = ()
    said: list[str] = field(default_factory=list)
    timeout: float = TIMEOUT

    def __post_init__(self) -> None:
        self.write("pytest.ini", "[pytest]\n")
        place = ("--rootdir", str(self.path), "-c", str(self.path / "pytest.ini"))
        self.words = ("-q", "-p", "no:cacheprovider", *self.words, *place)
        self.warm = WarmLauncher(self.words, self.path, time.time(), print_line=self.said.append)

    def write(self, name: str, text: str) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text).lstrip("\n"), encoding="utf-8")
        return path

    def judge(self, *extra: str, is_warm: bool = True) -> SessionResult:
        launcher = self.warm if is_warm else ColdLauncher()
        session = SubprocessSession(
            self.words, self.path, self.timeout, os.environ, lambda _data: None, launcher=launcher
        )
        return session.evaluate(SessionOrder(), *extra)

    def outcomes(self, *, is_warm: bool = True) -> dict[str, str]:
        """What became of each test; of a module that cannot be imported, too."""
        return _outcomes(self.judge(is_warm=is_warm))

    def both(self) -> dict[str, str]:
        """The same in a warm and in a cold session, word by word."""
        warm, cold = self.judge(), self.judge(is_warm=False)
        assert _words(warm) == _words(cold)
        return _outcomes(warm)

    @property
    def server(self) -> int | None:
        """The process that sessions are forked from now."""
        return self.warm.pid

    def until(self, holds: Callable[[], bool]) -> None:
        """Judge again and again: the server learns between sessions."""
        for _ in range(40):
            if holds():
                return
            time.sleep(0.5)
            self.judge()
        raise AssertionError("it never came true")


def _outcomes(found: SessionResult) -> dict[str, str]:
    tests = {name.partition("::")[2]: one.outcome.value for name, one in found.evidence.items()}
    return tests | dict.fromkeys(found.problems, "problem")


def _words(found: SessionResult) -> dict[str, object]:
    """What a session says, without what differs between any two: times, processes and places in memory."""
    told = {name: one.model_dump(exclude={"seconds", "inputs"}) for name, one in found.evidence.items()}
    return {
        "evidence": re.sub(r"0x[0-9a-f]+|\bpid \d+", "", str(sorted(told.items()))),
        "problems": found.problems,
        "plan": sorted(found.plan.items) if found.plan else None,
        "plugins": found.plugins,
        "finished": found.exit_status,
        "ending": found.ending,
    }


@dataclass
class Environment:
    """A virtual environment with packages of our own beside those that are installed here."""

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
        return path


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Callable[..., Project]]:
    """Makes a project; what it has started ends with the test."""
    made: list[Project] = []

    def make(*words: str) -> Project:
        folder = tmp_path / "project"
        folder.mkdir(exist_ok=True)
        made.append(Project(folder, words))
        return made[-1]

    yield make
    for one in made:
        one.warm.close()


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Environment:
    """An environment that sessions use instead of this one."""
    made = Environment(tmp_path / "environment")
    monkeypatch.setattr(sys, "executable", made.python)
    return made
