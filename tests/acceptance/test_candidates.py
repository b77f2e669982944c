"""The best of several: all candidates work at once, all are judged, one stays, and all are paid for."""

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

WORDS = ("--loop-task", "fix until green", "--loop-yes", "--loop-alias", "best", "--loop-candidates")
AGENTS = """
    import os
    from pathlib import Path
    from pytest_loop import AgentReply

    ANSWERS = {
        "candidate-1": "ONE = 3\\n",
        "candidate-2": "# found out\\nONE = 1\\n",
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
        product, seen = request.workspace / "product.py", Path(os.environ["SEEN"])
        before = seen.read_text() if seen.exists() else ""
        if request.workspace.name == "candidate-1":
            seen.write_text(before + product.read_text())
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


def refined(project: Path) -> list[dict[str, Any]]:
    events = Store(project).get_run("best").read_history().events
    return next(one.payload.dump()["candidates"] for one in events if one.event == "refinement_done")


def is_tidy(project: Path) -> bool:
    left = [path.name for path in (project / ".loop" / "best").iterdir() if "candidate" in path.name]
    return not left and len(run_git(project, "worktree", "list").splitlines()) == 1


def test_best_score_stays_then_the_smallest_change_and_all_are_paid_for(run: Pytest, project: Path) -> None:
    done = run(*WORDS, "3", "--loop-agent", "python:agents:work", "--loop-json", "result.json")
    assert done.returncode == 0, done
    assert "candidate 3 of 3 is kept" in done.stdout
    assert (project / "product.py").read_text() == "ONE = 1\n"
    usage = {"tokens": 100, "cost_usd": 0.5}
    about = {"agent": "python:agents:work", "usage": usage, "changed": ["product.py"]}
    assert refined(project) == [
        {"candidate": 1, "kept": False, "lines": 2, "score": 0.0, "passed": False, "failed": 1, **about},
        {"candidate": 2, "kept": False, "lines": 3, "score": 1.0, "passed": True, "failed": 0, **about},
        {"candidate": 3, "kept": True, "lines": 2, "score": 1.0, "passed": True, "failed": 0, **about},
    ]
    result = json.loads((project / "result.json").read_text())
    assert (result["usage"]["tokens"], result["usage"]["cost_usd"]) == (300, 1.5)
    assert is_tidy(project)


def test_budget_counts_all(run: Pytest, project: Path) -> None:
    words = ("--loop-agent", "python:agents:work", "--loop-max-tokens", "150", "--loop-budget", "9")
    done = run(*WORDS, "2", *words, "--loop-threshold", "A=1,B=1")
    assert done.returncode == 0, done
    assert Store(project).get_run("best").read()[0].progress.usage.tokens == 200


def test_candidates_work_at_the_same_time(run: Pytest, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(project.parent / "meeting")
    monkeypatch.setenv("MEETING", str(project.parent / "meeting"))
    done = run(*WORDS, "2", "--loop-agent", "python:agents:together")
    assert done.returncode == 0, done
    assert [one["kept"] for one in refined(project)] == [True, False]


def test_candidate_that_touches_what_judges_is_never_kept(run: Pytest, project: Path) -> None:
    done = run(*WORDS, "2", "--loop-agent", "python:agents:cheat", "--loop-max-iterations", "2")
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done
    first, second = refined(project)
    assert (first["void"], first["kept"], second["kept"]) == (True, False, True)
    assert "assert ONE == 1" in (project / "test_it.py").read_text()
    assert (project / "product.py").read_text() == "ONE = 5\n"


@pytest.mark.measured
def test_candidate_that_fails_is_told_and_the_others_count(run: Pytest, project: Path) -> None:
    done = run(*WORDS, "2", "--loop-agent", "python:agents:fails")
    assert done.returncode == 0, done
    first, second = refined(project)
    assert "no idea" in first["error"]
    assert second["kept"] is True
    assert not (project / "product.py").exists()
    assert (project / "product" / "__init__.py").read_text() == "ONE = 1\n"


@pytest.mark.thorough
def test_a_run_that_dies_while_a_candidate_is_judged_goes_on_from_before(
    run: Pytest, project: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    seen = tmp_path_factory.mktemp("seen") / "seen"
    monkeypatch.setenv("SEEN", str(seen))
    words = ("--loop-agent", "python:agents:dies", "--loop-session", "cold")
    assert run(*WORDS, "2", *words).returncode == -9
    assert "kill" in (project / "product.py").read_text()
    done = run("--loop-resume", "best")
    assert done.returncode == 0, done
    assert seen.read_text() == "ONE = 2\nONE = 2\n"
    assert is_tidy(project)


def test_where_all_fail_the_step_has_failed(run: Pytest, project: Path) -> None:
    done = run(*WORDS, "2", "--loop-agent", "python:agents:never")
    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    assert "failed: phase_error" in done.stdout
    assert is_tidy(project)


def test_built_in_agent_is_asked_once(run: Pytest, project: Path) -> None:
    done = run(*WORDS, "2", "--loop-agent", "builtin", "--loop-max-iterations", "2")
    assert "candidate" not in done.stdout.replace("--loop-candidates", "")


def test_candidates_need_files_and_a_repository(run: Pytest, project: Path) -> None:
    (project / "it.rules.yaml").write_text("rules: [{id: a.x.y, description: It is good, check: {contains: good}}]")
    agent = ("--loop-agent", "python:agents:work")
    refused = run(*WORDS, "2", *agent, "--loop-rules", "it.rules.yaml")
    assert "--loop-candidates: expected a run that edits files, found one of a document" in refused.stderr
    (project / ".git").rename(project.parent / "away")
    refused = run(*WORDS, "2", *agent, "test_it.py")
    assert refused.returncode == pytest.ExitCode.USAGE_ERROR
    assert "--loop-candidates: the project is not in a git work tree" in refused.stderr
