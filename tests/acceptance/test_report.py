"""`--loop-report`: of a run that is there, at the end of one, and what is refused."""

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

from pytest_loop.store.project_runs import Store
from tests.show.runs import RunStory, build_small_run

Command = Callable[..., tuple[int, str]]
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
def command(project: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    """Carry out a pytest command inside this process; gives its exit code and what it said."""

    def carry_out(*arguments: str) -> tuple[int, str]:
        try:
            code: Any = pytest.main(["-s", *arguments])
        except SystemExit as end:
            code = end.code
        out, err = capsys.readouterr()
        return int(code), (out + err).strip().removeprefix("ERROR: ")

    return carry_out


def keep(project: Path, alias: str, told: RunStory, updated: str = "2026-01-01") -> None:
    files = Store(project).get_run(alias)
    files.acquire()
    state = told.state.model_copy(update={"task_alias": alias, "updated_at": updated})
    files.append(told.events, state)
    files.release()


def test_the_latest_run_is_meant_unless_one_is_named(command: Command, project: Path) -> None:
    keep(project, "older", RunStory("a").evaluate(["a"]))
    keep(project, "newer", build_small_run(), "2026-02-02")
    assert command("--loop-report", "it.html") == (0, "wrote it.html")
    assert "Stopped without success: newer" in (project / "it.html").read_text(encoding="utf-8")
    assert command("--loop-report=it.html", "--loop-alias", "older") == (0, "wrote it.html")
    text = (project / "it.html").read_text(encoding="utf-8")
    assert "Not over yet: older" in text
    assert "<dd>running (paused)</dd>" in text
    assert "pytest --loop-resume=older</pre>" in text


def test_the_ini_file_may_say_where_and_machines_may_read_along(command: Command, project: Path) -> None:
    keep(project, "newer", build_small_run())
    (project / "pytest.ini").write_text("[pytest]\nloop_report = it.html\n")
    assert command("--loop-status", "--loop-json", "status.json") == (0, "wrote status.json")
    assert not (project / "it.html").exists()
    assert command("--loop-report", "other.html", "--loop-json", "it.json") == (0, "wrote other.html\nwrote it.json")
    assert json.loads((project / "it.json").read_text())["stop"]["reason"] == "iteration_limit"


def test_damage_of_the_history_is_told(command: Command, project: Path) -> None:
    keep(project, "newer", build_small_run())
    history = project / ".loop/newer/history.jsonl"
    lines = history.read_bytes().splitlines(keepends=True)
    history.write_bytes(b"".join([lines[0], b"{\n", *lines[1:]]))
    code, said = command("--loop-report", "it.html")
    assert code == 0
    assert "wrote it.html\ndamage: line 2 of the history cannot be read" in said


def test_a_run_that_is_at_work_can_be_looked_at(command: Command, project: Path) -> None:
    at_work, go_on = project / "at-work", project / "go-on"
    os.mkfifo(at_work)
    os.mkfifo(go_on)
    waiting = "open('at-work', 'w').close(); open('go-on').close(); print('# Guide')"
    words = ["--loop-task", "Write a guide", "--loop-rules", "guide.rules.yaml", "--loop-yes", "--loop-alias", "guide"]
    agent = shlex.join(["command:" + sys.executable, "-c", waiting])
    run = subprocess.Popen([sys.executable, "-m", "pytest", *words, "--loop-agent", agent], cwd=project)
    at_work.read_text()
    assert command("--loop-report", "it.html") == (0, "wrote it.html")
    go_on.write_text("")
    assert run.wait(300) == 0
    text = (project / "it.html").read_text(encoding="utf-8")
    assert "Not over yet: guide" in text
    assert "<dd>running</dd>" in text
    assert "<dd>PRODUCE_PREPARE</dd>" in text
    assert "pytest --loop-status=guide</pre>" in text
    assert "Nothing was judged yet." in text


def test_a_run_writes_it_at_its_end_with_what_was_said_on_the_way(command: Command, project: Path) -> None:
    words = ("--loop-task", "Write a guide", "--loop-rules", "guide.rules.yaml", "--loop-yes", "--loop-session", "cold")
    code, said = command(*words, "--loop-agent", "python:writer:work", "--loop-report", "it.html")
    assert code == 0, said
    assert said.endswith("wrote it.html")
    text = (project / "it.html").read_text(encoding="utf-8")
    assert '<h1 id="verdict">Completed</h1>' in text
    assert "<ins>+# Guide</ins>" in text
    assert "<td>python:writer:work</td>" in text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--loop-report", "it.html"], "there is no run in {root}/.loop: start one with --loop-task"),
        (["--loop-report", "no/it.html", "--loop-task", "x"], "--loop-report: there is no folder no: make it first"),
        (["--loop-report", "."], "--loop-report: expected a path like report.html, found a folder: ."),
        (["--loop-report-open"], "--loop-report-open: say where the report is to be written with --loop-report PATH"),
        (["--loop-report", "it.html", "--loop-list"], "expected one command, found --loop-list and --loop-report"),
        (
            ["--loop-report", "it.html", "--loop-alias", "none"],
            "there is no run 'none' in {root}/.loop: known are newer",
        ),
    ],
)
def test_what_cannot_be_done_is_refused(command: Command, project: Path, words: list[str], said: str) -> None:
    if "it.html" not in words or len(words) > 2 or words == ["--loop-report", "."]:
        keep(project, "newer", build_small_run())
    assert command(*words) == (pytest.ExitCode.USAGE_ERROR, said.format(root=project))


