"""`--loop-report`: reports of existing runs, reports at the end of a run, and refused calls."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from pytest_loop.core.model.vocabulary import Kind
from pytest_loop.store.project_runs import Store
from tests.show.runs import RunStory, build_small_run

RunCommand = Callable[..., tuple[int, str]]
RULES = """
    rules:
      - id: a.content.title
        description: It has a title
        check: {contains: "# Guide"}
"""
WRITER = """
    def work(request):
        return {"text": "# Guide\\n", "usage": {"tokens": 7}}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "guide.rules.yaml").write_text(dedent(RULES))
    (tmp_path / "writer.py").write_text(dedent(WRITER))
    return tmp_path


@pytest.fixture
def run_command(project: Path, capsys: pytest.CaptureFixture[str]) -> RunCommand:
    """Run pytest in this process; return its exit code and its output."""

    def run(*arguments: str) -> tuple[int, str]:
        try:
            code: Any = pytest.main(["-s", *arguments])
        except SystemExit as end:
            code = end.code
        out, err = capsys.readouterr()
        return int(code), (out + err).strip().removeprefix("ERROR: ")

    return run


def save_run(project: Path, alias: str, run: RunStory, updated: str = "2026-01-01") -> None:
    files = Store(project).get_run(alias)
    files.acquire()
    state = run.state.model_copy(update={"task_alias": alias, "updated_at": updated})
    files.append(run.events, state)
    files.release()


def test_report_shows_the_latest_run_unless_an_alias_is_given(run_command: RunCommand, project: Path) -> None:
    save_run(project, "older", RunStory("a").evaluate(["a"]))
    save_run(project, "newer", build_small_run(), "2026-02-02")
    assert run_command("--loop-report", "it.html") == (0, "wrote it.html")
    assert "Stopped without success: newer" in (project / "it.html").read_text(encoding="utf-8")
    assert run_command("--loop-report=it.html", "--loop-alias", "older") == (0, "wrote it.html")
    text = (project / "it.html").read_text(encoding="utf-8")
    assert "Not over yet: older" in text
    assert "<dd>running (paused)</dd>" in text
    assert "pytest-loop resume --run older</pre>" in text


def test_report_path_of_the_ini_file_is_overridden_by_the_option(run_command: RunCommand, project: Path) -> None:
    save_run(project, "newer", build_small_run())
    (project / "pytest.ini").write_text("[pytest]\nloop_report = it.html\n")
    assert run_command("--loop-status", "--loop-json", "status.json") == (0, "wrote status.json")
    assert not (project / "it.html").exists()
    assert run_command("--loop-report", "other.html", "--loop-json", "it.json") == (
        0,
        "wrote other.html\nwrote it.json",
    )
    assert json.loads((project / "it.json").read_text())["stop"]["reason"] == "iteration_limit"


def test_damaged_history_is_reported(run_command: RunCommand, project: Path) -> None:
    save_run(project, "newer", build_small_run())
    history = project / ".loop/newer/history.jsonl"
    lines = history.read_bytes().splitlines(keepends=True)
    history.write_bytes(b"".join([lines[0], b"{\n", *lines[1:]]))
    code, output = run_command("--loop-report", "it.html")
    assert code == 0
    assert "wrote it.html\ndamage: line 2 of the history cannot be read" in output


def test_report_of_a_running_run_is_written(run_command: RunCommand, project: Path) -> None:
    (project / ".gitignore").write_text("*.html\n")
    started, release = project / "started", project / "release"
    os.mkfifo(started)
    os.mkfifo(release)
    script = "open('started', 'w').close(); open('release').close(); print('# Guide')"
    arguments = [
        "--loop-task",
        "Write a guide",
        "--loop-rules",
        "guide.rules.yaml",
        "--loop-yes",
        "--loop-alias",
        "guide",
    ]
    agent = shlex.join(["command:" + sys.executable, "-c", script])
    run = subprocess.Popen([sys.executable, "-m", "pytest", *arguments, "--loop-agent", agent], cwd=project)
    started.read_text()
    assert run_command("--loop-report", "it.html") == (0, "wrote it.html")
    release.write_text("")
    assert run.wait(300) == 0
    text = (project / "it.html").read_text(encoding="utf-8")
    assert "Not over yet: guide" in text
    assert "<dd>running</dd>" in text
    assert "<dd>PRODUCE_PREPARE</dd>" in text
    assert "pytest --loop-status=guide</pre>" in text
    assert "Nothing was judged yet." in text


