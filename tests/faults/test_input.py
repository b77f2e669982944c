"""Invalid input on the command line gets a clear message and the right exit code."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_loop.store.project_runs import Store, make_alias
from tests.pytest_caller import PytestCaller

RULES = "artifact: doc.md\nrules: [{id: a.x.green, description: It is green, check: {contains: green}}]\n"
AGENT = "from pytest_loop import ScriptedAgent\nagent = ScriptedAgent({'PRODUCE': lambda r: 'green\\n' + r.prompt})\n"
ExpectRefusal = Callable[..., str]
Loop = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(autouse=True)
def project(pytester: pytest.Pytester) -> Path:
    (pytester.path / "it.rules.yaml").write_text(RULES)
    (pytester.path / "agents.py").write_text(AGENT)
    return pytester.path


@pytest.fixture
def expect_refusal(pytester: pytest.Pytester) -> ExpectRefusal:
    """A function that runs pytest in this process, expects a usage error, and returns the message."""

    def call(*words: str) -> str:
        result = pytester.runpytest_inprocess(*words)
        output = result.stdout.str() + result.stderr.str()
        assert result.ret == pytest.ExitCode.USAGE_ERROR, output
        assert "Traceback" not in output
        assert "INTERNALERROR" not in output
        assert not (pytester.path / ".loop").exists()
        return "\n".join(line for line in result.stderr.lines if "error:" in line.lower()) or output

    return call


@pytest.fixture
def run_loop(project: Path, caller: PytestCaller) -> Loop:
    """A function that starts a run from the command line in another process."""

    def call(
        *words: str, stdin: str | None = None, agent: str = "python:agents:agent"
    ) -> subprocess.CompletedProcess[str]:
        rules = ("--loop-rules", "it.rules.yaml", "--loop-agent", agent)
        return caller.call("-q", *rules, *words, folder=project, stdin=stdin or "")

    return call


def read_state(project: Path) -> dict[str, Any]:
    path = next((project / ".loop").glob("*/run.json"))
    return json.loads(path.read_text(encoding="utf-8"))  # type: ignore[no-any-return]


# -- the task


@pytest.mark.parametrize("task", ["", "   ", "\n\t"])
def test_empty_task_is_refused(expect_refusal: ExpectRefusal, task: str) -> None:
    assert "--loop-task: expected what to do, found an empty text" in expect_refusal("--loop-task", task)


def test_task_of_a_megabyte_is_refused(expect_refusal: ExpectRefusal, project: Path) -> None:
    (project / "task.txt").write_text("x" * 1_000_000)
    assert "--loop-task: expected at most 200,000 characters, found 1,000,000" in expect_refusal(
        "--loop-task=@task.txt"
    )


def test_file_that_is_no_task_is_refused(expect_refusal: ExpectRefusal, project: Path) -> None:
    (project / "binary").write_bytes(b"\xff\xfe")
    assert "--loop-task: cannot read @none: No such file or directory" in expect_refusal("--loop-task=@none")
    assert "--loop-task: cannot read @.: Is a directory" in expect_refusal("--loop-task=@.")
    assert "--loop-task: cannot read @binary" in expect_refusal("--loop-task=@binary")


STRANGE = "First line\n\nWrite $task ${x} {y} {artifact} %s %(z)s $$ `ls` \u202egnorw\u202c \0 \\n 'q' \"q\""


def test_strange_characters_reach_the_agent_unchanged(run_loop: Loop, project: Path) -> None:
    """Template characters stay; NUL cannot be part of a text, and is left out."""
    (project / "task.txt").write_text(STRANGE, encoding="utf-8")
    process = run_loop("--loop-task", "@task.txt", "--loop-yes", "--loop-artifact", "doc.md")
    assert process.returncode == 0, process.stdout + process.stderr
    expected = STRANGE.replace("\0", "")
    assert expected in (project / "doc.md").read_text(encoding="utf-8")
    assert read_state(project)["task"]["prompt"] == expected
    assert "\u202e" not in process.stdout
    assert read_state(project)["task_alias"] == make_alias(expected)


@pytest.mark.parametrize(
    ("task", "alias"),
    [
        ("Fix all TypeScript errors!", "fix-all-typescript-errors"),
        ("../../etc/passwd", "etc-passwd"),
        ("Привет", "task"),
        ("a", "task-a"),
        ("x" * 500, "x" * 40),
        ("--- ", "task"),
    ],
)
def test_every_task_gives_a_valid_alias(tmp_path: Path, task: str, alias: str) -> None:
    assert make_alias(task) == alias
    assert Store(tmp_path).get_run(make_alias(task)).folder.parent == tmp_path / ".loop"


# -- limits

TASK = ("--loop-task", "Do it")
WHOLE_NUMBER = "expected a whole number >= 1, found"
LIMITS = [
    *[
        (f"--loop-max-iterations={value}", WHOLE_NUMBER)
        for value in ("0", "-1", "nan", "inf", "1e99", "1.5", "four", "")
    ],
    *[
        (f"--loop-budget={value}", "expected a number > 0, found")
        for value in ("0", "-5", "nan", "inf", "1e300", "free")
    ],
    *[(f"--loop-max-tokens={value}", WHOLE_NUMBER) for value in ("0", "-1", "nan")],
    *[(f"--loop-max-seconds={value}", WHOLE_NUMBER) for value in ("0", "-1", "inf")],
    *[(f"--loop-agent-timeout={value}", "expected a number > 0, found") for value in ("0", "-1", "nan")],
    ("--loop-threshold=A=2", "expected a number from 0 to 1, found '2'"),
    ("--loop-threshold=A=nan", "expected a number from 0 to 1, found 'nan'"),
    ("--loop-threshold=0.5", "expected A=0.8,B=0.9, found '0.5'"),
    ("--loop-threshold=C=0.5", "expected A=0.8,B=0.9, found 'C=0.5'"),
]


@pytest.mark.parametrize(("option", "expected"), LIMITS, ids=[option for option, _ in LIMITS])
def test_invalid_limit_is_refused(expect_refusal: ExpectRefusal, option: str, expected: str) -> None:
    message = expect_refusal(*TASK, option)
    assert expected in message
    assert option.partition("=")[0] in message


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("loop_max_iterations = 0", "loop_max_iterations: expected a whole number >= 1, found '0'"),
        ("loop_budget = nan", "loop_budget: expected a number > 0, found 'nan'"),
        ("loop_stop_when = stuck -1", "loop_stop_when: stuck: expected a whole number >= 0, found '-1'"),
        ("loop_min_gain = 2", "loop_min_gain: expected a number from 0 to 1, found '2'"),
        ("loop_agent_silence = never", "loop_agent_silence: expected a number > 0, found 'never'"),
    ],
)
def test_invalid_limit_of_the_ini_file_is_refused(
    expect_refusal: ExpectRefusal, pytester: pytest.Pytester, line: str, message: str
) -> None:
    pytester.makeini(f"[pytest]\n{line}")
    assert message in expect_refusal(*TASK)


# -- options


@pytest.mark.parametrize(
    ("option", "near"),
    [
        ("--loop-tasks=x", "--loop-task"),
        ("--loop-max-iteration=3", "--loop-max-iterations"),
        ("--loop-budgets", "--loop-budget"),
        ("--looptask=x", "--loop-task"),
    ],
)
def test_misspelt_option_is_refused_with_a_suggestion(expect_refusal: ExpectRefusal, option: str, near: str) -> None:
    assert f"unrecognized arguments: {option} (did you mean {near}" in expect_refusal(*TASK, option)


def test_two_commands_at_once_are_refused(expect_refusal: ExpectRefusal) -> None:
    assert "expected one command, found --loop-status and --loop-list" in expect_refusal("--loop-status", "--loop-list")


# -- paths


@pytest.mark.parametrize(
    "alias", ["../x", "/etc", "a/b", "A B", "x", ".", "..", "ä" * 5, "x" * 65, "-abc", "a\nb", "all"]
)
def test_invalid_alias_is_refused(expect_refusal: ExpectRefusal, alias: str) -> None:
    message = expect_refusal(
        *TASK, f"--loop-alias={alias}", "--loop-rules", "it.rules.yaml", "--loop-agent", "python:agents:agent"
    )
    assert f"found {alias!r}" in message


@pytest.mark.parametrize("alias", ["../x", "none", "/etc/passwd"])
@pytest.mark.parametrize("command", ["--loop-status", "--loop-history", "--loop-resume", "--loop-clean"])
def test_missing_run_is_refused(expect_refusal: ExpectRefusal, command: str, alias: str) -> None:
    assert repr(alias) in expect_refusal(f"{command}={alias}")


@pytest.mark.parametrize("path", ["../out.md", "/no/such/folder/out.md", "/etc/passwd", "away/out.md"])
def test_artifact_outside_of_the_project_is_refused(expect_refusal: ExpectRefusal, project: Path, path: str) -> None:
    (project / "away").symlink_to("/tmp")
    message = expect_refusal(*TASK, "--loop-artifact", path, "--loop-rules", "it.rules.yaml")
    assert f"--loop-artifact: expected a path inside {project}, found {path!r}" in message


def test_missing_rule_file_is_refused(expect_refusal: ExpectRefusal) -> None:
    assert "--loop-rules: expected a file or folder, found 'none.rules.yaml'" in expect_refusal(
        *TASK, "--loop-rules", "none.rules.yaml"
    )


def test_rule_file_with_an_artifact_outside_of_the_project_is_refused(
    expect_refusal: ExpectRefusal, project: Path
) -> None:
    (project / "away.rules.yaml").write_text(RULES.replace("doc.md", "../../etc/passwd"))
    message = expect_refusal(*TASK, "--loop-rules", "away.rules.yaml", "--loop-yes")
    assert "the rules cannot be collected" in message


def test_unknown_template_is_refused_with_the_existing_ones(expect_refusal: ExpectRefusal) -> None:
    message = expect_refusal(*TASK, "--loop-template", "poetry")
    assert "--loop-template: expected one of api-spec, code, config, docs, found 'poetry'" in message


def test_paths_in_our_options_do_not_move_the_project(run_loop: Loop, project: Path) -> None:
    """pytest takes unknown words for paths; half a character in a task does no harm either."""
    for name in ("rules", "docs"):
        (project / name).mkdir()
    (project / "it.rules.yaml").rename(project / "rules/it.rules.yaml")
    (project / "docs/doc.md").write_text("red")
    (project / "agents.py").write_text(AGENT.replace("PRODUCE", "REFINE"))
    words = (
        "--loop-rules",
        "rules/it.rules.yaml",
        "--loop-artifact",
        "docs/doc.md",
        "--loop-agent",
        "python:agents:agent",
    )
    process = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--loop-task", b"Mend \xff it", *words, "--loop-yes"],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stdout + process.stderr
    assert read_state(project)["setup"]["artifact"] == "docs/doc.md"
    assert read_state(project)["task"]["prompt"] == "Mend ? it"


# -- agents


@pytest.mark.parametrize(
    ("agent", "expected"),
    [
        (
            "gpt",
            "expected command:WORDS, acp:WORDS, python:module:callable, replay:FILE, builtin, builtin:SECONDS or one of aider, ",
        ),
        ("comand:cat", "for an agent, found 'comand:cat'"),
        ("command:", "expected a command after `command:`, found nothing"),
        ("command:no-such-program", "cannot run 'no-such-program': no such command is installed here"),
        ("command:./it.rules.yaml", "cannot run './it.rules.yaml': Permission denied (make it executable)"),
        ("python:agents", "expected python:module:callable, found 'python:agents'"),
        ("replay:none.jsonl", "No such file or directory"),
        ("replay:it.rules.yaml", "it.rules.yaml is not a recording made by --loop-record"),
    ],
)
@pytest.mark.parametrize("option", ["--loop-agent", "--loop-judge"])
def test_invalid_agent_is_refused_before_anything_is_written(
    expect_refusal: ExpectRefusal, option: str, agent: str, expected: str
) -> None:
    message = expect_refusal(*TASK, option, agent, "--loop-rules", "it.rules.yaml", "--loop-yes")
    assert message.startswith(f"ERROR: {option}: ")
    assert expected in message


def test_invalid_prompts_are_refused_before_anything_is_written(
    expect_refusal: ExpectRefusal, pytester: pytest.Pytester
) -> None:
    pytester.makeini("[pytest]\nloop_feedback = prompts mine")
    assert "prompts in loop_feedback: expected a folder with templates such as refine.md, found none" in expect_refusal(
        *TASK
    )
    (pytester.path / "mine").mkdir()
    (pytester.path / "mine/refine.md").write_text("Mend $documnt")
    assert "mine/refine.md: expected only $answers, $artifact, " in expect_refusal(*TASK)


def test_recording_that_cannot_be_written_is_refused(pytester: pytest.Pytester) -> None:
    words = ("--loop-agent", "python:agents:agent", "--loop-record", "none/x", "--loop-rules", "it.rules.yaml")
    result = pytester.runpytest_inprocess(*TASK, *words, "--loop-yes", "-q")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: *--loop-record: cannot write *none/x: No such file or directory"])


# -- no rules, no confirmation


def test_file_without_rules_is_refused(run_loop: Loop, project: Path) -> None:
    (project / "it.rules.yaml").write_text("rules: []\n")
    process = run_loop(*TASK, "--loop-yes")
    assert process.returncode == pytest.ExitCode.USAGE_ERROR
    assert "it.rules.yaml:1: expected at least one rule in `rules`, found none" in process.stderr
    assert "Traceback" not in process.stdout + process.stderr
    assert not (project / ".loop").exists()


def test_without_a_terminal_nothing_is_written_and_the_command_is_printed(expect_refusal: ExpectRefusal) -> None:
    words = ("--loop-task", "Do it's best", "--loop-rules", "it.rules.yaml", "--loop-agent", "python:agents:agent")
    message = expect_refusal(*words)
    assert (
        "there is no terminal to confirm this at: type pytest --loop-task 'Do it'\"'\"'s best' "
        "--loop-rules it.rules.yaml --loop-agent python:agents:agent --loop-yes"
    ) in message
