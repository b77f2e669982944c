from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_loop.core.model.rules import Evidence, Finding, Outcome, Rule
from pytest_loop.rules.checks.check import Context, JudgeReply
from pytest_loop.rules.checks.registry import build_check
from pytest_loop.rules.document import Documents
from pytest_loop.rules.reuse import VerdictCache
from pytest_loop.rules.rule_files import LoadedRule

NODE = "it.rules.yaml::a.it"


class Project:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.judgings = 0
        self.known: dict[str, Any] = {}
        (folder / "artifact.md").write_text("# Guide\n")
        (folder / "data.txt").write_text("1\n")

    def judge(self, raw: Any, *, fixtures: tuple[str, ...] = (), artifact: bool = True, **fields: Any) -> Evidence:
        """Judge a rule; the next call may reuse its evidence."""
        rule = Rule(id="a.it", description="it", **fields)
        judged = LoadedRule(rule, build_check(raw), self.folder, 1, fixtures, raw=raw)
        place = Path("artifact.md") if artifact else None
        context = Context(
            self.folder, self.folder, place, Documents(self.folder), ask=lambda _: JudgeReply(passed=True)
        )

        reuse = VerdictCache(self.known)
        inputs = reuse.hash_inputs(judged, context)
        if known := reuse.find_evidence(NODE, inputs):
            return known.model_copy(update={"reused": True})
        self.judgings += 1
        found = (Finding(expected="a", found="b"),)
        evidence = Evidence(outcome=Outcome.FAILED, findings=found, inputs=inputs)
        self.known = {NODE: evidence.model_dump(mode="json", exclude_defaults=True)}
        return evidence


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


CERTAIN = [
    pytest.param({"contains": "x"}, id="contains"),
    pytest.param([{"matches": "x"}, {"sections": ["Guide"]}], id="a list"),
    pytest.param({"not": {"absent": "x"}}, id="not"),
    pytest.param({"judge": "Is it good?"}, id="judge"),
    pytest.param("It is good", id="a sentence"),
    pytest.param({"json_schema": {"type": "object"}}, id="a schema"),
    pytest.param({"command": "cat {artifact}", "inputs": "data.txt"}, id="a command"),
    pytest.param({"command": "no-such-program", "inputs": ["*.txt"]}, id="a missing program"),
]
UNCERTAIN = [
    pytest.param({"command": "cat data.txt"}, id="a command that does not say what it reads"),
    pytest.param({"python": "judges:it"}, id="python"),
    pytest.param({"links": True}, id="links"),
    pytest.param({"files": {"exist": "*.txt"}}, id="files"),
    pytest.param({"json_schema": "schema.json"}, id="a schema in a file"),
    pytest.param({"json_schema": {"$ref": "other.json"}}, id="a schema that refers to others"),
    pytest.param([{"contains": "x"}, {"manual": "Is it?"}], id="a part that is not certain"),
]


@pytest.mark.parametrize("raw", CERTAIN)
def test_a_rule_whose_inputs_have_not_changed_keeps_its_verdict(project: Project, raw: Any) -> None:
    first = project.judge(raw)
    assert first.inputs
    assert not first.reused
    again = project.judge(raw)
    assert again == first.model_copy(update={"reused": True})
    assert project.judgings == 1


@pytest.mark.parametrize("raw", UNCERTAIN)
def test_a_rule_with_uncertain_inputs_is_judged_every_time(project: Project, raw: Any) -> None:
    assert project.judge(raw).inputs == ""
    assert not project.judge(raw).reused
    assert project.judgings == 2


def test_noisy_rules_and_rules_with_fixtures_are_judged_every_time(project: Project) -> None:
    for _ in range(2):
        project.judge({"contains": "x"}, repeat=3)
        project.judge({"contains": "x"}, fixtures=("tmp_path",))
    assert project.judgings == 4


def test_a_rule_without_an_artifact_is_judged_every_time(project: Project) -> None:
    for _ in range(2):
        project.judge({"judge": "Is it?"}, artifact=False)
    assert project.judgings == 2


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda folder: (folder / "artifact.md").write_text("new\n"), id="the artifact"),
        pytest.param(lambda folder: (folder / "data.txt").write_text("2\n"), id="a file"),
        pytest.param(lambda folder: (folder / "more.txt").write_text("2\n"), id="another file"),
        pytest.param(lambda folder: (folder / "data.txt").unlink(), id="a file that is gone"),
        pytest.param(lambda folder: (folder / "bin" / "tool").write_text("#!/bin/sh\nexit 1\n"), id="the program"),
    ],
)
def test_a_changed_input_makes_a_command_run_again(
    project: Project, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], object]
) -> None:
    (project.folder / "bin").mkdir()
    tool = project.folder / "bin" / "tool"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tool.parent), prepend=":")
    assert shutil.which("tool") == str(tool)
    raw = {"command": "tool {artifact}", "inputs": ["*.txt"]}
    project.judge(raw)
    project.judge(raw)
    assert project.judgings == 1
    change(project.folder)
    project.judge(raw)
    assert project.judgings == 2


def test_a_changed_variable_makes_a_command_run_again(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = {"command": "cat", "inputs": ["*.txt"]}
    project.judge(raw)
    monkeypatch.setenv("PYTEST_LOOP_CALL", "of one session")
    project.judge(raw)
    assert project.judgings == 1
    monkeypatch.setenv("LANG", "de_DE")
    project.judge(raw)
    assert project.judgings == 2


def test_a_changed_rule_is_judged_again(project: Project) -> None:
    project.judge({"contains": "x"})
    project.judge({"contains": "y"})
    project.judge({"contains": "y"}, must_not=True)
    assert project.judgings == 3


def test_writing_the_same_text_is_no_change(project: Project) -> None:
    project.judge({"contains": "x"})
    (project.folder / "artifact.md").write_text("# Guide\n")
    assert project.judge({"contains": "x"}).reused


def test_an_unreadable_file_is_an_input(project: Project) -> None:
    (project.folder / "artifact.md").unlink()
    project.judge({"contains": "x"})
    assert project.judge({"contains": "x"}).reused
    (project.folder / "artifact.md").mkdir()
    assert not project.judge({"contains": "x"}).reused
