"""Runs of documents: what judges is sealed, and only the document may change."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from subprocess import CompletedProcess
from textwrap import dedent
from typing import Any

import pytest

from tests.pytest_caller import PytestCaller

Run = Callable[..., "CompletedProcess[str]"]
RULES = """\
artifact: guide.md
extends: base.yaml
rules:
  - {id: a.text.restore, description: It says how to restore, check: {python: "checks:says_restore"}}
  - {id: a.text.words, description: It has the words, check: {command: "sh words.sh {artifact}"}}
  - {id: a.text.tests, description: Its tests pass, check: {tests: test_guide.py}}
"""
BASE = """\
rules:
  - {id: a.text.title, description: It has a title, check: {contains: "# Guide"}}
"""
FILES = {
    "guide.rules.yaml": RULES,
    "base.yaml": BASE,
    "checks.py": "import words\ndef says_restore(artifact, workspace): return words.RESTORE in artifact.read_text()\n",
    "words.py": "RESTORE = 'restore'\n",
    "words.sh": "grep -q backup $1\n",
    "test_guide.py": "from pathlib import Path\ndef test_end(): assert 'end' in Path('guide.md').read_text()\n",
    "app.py": "version = 1\n",
}
GOOD = "# Guide to restore a backup to the end\\n"
# What an agent may do so that the document `bad` passes.
CHEATS = {
    "the rule file": ("guide.rules.yaml", RULES.replace("says_restore", "easy").replace("backup", "b")),
    "a rule file that it extends": ("base.yaml", BASE.replace("# Guide", "b")),
    "the function of a check": ("checks.py", "def says_restore(artifact, workspace): return True\n"),
    "a module that the function imports": ("words.py", "RESTORE = 'b'\n"),
    "the script of a command": ("words.sh", "exit 0\n"),
    "the tests": ("test_guide.py", "def test_end(): pass\n"),
    "a new conftest file": ("conftest.py", "def pytest_runtest_makereport(item, call): pass\n"),
    "another file": ("app.py", "version = 2\n"),
    "a new file": ("notes.txt", "remember\n"),
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    (tmp_path / ".gitignore").write_text("scratch/\n")
    return tmp_path


@pytest.fixture
def run(project: Path, caller: PytestCaller) -> Run:
    def start(
        agent: str, *arguments: str, rules: Sequence[str] = ("guide.rules.yaml", "test_guide.py")
    ) -> CompletedProcess[str]:
        (project / "agent.py").write_text(dedent(agent))
        task = ("--loop-task", "Write a guide", "--loop-agent", "python:agent:work", "--loop-alias", "guide")
        return caller.call(*task, *rules, "--loop-yes", *arguments, folder=project)

    return start


def read_evaluations(project: Path) -> list[dict[str, Any]]:
    lines = (project / ".loop/guide/history.jsonl").read_text().splitlines()
    events = [json.loads(line) for line in lines]
    return [event["payload"] for event in events if event["event"] == "evaluation_done"]


def read_files(project: Path) -> dict[str, str]:
    return {name: (project / name).read_text() for name in FILES}


CHEAT = """\
    import json
    from pathlib import Path
    def work(request):
        Path({path!r}).write_text({text!r})
        return "bad\\n"
"""


EVERY_DAY = ("the rule file", "the function of a check", "the tests", "another file")


@pytest.mark.parametrize(
    ("path", "text"),
    [
        pytest.param(*cheat, id=name, marks=() if name in EVERY_DAY else pytest.mark.thorough)
        for name, cheat in CHEATS.items()
    ],
)
def test_agent_that_changes_more_than_the_document_gets_nothing_for_it_and_is_named(
    project: Path, run: Run, path: str, text: str
) -> None:
    process = run(CHEAT.format(path=path, text=text), "--loop-max-iterations", "2")
    assert process.returncode == 1, process.stdout + process.stderr
    assert "SHIP" not in process.stdout
    assert f"{path}: was " in process.stdout
    assert read_files(project) == FILES
    assert (project / ".loop/guide/discarded" / path).read_text() == text
    evaluations = read_evaluations(project)
    assert [path in {finding["path"] for finding in payload["findings"]} for payload in evaluations] == [True, True]
    assert all(payload["score"] == 0 for payload in evaluations)
    is_judge = path not in ("app.py", "notes.txt", "words.py")
    assert [payload.get("void", False) for payload in evaluations] == [is_judge, is_judge]


@pytest.mark.thorough
def test_honest_agent_is_not_punished_for_scratch_files_and_caches(project: Path, run: Run) -> None:
    agent = f"""\
        import subprocess, sys, tempfile
        from pathlib import Path
        def work(request):
            Path("scratch").mkdir(exist_ok=True)
            Path("scratch/plan.txt").write_text("first the title")
            Path(tempfile.mkdtemp(), "notes").write_text("")
            request.artifact.write_text("{GOOD}")
            subprocess.run([sys.executable, "-m", "pytest", "-q", "test_guide.py"])
    """
    (project / "words.sh").write_text(FILES["words.sh"] + "date > last-check\n")
    process = run(agent)
    assert process.returncode == 0, process.stdout + process.stderr
    assert "verdict SHIP" in process.stdout
    assert [payload.get("findings", []) for payload in read_evaluations(project)] == [[]]
    assert "put back" not in process.stdout
    assert "removed" not in process.stdout
    assert (project / "scratch/plan.txt").exists()
    assert (project / "last-check").exists(), "what a check writes stays"


def test_agent_learns_that_it_cheated_and_may_still_do_it_honestly(project: Path, run: Run) -> None:
    agent = f"""\
        from pathlib import Path
        def work(request):
            if request.step == "PRODUCE":
                Path("checks.py").write_text("def says_restore(artifact, workspace): return True")
                return "bad"
            assert "checks.py: was changed, and was put back" in request.prompt, request.prompt
            return "{GOOD}"
    """
    process = run(agent)
    assert process.returncode == 0, process.stdout + process.stderr
    assert [payload.get("void", False) for payload in read_evaluations(project)] == [True, False]
    assert "--loop-unseal GLOB permits such edits in a new run" in process.stdout


LOST = ("rule file and archive", "listing")
STOPPED = """\
    import os
    from pathlib import Path
    def work(request):
        Path("checks.py").write_text("def says_restore(artifact, workspace): return True")
        Path("guide.rules.yaml").write_text("rules: []")
        {end}
