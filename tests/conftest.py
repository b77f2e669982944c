from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import WorkStealingScheduling  # type: ignore[import-untyped]

# pytester removes modules that a session in this process imported, and libyaml cannot be imported twice.
import pytest_loop.rules.items  # noqa: F401
from tests.pytest_caller import PLUGIN_VARIABLES, REMOVED_VARIABLES, PytestCaller

pytest_plugins = ["pytester"]
# The time of an example depends on the load of the machine.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")
# Disable plugins that are installed for other tests, because sessions with them take a slower path.
ONLY_XDIST = ("-p", "no:randomly", "-p", "no:asyncio", "-p", "no:timeout", "-p", "no:anyio", "-p", "no:cov", "-q")
# For tests whose behaviour with xdist is covered elsewhere: use workers only with the mark `thorough`.
WORKERS_IF_THOROUGH = pytest.mark.parametrize(
    "workers", [(), pytest.param(("-n2",), marks=pytest.mark.thorough)], ids=["plain", "n2"]
)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Let idle workers steal tests, because tests take from milliseconds to minutes."""
    return WorkStealingScheduling(config, log) if config.getvalue("dist") == "load" else None


@pytest.fixture(scope="session", autouse=True)
def _coverage_variables() -> dict[str, str]:
    """Remove the variables that start coverage in subprocesses, because it doubles their time; return them."""
    names = ("COVERAGE_PROCESS_START", "COVERAGE_PROCESS_CONFIG")
    return {name: os.environ.pop(name) for name in names if name in os.environ}


@pytest.fixture(autouse=True)
def _measure_marked_tests(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, _coverage_variables: dict[str, str]
) -> None:
    """Measure the coverage of subprocesses in tests with the mark `measured`."""
    if request.node.get_closest_marker("measured"):
        for name, value in _coverage_variables.items():
            monkeypatch.setenv(name, value)


@pytest.fixture(scope="session", autouse=True)
def _keep_secret_apart(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Sign runs with a secret of these tests, not with the user's."""
    os.environ["XDG_STATE_HOME"] = str(tmp_path_factory.mktemp("state"))


@pytest.fixture(scope="session", autouse=True)
def _reset_interrupts() -> None:
    """Handle SIGINT again: processes that a shell starts in the background ignore it, and so do their children."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def _python_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `python3` as the interpreter itself: a version manager's shim starts ten times slower."""
    folder = tmp_path_factory.mktemp("programs")
    (folder / "python3").symlink_to(os.path.realpath(sys.executable))
    return folder


@pytest.fixture(autouse=True)
def _put_interpreter_on_path(monkeypatch: pytest.MonkeyPatch, _python_folder: Path) -> None:
    monkeypatch.setenv("PATH", str(_python_folder), prepend=os.pathsep)


@pytest.fixture(autouse=True)
def _widen_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Widen the terminal, because tests compare lines that pytest cuts at its width."""
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture(autouse=True)
def _load_few_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in PLUGIN_VARIABLES.items():
        monkeypatch.setenv(name, value)
    for name in REMOVED_VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def _hide_github(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep runs inside these tests from writing to the build that runs the tests."""
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def caller(_coverage_variables: dict[str, str], _reset_interrupts: None) -> Iterator[PytestCaller]:
    """Call pytest in forked processes."""
    caller = PytestCaller()
    yield caller
    caller.close()


@pytest.fixture
def pytester(pytester: pytest.Pytester, caller: PytestCaller, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """Make `runpytest_subprocess` use the fork server."""

    def call(*arguments: str | Path, timeout: float | None = None) -> pytest.RunResult:
        start = time.monotonic()
        process = caller.call(f"--basetemp={pytester.path / 'basetemp'}", *map(str, arguments), folder=pytester.path)
        print(process.stdout, process.stderr, sep="\n")
        seconds = time.monotonic() - start
        return pytest.RunResult(process.returncode, process.stdout.splitlines(), process.stderr.splitlines(), seconds)

    monkeypatch.setattr(pytester, "runpytest_subprocess", call)
    return pytester


@pytest.fixture
def write_rule_file(pytester: pytest.Pytester) -> Callable[..., Path]:
    """Write a rule file from indented text."""

    def write(text: str, name: str = "it.rules.yaml") -> Path:
        path = pytester.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text).lstrip("\n"), encoding="utf-8")
        return path

    return write


@pytest.fixture(params=[(), ("-n2",)], ids=["plain", "n2"])
def workers(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """Run the test in one process and with two xdist workers."""
    return request.param  # type: ignore[no-any-return]
