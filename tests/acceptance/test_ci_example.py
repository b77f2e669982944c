"""The workflow in `examples/ci` holds what its README promises, and its scripts do what they say."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from pytest_loop.settings import command_line

FOLDER = Path(__file__).parents[2] / "examples" / "ci"
TEXT = (FOLDER / "fix-until-green.yml").read_text(encoding="utf-8")
WORKFLOW: dict[Any, Any] = yaml.safe_load(TEXT)
JOBS: dict[str, dict[str, Any]] = WORKFLOW["jobs"]
README = (FOLDER / "README.md").read_text(encoding="utf-8")
needs_git = pytest.mark.skipif(not shutil.which("git") or not shutil.which("bash"), reason="git and bash are needed")


def steps(*jobs: str) -> Iterator[dict[str, Any]]:
    for job in jobs or JOBS:
        yield from JOBS[job]["steps"]


def step(name: str) -> dict[str, Any]:
    return next(one for one in steps() if one.get("name") == name)


# -- what it may do


def test_it_starts_on_a_failing_main_and_on_demand_and_never_for_pull_requests() -> None:
    triggers = WORKFLOW[True]  # YAML reads `on` so
    assert set(triggers) == {"workflow_run", "workflow_dispatch"}
    assert triggers["workflow_run"]["branches"] == ["main"]
    assert "pull_request" not in TEXT.replace("pull-requests", "")


def test_a_run_for_a_fork_does_not_count() -> None:
    condition = JOBS["fix"]["if"]
    assert "workflow_run.conclusion == 'failure'" in condition
    assert "workflow_run.event == 'push'" in condition
    assert "head_repository.full_name == github.repository" in condition


def test_permissions_are_as_small_as_the_readme_says() -> None:
    assert WORKFLOW["permissions"] == {}
    assert JOBS["fix"]["permissions"] == {"contents": "read"}
    assert JOBS["propose"]["permissions"] == {"contents": "write", "pull-requests": "write"}
    for name, job in JOBS.items():
        shown = ", ".join(f"`{what}: {how}`" for what, how in job["permissions"].items())
        assert f"| `{name}` | {shown} |" in README


def test_secrets_are_in_the_environment_of_one_step_only() -> None:
    assert re.findall(r"secrets\.\w+", TEXT) == ["secrets.CODEX_API_KEY"]
    assert step("Fix until green")["env"]["CODEX_API_KEY"] == "${{ secrets.CODEX_API_KEY }}"
    assert "env" not in WORKFLOW
    assert not any("env" in job for job in JOBS.values())


def test_the_job_that_runs_the_agent_keeps_no_token() -> None:
    checkouts = [one for one in steps("fix") if "actions/checkout@" in one.get("uses", "")]
    assert [one["with"]["persist-credentials"] for one in checkouts] == [False]
    assert "github.token" not in str(JOBS["fix"])


def test_the_job_that_may_write_runs_nothing_of_the_project() -> None:
    words = " ".join(one.get("run", "") for one in steps("propose")).split()
    assert not {"pytest", "pip", "python", "npm", "make", "codex"} & set(words)


def test_nothing_is_put_into_the_text_of_a_script() -> None:
    assert [one["run"] for one in steps() if "${{" in one.get("run", "")] == []
    assert not re.search(r"set -\w*x|printenv|\becho \"?\$(?!PATCH)", TEXT)


def test_actions_are_pinned_by_the_tag_of_a_release() -> None:
    used = [one["uses"] for one in steps() if "uses" in one]
    assert used
    assert [one for one in used if not re.fullmatch(r"actions/[\w-]+@v\d+\.\d+\.\d+", one)] == []


def test_it_ends_and_there_is_one_at_a_time() -> None:
    assert all(0 < job["timeout-minutes"] <= 60 for job in JOBS.values())
    assert "github.ref" in WORKFLOW["concurrency"]["group"]
    assert WORKFLOW["concurrency"]["cancel-in-progress"] is False
    assert {"--loop-max-iterations", "--loop-max-tokens", "--loop-max-seconds"} <= set(
        step("Fix until green")["run"].split()
    )


# -- what it does


def test_its_options_are_ours() -> None:
    words = step("Fix until green")["run"].split()
    named = {word.partition("=")[0] for word in words if word.startswith("--")}
    assert named <= set(command_line.FLAGS)
    assert {"--loop-task", "--loop-agent", "--loop-yes", "--loop-json"} <= named


def test_result_and_files_are_kept_whatever_happened() -> None:
    kept = step("Keep the result and the files of the run")
    assert kept["if"] == "always()"
    assert kept["with"]["path"].split() == ["result.json", ".loop/"]
    assert kept["with"]["include-hidden-files"] is True  # .loop is one


def git(folder: Path, *words: str) -> str:
    own = ("-c", "user.name=me", "-c", "user.email=me@example.org", "-c", "init.defaultBranch=main")
    return subprocess.run(["git", *own, *words], cwd=folder, check=True, capture_output=True, text=True).stdout


def carry_out(name: str, folder: Path, **environment: str) -> None:
    """A step's script as GitHub runs it; `gh` only says what it was asked."""
    tools = folder.parent / "tools"
    tools.mkdir(exist_ok=True)
    (tools / "gh").write_text('#!/bin/sh\nprintf "%s\\n" "$@" > "$SAID"\n')
    (tools / "gh").chmod(0o755)
    path = f"{tools}:{Path(shutil.which('git') or '').parent}:/usr/bin:/bin"
    environment |= {
        "PATH": path,
        "HOME": str(folder.parent),
        "SAID": str(folder.parent / "said"),
        "GIT_CONFIG_NOSYSTEM": "1",
    }
    subprocess.run(["bash", "-eo", "pipefail", "-c", step(name)["run"]], cwd=folder, env=environment, check=True)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A checkout with a remote."""
    git(tmp_path, "init", "--bare", "remote")
    git(tmp_path, "clone", "remote", "project")
    project = tmp_path / "project"
    (project / ".github").mkdir()
    (project / ".github" / "ci.yml").write_text("on: push\n")
    (project / "shop.py").write_text("RATE = 20\n")
    git(project, "add", "--all")
    git(project, "commit", "-m", "first")
    git(project, "push", "origin", "HEAD:main")
    return project


@needs_git
def test_a_fix_becomes_a_pull_request_without_what_does_not_belong_to_it(project: Path) -> None:
    base = git(project, "rev-parse", "HEAD").strip()
    patch, output = project.parent / "fix.patch", project.parent / "output"
    (project / "shop.py").write_text("RATE = 19\n")
    git(project, "commit", "-am", "an agent may commit")
    for name in (".loop/green/run.json", ".github/ci.yml", "result.json", "new/with space.py"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("changed\n")
    carry_out("Make a patch", project, BASE=base, PATCH=str(patch), GITHUB_OUTPUT=str(output))
    assert output.read_text() == "changed=true\n"

    git(project.parent, "clone", "--branch", "main", "remote", "again")
    again = project.parent / "again"
    carry_out("Open a pull request", again, PATCH=str(patch), TARGET="main", BRANCH="loop/fix-1-1", RUN="the run")
    assert git(again, "diff", "--name-only", "origin/main", "origin/loop/fix-1-1").splitlines() == [
        "new/with space.py",
        "shop.py",
    ]
    said = (project.parent / "said").read_text().splitlines()
    assert said[:6] == ["pr", "create", "--base", "main", "--head", "loop/fix-1-1"]
    assert said[-1].endswith("the summary of the run.")


@needs_git
def test_where_nothing_was_changed_nothing_is_proposed(project: Path) -> None:
    (project / "result.json").write_text("{}")
    base, output = git(project, "rev-parse", "HEAD").strip(), project.parent / "output"
    carry_out("Make a patch", project, BASE=base, PATCH=str(project.parent / "fix.patch"), GITHUB_OUTPUT=str(output))
    assert not output.exists()
    assert JOBS["propose"]["if"] == "needs.fix.outputs.changed == 'true'"
