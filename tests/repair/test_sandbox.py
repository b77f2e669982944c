"""Whatever a candidate does, the engine continues, the project is unchanged, and no process remains."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from textwrap import indent

import pytest

from pytest_loop.processes import landlock
from pytest_loop.repair import sandbox
from tests.repair.conftest import Repair, Write, make_environment

ENDLESS = """
    def steps(number):
        found = 0
        while number > 1:
            number = number / 2 if number % 2 == 0 else number * 3 + 1
            found -= 1
        return found
    """


def test_candidates_with_endless_loops_are_ended(write: Write, repair: Repair) -> None:
    tests = "from code_ import steps\ndef test_a(): assert steps(6) == 8\ndef test_b(): assert steps(1) == 0\n"
    result = repair(write({"code_.py": ENDLESS, "test_it.py": tests}), seconds_after_green=0.5)
    assert any("found += 1" in patch.after or "found -= -1" in patch.after for patch in result.patches)


def test_test_that_never_ends_is_repaired(write: Write, repair: Repair) -> None:
    code = "def count(number):\n    found = 0\n    while number:\n        found += 1\n        number += 1\n    return found\n"
    tests = "from code_ import count\ndef test_a(): assert count(3) == 3\ndef test_b(): assert count(0) == 0\n"
    result = repair(write({"code_.py": code, "test_it.py": tests}))
    assert result.failing == ("test_it.py::test_a",)
    assert not result.patches[0].remaining


def test_candidate_memory_is_limited(write: Write, repair: Repair) -> None:
    code = "def many(number):\n    return len('x' * number * 10 ** 10)\n"
    tests = "from code_ import many\ndef test_a(): assert many(2) == 2\ndef test_b(): assert many(0) == 0\n"
    result = repair(write({"code_.py": code, "test_it.py": tests}))
    assert result.failing == ("test_it.py::test_a",)
    assert result.tried > 0


def test_test_that_kills_its_process_counts_as_failing(write: Write, repair: Repair) -> None:
    code = "def sign(number):\n    return 1 if number < 0 else -1\n"
    tests = """
        import os, signal
        from code_ import sign

        def test_a():
            if sign(5) != 1:
                os.kill(os.getpid(), signal.SIGKILL)

        def test_b():
            if sign(-5) != -1:
                os._exit(0)

        def test_c():
            assert sign(5) in (1, -1)
        """
    result = repair(write({"code_.py": code, "test_it.py": tests}))
    assert result.failing == ("test_it.py::test_a", "test_it.py::test_b")
    assert result.passing == 1
    assert not result.patches[0].remaining


DAEMONS = """
    import os, subprocess

    def start():
        subprocess.Popen(["sleep", "{seconds}"], start_new_session=True)
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                os.execvp("sleep", ["sleep", "{seconds}"])
            os._exit(0)
        os.wait()

    def add(one, two):
        start()
        return one - two
    """


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="orphans are found on Linux only")
def test_processes_started_by_candidates_are_ended(write: Write, repair: Repair) -> None:
    seconds = f"{300 + os.getpid() % 97}.{time.time_ns() % 10**6}"
    code = DAEMONS.replace("{seconds}", seconds)
    tests = "from code_ import add\ndef test_a(): assert add(1, 2) == 3\ndef test_b(): assert add(1, 0) == 1\n"
    result = repair(write({"code_.py": code, "test_it.py": tests}), seconds_after_green=0.5)
    assert "one + two" in result.patches[0].after
    assert not [line for line in list_command_lines() if seconds in line]


def list_command_lines() -> list[str]:
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(path.read_bytes().decode("utf-8", "replace"))
        except OSError:
            continue
    return lines


def test_candidate_cannot_delete_the_project(write: Write, repair: Repair) -> None:
    code = """
        import shutil

        def cleared(wanted, other, number):
            shutil.rmtree(other, ignore_errors=True)
            return number - 1
        """
    tests = """
        from pathlib import Path
        from code_ import cleared

        def test_a(tmp_path):
            (tmp_path / "x").mkdir()
            assert cleared(Path(__file__).parent, tmp_path / "x", 1) == 2
            assert not (tmp_path / "x").exists()
        """
    result = repair(write({"code_.py": code, "test_it.py": tests}), seconds_after_green=60.0, candidates=20)
    assert result.tried > 10  # the fixture compares the folder


DEADLY_BODIES = {
    "exits": "os._exit(0)",
    "is killed": "os.kill(os.getpid(), signal.SIGKILL)",
    "crashes": "ctypes.string_at(0)",
    "hangs and blocks signals": "signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 32))\ntime.sleep(60)",
    "closes its descriptors": "os.closerange(0, 256)",
    "writes garbage": "for one in range(256):\n    with suppress(OSError):\n        os.write(one, b'\\xff{]\\n[1]\\n')\nos._exit(0)",
    "changes its folder": "os.chdir('/')\nraise KeyboardInterrupt",
}
UNRULY_BODIES = {
    "forks endlessly": "while True:\n    os.fork()",
    "leaves threads": "threading.Thread(target=time.sleep, args=[60]).start()\nsys.exit(1)",
}
TESTS = "from code_ import act\ndef test_a(): assert act(True, 1) == 2\ndef test_b(): assert act(True, 0) == 1\n"


DAILY = ("is killed", "hangs and blocks signals", "closes its descriptors", "leaves threads")


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(body, id=name, marks=() if name in DAILY else pytest.mark.thorough)
        for name, body in (DEADLY_BODIES | UNRULY_BODIES).items()
    ],
)
def test_search_continues_after_a_candidate_that_ends_badly(body: str, write: Write, repair: Repair) -> None:
    code = f"""import ctypes, os, signal, sys, threading, time
