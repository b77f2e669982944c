"""Experiments that tune the prompt of the example workload."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.terminal import Answers, run_at_terminal

ROOT = Path(__file__).parents[2]
GOLDEN = Path(__file__).parent / "golden" / "debrief.md"
Pytest = Callable[..., "subprocess.CompletedProcess[str]"]
COMPOSER = ("--loop-agent", "python:scripted_composer:compose")
START = ("--loop-manifest", "loop.manifest.yaml", *COMPOSER, "--tb=no")
# One passing case and those that the first edit fixes: enough for tests that do not need all twenty.
FEW_NAMES = ("bakery", "clinic", "garage", "laundry", "optician", "plumber")
FEW_CASES = tuple(f"--loop-case={name}.txt" for name in FEW_NAMES)
FEW_FIXED = "Iteration 2/2 | 6/6 passing (100%) | Improved (+5 -0)"
ACCEPT = ("-o", "loop_on_regression=accept")
OUTPUT_LINES = [
    "Calibration with cases/bakery.txt: the pipeline works",
    "Baseline | 12/20 passing (60%)",
    "  hypothesis of iteration 1: confirmed",
    "Iteration 2/5 | 17/20 passing (85%) | Improved (+5 -0)",
    "Iteration 3/5 | 19/20 passing (95%) | Improved (+3 -1)",
    "  REGRESSION after Look anywhere: cases/gym.txt passed before; decided: accept",
    "Iteration 4/5 | 20/20 passing (100%) | Improved (+1 -0)",
    "receipts: baseline 12/20 passing (60%), now 20/20 passing (100%), net +8",
    "hypotheses: 3 of 3 confirmed",
]
EVENTS = [
    "run_started", "calibration_done", "baseline_done",
    "critique_done", "refinement_done", "hypothesis_formed", "iteration_advanced",
    "evaluation_done", "hypothesis_judged",
    "critique_done", "refinement_done", "hypothesis_formed", "iteration_advanced",
    "evaluation_done", "hypothesis_judged", "regression_detected",
    "critique_done", "refinement_done", "hypothesis_formed", "iteration_advanced",
    "evaluation_done", "hypothesis_judged", "stopped",
]  # fmt: skip


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of the example, which runs edit."""
    ignored = shutil.ignore_patterns("__pycache__", "out", ".loop")
    return Path(shutil.copytree(ROOT / "examples" / "workload", tmp_path / "project", ignore=ignored))


