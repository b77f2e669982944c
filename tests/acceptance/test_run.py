"""Runs that write a document until the rules accept it."""

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
AGENT = ("--loop-agent", "python:agents:agent", "--loop-yes")
GOOD = "# Guide\\n\\n## Usage\\n\\nSee [above](#guide).\\n"


@pytest.fixture
def project(pytester: pytest.Pytester, write_rule_file: Write) -> pytest.Pytester:
    write_rule_file(RULES, "guide.rules.yaml")
    return pytester


def write_agent(pytester: pytest.Pytester, answers: str) -> None:
    (pytester.path / "agents.py").write_text(
        f"from pytest_loop import AgentReply, ScriptedAgent\nagent = ScriptedAgent({answers})\n"
    )


def run_loop(pytester: pytest.Pytester, answers: str, *arguments: str) -> pytest.RunResult:
    """Write a guide with an agent that gives these answers."""
    write_agent(pytester, answers)
    task = ("--loop-task", "Write a guide", "--loop-rules", "guide.rules.yaml")
    return pytester.runpytest_subprocess(*task, *AGENT, *arguments)


def fix_artifact(pytester: pytest.Pytester, answers: str, artifact: str, *arguments: str) -> pytest.RunResult:
    """Fix an artifact until `test_it.py` passes, with an agent that gives these answers."""
    write_agent(pytester, answers)
    task = ("test_it.py", "--loop-task", "Mend the notes", "--loop-artifact", artifact)
    return pytester.runpytest_subprocess(*task, *AGENT, *arguments)


