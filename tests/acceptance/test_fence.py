"""Runs inside a fence: agents and tests cannot write sealed files, and everything else works as usual."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from pytest_loop.processes.fence import FenceTool, find_tool_problem, probe_tools
from tests.agents.codex_home import find_codex, make_codex_home
from tests.agents.model_server import ModelServer, Turn
from tests.fences import needs_fence
from tests.ordinary_user import give_to_user, make_user_command, make_user_folder, needs_user
from tests.pytest_caller import PytestCaller

FILES = {
    "shop.py": "def total(prices):\n    return sum(prices) - 1\n",
    "tests/test_shop.py": "from shop import total\n\n\ndef test_total():\n    assert total([1, 2]) == 3\n",
    "tests/conftest.py": "",
    "pytest.ini": "[pytest]\npythonpath = .\n",
    ".gitignore": ".loop/\n__pycache__/\n.pytest_cache/\n",
}
START = ("--loop-task", "fix until green", "--loop-yes", "--loop-json", "result.json", "-vv")
FIX = "sed -i 's/ - 1//' shop.py"
GIT = "git -c user.name=me -c user.email=me@example.org"


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A project in git with a failing test."""
    folder = tmp_path / "shop"
    write_shop(folder)
    return folder


def write_shop(folder: Path, **files: str) -> None:
    for name, text in {**FILES, **files}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    for words in ("git init -q", "git add -A", f"{GIT} commit -qm first"):
        subprocess.run(words.split(), cwd=folder, check=True)
    (folder / ".git" / "hooks").mkdir(exist_ok=True)


def write_agent(folder: Path, script: str) -> tuple[str, str]:
    """Write an agent as a shell script beside a project; return the option that names it."""
    path = folder.parent / "agent.sh"
    path.write_text(dedent(script))
    return "--loop-agent", f"command:sh {path}"


def read_result(folder: Path) -> dict[str, Any]:
    result: dict[str, Any] = json.loads((folder / "result.json").read_text())
    return result


ATTEMPTS = """
    echo 'def test_total(): pass' > tests/test_shop.py
    python3 -c "open('tests/conftest.py', 'a').write('collect_ignore = []')"
    echo '[pytest]' > new.ini && mv new.ini pytest.ini
    rm -f new.ini
    rm -rf tests .loop
    touch tests/test_more.py .git/hooks/pre-commit
    git config core.hooksPath /tmp
    touch ~/.note
    (setsid sh -c 'while :; do date +%N > tick; done' > /dev/null 2>&1 &)
    while ! [ -s tick ]; do :; done
    sed -i 's/ - 1//' shop.py
    git add shop.py && git -c user.name=me -c user.email=me@example.org commit -qm fixed
"""


