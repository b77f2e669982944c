from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_loop.errors import CheckError
from pytest_loop.rules.checks.check import Context, run_check
from pytest_loop.rules.checks.registry import build_check

Run = Callable[..., list[str]]

PYTHON = sys.executable


def test_a_command_passes_by_its_exit_code_and_output(run: Run) -> None:
    assert run({"command": "true"}) == []
    assert run({"command": "false", "expect_exit": 1}) == []
    assert run({"command": "echo hello world", "expect_output": "^hello"}) == []
    assert run({"command": "cat {artifact}", "expect_output": "some text"}, "some text") == []
    assert run({"command": "sh -c 'echo problem >&2'", "expect_output": "problem"}) == []


def test_a_command_runs_without_a_shell_in_the_folder_of_its_rule_file(run: Run, tmp_path: Path) -> None:
    (tmp_path / "x y").write_text("")
    assert run({"command": "ls 'x y'"}) == []
    assert run({"command": "echo '$HOME' {other}", "expect_output": r"^\$HOME \{other\}$"}) == []
    assert run({"command": "echo {workspace}", "expect_output": f"^{tmp_path}$"}) == []
    assert run({"command": "test -e x\\ y && echo $((1+1))", "shell": True, "expect_output": "^2$"}) == []
    assert run({"command": "cat {artifact} | wc -l", "shell": True, "expect_output": "^ *1$"}, "x\n", "a b;c") == []
    assert run({"type": "executable", "command": "true && echo ok", "expected": "it ends well"}) == []


def test_a_failing_command_reports_exit_code_signal_and_output(run: Run, tmp_path: Path) -> None:
    assert run({"command": "false"}) == ["expected exit code 0 of `false`, found exit code 1"]
    assert run({"command": "sh -c 'kill -9 $$'"}) == [
        "expected exit code 0 of `sh -c 'kill -9 $$'`, found an end by signal 9"
    ]
    assert run({"command": "echo x", "expect_output": "y"}) == [
        "expected output of `echo x` matching 'y', found other output"
    ]
    assert run({"command": "true", "expect_output": "y"}) == ["expected output of `true` matching 'y', found no output"]
    context = Context(tmp_path, tmp_path)
    (finding,) = run_check(build_check({"command": "sh -c 'seq 100; exit 3'"}), context)
    assert finding.detail.splitlines() == [str(number) for number in range(89, 101)]


@pytest.mark.parametrize(
    ("output", "where"),
    [
        ("lib/shop.py:3:1: F401 unused", "lib/shop.py:3"),
        (" --> gone.py:1:1\n --> lib/shop.py:5:5", "lib/shop.py:5"),
        ("lib/shop.py(7,2): error TS1", "lib/shop.py:7"),
        ("{}/lib/shop.py:9: error", "lib/shop.py:9"),
        ("/etc/hosts.conf:1", ""),
        ("12:30:05 no place", ""),
        ("lib/shop.py:3: AssertionError\n== 1 failed in 0.01s ==", ""),
    ],
)
def test_a_complaint_names_its_place(tmp_path: Path, output: str, where: str) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/shop.py").touch()
    (tmp_path / "out").write_text(output.format(tmp_path))
    (finding,) = run_check(build_check({"command": "cat out", "expect_exit": 1}), Context(tmp_path, tmp_path))
    assert finding.where == where


def test_a_timeout_kills_the_process_group_of_a_command(run: Run, tmp_path: Path) -> None:
    script = (
        "import subprocess, sys, time; p = subprocess.Popen(['sleep', '60']); print(p.pid, flush=True); time.sleep(60)"
    )
    started = time.monotonic()
    context = Context(tmp_path, tmp_path)
    (finding,) = run_check(build_check({"command": f'{PYTHON} -c "{script}"', "timeout": 1}), context)
    assert time.monotonic() - started < 20
    assert str(finding).endswith("to end within 1 s, found it still running, and ended it")
    assert _is_gone(int(finding.detail))


def test_background_processes_of_a_command_are_killed_without_waiting(run: Run, tmp_path: Path) -> None:
    started = time.monotonic()
    assert run({"command": "sleep 60 & echo $! > pid", "shell": True}) == []
    assert time.monotonic() - started < 20
    assert _is_gone(int((tmp_path / "pid").read_text()))


def test_a_command_that_ignores_sigterm_is_killed(run: Run) -> None:
    lines = run({"command": "trap '' TERM; while true; do sleep 0.1; done", "shell": True, "timeout": 0.3})
    assert lines[0].endswith("found it still running, and ended it")


def test_a_command_that_cannot_start_is_an_error_not_a_failure(run: Run, tmp_path: Path) -> None:
    with pytest.raises(CheckError, match="cannot run 'no-such-tool': no such command is installed here"):
        run({"command": "no-such-tool --x"})
    (tmp_path / "script").write_text("")
    with pytest.raises(CheckError, match=r"cannot run './script': Permission denied"):
        run({"command": "./script"})
    with pytest.raises(CheckError, match=r"cannot run 'true': the folder .* does not exist"):
        run_check(build_check({"command": "true"}), Context(tmp_path, tmp_path / "none"))
    with pytest.raises(CheckError, match=r"cannot run .* null byte"):
        run_check(build_check({"command": "echo '\0'"}), Context(tmp_path, tmp_path))