def read_events(pytester: pytest.Pytester, alias: str = "write-a-guide") -> list[dict[str, Any]]:
    lines = (pytester.path / ".loop" / alias / "history.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def read_state(pytester: pytest.Pytester, alias: str = "write-a-guide") -> dict[str, Any]:
    return json.loads((pytester.path / ".loop" / alias / "run.json").read_text())  # type: ignore[no-any-return]


@WORKERS_IF_THOROUGH
def test_example_run_completes_in_three_iterations(pytester: pytest.Pytester, workers: tuple[str, ...]) -> None:
    shutil.copytree(ROOT / "examples/loop", pytester.path, dirs_exist_ok=True)
    task = ("--loop-task", "Write a guide to our backups", "--loop-rules", "guide.rules.yaml")
    agent = ("--loop-agent", "python:scripted_writer:agent", "--loop-yes")
    result = pytester.runpytest_subprocess(*task, *agent, *workers, "--loop-json", "out.json")
    assert result.ret == 0, result.stdout.str() + result.stderr.str()
    result.stdout.fnmatch_lines(
        [
            "Write a guide to our backups · *",
            "1/4  ✗ 0 of 2 pass in phase A",
            "       a.completeness.sections *",
            "2/4  ✓ 2 of 2 pass in phase A (+2)",
            "2/4  ✗ * pass in phase B, *",
            "3/4  ✓ * pass in phase B, *",
            "done in *",
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
    names = sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
    assert names == ["files.json", "files.kept", "history.jsonl", "left-out.json", "run.json"]
    assert (pytester.path / "guide.md").read_text().startswith("# ")
    assert not (pytester.path / ".loop/current.json").exists()


@pytest.mark.thorough
def test_history_has_the_events_of_a_run_in_order(project: pytest.Pytester) -> None:
    result = run_loop(project, f'{{"PRODUCE": "# Guide\\n", "REFINE": ["{GOOD}"]}}')
    assert result.ret == 0, result.stdout.str() + result.stderr.str()
    assert [event["event"] for event in read_events(project)] == [
        "run_started", "plan_created", "artifact_created", "evaluation_done", "critique_done", "refinement_done",
        "iteration_advanced", "plan_created", "evaluation_done", "phase_switched", "evaluation_done", "stopped",
    ]  # fmt: skip
    refinement = next(event for event in read_events(project) if event["event"] == "refinement_done")
    assert len(refinement["payload"]["previous_artifact_hash"]) == 64
    final = read_state(project)
    assert (final["status"], final["iteration"], final["phase"], final["last_score"]) == ("completed", 2, "B", 1.0)
    assert final["criteria"]["rules"][0]["weight"] == 2


@pytest.mark.thorough
def test_passing_artifact_needs_no_agent(project: pytest.Pytester) -> None:
    (project.path / "guide.md").write_text(GOOD.replace("\\n", "\n"))
    result = run_loop(project, "{}", "--loop-artifact", "guide.md")
    assert result.ret == 0, result.stdout.str() + result.stderr.str()
    assert [event["event"] for event in read_events(project)] == [
        "run_started",
        "evaluation_done",
        "phase_switched",
        "evaluation_done",
        "stopped",
    ]


def test_run_stops_at_the_iteration_limit_and_resumes_with_a_higher_one(project: pytest.Pytester) -> None:
    answers = f'{{"PRODUCE": "# Guide\\n", "REFINE": ["# Guide two\\n", "{GOOD}"]}}'
    result = run_loop(project, answers, "--loop-max-iterations", "2")
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        [
            "1/2  ✗ 1 of 2 pass in phase A",
            "       a.content.usage  guide.md: expected a section 'Usage', found none",
            "stopped after * · iteration_limit: *",
            "still failing: a.content.usage",
            "progress: the same rules fail *",
            "question: *",
            "continue: pytest-loop resume --run write-a-guide --max-iterations 6",
        ]
    )
    again = project.runpytest_subprocess("--loop-resume")
    assert again.ret == 1
    again.stdout.fnmatch_lines(
        [
            "write-a-guide is over: stopped, iteration_limit",
            "question: *",
            "answer: pytest-loop answer TEXT --run write-a-guide",
            "continue: *--max-iterations 6",
        ]
    )
    # The resumed run starts a new process of the agent, which begins with its first answer.
    write_agent(project, f'{{"REFINE": "{GOOD}"}}')
    higher = project.runpytest_subprocess("--loop-resume=write-a-guide", "--loop-max-iterations", "6")
    assert higher.ret == 0, higher.stdout.str() + higher.stderr.str()
    assert read_state(project)["iteration"] == 3


@pytest.mark.thorough
def test_agent_can_report_a_rule_as_blocked(project: pytest.Pytester) -> None:
    result = run_loop(project, '{"PRODUCE": "# Guide\\n", "REFINE": "BLOCKED a.content.usage: nobody knows how"}')
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        [
            "stopped after * · blocked: *",
            "question: Is the agent right that a.content.usage cannot be met (nobody knows how)[?]",
        ]
    )


@pytest.mark.thorough
def test_false_exit_signal_prevents_success(project: pytest.Pytester) -> None:
    answers = f'{{"PRODUCE": AgentReply(text="{GOOD}", exit_signal=False), "REFINE": AgentReply(text="{GOOD} ", exit_signal=True)}}'
    result = run_loop(project, answers)
    assert result.ret == 0, result.stdout.str() + result.stderr.str()
    assert read_state(project)["iteration"] == 2


def test_step_without_a_valid_answer_twice_fails_the_run(project: pytest.Pytester) -> None:
    result = run_loop(project, '{"PRODUCE": ""}')
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        [
            "     writing failed, and is tried again: expected a document, found an empty answer",
            "failed after * · phase_error: *",
        ]
    )
    assert [event["event"] for event in read_events(project)][-3:] == ["phase_error", "phase_error", "failed"]


@pytest.mark.thorough
def test_python_tests_in_the_arguments_are_rules(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_it="""
        import os, pathlib
        def test_title(): assert pathlib.Path("notes.md").read_text().startswith("# ")
        def test_end(): assert pathlib.Path("notes.md").read_text().endswith("end\\n")
        """
    )
    (pytester.path / "notes.md").write_text("hello\n")
    result = fix_artifact(pytester, '{"REFINE": ["# x\\n", "# x\\nend\\n"]}', "notes.md")
    assert result.ret == 0, result.stdout.str() + result.stderr.str()
    assert read_state(pytester, "mend-the-notes")["iteration"] == 3


def test_session_killed_by_the_code_under_test_does_not_pass(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_it="import os\ndef test_a(): pass\ndef test_b(): os._exit(0)\ndef test_c(): pass\n")
    (pytester.path / "notes.md").write_text("hello\n")
    result = fix_artifact(pytester, '{"REFINE": "x"}', "notes.md", "--loop-max-iterations", "1")
    assert result.ret == 1
    failed = {rule["id"]: rule["message"] for rule in read_state(pytester, "mend-the-notes")["evaluation"]["failed"]}
    assert failed == {
        "test_it.py::test_b": "not verified: the session died here (exit code 0)",
        "test_it.py::test_c": "not verified: the session died (exit code 0) in test_it.py::test_b",
    }