def read_history(project: Path, alias: str = "receipts") -> list[dict[str, Any]]:
    lines = (project / ".loop" / alias / "history.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def read_payloads(project: Path, kind: str) -> list[dict[str, Any]]:
    return [event["payload"] for event in read_history(project) if event["event"] == kind]


def test_three_edits_with_an_accepted_regression_make_all_cases_pass(project: Path, run: Pytest) -> None:
    process = run(*START, "--loop-yes", *ACCEPT, "--loop-debrief", "debrief.md", "--loop-json", "result.json")
    assert process.returncode == 0, process.stdout + process.stderr
    assert set(OUTPUT_LINES) <= set(process.stdout.splitlines()), process.stdout
    assert " · verdict SHIP: every rule was verified\n" in process.stdout
    assert [event["event"] for event in read_history(project)] == EVENTS
    assert [(event["iteration"], event["event"]) for event in read_history(project)][2] == (0, "baseline_done")
    assert "Look: after `Date:`, then anywhere" in (project / "prompt.md").read_text()
    assert (project / "debrief.md").read_text() == GOLDEN.read_text()
    result = json.loads((project / "result.json").read_text())
    assert (result["status"], result["stop"]["reason"], result["score"]) == ("completed", "converged", 1.0)
    assert [hypothesis["truth"] for hypothesis in result["workload"]["hypotheses"]] == ["confirmed"] * 3
    change = (project / ".loop/receipts/artifact.md").read_text()
    assert "- modified prompt.md (+" in change
    assert "receipt.json" not in change
    history = run("--loop-history", "-v").stdout
    assert "12/20 passing (60%)" in history
    assert "action=accept regressions=cases/gym.txt" in history
    assert run("--loop-debrief", "new/folders/again.md").returncode == 0
    assert (project / "new/folders/again.md").read_text() == GOLDEN.read_text()
    assert "is over: completed, converged" in run("--loop-resume").stdout
    assert run("--loop-restore=1").returncode == 0
    assert "Labels: `Total`\n" in (project / "prompt.md").read_text()


def test_parallel_cases_are_judged_like_others(project: Path, run: Pytest) -> None:
    process = run(*START, *FEW_CASES, "--loop-yes", "--loop-max-iterations", "2", "-n2")
    assert FEW_FIXED in process.stdout.splitlines(), process.stdout + process.stderr
    assert "\ndone in " in process.stdout


@pytest.mark.thorough
def test_regression_stops_the_run_until_it_is_accepted(project: Path, run: Pytest) -> None:
    process = run(*START, "--loop-yes")
    assert process.returncode == 1
    lines = process.stdout.splitlines()
    assert any(" · regression: " in line for line in lines)
    assert "continue: pytest-loop resume --run receipts --workload 'on_regression accept'" in lines
    assert "Look: anywhere" in (project / "prompt.md").read_text(), "the edit stays"
    process = run("--loop-resume=receipts", *ACCEPT)
    assert "\ndone in " in process.stdout, process.stdout + process.stderr


@pytest.mark.thorough
def test_resume_after_a_kill_ends_like_the_undisturbed_run(project: Path, run: Pytest) -> None:
    composer = project / "scripted_composer.py"
    kill = "    if request.iteration == 2 and not os.path.exists('killed'):\n        open('killed', 'w').close()\n        os.kill(os.getppid(), 9)\n"
    text = composer.read_text().replace("from typing import Any", "import os\nfrom typing import Any")
    composer.write_text(text.replace('or the last one."""\n', f'or the last one."""\n{kill}'))
    (project / ".gitignore").write_text("out/\nkilled\n")
    process = run(*START, "--loop-yes", *ACCEPT)
    assert process.returncode == -signal.SIGKILL
    assert "crashed" in run("--loop-status").stdout
    assert read_history(project)[-1]["event"] == "hypothesis_judged", "measured cases are not measured again"
    process = run("--loop-resume")
    assert "\ndone in " in process.stdout, process.stdout + process.stderr
    assert [event["event"] for event in read_history(project)] == EVENTS
    run("--loop-debrief", "debrief.md")
    assert (project / "debrief.md").read_text() == GOLDEN.read_text()


@pytest.mark.thorough
def test_edit_without_its_event_is_not_made_twice(project: Path, run: Pytest) -> None:
    run(*START, *FEW_CASES, "--loop-yes", "--loop-max-iterations", "2")
    folder = project / ".loop/receipts"
    lines = (folder / "history.jsonl").read_text().splitlines(keepends=True)
    at = next(number for number, line in enumerate(lines) if '"refinement_done"' in line)
    (folder / "history.jsonl").write_text("".join(lines[:at]))
    (folder / "run.json").unlink()
    process = run("--loop-resume=receipts")
    assert FEW_FIXED in process.stdout, process.stdout + process.stderr
    assert (project / "prompt.md").read_text().count("`Amount due`") == 1


@pytest.mark.thorough
@pytest.mark.measured
def test_calibration_that_fails_three_times_ends_the_run(project: Path, run: Pytest) -> None:
    (project / "extract.py").write_text("raise SystemExit('no model')\n")
    process = run(*START, "--loop-yes")
    assert process.returncode == 1
    assert " · calibration: " in process.stdout
    assert process.stdout.count("no model") >= 3
    assert read_payloads(project, "calibration_done")[0]["attempts"] == 3


def test_held_out_cases_are_not_in_the_prompt_and_their_gap_is_reported(project: Path, run: Pytest) -> None:
    text = (project / "loop.manifest.yaml").read_text()
    (project / "loop.manifest.yaml").unlink()
    (project / "tuning.yaml").write_text(f"{text}holdout: [cases/gym.txt, cases/taxi.txt]\n")
    arguments = [argument.replace("loop.manifest", "tuning") for argument in START]
    process = run(*arguments, "--loop-yes", "--loop-record", "answers.jsonl")
    assert "\ndone in " in process.stdout, process.stdout + process.stderr
    assert "held out: 1/2 passing that no composer has seen, a gap of 50 points" in process.stdout
    assert "gym" not in (project / "answers.jsonl").read_text().replace("scripted", "")
    assert all("gym" not in json.dumps(payload.get("analysis")) for payload in read_payloads(project, "critique_done"))


MEDDLER = """
from pathlib import Path
import scripted_composer

def compose(request):
    Path("prompt.md").write_text("mine")
    Path("judge.py").write_text("print('{}')")
    Path("new.txt").write_text("new")
    return scripted_composer.compose(request)
"""


@pytest.mark.thorough
@pytest.mark.measured
def test_edits_by_the_composer_are_reverted_and_named(project: Path, run: Pytest) -> None:
    (project / "meddler.py").write_text(MEDDLER)
    arguments = [argument.replace("scripted_composer", "meddler") for argument in START]
    process = run(*arguments, *FEW_CASES, "--loop-yes", "--loop-max-iterations", "2")
    assert FEW_FIXED in process.stdout, process.stdout + process.stderr
    findings = read_payloads(project, "critique_done")[0]["findings"]
    assert sorted(finding["path"] for finding in findings) == ["judge.py", "new.txt", "prompt.md"]
    assert "  prompt.md: was edited by the composer, and was put back" in process.stdout.splitlines()
    assert not (project / "new.txt").exists()


VAGUE = """
import scripted_composer

def compose(request):
    answer = scripted_composer.ANALYSES[0]
    if "could not be used" in request.prompt:
        return answer
    return {**answer, "options": [{**option, "mechanism": "better"} for option in answer["options"]]}
"""


@pytest.mark.thorough
def test_options_without_a_mechanism_are_requested_again_once(project: Path, run: Pytest) -> None:
    (project / "vague.py").write_text(VAGUE)
    arguments = [argument.replace("scripted_composer", "vague") for argument in START]
    process = run(*arguments, *FEW_CASES, "--loop-yes", "--loop-max-iterations", "2")
    assert FEW_FIXED in process.stdout, process.stdout + process.stderr
    assert "expected a mechanism" in read_payloads(project, "phase_error")[0]["reason"]


@pytest.mark.thorough
def test_plan_mode_and_case_options_select_the_cases(project: Path, run: Pytest) -> None:
    plan = {
        "problem": "Totals are missing.",
        "hypotheses": [{"theory": "Other labels", "priority": "high", "prediction": ["cases/clinic.txt"]}],
        "focus": ["clinic.txt"],
        "guards": ["taxi.txt"],
        "exclusions": [{"case": "cases/[g-p]*", "reason": "later"}],
    }
    (project / "plan.json").write_text(json.dumps(plan))
    process = run(*START, "--loop-yes", "--loop-plan", "plan.json", "--loop-mode", "convergence")
    assert "mode        convergence" in process.stdout
    assert "(1 to focus on, 1 guards, 10 excluded)" in process.stdout, process.stdout + process.stderr
    process = run(*START, "--loop-yes", "--loop-case", "taxi.txt", "--loop-case", "cases/b*")
    assert "Baseline | 3/3 passing (100%)" in process.stdout, process.stdout + process.stderr
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--loop-manifest", "nothing.json"), "nothing.json:1: expected a file, found none"),
        ((*START, "--loop-case", "nowhere"), "expected a case to run, found none that is called 'nowhere' among 20"),
        (
            (*START, "--loop-focus", "nowhere"),
            "expected a case to focus on, found none that is called 'nowhere' among 20",
        ),
        ((*START, "--loop-mode", "bold"), "expected precision, exploration, convergence or custom, found 'bold'"),
        ((*START, "-o", "loop_on_plateau=never"), "loop_on_plateau: expected ask, continue or stop, found 'never'"),
        ((*START, "--loop-plan", "prompt.yaml"), "prompt.yaml:1: expected a file, found none"),
        (("--loop-manifest", "/etc/hosts"), "--loop-manifest: expected a path inside"),
        (
            ("--loop-manifest", "empty.yaml"),
            "calibration failed: empty.yaml:3: expected files that match 'none/*.txt' for `casePaths`, found none",
        ),
        (START, "there is no terminal to confirm this at"),
    ],
)
def test_invalid_options_get_one_clear_line(
    project: Path, run: Pytest, arguments: tuple[str, ...], message: str
) -> None:
    text = (project / "loop.manifest.yaml").read_text().replace("casePaths: [cases/", "casePaths: [none/")
    (project / "empty.yaml").write_text(text.partition("\n")[2])
    process = run(*arguments)
    assert (process.returncode, message in process.stderr) == (4, True), process.stdout + process.stderr
    assert "Traceback" not in process.stderr
    assert not (project / ".loop").exists()


def test_debrief_needs_a_run(project: Path, run: Pytest) -> None:
    process = run("--loop-debrief", "x.md")
    assert "there is no run in" in process.stderr


@pytest.mark.thorough
def test_user_fixes_the_pipeline_at_a_terminal_and_looks_at_the_baseline_first(project: Path, run: Pytest) -> None:
    good = (project / "extract.py").read_text()
    (project / "extract.py").write_text("raise SystemExit('no model')\n")

    def fix() -> str:
        (project / "extract.py").write_text(good)
        return ""

    answers: Answers = {"start? [y/N] ": "y", "to try again": fix, "Ready to begin?": "n"}
    arguments = (*START, *FEW_CASES, "--loop-max-iterations", "2")
    code, output = run_at_terminal(project, arguments, answers)
    assert "calibration failed, try 1 of 3: runCommand: expected exit code 0 of `python3 extract.py" in output, output
    assert "baseline: 1/6 passing (17%). Ready to begin? [Y/n, n pauses]" in output, output
    assert code == pytest.ExitCode.INTERRUPTED
    assert read_payloads(project, "calibration_done")[0]["attempts"] == 2
    process = run("--loop-resume")
    assert FEW_FIXED in process.stdout.splitlines(), process.stdout + process.stderr
