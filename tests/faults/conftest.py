"""A project whose run takes three iterations, and fixtures that run it with faults."""

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

from pytest_loop.processes import process_marks

Scenario = dict[str, Any]
Report = dict[str, Any]
RunScenarios = Callable[[Sequence[Scenario]], list[Report]]

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
    artifact: slow.md
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
        with open("requests.log", "a") as log:
            log.write(f"{request.step} {request.iteration}\\n")
        text = ANSWERS[request.step, request.iteration]
        return AgentReply(text=text, usage={"tokens": 10}, exit_signal="Note" in text)
"""


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A read-only folder with rules and an agent; every scenario copies it."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "guide.rules.yaml").write_text(dedent(RULES).lstrip())
    (folder / "slow.rules.yaml").write_text(dedent(SLOW).lstrip())
    (folder / "writers.py").write_text(dedent(WRITER).lstrip())
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / ".gitignore").write_text("*.log\nstarted\n")
    return folder


@pytest.fixture(scope="session")
def start_arguments() -> list[str]:
    """The arguments of pytest that start the run."""
    agent = "python:writers:writer"
    return ["guide.rules.yaml", "--loop-task", "Write a guide", "--loop-agent", agent, "--loop-yes"]


@pytest.fixture(scope="session")
def environment() -> dict[str, str]:
    """Environment variables that disable other installed plugins: these cost more than everything else."""
    return {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "200"}


@pytest.fixture(scope="session")
def run_scenarios(environment: dict[str, str], project: Path, start_arguments: list[str]) -> RunScenarios:
    """Run scenarios with `scenario_runner.py`."""

    def run(scenarios: Sequence[Scenario]) -> list[Report]:
        script = Path(__file__).with_name("scenario_runner.py")
        process = subprocess.run(
            [sys.executable, str(script), str(project), *start_arguments],
            input=json.dumps(list(scenarios)),
            capture_output=True,
            text=True,
            env=environment,
            check=False,
        )
        assert process.returncode == 0, process.stderr
        return [json.loads(line) for line in process.stdout.splitlines()]

    return run


def _reset_signals() -> None:
    """Restore the default actions of signals, which the parent of the tests may ignore."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


class Command:
    """A running pytest command in a copy of the project."""

    def __init__(self, folder: Path, environment: dict[str, str], *arguments: str) -> None:
        command = [sys.executable, "-m", "pytest", "-p", "pytest_loop.plugin", *arguments]
        self.folder = folder
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=_reset_signals,
        )

    def wait_for(self, name: str) -> None:
        """Wait until a file exists."""
        deadline = time.monotonic() + 60
        while not (self.folder / name).exists():
            assert self.process.poll() is None, self.process.communicate()
            assert time.monotonic() < deadline, f"{name} was not created"
            time.sleep(0.02)

    def end(self) -> tuple[int, str, str]:
        """Wait for the end and return the exit code, stdout and stderr."""
        out, err = self.process.communicate(timeout=30)
        return self.process.returncode, out, err

    def kill(self) -> None:
        """Kill the run and what it has started, which other tests would find."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()
        for run in (self.folder / ".loop").glob("*/"):
            process_marks.end_marked_processes(process_marks.compute_folder_mark(run))


StartCommand = Callable[..., Command]


@pytest.fixture
def folder(project: Path, tmp_path: Path) -> Path:
    """A copy of the project."""
    return Path(shutil.copytree(project, tmp_path / "copy"))


@pytest.fixture
def start_command(folder: Path, environment: dict[str, str]) -> Iterator[StartCommand]:
    """Start pytest commands in the copy of the project; kill them when the test ends."""
    commands: list[Command] = []

    def start(*arguments: str) -> Command:
        commands.append(Command(folder, environment, *arguments))
        return commands[-1]

    yield start
    for command in commands:
        command.kill()
