"""Whatever a candidate does, the engine goes on, the project stays as it is, and no process is left."""

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
from tests.repair.conftest import Repair, Write, environment

ENDLESS = """
    def steps(number):
        found = 0
        while number > 1:
            number = number / 2 if number % 2 == 0 else number * 3 + 1
            found -= 1
        return found
    """


def test_endless_loops_end(write: Write, repair: Repair) -> None:
    tests = "from code_ import steps\ndef test_a(): assert steps(6) == 8\ndef test_b(): assert steps(1) == 0\n"
    found = repair(write({"code_.py": ENDLESS, "test_it.py": tests}), seconds_after_green=0.5)
    assert any("found += 1" in one.after or "found -= -1" in one.after for one in found.patches)


def test_a_test_that_is_endless_itself_is_repaired(write: Write, repair: Repair) -> None:
    code = "def count(number):\n    found = 0\n    while number:\n        found += 1\n        number += 1\n    return found\n"
    tests = "from code_ import count\ndef test_a(): assert count(3) == 3\ndef test_b(): assert count(0) == 0\n"
    found = repair(write({"code_.py": code, "test_it.py": tests}))
    assert found.failing == ("test_it.py::test_a",)
    assert not found.patches[0].remaining


def test_memory_has_an_end(write: Write, repair: Repair) -> None:
    code = "def many(number):\n    return len('x' * number * 10 ** 10)\n"
    tests = "from code_ import many\ndef test_a(): assert many(2) == 2\ndef test_b(): assert many(0) == 0\n"
    found = repair(write({"code_.py": code, "test_it.py": tests}))
    assert found.failing == ("test_it.py::test_a",)
    assert found.tried > 0


def test_a_test_that_kills_itself_is_a_test_that_fails(write: Write, repair: Repair) -> None:
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
    found = repair(write({"code_.py": code, "test_it.py": tests}))
    assert found.failing == ("test_it.py::test_a", "test_it.py::test_b")
    assert found.passing == 1
    assert not found.patches[0].remaining


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
def test_what_a_candidate_starts_is_gone_in_the_end(write: Write, repair: Repair) -> None:
    seconds = f"{300 + os.getpid() % 97}.{time.time_ns() % 10**6}"
    code = DAEMONS.replace("{seconds}", seconds)
    tests = "from code_ import add\ndef test_a(): assert add(1, 2) == 3\ndef test_b(): assert add(1, 0) == 1\n"
    found = repair(write({"code_.py": code, "test_it.py": tests}), seconds_after_green=0.5)
    assert "one + two" in found.patches[0].after
    assert not [one for one in command_lines() if seconds in one]


def command_lines() -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(path.read_bytes().decode("utf-8", "replace"))
        except OSError:
            continue
    return found


def test_a_candidate_cannot_delete_the_project(write: Write, repair: Repair) -> None:
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
    found = repair(write({"code_.py": code, "test_it.py": tests}), seconds_after_green=60.0, candidates=20)
    assert found.tried > 10  # and the fixture has compared the folder


DEADLY = {
    "it ends": "os._exit(0)",
    "it is killed": "os.kill(os.getpid(), signal.SIGKILL)",
    "it crashes": "ctypes.string_at(0)",
    "it hangs and will not be disturbed": "signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 32))\ntime.sleep(60)",
    "it cannot speak any more": "os.closerange(0, 256)",
    "it speaks nonsense": "for one in range(256):\n    with suppress(OSError):\n        os.write(one, b'\\xff{]\\n[1]\\n')\nos._exit(0)",
    "it is somewhere else": "os.chdir('/')\nraise KeyboardInterrupt",
}
UNRULY = {
    "it is many": "while True:\n    os.fork()",
    "its threads go on": "threading.Thread(target=time.sleep, args=[60]).start()\nsys.exit(1)",
}
TESTS = "from code_ import act\ndef test_a(): assert act(True, 1) == 2\ndef test_b(): assert act(True, 0) == 1\n"


OFTEN = ("it is killed", "it hangs and will not be disturbed", "it cannot speak any more", "its threads go on")


