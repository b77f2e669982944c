"""Runs with the built-in agent, which needs no model."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

Pytest = Callable[..., "subprocess.CompletedProcess[str]"]
START = ("--loop-task", "fix until green", "--loop-yes", "-v")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "pytest.ini").write_text("[pytest]\n")
    return folder


@pytest.fixture
def _no_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide every installed client of an agent."""
    hidden = tmp_path / "hidden" / "codex_cli_bin"
    hidden.mkdir(parents=True)
    (hidden / "__init__.py").write_text("raise ImportError\n")
    monkeypatch.setenv("PYTHONPATH", str(hidden.parent), prepend=os.pathsep)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")


def read_payloads(project: Path, kind: str) -> list[dict[str, Any]]:
    lines = (project / ".loop/fix-until-green/history.jsonl").read_text().splitlines()
    return [event["payload"] for event in map(json.loads, lines) if event["event"] == kind]


@pytest.mark.usefixtures("_no_client")
def test_builtin_agent_is_used_if_no_client_is_installed(project: Path, run: Pytest) -> None:
    """The README tests run it on the example."""
    (project / "shop.py").write_text("def least(prices):\n    return max(prices)\n")
    (project / "test_shop.py").write_text(
        "from shop import least\n\n\ndef test_least():\n    assert least([1, 2]) == 1\n"
    )
    process = run(*START)
    assert process.returncode == 0, process.stdout + process.stderr
    assert " · agent builtin · " in process.stdout
    assert "done in " in process.stdout
    assert " · 0 USD · " in process.stdout
    assert re.search(r"[\d,]+ edits tried in [\d.]+ s", process.stdout)
    (text,) = [payload["report"] for payload in read_payloads(project, "refinement_done")]
    assert "most suspicious: shop.py:2" in text
    assert "plausible: shop.py, line 2: `return max(prices)` becomes `return min(prices)` (1 test passes by it)" in text


@pytest.mark.thorough
def test_fix_command_without_improvement_is_undone(project: Path, run: Pytest) -> None:
    (project / "notes.md").write_text("teh plan\n")
    (project / "tidy.py").write_text(
        "from pathlib import Path\nnotes = Path('notes.md')\nnotes.write_text(notes.read_text().replace('teh', 'the'))\n"
    )
    (project / "worse.py").write_text("open('notes.md', 'w').write('nothing')\nopen('new', 'w')\n")
    (project / "it.rules.yaml").write_text(
        dedent(
            f"""
            artifact: notes.md
            rules:
              - {{id: a.plan, description: There is a plan, check: {{contains: plan}}}}
              - {{id: a.longer, description: Long, check: {{size: {{lines: {{min: 2}}}}}}, severity: warn, weight: 0.1, fix: {{command: {sys.executable} worse.py}}}}
              - {{id: a.spelling, description: Spelling, check: {{absent: teh}}, fix: {{command: {sys.executable} tidy.py}}}}
              - {{id: a.missing, description: Style, check: {{command: no-such-linter}}, severity: warn, weight: 0.1, fix: {{command: no-such-tool --fix}}}}
            """
        )
    )
    process = run(*START, "--loop-workspace", "--loop-agent", "builtin")
    assert process.returncode == 0, process.stdout + process.stderr
    (text,) = [payload["report"] for payload in read_payloads(project, "refinement_done")]
    assert "worse.py`: no improvement; reverted" in text
    assert "tidy.py`: made it better" in text
    assert "no-such-tool" not in text  # its check cannot be carried out, which no edit can fix
    assert (project / "notes.md").read_text() == "the plan\n"
    assert not (project / "new").exists()


