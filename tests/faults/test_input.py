"""What a person may write on the command line: each row gets a clear message and the right exit code."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_loop.store.project_runs import Store
from pytest_loop.store.run_names import make_alias
from tests.calling import Caller

RULES = "artifact: doc.md\nrules: [{id: a.x.green, description: It is green, check: {contains: green}}]\n"
AGENT = "from pytest_loop import ScriptedAgent\nagent = ScriptedAgent({'PRODUCE': lambda r: 'green\\n' + r.prompt})\n"
Refused = Callable[..., str]
Loop = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(autouse=True)
def project(pytester: pytest.Pytester) -> Path:
    (pytester.path / "it.rules.yaml").write_text(RULES)
    (pytester.path / "agents.py").write_text(AGENT)
    return pytester.path


@pytest.fixture
def refused(pytester: pytest.Pytester) -> Refused:
    """Runs pytest in this process, where bad usage is the exit code 4; gives what it said."""

    def run(*words: str) -> str:
        result = pytester.runpytest_inprocess(*words)
        said = result.stdout.str() + result.stderr.str()
        assert result.ret == pytest.ExitCode.USAGE_ERROR, said
        assert "Traceback" not in said
        assert "INTERNALERROR" not in said
        assert not (pytester.path / ".loop").exists()
        return "\n".join(line for line in result.stderr.lines if "error:" in line.lower()) or said

    return run


@pytest.fixture
def loop(project: Path, caller: Caller) -> Loop:
    """A run from the command line, in a process of its own."""

    def run(
        *words: str, stdin: str | None = None, agent: str = "python:agents:agent"
    ) -> subprocess.CompletedProcess[str]:
        rules = ("--loop-rules", "it.rules.yaml", "--loop-agent", agent)
        return caller.call("-q", *rules, *words, folder=project, said=stdin or "")

    return run


def state(project: Path) -> dict[str, Any]:
    path = next((project / ".loop").glob("*/run.json"))
    return json.loads(path.read_text(encoding="utf-8"))  # type: ignore[no-any-return]


# -- the task


@pytest.mark.parametrize("task", ["", "   ", "\n\t"])
def test_an_empty_task_is_refused(refused: Refused, task: str) -> None:
    assert "--loop-task: expected what to do, found an empty text" in refused("--loop-task", task)


def test_a_task_of_a_megabyte_is_refused(refused: Refused, project: Path) -> None:
    (project / "task.txt").write_text("x" * 1_000_000)
    assert "--loop-task: expected at most 200,000 characters, found 1,000,000" in refused("--loop-task=@task.txt")


def test_a_file_that_is_no_task_is_refused(refused: Refused, project: Path) -> None:
    (project / "binary").write_bytes(b"\xff\xfe")
    assert "--loop-task: cannot read @none: No such file or directory" in refused("--loop-task=@none")
    assert "--loop-task: cannot read @.: Is a directory" in refused("--loop-task=@.")
    assert "--loop-task: cannot read @binary" in refused("--loop-task=@binary")


STRANGE = "First line\n\nWrite $task ${x} {y} {artifact} %s %(z)s $$ `ls` \u202egnorw\u202c \0 \\n 'q' \"q\""


def test_strange_characters_reach_the_agent_as_they_are(loop: Loop, project: Path) -> None:
    """Template characters are words; NUL cannot be part of a text, and is left out."""
    (project / "task.txt").write_text(STRANGE, encoding="utf-8")
    done = loop("--loop-task", "@task.txt", "--loop-yes", "--loop-artifact", "doc.md")
    assert done.returncode == 0, done.stdout + done.stderr
    wanted = STRANGE.replace("\0", "")
    assert wanted in (project / "doc.md").read_text(encoding="utf-8")
    assert state(project)["task"]["prompt"] == wanted
    assert "\u202e" not in done.stdout
    assert state(project)["task_alias"] == make_alias(wanted)


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
def test_every_task_has_a_name_that_is_a_plain_folder(tmp_path: Path, task: str, alias: str) -> None:
    assert make_alias(task) == alias
    assert Store(tmp_path).get_run(make_alias(task)).folder.parent == tmp_path / ".loop"


# -- limits

TASK = ("--loop-task", "Do it")
WHOLE = "expected a whole number >= 1, found"
LIMITS = [
    *[(f"--loop-max-iterations={value}", WHOLE) for value in ("0", "-1", "nan", "inf", "1e99", "1.5", "four", "")],
    *[
        (f"--loop-budget={value}", "expected a number > 0, found")
        for value in ("0", "-5", "nan", "inf", "1e300", "free")
    ],
    *[(f"--loop-max-tokens={value}", WHOLE) for value in ("0", "-1", "nan")],
    *[(f"--loop-max-seconds={value}", WHOLE) for value in ("0", "-1", "inf")],
    *[(f"--loop-agent-timeout={value}", "expected a number > 0, found") for value in ("0", "-1", "nan")],
    ("--loop-threshold=A=2", "expected a number from 0 to 1, found '2'"),
    ("--loop-threshold=A=nan", "expected a number from 0 to 1, found 'nan'"),
    ("--loop-threshold=0.5", "expected A=0.8,B=0.9, found '0.5'"),
    ("--loop-threshold=C=0.5", "expected A=0.8,B=0.9, found 'C=0.5'"),
]


@pytest.mark.parametrize(("option", "message"), LIMITS, ids=[option for option, _ in LIMITS])
def test_a_limit_that_is_none_is_refused(refused: Refused, option: str, message: str) -> None:
    said = refused(*TASK, option)
    assert message in said
    assert option.partition("=")[0] in said


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("loop_max_iterations = 0", "loop_max_iterations: expected a whole number >= 1, found '0'"),
        ("loop_budget = nan", "loop_budget: expected a number > 0, found 'nan'"),
        ("loop_stuck = -1", "loop_stuck: expected a whole number >= 0, found '-1'"),
        ("loop_min_gain = 2", "loop_min_gain: expected a number from 0 to 1, found '2'"),
        ("loop_agent_silence = never", "loop_agent_silence: expected a number > 0, found 'never'"),
    ],
)
def test_a_limit_of_the_ini_file_that_is_none_is_refused(
    refused: Refused, pytester: pytest.Pytester, line: str, message: str
) -> None:
    pytester.makeini(f"[pytest]\n{line}")
    assert message in refused(*TASK)


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
def test_an_option_that_is_nearly_one_of_ours_is_refused(refused: Refused, option: str, near: str) -> None:
    assert f"unrecognized arguments: {option} (did you mean {near}" in refused(*TASK, option)


def test_two_commands_at_once_are_refused(refused: Refused) -> None:
    assert "expected one command, found --loop-status and --loop-list" in refused("--loop-status", "--loop-list")


# -- paths


@pytest.mark.parametrize(
    "alias", ["../x", "/etc", "a/b", "A B", "x", ".", "..", "ä" * 5, "x" * 65, "-abc", "a\nb", "all"]
)
def test_a_name_that_is_no_plain_folder_is_refused(refused: Refused, alias: str) -> None:
    said = refused(
        *TASK, f"--loop-alias={alias}", "--loop-rules", "it.rules.yaml", "--loop-agent", "python:agents:agent"
    )
    assert f"found {alias!r}" in said


@pytest.mark.parametrize("alias", ["../x", "none", "/etc/passwd"])
@pytest.mark.parametrize("command", ["--loop-status", "--loop-history", "--loop-resume", "--loop-clean"])
def test_a_run_that_is_not_there_is_said(refused: Refused, command: str, alias: str) -> None:
    assert repr(alias) in refused(f"{command}={alias}")


@pytest.mark.parametrize("path", ["../out.md", "/no/such/folder/out.md", "/etc/passwd", "away/out.md"])
def test_an_artifact_outside_of_the_project_is_refused(refused: Refused, project: Path, path: str) -> None:
    (project / "away").symlink_to("/tmp")
    said = refused(*TASK, "--loop-artifact", path, "--loop-rules", "it.rules.yaml")
    assert f"--loop-artifact: expected a path inside {project}, found {path!r}" in said


def test_rules_that_are_not_there_are_refused(refused: Refused) -> None:
    assert "--loop-rules: expected a file or folder, found 'none.rules.yaml'" in refused(
        *TASK, "--loop-rules", "none.rules.yaml"
    )


def test_a_rule_file_that_reads_outside_of_the_project_is_refused(refused: Refused, project: Path) -> None:
    (project / "away.rules.yaml").write_text(RULES.replace("doc.md", "../../etc/passwd"))
    said = refused(*TASK, "--loop-rules", "away.rules.yaml", "--loop-yes")
    assert "the rules cannot be collected" in said


def test_a_template_that_is_not_there_is_refused_with_those_that_are(refused: Refused) -> None:
    said = refused(*TASK, "--loop-template", "poetry")
    assert "--loop-template: expected one of api-spec, code, config, docs, found 'poetry'" in said


def test_paths_in_our_options_do_not_move_the_project(loop: Loop, project: Path) -> None:
    """pytest takes every word for a path that it does not know yet; half a character in a task does no harm either."""
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
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--loop-task", b"Mend \xff it", *words, "--loop-yes"],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert state(project)["artifact"] == "docs/doc.md"
    assert state(project)["task"]["prompt"] == "Mend ? it"


# -- agents


@pytest.mark.parametrize(
    ("agent", "message"),
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
def test_an_agent_that_is_none_is_refused_before_anything_is_written(
    refused: Refused, option: str, agent: str, message: str
) -> None:
    said = refused(*TASK, option, agent, "--loop-rules", "it.rules.yaml", "--loop-yes")
    assert said.startswith(f"ERROR: {option}: ")
    assert message in said


def test_prompts_of_ones_own_are_looked_at_before_anything_is_written(
    refused: Refused, pytester: pytest.Pytester
) -> None:
    pytester.makeini("[pytest]\nloop_prompts = mine")
    assert "loop_prompts: expected a folder with templates such as refine.md, found none" in refused(*TASK)
    (pytester.path / "mine").mkdir()
    (pytester.path / "mine/refine.md").write_text("Mend $documnt")
    assert "mine/refine.md: expected only $artifact, " in refused(*TASK)


def test_a_recording_that_cannot_be_written_is_refused(pytester: pytest.Pytester) -> None:
    words = ("--loop-agent", "python:agents:agent", "--loop-record", "none/x", "--loop-rules", "it.rules.yaml")
    result = pytester.runpytest_inprocess(*TASK, *words, "--loop-yes", "-q")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: *--loop-record: cannot write *none/x: No such file or directory"])


# -- nothing to judge, nobody to confirm


def test_a_file_without_rules_is_refused(loop: Loop, project: Path) -> None:
    (project / "it.rules.yaml").write_text("rules: []\n")
    done = loop(*TASK, "--loop-yes")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "it.rules.yaml:1: expected at least one rule in `rules`, found none" in done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert not (project / ".loop").exists()


def test_off_a_terminal_nothing_is_written_and_the_command_is_told(refused: Refused) -> None:
    words = ("--loop-task", "Do it's best", "--loop-rules", "it.rules.yaml", "--loop-agent", "python:agents:agent")
    said = refused(*words)
    assert (
        "nobody is here to confirm this: start it with pytest --loop-task 'Do it'\"'\"'s best' "
        "--loop-rules it.rules.yaml --loop-agent python:agents:agent --loop-yes"
    ) in said
