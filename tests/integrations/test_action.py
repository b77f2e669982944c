"""The GitHub Action: valid by its schema, and run step by step as GitHub would."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]
EXAMPLE = ROOT / "examples" / "fix_until_green"
# It writes down its arguments, and answers as GitHub would: there is a comment of an earlier run if EARLIER is set,
# and calls with the argument FORBIDDEN fail.
GH = """#!/bin/sh
echo "$@" >>"$GH_LOG"
case " $* " in *" ${FORBIDDEN:-none} "*) exit 1 ;; *--paginate*) echo "$EARLIER" ;; esac
"""


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        ("github-actions", "action.yml"),
        ("github-workflows", "examples/ci/fix-until-green.yml"),
        ("github-workflows", "examples/ci/judge-pull-requests.yml"),
        ("github-workflows", "examples/ci/nightly-workload.yml"),
        ("github-workflows", "examples/ci/shards.yml"),
        ("gitlab-ci", "examples/ci/gitlab-ci.yml"),
    ],
)
def test_file_is_valid_by_its_schema(schema: str, path: str) -> None:
    words = ["-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", str(ROOT / path)]
    result = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout


def test_inputs_reach_scripts_only_as_variables() -> None:
    assert [step["run"] for step in STEPS if "${{" in step.get("run", "")] == []
    for step in STEPS:
        assert "GH_TOKEN" not in step.get("env", {}) or step["name"] in ("Comment", "Propose the fix")


class Runner:
    """As much of GitHub's runner as the action needs."""

    def __init__(self, folder: Path) -> None:
        self.temp = folder / "temp"
        self.checkout = folder / "checkout"
        programs = folder / "programs"
        for path in (self.temp, programs):
            path.mkdir()
        (programs / "gh").write_text(GH)
        (programs / "gh").chmod(0o755)
        self.output = self.temp / "output"
        self.summary = self.temp / "summary.md"
        self.log = self.temp / "gh.log"
        self.log.touch()
        origin = folder / "origin"
        shutil.copytree(EXAMPLE, origin, ignore=shutil.ignore_patterns("__pycache__"))
        identity = ("-c", "user.name=me", "-c", "user.email=me@example.org")
        for words in (("init", "-q", "-b", "main"), ("add", "--all"), (*identity, "commit", "-qm", "first")):
            subprocess.run(["git", *words], cwd=origin, check=True)
        subprocess.run(["git", "clone", "-q", str(origin), str(self.checkout)], check=True)
        self.environment = {
            **os.environ,
            "PATH": os.pathsep.join((str(programs), str(Path(sys.executable).parent), os.environ["PATH"])),
            "GITHUB_ACTIONS": "true",
            "GITHUB_ACTION_PATH": str(ROOT),
            "GITHUB_OUTPUT": str(self.output),
            "GITHUB_STEP_SUMMARY": str(self.summary),
            "GITHUB_REPOSITORY": "me/ledger",
            "GITHUB_REF_NAME": "main",
            "GITHUB_RUN_ID": "7",
            "GITHUB_RUN_ATTEMPT": "1",
            "GH_LOG": str(self.log),
            "PYTHONWARNINGS": "ignore",
        }

    def run(self, **inputs: str) -> int:
        """Run the steps with these inputs; return the exit code of the last one, or of the first that fails."""
        values = {f"inputs.{name}": row.get("default", "") for name, row in ACTION["inputs"].items()}
        values |= {f"inputs.{name.replace('_', '-')}": value for name, value in inputs.items()}
        values |= {"runner.temp": str(self.temp), "github.event.pull_request.number": "3"}
        values["steps.upload.outputs.artifact-url"] = "https://example.org/report"
        for step in STEPS:
            if "run" not in step or step["name"] == "Install":
                continue
            variables = {name: fill(str(text), values) for name, text in step.get("env", {}).items()}
            result = subprocess.run(
                ["bash", "-e", "-c", step["run"]],
                cwd=self.checkout,
                env={**self.environment, **variables},
                capture_output=True,
                text=True,
                check=False,
            )
            if result.returncode:
                return result.returncode if step is STEPS[-1] else 100
            values |= {f"steps.{step.get('id')}.outputs.{name}": value for name, value in self.outputs.items()}
        return 0

    @property
    def outputs(self) -> dict[str, str]:
        lines = self.output.read_text().splitlines() if self.output.exists() else []
        return dict(line.split("=", 1) for line in lines)

    @property
    def calls(self) -> list[str]:
        return self.log.read_text().splitlines()

    def read(self, name: str) -> str:
        return (self.temp / "pytest-loop" / name).read_text()


def fill(text: str, values: dict[str, str]) -> str:
    return re.sub(r"\$\{\{ *(.*?) *\}\}", lambda match: values.get(match[1], ""), text)


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    return Runner(tmp_path)


