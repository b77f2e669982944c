"""Rules as pytest items: warnings, collection errors, and sessions without a terminal."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_loop.rules import patterns

WriteRules = Callable[..., Path]

RULES = """
    artifact: doc.md
    rules:
      - {id: a.one, description: One, check: {contains: Title}}
      - {id: a.two, description: Two, check: {matches: "^Hello"}, severity: warn}
      - {id: a.three, description: Three, check: {contains: nothing of it}}
      - {id: a.four, description: Four, check: {contains: Title}, repeat: 3, need: any}
      - {id: a.five, description: Five, check: {python: judges:judge}}
      - {id: a.six, description: Six, check: {contains: Title}}
"""
WARNING_RULES = """
    artifact: doc.md
    rules:
      - {id: a.nested, description: Nested, check: {matches: "[[t]itle", ignore_case: true}}
      - {id: a.last, description: Last, check: {contains: Title}}
"""
ERROR_MARK = "import pytest\nMARK = pytest.mark.filterwarnings('error')\n"


@pytest.fixture
def project(pytester: pytest.Pytester, write_rule_file: WriteRules) -> pytest.Pytester:
    write_rule_file(RULES)
    pytester.makepyfile(test_it="def test_it():\n    pass\n", judges="def judge(path, root):\n    return True\n")
    (pytester.path / "doc.md").write_text("# Title\n")
    return pytester


def test_a_rule_is_reported_in_three_stages_like_a_test(project: pytest.Pytester) -> None:
    calls = project.inline_run("-p", "no:cacheprovider").getcalls("pytest_runtest_logreport")
    stages = [call.report.when for call in calls if call.report.nodeid == "it.rules.yaml::a.one"]
    assert stages == ["setup", "call", "teardown"]


def test_rules_are_judged_beside_a_rule_file_with_an_error(
    project: pytest.Pytester, write_rule_file: WriteRules
) -> None:
    write_rule_file("rules: 3\n", "bad.rules.yaml")
    result = project.runpytest()
    assert result.parseoutcomes() == {"passed": 5, "failed": 1, "warned": 1, "errors": 1, "skipped": 2}


def test_rules_are_judged_without_a_terminal(project: pytest.Pytester) -> None:
    assert project.runpytest("-p", "no:terminal", "-k", "one or six").ret == pytest.ExitCode.OK
    assert project.runpytest("-p", "no:terminal").ret == pytest.ExitCode.TESTS_FAILED


def test_rules_are_not_judged_if_a_plugin_replaces_the_test_loop(project: pytest.Pytester) -> None:
    project.makeconftest("def pytest_runtestloop():\n    print('nothing is run')\n    return True\n")
    result = project.runpytest("-s")
    result.stdout.fnmatch_lines(["*nothing is run*"])
    assert "loop score" not in str(result.stdout)


@pytest.fixture
def run_with_warning(pytester: pytest.Pytester, write_rule_file: WriteRules) -> Callable[..., pytest.RunResult]:
    """Return a function that runs a session with a rule whose pattern causes a warning of `re`."""

    def run(*arguments: str) -> pytest.RunResult:
        write_rule_file(WARNING_RULES)
        (pytester.path / "doc.md").write_text("Title\n")
        patterns._compile.cache_clear()
        re.purge()
        return pytester.runpytest("-p", "no:cacheprovider", "-W", "default", *arguments)

    return run


def test_the_warning_of_a_rule_is_shown_once_with_its_name(run_with_warning: Callable[..., pytest.RunResult]) -> None:
    result = run_with_warning("-v")
    result.stdout.fnmatch_lines(["it.rules.yaml::a.nested *PASSED*"])
    result.stdout.fnmatch_lines(["it.rules.yaml::a.nested", "*FutureWarning: Possible nested*"])
    assert result.parseoutcomes() == {"passed": 2, "warnings": 2}, "one of the collection, one of the rule"


def test_the_warning_of_a_rule_can_be_an_error(
    pytester: pytest.Pytester, run_with_warning: Callable[..., pytest.RunResult]
) -> None:
    pytester.makeconftest("def pytest_collection_modifyitems(items):\n    items[0].add_marker(MARK)\n" + ERROR_MARK)
    result = run_with_warning()
    result.stdout.fnmatch_lines(["*the check broke: FutureWarning: Possible nested set at position 1*"])
    assert result.parseoutcomes() == {"errors": 1, "passed": 1, "warnings": 1}


def test_the_evidence_of_a_rule_counts_the_tests_that_its_command_ran(
    pytester: pytest.Pytester, write_rule_file: WriteRules
) -> None:
    write_rule_file("rules:\n  - {id: a.tests, description: Tests pass, check: {command: echo 2 passed in 0.1s}}\n")
    calls = pytester.inline_run("-p", "no:cacheprovider").getcalls("pytest_runtest_logreport")
    (report,) = (call.report for call in calls if call.report.when == "call")
    assert report.loop["evidence"]["tests"] == [2, 2]
