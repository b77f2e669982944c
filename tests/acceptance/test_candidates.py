"""Runs with `--loop-candidates`: all candidates work in parallel, all are evaluated, the best is kept."""

from __future__ import annotations

import json
import os
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from pytest_loop.store.project_runs import Store
from tests.acceptance.conftest import Pytest
from tests.acceptance.test_worktree import run_git

START = ("--loop-task", "fix until green", "--loop-yes", "--loop-alias", "best", "--loop-candidates")
AGENTS = """
    import os
    from pathlib import Path
    from pytest_loop import AgentReply

    ANSWERS = {
        "candidate-1": "ONE = 3\\n",
        "candidate-2": "# explained\\nONE = 1\\n",
        "candidate-3": "ONE = 1\\n",
    }


    def work(request):
        (request.workspace / "product.py").write_text(ANSWERS[request.workspace.name])
        return AgentReply(usage={"tokens": 100, "cost_usd": 0.5})


    def together(request):
        is_first = request.workspace.name == "candidate-1"
        descriptor = os.open(os.environ["MEETING"], os.O_WRONLY if is_first else os.O_RDONLY)
        os.close(descriptor)
        Path("product.py").write_text("ONE = 1\\n" if is_first else "ONE = 4\\n")


    def cheat(request):
        if request.workspace.name == "candidate-1":
            (request.workspace / "test_it.py").write_text("def test_one():\\n    pass\\n")
        else:
            (request.workspace / "product.py").write_text("ONE = 5\\n")


    def fails(request):
        if request.workspace.name != "candidate-2":
            raise RuntimeError("no idea")
        (request.workspace / "product.py").unlink()
        (request.workspace / "product").mkdir()
        (request.workspace / "product" / "__init__.py").write_text("ONE = 1\\n")


    def dies(request):
        product, log = request.workspace / "product.py", Path(os.environ["LOG"])
        before = log.read_text() if log.exists() else ""
        if request.workspace.name == "candidate-1":
            log.write_text(before + product.read_text())
        product.write_text("ONE = 1\\n" if before else "import os\\nos.kill(os.getppid(), 9)\\n")


    def never(request):
        raise RuntimeError("no idea")
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "product.py").write_text("ONE = 2\n")
    (tmp_path / "test_it.py").write_text("from product import ONE\n\n\ndef test_one():\n    assert ONE == 1\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\npythonpath = .\n")
    (tmp_path / "agents.py").write_text(dedent(AGENTS))
    (tmp_path / ".gitignore").write_text(".loop/\n__pycache__/\n.pytest_cache/\n")
    run_git(tmp_path, "init", "--quiet")
    run_git(tmp_path, "add", "product.py")
    run_git(tmp_path, "commit", "--quiet", "-m", "first")
    return tmp_path


def read_candidates(project: Path) -> list[dict[str, Any]]:
    events = Store(project).get_run("best").read_history().events
    return next(event.payload.dump()["candidates"] for event in events if event.event == "refinement_done")


def is_tidy(project: Path) -> bool:
    remaining = [path.name for path in (project / ".loop" / "best").iterdir() if "candidate" in path.name]
    return not remaining and len(run_git(project, "worktree", "list").splitlines()) == 1


def test_smallest_change_with_the_best_score_is_kept_and_usage_is_summed(run: Pytest, project: Path) -> None:
    process = run(*START, "3", "--loop-agent", "python:agents:work", "--loop-json", "result.json")
    assert process.returncode == 0, process
    assert "candidate 3 of 3 is kept" in process.stdout
    assert (project / "product.py").read_text() == "ONE = 1\n"
    usage = {"tokens": 100, "cost_usd": 0.5}
    common = {"agent": "python:agents:work", "usage": usage, "changed": ["product.py"]}
    assert read_candidates(project) == [
        {"candidate": 1, "kept": False, "lines": 2, "score": 0.0, "passed": False, "failed": 1, **common},
        {"candidate": 2, "kept": False, "lines": 3, "score": 1.0, "passed": True, "failed": 0, **common},
        {"candidate": 3, "kept": True, "lines": 2, "score": 1.0, "passed": True, "failed": 0, **common},
    ]
    result = json.loads((project / "result.json").read_text())
    assert (result["usage"]["tokens"], result["usage"]["cost_usd"]) == (300, 1.5)
    assert is_tidy(project)


@pytest.mark.thorough
def test_budget_counts_all_candidates(run: Pytest, project: Path) -> None:
    arguments = ("--loop-agent", "python:agents:work", "--loop-max-tokens", "150", "--loop-budget", "9")
    process = run(*START, "2", *arguments, "--loop-threshold", "A=1,B=1")
    assert process.returncode == 0, process
    assert Store(project).get_run("best").read()[0].progress.usage.tokens == 200


@pytest.mark.thorough
def test_candidates_work_in_parallel(run: Pytest, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(project.parent / "meeting")
    monkeypatch.setenv("MEETING", str(project.parent / "meeting"))
    process = run(*START, "2", "--loop-agent", "python:agents:together")
    assert process.returncode == 0, process
    assert [candidate["kept"] for candidate in read_candidates(project)] == [True, False]


def test_candidate_that_changes_sealed_files_is_never_kept(run: Pytest, project: Path) -> None:
    process = run(*START, "2", "--loop-agent", "python:agents:cheat", "--loop-max-iterations", "2")
    assert process.returncode == pytest.ExitCode.TESTS_FAILED, process
    first, second = read_candidates(project)
    assert (first["void"], first["kept"], second["kept"]) == (True, False, True)
    assert "assert ONE == 1" in (project / "test_it.py").read_text()
    assert (project / "product.py").read_text() == "ONE = 5\n"


@pytest.mark.thorough
def test_failed_candidate_is_reported_and_the_others_count(run: Pytest, project: Path) -> None:
    process = run(*START, "2", "--loop-agent", "python:agents:fails")
    assert process.returncode == 0, process
    first, second = read_candidates(project)
    assert "no idea" in first["error"]
    assert second["kept"] is True
    assert not (project / "product.py").exists()
    assert (project / "product" / "__init__.py").read_text() == "ONE = 1\n"


@pytest.mark.thorough
def test_run_killed_while_a_candidate_is_evaluated_resumes_from_the_files_before(
    run: Pytest, project: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    log = tmp_path_factory.mktemp("log") / "log"
    monkeypatch.setenv("LOG", str(log))
    arguments = ("--loop-agent", "python:agents:dies", "--loop-session", "cold")
    assert run(*START, "2", *arguments).returncode == -9
    assert "kill" in (project / "product.py").read_text()
    process = run("--loop-resume", "best")
    assert process.returncode == 0, process
    assert log.read_text() == "ONE = 2\nONE = 2\n"
    assert is_tidy(project)


@pytest.mark.thorough
def test_step_fails_if_all_candidates_fail(run: Pytest, project: Path) -> None:
    process = run(*START, "2", "--loop-agent", "python:agents:never")
    assert process.returncode == pytest.ExitCode.TESTS_FAILED
    assert " · phase_error: " in process.stdout
    assert is_tidy(project)


@pytest.mark.thorough
def test_builtin_agent_has_one_candidate(run: Pytest, project: Path) -> None:
    process = run(*START, "2", "--loop-agent", "builtin", "--loop-max-iterations", "2")
    assert "candidate" not in process.stdout.replace("--loop-candidates", "")


@pytest.mark.thorough
def test_candidates_need_a_workspace_and_a_repository(run: Pytest, project: Path) -> None:
    (project / "it.rules.yaml").write_text("rules: [{id: a.x.y, description: It is good, check: {contains: good}}]")
    agent = ("--loop-agent", "python:agents:work")
    process = run(*START, "2", *agent, "--loop-rules", "it.rules.yaml")
    assert "--loop-candidates: expected a run that edits files, found one of a document" in process.stderr
    (project / ".git").rename(project.parent / "away")
    process = run(*START, "2", *agent, "test_it.py")
    assert process.returncode == pytest.ExitCode.USAGE_ERROR
    assert "--loop-candidates: the project is not in a git work tree" in process.stderr
