"""What is said in forks, told in one process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_loop.repair.repair_request import RepairResult
from tests.repair.conftest import Write, command, environment
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


def said(what: str, folder: Path, home: Path, **wishes: Any) -> list[dict[str, Any]]:
    words, answer = command(folder, home, **wishes)
    script = str(Path(__file__).parent / "single_process.py")
    done = subprocess.run(
        [sys.executable, script, what, words[-2], str(answer)],
        cwd=folder, env=environment(), capture_output=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, (done.stdout + done.stderr).decode(errors="replace")
    found: list[dict[str, Any]] = json.loads(answer.read_bytes())
    return found


def test_a_look_says_which_edits_are_worth_a_trial_and_a_trial_says_all(write: Write, tmp_path: Path) -> None:
    found = said("trials", write({"code_.py": CODE, "test_it.py": TESTS}), tmp_path)
    tests = [one for one in found if "test" in one]
    assert [one["passed"] for one in tests] == [False, False, True, True]
    assert [one["failure"]["error"] for one in tests] == ["AssertionError", "AssertionError", "", ""]
    (path,) = tests[2]["lines"]
    assert tests[2]["lines"][path] == [5, 9]
    middle = found.index({"alone": True})
    look, trial = found[len(tests) : middle], found[middle + 1 :]
    assert [one["begun"] for one in look if "begun" in one] == list(range(len(EDITS)))
    assert [one["worth"] for one in look if "worth" in one] == [EDITS.index("number + 1")]
    assert [(one["at"], one["passed"]) for one in trial if "at" in one] == [(at, True) for at in (0, 1, 2, 3)]
    assert trial[-1] == {"through": True}


def test_a_round_says_its_result(write: Write, tmp_path: Path) -> None:
    found = said("round", write({"code_.py": CODE, "test_it.py": TESTS}), tmp_path, seconds_after_green=0.5)
    best = RepairResult.model_validate(found[-1])
    assert "return number + 1" in best.patches[0].after
    assert (best.end_reason, best.passing, best.remaining) == ("green", 2, ())


def test_a_round_gives_a_step_where_nothing_better_is_near(write: Write, tmp_path: Path) -> None:
    more = f"{TESTS}\n    def test_never(): assert act(5) == 'never'\n"
    found = said(
        "round", write({"code_.py": CODE, "test_it.py": more}), tmp_path, seconds_after_green=0.5, candidates=400
    )
    best = RepairResult.model_validate(found[-1])
    assert "return number + 1" in best.steps[0].after
    assert best.remaining == ("test_it.py::test_never",)
    assert best.end_reason == "partly green"


@pytest.mark.parametrize(
    ("code", "wishes", "ended"),
    [
        ("def act(number):\n    return number + 1\ndef fits(number):\n    return True\n", {}, "nothing fails"),
        (CODE, {"allow": ["nowhere.py"]}, "nothing to edit"),
        (CODE, {"localise_only": True}, "localised"),
        (CODE, {"pytest_arguments": ["-p", "no:agent_loop", "-k", "nothing"]}, "no tests"),
    ],
)
def test_a_round_says_why_it_has_nothing_to_try(
    code: str, wishes: dict[str, Any], ended: str, write: Write, tmp_path: Path
) -> None:
    found = said("round", write({"code_.py": code, "test_it.py": TESTS}), tmp_path, **wishes)
    assert (found[-1]["end_reason"], found[-1]["tried"]) == (ended, 0)


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ("five = 5\n        LIMIT = fife", ""),
        ("raise SystemError('no')", "tests/test_use.py cannot be imported: SystemError: no (shop/limits.py:4)"),
    ],
)
def test_a_round_says_what_cannot_be_imported(wrong: str, problem: str, write: Write, tmp_path: Path) -> None:
    limits = PACKAGE["shop/limits.py"].replace("LIMIT = 5", wrong)
    found = said("round", write({**PACKAGE, "shop/limits.py": limits}), tmp_path, seconds_after_green=0.0, candidates=2)
    assert list(found[-2]["broken"]) == ["tests/test_use.py"]
    best = RepairResult.model_validate(found[-1])
    assert best.problem == problem
    assert bool(best.patches) is not bool(problem)
