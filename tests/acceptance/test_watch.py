"""Watching: files are judged again whenever they change, failed tests first."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import takewhile
from pathlib import Path

import pytest

from tests.acceptance.conftest import Pytest

WAITING = "waiting for a change (Ctrl-C ends)"
TESTS = "from product import one\n\n\ndef test_one():\n    assert one() == 1\n"
Watch = Callable[..., "WatcherProcess"]


class WatcherProcess:
    """A process that watches."""

    def __init__(self, project: Path, *words: str) -> None:
        command = [sys.executable, "-m", "pytest", "--loop-watch", "-v", *words]
        self.process = subprocess.Popen(
            command, cwd=project, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def read_round(self) -> list[str]:
        """Return the lines until it waits again."""
        assert self.process.stdout is not None
        lines = (line.rstrip("\n") for line in self.process.stdout)
        return list(takewhile(lambda line: line != WAITING, lines))

    def interrupt(self) -> int:
        self.process.send_signal(signal.SIGINT)
        self.process.communicate(timeout=60)
        return self.process.returncode


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "product.py").write_text("def one():\n    return 2\n")
    (tmp_path / "test_it.py").write_text(TESTS)
    (tmp_path / "test_first.py").write_text("def test_first():\n    pass\n")
    return tmp_path


@pytest.fixture
def watch(project: Path) -> Iterator[Watch]:
    watchers: list[WatcherProcess] = []

    def begin(*words: str) -> WatcherProcess:
        watchers.append(WatcherProcess(project, *words))
        return watchers[-1]

    yield begin
    for watcher in watchers:
        watcher.process.kill()
        watcher.process.communicate()


def find_tests(lines: list[str]) -> list[str]:
    return [match[1] for line in lines if (match := re.match(r"test_\w+.py::(\w+) ", line))]


def test_failed_tests_run_first_and_the_last_verdict_is_the_exit_code(watch: Watch, project: Path) -> None:
    watcher = watch()
    lines = watcher.read_round()
    assert find_tests(lines) == ["test_first", "test_one"]
    assert lines[-1] == "FAIL: score 0.5, 1 of 2 rules pass"
    (project / "product.py").write_text("def one():\n    return 3\n")
    lines = watcher.read_round()
    assert lines[0] == "changed: product.py"
    assert find_tests(lines) == ["test_one", "test_first"]
    (project / "product.py").write_text("def one():\n    return 1\n")
    assert watcher.read_round()[-1] == "PASS: score 1, 2 of 2 rules pass"
    assert watcher.interrupt() == 0


@pytest.mark.thorough
@pytest.mark.measured
def test_session_error_is_printed_and_the_watch_continues(watch: Watch, project: Path) -> None:
    watcher = watch("--loop-session=cold")
    watcher.read_round()
    (project / "conftest.py").write_text("1 / 0\n")
    assert watcher.read_round()[-1].startswith("the evaluation could not be carried out (exit code 4)")
    assert watcher.interrupt() == pytest.ExitCode.TESTS_FAILED


def test_files_that_tests_write_are_ignored(watch: Watch, project: Path) -> None:
    (project / ".gitignore").write_text("ignored.txt\n")
    (project / "test_it.py").write_text(
        "import time\n\ndef test_it():\n    open('noted.txt', 'w').write(str(time.time()))\n    open('ignored.txt', 'w').write(str(time.time()))\n"
    )
    watcher = watch()
    watcher.read_round()
    assert watcher.read_round()[0] == "changed: noted.txt"
    (project / "product.py").write_text("")
    assert watcher.read_round()[0] == "changed: product.py"
    assert watcher.interrupt() == 0


def test_many_changes_start_one_session(watch: Watch, project: Path) -> None:
    watcher = watch()
    watcher.read_round()
    staged = project / "new"
    (project.parent / "staged").mkdir()
    for number in range(7):
        (project.parent / "staged" / f"{number}.txt").write_text("x")
    (project.parent / "staged").rename(staged)
    assert watcher.read_round()[0] == "changed: new/0.txt, new/1.txt, new/2.txt, new/3.txt, new/4.txt and 2 more"


def test_question_of_a_rule_goes_to_the_judge(watch: Watch, project: Path) -> None:
    (project / "doc.md").write_text("It is short.\n")
    (project / "it.rules.yaml").write_text(
        "artifact: doc.md\nrules: [{id: a.x.y, description: x, check: {judge: Is it short?}}]"
    )
    (project / "judges.py").write_text('def yes(request):\n    return \'{"passed": true, "reason": "so it is"}\'\n')
    watcher = watch("--loop-rules", "it.rules.yaml", "--loop-judge", "python:judges:yes")
    assert watcher.read_round()[-1] == "PASS: score 1, 1 of 1 rules pass"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--loop-watsh",), "unrecognized arguments: --loop-watsh"),
        (("--loop-list",), "expected one command, found --loop-list and --loop-watch"),
        (("--loop-rules", "none"), "--loop-rules: expected a file or folder, found 'none'"),
        (("--loop-judge", "nobody:x"), "--loop-judge: "),
    ],
)
def test_bad_options_are_refused(run: Pytest, words: tuple[str, ...], message: str) -> None:
    done = run("--loop-watch", *words)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert message in done.stderr
