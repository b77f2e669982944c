"""Warm sessions when things go wrong: whatever happens, the verdict is that of a cold one, and nothing is left."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_loop.core.model.session_order import SessionOrder
from pytest_loop.processes import process_marks
from pytest_loop.session.runner import SessionError, SubprocessSession
from tests.conftest import SELDOM_AMONG_WORKERS

PASSES = "def test_it(): pass\n"


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def ends(pid: int) -> bool:
    """Whether a process ends within a moment."""
    deadline = time.monotonic() + 10
    while is_alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not is_alive(pid)


def noted(path: Path) -> int:
    """The process that a test has written down."""
    deadline = time.monotonic() + 30
    while not (path.exists() and path.read_text().endswith("\n")) and time.monotonic() < deadline:
        time.sleep(0.02)
    return int(path.read_text())


# -- what dies, hangs or stays


def test_a_server_that_died_between_sessions_is_replaced(project: Callable[..., Any]) -> None:
    made = project()
    made.write("test_it.py", PASSES)
    assert made.outcomes() == {"test_it": "passed"}
    before = made.server
    os.kill(before, signal.SIGKILL)
    assert made.outcomes() == {"test_it": "passed"}
    assert made.server not in (None, before)


def test_a_server_that_dies_at_work_leaves_the_judging_to_a_cold_session(project: Callable[..., Any]) -> None:
    made = project()
    kills = "import os, signal, pytest_loop\n"
    kills += "def test_it():\n    if os.getppid() != {}: os.kill(os.getppid(), signal.SIGKILL)\n"
    made.write("test_it.py", kills.format(os.getpid()))
    assert made.outcomes() == {"test_it": "passed"}
    assert made.said == []
    assert made.outcomes() == {"test_it": "passed"}
    assert made.said == ["sessions start cold: the server that they are forked from died again and again"]
    assert made.outcomes() == {"test_it": "passed"}
    assert made.server is None


def test_a_session_that_dies_is_reported_where_it_died(project: Callable[..., Any]) -> None:
    made = project()
    made.write("test_it.py", "import os, signal\ndef test_it(): os.kill(os.getpid(), signal.SIGKILL)\n")
    for _ in range(2):
        found = made.judge()
        assert (
            found.make_missing_evidence("test_it.py::test_it").text == "not verified: the session died here (signal 9)"
        )
    made.write("test_it.py", "import os\ndef test_it(): os._exit(7)\n")
    assert made.judge().ending == "exit code 7"


def test_a_worker_that_dies_is_a_verdict(project: Callable[..., Any]) -> None:
    made = project("-n2", "--max-worker-restart=0")
    made.write(
        "test_it.py", "import os, signal\ndef test_it(): os.kill(os.getpid(), signal.SIGKILL)\ndef test_b(): pass\n"
    )
    assert made.outcomes()["test_it"] == made.outcomes(is_warm=False)["test_it"] == "error"


@pytest.mark.measured
def test_a_worker_that_dies_is_replaced_as_xdist_does_it(project: Callable[..., Any]) -> None:
    made = project("-n1")
    text = "import os, signal\ndef test_a(): os.kill(os.getpid(), signal.SIGKILL)\ndef test_b(): pass\n"
    made.write("test_it.py", text)
    assert made.both() == {"test_a": "error", "test_b": "passed"}


def children(pid: int) -> set[str]:
    return set(Path(f"/proc/{pid}/task/{pid}/children").read_text().split())


def test_workers_that_wait_for_a_session_know_nothing_of_the_one_before(project: Callable[..., Any]) -> None:
    made = project("-n2")
    servers = set()
    for number in range(3):  # the first session needs a third worker
        made.write(
            "test_it.py",
            f"""
            import os, signal
            import shop
            def test_a():
                assert shop.number == {number}
                assert "spoiled" not in os.environ
            def test_b():
                os.environ["spoiled"] = "yes"
                if {number} == 0: os.kill(os.getpid(), signal.SIGKILL)
            """,
        )
        made.write("shop.py", f"number = {number}{' ' * number}\n")  # as long, Python itself could miss the edit
        assert made.outcomes() == {"test_a": "passed", "test_b": "passed" if number else "error"}
        servers.add(made.server)
        assert children(made.server) == set()
    assert len(servers) == 1


def test_a_worker_that_died_before_it_was_needed_is_heard_of_and_no_verdict(project: Callable[..., Any]) -> None:
    made = project("-n2")
    made.write("test_it.py", PASSES)
    made.write(
        "conftest.py",
        """
        import os, pathlib, signal
        def pytest_configure(config):
            children = pathlib.Path(f"/proc/{os.getppid()}/task/{os.getppid()}/children")
            if os.path.exists("spoil") and not hasattr(config, "workerinput"):
                while len(found := set(map(int, children.read_text().split()))) < 2: pass
                for pid in found - {os.getpid()}: os.kill(pid, signal.SIGKILL)
        """,
    )
    assert made.outcomes() == {"test_it": "passed"}
    made.write("spoil", "")
    with pytest.raises(SessionError, match="could not be carried out"):
        made.judge()
    (made.path / "spoil").unlink()
    assert made.outcomes() == {"test_it": "passed"}


def test_a_session_that_hangs_ends_at_its_deadline(project: Callable[..., Any]) -> None:
    made = project()
    made.write("test_it.py", PASSES)
    made.judge()
    made.write("test_it.py", "import time\ndef test_it(): time.sleep(600)\n")
    made.timeout = 2.0
    started = time.monotonic()
    assert made.judge().ending == "at its deadline"
    assert time.monotonic() - started < 30
    made.write("test_it.py", PASSES)
    made.timeout = 60.0
    assert made.outcomes() == {"test_it": "passed"}


def test_a_session_that_runs_out_of_memory_fails_and_the_next_one_does_not(project: Callable[..., Any]) -> None:
    made = project()
    made.write(
        "test_it.py",
        """
        import resource

        def test_it():
            resource.setrlimit(resource.RLIMIT_AS, (2**31, 2**31))
            bytearray(2**32)
        """,
    )
    assert made.both() == {"test_it": "failed"}
    made.write("test_it.py", PASSES)
    assert made.outcomes() == {"test_it": "passed"}


@pytest.mark.parametrize(
    ("words", "how"),
    [
        ((), "daemon"),
        ((), "forked"),
        (("-n2",), "daemon"),
        pytest.param(("-n2",), "forked", marks=pytest.mark.thorough),  # xdist waits for it twice ten seconds
    ],
)
def test_what_a_session_leaves_behind_ends_with_it(
    project: Callable[..., Any], words: tuple[str, ...], how: str
) -> None:
    made = project(*words)
    made.write("daemon.py", "import os, time\nopen('pid', 'w').write(f'{os.getpid()}\\n')\ntime.sleep(600)\n")
    made.write(
        "test_it.py",
        f"""
        import os, subprocess, sys, time
        from pathlib import Path

        def test_it():
            if {how!r} == "daemon":
                subprocess.Popen([sys.executable, "daemon.py"], start_new_session=True, env={{}}, stdout=subprocess.DEVNULL)
            elif os.fork() == 0:
                os.setsid()
                if os.fork() == 0:
                    import daemon
                os._exit(0)
            while not (Path("pid").exists() and Path("pid").read_text().endswith("\\n")):
                time.sleep(0.01)
        """,
    )
    assert made.outcomes() == {"test_it": "passed"}
    assert ends(noted(made.path / "pid"))


def test_an_interrupt_ends_session_and_workers(project: Callable[..., Any], workers: tuple[str, ...]) -> None:
    made = project(*workers, "-s")
    made.write("test_it.py", PASSES)
    made.judge()
    made.write(
        "test_it.py",
        """
        import os, time
        def test_it():
            with open("pid", "w") as file: print(os.getpid(), file=file)
            time.sleep(600)
        """,
    )

    def interrupt() -> None:
        noted(made.path / "pid")
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        made.judge()
    assert ends(noted(made.path / "pid"))
    made.write("test_it.py", PASSES)
    assert made.outcomes() == {"test_it": "passed"}


def test_the_server_ends_with_the_run(project: Callable[..., Any]) -> None:
    made = project()
    made.write("test_it.py", PASSES)
    made.judge()
    server = made.server
    assert is_alive(server)
    made.warm.close()
    assert ends(server)


# -- what stays flat


def measured(server: int) -> tuple[int, int, int]:
    """Open files of the server and of this process, and the server's memory, once it has nothing to do."""
    folder = Path(f"/proc/{server}")
    calm = 0
    while calm < 10:  # between two rehearsals there is nobody for a moment
        calm = 0 if (folder / "task" / str(server) / "children").read_text() else calm + 1
        time.sleep(0.05)
    memory = int((folder / "statm").read_text().split()[1])
    return len(list((folder / "fd").iterdir())), len(list(Path("/proc/self/fd").iterdir())), memory


