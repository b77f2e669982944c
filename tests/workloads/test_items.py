"""Manifests and cases as pytest items, in one process and with workers."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

WriteWorkload = Callable[..., Path]
PYTHON = sys.executable
# Appends a line to a file for each call.
NOTE = f"{PYTHON} note.py"
NOTES = {
    "note.py": 'import sys\nwith open(sys.argv[1] + ".log", "a") as log:\n    log.write(" ".join(sys.argv[2:]) + "\\n")\n'
}
# Fails until it was called a number of times.
FLAKY = """\
import pathlib, runpy, sys
count = pathlib.Path("count")
count.write_text(str(int(count.read_text() if count.exists() else 0) + 1))
if int(count.read_text()) < int(sys.argv.pop()):
    sys.exit("not yet")
runpy.run_path("run.py")
"""


@pytest.fixture
def folder(pytester: pytest.Pytester) -> Path:
    return pytester.path


def count_outcomes(result: pytest.RunResult) -> dict[str, int]:
    return {name: count for name, count in result.parseoutcomes().items() if name != "warnings"}


def test_each_case_is_an_item_and_a_failure_shows_the_difference(
    write_workload: WriteWorkload, pytester: pytest.Pytester, workers: tuple[str, ...]
) -> None:
    write_workload()
    result = pytester.runpytest(*workers)
    assert (result.ret, count_outcomes(result)) == (1, {"passed": 1, "failed": 1})
    result.stdout.fnmatch_lines(["differs from expected/b.txt", "-TWO", "+two"])
    result.stdout.fnmatch_lines(["FAILED loop.manifest.json::cases/b.txt - differs from expected/b.txt*"])
    assert (pytester.path / "out/cases/a.txt").read_text() == "ONE\n"


@pytest.mark.parametrize(
    "selection",
    [("-k", "a.txt"), ("loop.manifest.json::cases/a.txt",), ("--deselect", "loop.manifest.json::cases/b.txt")],
)
def test_cases_are_selected_like_tests(
    write_workload: WriteWorkload, pytester: pytest.Pytester, selection: tuple[str, ...]
) -> None:
    write_workload()
    result = pytester.runpytest(*selection)
    assert result.ret == 0
    result.assert_outcomes(passed=1, deselected=0 if "::" in selection[0] else 1)
    assert not (pytester.path / "out/cases/b.txt").exists()


def test_last_failed_case_is_run_again(write_workload: WriteWorkload, pytester: pytest.Pytester) -> None:
    write_workload()
    pytester.runpytest()
    (pytester.path / "prompt.md").write_text("Use capitals.\n")
    result = pytester.runpytest("--lf")
    assert (result.ret, count_outcomes(result)) == (0, {"passed": 1})


def test_command_that_breaks_is_an_error_not_a_failure(
    write_workload: WriteWorkload, pytester: pytest.Pytester, workers: tuple[str, ...]
) -> None:
    write_workload({"run.py": "import sys; sys.exit('no key for the model')"})
    result = pytester.runpytest(*workers)
    assert (result.ret, count_outcomes(result)) == (1, {"errors": 2})
    result.stdout.fnmatch_lines(["expected exit code 0 of `*run.py {case} {output}`, found exit code 1"])
    result.stdout.fnmatch_lines(["no key for the model"])


def test_missing_output_file_is_an_error_even_if_an_old_one_exists(
    write_workload: WriteWorkload, pytester: pytest.Pytester
) -> None:
    write_workload({"run.py": "", "out/cases/a.txt": "ONE\n"})
    result = pytester.runpytest("-k", "a.txt")
    assert count_outcomes(result) == {"errors": 1, "deselected": 1}
    result.stdout.fnmatch_lines(["expected the output out/cases/a.txt of `*`, found none"])


@pytest.mark.parametrize(("needed", "expected"), [(3, {"passed": 1}), (4, {"errors": 1})])
def test_infrastructure_error_is_tried_three_times(
    write_workload: WriteWorkload, pytester: pytest.Pytester, needed: int, expected: dict[str, int]
) -> None:
    write_workload(
        {"flaky.py": FLAKY}, runCommand=f"{PYTHON} flaky.py {{case}} {{output}} {needed}", casePaths=["cases/a.txt"]
    )
    assert count_outcomes(pytester.runpytest()) == expected
    assert (pytester.path / "count").read_text() == "3"


def test_missing_program_is_tried_once(write_workload: WriteWorkload, pytester: pytest.Pytester) -> None:
    write_workload(runCommand="no-such-program {case}")
    result = pytester.runpytest("-k", "a.txt")
    result.stdout.fnmatch_lines(
        ["cannot run 'no-such-program': no such command is installed here, in `no-such-program {case}`"]
    )
    assert count_outcomes(result) == {"errors": 1, "deselected": 1}


def test_command_that_exceeds_its_timeout_is_an_error(write_workload: WriteWorkload, pytester: pytest.Pytester) -> None:
    write_workload({"run.py": "import time; time.sleep(60)"})
    result = pytester.runpytest("-o", "loop_case_timeout=0.2", "-k", "a.txt")
    assert count_outcomes(result) == {"errors": 1, "deselected": 1}
    result.stdout.fnmatch_lines(["expected `*` to end within 0.2 s, found it still running"])


def test_build_runs_once_for_all_cases_of_a_session(
    write_workload: WriteWorkload, pytester: pytest.Pytester, workers: tuple[str, ...]
) -> None:
    write_workload(NOTES, buildCommand=f"{NOTE} build")
    for sessions in (1, 2):
        pytester.runpytest(*workers)
        assert (pytester.path / "build.log").read_text().count("\n") == sessions


def test_build_that_fails_is_an_error_of_every_case(
    write_workload: WriteWorkload, pytester: pytest.Pytester, workers: tuple[str, ...]
) -> None:
    write_workload(buildCommand="false")
    result = pytester.runpytest(*workers)
    assert count_outcomes(result) == {"errors": 2}
    result.stdout.fnmatch_lines(["expected exit code 0 of `false`, found exit code 1"])


def make_session_runner(
    write_workload: WriteWorkload, pytester: pytest.Pytester, **fields: object
) -> Callable[..., list[str]]:
    """Run sessions, and return the cases that ran in each."""
    log = pytester.path / "run.log"
    write_workload({**NOTES, "run.py": NOTES["note.py"] + "open(sys.argv[3], 'w').write(open(sys.argv[2]).read())\n"},
         runCommand=f"{PYTHON} run.py run {{case}} {{output}}", **fields)  # fmt: skip

    def run_session(*arguments: str) -> list[str]:
        log.unlink(missing_ok=True)
        pytester.runpytest(*arguments)
        rows = log.read_text().splitlines() if log.exists() else []
        return sorted(row.split()[0].removeprefix("cases/") for row in rows)

    return run_session


def test_workers_share_cached_results(write_workload: WriteWorkload, pytester: pytest.Pytester) -> None:
    session = make_session_runner(write_workload, pytester)
    assert [session("-n2"), session(), session("-n2")] == [["a.txt", "b.txt"], [], []]


def test_cached_result_is_used_until_an_input_changes(write_workload: WriteWorkload, pytester: pytest.Pytester) -> None:
    session = make_session_runner(write_workload, pytester)
    assert [session(), session()] == [["a.txt", "b.txt"], []]
    for path, again in (
        ("prompt.md", ["a.txt", "b.txt"]),
        ("run.py", ["a.txt", "b.txt"]),
        ("cases/a.txt", ["a.txt"]),
        ("expected/b.txt", ["b.txt"]),
        ("out/cases/b.txt", ["b.txt"]),
    ):
        with (pytester.path / path).open("a") as file:
            file.write("\n")
        assert session() == again
    assert [session(), session("--cache-clear")] == [[], ["a.txt", "b.txt"]]


def test_cached_failure_is_still_a_failure_and_is_marked(
    write_workload: WriteWorkload, pytester: pytest.Pytester
) -> None:
    write_workload()
    pytester.runpytest()
    result = pytester.runpytest()
    assert (result.ret, count_outcomes(result)) == (1, {"passed": 1, "failed": 1})
    result.stdout.fnmatch_lines(["kept from before: *--cache-clear*"])


def test_infrastructure_errors_are_not_cached(write_workload: WriteWorkload, pytester: pytest.Pytester) -> None:
    write_workload(
        {"flaky.py": FLAKY}, runCommand=f"{PYTHON} flaky.py {{case}} {{output}} 4", casePaths=["cases/a.txt"]
    )
    assert count_outcomes(pytester.runpytest()) == {"errors": 1}
    assert count_outcomes(pytester.runpytest()) == {"passed": 1}


def test_strategy_force_caches_nothing_and_is_passed_to_the_command(
    write_workload: WriteWorkload, pytester: pytest.Pytester
) -> None:
    session = make_session_runner(write_workload, pytester, cacheStrategy="force")
    assert session() == session() == ["a.txt", "b.txt"]
    rows = (pytester.path / "run.log").read_text().splitlines()
    assert [row.split()[-1] for row in rows] == ["--force", "--force"]


def test_every_case_is_run_without_a_cache(write_workload: WriteWorkload, pytester: pytest.Pytester) -> None:
    session = make_session_runner(write_workload, pytester)
    assert session("-p", "no:cacheprovider") == session("-p", "no:cacheprovider") == ["a.txt", "b.txt"]


def test_tests_run_beside_an_invalid_manifest(
    write_workload: WriteWorkload, pytester: pytest.Pytester, workers: tuple[str, ...]
) -> None:
    write_workload(maxIterations=0, extra=1)
    pytester.makepyfile("def test_it(): pass")
    result = pytester.runpytest(*workers)
    assert count_outcomes(result) == {"passed": 1, "errors": 1}
    result.stdout.fnmatch_lines(["loop.manifest.json:*: expected a number >= 1 for `maxIterations`, found 0"])
    result.stdout.fnmatch_lines(["loop.manifest.json:*: expected one of *, found the unknown key `extra`"])


def test_cases_reviewed_by_an_agent_are_skipped_without_one(
    write_workload: WriteWorkload, pytester: pytest.Pytester
) -> None:
    write_workload({"review.md": "Is it fine?"}, expectedPaths=None, agents={"reviewer": {"promptFile": "review.md"}})
    result = pytester.runpytest("-rs")
    assert count_outcomes(result) == {"skipped": 2}
    result.stdout.fnmatch_lines(["*it needs a reviewer: name an agent with --loop-judge"])


def test_case_is_reviewed_by_the_named_agent(
    write_workload: WriteWorkload, pytester: pytest.Pytester, workers: tuple[str, ...]
) -> None:
    judge = "import json\ndef judge(request):\n    return json.dumps({'passed': 'cases/a.txt' in request.prompt, 'reason': 'it is not a'})\n"
    write_workload(
        {"review.md": "Is {case} fine?", "judges.py": judge},
        expectedPaths=None,
        agents={"reviewer": {"promptFile": "review.md"}},
    )
    result = pytester.runpytest("--loop-judge", "python:judges:judge", *workers)
    assert count_outcomes(result) == {"passed": 1, "failed": 1}
    result.stdout.fnmatch_lines(["FAILED loop.manifest.json::cases/b.txt - it is not a"])


def test_result_of_a_case_is_in_its_report(
    write_workload: WriteWorkload, pytester: pytest.Pytester, workers: tuple[str, ...]
) -> None:
    write_workload({"judge.py": "print('{\"passed\": false, \"score\": 0.5, \"critiques\": [{\"severity\": \"Minor\", \"message\": \"short\", \"location\": \"a:1\"}]}')"},
         evaluateCommand=f"{PYTHON} judge.py {{output}}")  # fmt: skip
    result = pytester.runpytest("--junitxml=it.xml", "-k", "a.txt", *workers)
    result.stdout.fnmatch_lines(["a:1: Minor: short", "score 0.5"])
    (case_property,) = ElementTree.parse(pytester.path / "it.xml").iterfind(".//property")
    data = json.loads(case_property.attrib["value"])
    assert (case_property.attrib["name"], data["id"], data["outcome"], data["score"]) == (
        "loop.case",
        "cases/a.txt",
        "failed",
        0.5,
    )


def test_cases_are_collected_beside_rules_and_tests(
    write_workload: WriteWorkload, pytester: pytest.Pytester, workers: tuple[str, ...]
) -> None:
    write_workload(
        {"it.rules.yaml": "artifact: prompt.md\nrules: [{id: a.x.y, description: d, check: {contains: Copy}}]\n"}
    )
    pytester.makepyfile("def test_it(): pass")
    result = pytester.runpytest(*workers)
    assert (result.ret, count_outcomes(result)) == (1, {"passed": 3, "failed": 1})


@pytest.mark.thorough
def test_run_ignores_cached_results(write_workload: WriteWorkload, pytester: pytest.Pytester) -> None:
    agent = "from pathlib import Path\ndef work(request):\n    Path('style.py').write_text('written = str.upper\\n')\n    return 'done'\n"
    code = "import pathlib, style, sys\npathlib.Path(sys.argv[2]).write_text(style.written(open(sys.argv[1]).read()))\n"
    write_workload({"run.py": code, "style.py": "written = str\n", "agent.py": agent, "pytest.ini": "[pytest]\n"})
    assert count_outcomes(pytester.runpytest()) == {"passed": 1, "failed": 1}
    words = (
        "loop.manifest.json",
        "--loop-task",
        "fix until green",
        "--loop-agent",
        "python:agent:work",
        "--loop-yes",
        "--loop-session=cold",
        "-v",
    )
    result = pytester.runpytest_subprocess(*words)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*-TWO", "done in *"])
