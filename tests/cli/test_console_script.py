"""The console script `pytest-loop`: commands as rows, each the same as a flag of pytest."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

from pytest_loop.cli import console_script
from pytest_loop.cli.console_script import ROWS, build_pytest_arguments
from pytest_loop.settings.command_line import FLAGS
from tests.cli.conftest import Command, CommandResult, MakeRun

VIEW = ["--disable-plugin-autoload", "-p", "pytest_loop.plugin", "-o", "required_plugins="]
DRIVE = ["-p", "no:loop"]


@pytest.fixture
def script(project: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., CommandResult]:
    """Return a function that runs the console script inside this process."""

    def execute(*words: str) -> CommandResult:
        capsys.readouterr()
        try:
            code: Any = console_script.main(words)
        except SystemExit as end:
            code = end.code
        return CommandResult(int(code), *capsys.readouterr())

    return execute


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("status", "--loop-status"),
        ("status --run guide --json -", "--loop-status --loop-alias=guide --loop-json=-"),
        ("status --loop-json - -v", "--loop-status --loop-json=- -v"),
        ("list", "--loop-list"),
        ("history --run=guide", "--loop-history --loop-alias=guide"),
        ("stop", "--loop-stop"),
        ("stop enough", "--loop-stop=enough"),
        ("pause --run guide", "--loop-pause --loop-alias=guide"),
        ("attach", "--loop-attach"),
        ("restore 2", "--loop-restore=2"),
        ("restore 0", "--loop-restore=0"),
        ("show --run guide", "--loop-show --loop-alias=guide"),
        ("diff", "--loop-diff"),
        ("report", "--loop-report=loop-report.html"),
        ("report one two both.html", "--loop-report=both.html --loop-alias=one,two"),
        ("report it.html --report-open", "--loop-report=it.html --loop-report-open"),
        ("debrief", "--loop-debrief=loop-debrief.md"),
        ("clean all --yes", "--loop-clean=all --loop-yes"),
        ("clean --run guide", "--loop-clean=guide --loop-alias=guide"),
        ("agents", "--loop-agents"),
        ("infer lint", "--loop-infer=lint"),
    ],
)
def test_command_is_the_flag_of_the_same_name(words: str, expected: str) -> None:
    assert build_pytest_arguments(words.split()) == [*VIEW, *expected.split()]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("resume", "--loop-resume"),
        ("resume --max-iterations 8 -q", "--loop-resume --loop-max-iterations=8 -q"),
        ("resume -o loop_on_plateau=continue", "--loop-resume -o loop_on_plateau=continue"),
        ("resume --agent a --agent b", "--loop-resume --loop-agent=a --loop-agent=b"),
        ("confirm a.x b.y --run guide", "--loop-resume --loop-confirm=a.x --loop-confirm=b.y --loop-alias=guide"),
        ("watch tests -k fast -x", "--loop-watch tests -k fast -x"),
    ],
)
def test_command_that_drives_a_run_loads_all_plugins_but_the_repeater(words: str, expected: str) -> None:
    assert build_pytest_arguments(words.split()) == [*DRIVE, *expected.split()]


def test_every_row_stands_for_flags_of_the_table_or_names_a_function() -> None:
    for row in ROWS:
        assert bool(row.flags) != bool(row.function)
        assert all(f"--loop-{name}" in FLAGS for name in (*row.flags, *row.options)), row.name


@pytest.mark.parametrize("name", [row.name for row in ROWS if not row.function])
def test_every_command_explains_itself_and_takes_a_run(script: Callable[..., CommandResult], name: str) -> None:
    result = script(name, "--help")
    assert result.code == 0
    assert "--run ALIAS" in result.out


@pytest.mark.parametrize("name", ["status", "list", "history"])
def test_command_prints_what_its_flag_prints(
    command: Command, script: Callable[..., CommandResult], make_run: MakeRun, name: str
) -> None:
    make_run()
    make_run("poem", updated="2026-01-03")
    flag = f"--loop-{name}" if name == "list" else f"--loop-{name}=guide"
    assert script(name, "--run", "guide") == command(flag)


def test_bad_usage_ends_with_the_exit_code_of_pytest(script: Callable[..., CommandResult], make_run: MakeRun) -> None:
    make_run()
    for words, problem in (
        (("statsu",), "there is no command 'statsu' (did you mean status?)"),
        (("xyz",), "there is no command 'xyz' (pytest-loop --help lists all)"),
        ((), "usage: pytest-loop"),
        (("status", "guide"), "unrecognized arguments: guide"),
        (("clean",), "name a run with --run ALIAS, or delete all of them with: pytest-loop clean all"),
        (("restore", "x"), "expected a whole number >= 0, found 'x'"),
        (("status", "--run", "nothing"), "nothing"),
    ):
        result = script(*words)
        assert (result.code, result.out) == (4, ""), words
        assert problem in result.err


def test_configuration_for_other_plugins_does_not_disturb_a_command(
    script: Callable[..., CommandResult], project: Path, make_run: MakeRun
) -> None:
    make_run()
    (project / "pytest.ini").write_text("[pytest]\nrequired_plugins = pytest-nothing\naddopts = -n 2 --unknown-flag\n")
    (project / "conftest.py").write_text("raise RuntimeError('imported')\n")
    assert script("list").get_lines()[1].startswith("guide")


def test_schema_is_the_one_of_the_flag(script: Callable[..., CommandResult], command: Command) -> None:
    assert script("schema") == command("--loop-schema")


def test_script_is_installed_under_two_names_and_as_a_module(project: Path) -> None:
    scripts = {point.name: point.value for point in entry_points(group="console_scripts")}
    assert scripts["pytest-loop"] == scripts["pytest-agent-loop"] == "pytest_loop.cli.console_script:main"
    result = subprocess.run([sys.executable, "-m", "pytest_loop", "list"], cwd=project, capture_output=True, text=True)
    assert (result.returncode, result.stdout) == (0, f"there is no run in {project / '.loop'}\n")


def test_help_imports_neither_pytest_nor_a_model(project: Path) -> None:
    program = "import sys, pytest_loop.cli.console_script as script; script._make_parser(); print(*sys.modules)"
    result = subprocess.run([sys.executable, "-c", program], cwd=project, capture_output=True, text=True, check=True)
    assert not {"pytest", "pydantic"} & set(result.stdout.split())


def test_reader_that_has_seen_enough_is_no_error() -> None:
    command = [sys.executable, "-m", "pytest_loop", "schema"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert (process.stderr.read(), process.wait()) == (b"", 1)
    process.stderr.close()
