"""Sessions in their own process: what starts, what is recorded, and which endings are errors."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_loop.core.model.rules import Evidence, Outcome
from pytest_loop.core.model.session_order import SessionOrder
from pytest_loop.processes import child
from pytest_loop.processes.fence import Fence
from pytest_loop.session.result import SessionResult
from pytest_loop.session.runner import (
    SESSION_VARIABLE,
    LauncherDiedError,
    SessionError,
    SessionStoppedError,
    SubprocessSession,
    _replace_missing_settings,
)

PLAN = '{"plan": {"items": {"test_it.py::test_it": ["tests::test_it"]}}}'
PASSED = '{"evidence": [["test_it.py::test_it", {"outcome": "passed"}]]}'
FAILED = '{"evidence": [["test_it.py::test_it", {"outcome": "failed"}]]}'


class ScriptLauncher:
    """Start a script instead of pytest; it gets the pipe of the session as `send(line)`."""

    def __init__(self, script: str, *, dies: bool = False) -> None:
        self.script = script
        self.dies = dies
        self.recoveries = 0

    def has_loaded_pytest(self, fence: Fence | None) -> bool:
        return False

    def start(self, command: child.Command, mark: str) -> child.Child:
        if self.dies:
            raise LauncherDiedError("it died")
        descriptor, key_end, _ = (command.env or {})[SESSION_VARIABLE].split(" ", 2)
        prefix = f"""
import itertools, os, sys, time
from pytest_loop.session.channel import compute_signature
key, numbers = os.read({key_end}, 64), itertools.count(1)
def write(line): os.write({descriptor}, (line + chr(10)).encode())
def send(line): write(compute_signature(key, next(numbers), line.encode()).decode() + ' ' + line)
"""
        words = [sys.executable, "-c", prefix + self.script]
        script_command = child.Command(words, command.cwd, command.timeout, env=command.env, pass_fds=command.pass_fds)
        return child.start_process(script_command, mark)

    def recover(self) -> None:
        self.recoveries += 1

    def close(self) -> None:
        """Do nothing."""


Run = Callable[..., SessionResult]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Return a function that runs a script as a session."""

    def run(script: str, *, timeout: float = 60.0, should_continue: Callable[[], bool] = lambda: True) -> SessionResult:
        launcher = ScriptLauncher(script)
        session = SubprocessSession(
            (), tmp_path, timeout, os.environ, lambda _data: None, should_continue, launcher=launcher
        )
        return session.evaluate(SessionOrder())

    return run


def test_messages_of_the_session_become_its_result(run: Run) -> None:
    messages = (PLAN, '{"start": "test_it.py::test_it"}', PASSED, '{"canary": true}', '{"plugins": ["b", "a"]}')
    result = run("".join(f"send('{message}')\n" for message in (*messages, '{"end": [0, 0]}')) + "print('done')")
    assert result.evidence["test_it.py::test_it"].outcome is Outcome.PASSED
    assert (result.canaries, result.plugins) == ([True], frozenset({"a", "b"}))
    assert (result.exit_status, result.ending, result.output.strip()) == (0, "exit code 0", "done")


def test_lines_that_are_no_messages_are_contradictions(run: Run) -> None:
    result = run(
        f"""send('not json'); send('[]'); send('{{"evidence": 3}}'); send('{PLAN}'); send('{PASSED}');"""
        """send('{"end": [0, 0]}')"""
    )
    assert list(result.evidence) == ["test_it.py::test_it"]
    assert result.list_contradictions() == ["it sent something that is not a message"]


FAILED = PASSED.replace("passed", "failed")


@pytest.mark.parametrize("change", ["lines[1:]", "lines * 2", "lines[::-1]", "[lines[0].replace('failed', 'passed')]"])
def test_changed_messages_are_contradictions(run: Run, change: str) -> None:
    result = run(
        f"""
send('{PLAN}')
lines, genuine_write = [], write
write = lines.append
send('{FAILED}'); send('{{"end": [1, 1]}}')
for line in {change}: genuine_write(line)
"""
    )
    assert "it sent something that is not a message" in result.list_contradictions()
    assert all(evidence.outcome is not Outcome.PASSED for evidence in result.evidence.values())


def test_message_without_the_key_of_the_session_is_a_contradiction(run: Run) -> None:
    result = run(f"""send('{PLAN}'); write('{PASSED}'); write('0 {PASSED}'); send('{{"end": [0, 0]}}')""")
    assert not result.evidence
    assert result.list_contradictions() == ["it sent something that is not a message"]


