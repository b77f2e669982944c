"""A run goes from a task to a document that the rules accept."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import WORKERS_IF_THOROUGH

ROOT = Path(__file__).parents[2]
Write = Callable[..., Path]

RULES = """
    artifact: guide.md
    rules:
      - {id: a.content.title, description: Has a title, check: {matches: '^# \\w+'}}
      - {id: a.content.usage, description: Says how, check: {sections: [Usage]}}
      - {id: b.content.links, description: Links lead somewhere, check: {links: true}}
"""
GOOD = "# Guide\\n\\n## Usage\\n\\nSee [above](#guide).\\n"


@pytest.fixture
def project(pytester: pytest.Pytester, rule_file: Write) -> pytest.Pytester:
    rule_file(RULES, "guide.rules.yaml")
    return pytester


def loop(pytester: pytest.Pytester, agent: str, *args: str) -> pytest.RunResult:
    """Runs a loop with an agent whose answers stand in the test."""
    (pytester.path / "agents.py").write_text(
        f"from pytest_loop import AgentReply, ScriptedAgent\nagent = ScriptedAgent({agent})\n"
    )
    fixed = (
        "--loop-task",
        "Write a guide",
        "--loop-agent",
        "python:agents:agent",
        "--loop-rules",
        "guide.rules.yaml",
        "--loop-yes",
    )
    return pytester.runpytest_subprocess(*fixed, *args)


def events(pytester: pytest.Pytester, alias: str = "write-a-guide") -> list[dict[str, Any]]:
    lines = (pytester.path / ".loop" / alias / "history.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def state(pytester: pytest.Pytester, alias: str = "write-a-guide") -> dict[str, Any]:
    return json.loads((pytester.path / ".loop" / alias / "run.json").read_text())  # type: ignore[no-any-return]


@WORKERS_IF_THOROUGH
def test_the_example_needs_three_iterations(pytester: pytest.Pytester, workers: tuple[str, ...]) -> None:
    shutil.copytree(ROOT / "examples/loop", pytester.path, dirs_exist_ok=True)
    args = (
        "--loop-agent",
        "python:scripted_writer:agent",
        "--loop-rules",
        "guide.rules.yaml",
        "--loop-yes",
        "-q",
        *workers,
    )
    result = pytester.runpytest_subprocess(
        "--loop-task", "Write a guide to our backups", *args, "--loop-json", "out.json"
    )
    assert result.ret == 0, result.stdout.str() + result.stderr.str()
    result.stdout.fnmatch_lines(
        [
            "task        Write a guide to our backups",
            "Iteration 1/4 | Phase A | Score 0 | FAIL",
            "*1. a.completeness.sections (fail, new)",
            "Iteration 2/4 | Phase A | Score 1 | PASS",
            "phase A passes, phase B begins",
            "Iteration 2/4 | Phase B | Score 0.714 | FAIL",
            "Iteration 3/4 | Phase B | Score 1 | PASS",
            "completed: threshold_reached after iteration 3 of 4, phase B",
        ]
    )
    out = json.loads((pytester.path / "out.json").read_text())
    assert (out["status"], out["stop"], out["score"], out["iteration"]) == (
        "completed",
        {"passed": True, "reason": "threshold_reached"},
        1.0,
        3,
    )
    assert out["usage"]["tokens"] is None
    assert out["decision"]["action"] == "proceed"
    folder = pytester.path / ".loop/write-a-guide-to-our-backups"
    assert sorted(path.name for path in folder.iterdir() if not path.name.startswith(".")) == [
        "artifact.md",
        "history.jsonl",
        "run.json",
    ]
    assert not (pytester.path / ".loop/current.json").exists()


def test_events_tell_the_story_in_order(project: pytest.Pytester) -> None:
    result = loop(project, f'{{"PRODUCE": "# Guide\\n", "REFINE": ["{GOOD}"]}}')
    assert result.ret == 0, result.stdout.str() + result.stderr.str()
    assert [event["event"] for event in events(project)] == [
        "run_started", "plan_created", "artifact_created", "evaluation_done", "critique_done", "refinement_done",
        "iteration_advanced", "plan_created", "evaluation_done", "phase_switched", "evaluation_done", "stopped",
    ]  # fmt: skip
    refined = next(event for event in events(project) if event["event"] == "refinement_done")
    assert len(refined["payload"]["previous_artifact_hash"]) == 64
    final = state(project)
    assert (final["status"], final["iteration"], final["phase"], final["last_score"]) == ("completed", 2, "B", 1.0)
    assert final["criteria"]["rules"][0]["weight"] == 2


@pytest.mark.thorough
def test_an_artifact_that_passes_already_needs_no_agent(project: pytest.Pytester) -> None:
    (project.path / "guide.md").write_text(GOOD.replace("\\n", "\n"))
    result = loop(project, "{}", "--loop-artifact", "guide.md")
    assert result.ret == 0, result.stdout.str() + result.stderr.str()
    assert [event["event"] for event in events(project)] == [
        "run_started",
        "evaluation_done",
        "phase_switched",
        "evaluation_done",
        "stopped",
    ]


@pytest.mark.thorough
def test_an_agent_may_edit_the_document_in_place(project: pytest.Pytester) -> None:
    answers = f'{{"PRODUCE": lambda request: request.artifact.write_text("{GOOD}") and None}}'
    result = loop(project, answers)
    assert result.ret == 0, result.stdout.str() + result.stderr.str()
    assert (project.path / ".loop/write-a-guide/artifact.md").read_text() == GOOD.replace("\\n", "\n")


def test_a_run_that_reaches_its_limit_escalates_and_goes_on_with_a_higher_one(project: pytest.Pytester) -> None:
    answers = f'{{"PRODUCE": "# Guide\\n", "REFINE": ["# Guide two\\n", "{GOOD}"]}}'
    result = loop(project, answers, "--loop-max-iterations", "2")
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        [
            "stopped: iteration_limit after iteration 2 of 2, phase A",
            "distance: score 0.5 of 0.8 (gap 0.3), 1 of 2 rules pass, blocking: a.content.usage",
            "  iteration 1, phase A: 0.5 fail; open: a.content.usage",
            "pattern: same failure: the same rules fail *",
            "question: *",
            "go on: pytest --loop-resume=write-a-guide --loop-max-iterations 6",
        ]
    )
    again = project.runpytest_subprocess("--loop-resume")
    assert again.ret == 1
    again.stdout.fnmatch_lines(["write-a-guide is over: stopped, iteration_limit", "go on: *--loop-max-iterations 6"])
    # The agent's process is new, and so is its script: the first answer comes again.
    (project.path / "agents.py").write_text(
        f'from pytest_loop import ScriptedAgent\nagent = ScriptedAgent({{"REFINE": "{GOOD}"}})\n'
    )
    higher = project.runpytest_subprocess("--loop-resume=write-a-guide", "--loop-max-iterations", "6")
    assert higher.ret == 0, higher.stdout.str() + higher.stderr.str()
    assert state(project)["iteration"] == 3


def test_an_honest_agent_can_say_that_a_rule_is_wrong(project: pytest.Pytester) -> None:
    result = loop(project, '{"PRODUCE": "# Guide\\n", "REFINE": "BLOCKED a.content.usage: nobody knows how"}')
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        ["stopped: blocked *", "question: Is the agent right that a.content.usage cannot be met (nobody knows how)[?]"]
    )


def test_an_exit_signal_that_is_false_keeps_a_run_from_success(project: pytest.Pytester) -> None:
    answers = f'{{"PRODUCE": AgentReply(text="{GOOD}", exit_signal=False), "REFINE": AgentReply(text="{GOOD} ", exit_signal=True)}}'
    result = loop(project, answers)
    assert result.ret == 0, result.stdout.str() + result.stderr.str()
    assert state(project)["iteration"] == 2


def test_a_step_that_breaks_its_contract_twice_fails_the_run(project: pytest.Pytester) -> None:
    result = loop(project, '{"PRODUCE": ""}')
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        [
            "PRODUCE went wrong: expected a document, found an empty answer",
            "failed: phase_error *",
            "final_score: unavailable (the artifact is not_created)",
        ]
    )
    assert [event["event"] for event in events(project)][-3:] == ["phase_error", "phase_error", "failed"]


@pytest.mark.thorough
def test_python_tests_of_the_arguments_are_rules(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_it="""
        import os, pathlib
        def test_title(): assert pathlib.Path("notes.md").read_text().startswith("# ")
        def test_end(): assert pathlib.Path("notes.md").read_text().endswith("end\\n")
        """
    )
    (pytester.path / "notes.md").write_text("hello\n")
    (pytester.path / "agents.py").write_text(
        'from pytest_loop import ScriptedAgent\nagent = ScriptedAgent({"REFINE": ["# x\\n", "# x\\nend\\n"]})\n'
    )
    result = pytester.runpytest_subprocess(
        "test_it.py",
        "--loop-task",
        "Mend the notes",
        "--loop-agent",
        "python:agents:agent",
        "--loop-artifact",
        "notes.md",
        "--loop-yes",
    )
    assert result.ret == 0, result.stdout.str() + result.stderr.str()
    assert state(pytester, "mend-the-notes")["iteration"] == 3


def test_a_session_that_the_code_under_test_kills_is_not_a_pass(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_it="import os\ndef test_a(): pass\ndef test_b(): os._exit(0)\ndef test_c(): pass\n")
    (pytester.path / "notes.md").write_text("hello\n")
    (pytester.path / "agents.py").write_text(
        'from pytest_loop import ScriptedAgent\nagent = ScriptedAgent({"REFINE": "x"})\n'
    )
    result = pytester.runpytest_subprocess(
        "test_it.py",
        "--loop-task",
        "Mend the notes",
        "--loop-agent",
        "python:agents:agent",
        "--loop-artifact",
        "notes.md",
        "--loop-yes",
        "--loop-max-iterations",
        "1",
    )
    assert result.ret == 1
    failed = {one["id"]: one["message"] for one in state(pytester, "mend-the-notes")["evaluation"]["failed"]}
    assert failed == {
        "test_it.py::test_b": "not verified: the session died here (exit code 0)",
        "test_it.py::test_c": "not verified: the session died (exit code 0) in test_it.py::test_b",
    }


def test_rules_that_cannot_be_collected_are_told_before_anything_starts(
    project: pytest.Pytester, rule_file: Write
) -> None:
    rule_file("rules: 5", "guide.rules.yaml")
    result = loop(project, "{}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["ERROR: the rules cannot be collected:", "guide.rules.yaml:1: expected a list for `rules`, found 5"]
    )
    assert not (project.path / ".loop").exists()


def test_nothing_to_judge_is_said(pytester: pytest.Pytester) -> None:
    pytester.mkdir("empty")
    result = pytester.runpytest_subprocess("empty", "--loop-task", "fix until green", "--loop-yes")
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    result.stderr.fnmatch_lines(
        ["ERROR: there is nothing to judge: name rules with --loop-rules, --loop-template or paths"]
    )


def test_a_template_judges_on_its_own(pytester: pytest.Pytester) -> None:
    (pytester.path / "agents.py").write_text(
        "from pytest_loop import ScriptedAgent\nagent = ScriptedAgent({'JUDGE': '{\"passed\": true}', 'PREPARE': lambda r: {'data': {'checks': [{'rule_id': i, 'check': {'manual': 'x'}} for i in ['a.correctness.accuracy', 'a.quality.clarity', 'b.style.consistency', 'b.quality.audience'] if i in r.prompt]}}})\n"
    )
    (pytester.path / "guide.md").write_text((ROOT / "examples/good/docs/guide.md").read_text())
    result = pytester.runpytest_subprocess(
        "--loop-task",
        "Mend the guide",
        "--loop-agent",
        "python:agents:agent",
        "--loop-template",
        "docs",
        "--loop-artifact",
        "guide.md",
        "--loop-yes",
    )
    result.stdout.fnmatch_lines(
        ["*stopped: unconfirmed *", "go on: pytest --loop-resume=mend-the-guide --loop-confirm *"]
    )


def test_the_test_repeater_of_the_same_name_is_refused(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its entry point is called `loop`; a distribution of that shape stands in for it."""
    folder = project.path / "site" / "pytest_loop_repeater-1.0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: pytest-loop-repeater\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text("[pytest11]\nloop = repeater\n")
    (project.path / "site" / "repeater.py").write_text("")
    monkeypatch.setenv("PYTHONPATH", str(project.path / "site"))
    monkeypatch.delenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD")
    monkeypatch.delenv("PYTEST_PLUGINS")
    result = project.runpytest_subprocess("--loop-list")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: the plugin pytest-loop (a test repeater) is active *: use -p no:loop"])
    assert project.runpytest_subprocess("--loop-list", "-p", "no:loop").ret == 0


