"""Quiet rules are run without what pytest does around an item; nobody can tell but by the clock."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_loop.rules import patterns, protocol

Write = Callable[..., Path]

RULES = """
    artifact: doc.md
    rules:
      - {id: a.one, description: One, check: {contains: Title}}
      - {id: a.two, description: Two, check: {matches: "^Hello"}, severity: warn}
      - {id: a.three, description: Three, check: {contains: nothing of it}}
      - {id: a.four, description: Four, check: {contains: Title}, repeat: 3, need: any}
      - {id: a.five, description: Five, check: {python: judges:judge}}
      - {id: a.six, description: Six, check: {contains: Title}}
      - {id: a.seven, description: Seven, check: {contains: Title}}
"""
WARNS = """
    artifact: doc.md
    rules:
      - {id: a.nested, description: Nested, check: {matches: "[[t]itle", ignore_case: true}}
      - {id: a.last, description: Last, check: {contains: Title}}
"""
WATCHED = "import pytest\n@pytest.hookimpl(wrapper=True)\ndef pytest_runtest_protocol():\n    return (yield)\n"
MARK = "import pytest\nMARK = pytest.mark.filterwarnings('error')\n"
TESTS = "def test_before():\n    pass\n"


@pytest.fixture
def project(pytester: pytest.Pytester, rule_file: Write) -> pytest.Pytester:
    rule_file(RULES)
    pytester.makepyfile(test_it=TESTS, judges="def judge(path, root):\n    return True\n")
    (pytester.path / "doc.md").write_text("# Title\n")
    return pytester


def _said(project: pytest.Pytester, *args: str) -> tuple[int, str]:
    """The exit code and the output of a session that remembers none before it, without its times."""
    result = project.runpytest("--cache-clear", *args)
    return int(result.ret), re.sub(r"\d+\.\d\ds|0x\w+", "...", str(result.stdout) + str(result.stderr))


@pytest.mark.parametrize(
    "args",
    [
        [],
        ["-q"],
        ["-v"],
        ["-vv", "--durations=0"],
        ["-x"],
        ["--maxfail=1", "-rA"],
        ["--collect-only"],
        ["--stepwise"],
        ["-k", "one or three"],
    ],
    ids=" ".join,
)
def test_a_session_says_the_same_as_one_that_is_watched(project: pytest.Pytester, args: list[str]) -> None:
    quick = _said(project, *args)
    project.makeconftest(WATCHED)
    slow = _said(project, *args)
    assert sorted(quick[1].splitlines()) == sorted(slow[1].splitlines())
    assert quick[0] == slow[0]


def _reports(project: pytest.Pytester, *args: str) -> list[str]:
    calls = project.inline_run("-p", "no:cacheprovider", *args).getcalls("pytest_runtest_logreport")
    return [call.report.when for call in calls if call.report.nodeid == "it.rules.yaml::a.one"]


def test_the_end_of_a_rule_is_reported_to_those_who_listen(project: pytest.Pytester) -> None:
    assert _reports(project) == ["call"]
    assert _reports(project, "--durations=3") == ["call", "teardown"]
    assert _reports(project, "--junitxml=it.xml") == ["call", "teardown"]
    project.makeconftest("def pytest_runtest_logreport(report):\n    print(report.when)\n")
    assert _reports(project) == ["call", "teardown"]


def _protocols(project: pytest.Pytester, *args: str) -> list[str]:
    calls = project.inline_run("-p", "no:cacheprovider", *args).getcalls("pytest_runtest_protocol")
    return [call.item.name for call in calls]


def test_quiet_rules_that_pass_are_run_without_the_protocol(project: pytest.Pytester) -> None:
    others = ["a.two", "a.three", "a.four[2]", "a.four[3]", "a.five", "a.seven", "test_before"]
    assert _protocols(project) == others, "they do not pass, run code, or are the last of their file"


@pytest.mark.parametrize("hook", ["logstart(nodeid)", "logreport(report)", "logfinish(nodeid)", "protocol(item)"])
def test_a_plugin_that_listens_hears_a_rule_in_the_ordinary_way(project: pytest.Pytester, hook: str) -> None:
    project.makeconftest(f"def pytest_runtest_{hook}:\n    pass\n")
    assert len(_protocols(project)) == 10


def test_a_plugin_may_have_a_loop_of_its_own(project: pytest.Pytester) -> None:
    project.makeconftest("def pytest_runtestloop():\n    print('nothing is run')\n    return True\n")
    result = project.runpytest("-s")
    result.stdout.fnmatch_lines(["*nothing is run*"])
    assert "loop score" not in str(result.stdout)


def test_a_time_limit_holds_for_rules(project: pytest.Pytester) -> None:
    assert len(_protocols(project, "-o", "faulthandler_timeout=100")) == 10


def test_rules_are_run_beside_a_file_that_cannot_be_collected(project: pytest.Pytester, rule_file: Write) -> None:
    rule_file("rules: 3\n", "bad.rules.yaml")
    result = project.runpytest("--continue-on-collection-errors")
    assert result.parseoutcomes() == {"passed": 6, "failed": 1, "warned": 1, "errors": 1, "skipped": 2}


@pytest.fixture
def warning(pytester: pytest.Pytester, rule_file: Write) -> Callable[..., pytest.RunResult]:
    """Runs a session with a rule whose pattern is one that `re` warns of."""

    def run(*args: str) -> pytest.RunResult:
        rule_file(WARNS)
        (pytester.path / "doc.md").write_text("Title\n")
        patterns._compile.cache_clear()
        re.purge()
        return pytester.runpytest("-p", "no:cacheprovider", "-W", "default", *args)

    return run


def test_the_warning_of_a_rule_is_shown_once_and_with_its_name(warning: Callable[..., pytest.RunResult]) -> None:
    result = warning("-v")
    result.stdout.fnmatch_lines(["it.rules.yaml::a.nested *PASSED*"])
    result.stdout.fnmatch_lines(["it.rules.yaml::a.nested", "*FutureWarning: Possible nested*"])
    assert result.parseoutcomes() == {"passed": 2, "warnings": 2}, "one of the collection, one of the rule"


def test_the_warning_of_a_rule_can_be_an_error(
    pytester: pytest.Pytester, warning: Callable[..., pytest.RunResult]
) -> None:
    pytester.makeconftest("def pytest_collection_modifyitems(items):\n    items[0].add_marker(MARK)\n" + MARK)
    result = warning()
    result.stdout.fnmatch_lines(["*the check broke: FutureWarning: Possible nested set at position 1*"])
    assert result.parseoutcomes() == {"errors": 1, "passed": 1, "warnings": 1}


SHOWN = """
    def pytest_sessionstart(session):
        config = session.config
        writer = config.get_terminal_writer()
        flush = writer.flush
        def counted():
            config.shown = getattr(config, "shown", 0) + 1
            flush()
        writer.flush = counted
    def pytest_unconfigure(config):
        config.rootpath.joinpath("shown").write_text(str(config.shown))
"""


@pytest.mark.parametrize(("longest", "is_each_shown"), [(0.0, True), (60.0, False)])
def test_the_terminal_shows_quiet_rules_together(
    pytester: pytest.Pytester,
    rule_file: Write,
    monkeypatch: pytest.MonkeyPatch,
    longest: float,
    is_each_shown: bool,
) -> None:
    monkeypatch.setattr(protocol, "LONGEST_UNSEEN", longest)
    rules = [{"id": f"a.{at}", "description": "it", "check": {"contains": "x"}} for at in range(100)]
    rule_file(json.dumps({"artifact": "doc.md", "rules": rules}), "many.rules.json")
    (pytester.path / "doc.md").write_text("x\n")
    pytester.makeconftest(SHOWN)
    pytester.runpytest_inprocess().assert_outcomes(passed=100)
    assert (int((pytester.path / "shown").read_text()) >= 100) is is_each_shown


def test_rules_are_judged_without_a_terminal(project: pytest.Pytester) -> None:
    assert project.runpytest("-p", "no:terminal", "-k", "six or seven").ret == pytest.ExitCode.OK
    assert project.runpytest("-p", "no:terminal").ret == pytest.ExitCode.TESTS_FAILED