def test_pass_never_replaces_a_failure(run: Run) -> None:
    result = run(f"""send('{PLAN}'); send('{FAILED}'); send('{PASSED}'); send('{{"end": [1, 1]}}')""")
    assert result.evidence["test_it.py::test_it"].outcome is Outcome.FAILED
    assert result.list_contradictions() == []


@pytest.mark.parametrize(
    ("messages", "contradiction"),
    [
        ((PLAN, PLAN, PASSED, '{"end": [0, 0]}'), "it reported two plans"),
        ((PLAN, '{"end": [0, 0]}', PASSED), "it reported something after its end"),
        ((PLAN, PASSED), "every test passed, and the session did not come to its end"),
        ((PLAN, PASSED, '{"end": [1, 1]}'), "pytest counted failures, and none was reported"),
    ],
)
def test_messages_that_an_undisturbed_session_never_sends_are_contradictions(
    run: Run, messages: tuple[str, ...], contradiction: str
) -> None:
    assert run("".join(f"send('{message}')\n" for message in messages)).list_contradictions() == [contradiction]


def test_an_item_without_a_report_is_missing(run: Run) -> None:
    result = run(f"""send('{PLAN}'); send('{{"start": "test_it.py::test_it"}}'); os.kill(os.getpid(), 9)""")
    [evidence] = result.group_by_rule()["tests::test_it"]
    assert evidence.outcome is Outcome.MISSING
    assert evidence.text == "not verified: the session died here (signal 9)"


@pytest.mark.parametrize(
    "script",
    [
        pytest.param("print('broken')", id="without a plan"),
        pytest.param(f"""send('{PLAN}'); send('{{"end": [2, 0]}}'); print('broken')""", id="interrupted"),
        pytest.param(f"""send('{PLAN}'); send('{{"end": [3, 0]}}'); print('broken')""", id="internal error"),
        pytest.param(f"""send('{PLAN}'); send('{{"end": [4, 0]}}'); print('broken')""", id="usage error"),
    ],
)
def test_a_session_that_judged_nothing_is_an_error(run: Run, script: str) -> None:
    with pytest.raises(SessionError, match=r"could not be carried out \(exit code 0\): broken"):
        run(script)


def test_a_session_that_stopped_at_a_failure_has_judged(run: Run) -> None:
    result = run(f"""send('{PLAN}'); send('{FAILED}'); send('{{"end": [2, 0]}}')""")
    assert result.has_failures


def test_a_session_ends_at_its_deadline(run: Run) -> None:
    result = run(f"send('{PLAN}'); time.sleep(60)", timeout=1.0)
    assert result.ending == "at its deadline"


def test_a_session_that_is_not_wanted_any_more_is_stopped(run: Run) -> None:
    with pytest.raises(SessionStoppedError, match="stopped on request"):
        run("time.sleep(60)", should_continue=lambda: False)


def test_a_cold_session_replaces_a_launcher_that_died(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("def test_it(): pass\n")
    launcher = ScriptLauncher("", dies=True)
    session = SubprocessSession(("-q",), tmp_path, 60.0, os.environ, lambda _data: None, launcher=launcher)
    assert session.evaluate(SessionOrder()).exit_status == 0
    assert launcher.recoveries == 1


def test_a_session_that_stops_early_keeps_earlier_evidence_of_other_items(tmp_path: Path) -> None:
    plan = '{"plan": {"items": {"a": ["a"], "b": ["b"]}}}'
    script = f"""send('{plan}'); send('{{"evidence": [["a", {{"outcome": "failed"}}]]}}')"""
    session = SubprocessSession((), tmp_path, 60.0, os.environ, lambda _data: None, launcher=ScriptLauncher(script))
    session.history.add({"b": Evidence(outcome=Outcome.PASSED, seconds=1.0)})
    result = session.evaluate(SessionOrder(can_stop_early=True))
    assert {nodeid: evidence.outcome for nodeid, evidence in result.evidence.items()} == {
        "a": Outcome.FAILED,
        "b": Outcome.PASSED,
    }


def test_settings_that_moved_to_another_file_are_found(tmp_path: Path) -> None:
    arguments = ("--rootdir", str(tmp_path), "-c", str(tmp_path / "setup.cfg"), "-q")
    assert _replace_missing_settings(("-q",)) == ("-q",)
    assert _replace_missing_settings(arguments)[3] == os.devnull
    (tmp_path / "pyproject.toml").touch()
    assert _replace_missing_settings(arguments)[3:] == (str(tmp_path / "pyproject.toml"), "-q")
    (tmp_path / "setup.cfg").touch()
    assert _replace_missing_settings(arguments) == arguments