def test_a_module_that_cannot_be_imported_fails_its_rules_and_not_the_run(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_it="import notes\ndef test_value(): assert notes.VALUE == 2\n")
    (pytester.path / "notes.py").write_text("VALUE = 1\n")
    script = 'agent = ScriptedAgent({"REFINE": ["VALUE = = 2\\n", "VALUE = 2\\n"]})'
    (pytester.path / "agents.py").write_text(f"from pytest_loop import ScriptedAgent\n{script}\n")
    result = pytester.runpytest_subprocess(
        "test_it.py",
        "--loop-task",
        "Mend it",
        "--loop-agent",
        "python:agents:agent",
        "--loop-artifact",
        "notes.py",
        "--loop-yes",
    )
    assert result.ret == 0, result.stdout.str() + result.stderr.str()
    result.stdout.fnmatch_lines(["*not verified: test_it.py: *SyntaxError: invalid syntax*"])


def test_a_session_with_an_order_never_starts_a_run(project: pytest.Pytester) -> None:
    (project.path / "pytest.ini").write_text("[pytest]\naddopts = --loop-max-iterations 3\n")
    result = loop(project, f'{{"PRODUCE": "{GOOD}"}}')
    assert result.ret == 0, result.stdout.str() + result.stderr.str()
    assert state(project)["max_iterations"] == 3


HALF = "def pytest_loop_score(rules, verdicts):\n    return 0.5 if len(rules) == {count} else None\n"


def test_a_plugin_scores_a_run_in_its_own_way(project: pytest.Pytester) -> None:
    (project.path / "scoring.py").write_text(HALF.format(count=3))
    args = ("-p", "scoring", "--loop-max-iterations", "1", "-o", "pythonpath=.")
    result = loop(project, f'{{"PRODUCE": "{GOOD}"}}', *args)
    result.stdout.fnmatch_lines(
        ["Iteration 1/1 | Phase A | Score 1 | PASS", "Iteration 1/1 | Phase B | Score 0.5 | FAIL"]
    )
    assert state(project)["last_score"] == 0.5


def test_a_conftest_scores_a_session_in_its_own_way(project: pytest.Pytester) -> None:
    project.makeconftest(HALF.format(count=3))
    (project.path / "guide.md").write_text(GOOD.replace("\\n", "\n"))
    result = project.runpytest_subprocess()
    result.stdout.fnmatch_lines(["guide  FAIL  0.5 (0.5 of 1) < 0.9 in phase B, 3 rules: 3 passed"])
    assert result.ret == 1
