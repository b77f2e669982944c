"""From a task in plain words to a document: detected types, drafts, the set-up at a terminal, and the skill context."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Pytest = Callable[..., "subprocess.CompletedProcess[str]"]
WRITER = '''
import re
from pathlib import Path

PAGE = """# Backups

For administrators of the backup tool.

## Usage

Run `backup now`.

```sh
backup now
```
"""


def work(request):
    """Write a page, with a changelog once the critique asks for it; as a judge, agree."""
    Path("../prompts").mkdir(exist_ok=True)
    Path(f"../prompts/{request.step}-{request.iteration}.txt").write_text(request.prompt)
    if request.step == "JUDGE":
        return {"passed": True, "reason": "it says so"}
    if request.step == "PREPARE":
        rules = re.findall(r"^- (\\S+) \\(", request.prompt, re.MULTILINE)
        return {"checks": [{"rule_id": rule, "check": {"judge": "Is it so?"}} for rule in rules]}
    return PAGE if request.step == "PRODUCE" else PAGE + "\\n## Changelog\\n\\nNothing yet.\\n"
'''
AGENT = ("--loop-agent", "python:writer:work", "--loop-alias", "page")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "writer.py").write_text(WRITER)
    return folder


@pytest.mark.parametrize(
    ("task", "target", "template", "rules"),
    [
        (
            "OpenAPI 3.1 spec + DDD notes + JSON examples",
            "openapi.yaml",
            "api-spec: `OpenAPI 3.1 spec`",
            ["a.task.version", "a.task.ddd-notes"],
        ),
        ("Write docs for the backup tool", "artifact.md", "docs: `docs`", ["a.task.subject"]),
        pytest.param("Write a README", "README.md", "docs: `README`", [], marks=pytest.mark.thorough),
        pytest.param("write an nginx config", "nginx.conf", "config: `nginx config`", [], marks=pytest.mark.thorough),
    ],
)
def test_words_of_a_task_lead_to_a_draft(
    project: Path, run: Pytest, task: str, target: str, template: str, rules: list[str]
) -> None:
    drafted = run("--loop-task", task, *AGENT, "-v")
    assert drafted.returncode == 4
    lines = drafted.stdout.splitlines()
    assert any(line.endswith(f" · writes: .loop/page/{target}") for line in lines)
    assert f"type: {template} in the task (another one: --loop-template NAME)" in lines
    assert re.findall(r"a\.task\.[\w-]+(?= +It)", drafted.stdout) == rules
    assert any("[template " in line for line in lines)
    assert "type pytest --loop-task" in drafted.stderr
    assert not (project / ".loop").exists()


@pytest.mark.parametrize(
    "task",
    ["Write a README and an nginx config", pytest.param("Update the docs", marks=pytest.mark.thorough)],
)
def test_task_that_names_no_single_type_is_refused_with_the_templates(project: Path, run: Pytest, task: str) -> None:
    refused = run("--loop-task", task, *AGENT, "--loop-yes")
    assert refused.returncode == 4
    assert "name its type: --loop-template api-spec, code, config or docs" in refused.stderr


def test_skill_context_judges_a_document(project: Path, run: Pytest) -> None:
    context = project / ".ai-factory/skill-context/aif-loop/SKILL.md"
    context.parent.mkdir(parents=True)
    context.write_text("# Rules\n\n- The artifact MUST include a Changelog section\n")
    ideal = ("--loop-ideal", "a page of at most 50 words")
    done = run("--loop-task", "Improve the docs", "--loop-template", "docs", *AGENT, *ideal, "--loop-yes")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "a.project.include-a-changelog-section" in done.stdout
    folder = project / ".ai-factory/evolution/page"
    assert "## Changelog" in (folder / "artifact.md").read_text()
    state = json.loads((folder / "run.json").read_text())
    assert state["task"]["ideal_result"] == "a page of at most 50 words"
    assert "sections:\n      - Changelog\n" in (folder / "inferred.rules.yaml").read_text()
    prompt = (project.parent / "prompts/PRODUCE-1.txt").read_text()
    assert "## Ideal result\na page of at most 50 words\n" in prompt
    assert "- a.project.include-a-changelog-section (fail): The artifact MUST include a Changelog section\n" in prompt
    assert "change nothing about what judges" not in prompt
    judged = run("-q", ".ai-factory/evolution/page/inferred.rules.yaml")
    assert "a.project.include-a-changelog-section" not in judged.stdout
    assert judged.returncode != 4


def test_set_up_at_a_terminal_is_edited_confirmed_and_kept(project: Path) -> None:
    kind, ideal, checks = "docs\n", "one page\n", "must mention `backup now`\n\n"
    thresholds, limit, major = "0.5 0.6\n", "5\n", "\n"
    edit, other_limit, confirmed, is_done = "e\n", "y\n3\n", "y\ny\n", "y\n"
    answers = "".join((kind, ideal, checks, thresholds, limit, major, edit, other_limit, confirmed, is_done))
    ours, theirs = pty.openpty()
    os.write(ours, answers.encode() + b"\x04")
    command = [sys.executable, "-m", "pytest", "-q", "--loop-task", "make it better", *AGENT]
    variables = {**os.environ, "EDITOR": "sed -i s/0.5}/0.55}/", "VISUAL": ""}
    try:
        done = subprocess.run(
            command, cwd=project, env=variables, stdin=theirs, capture_output=True, text=True, check=False, timeout=120
        )
    finally:
        os.close(theirs)
        os.close(ours)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("confirm these success criteria? (e edits them) [y/N]") == 3
    assert done.stdout.count("confirm max iterations = ") == 2
    state = json.loads((project / ".loop/page/run.json").read_text())
    assert state["task"] == {"prompt": "make it better", "ideal_result": "one page"}
    assert state["max_iterations"] == 3
    assert [level["threshold"] for level in state["criteria"]["phase"].values()] == [0.55, 0.6]
    assert state["setup"]["draft"]["confirmed_by"] == "terminal"
    assert "{A: {threshold: 0.55}, B: {threshold: 0.6}}" in (project / ".loop/page/inferred.rules.yaml").read_text()
