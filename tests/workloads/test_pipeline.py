from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_loop.core.workload.measurement import CaseOutcome
from pytest_loop.errors import CheckError
from pytest_loop.rules.checks.check import JudgeReply
from pytest_loop.workloads.build import BuildOnce
from pytest_loop.workloads.case_cache import CaseCache
from pytest_loop.workloads.cases import Workload
from pytest_loop.workloads.pipeline import Calibration, Pipeline, calibrate

OpenWorkload = Callable[..., Workload]
PYTHON = sys.executable
COUNTING = (
    "import pathlib, sys\nlog = pathlib.Path('log')\nlog.write_text((log.read_text() if log.exists() else '') + 'x')\n"
)


def calibrate_first_case(workload: Workload) -> Calibration:
    return calibrate(Pipeline(workload), workload.cases[0])


def test_calibration_ends_after_three_failures(open_workload: OpenWorkload, folder: Path) -> None:
    result = calibrate_first_case(open_workload({"run.py": COUNTING + "sys.exit('broken')"}))
    assert not result.passed
    assert (result.case, len(result.errors)) == ("cases/a.txt", 3)
    assert all("found exit code 1\nbroken" in remark for remark in result.errors)
    assert (folder / "log").read_text() == "xxx"
    assert result.attempts == 3


def test_calibration_passes_with_a_failing_case(open_workload: OpenWorkload) -> None:
    result = calibrate_first_case(open_workload({"expected/a.txt": "something else"}))
    assert (result, result.attempts) == (Calibration("cases/a.txt", True), 1)


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        (
            {"runCommand": "python3 -c 1"},
            "runCommand or outputPath: expected the output out/cases/a.txt of `python3 -c 1`",
        ),
        ({"runCommand": "python3 no.py"}, "runCommand: expected exit code 0 of `python3 no.py`, found exit code 2\n"),
        (
            {"evaluateCommand": 'python3 -c "print(\'{\\"passed\\": 3}\')"'},
            "evaluateCommand: expected true or false for `passed` from ",
        ),
        (
            {"buildCommand": "python3 no.py"},
            "buildCommand: expected exit code 0 of `python3 no.py`, found exit code 2\n",
        ),
        (
            {"evaluateCommand": "python3 no.py {output}"},
            "evaluateCommand: expected exit code 0 of `python3 no.py {output}`, found exit code 2\n",
        ),
        ({"runCommand": "no-such-program"}, "runCommand: cannot run 'no-such-program'"),
    ],
)
def test_calibration_names_the_field_to_fix(open_workload: OpenWorkload, fields: dict[str, str], error: str) -> None:
    assert calibrate_first_case(open_workload(**fields)).errors[0].startswith(error)


def test_calibration_may_pass_at_the_third_try(open_workload: OpenWorkload, folder: Path) -> None:
    code = COUNTING + "sys.exit(1) if len(log.read_text()) < 3 else pathlib.Path(sys.argv[2]).write_text('ONE\\n')"
    result = calibrate_first_case(open_workload({"run.py": code}))
    assert (result.passed, len(result.errors)) == (True, 2)


def test_calibration_builds_first(open_workload: OpenWorkload, folder: Path) -> None:
    result = calibrate_first_case(
        open_workload({"build.py": COUNTING + "sys.exit('no compiler')"}, buildCommand=f"{PYTHON} build.py")
    )
    assert ((folder / "log").read_text(), len(result.errors), result.passed) == ("xxx", 3, False)
    assert result.errors[0].endswith("no compiler")


def test_calibration_passes_without_a_reviewer(open_workload: OpenWorkload) -> None:
    workload = open_workload(
        {"ask.md": "Is it fine?"}, expectedPaths=None, agents={"reviewer": {"promptFile": "ask.md"}}
    )
    assert calibrate_first_case(workload).passed