"""


@pytest.mark.parametrize(
    ("end", "arguments"),
    [
        ("raise RuntimeError('please log in')", ()),
        ("os._exit(1)", ()),
        ("import time; time.sleep(60)", ("--loop-agent-timeout", "1")),
        ("Path('.loop/guide/stop.request').write_text('enough'); import time; time.sleep(60)", ()),
    ],
    ids=["refused", "crashed", "too late", "stopped"],
)
@pytest.mark.thorough
def test_sealed_files_are_put_back_and_named_however_an_agent_ends(
    project: Path, run: Run, end: str, arguments: tuple[str, ...]
) -> None:
    process = run(STOPPED.format(end=end), *arguments)
    assert process.returncode == 1, process.stdout + process.stderr
    assert "  checks.py: was changed, and was put back" in process.stdout.splitlines()
    assert read_files(project) == FILES


@pytest.mark.parametrize("change", ["rule file", *(pytest.param(name, marks=pytest.mark.thorough) for name in LOST)])
def test_rule_file_that_was_changed_before_a_resume_is_put_back_or_refused(
    project: Path, run: Run, caller: PytestCaller, change: str
) -> None:
    killed = run("import os\ndef work(request): os.kill(os.getppid(), 9)\n")
    assert killed.returncode != 0
    (project / "agent.py").write_text("def work(request): return 'bad'\n")
    (project / "guide.rules.yaml").write_text("artifact: guide.md\n" + BASE.replace("# Guide", "b"))
    if change == "rule file and archive":
        (project / ".loop/guide/files.kept").unlink()
    if change == "listing":
        (project / ".loop/guide/files.json").write_text("{}")
    process = caller.call("--loop-resume", "--loop-max-iterations", "2", folder=project)
    if change == "rule file":
        assert process.returncode == 1, process.stdout + process.stderr
        assert process.stdout.splitlines()[0].endswith("going on (attempt 1)")
        assert "guide.rules.yaml: was changed, and was put back" in process.stdout.splitlines()
        assert read_files(project) == FILES
    else:
        assert process.returncode == pytest.ExitCode.USAGE_ERROR
        expected = "is not as this run wrote it" if change == "listing" else "guide.rules.yaml: changed since the run"
        assert expected in process.stderr


@pytest.mark.thorough
def test_rule_file_outside_of_the_project_cannot_be_made_easier(
    project: Path, run: Run, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("rules") / "strict.rules.yaml"
    outside.write_text(BASE)
    agent = f"""\
        from pathlib import Path
        def work(request):
            path = Path({str(outside)!r})
            path.write_text(path.read_text().replace("# Guide", "b"))
            return "bad"
    """
    limit = ("--loop-max-iterations", "2")
    process = run(agent, *limit, rules=("--loop-rules", str(outside), "--loop-artifact", "guide.md"))
    assert process.returncode == 1, process.stdout + process.stderr
    assert "sealed: a.text.title: its check is not the one that the run began with" in process.stdout


def test_two_documents_are_written_side_by_side(project: Path, run: Run, caller: PytestCaller) -> None:
    """The agent of one run starts another run, which writes its own document in the same project."""
    (project / "other.rules.yaml").write_text("artifact: other.md\n" + BASE)
    agent = f"""\
        import subprocess, sys
        def work(request):
            command = [sys.executable, "-m", "pytest", "--loop-task", "Write it", "--loop-rules", "other.rules.yaml"]
            command += ["--loop-agent", "command:echo '# Guide'", "--loop-yes", "--loop-alias", "other"]
            done = subprocess.run(command, capture_output=True, text=True)
            assert done.returncode == 0, done.stdout + done.stderr
            return "{GOOD}"
    """
    process = run(agent)
    assert process.returncode == 0, process.stdout + process.stderr
    assert (project / "other.md").read_text() == "# Guide\n"
