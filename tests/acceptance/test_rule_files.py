"""A rule file is collected, run, selected and reported by pytest like any test module."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import WORKERS_IF_THOROUGH

Write = Callable[..., Path]

RULES = """
    artifact: doc.md
    rules:
      - id: a.content.title
        description: It has a title
        check: {contains: "# Title"}
      - id: a.content.body
        description: It says hello
        severity: warn
        check: {matches: "^Hello"}
        fix: say hello
      - id: a.content.note
        description: It has a note
        severity: info
        check: {contains: Note}
      - id: b.content.long
        description: It is long
        check: {size: {lines: {min: 100}}}
      - id: b.content.kind
        description: It is kind
        severity: warn
        check: It reads kindly
"""
LINES = [
    "FAILED it.rules.yaml::b.content.long - doc.md: expected at least 100 lines, found 1",
    "=* loop score =*",
    "it  FAIL  0.4 (2 of 5) < 0.9 in phase B, 5 rules: 1 passed, 1 failed, 1 info, 1 warned, 1 not judged",
    "  blocks: b.content.long: doc.md: expected at least 100 lines, found 1",
    "  warns: a.content.body: doc.md: expected a match of '^Hello', found it nowhere",
    "  info: a.content.note: doc.md: expected the text 'Note', found it nowhere",
    "  not judged: b.content.kind: a sentence that only an agent can judge: 'It reads kindly'",
    "*1 failed, 1 passed, 1 *",
]


@pytest.fixture
def project(pytester: pytest.Pytester, write_rule_file: Write) -> pytest.Pytester:
    write_rule_file(RULES)
    (pytester.path / "doc.md").write_text("# Title\n")
    return pytester


def test_sentence_that_blocks_fails_a_session_without_a_judge(project: pytest.Pytester, write_rule_file: Write) -> None:
    write_rule_file("artifact: doc.md\nrules:\n  - {id: a.x.kind, description: It is kind, check: It reads kindly}\n")
    result = project.runpytest()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        ["  not verified: a.x.kind: a sentence that only an agent can judge: 'It reads kindly'"]
    )


def test_rules_are_scored_and_blockers_are_named(project: pytest.Pytester, workers: tuple[str, ...]) -> None:
    result = project.runpytest(*workers)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(LINES)
    assert result.parseoutcomes() == {"failed": 1, "passed": 1, "warned": 1, "info": 1, "assumed": 1}


@pytest.mark.parametrize(
    "dist",
    [
        "load",
        *(
            pytest.param(dist, marks=pytest.mark.thorough)
            for dist in ("loadgroup", "loadscope", "loadfile", "worksteal")
        ),
        "each",
    ],
)
def test_the_score_is_the_same_with_every_xdist_distribution(project: pytest.Pytester, dist: str) -> None:
    result = project.runpytest("-n2", f"--dist={dist}")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(LINES[1:-1])


def test_a_failing_rule_shows_each_finding_and_the_advice(project: pytest.Pytester, write_rule_file: Write) -> None:
    write_rule_file(
        """
        rules:
          - id: a.x.y
            description: It works
            check: {command: "sh -c 'echo one; echo two; exit 3'"}
            fix: {command: make it work}
        """,
        "other.rules.yaml",
    )
    result = project.runpytest("other.rules.yaml")
    result.stdout.fnmatch_lines(
        [
            "_* a.x.y: It works _*",
            "expected exit code 0 of `sh -c 'echo one; echo two; exit 3'`, found exit code 3",
            "    one",
            "    two",
            "fix: run `make it work`",
        ]
    )


def test_python_checks_may_call_pytest_fail_and_skip(pytester: pytest.Pytester, write_rule_file: Write) -> None:
    pytester.makepyfile(
        judges="import pytest\ndef no(a, w): pytest.fail('not like this')\ndef never(a, w): pytest.skip('not here')\n"
    )
    write_rule_file(
        """
        rules:
          - {id: a.x.no, description: Nope, check: {python: "judges:no"}}
          - {id: a.x.never, description: Never, severity: warn, check: {python: "judges:never"}}
        """
    )
    result = pytester.runpytest()
    result.assert_outcomes(failed=1, skipped=1)
    result.stdout.fnmatch_lines(["  blocks: a.x.no: *not like this*", "  not judged: a.x.never: not here"])


def test_progress_letters_differ_by_verdict(project: pytest.Pytester) -> None:
    project.runpytest().stdout.fnmatch_lines(["it.rules.yaml .WiFa *"])


@WORKERS_IF_THOROUGH
def test_verbose_shows_severity_and_phase(project: pytest.Pytester, workers: tuple[str, ...]) -> None:
    result = project.runpytest("-v", *workers)
    for word, name in [
        ("PASSED (fail, A)", "a.content.title"),
        ("WARNED (warn, A)", "a.content.body"),
        ("INFO (info, A)", "a.content.note"),
        ("FAILED (fail, B)", "b.content.long"),
        ("ASSUMED (warn, B)", "b.content.kind"),
    ]:
        line = f"*{word} it.rules.yaml::{name}*" if workers else f"it.rules.yaml::{name} {word} *"
        result.stdout.fnmatch_lines([line])


@WORKERS_IF_THOROUGH
def test_the_exit_code_is_that_of_the_criteria(
    project: pytest.Pytester, write_rule_file: Write, workers: tuple[str, ...]
) -> None:
    assert project.runpytest(*workers, "-k", "title or kind or note").ret == pytest.ExitCode.OK
    result = project.runpytest(*workers, "-k", "body")
    assert result.ret == pytest.ExitCode.TESTS_FAILED, "only a warning, but the score is below the threshold"
    result.stdout.fnmatch_lines(["it  FAIL  0 (0 of 1) < 0.9 in phase B, 1 of 5 rules selected: 1 warned"])


@WORKERS_IF_THOROUGH
def test_loop_phase_selects_a_phase(project: pytest.Pytester, workers: tuple[str, ...]) -> None:
    result = project.runpytest("--loop-phase=A", *workers)
    result.stdout.fnmatch_lines(["it  FAIL  0.666 (2 of 3) < 0.8 in phase A, 3 rules: 1 passed, 1 info, 1 warned"])
    (project.path / "pytest.ini").write_text("[pytest]\nloop_phase = a\n")
    assert result.stdout.str().count("b.content") == 0
    project.runpytest(*workers).stdout.fnmatch_lines(["it  FAIL  0.666 *in phase A, *"])
    result = project.runpytest("--loop-phase=C")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*argument --loop-phase: expected A or B, found 'C'"])


@pytest.mark.parametrize(
    ("args", "ids"),
    [
        (["-k", "title or long"], ["a.content.title", "b.content.long"]),
        (["-m", 'loop_rule(severity="warn")'], ["a.content.body", "b.content.kind"]),
        (["-m", 'loop_rule(phase="B")'], ["b.content.long", "b.content.kind"]),
        (["it.rules.yaml::a.content.body"], ["a.content.body"]),
        (
            ["--deselect", "it.rules.yaml::b.content.long", "--deselect", "it.rules.yaml::b.content.kind"],
            ["a.content.title", "a.content.body", "a.content.note"],
        ),
    ],
)
def test_rules_are_selected_like_tests(project: pytest.Pytester, args: list[str], ids: list[str]) -> None:
    result = project.runpytest("--co", "-q", *args)
    assert [line.split("::")[1] for line in result.outlines if "::" in line] == ids
    assert "loop score" not in result.stdout.str()
    result = project.runpytest(*args)
    result.stdout.fnmatch_lines([f"it  *{len(ids)} of 5 rules selected: *"])


def test_session_in_which_a_plugin_left_out_rules_is_not_green(pytester: pytest.Pytester) -> None:
    rule = "rules:\n  - {id: a.x.%s, description: x, check: {files: {exist: [none.txt]}}}"
    for name in ("ignored", "deselected"):
        pytester.path.joinpath(f"{name}.rules.yaml").write_text(rule % name)
    pytester.makepyfile(test_it="def test_it(): pass")
    pytester.makepyfile(
        selector="""
        def pytest_ignore_collect(collection_path):
            return True if collection_path.name == "ignored.rules.yaml" else None

        def pytest_collection_modifyitems(config, items):
            config.hook.pytest_deselected(items=[item for item in items if "rules" in item.nodeid])
            items[:] = [item for item in items if "rules" not in item.nodeid]
        """
    )
    pytester.syspathinsert()
    result = pytester.runpytest("-p", "selector")
    text = "*left them out: ignored.rules.yaml* deselected.rules.yaml::a.x.deselected; run all rules without it"
    result.stdout.fnmatch_lines([text])
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    result = pytester.runpytest("-p", "selector", "--ignore=ignored.rules.yaml", "-k", "test_it")
    assert result.ret == 0
    result.stdout.no_fnmatch_line("*left them out*")


def test_the_last_failures_are_run_again_and_first(project: pytest.Pytester) -> None:
    project.runpytest()
    result = project.runpytest("--lf")
    result.stdout.fnmatch_lines(
        ["it.rules.yaml F *", "it  FAIL  0 (0 of 2) < 0.9 in phase B, 1 of 5 rules selected: 1 failed"]
    )
    project.runpytest("--ff").stdout.fnmatch_lines(["it.rules.yaml F.Wia *"])


def test_rules_after_the_first_failure_are_not_verified(project: pytest.Pytester, write_rule_file: Write) -> None:
    write_rule_file(
        """
        rules:
          - {id: a.x.warned, description: W, severity: warn, check: {command: "false"}}
          - {id: a.x.failed, description: F, check: {command: "false"}}
          - {id: a.x.later, description: L, check: {command: "true"}}
        """
    )
    result = project.runpytest("-x")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            "it.rules.yaml WF",
            "it  FAIL  0 (0 of 5) < 0.9 in phase B, 3 rules: 2 failed, 1 warned",
            "  blocks: a.x.later: not verified: no report arrived",
        ]
    )


def test_other_plugins_see_rules_as_items(project: pytest.Pytester) -> None:
    project.makeconftest(
        "seen = []\ndef pytest_runtest_setup(item): seen.append(item.name)\ndef pytest_unconfigure(): print('SEEN', *seen)"
    )
    result = project.runpytest("-s")
    result.stdout.fnmatch_lines(["*SEEN a.content.title a.content.body a.content.note b.content.long b.content.kind"])


def test_rules_between_tests_leave_fixtures_as_they_are(project: pytest.Pytester) -> None:
    module = "import pytest\n@pytest.fixture(scope='module')\ndef it():\n    yield 1\n    print('DOWN', __name__)\ndef test_one(it): pass\ndef test_two(it): pass\n"
    project.makepyfile(test_a=module, test_z=module)
    result = project.runpytest("-s", "test_a.py", "it.rules.yaml", "test_z.py", "--durations=0", "-vv")
    assert result.parseoutcomes()["passed"] == 5
    result.stdout.fnmatch_lines(["*DOWN test_a", "it.rules.yaml::a.content.title PASSED*", "*DOWN test_z"])


def test_junit_carries_severity_weight_phase_verdict_and_the_score(
    project: pytest.Pytester, workers: tuple[str, ...]
) -> None:
    import xml.etree.ElementTree as ElementTree

    project.runpytest("--junitxml=out.xml", *workers)
    suite = ElementTree.parse(project.path / "out.xml").getroot()[0]
    properties = {
        case.attrib["name"]: {node.attrib["name"]: node.attrib["value"] for node in case.iter("property")}
        for case in suite.iter("testcase")
    }
    assert properties["a.content.body"] == {
        "loop.severity": "warn",
        "loop.weight": "1",
        "loop.phase": "A",
        "loop.verdict": "warn",
    }
    assert {name: values["loop.verdict"] for name, values in properties.items()} == {
        "a.content.title": "pass",
        "a.content.body": "warn",
        "a.content.note": "fail",
        "b.content.long": "fail",
        "b.content.kind": "na",
    }
    assert [(node.attrib["name"], node.attrib["value"]) for node in suite.findall("properties/property")] == [
        ("loop.score", "0.4")
    ]


def test_several_criteria_have_a_line_each_and_all_must_pass(
    project: pytest.Pytester, write_rule_file: Write, workers: tuple[str, ...]
) -> None:
    write_rule_file(
        "rules: [{id: a.x.y, description: ok, check: {command: 'true'}}]",
        "sub/fine-one.rules.json".replace("json", "yml"),
    )
    result = project.runpytest(*workers, "--junitxml=out.xml")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        ["it        FAIL  0.4 *", "fine-one  PASS  1 (2 of 2) >= 0.9 in phase B, 1 rule: 1 passed"]
    )
    assert 'name="loop.score.fine-one" value="1"' in (project.path / "out.xml").read_text()


def test_failing_ordinary_tests_fail_the_session_too(project: pytest.Pytester, workers: tuple[str, ...]) -> None:
    project.makepyfile(test_it="def test_ok(): pass\ndef test_bad(): assert 0\n")
    result = project.runpytest(*workers, "-k", "test_ or title")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["it  PASS *1 of 5 rules selected: 1 passed"])


def test_a_must_not_rule_that_is_true_fails_the_session(pytester: pytest.Pytester, write_rule_file: Write) -> None:
    write_rule_file(
        """
        rules:
          - {id: a.x.never, description: Never, severity: info, must_not: true, check: {command: "true"}}
          - {id: a.x.fine, description: Fine, must_not: true, check: {command: "false"}}
        """
    )
    result = pytester.runpytest()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*FAILED it.rules.yaml::a.x.never - expected this never to be true, found that it is"])


def test_an_error_is_reported_as_such_and_never_passes(
    pytester: pytest.Pytester, write_rule_file: Write, workers: tuple[str, ...]
) -> None:
    write_rule_file(
        """
        rules:
          - {id: a.x.tool, description: Tool, check: {command: no-such-tool}}
          - {id: a.x.judge, description: Judge, check: {judge: is it kind?}}
          - {id: a.x.warn, description: Warn, severity: warn, check: {command: no-such-tool}}
        """
    )
    result = pytester.runpytest(*workers)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert result.parseoutcomes() == {"errors": 2, "warned": 1}
    result.stdout.fnmatch_lines(
        [
            "ERROR it.rules.yaml::a.x.tool - cannot run 'no-such-tool': no such command is installed here",
            "it  FAIL  0 (0 of 5) < 0.9 in phase B, 3 rules: 3 cannot be judged",
            "  cannot be judged: a.x.judge: no agent to ask 'is it kind?': *",
        ]
    )


def test_a_worker_that_dies_is_a_failed_rule_and_the_denominator_stays(
    pytester: pytest.Pytester, write_rule_file: Write
) -> None:
    pytester.makepyfile(deadly="import os\ndef die(artifact, workspace): os._exit(1)\n")
    write_rule_file(
        """
        rules:
          - {id: a.x.one, description: One, check: {command: "true"}}
          - {id: a.x.die, description: Die, check: {python: "deadly:die"}}
          - {id: a.x.two, description: Two, check: {command: "true"}}
        """
    )
    result = pytester.runpytest("-n1", "--max-worker-restart=0")
    assert result.ret != 0
    result.stdout.fnmatch_lines(
        [
            "it  FAIL  0.333 (2 of 6) < 0.9 in phase B, 3 rules: 1 passed, 2 failed",
            "  blocks: a.x.die: worker 'gw0' crashed while running 'it.rules.yaml::a.x.die'",
            "  blocks: a.x.two: not verified: no report arrived",
        ]
    )


def test_the_schema_is_printed(pytester: pytest.Pytester) -> None:
    import json

    from pytest_loop.rules.rule_files import build_json_schema

    result = pytester.runpytest("--loop-schema")
    assert result.ret == 0
    assert json.loads(result.stdout.str()) == build_json_schema()


def test_the_plugin_changes_nothing_without_rules(pytester: pytest.Pytester, workers: tuple[str, ...]) -> None:
    pytester.makepyfile(
        "import sys\ndef test_it(): assert not [n for n in sys.modules if n.startswith('pytest_loop.rules')]"
    )
    result = pytester.run(sys.executable, "-m", "pytest", *workers, "-p", "no:cacheprovider")
    result.assert_outcomes(passed=1)
    assert "loop" not in "\n".join(line for line in result.outlines if not line.startswith("plugins:"))
    assert not [path.name for path in pytester.path.iterdir() if "loop" in path.name]


@pytest.mark.parametrize("is_on", [True, False], ids=["on", "off"])
def test_the_garbage_collector_is_left_as_it_was(
    pytester: pytest.Pytester, write_rule_file: Callable[..., Path], is_on: bool
) -> None:
    write_rule_file("artifact: it.rules.yaml\nrules: [{id: a.x.y, description: Y, check: {contains: artifact}}]")
    was_on = gc.isenabled()
    (gc.enable if is_on else gc.disable)()
    try:
        pytester.runpytest_inprocess().assert_outcomes(passed=1)
        assert gc.isenabled() is is_on
    finally:
        (gc.enable if was_on else gc.disable)()