@pytest.mark.parametrize(
    ("command", "tool"),
    [
        ({"command": "cd / && no-such-tool x", "shell": True}, "no-such-tool"),
        ({"type": "executable", "command": "no-such-tool {artifact}", "expected": "0"}, "no-such-tool"),
        ({"command": f"{PYTHON} -m no_such_module x"}, "no_such_module"),
        ({"command": "bash -c 'no-such-tool'"}, ""),
        ({"command": "sh script.sh"}, ""),
        ({"command": f"{PYTHON} -c 'import no_such_module'"}, ""),
    ],
)
def test_a_tool_that_a_command_names_and_is_missing_is_an_error(
    run: Run, tmp_path: Path, command: dict[str, Any], tool: str
) -> None:
    (tmp_path / "script.sh").write_text("no-such-tool\n")
    if not tool:
        assert run(command)
        return
    with pytest.raises(CheckError, match=rf"cannot run `.*`: {tool} is not installed here"):
        run(command)


@pytest.mark.parametrize(
    ("program", "output", "tool"),
    [
        ("npm", "> eslint .\nsh: 1: eslint: not found", "eslint"),
        (
            "npx",
            'npm error npx canceled due to missing packages and no YES option: ["tsc@2.0.4"]\nnpm error A log',
            "tsc",
        ),
        ("npm", "sh: 1: ./build.sh: not found", ""),
    ],
)
def test_a_package_that_a_script_calls_and_is_missing_is_an_error(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, output: str, tool: str
) -> None:
    stub = tmp_path / program
    stub.write_text(f"#!/bin/sh\necho '{output}' >&2\nexit 127\n")
    stub.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    if not tool:
        assert run({"command": f"{program} run lint"})
        return
    with pytest.raises(CheckError, match=rf"cannot run `{program} run lint`: {tool} is not installed here"):
        run({"command": f"{program} run lint"})


def test_a_program_that_is_judged_itself_fails_if_it_cannot_start(run: Run, tmp_path: Path) -> None:
    line = "expected the check to pass, found cannot run"
    assert run({"command": "{artifact} --help"}, "x", "tool.sh")[0].startswith(line)
    (finding,) = run_check(build_check({"command": "./build.sh"}), Context(tmp_path, tmp_path))
    assert str(finding) == f"{line} './build.sh': there is no such file"


def test_a_metric_compares_the_number_that_a_command_prints(run: Run) -> None:
    number = {"metric": {"command": "echo TOTAL 1,083 87%", "pattern": r"(\d+)%", "op": ">=", "value": 80}}
    assert run(number) == []
    assert run({"metric": {"command": "echo size 1,083", "pattern": r"[\d,]+", "op": "==", "value": 1083}}) == []
    assert run({"metric": {"command": 'echo \'{"a": {"b": 1.5}}\'', "json": "a.b", "op": "<", "value": 2}}) == []


@pytest.mark.parametrize(
    ("ask", "line"),
    [
        ({"command": "echo 79", "pattern": r"\d+", "value": 80}, "expected a number >= 80 from `echo 79`, found 79"),
        (
            {"command": "echo x", "pattern": r"\d+", "value": 80},
            "expected a number >= 80 from `echo x`, found no match of '\\\\d+' in its output",
        ),
        (
            {"command": "echo nan", "pattern": r"\w+", "value": 80},
            "expected a number >= 80 from `echo nan`, found 'nan', which is not a finite number",
        ),
        (
            {"command": "echo inf", "pattern": r"\w+", "value": 80},
            "expected a number >= 80 from `echo inf`, found 'inf', which is not a finite number",
        ),
        (
            {"command": "echo x", "json": "a", "value": 80},
            "expected a number >= 80 from `echo x`, found output that is not JSON",
        ),
        (
            {"command": "echo '{}'", "json": "a", "value": 80},
            "expected a number >= 80 from `echo '{}'`, found null, which is not a finite number",
        ),
        (
            {"command": "echo true", "json": "@", "value": 0},
            "expected a number >= 0 from `echo true`, found true, which is not a finite number",
        ),
        ({"command": "false", "pattern": "x", "value": 80}, "expected exit code 0 of `false`, found exit code 1"),
    ],
)
def test_a_failing_metric_shows_the_actual_number(run: Run, ask: dict[str, Any], line: str) -> None:
    assert run({"metric": ask}) == [line]


def test_long_output_keeps_head_and_tail(tmp_path: Path) -> None:
    from pytest_loop.processes import child

    script = "print('head'); print('x' * 5_000_000); print('tail')"
    result = child.run_command(child.Command([PYTHON, "-c", script], tmp_path, 60, output_limit=2000))
    assert result.stdout.startswith("head\n")
    assert result.stdout.endswith("tail\n")
    assert "bytes left out ...]" in result.stdout
    assert len(result.stdout) < 3000


def _is_gone(pid: int) -> bool:
    for _ in range(100):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        threading.Event().wait(0.05)
    return False


def test_a_command_counts_the_tests_that_it_ran(tmp_path: Path) -> None:
    context = Context(root=tmp_path, folder=tmp_path)
    check = build_check({"all": [{"command": "echo 2 passed in 0.1s"}, {"command": "echo hello"}]})
    assert run_check(check, context) == ()
    assert context.test_counts == [(2, 2)]


@pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")
def test_assertions_of_node_cannot_be_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NODE_OPTIONS", "--no-warnings")
    (tmp_path / "package.json").write_text("{}")
    (tmp_path / "cheat.mjs").write_text("import assert from 'node:assert';\nassert.equal = () => {};\n")
    (tmp_path / "honest.mjs").write_text("import assert from 'node:assert';\nassert.own = 1;\nassert.equal(1, 1);\n")
    context = Context(root=tmp_path, folder=tmp_path)
    (finding,) = run_check(build_check({"command": "node cheat.mjs"}), context)
    assert "read only property 'equal'" in finding.detail
    assert run_check(build_check({"command": "node honest.mjs"}), context) == ()
