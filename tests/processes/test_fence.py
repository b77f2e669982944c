"""Fences: what processes inside cannot write, what stays as it is, and how they end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pytest_loop.processes.child import CannotStartError, Command, CommandResult, Ending, run_command
from pytest_loop.processes.fence import Fence, FenceTool, find_tool_problem, list_writable_parts, probe_tools
from pytest_loop.processes.process_marks import MARK
from tests.ordinary_user import give_to_user, make_user_command, make_user_folder, needs_user

Run = Callable[..., CommandResult]
WORKING = [tool for tool in FenceTool if not find_tool_problem(tool)]
MOUNTING = [tool for tool in WORKING if tool.has_mounts]
# An attempt of each kind to change a sealed file; all of them must fail.
ATTEMPTS = {
    "shell": "echo cheat > tests/test_a.py",
    "append": "echo cheat >> conftest.py",
    "sed": "sed -i s/sealed/cheat/ conftest.py",
    "python": "python3 -c \"open('tests/test_a.py', 'w')\"",
    "rename over": "echo cheat > new.py && mv -f new.py conftest.py",
    "rename away": "mv conftest.py other.py",
    "rename the folder": "mv tests other",
    "remove": "rm -rf tests",
    "new file": "touch tests/test_new.py",
    "hard link": "ln tests/test_a.py link.py && echo cheat > link.py",
    "mode": "chmod 777 tests/test_a.py",
    "remount": "mount -o remount,bind,rw tests && echo cheat > tests/test_a.py",
    "unmount": "umount -l tests && echo cheat > tests/test_a.py",
    "namespace": "unshare --map-root-user --mount sh -c 'umount -l tests; echo cheat > tests/test_a.py'",
    "other root": "echo cheat > /proc/1/root$PWD/tests/test_a.py",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project in which `tests` and `conftest.py` are to be read-only, except `tests/output`."""
    folder = tmp_path.resolve() / "project"
    (folder / "tests" / "output").mkdir(parents=True)
    for name in ("tests/test_a.py", "conftest.py", "product.py"):
        (folder / name).write_text("sealed\n")
    return folder


def make_fence(tool: FenceTool, project: Path) -> Fence:
    """Return a fence around the project; Landlock can only protect what lies elsewhere."""
    if not tool.has_mounts:
        return Fence(tool, (os.path.realpath(sysconfig.get_path("stdlib")),))
    read_only = (str(project / "tests"), str(project / "conftest.py"), str(project / "missing.py"))
    return Fence(tool, read_only, (str(project / "tests" / "output"),))


@pytest.fixture
def run(project: Path) -> Run:
    """Run a shell command in a fence around the project."""

    def run(script: str, tool: FenceTool, timeout: float = 30, **fields: object) -> CommandResult:
        words = ["sh", "-c", script]
        return run_command(Command(words, project, timeout, fence=make_fence(tool, project), **fields))  # type: ignore[arg-type]

    return run


