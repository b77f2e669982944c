"""A small project with a red test, and an agent that does whatever a test says."""

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

from tests.calling import Caller

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


    def before(text):
        SHOP.write_text(dedent(text) + SHOP.read_text())


    def mend(text="sum(prices)"):
        SHOP.write_text(SHOP.read_text().replace("sum(prices) - 1", text))


    def work(request):
        if request.iteration > 1:
            return None
    {body}
        return "done"
    """


@dataclass(frozen=True)
class Verdict:
    """What a run came to."""

    code: int
    state: dict[str, Any]
    said: str

    @property
    def is_green(self) -> bool:
        return self.code == 0 or self.state.get("status") == "completed"

    @property
    def findings(self) -> set[str]:
        """What kinds of tampering the last evaluation found."""
        return {one["kind"] for one in (self.state.get("evaluation") or {}).get("findings", [])}


Judge = Callable[..., Verdict]


class Court:
    """The project in a folder of its own, judged once; every test finds it as it was then."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.shop = base / "shop"
        self._own = {"PYTHONPATH": str(self.base), "PYTHONUSERBASE": str(self.base / "user")}
        self.caller = Caller(self._own)
        self._saved: set[str] = set()

    def fresh(self) -> None:
        """The project, as nobody has touched it."""
        for folder in (self.shop, self.base / "user"):
            shutil.rmtree(folder, ignore_errors=True)
        for name, text in FILES.items():
            path = self.shop / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(dedent(text).lstrip("\n"))

    def begun(self, *arguments: str) -> None:
        """The project with a run that was stopped before its first edit."""
        name = "-".join(("saved", *arguments))
        if name not in self._saved:
            self.fresh()
            self._pytest("--loop-max-iterations=1", *START, *arguments)
            shutil.copytree(self.shop, self.base / name, symlinks=True)
            self._saved.add(name)
        shutil.rmtree(self.shop)
        shutil.rmtree(self.base / "user", ignore_errors=True)
        shutil.copytree(self.base / name, self.shop, symlinks=True)

    def judge(self, body: str, *words: str, **variables: str) -> Verdict:
        """Let an agent with this body work on the project, and say what the run came to."""
        text = dedent(AGENT).replace("{body}", indent(dedent(body).strip(), "    "))
        (self.base / "agent_of_the_test.py").write_text(text)
        done = self._pytest("--loop-max-iterations=2", *words, **variables)
        state = json.loads((self.shop / ".loop/fix-until-green/run.json").read_text())
        assert "Traceback" not in done.stderr, done.stderr
        return Verdict(done.returncode, state, done.stdout + done.stderr)

    def _pytest(self, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return self.caller.call("-q", *words, folder=self.shop, more={**self._own, **variables})


@pytest.fixture(scope="session")
def _court(tmp_path_factory: pytest.TempPathFactory, _measuring: dict[str, str]) -> Iterator[Court]:
    made = Court(tmp_path_factory.mktemp("court"))
    (made.base / "agent_of_the_test.py").write_text("def work(request): return None\n")
    yield made
    made.caller.close()


@pytest.fixture
def court(_court: Court) -> Court:
    """Its sessions have the few plugins of all tests here."""
    return _court


@pytest.fixture
def judge(court: Court) -> Judge:
    """Let an agent work on a project that was judged before its first edit."""

    def run(body: str, *arguments: str) -> Verdict:
        court.begun(*arguments)
        return court.judge(body, *RESUME)

    return run
