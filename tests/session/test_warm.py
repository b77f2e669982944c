"""Warm sessions when something fails: the verdict is that of a cold session, and no process is left."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from pytest_loop.core.model.session_order import SessionOrder
from pytest_loop.processes import process_marks
from pytest_loop.session.runner import SessionError, SubprocessSession
from tests.conftest import WORKERS_IF_THOROUGH
from tests.session.conftest import Environment, MakeProject

PASSES = "def test_it(): pass\n"


def is_alive(pid: int | None) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_for_end(pid: int | None) -> bool:
    """Whether a process wait_for_end within a moment."""
    deadline = time.monotonic() + 10
    while is_alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not is_alive(pid)


def read_pid(path: Path) -> int:
    """Wait for a pid that a test writes to a file."""
    deadline = time.monotonic() + 30
    while not (path.exists() and path.read_text().endswith("\n")) and time.monotonic() < deadline:
        time.sleep(0.02)
    return int(path.read_text())


# -- crashes, hangs and leftovers


def test_a_server_that_died_between_sessions_is_replaced(make_project: MakeProject) -> None:
    project = make_project()
    project.write("test_it.py", PASSES)
    assert project.find_outcomes() == {"test_it": "passed"}
    before = project.server_pid
    assert before
    os.kill(before, signal.SIGKILL)
    assert project.find_outcomes() == {"test_it": "passed"}
    assert project.server_pid not in (None, before)


def test_a_cold_session_judges_if_the_server_dies_during_a_session(make_project: MakeProject) -> None:
    project = make_project()
    kills = "import os, signal, pytest_loop\n"
    kills += "def test_it():\n    if os.getppid() != {}: os.kill(os.getppid(), signal.SIGKILL)\n"
    project.write("test_it.py", kills.format(os.getpid()))
    assert project.find_outcomes() == {"test_it": "passed"}
    assert project.lines == []
    assert project.find_outcomes() == {"test_it": "passed"}
    assert project.lines == ["sessions start cold: the server that they are forked from died again and again"]
    assert project.find_outcomes() == {"test_it": "passed"}
    assert project.server_pid is None


def test_a_session_that_dies_names_the_running_test(make_project: MakeProject) -> None:
    project = make_project()
    project.write("test_it.py", "import os, signal\ndef test_it(): os.kill(os.getpid(), signal.SIGKILL)\n")
    for _ in range(2):
        result = project.run_session()
        assert (
            result.make_missing_evidence("test_it.py::test_it").text == "not verified: the session died here (signal 9)"
        )
    project.write("test_it.py", "import os\ndef test_it(): os._exit(7)\n")
    assert project.run_session().ending == "exit code 7"


def test_a_worker_that_dies_is_an_error_of_its_test(make_project: MakeProject) -> None:
    project = make_project("-n2", "--max-worker-restart=0")
    project.write(
        "test_it.py", "import os, signal\ndef test_it(): os.kill(os.getpid(), signal.SIGKILL)\ndef test_b(): pass\n"
    )
    assert project.find_outcomes()["test_it"] == project.find_outcomes(is_warm=False)["test_it"] == "error"


@pytest.mark.measured
def test_a_worker_that_dies_is_replaced(make_project: MakeProject) -> None:
    project = make_project("-n1")
    text = "import os, signal\ndef test_a(): os.kill(os.getpid(), signal.SIGKILL)\ndef test_b(): pass\n"
    project.write("test_it.py", text)
    assert project.compare_sessions() == {"test_a": "error", "test_b": "passed"}


def list_children(pid: int | None) -> set[str]:
    return set(Path(f"/proc/{pid}/task/{pid}/children").read_text().split())


def test_workers_keep_nothing_of_an_earlier_session(make_project: MakeProject) -> None:
    project = make_project("-n2")
    servers = set()
    for number in range(3):  # the first session needs a third worker
        project.write(
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
        project.write("shop.py", f"number = {number}{' ' * number}\n")  # as long, Python itself could miss the edit
        assert project.find_outcomes() == {"test_a": "passed", "test_b": "passed" if number else "error"}
        servers.add(project.server_pid)
        assert list_children(project.server_pid) == set()
    assert len(servers) == 1


def test_a_session_that_hangs_ends_at_its_deadline(make_project: MakeProject) -> None:
    project = make_project()
    project.write("test_it.py", PASSES)
    project.run_session()
    project.write("test_it.py", "import time\ndef test_it(): time.sleep(600)\n")
    project.timeout = 2.0
    started = time.monotonic()
    assert project.run_session().ending == "at its deadline"
    assert time.monotonic() - started < 30
    project.write("test_it.py", PASSES)
    project.timeout = 60.0
    assert project.find_outcomes() == {"test_it": "passed"}


def test_a_session_after_one_that_ran_out_of_memory_passes(make_project: MakeProject) -> None:
    project = make_project()
    project.write(
        "test_it.py",
        """
        import resource

        def test_it():
            resource.setrlimit(resource.RLIMIT_AS, (2**31, 2**31))
            bytearray(2**32)
        """,
    )
    assert project.compare_sessions() == {"test_it": "failed"}
    project.write("test_it.py", PASSES)
    assert project.find_outcomes() == {"test_it": "passed"}


@pytest.mark.parametrize(
    ("words", "how"),
    [
        ((), "daemon"),
        ((), "forked"),
        (("-n2",), "daemon"),
        pytest.param(("-n2",), "forked", marks=pytest.mark.thorough),  # xdist waits for it twice ten seconds
    ],
)
def test_processes_that_a_session_started_end_with_it(
    make_project: MakeProject, words: tuple[str, ...], how: str
) -> None:
    project = make_project(*words)
    project.write("daemon.py", "import os, time\nopen('pid', 'w').write(f'{os.getpid()}\\n')\ntime.sleep(600)\n")
    project.write(
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
    assert project.find_outcomes() == {"test_it": "passed"}
    assert wait_for_end(read_pid(project.path / "pid"))


def test_an_interrupt_ends_the_session_and_its_workers(make_project: MakeProject, workers: tuple[str, ...]) -> None:
    project = make_project(*workers, "-s")
    project.write("test_it.py", PASSES)
    project.run_session()
    project.write(
        "test_it.py",
        """
        import os, time
        def test_it():
            with open("pid", "w") as file: print(os.getpid(), file=file)
            time.sleep(600)
        """,
    )

    def interrupt() -> None:
        read_pid(project.path / "pid")
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        project.run_session()
    assert wait_for_end(read_pid(project.path / "pid"))
    project.write("test_it.py", PASSES)
    assert project.find_outcomes() == {"test_it": "passed"}


def test_the_server_ends_with_the_run(make_project: MakeProject) -> None:
    project = make_project()
    project.write("test_it.py", PASSES)
    project.run_session()
    server = project.server_pid
    assert is_alive(server)
    project.launcher.close()
    assert wait_for_end(server)


# -- leaks


def measure_server(server: int | None) -> tuple[int, int, int]:
    """Return the open files of the server and of this process, and the server's memory, once it is idle."""
    folder = Path(f"/proc/{server}")
    calm = 0
    while calm < 10:  # between two trials there is no child for a moment
        calm = 0 if (folder / "task" / str(server) / "children").read_text() else calm + 1
        time.sleep(0.05)
    memory = int((folder / "statm").read_text().split()[1])
    return len(list((folder / "fd").iterdir())), len(list(Path("/proc/self/fd").iterdir())), memory


