from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_loop.core.workload.measurement import CaseOutcome
from pytest_loop.errors import CheckError
from pytest_loop.rules.checks.check import Answer
from pytest_loop.workloads.build import BuildOnce
from pytest_loop.workloads.cases import Workload
from pytest_loop.workloads.pipeline import Calibration, Pipeline, calibrated
from pytest_loop.workloads.remembering import Memory

Opened = Callable[..., Workload]
PYTHON = sys.executable
COUNTING = (
    "import pathlib, sys\nlog = pathlib.Path('log')\nlog.write_text((log.read_text() if log.exists() else '') + 'x')\n"
)


def first_case(workload: Workload) -> Calibration:
    return calibrated(Pipeline(workload), workload.cases[0])


def test_calibration_fails_three_times_and_then_it_ends(opened: Opened, folder: Path) -> None:
    found = first_case(opened({"run.py": COUNTING + "sys.exit('broken')"}))
    assert not found.passed
    assert (found.case, len(found.errors)) == ("cases/a.txt", 3)
    assert all("found exit code 1\nbroken" in one for one in found.errors)
    assert (folder / "log").read_text() == "xxx"
    assert found.payload() == {"case": "cases/a.txt", "passed": False, "attempts": 3, "errors": list(found.errors)}


def test_calibration_is_content_with_a_pipeline_that_works_whatever_the_case_says(opened: Opened) -> None:
    found = first_case(opened({"expected/a.txt": "something else"}))
    assert found.payload() == {"case": "cases/a.txt", "passed": True, "attempts": 1, "errors": []}


def test_calibration_may_succeed_late(opened: Opened, folder: Path) -> None:
    code = COUNTING + "sys.exit(1) if len(log.read_text()) < 3 else pathlib.Path(sys.argv[2]).write_text('ONE\\n')"
    found = first_case(opened({"run.py": code}))
    assert (found.passed, len(found.errors)) == (True, 2)


def test_calibration_builds_first(opened: Opened, folder: Path) -> None:
    found = first_case(opened({"build.py": COUNTING + "sys.exit('no compiler')"}, buildCommand=f"{PYTHON} build.py"))
    assert ((folder / "log").read_text(), len(found.errors), found.passed) == ("xxx", 3, False)
    assert found.errors[0].endswith("no compiler")


def test_calibration_leaves_to_the_session_what_only_an_agent_can_review(opened: Opened) -> None:
    workload = opened({"ask.md": "Is it fine?"}, expectedPaths=None, agents={"reviewer": {"promptFile": "ask.md"}})
    assert first_case(workload).passed


def test_with_a_review_command_both_must_pass(opened: Opened) -> None:
    judges = {"judge.py": "import sys; print(sys.argv[1]); sys.exit(int(sys.argv[1]))"}
    for evaluate, review, outcome in ((0, 0, "passed"), (0, 1, "failed"), (1, 0, "failed")):
        workload = opened(
            judges, evaluateCommand=f"{PYTHON} judge.py {evaluate}", reviewCommand=f"{PYTHON} judge.py {review}"
        )
        assert Pipeline(workload).result(workload.cases[0]).outcome.value == outcome


def test_a_difference_is_only_noted_where_a_command_judges(opened: Opened) -> None:
    workload = opened(evaluateCommand="true")
    found = Pipeline(workload).result(workload.cases[1])
    assert (found.outcome, found.difference) == (CaseOutcome.PASSED, "")
    workload = opened(evaluateCommand="false")
    found = Pipeline(workload).result(workload.cases[1])
    assert found.outcome is CaseOutcome.FAILED
    assert "-TWO" in found.difference


def test_an_evaluator_that_is_killed_is_an_error_of_the_infrastructure(opened: Opened) -> None:
    workload = opened({"judge.py": "import os; os.kill(os.getpid(), 9)"}, evaluateCommand=f"{PYTHON} judge.py")
    found = Pipeline(workload).result(workload.cases[0], tries=1)
    assert found.outcome is CaseOutcome.INFRASTRUCTURE
    assert found.text == f"expected exit code 0 of `{PYTHON} judge.py`, found an end by signal 9"


def test_an_expected_file_that_vanished_is_an_error_of_the_infrastructure(opened: Opened, folder: Path) -> None:
    workload = opened()
    (folder / "expected/a.txt").unlink()
    found = Pipeline(workload).result(workload.cases[0], tries=1)
    assert found.text == "cannot compare out/cases/a.txt with expected/a.txt: No such file or directory"


