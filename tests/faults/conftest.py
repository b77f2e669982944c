"""A project whose run takes three iterations, and ways to run it while things go wrong."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

Story = dict[str, Any]
Told = dict[str, Any]
Tell = Callable[[Sequence[Story]], list[Told]]

RULES = """
    criteria: guide
    rules:
      - id: a.content.title
        description: It has a title
        check: {contains: "# Guide"}
      - id: a.content.install
        description: It says how to install
        check: {contains: "pip install"}
      - id: b.content.note
        description: It has a note
        check: {contains: "Note"}
"""
SLOW = """
    rules:
      - id: a.slow.rule
        description: It takes its time
        check: {command: "sh -c 'touch started; sleep 97.31'", timeout: 100}
"""
WRITER = """
    import shutil
    import subprocess
    import sys
    from pathlib import Path

    from pytest_loop import AgentReply

    ANSWERS = {
        ("PRODUCE", 1): "# Guide\\n",
        ("REFINE", 1): "# Guide\\n\\npip install guide\\n",
        ("REFINE", 2): "# Guide\\n\\npip install guide\\n\\nNote: done\\n",
    }


    def sleeper(request):
        Path("started").touch()
        subprocess.run(["sleep", "97.31"])
        return "never"


    def sweeper(request):
        if request.iteration == 1 and request.step == "REFINE":
            shutil.rmtree(".loop")
        return writer(request)


    def vandal(request):
        answer = writer(request)
        shutil.rmtree(Path.cwd())
        return answer


    def nested(request):
        if request.step == "REFINE" and request.iteration == 1:
            command = [sys.executable, "-m", "pytest", "-p", "pytest_loop.plugin", "--loop-resume"]
            done = subprocess.run(command, capture_output=True, text=True)
            Path("nested.log").write_text(f"{done.returncode} {done.stderr}")
        return writer(request)


    def writer(request):
        with open("asked.log", "a") as log:
            log.write(f"{request.step} {request.iteration}\\n")
        text = ANSWERS[request.step, request.iteration]
        return AgentReply(text=text, usage={"tokens": 10}, exit_signal="Note" in text)
"""


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with rules and an agent; nobody writes into it, every story has a copy."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "guide.rules.yaml").write_text(dedent(RULES).lstrip())
    (folder / "slow.rules.yaml").write_text(dedent(SLOW).lstrip())
    (folder / "writers.py").write_text(dedent(WRITER).lstrip())
    (folder / "pytest.ini").write_text("[pytest]\n")
    return folder


@pytest.fixture(scope="session")
def start() -> list[str]:
    """The command that starts the run."""
    agent = "python:writers:writer"
    return ["guide.rules.yaml", "--loop-task", "Write a guide", "--loop-agent", agent, "--loop-yes"]


@pytest.fixture(scope="session")
def environment() -> dict[str, str]:
    """Without the plugins of this environment: they cost more than everything else."""
    return {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "200"}


@pytest.fixture(scope="session")
def tell(environment: dict[str, str], project: Path, start: list[str]) -> Tell:
    """Carry out stories by `driven.py`."""

    def carry_out(stories: Sequence[Story]) -> list[Told]:
        script = Path(__file__).with_name("driven.py")
        done = subprocess.run(
            [sys.executable, str(script), str(project), *start],
            input=json.dumps(list(stories)),
            capture_output=True,
            text=True,
            env=environment,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    return carry_out


def _heed_signals() -> None:
    """Whatever runs the tests may ignore them."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


class Command:
    """A pytest command at work in a copy of the project."""

    def __init__(self, folder: Path, environment: dict[str, str], *arguments: str) -> None:
        words = [sys.executable, "-m", "pytest", "-p", "pytest_loop.plugin", *arguments]
        self.folder = folder
        self.process = subprocess.Popen(
            words,
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=_heed_signals,
        )

    def wait_for(self, name: str) -> None:
        """Until somebody has made a file."""
        until = time.monotonic() + 60
        while not (self.folder / name).exists():
            assert self.process.poll() is None, self.process.communicate()
            assert time.monotonic() < until, f"nobody made {name}"
            time.sleep(0.02)

    def end(self) -> tuple[int, str, str]:
        """The exit code, and both outputs."""
        out, err = self.process.communicate(timeout=30)
        return self.process.returncode, out, err

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()


@pytest.fixture
def folder(project: Path, tmp_path: Path) -> Path:
    """A copy of the project."""
    return Path(shutil.copytree(project, tmp_path / "copy"))


@pytest.fixture
def begin(folder: Path, environment: dict[str, str]) -> Iterator[Callable[..., Command]]:
    """Begin a pytest command in the copy; whatever is left of it ends with the test."""
    begun: list[Command] = []

    def make(*arguments: str) -> Command:
        begun.append(Command(folder, environment, *arguments))
        return begun[-1]

    yield make
    for one in begun:
        one.kill()
