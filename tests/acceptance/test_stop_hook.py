"""The Stop hook: an agent that wants to stop is judged, and always gets one JSON object."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any, NamedTuple

import pytest

from tests.pytest_caller import PytestCaller

HOOKS = Path(__file__).parents[2] / "examples" / "hooks"
FAILING = "def test_sum():\n    print('noise')\n    assert 1 + 1 == 3\n"
GUIDE = """
    rules:
      - id: a.content.title
        description: It has a title
        check: {contains: "# Guide"}
"""
# Messages as the clients send them.
MESSAGES: dict[str, dict[str, Any]] = {
    "claude": {
        "session_id": "3f1c", "transcript_path": "/home/me/.claude/t.jsonl", "cwd": "/home/me/p", "permission_mode": "acceptEdits",
        "hook_event_name": "Stop", "stop_hook_active": False, "last_assistant_message": "Done: \u201egrün\u201c",
    },
    "codex": {
        "session_id": "0199", "turn_id": "t1", "transcript_path": None, "cwd": "/home/me/p", "hook_event_name": "Stop", "model": "gpt-5",
        "permission_mode": "default", "stop_hook_active": False, "last_assistant_message": "Done.",
    },
    "qwen": {
        "session_id": "77", "cwd": "/home/me/p", "hook_event_name": "Stop", "stop_hook_active": False, "context_usage": 0.1, "input_tokens": 900,
    },
    "gemini": {
        "session_id": "g-1", "cwd": "/home/me/p", "hook_event_name": "AfterAgent", "prompt": "do", "prompt_response": "Done.", "stop_hook_active": False,
    },
    "copilot": {"sessionId": "c-1", "cwd": "/home/me/p", "transcriptPath": "/t", "stopReason": "end_turn", "stop_hook_active": False},
}  # fmt: skip


class Answer(NamedTuple):
    """The object on standard output, and the text on standard error."""

    answer: dict[str, Any]
    stderr: str

    @property
    def reason(self) -> str:
        assert self.answer.keys() == {"decision", "reason"}, self
        assert self.answer["decision"] == "block"
        return str(self.answer["reason"])

    @property
    def allow_reason(self) -> str:
        assert self.answer == {}, self
        return self.stderr.strip().splitlines()[-1].removeprefix("the agent may stop: ")


Gate = Callable[..., Answer]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def gate(project: Path, caller: PytestCaller) -> Gate:
    """Return a function that calls the hook; the answer must be one JSON object, and the exit code 0."""

    def ask(*words: str, message: Any = None, text: str | None = None, **more: Any) -> Answer:
        stdin = text if text is not None else json.dumps({"session_id": "s", **(message or {}), **more})
        done = caller.call("--loop-gate", *words, folder=project, stdin=stdin)
        assert done.returncode == 0, done
        return Answer(json.loads(done.stdout), done.stderr)

    return ask


# -- block or allow


def test_failing_rules_block_with_the_critique_and_passing_rules_allow(gate: Gate, project: Path) -> None:
    (project / "test_it.py").write_text(FAILING)
    reason = gate().reason
    assert "score 0 of 0.9, 0 of 1 rules pass" in reason
    assert "test_it.py::test_sum (fail, new)" in reason
    assert "test_it.py:3: assert (1 + 1) == 3" in reason
    (project / "test_it.py").write_text("def test_sum():\n    assert 1 + 1 == 2\n")
    assert gate().allow_reason == "the rules pass"
    assert gate("--loop-session=cold").allow_reason == "the rules pass"


def test_rules_of_ini_file_and_arguments_judge(gate: Gate, project: Path) -> None:
    (project / "test_it.py").write_text(FAILING)
    (project / "guide.rules.yaml").write_text(dedent(GUIDE))
    (project / "guide.md").write_text("# Guide\n")
    (project / "pytest.ini").write_text("[pytest]\nloop_rules = guide.rules.yaml\nloop_artifact = guide.md\n")
    assert gate().allow_reason == "the rules pass"
    assert "test_it.py::test_sum" in gate("-o", "loop_rules=", "test_it.py").reason
    (project / "guide.md").write_text("# Other\n")
    assert "a.content.title" in gate().reason


def test_edit_within_a_second_is_seen(gate: Gate, project: Path) -> None:
    code = project / "calc.py"
    code.write_text("VALUE = 1\n")
    (project / "test_calc.py").write_text("from calc import VALUE\n\ndef test_value():\n    assert VALUE == 2\n")
    assert "assert 1 == 2" in gate().reason
    stamp = code.stat().st_mtime_ns
    code.write_text("VALUE = 2\n")
    os.utime(code, ns=(stamp, stamp))
    assert gate().answer == {}


def test_module_that_cannot_be_imported_blocks(gate: Gate, project: Path) -> None:
    (project / "test_it.py").write_text("import nowhere\n")
    assert "No module named 'nowhere'" in gate().reason


def test_session_that_dies_blocks(gate: Gate, project: Path) -> None:
    (project / "test_it.py").write_text("import os\n\ndef test_end():\n    os.kill(os.getpid(), 9)\n")
    assert "the session died here (signal 9)" in gate().reason


@pytest.mark.measured
def test_unconfirmed_rule_blocks_until_it_is_confirmed(gate: Gate, project: Path) -> None:
    (project / "it.rules.yaml").write_text(
        "rules: [{id: a.look.fine, description: x, check: {manual: Does it look fine?}}]"
    )
    assert "Nobody has confirmed a.look.fine: ask the person" in gate().reason
    assert gate("--loop-confirm", "a.look.fine").allow_reason == "the rules pass"


@pytest.mark.measured
def test_question_of_a_rule_goes_to_the_judge(gate: Gate, project: Path) -> None:
    (project / "doc.md").write_text("It is short.\n")
    (project / "it.rules.yaml").write_text(
        "artifact: doc.md\nrules: [{id: a.x.y, description: x, check: {judge: Is it short?}}]"
    )
    (project / "judges.py").write_text(
        'def no(request):\n    return \'{"passed": false, "reason": "far too long", "evidence": ""}\'\n'
    )
    assert "far too long" in gate("--loop-judge", "python:judges:no").reason


@pytest.mark.measured
def test_patched_pytest_blocks(gate: Gate, project: Path) -> None:
    (project / "test_it.py").write_text(
        dedent("""
            import pytest

            class Generous:
                @pytest.hookimpl(wrapper=True)
                def pytest_runtest_makereport(self):
                    report = yield
                    report.outcome = "passed"
                    return report

            @pytest.fixture(autouse=True)
            def generous(request):
                request.config.pluginmanager.register(Generous())

            def test_sum():
                assert 1 + 1 == 3
        """)
    )
    assert "A test that must fail did not fail" in gate().reason


# -- the limit of blocks


def test_limit_of_blocks_allows_once_and_starts_over(gate: Gate, project: Path) -> None:
    (project / "test_it.py").write_text(FAILING)
    words = ("-o", "loop_gate_blocks=2")
    assert gate(*words).reason.endswith("(kept from stopping 1 of 2 times)")
    assert gate(*words, session_id="another").reason.endswith("(kept from stopping 1 of 2 times)")
    assert gate(*words, stop_hook_active=True).reason.endswith("(kept from stopping 2 of 2 times)")
    assert gate(*words, stop_hook_active=True).allow_reason == (
        "it was kept from stopping 2 times in a row: loop_gate_blocks lets go"
    )
    assert gate(*words).reason.endswith("(kept from stopping 1 of 2 times)")


def test_only_blocks_in_a_row_count(gate: Gate, project: Path) -> None:
    (project / "test_it.py").write_text(FAILING)
    assert "(kept from stopping 1 of 5 times)" in gate().reason
    (project / "test_it.py").write_text("def test_it():\n    pass\n")
    assert gate().allow_reason == "the rules pass"
    (project / "test_it.py").write_text(FAILING)
    assert "(kept from stopping 1 of 5 times)" in gate().reason


@pytest.mark.thorough
@pytest.mark.measured
def test_agent_without_a_counter_is_blocked_once(gate: Gate, project: Path) -> None:
    (project / "test_it.py").write_text(FAILING)
    assert gate(text="").reason
    assert gate(text='{"stop_hook_active": true}').allow_reason.startswith(
        "it was kept from stopping before, and has no"
    )
    shutil.rmtree(project / ".loop")
    (project / ".loop").write_text("in the way")
    assert gate().reason
    assert gate(stop_hook_active=True).allow_reason.startswith(
        "it was kept from stopping before, and that cannot be counted"
    )


# -- errors


@pytest.mark.parametrize(
    ("files", "words", "text", "reason"),
    [
        ({}, (), "{}", "there is nothing to judge (there is no loop)"),
        ({"test_it.py": FAILING}, (), "no json", "the message of the hook is not a JSON object"),
        ({"test_it.py": FAILING}, (), '"text"', "the message of the hook is not a JSON object"),
        ({"conftest.py": "1 / 0\n", "test_it.py": FAILING}, (), "{}", "the evaluation could not be carried out"),
        ({"conftest.py": "import os\nos._exit(0)\n"}, (), "{}", "the evaluation could not be carried out"),
        ({"pytest.ini": "[pytest]\nloop_gate_blocks = many\n"}, (), "{}", "loop_gate_blocks: expected a whole number"),
        ({"pytest.ini": "[pytest]\nloop_rules = none.yaml\n"}, (), "{}", "--loop-rules: expected a file or folder"),
        ({"it.rules.yaml": "rules: [{id: 3}]"}, (), "{}", "the rules cannot be read: it.rules.yaml"),
        ({"test_it.py": FAILING}, ("--loop-gats",), "{}", "unrecognized arguments: --loop-gats"),
        ({"test_it.py": FAILING}, ("--loop-list",), "{}", "expected one command, found --loop-list and --loop-gate"),
        (
            {"test_it.py": "import time\n\ndef test_long():\n    time.sleep(60)\n"},
            ("-o", "loop_gate_timeout=4"),
            "{}",
            "the rules were not judged within 4 s",
        ),
        ({"test_it.py": FAILING, ".loop/state.json": "{"}, (), "{}", ".loop/state.json: invalid state file"),
    ],
)
def test_agent_may_stop_if_nothing_can_be_judged(
    gate: Gate, project: Path, files: dict[str, str], words: tuple[str, ...], text: str, reason: str
) -> None:
    for name, content in files.items():
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text(content)
    assert gate(*words, text=text).allow_reason.startswith(reason)


def test_state_file_of_the_agent_can_block(gate: Gate, project: Path) -> None:
    state_file = project / ".loop" / "state.json"
    state_file.parent.mkdir()
    state_file.write_text('{"criteriaStatus": {"docs": false}}')
    assert gate().reason.startswith("The loop in .loop/state.json is not done: unmet: docs")
    state_file.write_text('{"criteriaStatus": {"docs": false}, "status": "completed"}')
    assert gate().allow_reason == "there is nothing to judge (the loop is completed)"
    (project / "test_it.py").write_text(FAILING)
    assert "test_it.py::test_sum" in gate().reason  # the state file alone proves nothing


def test_output_of_plugins_is_not_in_the_answer(gate: Gate, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "loud.py").write_text(
        "import atexit\n\ndef pytest_loop_critique(evaluation, critique):\n    print('loud')\n\natexit.register(print, 'late')\n"
    )
    (project / "test_it.py").write_text(FAILING)
    monkeypatch.setenv("PYTHONPATH", f"{project}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    answer = gate("-p", "loud")
    assert "test_it.py::test_sum" in answer.reason
    assert {"loud", "late"} <= set(answer.stderr.split())


@pytest.mark.measured
def test_internal_error_allows(gate: Gate, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "wrong.py").write_text("def pytest_loop_critique(evaluation, critique):\n    1 / 0\n")
    (project / "test_it.py").write_text(FAILING)
    monkeypatch.setenv("PYTHONPATH", f"{project}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    assert gate("-p", "wrong").allow_reason == "internal error: ZeroDivisionError: division by zero"


@pytest.mark.measured
def test_agent_inside_a_run_is_allowed(gate: Gate, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "test_it.py").write_text(FAILING)
    monkeypatch.setenv("PYTEST_LOOP_CALL", "abc")
    assert gate().allow_reason == "a run of pytest-loop is at work here, and judges by itself"


def test_terminated_hook_still_answers(project: Path) -> None:
    os.mkfifo(project / "fifo")
    (project / "test_it.py").write_text(
        "import time\n\ndef test_long():\n    open('fifo', 'w').close()\n    time.sleep(60)\n"
    )
    command = [sys.executable, "-m", "pytest", "--loop-gate"]
    with subprocess.Popen(
        command, cwd=project, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as gate:
        assert gate.stdin is not None
        gate.stdin.write(b'{"session_id": "s"}')  # standard input stays open
        gate.stdin.flush()
        (project / "fifo").read_bytes()
        gate.send_signal(signal.SIGTERM)
        out, err = gate.communicate(timeout=60)
    assert (gate.returncode, json.loads(out)) == (0, {})
    assert err.decode().endswith("the agent may stop: it was interrupted\n")


# -- example configurations


def _command(name: str) -> str:
    (entry,) = json.loads((HOOKS / f"{name}.json").read_text())["hooks"].values()
    hook = entry[0] if name == "copilot" else entry[0]["hooks"][0]
    assert hook["type"] == "command"
    return str(hook["bash" if name == "copilot" else "command"])


def _call_hook(name: str, project: Path) -> dict[str, Any]:
    answer = json.dumps(MESSAGES[name])
    done = subprocess.run(
        ["bash", "-c", _command(name)],
        cwd=project,
        input=answer,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return json.loads(done.stdout)  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", sorted(MESSAGES))
def test_example_hook_answers_its_client(project: Path, name: str) -> None:
    event = {"gemini": "AfterAgent", "copilot": "agentStop"}.get(name, "Stop")
    assert list(json.loads((HOOKS / f"{name}.json").read_text())["hooks"]) == [event]
    assert f"[{name}.json]({name}.json)" in (HOOKS / "README.md").read_text()
    (project / "test_it.py").write_text(FAILING)
    assert _call_hook(name, project)["decision"] == "block"


@pytest.mark.parametrize("name", sorted(MESSAGES))
def test_example_hook_answers_if_pytest_cannot_start(project: Path, name: str) -> None:
    (project / "pyproject.toml").write_text("[tool.pytest.ini_options\n")
    assert _call_hook(name, project) == {}