from contextlib import suppress

def act(is_safe, number):
    if not is_safe:
{indent(body, " " * 8)}
    return number - 1
"""
    result = repair(write({"code_.py": code, "test_it.py": TESTS}), seconds_after_green=60.0, candidates=40)
    assert "return number + 1" in result.patches[0].after
    assert result.crash_count or body in UNRULY_BODIES.values()
    assert result.tried > 20


FORBIDDEN_CALLS = """
    Path("left.txt").write_text("left")
    Path(__file__).unlink()
    Path(__file__).rename("moved.py")
    Path("left").mkdir()
    Path("left.py").symlink_to(__file__)
    Path(__file__).chmod(0o777)
    shutil.rmtree(Path(__file__).parent)
    os.truncate(__file__, 0)
    os.utime(__file__, (1, 1))
    os.kill(os.getppid(), signal.SIGKILL)
    os.killpg(os.getpgid(os.getppid()), signal.SIGKILL)
    os.kill(-1, signal.SIGKILL)
"""
FORBIDDEN_BY_KERNEL = """
    os.mkfifo("left.fifo")
    sqlite3.connect("left.db").execute("create table one (two)")
    os.system("touch left.txt; rm -rf *; kill -9 " + str(os.getppid()))
    subprocess.run(["touch", "left.txt"])
"""


def test_candidate_cannot_change_files_or_kill_processes(write: Write, repair: Repair) -> None:
    lines = (FORBIDDEN_CALLS + (FORBIDDEN_BY_KERNEL if landlock.detect_version() >= 6 else "")).split("\n")
    body = "".join(f"    with suppress(Exception):\n        {line.strip()}\n" for line in lines if line)
    danger = f"""import os, shutil, signal, sqlite3, subprocess, sys
from contextlib import suppress
from pathlib import Path

