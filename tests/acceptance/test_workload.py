"""A prompt is tuned like an experiment: from its baseline to converged, with every belief and every loss on record."""

from __future__ import annotations

import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
GOLDEN = Path(__file__).parent / "golden" / "debrief.md"
Pytest = Callable[..., "subprocess.CompletedProcess[str]"]
COMPOSER = ("--loop-agent", "python:scripted_composer:compose")
START = ("--loop-manifest", "loop.manifest.yaml", *COMPOSER, "-q", "--tb=no")
# One that passes and those that the first edit mends: enough where the course of all twenty is not the story.
NAMED = ("bakery", "clinic", "garage", "laundry", "optician", "plumber")
FEW = tuple(f"--loop-case={name}.txt" for name in NAMED)
FEW_MENDED = "Iteration 2/2 | 6/6 passing (100%) | Improved (+5 -0)"
ACCEPT = ("-o", "loop_on_regression=accept")
STORY = [
    "Calibration with cases/bakery.txt: the pipeline works",
    "Baseline | 12/20 passing (60%)",
    "  hypothesis of iteration 1: confirmed",
    "Iteration 2/5 | 17/20 passing (85%) | Improved (+5 -0)",
    "Iteration 3/5 | 19/20 passing (95%) | Improved (+3 -1)",
    "  REGRESSION after Look anywhere: cases/gym.txt passed before; decided: accept",
    "Iteration 4/5 | 20/20 passing (100%) | Improved (+1 -0)",
    "completed: converged after iteration 4 of 5, phase A",
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
    """A copy, for it is edited."""
    ignored = shutil.ignore_patterns("__pycache__", "out", ".loop")
    return Path(shutil.copytree(ROOT / "examples" / "workload", tmp_path / "project", ignore=ignored))


def history(project: Path, alias: str = "receipts") -> list[dict[str, Any]]:
    lines = (project / ".loop" / alias / "history.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def payloads(project: Path, kind: str) -> list[dict[str, Any]]:
    return [one["payload"] for one in history(project) if one["event"] == kind]


def test_three_edits_one_of_them_a_regression_make_all_cases_pass(project: Path, run: Pytest) -> None:
    done = run(*START, "--loop-yes", *ACCEPT, "--loop-debrief", "debrief.md", "--loop-json", "result.json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert set(STORY) <= set(done.stdout.splitlines()), done.stdout
    assert [one["event"] for one in history(project)] == EVENTS
    assert [(one["iteration"], one["event"]) for one in history(project)][2] == (0, "baseline_done")
    assert "Look: after `Date:`, then anywhere" in (project / "prompt.md").read_text()
    assert (project / "debrief.md").read_text() == GOLDEN.read_text()
    found = json.loads((project / "result.json").read_text())
    assert (found["status"], found["stop"]["reason"], found["score"]) == ("completed", "converged", 1.0)
    assert [one["truth"] for one in found["workload"]["hypotheses"]] == ["confirmed"] * 3
    change = (project / ".loop/receipts/artifact.md").read_text()
    assert "- modified prompt.md (+" in change
    assert "receipt.json" not in change
    told = run("--loop-history").stdout
    assert "12/20 passing (60%)" in told
    assert "action=accept regressions=cases/gym.txt" in told
    assert run("--loop-debrief", "again.md").returncode == 0
    assert (project / "again.md").read_text() == GOLDEN.read_text()
    assert "is over: completed, converged" in run("--loop-resume").stdout
    assert run("--loop-restore=1").returncode == 0
    assert "Labels: `Total`\n" in (project / "prompt.md").read_text()


def test_a_regression_is_the_end_unless_somebody_says_otherwise_and_is_gone_on_from(project: Path, run: Pytest) -> None:
    done = run(*START, "--loop-yes")
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert "stopped: regression after iteration 3 of 5, phase A" in lines
    assert "go on: pytest --loop-resume=receipts -o loop_on_regression=accept" in lines
    assert "Look: anywhere" in (project / "prompt.md").read_text(), "nothing is taken back"
    done = run("--loop-resume=receipts", *ACCEPT)
    assert "completed: converged after iteration 4 of 5, phase A" in done.stdout, done.stdout + done.stderr


@pytest.mark.thorough
def test_a_run_that_was_killed_ends_as_it_would_have_ended(project: Path, run: Pytest) -> None:
    composer = project / "scripted_composer.py"
    waiting = "    if request.iteration == 2 and not os.path.exists('killed'):\n        open('killed', 'w').close()\n        os.kill(os.getppid(), 9)\n"
    text = composer.read_text().replace("from typing import Any", "import os\nfrom typing import Any")
    composer.write_text(text.replace('where there is no other."""\n', f'where there is no other."""\n{waiting}'))
    (project / ".gitignore").write_text("out/\nkilled\n")
    done = run(*START, "--loop-yes", *ACCEPT)
    assert done.returncode == -signal.SIGKILL
    assert "crashed" in run("--loop-status").stdout
    assert history(project)[-1]["event"] == "hypothesis_judged", "what was measured is not measured again"
    done = run("--loop-resume")
    assert "completed: converged after iteration 4 of 5, phase A" in done.stdout, done.stdout + done.stderr
    assert [one["event"] for one in history(project)] == EVENTS
    run("--loop-debrief", "debrief.md")
    assert (project / "debrief.md").read_text() == GOLDEN.read_text()


def test_an_edit_whose_event_was_lost_is_not_made_twice(project: Path, run: Pytest) -> None:
    run(*START, *FEW, "--loop-yes", "--loop-max-iterations", "2")
    folder = project / ".loop/receipts"
    lines = (folder / "history.jsonl").read_text().splitlines(keepends=True)
    at = next(number for number, line in enumerate(lines) if '"refinement_done"' in line)
    (folder / "history.jsonl").write_text("".join(lines[:at]))
    (folder / "run.json").unlink()
    done = run("--loop-resume=receipts")
    assert FEW_MENDED in done.stdout, done.stdout + done.stderr
    assert (project / "prompt.md").read_text().count("`Amount due`") == 1


@pytest.mark.measured
def test_calibration_that_fails_three_times_ends_the_run(project: Path, run: Pytest) -> None:
    (project / "extract.py").write_text("raise SystemExit('no model')\n")
    done = run(*START, "--loop-yes")
    assert done.returncode == 1
    assert "failed: calibration after iteration 1 of 5, phase A" in done.stdout
    assert done.stdout.count("no model") >= 3
    assert payloads(project, "calibration_done")[0]["attempts"] == 3


def test_cases_that_are_held_out_are_not_in_the_prompt_and_their_gap_is_told(project: Path, run: Pytest) -> None:
    text = (project / "loop.manifest.yaml").read_text()
    (project / "loop.manifest.yaml").unlink()
    (project / "tuning.yaml").write_text(f"{text}holdout: [cases/gym.txt, cases/taxi.txt]\n")
    words = [word.replace("loop.manifest", "tuning") for word in START]
    done = run(*words, "--loop-yes", "--loop-record", "answers.jsonl")
    assert "completed: converged after iteration 3 of 5, phase A" in done.stdout, done.stdout + done.stderr
    assert "held out: 1/2 passing that no composer has seen, a gap of 50 points" in done.stdout
    assert "gym" not in (project / "answers.jsonl").read_text().replace("scripted", "")
    assert all("gym" not in json.dumps(one.get("analysis")) for one in payloads(project, "critique_done"))


MEDDLER = """
from pathlib import Path
import scripted_composer

def compose(request):
    Path("prompt.md").write_text("mine")
    Path("judge.py").write_text("print('{}')")
    Path("new.txt").write_text("new")
    return scripted_composer.compose(request)
"""


@pytest.mark.measured
def test_what_a_composer_edits_itself_is_put_back_and_named(project: Path, run: Pytest) -> None:
    (project / "meddler.py").write_text(MEDDLER)
    words = [word.replace("scripted_composer", "meddler") for word in START]
    done = run(*words, *FEW, "--loop-yes", "--loop-max-iterations", "2")
    assert FEW_MENDED in done.stdout, done.stdout + done.stderr
    found = payloads(project, "critique_done")[0]["findings"]
    assert sorted(one["path"] for one in found) == ["judge.py", "new.txt", "prompt.md"]
    assert "  prompt.md: was edited by the composer, and was put back" in done.stdout.splitlines()
    assert not (project / "new.txt").exists()


VAGUE = """
import scripted_composer

def compose(request):
    answer = scripted_composer.ANALYSES[0]
    if "could not be used" in request.prompt:
        return answer
    return {**answer, "options": [{**one, "mechanism": "better"} for one in answer["options"]]}
"""


def test_options_without_a_mechanism_are_sent_back_once(project: Path, run: Pytest) -> None:
    (project / "vague.py").write_text(VAGUE)
    words = [word.replace("scripted_composer", "vague") for word in START]
    done = run(*words, *FEW, "--loop-yes", "--loop-max-iterations", "2")
    assert FEW_MENDED in done.stdout, done.stdout + done.stderr
    assert "expected a mechanism" in payloads(project, "phase_error")[0]["reason"]


def test_a_part_of_the_cases_a_plan_and_a_mode(project: Path, run: Pytest) -> None:
    plan = {
        "problem": "Totals are missing.",
        "hypotheses": [{"theory": "Other labels", "priority": "high", "prediction": ["cases/clinic.txt"]}],
        "focus": ["clinic.txt"],
        "guards": ["taxi.txt"],
        "exclusions": [{"case": "cases/[g-p]*", "reason": "later"}],
    }
    (project / "plan.json").write_text(json.dumps(plan))
    done = run(*START, "--loop-yes", "--loop-plan", "plan.json", "--loop-mode", "convergence")
    assert "mode        convergence" in done.stdout
    assert "(1 to focus on, 1 guards, 10 excluded)" in done.stdout, done.stdout + done.stderr
    done = run(*START, "--loop-yes", "--loop-case", "taxi.txt", "--loop-case", "cases/b*")
    assert "Baseline | 3/3 passing (100%)" in done.stdout, done.stdout + done.stderr
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("words", "said"),
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
        (START, "nobody is here to confirm this"),
    ],
)
def test_what_cannot_be_is_one_clear_line(project: Path, run: Pytest, words: tuple[str, ...], said: str) -> None:
    done = run(*words)
    assert (done.returncode, said in done.stderr) == (4, True), done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert not (project / ".loop").exists()


def test_a_debrief_needs_a_run_of_a_workload(project: Path, run: Pytest) -> None:
    done = run("--loop-debrief", "x.md")
    assert "there is no run in" in done.stderr


def at_a_terminal(project: Path, words: tuple[str, ...], answers: dict[str, str]) -> tuple[int, str]:
    """What pytest shows to a person who answers each question when it is asked."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(project)
        os.execv(sys.executable, [sys.executable, "-m", "pytest", *words])
    shown, asked, deadline = "", 0, time.monotonic() + 300
    while time.monotonic() < deadline:
        try:
            data = os.read(terminal, 65536)
        except OSError:
            break
        if not data:
            break
        shown += data.decode("utf-8", "replace")
        for question, answer in answers.items():
            if question in shown[asked:]:
                asked = len(shown)
                os.write(terminal, answer.encode() + b"\n")
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown


def test_a_person_decides_at_a_terminal(project: Path) -> None:
    answers = {"start? [y/N] ": "y", "which edit? [1 is recommended": "2", "accept it, try something": "s"}
    code, shown = at_a_terminal(project, (*START, "--loop-max-iterations", "3"), answers)
    assert "decided: 2. Name the most frequent one (chosen by a person)" in shown, shown
    assert payloads(project, "hypothesis_formed")[0]["prediction"] == [
        "cases/clinic.txt", "cases/garage.txt", "cases/optician.txt",
    ]  # fmt: skip
    assert code == 1
