"""A small project with a failing test, and an agent that runs the body that a test gives it."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent, indent
from typing import Any

import pytest

from tests.pytest_caller import PytestCaller

FILES = {
    "shop.py": """
        def total(prices):
            return sum(prices) - 1


        def greeting(name):
            return f"Hello, {name}"
        """,
    "tests/test_shop.py": """
        from pathlib import Path

        from shop import greeting, total


        def test_total():
            assert total([1, 2, 3]) == 6


        def test_total_of_more():
            assert total([10, 20]) == 30


        def test_greeting():
            assert greeting("Ada") == Path(__file__).with_name("golden.txt").read_text().strip()
        """,
    "tests/golden.txt": "Hello, Ada\n",
    "tests/conftest.py": "",
    "pytest.ini": "[pytest]\npythonpath = .\n",
}
AGENT_NAME = ("--loop-agent", "python:agent_of_the_test:work")
START = ("--loop-task", "fix until green", *AGENT_NAME, "--loop-yes")
RESUME = ("--loop-resume=fix-until-green", *AGENT_NAME)
AGENT = """
    import os
    import sys
    from pathlib import Path
    from textwrap import dedent

    SHOP = Path("shop.py")


    def write(name, text):
        Path(name).write_text(dedent(text))


    def prepend(text):
        SHOP.write_text(dedent(text) + SHOP.read_text())


    def fix(text="sum(prices)"):
        SHOP.write_text(SHOP.read_text().replace("sum(prices) - 1", text))


    def work(request):
        if request.iteration > 1:
            return None
    {body}
        return "done"
    """


@dataclass(frozen=True)
class RunResult:
    """The outcome of a run."""

    code: int
    state: dict[str, Any]
    output: str

    @property
    def is_green(self) -> bool:
        return self.code == 0 or self.state.get("status") == "completed"

    @property
    def findings(self) -> set[str]:
        """The kinds of tampering that the last evaluation found."""
        return {finding["kind"] for finding in (self.state.get("evaluation") or {}).get("findings", [])}


RunAgent = Callable[..., RunResult]


class ShopProject:
    """The project with a saved run, so that every test starts from the same baseline without computing it again."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.shop = base / "shop"
        self._environment = {"PYTHONPATH": str(self.base), "PYTHONUSERBASE": str(self.base / "user")}
        self.caller = PytestCaller(self._environment)
        self._saved: set[str] = set()

    def reset(self) -> None:
        """Write the original files of the project."""
        for folder in (self.shop, self.base / "user"):
            shutil.rmtree(folder, ignore_errors=True)
        for name, text in FILES.items():
            path = self.shop / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(dedent(text).lstrip("\n"))

    def restore_run(self, *arguments: str) -> None:
        """Restore the project with a run that was stopped before its first edit."""
        name = "-".join(("saved", *arguments))
        if name not in self._saved:
            self.reset()
            self._run_pytest("--loop-max-iterations=1", *START, *arguments)
            shutil.copytree(self.shop, self.base / name, symlinks=True)
            self._saved.add(name)
        shutil.rmtree(self.shop)
        shutil.rmtree(self.base / "user", ignore_errors=True)
        shutil.copytree(self.base / name, self.shop, symlinks=True)

    def run_agent(self, body: str, *arguments: str, **variables: str) -> RunResult:
        """Run an agent with this body on the project."""
        text = dedent(AGENT).replace("{body}", indent(dedent(body).strip(), "    "))
        (self.base / "agent_of_the_test.py").write_text(text)
        process = self._run_pytest("--loop-max-iterations=2", *arguments, **variables)
        state = json.loads((self.shop / ".loop/fix-until-green/run.json").read_text())
        assert "Traceback" not in process.stderr, process.stderr
        return RunResult(process.returncode, state, process.stdout + process.stderr)

    def _run_pytest(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return self.caller.call("-q", *arguments, folder=self.shop, variables={**self._environment, **variables})


@pytest.fixture(scope="session")
def _shared_project(
    tmp_path_factory: pytest.TempPathFactory, _coverage_variables: dict[str, str]
) -> Iterator[ShopProject]:
    project = ShopProject(tmp_path_factory.mktemp("cheats"))
    (project.base / "agent_of_the_test.py").write_text("def work(request): return None\n")
    yield project
    project.caller.close()


@pytest.fixture
def project(_shared_project: ShopProject) -> ShopProject:
    """The shared project; its sessions load the few plugins of all tests here."""
    return _shared_project


@pytest.fixture
def run_agent(project: ShopProject) -> RunAgent:
    """A function that runs an agent on a project with a baseline."""

    def run(body: str, *arguments: str) -> RunResult:
        project.restore_run(*arguments)
        return project.run_agent(body, *RESUME)

    return run