@SELDOM_AMONG_WORKERS
def test_many_sessions_leave_nothing(
    project: Callable[..., Any], workers: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    monkeypatch.setattr("tempfile.tempdir", None)
    often = int(os.environ.get("PYTEST_LOOP_SESSIONS", "12" if workers else "16"))
    made = project(*workers, f"--basetemp={tmp_path / 'base'}")
    verdicts = {0: "passed", 1: "failed", 2: "error"}
    flat: list[tuple[int, int, int]] = []
    for number in range(often):
        text = "import pytest, json\n@pytest.fixture\ndef broken(): raise ValueError\n"
        arguments = "broken" if number % 3 == 2 else "tmp_path"
        made.write("test_it.py", f"{text}def test_{number}({arguments}): assert {number} % 3 == 0\n")
        assert made.outcomes() == {f"test_{number}": verdicts[number % 3]}
        if number in (often // 2, often - 1):
            assert made.outcomes(is_warm=False) == {f"test_{number}": verdicts[number % 3]}
        if number >= often - 5:
            flat.append(measured(made.server))
        elif number == often // 2:
            flat = [measured(made.server)]
    for kind in (0, 1):
        assert max(one[kind] for one in flat[1:]) <= flat[0][kind]
    assert flat[-1][2] <= flat[0][2] * 1.02 + 256
    made.warm.close()
    assert list(scratch.iterdir()) == []


# -- what it must get along with
def test_capture_timeouts_and_the_rest_work_as_ever(project: Callable[..., Any]) -> None:
    text = """
        import asyncio, faulthandler, os, sys, pytest

        def test_fd(capfd):
            os.write(1, b"loud")
            assert capfd.readouterr().out == "loud"

        def test_sys(capsys):
            print("quiet")
            assert capsys.readouterr().out == "quiet\\n"

        def test_tmp_path(tmp_path, cache):
            (tmp_path / "x").write_text("x")
            cache.set("loop/x", 1)
            assert cache.get("loop/x", 0) == 1

        def test_faults():
            assert faulthandler.is_enabled()

        def test_log(caplog):
            import logging
            logging.warning("seen")
            assert "seen" in caplog.text

        @pytest.mark.timeout(0.2)
        def test_slow():
            import time
            time.sleep(30)

        @pytest.mark.asyncio
        async def test_async():
            await asyncio.sleep(0)
    """
    plugins = ("-p", "pytest_timeout", "-p", "pytest_asyncio.plugin", "-p", "pytest_randomly", "-p", "cacheprovider")
    made = project(*plugins)
    made.write("test_it.py", text)
    expected = dict.fromkeys(
        ("test_fd", "test_sys", "test_tmp_path", "test_faults", "test_log", "test_async"), "passed"
    )
    for _ in range(2):
        assert made.both() == expected | {"test_slow": "failed"}
    seeds = {line for _ in range(3) for line in made.judge("-v").output.splitlines() if "--randomly-seed" in line}
    assert len(seeds) == 3
    for mode in ("no", "sys", "tee-sys"):
        seen = project(*plugins, "--capture", mode)
        seen.write("test_it.py", "def test_it(): print('hello')\n")
        assert seen.both() == {"test_it": "passed"}
        assert ("hello" in seen.judge().output) is (mode != "sys")


def test_scripts_that_tests_start_import_what_lies_beside_them_and_judges_do_not(
    project: Callable[..., Any], workers: tuple[str, ...]
) -> None:
    made = project(*workers)
    made.write("app.py", "import helper\nprint(helper.word)\n")
    made.write("helper.py", "word = 'right'\n")
    if sys.version_info >= (3, 11):  # a worker of an older one could be misled
        made.write("struct.py", "raise SystemExit(3)\n")
    made.write(
        "test_it.py",
        """
        import subprocess, sys
        def test_it():
            done = subprocess.run([sys.executable, "app.py"], capture_output=True, text=True)
            assert (done.stdout, done.stderr) == ("right\\n", "")
        """,
    )
    assert made.both() == {"test_it": "passed"}


@SELDOM_AMONG_WORKERS
def test_coverage_is_measured_as_ever(
    project: Callable[..., Any], workers: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COVERAGE_FILE", str(tmp_path / ".coverage"))  # it erases what it finds there
    made = project(*workers, "-p", "pytest_cov", "--cov=shop", "--cov-report=term-missing")
    made.write("shop.py", "def f():\n    return 1\n\ndef g():\n    return 2\n")
    made.write("test_it.py", "import shop\ndef test_it(): assert shop.f() == 1\n")
    lines = []
    for is_warm in (True, True, False):
        output = made.judge(is_warm=is_warm).output
        lines += [line.split() for line in output.splitlines() if line.startswith("shop.py")]
    assert lines == [["shop.py", "4", "1", "75%", "5"]] * 3


# -- when it cannot be


def test_a_plugin_of_the_project_makes_sessions_cold(project: Callable[..., Any]) -> None:
    made = project("-p", "own")
    made.write("own.py", "import pytest\n@pytest.fixture\ndef size(): return 1\n")
    made.write("test_it.py", "def test_it(size): assert size == 1\n")
    assert made.outcomes() == {"test_it": "passed"}
    made.write("own.py", "import pytest\n@pytest.fixture\ndef size(): return 2\n")
    assert made.both() == {"test_it": "failed"}
    assert made.said == ["sessions start cold: a plugin has loaded own, which is a part of the project"]


@pytest.mark.parametrize(
    ("plugin", "reason"),
    [
        ("import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n", "a plugin has started a thread"),
        ("import gevent\n", "gevent changes what modules do that are loaded already"),
        (
            "import pytest\n@pytest.hookimpl(wrapper=True, tryfirst=True)\ndef pytest_load_initial_conftests():\n    return (yield)\n",
            "the plugin own begins before a session can be forked",
        ),
    ],
)  # fmt: skip
def test_a_plugin_that_cannot_be_forked_makes_sessions_cold(
    project: Callable[..., Any], environment: Any, plugin: str, reason: str
) -> None:
    environment.install("gevent.py", "")
    environment.install("own.py", plugin)
    made = project("-p", "own")
    made.write("test_it.py", PASSES)
    assert made.outcomes() == {"test_it": "passed"}
    assert made.said == [f"sessions start cold: {reason}"]
    assert made.server is None


def test_who_insists_hears_why_not(project: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    made = project()
    made.write("test_it.py", PASSES)
    made.warm.is_required = True
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(SessionError, match="--loop-session=warm: forked processes cannot be trusted on win32"):
        made.judge()


def test_a_system_that_does_not_show_children_starts_cold(
    project: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "pidfd_open")
    made = project()
    made.write("test_it.py", PASSES)
    assert made.outcomes() == {"test_it": "passed"}
    assert made.said == ["sessions start cold: the system does not show which processes are whose children"]


def test_arguments_that_pytest_refuses_are_refused_as_ever(project: Callable[..., Any]) -> None:
    made = project("--no-such-option")
    with pytest.raises(SessionError, match="no-such-option"):
        made.judge()
    assert made.said == []
    made = project("-p", "no_such_plugin")
    with pytest.raises(SessionError, match="no_such_plugin"):
        made.judge()
    assert made.said == ["sessions start cold: the server that they are forked from could not start"]


def test_a_server_that_is_never_ready_is_given_up(project: Callable[..., Any], environment: Any) -> None:
    environment.install("own.py", "import os, time\nif 'PYTEST_LOOP_SERVER' in os.environ: time.sleep(600)\n")
    made = project("-p", "own")
    made.write("test_it.py", PASSES)
    made.timeout = 3.0
    assert made.outcomes() == {"test_it": "passed"}
    assert made.said == ["sessions start cold: the server that they are forked from was not ready after 3 s"]


def test_a_session_with_other_words_is_forked_too(project: Callable[..., Any]) -> None:
    made = project()
    made.write("test_it.py", PASSES)
    found = made.judge("--collect-only")
    assert found.plan is not None
    assert list(found.plan.items) == ["test_it.py::test_it"]
    assert found.evidence == {}
    before = made.server
    assert made.outcomes() == {"test_it": "passed"}
    assert made.server == before


def test_cold_is_cold(project: Callable[..., Any]) -> None:
    made = project()
    made.write("test_it.py", PASSES)
    session = SubprocessSession(made.words, made.path, 60.0, os.environ, lambda _data: None)
    assert session.evaluate(SessionOrder()).exit_status == 0
    assert made.server is None
    assert sys.platform != "linux" or process_marks.MARK not in os.environ