def test_rules_that_cannot_be_collected_are_reported_before_the_run(
    project: pytest.Pytester, write_rule_file: Write
) -> None:
    write_rule_file("rules: 5", "guide.rules.yaml")
    result = run_loop(project, "{}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["ERROR: the rules cannot be collected:", "guide.rules.yaml:1: expected a list for `rules`, found 5"]
    )
    assert not (project.path / ".loop").exists()


def test_run_without_rules_is_refused(pytester: pytest.Pytester) -> None:
    pytester.mkdir("empty")
    result = pytester.runpytest_subprocess("empty", "--loop-task", "fix until green", "--loop-yes")
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    result.stderr.fnmatch_lines(
        [
            "ERROR: there is nothing to judge: name rules with --loop-rules, --loop-template or paths, or let the agent write*"
        ]
    )


MANUAL_CHECKS = """{
    "JUDGE": '{"passed": true}',
    "PREPARE": lambda request: {"data": {"checks": [
        {"rule_id": rule_id, "check": {"manual": "x"}}
        for rule_id in (
            "a.correctness.accuracy", "a.quality.clarity", "b.style.consistency", "b.quality.audience",
        )
        if rule_id in request.prompt
    ]}},
}"""


@pytest.mark.thorough
def test_template_judges_without_a_rule_file(pytester: pytest.Pytester) -> None:
    write_agent(pytester, MANUAL_CHECKS)
    (pytester.path / "guide.md").write_text((ROOT / "examples/good/docs/guide.md").read_text())
    result = pytester.runpytest_subprocess(
        "--loop-task", "Mend the guide", "--loop-template", "docs", "--loop-artifact", "guide.md", *AGENT
    )
    result.stdout.fnmatch_lines(
        ["stopped after * · unconfirmed: *", "continue: pytest-loop resume --run mend-the-guide --confirm *"]
    )


def test_other_plugin_named_pytest_loop_is_refused(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a distribution with the same entry point, `loop`."""
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


@pytest.mark.thorough
def test_import_error_fails_its_rules_and_not_the_run(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_it="import notes\ndef test_value(): assert notes.VALUE == 2\n")
    (pytester.path / "notes.py").write_text("VALUE = 1\n")
    result = fix_artifact(pytester, '{"REFINE": ["VALUE = = 2\\n", "VALUE = 2\\n"]}', "notes.py")
    assert result.ret == 0, result.stdout.str() + result.stderr.str()
    result.stdout.fnmatch_lines(["*not verified: test_it.py: *SyntaxError*"])


@pytest.mark.thorough
def test_sessions_of_a_run_do_not_start_another_run(project: pytest.Pytester) -> None:
    (project.path / "pytest.ini").write_text("[pytest]\naddopts = --loop-max-iterations 3\n")
    result = run_loop(project, f'{{"PRODUCE": "{GOOD}"}}')
    assert result.ret == 0, result.stdout.str() + result.stderr.str()
    assert read_state(project)["max_iterations"] == 3


HALF_SCORE = "def pytest_loop_score(rules, verdicts):\n    return 0.5 if len(rules) == {count} else None\n"


@pytest.mark.thorough
def test_plugin_hook_computes_the_score_of_a_run(project: pytest.Pytester) -> None:
    (project.path / "scoring.py").write_text(HALF_SCORE.format(count=3))
    args = ("-p", "scoring", "--loop-max-iterations", "1", "-o", "pythonpath=.")
    result = run_loop(project, f'{{"PRODUCE": "{GOOD}"}}', *args)
    result.stdout.fnmatch_lines(["1/1  ✓ * pass in phase A*", "1/1  ✗ * pass in phase B*"])
    assert read_state(project)["last_score"] == 0.5


def test_conftest_hook_computes_the_score_of_a_session(project: pytest.Pytester) -> None:
    project.makeconftest(HALF_SCORE.format(count=3))
    (project.path / "guide.md").write_text(GOOD.replace("\\n", "\n"))
    result = project.runpytest_subprocess()
    result.stdout.fnmatch_lines(["guide  FAIL  0.5 (0.5 of 1) < 0.9 in phase B, 3 rules: 3 passed"])
    assert result.ret == 1
