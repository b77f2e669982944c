"""The command lines of child processes are made from the table of options."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_loop.settings.command_line import (
    build_resume_arguments,
    build_session_arguments,
    build_worktree_arguments,
    describe_unknown_flag,
    replace_task,
)


def test_session_arguments_leave_out_selection_by_earlier_results() -> None:
    words = ["--lf", "tests", "--ff", "--stepwise", "--lfnf=none", "-x"]
    assert build_session_arguments(words) == ("tests", "-x")


def test_session_arguments_leave_out_flags_of_the_run() -> None:
    words = ["-q", "--loop-task", "--loop-yes", "tests", "--loop-agent=x", "-k", "a", "--loop-yes"]
    assert build_session_arguments(words) == ("-q", "tests", "-k", "a")


def test_session_arguments_keep_settings_of_the_workload() -> None:
    words = ["--loop-workload", "case_timeout 5", "--loop-yes"]
    assert build_session_arguments(words) == ("--loop-workload", "case_timeout 5")


def test_session_arguments_leave_out_paths_that_do_not_judge() -> None:
    assert build_session_arguments(["-q", "tests", "other"], ["tests"]) == ("-q", "other")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--loop-task x -n2 --loop-detach", "-n2"),
        ("--loop-task=x --loop-alias y tests", "tests"),
        ("--loop-task=x --loop-id y --loop-id=z tests", "tests"),
        ("--loop-resume tests --loop-detach", ""),
        ("--loop-resume --loop-detach -q", "-q"),
        ("--loop-resume=x --loop-max-iterations 9", "--loop-max-iterations 9"),
        ("--loop-json - --loop-json=- --loop-yes", "--loop-yes"),
        ("--loop-json out.json --loop-json=b.json", "--loop-json out.json --loop-json=b.json"),
    ],
)
def test_resume_arguments_leave_out_flags_that_started_the_run(words: str, expected: str) -> None:
    assert list(build_resume_arguments(words.split())) == expected.split()


def test_resume_arguments_keep_flags_that_the_caller_needs() -> None:
    words = ("--loop-resume=x", "--loop-detach", "--loop-json", "-")
    assert build_resume_arguments(words, keep=("--loop-detach", "--loop-json")) == words[1:]


def test_another_task_takes_the_place_of_the_first() -> None:
    words = ("-q", "--loop-task", "fix lint", "--loop-yes")
    assert replace_task(words, "fix it") == ("-q", "--loop-task", "fix it", "--loop-yes")
    assert replace_task(("--loop-task=x",), "fix it") == ("--loop-task", "fix it")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--loop-worktree -q tests", "-q tests"),
        ("--loop-json out.json --loop-json=-", "--loop-json=/p/sub/out.json --loop-json=-"),
        ("/p/tests -c /p/x.ini --rootdir=/p/sub /pq", "/t/tests -c /t/x.ini --rootdir=/t/sub /pq"),
    ],
)
def test_worktree_arguments_name_files_of_the_worktree(words: str, expected: str) -> None:
    arguments = build_worktree_arguments(words.split(), Path("/p"), Path("/t"), Path("/p/sub"))
    assert list(arguments) == expected.split()


def test_unknown_flag_is_answered_with_similar_flags() -> None:
    message = describe_unknown_flag(["tests", "--loop-tsk=x"])
    assert message is not None
    assert message.startswith("unrecognized arguments: --loop-tsk=x (did you mean --loop-task")
    assert describe_unknown_flag(["--loop-task=x", "-q"]) is None
    certain = "unrecognized arguments: --loop-tsk=x (did you mean --loop-task?)"
    assert describe_unknown_flag(["--loop-tsk=x"], is_run=False) == certain
    assert describe_unknown_flag(["--loop-count=3"], is_run=False) is None