def test_with_a_review_command_both_must_pass(open_workload: OpenWorkload) -> None:
    judges = {"judge.py": "import sys; print(sys.argv[1]); sys.exit(int(sys.argv[1]))"}
    for evaluate, review, outcome in ((0, 0, "passed"), (0, 1, "failed"), (1, 0, "failed")):
        workload = open_workload(
            judges, evaluateCommand=f"{PYTHON} judge.py {evaluate}", reviewCommand=f"{PYTHON} judge.py {review}"
        )
        assert Pipeline(workload).run_case(workload.cases[0]).outcome.value == outcome


def test_difference_does_not_decide_if_a_command_judges(open_workload: OpenWorkload) -> None:
    workload = open_workload(evaluateCommand="true")
    result = Pipeline(workload).run_case(workload.cases[1])
    assert (result.outcome, result.difference) == (CaseOutcome.PASSED, "")
    workload = open_workload(evaluateCommand="false")
    result = Pipeline(workload).run_case(workload.cases[1])
    assert result.outcome is CaseOutcome.FAILED
    assert "-TWO" in result.difference


def test_killed_evaluator_is_an_infrastructure_error(open_workload: OpenWorkload) -> None:
    workload = open_workload({"judge.py": "import os; os.kill(os.getpid(), 9)"}, evaluateCommand=f"{PYTHON} judge.py")
    result = Pipeline(workload).run_case(workload.cases[0], tries=1)
    assert result.outcome is CaseOutcome.INFRASTRUCTURE
    assert result.text == f"expected exit code 0 of `{PYTHON} judge.py`, found an end by signal 9"


def test_vanished_expected_file_is_an_infrastructure_error(open_workload: OpenWorkload, folder: Path) -> None:
    workload = open_workload()
    (folder / "expected/a.txt").unlink()
    result = Pipeline(workload).run_case(workload.cases[0], tries=1)
    assert result.text == "cannot compare out/cases/a.txt with expected/a.txt: No such file or directory"


