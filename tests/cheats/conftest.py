"""A small project with a red test, and an agent that does whatever a test says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent, indent
from typing import Any

import pytest

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
RIGHT = "sum(prices)"
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


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """The project."""
    folder = tmp_path / "shop"
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text).lstrip("\n"))
    return folder


@pytest.fixture
def judge(shop: Path, tmp_path: Path) -> Judge:
    """Let an agent with this body work on the project, and say what the run came to."""

    def run(body: str, *arguments: str, **variables: str) -> Verdict:
        (tmp_path / "agent_of_the_test.py").write_text(
            dedent(AGENT).replace("{body}", indent(dedent(body).strip(), "    "))
        )
        words = ["--loop-task", "fix until green", "--loop-agent", "python:agent_of_the_test:work", "--loop-yes"]
        environment = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONUSERBASE": str(tmp_path / "user")}
        environment |= variables
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *words, "--loop-max-iterations", "2", "-q", *arguments],
            cwd=shop,
            env=environment,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        path = shop / ".loop" / "fix-until-green" / "run.json"
        state = json.loads(path.read_text()) if path.exists() else {}
        assert "Traceback" not in done.stderr, done.stderr
        return Verdict(done.returncode, state, done.stdout + done.stderr)

    return run