@WORKERS_IF_THOROUGH
def test_many_sessions_leak_no_files_and_no_memory(
    make_project: MakeProject, workers: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    monkeypatch.setattr("tempfile.tempdir", None)
    often = int(os.environ.get("PYTEST_LOOP_SESSIONS", "12" if workers else "16"))
    project = make_project(*workers, f"--basetemp={tmp_path / 'base'}")
    verdicts = {0: "passed", 1: "failed", 2: "error"}
    flat: list[tuple[int, int, int]] = []
    for number in range(often):
        text = "import pytest, json\n@pytest.fixture\ndef broken(): raise ValueError\n"
        arguments = "broken" if number % 3 == 2 else "tmp_path"
        project.write("test_it.py", f"{text}def test_{number}({arguments}): assert {number} % 3 == 0\n")
        assert project.find_outcomes() == {f"test_{number}": verdicts[number % 3]}
        if number in (often // 2, often - 1):
            assert project.find_outcomes(is_warm=False) == {f"test_{number}": verdicts[number % 3]}
        if number >= often - 5:
            flat.append(measure_server(project.server_pid))
        elif number == often // 2:
            flat = [measure_server(project.server_pid)]
    for kind in (0, 1):
        assert max(measurement[kind] for measurement in flat[1:]) <= flat[0][kind]
    assert flat[-1][2] <= flat[0][2] * 1.02 + 256
    project.launcher.close()
    assert list(scratch.iterdir()) == []


# -- other plugins


@pytest.mark.thorough
def test_capture_timeouts_and_plugins_work_in_warm_sessions(make_project: MakeProject) -> None:
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
    project = make_project(*plugins)
    project.write("test_it.py", text)
    expected = dict.fromkeys(
        ("test_fd", "test_sys", "test_tmp_path", "test_faults", "test_log", "test_async"), "passed"
    )
    for _ in range(2):
        assert project.compare_sessions() == expected | {"test_slow": "failed"}
    seeds = {
        line for _ in range(3) for line in project.run_session("-v").output.splitlines() if "--randomly-seed" in line
    }
    assert len(seeds) == 3
    for mode in ("no", "sys", "tee-sys"):
        seen = make_project(*plugins, "--capture", mode)
        seen.write("test_it.py", "def test_it(): print('hello')\n")
        assert seen.compare_sessions() == {"test_it": "passed"}
        assert ("hello" in seen.run_session().output) is (mode != "sys")


def test_modules_of_the_working_folder_are_imported_by_scripts_and_hide_no_standard_module(
    make_project: MakeProject, workers: tuple[str, ...]
) -> None:
    project = make_project(*workers)
    project.write("app.py", "import helper\nprint(helper.word)\n")
    project.write("helper.py", "word = 'right'\n")
    if sys.version_info >= (3, 11):  # a worker of an older version would import it
        project.write("struct.py", "raise SystemExit(3)\n")
    project.write(
        "test_it.py",
        """
        import subprocess, sys
        def test_it():
            done = subprocess.run([sys.executable, "app.py"], capture_output=True, text=True)
            assert (done.stdout, done.stderr) == ("right\\n", "")
        """,
    )
    assert project.compare_sessions() == {"test_it": "passed"}


@WORKERS_IF_THOROUGH
def test_coverage_is_measured_in_warm_sessions(
    make_project: MakeProject, workers: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COVERAGE_FILE", str(tmp_path / ".coverage"))  # it erases what it finds there
    project = make_project(*workers, "-p", "pytest_cov", "--cov=shop", "--cov-report=term-missing")
    project.write("shop.py", "def f():\n    return 1\n\ndef g():\n    return 2\n")
    project.write("test_it.py", "import shop\ndef test_it(): assert shop.f() == 1\n")
    lines = []
    for is_warm in (True, True, False):
        output = project.run_session(is_warm=is_warm).output
        lines += [line.split() for line in output.splitlines() if line.startswith("shop.py")]
    assert lines == [["shop.py", "4", "1", "75%", "5"]] * 3


# -- sessions that cannot be warm


def test_a_plugin_of_the_project_makes_sessions_cold(make_project: MakeProject) -> None:
    project = make_project("-p", "own")
    project.write("own.py", "import pytest\n@pytest.fixture\ndef size(): return 1\n")
    project.write("test_it.py", "def test_it(size): assert size == 1\n")
    assert project.find_outcomes() == {"test_it": "passed"}
    project.write("own.py", "import pytest\n@pytest.fixture\ndef size(): return 2\n")
    assert project.compare_sessions() == {"test_it": "failed"}
    assert project.lines == ["sessions start cold: a plugin has loaded own, which is a part of the project"]


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
    make_project: MakeProject, environment: Environment, plugin: str, reason: str
) -> None:
    environment.install("gevent.py", "")
    environment.install("own.py", plugin)
    project = make_project("-p", "own")
    project.write("test_it.py", PASSES)
    assert project.find_outcomes() == {"test_it": "passed"}
    assert project.lines == [f"sessions start cold: {reason}"]
    assert project.server_pid is None


def test_a_required_warm_session_that_is_impossible_is_an_error(
    make_project: MakeProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = make_project()
    project.write("test_it.py", PASSES)
    project.launcher.is_required = True
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(SessionError, match="--loop-session=warm: forked processes cannot be trusted on win32"):
        project.run_session()


def test_a_system_without_pidfd_starts_sessions_cold(
    make_project: MakeProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "pidfd_open")
    project = make_project()
    project.write("test_it.py", PASSES)
    assert project.find_outcomes() == {"test_it": "passed"}
    assert project.lines == ["sessions start cold: the system does not show which processes are whose children"]


def test_arguments_that_pytest_refuses_are_an_error(make_project: MakeProject) -> None:
    project = make_project("--no-such-option")
    with pytest.raises(SessionError, match="no-such-option"):
        project.run_session()
    assert project.lines == []
    project = make_project("-p", "no_such_plugin")
    with pytest.raises(SessionError, match="no_such_plugin"):
        project.run_session()
    assert project.lines == ["sessions start cold: the server that they are forked from could not start"]


@pytest.mark.thorough
def test_sessions_start_cold_if_the_server_is_never_ready(make_project: MakeProject, environment: Environment) -> None:
    environment.install("own.py", "import os, time\nif 'PYTEST_LOOP_SERVER' in os.environ: time.sleep(600)\n")
    project = make_project("-p", "own")
    project.write("test_it.py", PASSES)
    project.timeout = 3.0
    assert project.find_outcomes() == {"test_it": "passed"}
    assert project.lines == ["sessions start cold: the server that they are forked from was not ready after 3 s"]


def test_a_session_with_other_arguments_is_forked_too(make_project: MakeProject) -> None:
    project = make_project()
    project.write("test_it.py", PASSES)
    result = project.run_session("--collect-only")
    assert result.plan is not None
    assert list(result.plan.items) == ["test_it.py::test_it"]
    assert result.evidence == {}
    before = project.server_pid
    assert project.find_outcomes() == {"test_it": "passed"}
    assert project.server_pid == before


def test_a_cold_session_starts_no_server(make_project: MakeProject) -> None:
    project = make_project()
    project.write("test_it.py", PASSES)
    session = SubprocessSession(project.arguments, project.path, 60.0, os.environ, lambda _data: None)
    assert session.evaluate(SessionOrder()).exit_status == 0
    assert project.server_pid is None
    assert sys.platform != "linux" or process_marks.MARK not in os.environ