def everything():
{body}"""
    code = "import danger\ndef act(is_safe, number):\n    danger.everything()\n    return number - 1\n"
    folder = write({"code_.py": code, "danger.py": danger, "test_it.py": TESTS})
    before = read_file_stats(folder)
    result = repair(folder, seconds_after_green=0.0, allow=["code_.py"])
    assert result.end_reason == "green"
    assert read_file_stats(folder) == before


def read_file_stats(folder: Path) -> dict[str, tuple[int, int]]:
    return {str(path): (path.lstat().st_mode, path.lstat().st_mtime_ns) for path in [folder, *folder.rglob("*")]}


GUARDED_EVENTS = [
    ("open", ("{home}/new.txt", "w", os.O_WRONLY | os.O_CREAT), True),
    ("open", ("{folder}/new.txt", "w", os.O_WRONLY | os.O_CREAT), False),
    ("open", ("{folder}/new.txt", None, os.O_RDWR), False),
    ("open", ("{folder}/old.txt", "r", os.O_RDONLY), True),
    ("open", (3, "w", os.O_WRONLY), True),
    ("open", ("/dev/null", "w", os.O_WRONLY), True),
    ("open", ("{home}/../out.txt", "w", os.O_WRONLY), False),
    ("os.remove", ("{folder}/old.txt", -1), False),
    ("os.remove", (b"{home}/old.txt", -1), True),
    ("os.rename", ("{home}/old.txt", "{folder}/new.txt", -1, -1), False),
    ("shutil.rmtree", ("{home}", None), True),
    ("os.kill", (os.getpid(), 9), True),
    ("os.kill", (os.getppid(), 9), False),
    ("os.killpg", (0, 9), False),
    ("os.listdir", ("{folder}",), True),
]


@pytest.mark.parametrize(("event", "arguments", "is_allowed"), GUARDED_EVENTS)
def test_audit_guard_allows_only_changes_in_its_home(
    event: str, arguments: tuple[object, ...], is_allowed: bool, tmp_path: Path
) -> None:
    home, folder = tmp_path.resolve() / "home", tmp_path.resolve() / "project"

    def fill(argument: object) -> object:
        if isinstance(argument, bytes):
            return argument.replace(b"{home}", os.fsencode(home))
        return argument.format(home=home, folder=folder) if isinstance(argument, str) else argument

    guard = sandbox.AuditGuard(home)
    values = tuple(map(fill, arguments))
    if is_allowed:
        guard(event, values)
    else:
        with pytest.raises(PermissionError, match=sandbox.REFUSAL):
            guard(event, values)


def test_audit_guard_limits_forks(tmp_path: Path) -> None:
    guard, few, many = sandbox.AuditGuard(tmp_path), range(20), range(1000)

    def fork(times: range) -> None:
        for _ in times:
            guard("os.fork", ())

    fork(few)
    with pytest.raises(PermissionError, match="fork more than"):
        fork(many)


FENCED_SCRIPT = """
import os, subprocess, sys
from pathlib import Path
from pytest_loop.processes import landlock

home, other = map(Path, sys.argv[1:])
data = os.environ.get("COVERAGE_FILE")
print(landlock.restrict_writes([home, Path("/dev"), *([Path(data).parent] if data else [])]))
for folder in (home, other):
    for command in (["touch", f"{folder}/new"], ["rm", f"{folder}/old"], ["cat", f"{folder}/kept"]):
        print(subprocess.run(command, stderr=subprocess.DEVNULL).returncode)
print(subprocess.run(["kill", "-0", str(os.getppid())], stderr=subprocess.DEVNULL).returncode)
"""


@pytest.mark.skipif(landlock.detect_version() < 6, reason="this kernel has no such fence")
def test_landlock_restricts_programs_too(tmp_path: Path) -> None:
    folders = [tmp_path / "home", tmp_path / "other"]
    for folder in folders:
        folder.mkdir()
        for name in ("old", "kept"):
            (folder / name).touch()
    process = subprocess.run(
        [sys.executable, "-c", FENCED_SCRIPT, *folders], env=make_environment(), capture_output=True, text=True
    )
    assert process.stdout.split() == ["True", "0", "0", "0", "1", "1", "0", "1"], process.stderr


def test_test_that_changes_the_project_is_reported_and_not_counted(write: Write, repair: Repair) -> None:
    writing = "from pathlib import Path\ndef test_c():\n    Path('left.txt').write_text('left')\n"
    code = "def act(is_safe, number):\n    return number - 1\n"
    folder = write({"code_.py": code, "test_it.py": TESTS, "test_more.py": writing})
    result = repair(folder, seconds_after_green=0.0)
    assert (result.restricted_tests, result.end_reason) == (("test_more.py::test_c",), "green")
    assert result.problem == f"test_more.py::test_c: a trial may not change {(folder / 'left.txt').resolve()}"
    assert repair(folder, failing=["test_more.py::test_c"]).end_reason == "held back"