def read_files(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("tool", MOUNTING)
def test_no_attempt_changes_a_sealed_file(run: Run, project: Path, tool: FenceTool) -> None:
    before = read_files(project)
    lines = [f"({script}) 2>/dev/null && echo {name!r}; rm -f new.py link.py" for name, script in ATTEMPTS.items()]
    assert run("\n".join(lines), tool).stdout == ""
    assert read_files(project) == before


@pytest.mark.parametrize("tool", MOUNTING)
def test_the_error_says_why(run: Run, tool: FenceTool) -> None:
    assert "Read-only file system" in run("echo cheat > tests/test_a.py", tool).stderr


@pytest.mark.parametrize("tool", WORKING)
def test_everything_else_stays_as_it_is(
    run: Run, project: Path, tool: FenceTool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    script = """
        echo new > next.py && mv next.py product.py
        echo out > tests/output/result.txt
        touch ~/.note && mkdir ~/.cache
        mktemp > /dev/null && echo temporary
        id -u; pwd; cat
    """
    result = run(textwrap.dedent(script), tool, stdin=b"input")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == f"temporary\n{os.geteuid()}\n{project}\ninput"
    assert (project / "product.py").read_text() == "new\n"
    assert (project / "tests" / "output" / "result.txt").read_text() == "out\n"
    assert (tmp_path / "home" / ".note").exists()


@pytest.mark.parametrize("tool", WORKING)
@pytest.mark.parametrize(("script", "code"), [("exit 7", 7), ("exit 255", 255), ("kill -9 $$", -9), ("true", 0)])
def test_exit_codes_are_those_of_the_command(run: Run, tool: FenceTool, script: str, code: int) -> None:
    assert run(script, tool).exit_code == code


@pytest.mark.parametrize("tool", WORKING)
def test_a_daemon_ends_with_the_command(run: Run, project: Path, tool: FenceTool) -> None:
    daemon = "(setsid env -i sh -c 'while :; do date +%N > tick; done' > /dev/null 2>&1 &)"
    result = run(f"{daemon}; while ! [ -s tick ]; do :; done; echo started", tool)
    assert result.stdout == "started\n"
    last = (project / "tick").read_text()
    time.sleep(0.1)
    assert (project / "tick").read_text() == last


@pytest.mark.parametrize("tool", WORKING)
def test_a_command_at_its_deadline_may_finish_its_work(run: Run, tool: FenceTool) -> None:
    result = run("trap 'echo finished; exit 5' TERM; echo up; while :; do sleep 0.01; done", tool, timeout=0.7)
    assert (result.ending, result.stdout, result.exit_code) == (Ending.DEADLINE, "up\nfinished\n", 5)


@pytest.mark.parametrize("tool", WORKING)
def test_a_command_that_ignores_its_deadline_is_killed(run: Run, tool: FenceTool) -> None:
    result = run("trap '' TERM; setsid sh -c 'trap \"\" TERM; sleep 60' & sleep 60", tool, timeout=0.3)
    assert (result.ending, result.exit_code == 0) == (Ending.DEADLINE, False)


@pytest.mark.parametrize("tool", WORKING)
def test_a_missing_program_is_named(project: Path, tool: FenceTool) -> None:
    command = Command(["no-such-program"], project, 30, fence=make_fence(tool, project))
    with pytest.raises(CannotStartError, match="cannot run 'no-such-program': no such command is installed here"):
        run_command(command)


@pytest.mark.parametrize("tool", WORKING)
def test_a_string_runs_in_a_shell(project: Path, tool: FenceTool) -> None:
    assert run_command(Command("echo $((1 + 2))", project, 30, fence=make_fence(tool, project))).stdout == "3\n"


@pytest.mark.parametrize("tool", WORKING)
def test_descriptors_and_variables_are_passed_on(project: Path, tool: FenceTool) -> None:
    read_end, write_end = os.pipe()
    words = ["sh", "-c", f"echo $GREETING > /dev/fd/{write_end}"]
    env = {**os.environ, "GREETING": "hello"}
    fence = make_fence(tool, project)
    run_command(Command(words, project, 30, env=env, pass_fds=(write_end,), fence=fence))
    os.close(write_end)
    with os.fdopen(read_end) as pipe:
        assert pipe.read() == "hello\n"


@pytest.mark.parametrize("tool", MOUNTING)
def test_processes_outside_are_out_of_reach(run: Run, tool: FenceTool) -> None:
    assert int(run(f"kill -0 {os.getpid()} 2>/dev/null || echo $$", tool).stdout) < 50


@pytest.mark.parametrize("tool", MOUNTING)
def test_shared_pids_keep_a_command_visible(project: Path, tool: FenceTool) -> None:
    words = make_fence(tool, project).wrap(
        ["sh", "-c", f"kill -0 {os.getpid()} && : > conftest.py"], has_own_pids=False
    )
    result = subprocess.run(words, cwd=project, capture_output=True, text=True, check=False)
    assert (result.returncode, "Read-only file system" in result.stderr) == (2, True)


@pytest.mark.parametrize("tool", WORKING)
def test_a_command_ends_with_the_process_that_waits_for_it(project: Path, tool: FenceTool) -> None:
    script = f"""
        from pathlib import Path
        from pytest_loop.processes.child import Command, run_command
        from pytest_loop.processes.fence import Fence, FenceTool
        words = ["sh", "-c", "setsid sh -c 'while :; do date +%N > tick; done' & wait"]
        run_command(Command(words, Path({str(project)!r}), 60, fence=Fence(FenceTool({tool.value!r}), ())))
    """
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)])
    tick = project / "tick"
    while not (tick.exists() and tick.read_text()):
        time.sleep(0.01)
    process.kill()
    process.wait()
    time.sleep(0.3)
    last = tick.read_text()
    time.sleep(0.1)
    assert tick.read_text() == last