def test_ruff_fixes_its_own_findings(
    project: Path, run: Pytest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Use a script instead of ruff, which may not be installed."""
    tool = tmp_path / "bin" / "ruff"
    tool.parent.mkdir()
    tool.write_text(
        f"#!{sys.executable}\nimport sys\nfrom pathlib import Path\npath = Path('shop.py')\ntext = path.read_text()\n"
        "if '--fix' in sys.argv:\n    path.write_text(text.replace('import os\\n', ''))\n"
        "sys.exit('import os' in path.read_text())\n"
    )
    tool.chmod(0o755)
    # The tools of this environment would come first if they were not on the path.
    monkeypatch.setenv("PATH", f"{tool.parent}:/usr/bin:/bin:{Path(sys.executable).parent}")
    (project / "shop.py").write_text("import os\nimport sys\n")
    (project / "it.rules.yaml").write_text(
        "rules: [{id: a.lint, description: Lint, check: {command: ruff check shop.py}}]\n"
    )
    process = run(*START, "--loop-workspace", "--loop-agent", "builtin")
    assert process.returncode == 0, process.stdout + process.stderr
    assert "`ruff check --fix shop.py`: made it better" in process.stdout
    assert (project / "shop.py").read_text() == "import sys\n"


BROKEN = "def greeting(name):\n    return name\n\n\ndef first(names):\n    return names[0]\n"
TESTS = """
from shop import first, greeting

def test_greeting():
    assert greeting("Ann") == "Good morning, Ann!"

def test_first():
    assert first(["a", "b"]) == "a"
"""
AGENT = """
from pathlib import Path

def work(request):
    Path("prompt.txt").write_text(request.prompt)
    path = Path("shop.py")
    path.write_text(path.read_text().replace("return name\\n", "return f'Good morning, {name}!'\\n"))
"""


@pytest.mark.thorough
@pytest.mark.measured
def test_next_agent_gets_the_suspicious_lines(project: Path, run: Pytest) -> None:
    (project / "shop.py").write_text(BROKEN)
    (project / "test_shop.py").write_text(TESTS)
    (project / "helper.py").write_text(AGENT)
    process = run(
        *START, "--loop-agent", "builtin:3", "--loop-agent", "python:helper:work", "--loop-max-iterations", "8"
    )
    assert process.returncode == 0, process.stdout + process.stderr
    assert ", none fixes test_greeting" in process.stdout
    assert "shop.py:2 (1.00) return name" in (project / "prompt.txt").read_text()


@pytest.mark.thorough
def test_localise_setting_gives_suspicious_lines_to_every_agent(project: Path, run: Pytest) -> None:
    (project / "pytest.ini").write_text("[pytest]\nloop_localise = yes\n")
    (project / "shop.py").write_text(BROKEN)
    (project / "test_shop.py").write_text(TESTS)
    (project / "helper.py").write_text(AGENT)
    process = run(*START, "--loop-agent", "python:helper:work")
    assert process.returncode == 0, process.stdout + process.stderr
    assert "Suspicious lines" in (project / "prompt.txt").read_text()
    assert read_payloads(project, "critique_done")[0]["suspects"] == ["shop.py:2 (1.00) return name"]


def list_search_processes(scratch: Path) -> list[Path]:
    """Return the processes of a search."""
    processes = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            arguments = (process / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"pytest_loop.repair" in arguments and any(argument.startswith(bytes(scratch)) for argument in arguments):
            processes.append(process)
    return processes


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.thorough
def test_kill_during_a_search_leaves_no_process_and_resumes(
    project: Path, run: Pytest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    (project / "shop.py").write_text("def total(prices):\n    return sum(prices) - 1\n")
    (project / "test_shop.py").write_text(
        "import time\nfrom shop import total\ndef test_total():\n    time.sleep(0.2)\n    assert total([1, 2]) == 3\n"
    )
    command = [sys.executable, "-m", "pytest", *START, "--loop-agent", "builtin"]
    with subprocess.Popen(command, cwd=project, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as driver:
        wait_until(lambda: len(list_search_processes(scratch)) > 1)
        driver.kill()
    wait_until(lambda: not list_search_processes(scratch))
    process = run("--loop-resume", "-q")
    assert process.returncode == 0, process.stdout + process.stderr
    assert "- 1" not in (project / "shop.py").read_text()