@pytest.mark.parametrize(
    "what",
    [
        pytest.param(what, id=name, marks=() if name in OFTEN else pytest.mark.thorough)
        for name, what in (DEADLY | UNRULY).items()
    ],
)
def test_a_candidate_that_ends_badly_is_one_of_many(what: str, write: Write, repair: Repair) -> None:
    code = f"""import ctypes, os, signal, sys, threading, time
from contextlib import suppress

def act(is_safe, number):
    if not is_safe:
{indent(what, " " * 8)}
    return number - 1
"""
    found = repair(write({"code_.py": code, "test_it.py": TESTS}), seconds_after_green=60.0, candidates=40)
    assert "return number + 1" in found.patches[0].after
    assert found.crash_count or what in UNRULY.values()
    assert found.tried > 20


FORBIDDEN = """
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
OF_THE_KERNEL = """
    os.mkfifo("left.fifo")
    sqlite3.connect("left.db").execute("create table one (two)")
    os.system("touch left.txt; rm -rf *; kill -9 " + str(os.getppid()))
    subprocess.run(["touch", "left.txt"])
"""


def test_what_a_candidate_may_not_do_does_not_happen(write: Write, repair: Repair) -> None:
    lines = (FORBIDDEN + (OF_THE_KERNEL if landlock.detect_version() >= 6 else "")).split("\n")
    body = "".join(f"    with suppress(Exception):\n        {line.strip()}\n" for line in lines if line)
    danger = f"""import os, shutil, signal, sqlite3, subprocess, sys
from contextlib import suppress
from pathlib import Path

def everything():
{body}"""
    code = "import danger\ndef act(is_safe, number):\n    danger.everything()\n    return number - 1\n"
    folder = write({"code_.py": code, "danger.py": danger, "test_it.py": TESTS})
    before = marks(folder)
    found = repair(folder, seconds_after_green=0.0, allow=["code_.py"])
    assert found.end_reason == "green"
    assert marks(folder) == before


def marks(folder: Path) -> dict[str, tuple[int, int]]:
    return {str(path): (path.lstat().st_mode, path.lstat().st_mtime_ns) for path in [folder, *folder.rglob("*")]}


GUARDED = [
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


@pytest.mark.parametrize(("event", "arguments", "is_allowed"), GUARDED)
def test_what_the_guard_allows(event: str, arguments: tuple[object, ...], is_allowed: bool, tmp_path: Path) -> None:
    home, folder = tmp_path.resolve() / "home", tmp_path.resolve() / "project"

    def filled(one: object) -> object:
        if isinstance(one, bytes):
            return one.replace(b"{home}", os.fsencode(home))
        return one.format(home=home, folder=folder) if isinstance(one, str) else one

    guard = sandbox.AuditGuard(home)
    words = tuple(map(filled, arguments))
    if is_allowed:
        guard(event, words)
    else:
        with pytest.raises(PermissionError, match=sandbox.REFUSAL):
            guard(event, words)


def test_the_guard_counts_forks(tmp_path: Path) -> None:
    guard, few, many = sandbox.AuditGuard(tmp_path), range(20), range(1000)

    def forks(number: range) -> None:
        for _ in number:
            guard("os.fork", ())

    forks(few)
    with pytest.raises(PermissionError, match="fork more than"):
        forks(many)


FENCED = """
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
def test_the_fence_of_the_kernel_holds_programs_too(tmp_path: Path) -> None:
    folders = [tmp_path / "home", tmp_path / "other"]
    for folder in folders:
        folder.mkdir()
        for name in ("old", "kept"):
            (folder / name).touch()
    done = subprocess.run([sys.executable, "-c", FENCED, *folders], env=environment(), capture_output=True, text=True)
    assert done.stdout.split() == ["True", "0", "0", "0", "1", "1", "0", "1"], done.stderr


def test_a_test_that_changes_the_project_is_named_and_not_counted(write: Write, repair: Repair) -> None:
    writing = "from pathlib import Path\ndef test_c():\n    Path('left.txt').write_text('left')\n"
    code = "def act(is_safe, number):\n    return number - 1\n"
    folder = write({"code_.py": code, "test_it.py": TESTS, "test_more.py": writing})
    found = repair(folder, seconds_after_green=0.0)
    assert (found.restricted_tests, found.end_reason) == (("test_more.py::test_c",), "green")
    assert found.problem == f"test_more.py::test_c: a trial may not change {(folder / 'left.txt').resolve()}"
    assert repair(folder, failing=["test_more.py::test_c"]).end_reason == "held back"