def test_run_writes_the_report_at_its_end(run_command: RunCommand, project: Path) -> None:
    arguments = (
        "--loop-task",
        "Write a guide",
        "--loop-rules",
        "guide.rules.yaml",
        "--loop-yes",
        "--loop-session",
        "cold",
    )
    code, output = run_command(*arguments, "--loop-agent", "python:writer:work", "--loop-report", "it.html")
    assert code == 0, output
    assert output.endswith("wrote it.html")
    text = (project / "it.html").read_text(encoding="utf-8")
    assert '<h1 id="verdict">Completed</h1>' in text
    assert "# Guide" in text
    assert "python:writer:work</td>" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--loop-report", "it.html"], "there is no run in {root}/.loop: start one with --loop-task"),
        (["--loop-report", "no/it.html", "--loop-task", "x"], "--loop-report: there is no folder no: make it first"),
        (["--loop-report", "."], "--loop-report: expected a path like report.html, found a folder: ."),
        (["--loop-report-open"], "--loop-report-open: say where the report is to be written with --loop-report PATH"),
        (["--loop-report", "it.html", "--loop-list"], "expected one command, found --loop-list and --loop-report"),
        (
            ["--loop-report", "it.html", "--loop-alias", "none"],
            "there is no run 'none' in {root}/.loop: the runs are newer",
        ),
    ],
)
def test_invalid_report_options_are_refused(
    run_command: RunCommand, project: Path, arguments: list[str], message: str
) -> None:
    if "it.html" not in arguments or len(arguments) > 2 or arguments == ["--loop-report", "."]:
        save_run(project, "newer", build_small_run())
    assert run_command(*arguments) == (pytest.ExitCode.USAGE_ERROR, message.format(root=project))


def test_report_file_that_cannot_be_written_is_reported(run_command: RunCommand, project: Path) -> None:
    save_run(project, "newer", build_small_run())
    assert run_command("--loop-report", "x" * 300) == (
        pytest.ExitCode.USAGE_ERROR,
        f"cannot write {'x' * 300}: File name too long; free the way, then write it with --loop-report",
    )


def test_two_runs_are_compared(run_command: RunCommand, project: Path) -> None:
    save_run(project, "older", RunStory("a", "c").evaluate(["a"]))
    save_run(
        project, "newer", RunStory("a", "b").evaluate().add(Kind.PHASE_SWITCHED).end("threshold_reached"), "2026-02-02"
    )
    assert run_command("--loop-report", "it.html", "--loop-alias", "older,newer") == (0, "wrote it.html")
    text = (project / "it.html").read_text(encoding="utf-8")
    assert "Only newer succeeded" in text
    assert "3 rules differ at the end; 0 are the same." in text
    code, output = run_command("--loop-report", "it.html", "--loop-alias", "older,newer,last")
    assert (code, output) == (4, "--loop-report: expected at most two runs to compare, found 3")


def test_secrets_of_the_environment_are_not_in_the_report(
    run_command: RunCommand, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVICE_TOKEN", "k7Jx92mQpLw4")
    save_run(project, "newer", RunStory("a").evaluate({"a": "no answer for k7Jx92mQpLw4"}))
    assert run_command("--loop-report", "it.html")[0] == 0
    text = (project / "it.html").read_text(encoding="utf-8")
    assert "k7Jx92mQpLw4" not in text
    assert "[SERVICE_TOKEN]" in text


@pytest.mark.parametrize("arguments", [["--loop-report", "it.html"], ["-c", "own.ini"]], ids=["option", "ini file"])
def test_report_is_opened_in_the_browser(project: Path, arguments: list[str]) -> None:
    save_run(project, "newer", build_small_run())
    (project / "own.ini").write_text("[pytest]\nloop_report = it.html\n")
    browser = project / "browser"
    browser.write_text("#!/bin/sh\necho $1 > opened\n")
    browser.chmod(0o700)
    arguments = [sys.executable, "-m", "pytest", *arguments, "--loop-report-open"]
    environment = {**os.environ, "BROWSER": f"{browser} %s"}
    process = subprocess.run(arguments, cwd=project, env=environment, capture_output=True, text=True, check=False)
    assert (process.returncode, process.stdout, process.stderr) == (0, "wrote it.html\n", "")
    assert (project / "opened").read_text().strip() == (project / "it.html").as_uri()


def test_missing_browser_is_reported(project: Path) -> None:
    save_run(project, "newer", build_small_run())
    arguments = [sys.executable, "-m", "pytest", "--loop-report", "it.html", "--loop-report-open"]
    environment = {**os.environ, "BROWSER": "false", "PATH": str(project), "DISPLAY": "", "WAYLAND_DISPLAY": ""}
    process = subprocess.run(arguments, cwd=project, env=environment, capture_output=True, text=True, check=False)
    assert (process.returncode, process.stdout) == (0, "wrote it.html\nno browser was found: open it.html yourself\n")
