"""Messages of search rounds and trials, produced in one process to measure their coverage."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_loop.repair.repair_request import RepairResult
from tests.repair.conftest import Write, make_command, make_environment
from tests.repair.single_process import EDITS
from tests.repair.test_import_round import PACKAGE

pytestmark = pytest.mark.measured
CODE = """
    LIMIT = 10


    def act(number):
        return number - 1


    def fits(number):
        return act(number) < LIMIT
    """
TESTS = """
    from code_ import act, fits

    def test_a(): assert act(1) == 2
    def test_b(): assert act(0) == 1
    def test_c(): assert fits(3)
    def test_d(tmp_path): assert fits(8), tmp_path.write_text("no")
    """


def run_part(part: str, folder: Path, home: Path, **fields: Any) -> list[dict[str, Any]]:
    command, answer = make_command(folder, home, **fields)
    script = str(Path(__file__).parent / "single_process.py")
    process = subprocess.run(
        [sys.executable, script, part, command[-2], str(answer)],
        cwd=folder, env=make_environment(), capture_output=True, timeout=120,
    )  # fmt: skip
    assert process.returncode == 0, (process.stdout + process.stderr).decode(errors="replace")
    messages: list[dict[str, Any]] = json.loads(answer.read_bytes())
    return messages


def test_check_reports_promising_edits_and_trial_reports_every_test(write: Write, tmp_path: Path) -> None:
    messages = run_part("trials", write({"code_.py": CODE, "test_it.py": TESTS}), tmp_path)
    tests = [message for message in messages if "test" in message]
    assert [message["passed"] for message in tests] == [False, False, True, True]
    assert [message["failure"]["error"] for message in tests] == ["AssertionError", "AssertionError", "", ""]
    (path,) = tests[2]["lines"]
    assert tests[2]["lines"][path] == [5, 9]
    middle = messages.index({"alone": True})
    check, trial = messages[len(tests) : middle], messages[middle + 1 :]
    assert [message["begun"] for message in check if "begun" in message] == list(range(len(EDITS)))
    assert [message["worth"] for message in check if "worth" in message] == [EDITS.index("number + 1")]
    assert [(message["at"], message["passed"]) for message in trial if "at" in message] == [
        (at, True) for at in (0, 1, 2, 3)
    ]
    assert trial[-1] == {"through": True}


def test_round_reports_its_result(write: Write, tmp_path: Path) -> None:
    messages = run_part("round", write({"code_.py": CODE, "test_it.py": TESTS}), tmp_path, seconds_after_green=0.5)
    result = RepairResult.model_validate(messages[-1])
    assert "return number + 1" in result.patches[0].after
    assert (result.end_reason, result.passing, result.remaining) == ("green", 2, ())


def test_round_reports_a_step_if_some_tests_cannot_be_fixed(write: Write, tmp_path: Path) -> None:
    more = f"{TESTS}\n    def test_never(): assert act(5) == 'never'\n"
    messages = run_part(
        "round", write({"code_.py": CODE, "test_it.py": more}), tmp_path, seconds_after_green=0.5, candidates=400
    )
    result = RepairResult.model_validate(messages[-1])
    assert "return number + 1" in result.steps[0].after
    assert result.remaining == ("test_it.py::test_never",)
    assert result.end_reason == "partly green"


@pytest.mark.parametrize(
    ("code", "fields", "end_reason"),
    [
        ("def act(number):\n    return number + 1\ndef fits(number):\n    return True\n", {}, "nothing fails"),
        (CODE, {"allow": ["nowhere.py"]}, "nothing to edit"),
        (CODE, {"localise_only": True}, "localised"),
        (CODE, {"pytest_arguments": ["-p", "no:agent_loop", "-k", "nothing"]}, "no tests"),
    ],
)
def test_round_reports_why_there_are_no_candidates(
    code: str, fields: dict[str, Any], end_reason: str, write: Write, tmp_path: Path
) -> None:
    messages = run_part("round", write({"code_.py": code, "test_it.py": TESTS}), tmp_path, **fields)
    assert (messages[-1]["end_reason"], messages[-1]["tried"]) == (end_reason, 0)


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ("five = 5\n        LIMIT = fife", ""),
        ("raise SystemError('no')", "tests/test_use.py cannot be imported: SystemError: no (shop/limits.py:4)"),
    ],
)
def test_round_reports_modules_that_cannot_be_imported(wrong: str, problem: str, write: Write, tmp_path: Path) -> None:
    limits = PACKAGE["shop/limits.py"].replace("LIMIT = 5", wrong)
    messages = run_part(
        "round", write({**PACKAGE, "shop/limits.py": limits}), tmp_path, seconds_after_green=0.0, candidates=2
    )
    assert list(messages[-2]["broken"]) == ["tests/test_use.py"]
    result = RepairResult.model_validate(messages[-1])
    assert result.problem == problem
    assert bool(result.patches) is not bool(problem)
