"""The workflow in `examples/ci` has the permissions that its README names, and its scripts work."""

from __future__ import annotations

import re
import shlex
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


def list_steps(*jobs: str) -> Iterator[dict[str, Any]]:
    for job in jobs or JOBS:
        yield from JOBS[job]["steps"]


def find_step(name: str) -> dict[str, Any]:
    return next(step for step in list_steps() if step.get("name") == name)


# -- permissions


def test_workflow_starts_after_a_failure_on_main_or_on_demand() -> None:
    triggers = WORKFLOW[True]  # YAML reads `on` as true
    assert set(triggers) == {"workflow_run", "workflow_dispatch"}
    assert triggers["workflow_run"]["branches"] == ["main"]
    assert "pull_request" not in TEXT.replace("pull-requests", "")


def test_failures_of_forks_do_not_start_the_workflow() -> None:
    condition = JOBS["fix"]["if"]
    assert "workflow_run.conclusion == 'failure'" in condition
    assert "workflow_run.event == 'push'" in condition
    assert "head_repository.full_name == github.repository" in condition


def test_permissions_match_the_readme() -> None:
    assert WORKFLOW["permissions"] == {}
    assert JOBS["fix"]["permissions"] == {"contents": "read"}
    assert JOBS["propose"]["permissions"] == {"contents": "write", "pull-requests": "write"}
    for name, job in JOBS.items():
        shown = ", ".join(f"`{scope}: {access}`" for scope, access in job["permissions"].items())
        assert f"| `{name}` | {shown} |" in README


def test_only_one_step_has_a_secret() -> None:
    assert re.findall(r"secrets\.\w+", TEXT) == ["secrets.CODEX_API_KEY"]
    assert find_step("Fix until green")["env"]["CODEX_API_KEY"] == "${{ secrets.CODEX_API_KEY }}"
    assert "env" not in WORKFLOW
    assert not any("env" in job for job in JOBS.values())


def test_job_with_the_agent_has_no_token() -> None:
    checkouts = [step for step in list_steps("fix") if "actions/checkout@" in step.get("uses", "")]
    assert [step["with"]["persist-credentials"] for step in checkouts] == [False]
    assert "github.token" not in str(JOBS["fix"])


def test_job_with_write_permission_runs_no_project_code() -> None:
    words = " ".join(step.get("run", "") for step in list_steps("propose")).split()
    assert not {"pytest", "pip", "python", "npm", "make", "codex"} & set(words)


def test_no_expression_is_inserted_into_a_script() -> None:
    assert [step["run"] for step in list_steps() if "${{" in step.get("run", "")] == []
    assert not re.search(r"set -\w*x|printenv|\becho \"?\$(?!PATCH)", TEXT)


def test_actions_are_pinned_to_release_tags() -> None:
    actions = [step["uses"] for step in list_steps() if "uses" in step]
    assert actions
    assert [action for action in actions if not re.fullmatch(r"actions/[\w-]+@v\d+\.\d+\.\d+", action)] == []


def test_workflow_has_limits_and_runs_once_at_a_time() -> None:
    assert all(0 < job["timeout-minutes"] <= 60 for job in JOBS.values())
    assert "github.ref" in WORKFLOW["concurrency"]["group"]
    assert WORKFLOW["concurrency"]["cancel-in-progress"] is False
    command = find_step("Fix until green")["run"]
    assert "--loop-max-iterations 4" in command
    assert "--loop-limit '2M tokens, 45 min'" in command


# -- scripts


def test_workflow_uses_existing_options() -> None:
    words = shlex.split(find_step("Fix until green")["run"])
    flags = {word.partition("=")[0] for word in words if word.startswith("--")}
    assert flags <= set(command_line.FLAGS)
    assert {"--loop-task", "--loop-agent", "--loop-yes", "--loop-json"} <= flags


def test_result_and_run_files_are_always_uploaded() -> None:
    upload = find_step("Keep the result and the files of the run")
    assert upload["if"] == "always()"
    assert upload["with"]["path"].split() == ["result.json", ".loop/"]
    assert upload["with"]["include-hidden-files"] is True  # .loop is hidden