def test_output_never_leaves_the_project_through_a_link(
    open_workload: OpenWorkload, folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    workload = open_workload()
    (folder / "out").symlink_to(tmp_path_factory.mktemp("elsewhere"))
    result = Pipeline(workload).run_case(workload.cases[0])
    assert result.text == "expected a place inside the project for the output out/cases/a.txt, found a link out of it"


@pytest.mark.parametrize("blocking", ["out", "out/cases/a.txt/b"])
def test_blocked_output_path_is_an_infrastructure_error(open_workload: OpenWorkload, blocking: str) -> None:
    workload = open_workload({blocking: ""})
    result = Pipeline(workload).run_case(workload.cases[0])
    assert result.outcome is CaseOutcome.INFRASTRUCTURE
    assert result.text.startswith("cannot make room for the output out/cases/a.txt: ")


def test_unreadable_prompt_is_an_infrastructure_error(open_workload: OpenWorkload, folder: Path) -> None:
    workload = open_workload({"review.md": ""}, expectedPaths=None, agents={"reviewer": {"promptFile": "review.md"}})
    (folder / "review.md").write_bytes(b"ok\n\xff")
    result = Pipeline(workload, ask=lambda *_: JudgeReply(True)).run_case(workload.cases[0])
    assert result.text == "review.md:2: expected UTF-8 text, found the byte 0xff"


def test_paths_with_spaces_stay_one_word(open_workload: OpenWorkload) -> None:
    workload = open_workload({"cases/a b.txt": "ONE\n", "expected/a b.txt": "ONE\n"})
    assert Pipeline(workload).run_case(workload.cases[0]).passed


def test_reviewer_may_reject_without_a_reason(open_workload: OpenWorkload) -> None:
    workload = open_workload(
        {"review.md": 'Is {case} like {"a": 1}?'}, expectedPaths=None, agents={"reviewer": {"promptFile": "review.md"}}
    )
    questions: list[tuple[str, Path]] = []

    def ask(question: str, artifact: Path) -> JudgeReply:
        questions.append((question, artifact))
        return JudgeReply(False)

    result = Pipeline(workload, ask=ask).run_case(workload.cases[0])
    assert [str(remark) for remark in result.critiques] == ["the reviewer says no"]
    assert questions == [('Is cases/a.txt like {"a": 1}?', workload.folder / "out/cases/a.txt")]


def test_damaged_cache_is_ignored(open_workload: OpenWorkload, tmp_path: Path) -> None:
    workload = open_workload()
    case, other = workload.cases
    memory = CaseCache(tmp_path, workload)
    key = memory.compute_key(case)
    result = Pipeline(workload).run_case(case)
    memory.store_result(case, key, result)
    assert memory.find_result(case, key) == result.model_copy(update={"reused": True})
    (cache_file,) = tmp_path.glob("????????????????.jsonl")
    cache_file.write_bytes(cache_file.read_bytes()[:-1])
    late = CaseCache(tmp_path, workload)
    assert late.find_result(case, key) is None
    late.store_result(other, key, Pipeline(workload).run_case(other))
    assert CaseCache(tmp_path, workload).find_result(other, key)
    CaseCache(tmp_path / "gone", workload).store_result(case, key, result)


def test_cache_is_compacted(open_workload: OpenWorkload, tmp_path: Path) -> None:
    workload = open_workload()
    case, other = workload.cases
    results = {case: Pipeline(workload).run_case(case) for case in (case, other)}
    CaseCache(tmp_path, workload).store_result(other, "key", results[other])
    for number in range(50):
        CaseCache(tmp_path, workload).store_result(case, f"key {number}", results[case])
    (cache_file,) = tmp_path.glob("????????????????.*")
    assert len(cache_file.read_text().splitlines()) < 20
    last = CaseCache(tmp_path, workload)
    assert last.find_result(case, "key 49")
    assert last.find_result(other, "key")


def test_reinstalled_program_changes_the_key(
    open_workload: OpenWorkload, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "extract"
    program.parent.mkdir()
    monkeypatch.setenv("PATH", str(program.parent))
    workload = open_workload(runCommand="extract {case} {output}")
    keys = []
    for text in ("#!/bin/sh\n", "#!/bin/sh\ntrue\n"):
        program.write_text(text)
        program.chmod(0o755)
        keys.append(CaseCache(tmp_path, workload).compute_key(workload.cases[0]))
    assert keys[0] != keys[1]


def test_folder_named_by_a_command_does_not_change_the_key(open_workload: OpenWorkload, tmp_path: Path) -> None:
    workload = open_workload(runCommand=f"{PYTHON} run.py {{case}} {{output}} cases")
    assert CaseCache(tmp_path, workload).compute_key(workload.cases[0])


@pytest.mark.parametrize("is_shared", [False, True])
def test_build_runs_once_even_if_it_fails(tmp_path: Path, is_shared: bool) -> None:
    folder = tmp_path / "exchange" if is_shared else None
    calls: list[str] = []

    def succeed() -> None:
        calls.append("works")

    def fail() -> None:
        calls.append("breaks")
        raise CheckError("no compiler")

    workers = [BuildOnce(folder), BuildOnce(folder)] if is_shared else [BuildOnce()]
    for worker in (*workers, *workers):
        worker.run("a", succeed)
        with pytest.raises(CheckError, match="no compiler"):
            worker.run("b", fail)
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
def test_noisy_case_is_run_until_it_is_certain(
    open_workload: OpenWorkload, folder: Path, need: object, passing: str, outcome: str, runs: int
) -> None:
    judge = COUNTING + f"sys.exit(str(len(log.read_text())) not in {passing!r})"
    workload = open_workload({"judge.py": judge}, evaluateCommand=f"{PYTHON} judge.py", repeat=5, need=need)
    result = Pipeline(workload).evaluate_case(workload.cases[0])
    assert (result.outcome.value, len((folder / "log").read_text())) == (outcome, runs)
    counts = [remark.message for remark in result.critiques if "repeats pass" in remark.message]
    assert len(counts) == (0 if result.passed else 1)


def test_infrastructure_error_ends_the_repeats(open_workload: OpenWorkload, folder: Path) -> None:
    workload = open_workload({"run.py": COUNTING + "sys.exit(1)"}, repeat=5)
    assert Pipeline(workload).evaluate_case(workload.cases[0]).outcome is CaseOutcome.INFRASTRUCTURE
    assert (folder / "log").read_text() == "xxx"