USER_SCRIPT = """
import json, sys
from pathlib import Path
from pytest_loop.processes.child import Command, run_command
from pytest_loop.processes.fence import Fence, FenceTool

project, tool, script = Path(sys.argv[1]), FenceTool(sys.argv[2]), sys.argv[3]
read_only = (str(project / "tests"), str(project / "conftest.py")) if tool.has_mounts else ("/usr",)
fence = Fence(tool, read_only)
result = run_command(Command(["sh", "-c", script], project, 30, fence=fence, ends_detached=True))
print(json.dumps([result.exit_code, result.stdout, result.stderr]))
"""


@pytest.fixture
def user_project(project: Path) -> Iterator[Path]:
    """The same project, owned by a user other than root."""
    with make_user_folder() as folder:
        copy = folder / "project"
        project.rename(copy)
        give_to_user(copy)
        yield copy


@needs_user
@pytest.mark.parametrize("tool", WORKING)
def test_an_ordinary_user_is_fenced_too(user_project: Path, tool: FenceTool) -> None:
    before = read_files(user_project)
    lines = [f"({script}) 2>/dev/null && echo {name!r}; rm -f new.py link.py" for name, script in ATTEMPTS.items()]
    script = "\n".join([*(lines if tool.has_mounts else ()), "echo fixed > product.py; id -u"])
    words = make_user_command([sys.executable, "-c", USER_SCRIPT, str(user_project), tool.value, script])
    process = subprocess.run(words, capture_output=True, text=True, check=False, cwd="/")
    assert process.returncode == 0, process.stderr
    code, stdout, _ = json.loads(process.stdout)
    assert (code, stdout) == (0, f"{user_project.stat().st_uid}\n")
    assert read_files(user_project) == {**before, "product.py": "fixed\n"}


@pytest.mark.skipif(FenceTool.LANDLOCK not in WORKING, reason="this kernel has no Landlock")
def test_landlock_keeps_a_folder_read_only(project: Path) -> None:
    fence = Fence(FenceTool.LANDLOCK, (str(project / "tests"),), (str(project / "tests" / "output"),))
    script = "touch tests/new; touch new; echo out > tests/output/result.txt; echo new > product.py"
    result = run_command(Command(["sh", "-c", script], project, 30, fence=fence))
    assert "cannot touch 'tests/new': Permission denied" in result.stderr
    assert "cannot touch 'new'" in result.stderr  # the folder of a read-only path takes no new files
    assert read_files(project)["tests/output/result.txt"] == "out\n"
    assert read_files(project)["product.py"] == "new\n"


def test_writable_parts_avoid_links_and_read_only_paths(project: Path) -> None:
    (project / "link").symlink_to("tests")
    (project / "docs").mkdir()
    parts = list(list_writable_parts(make_fence(FenceTool.BUBBLEWRAP, project), str(project)))
    assert parts == [str(project / name) for name in ("docs", "product.py", "tests/output")]


RESTRICTED_SCRIPT = """
import sys
from pathlib import Path
from pytest_loop.processes.fence import probe_tools
from pytest_loop.processes.landlock import restrict_writes

for _ in range(int(sys.argv[1])):
    restrict_writes([Path("/")])
print(*probe_tools(), sep="|")
"""