def run_git(folder: Path, *arguments: str) -> str:
    config = ("-c", "user.name=me", "-c", "user.email=me@example.org", "-c", "init.defaultBranch=main")
    return subprocess.run(["git", *config, *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


def run_step(name: str, folder: Path, **environment: str) -> None:
    """Run a step's script as GitHub does, with a `gh` that only records its arguments."""
    tools = folder.parent / "tools"
    tools.mkdir(exist_ok=True)
    (tools / "gh").write_text('#!/bin/sh\nprintf "%s\\n" "$@" > "$GH_ARGUMENTS"\n')
    (tools / "gh").chmod(0o755)
    path = f"{tools}:{Path(shutil.which('git') or '').parent}:/usr/bin:/bin"
    environment |= {
        "PATH": path,
        "HOME": str(folder.parent),
        "GH_ARGUMENTS": str(folder.parent / "gh-arguments"),
        "GIT_CONFIG_NOSYSTEM": "1",
    }
    subprocess.run(["bash", "-eo", "pipefail", "-c", find_step(name)["run"]], cwd=folder, env=environment, check=True)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A checkout with a remote."""
    run_git(tmp_path, "init", "--bare", "remote")
    run_git(tmp_path, "clone", "remote", "project")
    project = tmp_path / "project"
    (project / ".github").mkdir()
    (project / ".github" / "ci.yml").write_text("on: push\n")
    (project / "shop.py").write_text("RATE = 20\n")
    run_git(project, "add", "--all")
    run_git(project, "commit", "-m", "first")
    run_git(project, "push", "origin", "HEAD:main")
    return project


@needs_git
def test_pull_request_has_only_the_files_of_the_fix(project: Path) -> None:
    base = run_git(project, "rev-parse", "HEAD").strip()
    patch, output = project.parent / "fix.patch", project.parent / "output"
    (project / "shop.py").write_text("RATE = 19\n")
    run_git(project, "commit", "-am", "an agent may commit")
    for name in (".loop/green/run.json", ".github/ci.yml", "result.json", "new/with space.py"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("changed\n")
    run_step("Make a patch", project, BASE=base, PATCH=str(patch), GITHUB_OUTPUT=str(output))
    assert output.read_text() == "changed=true\n"

    run_git(project.parent, "clone", "--branch", "main", "remote", "again")
    again = project.parent / "again"
    run_step("Open a pull request", again, PATCH=str(patch), TARGET="main", BRANCH="loop/fix-1-1", RUN="the run")
    assert run_git(again, "diff", "--name-only", "origin/main", "origin/loop/fix-1-1").splitlines() == [
        "new/with space.py",
        "shop.py",
    ]
    arguments = (project.parent / "gh-arguments").read_text().splitlines()
    assert arguments[:6] == ["pr", "create", "--base", "main", "--head", "loop/fix-1-1"]
    assert arguments[-1].endswith("the summary of the run.")


@needs_git
def test_no_pull_request_without_a_change(project: Path) -> None:
    (project / "result.json").write_text("{}")
    base, output = run_git(project, "rev-parse", "HEAD").strip(), project.parent / "output"
    run_step("Make a patch", project, BASE=base, PATCH=str(project.parent / "fix.patch"), GITHUB_OUTPUT=str(output))
    assert not output.exists()
    assert JOBS["propose"]["if"] == "needs.fix.outputs.changed == 'true'"


# -- shards


def test_every_shard_of_the_matrix_is_judged_and_merged() -> None:
    jobs = yaml.safe_load((FOLDER / "shards.yml").read_text(encoding="utf-8"))["jobs"]
    numbers = jobs["judge"]["strategy"]["matrix"]["shard"]
    assert numbers == list(range(1, len(numbers) + 1))
    steps = {step["name"]: step for step in jobs["judge"]["steps"] + jobs["verdict"]["steps"] if "name" in step}
    assert steps["Judge one shard"]["env"]["SHARD"] == f"${{{{ matrix.shard }}}}/{len(numbers)}"
    assert "--loop-shard" in command_line.FLAGS
    assert steps["Make the verdict"]["run"] == "pytest-loop merge loop-shard-*.json"
    assert jobs["verdict"]["needs"] == "judge"
    assert "cancelled" in jobs["verdict"]["if"]  # the verdict is also made after a failed shard
