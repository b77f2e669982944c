"""Active runs never edit the same files, or each works in a worktree."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_loop.store.project_runs import Store
from tests.acceptance.conftest import Pytest
from tests.acceptance.test_background import wait_for_end

TASK = ("--loop-task", "fix until green", "--loop-yes")
WAITS = ("--loop-agent", "command:cat go")
MENDS = ("--loop-agent", "command:sed -i s/2/1/ src/product.py")


def run_git(folder: Path, *words: str) -> str:
    identity = ("-c", "user.name=me", "-c", "user.email=me@example.org")
    return subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Path]:
    """A repository whose test fails, with a file that is not committed."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "product.py").write_text("ONE = 2\n")
    (tmp_path / "test_it.py").write_text("from product import ONE\n\n\ndef test_one():\n    assert ONE == 1\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\npythonpath = src\n")
    (tmp_path / ".gitignore").write_text(".loop/\n__pycache__/\n.pytest_cache/\ngo\n")
    run_git(tmp_path, "init", "--quiet", "--initial-branch=main")
    run_git(tmp_path, "add", "--all")
    run_git(tmp_path, "commit", "--quiet", "-m", "first")
    (tmp_path / "notes.txt").write_text("mine\n")
    (tmp_path / "test_it.py").write_text((tmp_path / "test_it.py").read_text() + "    assert True\n")
    os.mkfifo(tmp_path / "go")
    yield tmp_path
    for files in Store(tmp_path).list_busy_runs():
        files.requests.ask_to_pause()
        wait_for_end(int(files.pid))


def read_state(project: Path) -> tuple[str, ...]:
    return (
        run_git(project, "status", "--porcelain"),
        run_git(project, "rev-parse", "HEAD", "--abbrev-ref", "HEAD"),
        (project / "src" / "product.py").read_text(),
    )


@pytest.mark.measured
def test_change_becomes_a_branch_and_the_project_stays_untouched(run: Pytest, project: Path) -> None:
    before = read_state(project)
    done = run(*TASK, *MENDS, "--loop-alias", "one", "--loop-worktree", "--loop-json", "result.json")
    assert done.returncode == 0, done
    assert done.stdout.splitlines()[-2] == "the change is on the branch loop/one: take it with git merge loop/one"
    assert read_state(project) == (before[0] + "?? result.json\n", *before[1:])
    assert run_git(project, "diff", "--name-only", "HEAD", "loop/one") == "src/product.py\n"
    assert run_git(project, "log", "--format=%s", "HEAD..loop/one") == "one: fix until green\n"
    assert json.loads((project / "result.json").read_text())["status"] == "completed"
    assert len(run_git(project, "worktree", "list").splitlines()) == 1
    assert not (project / ".loop" / "one" / "tree").exists()
    run_git(project, "merge", "--quiet", "loop/one")
    assert (project / "src" / "product.py").read_text() == "ONE = 1\n"
    assert (project / "notes.txt").read_text() == "mine\n"