def test_a_file_that_cannot_be_written_is_told(command: Command, project: Path) -> None:
    keep(project, "newer", build_small_run())
    assert command("--loop-report", "x" * 300) == (
        pytest.ExitCode.USAGE_ERROR,
        f"cannot write {'x' * 300}: File name too long; free the way, then write it with --loop-report",
    )


def test_without_jinja_a_run_is_refused_before_it_begins(
    command: Command, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    code, said = command("--loop-task", "Write a guide", "--loop-report", "it.html", "--loop-yes")
    assert (code, said) == (4, "the report needs Jinja2: pip install 'pytest-agent-loop[report]'")
    assert not (project / ".loop").exists()


def test_secrets_of_the_environment_stay_out_of_it(
    command: Command, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVICE_TOKEN", "k7Jx92mQpLw4")
    keep(project, "newer", RunStory("a").evaluate({"a": "no answer for k7Jx92mQpLw4"}))
    assert command("--loop-report", "it.html")[0] == 0
    text = (project / "it.html").read_text(encoding="utf-8")
    assert "k7Jx92mQpLw4" not in text
    assert "[SERVICE_TOKEN]" in text


@pytest.mark.parametrize("words", [["--loop-report", "it.html"], ["-c", "own.ini"]], ids=["option", "ini file"])
def test_the_report_is_opened_where_there_is_a_browser(project: Path, words: list[str]) -> None:
    keep(project, "newer", build_small_run())
    (project / "own.ini").write_text("[pytest]\nloop_report = it.html\n")
    browser = project / "browser"
    browser.write_text("#!/bin/sh\necho $1 > opened\n")
    browser.chmod(0o700)
    words = [sys.executable, "-m", "pytest", *words, "--loop-report-open"]
    environment = {**os.environ, "BROWSER": f"{browser} %s"}
    done = subprocess.run(words, cwd=project, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "wrote it.html\n", "")
    assert (project / "opened").read_text().strip() == (project / "it.html").as_uri()


def test_where_there_is_no_browser_the_person_is_told_to_open_it(project: Path) -> None:
    keep(project, "newer", build_small_run())
    words = [sys.executable, "-m", "pytest", "--loop-report", "it.html", "--loop-report-open"]
    environment = {**os.environ, "BROWSER": "false", "PATH": str(project), "DISPLAY": "", "WAYLAND_DISPLAY": ""}
    done = subprocess.run(words, cwd=project, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "wrote it.html\nno browser was found: open it.html yourself\n")
