"""`run_command`: output, endings and leftover processes."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_loop.processes.child import (
    CannotStartError,
    Command,
    CommandResult,
    Ending,
    end_group,
    find_program_problem,
    run_command,
)

PYTHON = sys.executable
linux_only = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="the system shows no environments")
Run = Callable[..., CommandResult]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run a short Python script in a temporary folder."""

    def run(script: str, timeout: float = 30, **fields: object) -> CommandResult:
        return run_command(Command([PYTHON, "-c", script], tmp_path, timeout, **fields))  # type: ignore[arg-type]

    return run


def is_alive(pid: int) -> bool:
    """Return whether a process runs; a zombie does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def wait_until_gone(pid: int) -> bool:
    """Return whether a killed process disappears within seconds."""
    deadline = time.monotonic() + 5
    while is_alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not is_alive(pid)


def test_result_has_both_streams_and_the_exit_code(run: Run) -> None:
    done = run("import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)")
    assert done == CommandResult(3, "out\n", "err\n", Ending.COMPLETED)
    assert done.output == "out\n\nerr\n"


def test_a_command_that_closes_its_output_early_is_waited_for(run: Run) -> None:
    done = run("import os, time\nos.close(1); os.close(2)\ntime.sleep(0.3)\nos._exit(4)")
    assert done == CommandResult(4, "", "", Ending.COMPLETED)


def test_a_command_has_no_terminal_and_empty_input(run: Run) -> None:
    done = run(
        "import os, sys\nprint(repr(sys.stdin.read()))\ntry: os.open('/dev/tty', os.O_RDWR)\nexcept OSError: print('none')"
    )
    assert done.stdout == "''\nnone\n"


def test_a_string_runs_in_a_shell(tmp_path: Path) -> None:
    assert run_command(Command("echo $((1 + 2)) | cat", tmp_path, 30)).stdout == "3\n"


def test_output_is_passed_on_as_it_comes(run: Run) -> None:
    pieces: list[tuple[float, bytes]] = []
    run(
        "import time\nprint('one', flush=True)\ntime.sleep(0.5)\nprint('two', flush=True)",
        on_output=lambda data: pieces.append((time.monotonic(), data)),
    )
    assert b"".join(data for _, data in pieces) == b"one\ntwo\n"
    assert pieces[-1][0] - pieces[0][0] > 0.3


def test_megabytes_of_input_and_output_do_not_deadlock(run: Run) -> None:
    prompt = b"0123456789abcdef" * 300_000
    done = run(
        "import sys\nfor line in iter(lambda: sys.stdin.buffer.read(1000), b''): sys.stdout.buffer.write(line)",
        stdin=prompt,
        output_limit=2 * len(prompt),
    )
    assert done.stdout.encode() == prompt


@pytest.mark.parametrize(
    "script",
    [
        "print('done')",
        "import os, time; os.close(0); time.sleep(0.3); print('done')",
        "import sys; sys.stdin.read(5); print('done')",
    ],
    ids=["never reads", "closes it", "reads a little"],
)
def test_a_command_need_not_read_its_input(run: Run, script: str) -> None:
    assert run(script, stdin=b"x" * 5_000_000).stdout == "done\n"


def test_a_command_may_close_its_output_and_go_on_reading(run: Run, tmp_path: Path) -> None:
    script = "import os, sys; os.close(1); os.close(2); open('length', 'w').write(str(len(sys.stdin.buffer.read())))"
    done = run(script, stdin=b"x" * 3_000_000)
    assert done.exit_code == 0
    assert (tmp_path / "length").read_text() == "3000000"


def test_a_command_may_close_all_streams_and_work_on(run: Run, tmp_path: Path) -> None:
    script = "import os, time\nfor number in (0, 1, 2): os.close(number)\ntime.sleep(0.3); open('done', 'w')"
    assert run(script).ending is Ending.COMPLETED
    assert (tmp_path / "done").exists()


@pytest.mark.parametrize(
    "script",
    [
        "import sys\nfor _ in range(10**9 // 10**6): sys.stdout.write('x' * 999_999 + '\\n')",
        "import sys; sys.stdout.write('x' * 50_000_000)",
    ],
    ids=["1 GB", "one line of 50 MB"],
)
def test_long_output_is_cut_and_counts_the_lost_bytes(run: Run, script: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    done = run(script, 120, output_limit=1_000_000)
    assert done.exit_code == 0
    assert len(done.stdout) < 1_001_000
    assert done.lost_bytes > 48_000_000
    assert f"[... {done.lost_bytes:,} bytes left out ...]" in done.stdout
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # kB


def test_output_within_the_limit_is_complete(run: Run) -> None:
    done = run("import sys; sys.stdout.write('ab' * 500_000)", output_limit=1_000_000)
    assert done.stdout == "ab" * 500_000
    assert done.lost_bytes == 0


def test_undecodable_bytes_are_replaced(run: Run) -> None:
    assert run(r"import sys; sys.stdout.buffer.write(b'a\xff\xfe\x00b')").stdout == "a\ufffd\ufffd\0b"


def test_a_deadline_ends_the_command_and_keeps_its_output(tmp_path: Path) -> None:
    started = time.monotonic()
    done = run_command(Command("echo working; sleep 60", tmp_path, 0.7))
    assert (done.ending, done.exit_code, done.stdout) == (Ending.DEADLINE, -signal.SIGTERM, "working\n")
    assert time.monotonic() - started < 30


def test_endless_output_ends_at_the_deadline(run: Run) -> None:
    done = run("while True: print('x' * 1000)", 0.5, output_limit=10_000)
    assert done.ending is Ending.DEADLINE
    assert len(done.stdout) < 11_000


def test_silence_ends_a_command_but_slow_output_does_not(tmp_path: Path) -> None:
    words = "for n in 1 2 3 4 5 6; do echo .; sleep 0.3; done"
    assert run_command(Command(words, tmp_path, 30, silence=1)).ending is Ending.COMPLETED
    done = run_command(Command("echo .; sleep 60", tmp_path, 30, silence=1))
    assert (done.ending, done.stdout) == (Ending.SILENCE, ".\n")


def test_a_command_ends_when_it_should_not_continue(run: Run) -> None:
    started = time.monotonic()
    done = run("import time; time.sleep(60)", should_continue=lambda: time.monotonic() < started + 0.3)
    assert done.ending is Ending.REQUEST
    assert time.monotonic() - started < 30


def test_output_after_sigterm_is_kept(tmp_path: Path) -> None:
    bye = "trap 'head -c 1000000 /dev/zero; echo bye; exit 5' TERM; while :; do sleep 0.1; done"
    done = run_command(Command(bye, tmp_path, 0.7))
    assert done.stdout.endswith("bye\n")
    assert (len(done.stdout), done.exit_code) == (1_000_004, 5)


def test_a_command_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    done = run_command(Command("trap '' TERM; sleep 60", tmp_path, 0.7))
    assert (done.ending, done.exit_code) == (Ending.DEADLINE, -signal.SIGKILL)


CHILDREN = {
    "a child in the group": "sleep 60 &",
    "a child of its own session": "setsid sleep 60 &",
    "a daemon without our pipes": "setsid sleep 60 >/dev/null 2>&1 &",
    "a child that ignores SIGTERM": "(trap '' TERM; exec sleep 60) &",
}


@linux_only
@pytest.mark.parametrize("then", ["echo done", "sleep 60"], ids=["ends", "is ended"])
@pytest.mark.parametrize("child", CHILDREN.values(), ids=CHILDREN)
def test_no_descendant_outlives_a_thorough_command(tmp_path: Path, child: str, then: str) -> None:
    limit = 0.7 if "sleep" in then else 30
    started = time.monotonic()
    done = run_command(Command(f"{child} echo $! > pid; {then}", tmp_path, limit, ends_detached=True))
    assert done.ending is (Ending.DEADLINE if "sleep" in then else Ending.COMPLETED)
    assert wait_until_gone(int((tmp_path / "pid").read_text()))
    assert time.monotonic() - started < 30


@linux_only
def test_a_descendant_that_holds_the_pipes_is_ended(run: Run, tmp_path: Path) -> None:
    script = (
        "import subprocess\n"
        "for name, more in (('holds', {}), ('free', {'stdout': -3, 'stderr': -3})):\n"
        "    child = subprocess.Popen(['sleep', '60'], start_new_session=True, **more)\n"
        "    open(name, 'w').write(str(child.pid))\n"
    )
    started = time.monotonic()
    assert run(script).ending is Ending.COMPLETED
    assert wait_until_gone(int((tmp_path / "holds").read_text()))
    assert time.monotonic() - started < 30


@linux_only
def test_an_unmarked_descendant_delays_the_end_only_briefly(run: Run, tmp_path: Path) -> None:
    script = "import subprocess\nchild = subprocess.Popen(['sleep', '60'], start_new_session=True, env={})\nopen('pid', 'w').write(str(child.pid))"
    started = time.monotonic()
    assert run(script, ends_detached=True).ending is Ending.COMPLETED
    assert time.monotonic() - started < 30
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


def test_an_interrupt_ends_the_command(run: Run, tmp_path: Path) -> None:
    def interrupt(_data: bytes) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(
            "import os, time; print(os.getpid(), file=open('pid', 'w')); print('x', flush=True); time.sleep(60)",
            on_output=interrupt,
        )
    assert wait_until_gone(int((tmp_path / "pid").read_text()))


def test_an_interrupt_during_the_grace_period_kills_the_group(tmp_path: Path) -> None:
    script = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True); time.sleep(60)"
    )
    child = subprocess.Popen([PYTHON, "-c", script], stdout=subprocess.PIPE, start_new_session=True)
    with child:
        assert child.stdout is not None
        child.stdout.readline()
        timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            end_group(child)
        assert child.returncode == -signal.SIGKILL


def test_ending_a_group_that_has_ended_does_nothing() -> None:
    with subprocess.Popen(["true"]) as child:
        child.wait()
        end_group(child)
    assert child.returncode == 0


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["no-such-command"], "cannot run 'no-such-command': no such command is installed here"),
        (["./none"], "cannot run './none': there is no such file"),
        (["./folder"], "cannot run './folder': there is no such file"),
        (["./plain"], "cannot run './plain': Permission denied (make it executable)"),
        (["./strange"], "cannot run './strange': the program of its first line is missing"),
        (["./empty"], "cannot run './empty': Exec format error"),
        (["a\0b"], "cannot run 'a\\x00b': embedded null byte"),
    ],
)
def test_a_start_error_names_the_reason(tmp_path: Path, command: list[str], message: str) -> None:
    (tmp_path / "folder").mkdir()
    for name, text, mode in (("plain", "", 0o600), ("strange", "#!/no/such/program\n", 0o700), ("empty", "", 0o700)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(mode)
    with pytest.raises(CannotStartError) as error:
        run_command(Command(command, tmp_path, 30))
    assert str(error.value) == message


def test_a_start_error_names_a_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(CannotStartError, match=r"cannot run 'true': the folder .*/none does not exist"):
        run_command(Command(["true"], tmp_path / "none", 30))


def test_a_program_is_found_on_the_path_of_its_environment(tmp_path: Path) -> None:
    tool = tmp_path / "tool"
    tool.write_text("#!/bin/sh\necho hello\n")
    tool.chmod(0o700)
    assert find_program_problem("tool", tmp_path, {"PATH": str(tmp_path)}) is None
    assert find_program_problem("./tool", tmp_path) is None
    assert run_command(Command(["tool"], tmp_path, 30, env={"PATH": f"{tmp_path}:/usr/bin:/bin"})).stdout == "hello\n"