def test_an_output_never_leaves_the_project_through_a_link(
    opened: Opened, folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    workload = opened()
    (folder / "out").symlink_to(tmp_path_factory.mktemp("elsewhere"))
    found = Pipeline(workload).result(workload.cases[0])
    assert found.text == "expected a place inside the project for the output out/cases/a.txt, found a link out of it"


@pytest.mark.parametrize("blocking", ["out", "out/cases/a.txt/b"])
def test_an_output_that_has_no_room_is_an_error_of_the_infrastructure(opened: Opened, blocking: str) -> None:
    workload = opened({blocking: ""})
    found = Pipeline(workload).result(workload.cases[0])
    assert found.outcome is CaseOutcome.INFRASTRUCTURE
    assert found.text.startswith("cannot make room for the output out/cases/a.txt: ")


def test_a_prompt_that_cannot_be_read_is_an_error_of_the_infrastructure(opened: Opened, folder: Path) -> None:
    workload = opened({"review.md": ""}, expectedPaths=None, agents={"reviewer": {"promptFile": "review.md"}})
    (folder / "review.md").write_bytes(b"ok\n\xff")
    found = Pipeline(workload, ask=lambda *_: Answer(True)).result(workload.cases[0])
    assert found.text == "review.md:2: expected UTF-8 text, found the byte 0xff"


def test_paths_with_spaces_stay_one_word(opened: Opened) -> None:
    workload = opened({"cases/a b.txt": "ONE\n", "expected/a b.txt": "ONE\n"})
    assert Pipeline(workload).result(workload.cases[0]).passed


def test_a_reviewer_without_words_says_no_all_the_same(opened: Opened) -> None:
    workload = opened(
        {"review.md": 'Is {case} like {"a": 1}?'}, expectedPaths=None, agents={"reviewer": {"promptFile": "review.md"}}
    )
    asked: list[tuple[str, Path]] = []

    def ask(question: str, artifact: Path) -> Answer:
        asked.append((question, artifact))
        return Answer(False)

    found = Pipeline(workload, ask=ask).result(workload.cases[0])
    assert [str(one) for one in found.critiques] == ["the reviewer says no"]
    assert asked == [('Is cases/a.txt like {"a": 1}?', workload.folder / "out/cases/a.txt")]


def test_what_is_kept_is_lost_without_harm(opened: Opened, tmp_path: Path) -> None:
    workload = opened()
    case, other = workload.cases
    memory = Memory(tmp_path, workload)
    key = memory.key(case)
    found = Pipeline(workload).result(case)
    memory.keep(case, key, found)
    assert memory.known(case, key) == found.model_copy(update={"reused": True})
    (kept,) = tmp_path.glob("????????????????.jsonl")
    kept.write_bytes(kept.read_bytes()[:-1])
    late = Memory(tmp_path, workload)
    assert late.known(case, key) is None
    late.keep(other, key, Pipeline(workload).result(other))
    assert Memory(tmp_path, workload).known(other, key)
    Memory(tmp_path / "gone", workload).keep(case, key, found)


def test_what_is_kept_does_not_grow_with_every_session(opened: Opened, tmp_path: Path) -> None:
    workload = opened()
    case, other = workload.cases
    results = {one: Pipeline(workload).result(one) for one in (case, other)}
    Memory(tmp_path, workload).keep(other, "key", results[other])
    for number in range(50):
        Memory(tmp_path, workload).keep(case, f"key {number}", results[case])
    (kept,) = tmp_path.glob("????????????????.*")
    assert len(kept.read_text().splitlines()) < 20
    last = Memory(tmp_path, workload)
    assert last.known(case, "key 49")
    assert last.known(other, "key")


def test_a_program_that_is_installed_again_is_another_program(
    opened: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "extract"
    program.parent.mkdir()
    monkeypatch.setenv("PATH", str(program.parent))
    workload = opened(runCommand="extract {case} {output}")
    keys = []
    for text in ("#!/bin/sh\n", "#!/bin/sh\ntrue\n"):
        program.write_text(text)
        program.chmod(0o755)
        keys.append(Memory(tmp_path, workload).key(workload.cases[0]))
    assert keys[0] != keys[1]


def test_a_folder_that_a_command_names_has_no_content(opened: Opened, tmp_path: Path) -> None:
    workload = opened(runCommand=f"{PYTHON} run.py {{case}} {{output}} cases")
    assert Memory(tmp_path, workload).key(workload.cases[0])


@pytest.mark.parametrize("is_shared", [False, True])
def test_what_is_done_once_is_done_once_also_where_it_failed(tmp_path: Path, is_shared: bool) -> None:
    folder = tmp_path / "exchange" if is_shared else None
    calls: list[str] = []

    def works() -> None:
        calls.append("works")

    def breaks() -> None:
        calls.append("breaks")
        raise CheckError("no compiler")

    workers = [BuildOnce(folder), BuildOnce(folder)] if is_shared else [BuildOnce()]
    for one in (*workers, *workers):
        one.run("a", works)
        with pytest.raises(CheckError, match="no compiler"):
            one.run("b", breaks)
    assert calls == ["works", "breaks"]


@pytest.mark.parametrize(
    ("need", "passing", "outcome", "runs"),
    [
        ("majority", "1", "failed", 4),
        ("majority", "145", "passed", 5),
        ("any", "2", "passed", 2),
        ("all", "1345", "failed", 2),
        (0.8, "1234", "passed", 4),
        (2, "13", "passed", 3),
    ],
)
def test_a_noisy_case_is_run_until_it_is_certain(
    opened: Opened, folder: Path, need: object, passing: str, outcome: str, runs: int
) -> None:
    judge = COUNTING + f"sys.exit(str(len(log.read_text())) not in {passing!r})"
    workload = opened({"judge.py": judge}, evaluateCommand=f"{PYTHON} judge.py", repeat=5, need=need)
    found = Pipeline(workload).voted(workload.cases[0])
    assert (found.outcome.value, len((folder / "log").read_text())) == (outcome, runs)
    said = [one.message for one in found.critiques if "repeats pass" in one.message]
    assert len(said) == (0 if found.passed else 1)


def test_an_error_of_the_infrastructure_is_no_vote(opened: Opened, folder: Path) -> None:
    workload = opened({"run.py": COUNTING + "sys.exit(1)"}, repeat=5)
    assert Pipeline(workload).voted(workload.cases[0]).outcome is CaseOutcome.INFRASTRUCTURE
    assert (folder / "log").read_text() == "xxx"
