"""The built-in agent: its remedies, its search and its report."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_loop.agents.builtin_agent import ENGINE, BuiltinAgent, apply_patch
from pytest_loop.agents.factory import make_agent
from pytest_loop.agents.protocol import (
    AgentError,
    AgentRequest,
    AgentUnavailableError,
    RepairTask,
    StopRequestedError,
    Watch,
)
from pytest_loop.core.model.rules import Remedy
from pytest_loop.errors import LoopError
from pytest_loop.repair.engine_process import RunShares
from pytest_loop.repair.repair_request import Patch, RepairRequest, RepairResult

PRICES = """
def discounted(amount, percent):
    return amount - amount * max(percent, 100) / 100


def shipping(amount):
    return 0 if amount > 50 else 5
"""
TESTS = """
from prices import discounted, shipping

def test_discounted():
    assert discounted(80, 25) == 60
    assert discounted(80, 150) == 0

def test_shipping():
    assert (shipping(49), shipping(50), shipping(51)) == (5, 0, 0)

def test_low():
    assert shipping(1) == 5
"""
FAILING = ("test_prices.py::test_discounted", "test_prices.py::test_shipping")
Ask = Callable[..., str]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "prices.py").write_text(PRICES)
    (tmp_path / "test_prices.py").write_text(TESTS)
    return tmp_path


def ask(
    agent: BuiltinAgent,
    root: Path,
    failing: tuple[str, ...] = FAILING,
    remedies: tuple[Remedy, ...] = (),
    attempt: Callable[[Callable[[], None]], bool] = lambda _: False,
    watch: Watch | None = None,
    run_shares: RunShares | None = None,
) -> str:
    case = RepairTask(("-p", "no:cacheprovider"), failing, (), "hash", remedies, attempt, run_shares)
    return agent.answer(AgentRequest("REFINE", "", root, repair_task=case), watch or Watch()).report


def test_two_bugs_are_fixed_and_reported(project: Path) -> None:
    report = ask(BuiltinAgent(), project)
    text = (project / "prices.py").read_text()
    assert "min(percent, 100)" in text
    assert "amount >= 50" in text
    assert (project / "test_prices.py").read_text() == TESTS
    assert "edits tried in" in report
    assert "most suspicious: prices.py:" in report
    assert "plausible: prices.py, line 3:" in report
    assert "may still be wrong" in report
    assert not list(project.glob("**/__pycache__"))


def test_a_module_of_the_project_replaces_no_installed_one(project: Path) -> None:
    (project / "json.py").write_text("raise SystemExit(3)\n")
    assert "plausible: prices.py" in ask(BuiltinAgent(), project)


def test_a_search_without_result_is_not_repeated(project: Path) -> None:
    (project / "prices.py").write_text(
        "def discounted(amount, percent):\n    pass\n\n\ndef shipping(amount):\n    pass\n"
    )
    agent = BuiltinAgent(seconds=20)
    before = (project / "prices.py").read_text()
    first = ask(agent, project, ("test_prices.py::test_discounted",))
    assert ", none fixes test_discounted" in first
    assert (project / "prices.py").read_text() == before
    again = ask(agent, project, ("test_prices.py::test_discounted",))
    assert "nothing is left to try with these files" in again


@pytest.fixture
def large_project(project: Path) -> Path:
    """A project with more edits than fit into a second, of which none helps."""
    functions = "".join(f"def f{number}(a):\n    return a * {number} + a\n\n\n" for number in range(500))
    (project / "prices.py").write_text(functions)
    values = "[getattr(prices, f'f{number}')(2) for number in range(500)]"
    (project / "test_prices.py").write_text(f"import prices\n\ndef test_it():\n    assert {values} == 'never'\n")
    return project


def test_a_search_out_of_time_goes_on_at_workers(large_project: Path) -> None:
    path = large_project / "prices.py"
    before, requests = path.read_text(), list[RepairRequest]()

    def run_shares(engine: str, request: str) -> list[str]:
        assert engine == ENGINE
        requests.append(RepairRequest.model_validate_json(request))
        patch = Patch(
            path="prices.py",
            line=2,
            template="const",
            description="line 2",
            before=before,
            after=before.replace("* 0", "* 9"),
            diff="",
            fixed=requests[0].failing,
        )
        results = RepairResult(tried=30, end_reason="time"), RepairResult(tried=40, steps=(patch,), end_reason="green")
        return [f'{{"kind": "plan"}}\n{result.model_dump_json()}\n' for result in results]

    report = ask(BuiltinAgent(seconds=0.01), large_project, ("test_prices.py::test_it",), run_shares=run_shares)
    assert (requests[0].folder, requests[0].seconds, len(requests)) == (large_project, 0.01, 1)
    assert "70 edits tried in" in report
    assert path.read_text() == before.replace("* 0", "* 9")


def test_a_search_that_workers_cannot_do_ends_as_it_is(large_project: Path) -> None:
    def run_shares(_engine: str, _request: str) -> list[str]:
        raise LoopError("no worker is left")

    report = ask(BuiltinAgent(seconds=0.01), large_project, ("test_prices.py::test_it",), run_shares=run_shares)
    assert "not searched on workers: no worker is left" in report


def test_no_search_without_failing_tests(project: Path) -> None:
    assert ask(BuiltinAgent(), project, ()) == "no test fails"


def test_remedies_run_first_and_helpful_ones_stay(project: Path) -> None:
    tried: list[str] = []

    def attempt(action: Callable[[], None]) -> bool:
        action()
        is_better = (project / "made").exists()
        tried.append("helped" if is_better else "did not")
        return is_better

    remedies = (
        Remedy(command=f"{sys.executable} -c 'pass'"),
        Remedy(command="no-such-tool --fix"),
        Remedy(command="touch made && true", shell=True),
    )
    report = ask(BuiltinAgent(), project, remedies=remedies, attempt=attempt)
    assert tried == ["did not", "did not", "helped"]
    assert "no improvement; reverted" in report
    assert "no-such-tool" in report.splitlines()[1]
    assert "`touch made && true`: made it better" in report
    assert "edits" not in report, "the next evaluation says what is left"
    assert (project / "prices.py").read_text() == PRICES


def test_a_stop_request_ends_the_search(project: Path) -> None:
    with pytest.raises(StopRequestedError):
        ask(BuiltinAgent(), project, watch=Watch(should_continue=lambda: False))


def test_it_writes_no_documents(project: Path) -> None:
    for schema in (None, {"type": "object"}):
        with pytest.raises(AgentUnavailableError, match="fixes the Python files of a project, and nothing else"):
            BuiltinAgent().answer(AgentRequest("PRODUCE", "", project, schema=schema), Watch())


def test_a_collection_error_is_reported(project: Path) -> None:
    (project / "pytest.ini").write_text("[pytest]\naddopts = --no-such-option\n")
    assert ", none fixes " in ask(BuiltinAgent(), project)


def test_a_search_process_without_result_is_an_error(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_loop.agents.builtin_agent.ENGINE", "this")
    with pytest.raises(AgentError, match="ended without a result"):
        ask(BuiltinAgent(), project)


def test_a_file_that_changed_during_the_search_stays(project: Path) -> None:
    patch = Patch(
        path="prices.py", line=1, template="const", description="", before="old", after="new", diff="", fixed=()
    )  # fmt: skip
    with pytest.raises(AgentError, match="was changed by another program"):
        apply_patch(patch, project)
    assert (project / "prices.py").read_text() == PRICES


def test_the_spec_may_set_the_seconds_of_a_search(tmp_path: Path) -> None:
    assert isinstance(make_agent("builtin", tmp_path, {}), BuiltinAgent)
    assert make_agent("builtin:90", tmp_path, {}).name == "builtin"
    for spec in ("builtin:0", "builtin:soon", "builtin:-1"):
        with pytest.raises(AgentUnavailableError, match=f"expected whole seconds after builtin:, found '{spec}'"):
            make_agent(spec, tmp_path, {})