def test_red_example_becomes_green(runner: Runner) -> None:
    agent = "python:scripted_fixer:work"
    for name in ("build/lib/ledger.py", "[a] b.egg-info"):  # as pip writes them into the project
        (runner.checkout / name).parent.mkdir(parents=True, exist_ok=True)
        (runner.checkout / name).touch()
    code = runner.run(task="fix until green", agent=agent, comment="true", pull_request="true")
    assert code == 0, runner.outputs
    assert (runner.outputs["status"], runner.outputs["score"]) == ("completed", "1")
    assert "<html" in Path(runner.outputs["report"]).read_text()
    assert "+++ b/ledger.py" in Path(runner.outputs["diff"]).read_text()
    assert json.loads(runner.read("result.json"))["stop"]["reason"] == "threshold_reached"
    assert "ledger" in runner.summary.read_text()
    comment = runner.read("comment.md")
    assert comment.startswith("<!-- pytest-loop -->\n**pytest-loop: completed**, score 1, 9 of 9 rules pass")
    assert comment.count("\n- `tests/test_ledger.py::") == 7
    assert "Fixed:\n- `tests/test_ledger.py::test_a_statement_is_a_table`\n" in comment
    assert "ledger.py | " in comment
    assert "[The report](https://example.org/report)" in comment
    assert any("--method POST repos/me/ledger/issues/3/comments" in call for call in runner.calls)
    assert "pr create --base main --head loop/fix-7-1 --title fix until green" in runner.calls[-1]
    branch = subprocess.run(
        ["git", "diff", "--stat", "main", "loop/fix-7-1"],
        cwd=runner.checkout.parent / "origin",
        capture_output=True,
        text=True,
        check=True,
    )
    assert "ledger.py" in branch.stdout
    assert "1 file changed" in branch.stdout


def test_earlier_comment_is_updated_and_no_fix_is_proposed_without_request(runner: Runner) -> None:
    runner.environment["EARLIER"] = "42"
    assert runner.run(comment="true") == 1
    assert (runner.outputs["status"], runner.outputs["diff"]) == ("failed", "")
    assert any("--method PATCH repos/me/ledger/issues/comments/42" in call for call in runner.calls)
    failed = "Blocks:\n- `tests.test_ledger::test_amounts_are_read[1,234.50-1234.50]`\n"
    assert [failed in text for text in (runner.read("comment.md"), runner.summary.read_text())] == [True, True]
    assert not any("pr create" in call for call in runner.calls)


def test_score_of_rules_is_an_output_without_a_task(runner: Runner) -> None:
    rules = "artifact: ledger.py\nrules:\n- {id: a.x.y, description: x, check: {contains: [Decimal]}}\n"
    (runner.checkout / "it.rules.yaml").write_text(rules)
    (runner.temp / "pytest-loop").mkdir()
    (runner.temp / "pytest-loop" / "result.json").write_text('{"status": "stopped"}')  # of an earlier step
    assert runner.run(rules="it.rules.yaml") == 0
    assert (runner.outputs["status"], runner.outputs["score"]) == ("passed", "1")
    assert runner.calls == []


@pytest.mark.thorough
def test_plugin_is_installed_in_the_version_of_the_action(runner: Runner) -> None:
    environment = {**runner.environment, "INSTALL": f"--dry-run --no-deps --ignore-installed --report {runner.output}"}
    words = ["bash", str(ROOT / "action" / "install.sh")]
    subprocess.run(words, env=environment, check=True, capture_output=True)
    [row] = json.loads(runner.output.read_text())["install"]
    assert (row["metadata"]["name"], row["download_info"]["url"]) == ("pytest-agent-loop", ROOT.as_uri())


def test_comment_that_a_fork_may_not_write_is_a_warning(runner: Runner) -> None:
    (runner.temp / "comment.md").write_text("passed\nREPORT\n")
    inputs = {"COMMENT": "true", "NUMBER": "3", "OUT": str(runner.temp), "FORBIDDEN": "--method"}
    words = ["bash", str(ROOT / "action" / "comment.sh")]
    result = subprocess.run(words, env={**runner.environment, **inputs}, capture_output=True, text=True, check=True)
    assert result.stdout.startswith("::warning title=pytest-loop::The comment cannot be written")
    assert "--method POST" in runner.calls[-1]


def test_fix_of_a_pull_request_goes_to_its_branch_also_if_the_agent_committed_it(runner: Runner) -> None:
    git = ["git", "-c", "user.name=agent", "-c", "user.email=agent@example.org"]
    subprocess.run([*git, "commit", "--quiet", "--allow-empty", "--message", "mine"], cwd=runner.checkout, check=True)
    inputs = {"PULL_REQUEST": "true", "STATUS": "completed", "DIFF": "change.diff", "OUT": str(runner.temp)}
    pull_request = {"GITHUB_REF_NAME": "3/merge", "GITHUB_HEAD_REF": "topic", "TASK": "fix it\nall of it"}
    subprocess.run(
        ["bash", str(ROOT / "action" / "propose.sh")],
        cwd=runner.checkout,
        env={**runner.environment, **inputs, **pull_request},
        check=True,
    )
    assert "pr create --base topic --head loop/fix-7-1 --title fix it --body-file" in runner.calls[-1]
    words = ["git", "log", "-1", "--format=%s", "loop/fix-7-1"]
    origin = runner.checkout.parent / "origin"
    assert subprocess.run(words, cwd=origin, capture_output=True, text=True, check=True).stdout == "mine\n"


def test_hook_of_pre_commit_judges_rule_files(tmp_path: Path) -> None:
    [hook] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert re.search(hook["files"], "docs/guide.rules.yaml")
    assert not re.search(hook["files"], "guide.yaml")
    folder = shutil.copytree(ROOT / "examples" / "first", tmp_path / "first")
    words = [sys.executable, "-m", *hook["entry"].split(), "release.rules.yaml"]
    result = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert "loop score" in result.stdout, result.stdout + result.stderr


def test_page_names_every_input_and_output() -> None:
    page = (ROOT / "docs" / "github.md").read_text()
    names = {*ACTION["inputs"], *ACTION["outputs"]} - {"token"}
    assert [name for name in names if f"`{name}`" not in page] == []
