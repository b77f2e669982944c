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

# pytester forgets what a session inside this process imported, and libyaml's loader does not stand being imported again.
import pytest_loop.rules.items  # noqa: F401
from tests.calling import NOT_KEPT, QUICK, Caller

pytest_plugins = ["pytester"]
# How long an example takes depends on who else is at work.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")
# Plugins that are installed for other tests, and make sessions take the long way.
ALONE = ("-p", "no:randomly", "-p", "no:asyncio", "-p", "no:timeout", "-p", "no:anyio", "-p", "no:cov", "-q")
# A story that others tell among workers: it is told in one process every day, and twice by who is thorough.
SELDOM_AMONG_WORKERS = pytest.mark.parametrize(
    "workers", [(), pytest.param(("-n2",), marks=pytest.mark.thorough)], ids=["plain", "n2"]
)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Stories of minutes stand beside tests of milliseconds: a worker that has nothing left takes from the other."""
    return WorkStealingScheduling(config, log) if config.getvalue("dist") == "load" else None


@pytest.fixture(scope="session", autouse=True)
def _measuring() -> dict[str, str]:
    """The variables that make a process measure itself, which takes as long again as its work: most tests go without."""
    names = ("COVERAGE_PROCESS_START", "COVERAGE_PROCESS_CONFIG")
    return {name: os.environ.pop(name) for name in names if name in os.environ}


@pytest.fixture(autouse=True)
def _measured(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, _measuring: dict[str, str]) -> None:
    """Processes of a test with the mark `measured` say what they covered."""
    if request.node.get_closest_marker("measured"):
        for name, value in _measuring.items():
            monkeypatch.setenv(name, value)


@pytest.fixture(scope="session", autouse=True)
def _interrupts_are_heeded() -> None:
    """What a shell starts in the background ignores them, and so does all that it starts."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def _programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`python3` as the interpreter itself: a shim of a version manager takes ten times as long to start."""
    folder = tmp_path_factory.mktemp("programs")
    (folder / "python3").symlink_to(os.path.realpath(sys.executable))
    return folder


@pytest.fixture(autouse=True)
def _quick_interpreter(monkeypatch: pytest.MonkeyPatch, _programs: Path) -> None:
    monkeypatch.setenv("PATH", str(_programs), prepend=os.pathsep)


@pytest.fixture(autouse=True)
def _wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines are compared whole; pytest cuts them at the width of the terminal."""
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture(autouse=True)
def _quick_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in QUICK.items():
        monkeypatch.setenv(name, value)
    for name in NOT_KEPT:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def _nobody_builds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs inside these tests do not speak to the build that the tests are part of."""
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def caller(_measuring: dict[str, str], _interrupts_are_heeded: None) -> Iterator[Caller]:
    """Calls pytest in a process of its own, quickly."""
    made = Caller()
    yield made
    made.close()


@pytest.fixture
def pytester(pytester: pytest.Pytester, caller: Caller, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """Sessions in a process of their own are called like all others here."""

    def call(*words: str | Path, timeout: float | None = None) -> pytest.RunResult:
        begun = time.monotonic()
        done = caller.call(f"--basetemp={pytester.path / 'basetemp'}", *map(str, words), folder=pytester.path)
        print(done.stdout, done.stderr, sep="\n")
        took = time.monotonic() - begun
        return pytest.RunResult(done.returncode, done.stdout.splitlines(), done.stderr.splitlines(), took)

    monkeypatch.setattr(pytester, "runpytest_subprocess", call)
    return pytester


@pytest.fixture
def rule_file(pytester: pytest.Pytester) -> Callable[..., Path]:
    """Writes a rule file, indented as it stands in the test."""

    def write(text: str, name: str = "it.rules.yaml") -> Path:
        path = pytester.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text).lstrip("\n"), encoding="utf-8")
        return path

    return write


@pytest.fixture(params=[(), ("-n2",)], ids=["plain", "n2"])
def workers(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """Every story is told twice: in one process, and with two xdist workers."""
    return request.param  # type: ignore[no-any-return]