@pytest.mark.skipif(FenceTool.LANDLOCK not in WORKING, reason="this kernel has no Landlock")
@pytest.mark.parametrize(
    ("layers", "tool", "problem"), [(1, "FenceTool.LANDLOCK", ""), (16, "None", "Landlock does not work here")]
)
def test_probe_finds_what_the_kernel_allows(layers: int, tool: str, problem: str) -> None:
    """A process that Landlock restricts cannot mount, and after 16 layers it cannot be restricted further."""
    words = [sys.executable, "-c", RESTRICTED_SCRIPT, str(layers)]
    output = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    found, _, reason = output.partition("|")
    assert (found, problem in reason) == (tool, True)
    assert ("unshare does not work here" in reason) == (layers == 16)


def test_probe_is_made_once() -> None:
    assert probe_tools() is probe_tools()
    assert (probe_tools().tool is None) == (not WORKING)


def test_fenced_processes_carry_the_mark(run: Run) -> None:
    """The mark is still in the environment of a fenced process, for a run that is resumed after a crash."""
    for tool in WORKING[:1]:
        assert run(f"echo ${MARK}", tool).stdout.strip()


HIDDEN_ATTEMPTS = {
    "read": 'cat "$HOME/.local/state/loop/key"',
    "replace": 'echo cheat > "$HOME/.local/state/loop/key"; false',
    "rename the folder around it": 'mv "$HOME/.local/state" "$HOME/.local/other"',
    "rename the outer folder": 'mv "$HOME/.local" "$HOME/other"',
    "unmount": 'umount -l "$HOME/.local/state/loop" && cat "$HOME/.local/state/loop/key"',
}


@pytest.mark.parametrize("attempt", HIDDEN_ATTEMPTS)
@pytest.mark.parametrize("tool", MOUNTING, ids=lambda tool: tool.value)
def test_hidden_folder_is_neither_read_nor_replaced(
    tool: FenceTool, attempt: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path.resolve() / "home"
    folder = home / ".local/state/loop"
    folder.mkdir(parents=True)
    (folder / "key").write_text("secret")
    monkeypatch.setenv("HOME", str(home))
    command = Command(["sh", "-c", HIDDEN_ATTEMPTS[attempt]], home, 60, fence=Fence(tool, (), (), str(folder)))
    result = run_command(command)
    assert result.exit_code != 0
    assert "secret" not in result.output
    assert (folder / "key").read_text() == "secret"


HIDING_SCRIPT = """
import sys
from pathlib import Path
from pytest_loop.processes.child import Command, run_command
from pytest_loop.processes.fence import Fence, FenceTool

home, tool, script = sys.argv[1:]
fence = Fence(FenceTool(tool), (), (), f"{home}/.local/state/loop")
result = run_command(Command(["sh", "-c", script], Path(home), 60, fence=fence))
print(result.exit_code, result.output)
"""


@needs_user
@pytest.mark.parametrize("tool", MOUNTING, ids=lambda tool: tool.value)
def test_hidden_folder_of_an_ordinary_user_is_neither_read_nor_replaced(tool: FenceTool) -> None:
    with make_user_folder() as home:
        key = home / ".local/state/loop/key"
        key.parent.mkdir(parents=True)
        key.write_text("secret")
        give_to_user(home)
        script = "\n".join(f"({text}) && echo worked" for text in HIDDEN_ATTEMPTS.values())
        words = [sys.executable, "-c", HIDING_SCRIPT, str(home), tool.value, f"{script}; id -u"]
        words = make_user_command(["env", f"HOME={home}", *words])
        process = subprocess.run(words, capture_output=True, text=True, check=False, cwd="/")
        assert process.returncode == 0, process.stderr
        assert f"{home.stat().st_uid}" in process.stdout.split()
        assert not {"worked", "secret"} & set(process.stdout.split())
        assert key.read_text() == "secret"