@pytest.mark.thorough
def test_project_may_be_a_subfolder_of_its_repository(run: Pytest, project: Path) -> None:
    inner = project / "inner"
    inner.mkdir()
    (inner / "pytest.ini").write_text("[pytest]\n")
    (inner / "value.py").write_text("VALUE = 2\n")
    (inner / "test_value.py").write_text("from value import VALUE\ndef test_value():\n    assert VALUE == 1\n")
    run_git(project, "add", "inner")
    run_git(project, "commit", "--quiet", "-m", "inner")
    words = (*TASK, "--loop-agent", "command:sed -i s/2/1/ value.py", "--loop-alias", "one", "--loop-worktree")
    command = [*run("--version").args[:3], *words]
    done = subprocess.run(command, cwd=inner, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done
    assert run_git(project, "diff", "--name-only", "HEAD", "loop/one") == "inner/value.py\n"
    assert (inner / "value.py").read_text() == "VALUE = 2\n"


@pytest.mark.thorough
def test_unchanged_run_leaves_no_branch_and_stopped_run_keeps_its_worktree(run: Pytest, project: Path) -> None:
    stopped = run(
        *TASK, "--loop-agent", "command:sed -i s/2/3/ src/product.py", "--loop-alias", "one", "--loop-worktree"
    )
    assert stopped.returncode == pytest.ExitCode.TESTS_FAILED
    tree = project / ".loop" / "one" / "tree"
    assert stopped.stdout.splitlines()[-1] == f"the files are in {tree}"
    assert (tree / "src" / "product.py").read_text() == "ONE = 3\n"
    assert run_git(project, "show", "loop/one:src/product.py") == "ONE = 3\n"
    assert run("--loop-clean=one", "--loop-yes").returncode == 0
    assert len(run_git(project, "worktree", "list").splitlines()) == 1

    (project / "src" / "product.py").write_text("ONE = 1\n")
    green = run(*TASK, *MENDS, "--loop-alias", "two", "--loop-worktree")
    assert green.stdout.splitlines()[-1] == "nothing was changed: there is no branch to take over"
    assert run_git(project, "branch", "--format=%(refname:short)").split() == ["loop/one", "main"]


@pytest.mark.thorough
def test_run_in_a_worktree_is_paused_and_resumed_from_the_project(run: Pytest, project: Path) -> None:
    detached = run(
        *TASK,
        "--loop-agent",
        f"command:cat {project}/go",
        "--loop-alias",
        "one",
        "--loop-worktree",
        "--loop-detach",
        "--loop-session=cold",
    )
    assert detached.returncode == 0, detached
    assert run("--loop-pause=one").returncode == 0
    done = run("--loop-resume=one", *MENDS, "--loop-json", "-")
    assert json.loads(done.stdout)["status"] == "completed", done
    assert run_git(project, "show", "loop/one:src/product.py") == "ONE = 1\n"
    assert (project / "src" / "product.py").read_text() == "ONE = 2\n"


@pytest.mark.thorough
@pytest.mark.measured
def test_run_that_does_not_start_leaves_nothing(run: Pytest, project: Path) -> None:
    before = read_state(project)
    done = run("--loop-task", "fix until green", *MENDS, "--loop-alias", "one", "--loop-worktree")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "there is no terminal to confirm this at" in done.stderr
    assert read_state(project) == before
    assert run_git(project, "branch", "--format=%(refname:short)") == "main\n"
    assert len(run_git(project, "worktree", "list").splitlines()) == 1


@pytest.mark.thorough
def test_second_run_is_refused_only_on_the_same_files(run: Pytest, project: Path) -> None:
    first = run(*TASK, *WAITS, "--loop-alias", "one", "--loop-allow", "src/a/", "--loop-detach")
    assert first.returncode == 0, first
    second = run(*TASK, *MENDS, "--loop-alias", "two")
    assert second.returncode == pytest.ExitCode.USAGE_ERROR
    assert (
        "the run 'one' may edit the same files: give this one a work tree of its own with --loop-worktree, "
        "or say with --loop-allow what each may edit"
    ) in second.stderr
    apart = run(*TASK, *MENDS, "--loop-alias", "two", "--loop-worktree")
    assert apart.returncode == 0, apart
    allowed = run(*TASK, *MENDS, "--loop-alias", "three", "--loop-allow", "src/product.py")
    assert allowed.returncode == 0, allowed
    assert [files.alias for files in Store(project).list_busy_runs()] == ["one"]


@pytest.mark.thorough
def test_second_run_on_the_same_document_is_refused(run: Pytest, project: Path) -> None:
    (project / "it.rules.yaml").write_text("rules: [{id: a.x.y, description: It is good, check: {contains: good}}]")
    words = (
        "--loop-task",
        "Write a guide to our backups",
        "--loop-rules",
        "it.rules.yaml",
        "--loop-yes",
        "--loop-detach",
    )
    assert run(*words, *WAITS, "--loop-alias", "one", "--loop-artifact", "doc.md").returncode == 0
    refused = run(*words, *WAITS, "--loop-alias", "two", "--loop-artifact", "doc.md")
    assert "the run 'one' may edit the same files" in refused.stderr
    assert run(*words, *WAITS, "--loop-alias", "two").returncode == 0


def test_worktree_needs_a_repository_with_a_commit(run: Pytest, project: Path) -> None:
    shutil.rmtree(project / ".git")
    words = (*TASK, *MENDS, "--loop-worktree")
    assert "--loop-worktree: the project is not in a git work tree" in run(*words).stderr
    run_git(project, "init", "--quiet")
    assert "--loop-worktree: the git repository has no commit yet: make one first" in run(*words).stderr