@needs_fence
def test_agent_cannot_write_what_is_sealed_and_its_honest_edit_counts(
    shop: Path, caller: PytestCaller, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = shop.parent / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    done = caller.call(*START, *write_agent(shop, ATTEMPTS), "--loop-fence=auto", folder=shop)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    tool = probe_tools().tool
    assert tool is not None
    assert f"fence: {tool.value}: 3 sealed files or folders are read-only" in lines
    for line in (
        "agent.sh: 2: cannot create tests/test_shop.py: Read-only file system",
        "OSError: [Errno 30] Read-only file system: 'tests/conftest.py'",
        "mv: cannot move 'new.ini' to 'pytest.ini': Device or resource busy",
        "rm: cannot remove 'tests/test_shop.py': Device or resource busy",
        "rm: cannot remove '.loop/fix-until-green/run.json': Read-only file system",
        "touch: cannot touch '.git/hooks/pre-commit': Read-only file system",
        "error: could not write config file .git/config: Device or resource busy",
    ):
        assert any(line in shown for shown in lines), line
    result = read_result(shop)
    assert (result["status"], result["iteration"], result["findings"]) == ("completed", 2, [])
    assert (home / ".note").exists()
    log = subprocess.run(["git", "log", "--format=%s"], cwd=shop, capture_output=True, text=True, check=True)
    assert log.stdout.split() == ["fixed", "first"]
    last = (shop / "tick").read_text()
    time.sleep(0.1)
    assert (shop / "tick").read_text() == last


@needs_fence
def test_real_codex_is_stopped_at_a_sealed_test_and_then_honest(
    shop: Path, caller: PytestCaller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own sandbox starts inside the fence."""
    commands = ("sed -i 's/== 3/== 2/' tests/test_shop.py", FIX)
    turns = [
        turn for command in commands for turn in (Turn(tools=(("exec_command", {"cmd": command}),)), Turn("Done."))
    ]
    with ModelServer(*turns) as server:
        make_codex_home(shop.parent, server.url, monkeypatch)
        monkeypatch.setenv("PATH", f"{find_codex().parent}{os.pathsep}{os.environ['PATH']}")
        done = caller.call(*START, "--loop-agent", "codex", "--loop-fence=on", folder=shop)
    assert done.returncode == 0, done.stdout + done.stderr
    first, second, third, _ = [json.dumps(request.body["input"]) for request in server.requests]
    assert 'writing one fails with \\"Read-only file system\\", and replacing one' in first
    assert "Device or resource busy" in second.replace(first[:-1], "")
    assert "test_total" in third
    result = read_result(shop)
    assert (result["status"], result["iteration"], result["findings"]) == ("completed", 3, [])
    assert (shop / "tests" / "test_shop.py").read_text() == FILES["tests/test_shop.py"]


WRITING_TESTS = """
from pathlib import Path

from shop import total

HERE = Path(__file__).parent


def test_total():
    assert total([1, 2]) == 3


def test_scratch_file_in_the_folder_of_the_tests():
    path = HERE / "scratch" / "a.txt"
    path.write_text("x")
    path.unlink()
"""


@needs_fence
@pytest.mark.parametrize(
    "session",
    [
        ("--loop-session=warm",),
        *(pytest.param(words, marks=pytest.mark.thorough) for words in [("--loop-session=cold",), ("-n2",)]),
    ],
    ids=["warm", "cold", "n2"],
)
def test_what_the_baseline_writes_stays_writable(
    tmp_path: Path, caller: PytestCaller, session: tuple[str, ...]
) -> None:
    shop = tmp_path / "shop"
    write_shop(shop, **{"tests/test_shop.py": WRITING_TESTS, "tests/scratch/keep.txt": "", "tests/data/a.txt": ""})
    agent = write_agent(shop, f"touch tests/scratch/new tests/data/new; rm -f tests/scratch/new; {FIX}")
    done = caller.call(*START, *agent, "--loop-fence=on", *session, folder=shop)
    assert (done.returncode, read_result(shop)["findings"]) == (0, []), done.stdout + done.stderr
    assert "cannot touch 'tests/data/new': Read-only file system" in done.stdout
    assert "tests/scratch/new" not in done.stdout


@pytest.mark.thorough
@needs_fence
def test_candidates_are_fenced_in_their_work_trees(shop: Path, caller: PytestCaller) -> None:
    agent = write_agent(shop, f"pwd; echo cheat > tests/test_shop.py; {FIX}")
    done = caller.call(*START, *agent, "--loop-candidates=2", "--loop-fence=on", folder=shop)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("cannot create tests/test_shop.py: Read-only file system") == 2
    assert "/.loop/fix-until-green/candidate-2" in done.stdout
    assert (shop / "shop.py").read_text() == "def total(prices):\n    return sum(prices)\n"


@needs_fence
@pytest.mark.thorough
def test_run_in_a_work_tree_is_fenced(shop: Path, caller: PytestCaller) -> None:
    agent = write_agent(shop, f"echo cheat > tests/test_shop.py; {FIX}")
    done = caller.call(*START, *agent, "--loop-worktree", "--loop-fence=on", folder=shop)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "cannot create tests/test_shop.py: Read-only file system" in done.stdout


@pytest.mark.thorough
@pytest.mark.skipif(bool(find_tool_problem(FenceTool.UNSHARE)), reason="unshare does not work here")
def test_unshare_takes_the_place_of_bubblewrap(
    shop: Path, caller: PytestCaller, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = shop.parent / "programs"
    programs.mkdir()
    for folder in map(Path, os.environ["PATH"].split(os.pathsep)):
        for program in folder.iterdir() if folder.is_dir() else ():
            if program.name != "bwrap" and not (programs / program.name).is_symlink():
                (programs / program.name).symlink_to(program)
    monkeypatch.setenv("PATH", str(programs))
    agent = write_agent(shop, f"echo cheat > tests/test_shop.py; {FIX}")
    done = caller.call(*START, *agent, "--loop-fence=auto", folder=shop)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "fence: unshare: 3 sealed files or folders are read-only" in done.stdout
    assert "cannot create tests/test_shop.py: Read-only file system" in done.stdout


# A process that Landlock restricts cannot mount, and after 16 layers it cannot be restricted further.
RESTRICTED = """
import runpy, sys
from pathlib import Path
from pytest_loop.processes.landlock import restrict_writes

for _ in range(int(sys.argv.pop(1))):
    restrict_writes([Path("/")])
runpy.run_module("pytest", run_name="__main__", alter_sys=True)
"""
CHEAT = "echo 'def test_total(): pass' > tests/test_shop.py"


@pytest.mark.skipif(bool(find_tool_problem(FenceTool.LANDLOCK)), reason="Landlock does not work here")
@pytest.mark.parametrize(("layers", "word"), [(1, "partly fenced: Landlock protects only"), (16, "not fenced: ")])
def test_without_a_fence_draft_and_ending_say_so_and_detection_works_alone(shop: Path, layers: int, word: str) -> None:
    daemon = "(setsid env -i sh -c 'while :; do date +%N > ../tick; done' > /dev/null 2>&1 &)\nwhile ! [ -s ../tick ]; do :; done"
    agent = write_agent(shop, f"{CHEAT}\n{daemon if layers == 1 else ''}")
    words = [sys.executable, "-c", RESTRICTED, str(layers), *START, *agent, "--loop-max-iterations=2"]
    done = subprocess.run(words, cwd=shop, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    lines = [line for line in done.stdout.splitlines() if word in line]
    assert len(lines) == 2, lines
    assert lines[1] == done.stdout.splitlines()[-2]  # before the name of the JSON file
    assert all(line.endswith("edits of sealed files are only detected, not prevented") for line in lines)
    assert {finding["kind"] for finding in read_result(shop)["findings"]} == {"sealed"}
    assert (shop / "tests" / "test_shop.py").read_text() == FILES["tests/test_shop.py"]
    if layers == 1:
        last = (shop.parent / "tick").read_text()
        time.sleep(0.1)
        assert (shop.parent / "tick").read_text() == last


@pytest.mark.skipif(bool(find_tool_problem(FenceTool.LANDLOCK)), reason="Landlock does not work here")
@pytest.mark.parametrize(
    ("layers", "reason"),
    [(1, "only Landlock works here, and cannot keep sealed files read-only"), (16, "does not work here: ")],
)
def test_required_fence_that_is_impossible_is_refused(shop: Path, layers: int, reason: str) -> None:
    words = [sys.executable, "-c", RESTRICTED, str(layers), *START, *write_agent(shop, FIX), "--loop-fence=on"]
    done = subprocess.run(words, cwd=shop, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (4, "")
    assert "ERROR: --loop-fence=on: " in done.stderr
    assert reason in done.stderr
    assert "(install bubblewrap, or use --loop-fence=auto)" in done.stderr
    assert not (shop / ".loop").exists()


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[Path]:
    """A virtual environment that finds the packages of this one."""
    folder = tmp_path / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    [packages] = folder.glob("lib/python*/site-packages")
    paths = [path for path in sys.path if Path(path).name == "site-packages"]
    (packages / "others.pth").write_text("\n".join([*paths, str(Path(__file__).parents[2])]) + "\n")
    yield folder
    shutil.rmtree(folder)


def write_wheel(folder: Path) -> Path:
    """Write a wheel of a small package that also adds a start-up file, as editable installs do."""
    path = folder / "prices-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("prices.py", "def add(prices):\n    return sum(prices)\n")
        wheel.writestr("prices.pth", "")
        wheel.writestr("prices-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: prices\nVersion: 1.0\n")
        wheel.writestr("prices-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("prices-1.0.dist-info/RECORD", "")
    return path


@pytest.mark.thorough
@needs_fence
@pytest.mark.parametrize("is_allowed", [False, True], ids=["closed", "opened"])
def test_agent_installs_packages_only_if_the_environment_is_opened(
    shop: Path, environment: Path, is_allowed: bool
) -> None:
    wheel = write_wheel(shop.parent)
    agent = write_agent(
        shop,
        f"""
        {environment}/bin/python -m pip install -q --no-index --no-deps {wheel} || exit 0
        echo 'from prices import add as total' > shop.py
        """,
    )
    allow = ("--loop-fence-allow", str(environment)) if is_allowed else ()
    words = [str(environment / "bin" / "python"), "-m", "pytest", *START, *agent, "--loop-fence=on", *allow]
    done = subprocess.run([*words, "--loop-max-iterations=2"], cwd=shop, capture_output=True, text=True, check=False)
    result = read_result(shop)
    assert (done.returncode, result["findings"]) == (0 if is_allowed else 1, []), done.stdout + done.stderr
    assert ("Read-only file system" in done.stdout) == (not is_allowed)
    assert bool([*environment.glob("lib/python*/site-packages/prices.py")]) == is_allowed


@needs_user
@needs_fence
def test_an_ordinary_user_has_the_same_fence(tmp_path: Path) -> None:
    with make_user_folder() as folder:
        shop = folder / "shop"
        write_shop(shop)
        agent = write_agent(shop, f"{ATTEMPTS}\nid -u")
        (folder / "home").mkdir()
        give_to_user(folder)
        words = [sys.executable, "-m", "pytest", *START, *agent, "-p", "no:cacheprovider"]
        home = str(folder / "home")
        env = {**os.environ, "HOME": home, "TMPDIR": home, "XDG_STATE_HOME": home}
        done = subprocess.run(make_user_command(words), cwd=shop, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "fence: bubblewrap: 3 sealed files or folders are read-only" in done.stdout
        assert f"  | {shop.stat().st_uid}\n" in done.stdout
        assert "cannot create tests/test_shop.py: Read-only file system" in done.stdout
        assert read_result(shop)["findings"] == []
        assert (folder / "home" / ".note").exists()


@needs_fence
def test_documented_command_works(shop: Path, caller: PytestCaller) -> None:
    text = (Path(__file__).parents[2] / "docs" / "fence.md").read_text(encoding="utf-8")
    [command] = re.findall(r"^```sh\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    (shop / ".venv").mkdir()
    _, agent = write_agent(shop, f"touch .venv/installed; {FIX}")
    words = [agent if word == "claude" else word for word in shlex.split(command)[1:]]
    done = caller.call(*words, "--loop-yes", "--loop-fence=on", folder=shop)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (shop / ".venv" / "installed").exists()


def test_path_that_does_not_exist_cannot_be_opened(shop: Path, caller: PytestCaller) -> None:
    done = caller.call(*START, *write_agent(shop, FIX), "--loop-fence-allow=.venv", folder=shop)
    assert done.returncode == 4
    assert "--loop-fence-allow: expected an existing file or folder, found '.venv'" in done.stderr
