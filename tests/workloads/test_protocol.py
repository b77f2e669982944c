"""Cases that pass are reported once where nobody minds, and as any test where somebody does."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import ALONE
from tests.workloads.conftest import Make

LISTENER = """
def pytest_runtest_logreport(report):
    with open("heard", "a") as file:
        file.write(f"{report.nodeid.rpartition('/')[2]} {report.when} {report.outcome}\\n")
"""
CASES = {f"cases/{name}.txt": "ONE\n" for name in "acde"} | {f"expected/{name}.txt": "ONE\n" for name in "acde"}


@pytest.fixture
def folder(pytester: pytest.Pytester) -> Path:
    return pytester.path


@pytest.mark.parametrize("more", [(), ("-v",), ("--durations=1",), ("--junitxml=junit.xml",)])
def test_cases_are_counted_alike_however_they_are_run(
    make: Make, pytester: pytest.Pytester, workers: tuple[str, ...], more: tuple[str, ...]
) -> None:
    make(CASES)
    result = pytester.runpytest_subprocess(*workers, *more)
    result.assert_outcomes(passed=4, failed=1)
    assert result.ret == 1
    if "--junitxml=junit.xml" in more:
        assert (pytester.path / "junit.xml").read_text().count("<testcase ") == 5


def test_who_listens_hears_every_phase(make: Make, pytester: pytest.Pytester) -> None:
    make({**CASES, "conftest.py": LISTENER})
    pytester.runpytest_subprocess("-n0")
    heard = (pytester.path / "heard").read_text().splitlines()
    assert heard[:3] == ["a.txt setup passed", "a.txt call passed", "a.txt teardown passed"]
    assert "b.txt call failed" in heard


def test_a_case_that_passes_is_one_report_where_nobody_minds(make: Make, pytester: pytest.Pytester) -> None:
    make(CASES)
    result = pytester.runpytest_subprocess("-n0", "-q")
    result.assert_outcomes(passed=4, failed=1)
    result.stdout.fnmatch_lines([".F...*"])


QUICK = {f"cases/{at:02}.txt": "ONE\n" for at in range(45)} | {f"expected/{at:02}.txt": "ONE\n" for at in range(45)}
MESSAGES = """
def pytest_report_from_serializable(data):
    with open("messages", "a") as file:
        file.write("carries\\n" if "loop_carried" in data else "alone\\n")
"""
STOP = """
import pytest
@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    if item.name.endswith("07.txt"):
        item.session.shouldstop = "enough"
    return (yield)
"""


@pytest.fixture
def quick(make: Make, pytester: pytest.Pytester) -> Make:
    def quick(files: dict[str, str], **fields: str) -> Path:
        return make({**QUICK, **files}, runCommand="cp {case} {output}", casePaths=["cases/[0-9]*.txt"], **fields)

    return quick


def test_reports_of_quick_cases_travel_together(quick: Make, pytester: pytest.Pytester) -> None:
    quick({"conftest.py": MESSAGES})
    result = pytester.runpytest_subprocess("-n2", *ALONE)
    result.assert_outcomes(passed=45)
    assert "carries\n" in (pytester.path / "messages").read_text()


def test_what_fails_brings_what_has_passed_before(quick: Make, pytester: pytest.Pytester) -> None:
    quick({"expected/17.txt": "TWO\n"})
    pytester.runpytest_subprocess("-n1", "-x", *ALONE).assert_outcomes(passed=17, failed=1)


def test_a_session_that_ends_early_loses_no_report(quick: Make, pytester: pytest.Pytester) -> None:
    quick({"conftest.py": STOP})
    pytester.runpytest_subprocess("-n1", *ALONE).assert_outcomes(passed=8)


@pytest.mark.parametrize("dist", ["load", "loadscope", "loadfile", "loadgroup", "worksteal"])
def test_no_way_of_sharing_waits_for_reports_that_wait(quick: Make, pytester: pytest.Pytester, dist: str) -> None:
    quick({"pytest.ini": "[pytest]\n"})
    pytester.runpytest_subprocess("-n2", f"--dist={dist}", *ALONE, timeout=60).assert_outcomes(passed=45)


DIES = """
import os, signal, pytest
@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    if item.name.endswith("30.txt") and "PYTEST_XDIST_WORKER" in os.environ:
        os.kill(os.getpid(), signal.SIGKILL)
    return (yield)
"""


def test_what_a_worker_has_not_told_when_it_dies_is_not_a_pass(quick: Make, pytester: pytest.Pytester) -> None:
    quick({"conftest.py": DIES})
    result = pytester.runpytest_subprocess("-n1", "--max-worker-restart=0", *ALONE, timeout=60)
    outcomes = result.parseoutcomes()
    assert result.ret != 0
    assert outcomes["failed"] == 1
    assert 0 < outcomes["passed"] <= 30
