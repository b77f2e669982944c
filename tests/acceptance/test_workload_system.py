"""A workload from start to end: manifest, plan, calibration, baseline, iterations, debrief, invariants.

Each row states one claim about such an experiment, and the value that proves it.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from pydantic import ValidationError

from pytest_loop.core.model.vocabulary import Kind, Reason
from pytest_loop.core.workload.analysis import AnalysisContext, review_answer
from pytest_loop.core.workload.hypotheses import MODES
from pytest_loop.settings.options import OPTIONS
from pytest_loop.workloads.manifest import Manifest
from tests.acceptance.terminal import Answers, run_at_terminal
from tests.core.scripted_experiment import ScriptedExperiment, make_analysis
from tests.pytest_caller import PLUGIN_VARIABLES, PytestCaller

ROOT = Path(__file__).parents[2]
DOCS = (ROOT / "docs/workloads.md").read_text(encoding="utf-8")
COMPOSER = ("--loop-agent", "python:composer:compose")
# One case that always passes, those that the edits of the example improve, and the one that an edit breaks.
RUN = ("bakery", "clinic", "garage", "grocer", "gym", "laundry", "museum", "optician", "parking", "plumber")
EXCLUDED = ("books", "ca*", "ch*", "cinema", "florist", "hotel", "printer", "shoes", "taxi", "tools")
PLAN: dict[str, Any] = {
    "problem": "2/10 passing: totals and dates are missing.",
    "hypotheses": [
        {"theory": "Dates stand anywhere", "priority": "low", "confidence": "medium"},
        {
            "theory": "Totals have other labels",
            "observation": "services write them",
            "mechanism": "each label is looked for",
            "prediction": ["cases/clinic.txt"],
            "priority": "high",
            "confidence": "high",
        },
    ],
    "focus": ["clinic.txt", "grocer.txt", "garage.txt"],
    "guards": ["bakery.txt", "gym.txt"],
    "exclusions": [{"case": f"cases/{name}.txt", "reason": "not needed here"} for name in EXCLUDED],
    "success": {"minimum": "+3 passing, 0 regressions", "target": "90 %", "stretch": "100 % of focus"},
}
# Composes from what the prompt says, and so shows what is in it.
COMPOSER_MODULE = '''
from scripted_composer import ANALYSES, LABELS, LOOK

FACTS = ("You fix one pattern", "Labels: `Total`", "expected EUR, found None", "Hypotheses so far", "Receipts are short",
         "The hypothesis of the last edit", "Look at these first: cases/clinic.txt", "confirmed", "accept less")


def compose(request):
    """Choose the analysis that fits the prompt of the workload, and name the facts that were found in the request."""
    prompt = request.prompt
    number = 0 if f"{LABELS}\\n" in prompt else 1 if f"{LOOK}\\n" in prompt else 2
    facts = "; ".join(fact for fact in FACTS if fact in prompt)
    return {**ANALYSES[number], "root_cause": f"{ANALYSES[number]['root_cause']} Known: {facts}."}
'''


@dataclass(frozen=True)
class EndedExperiment:
    """The files and the output of an experiment that has ended."""

    project: Path
    init: subprocess.CompletedProcess[str]
    process: subprocess.CompletedProcess[str]

    @property
    def output(self) -> str:
        return self.process.stdout + self.process.stderr

    @cached_property
    def events(self) -> list[dict[str, Any]]:
        lines = (self.project / ".loop/receipts/history.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]

    def list_payloads(self, kind: str) -> list[Any]:
        return [event["payload"] for event in self.events if event["event"] == kind]

    def get(self, kind: str, *keys: Any) -> Any:
        """Return a value in the first payload of a kind."""
        value = self.list_payloads(kind)[0]
        for key in keys:
            value = value[key]
        return value

    @cached_property
    def debrief(self) -> str:
        return (self.project / "reports/new/LOOP.md").read_text()

    @cached_property
    def result(self) -> dict[str, Any]:
        data: dict[str, Any] = json.loads((self.project / "result.json").read_text())
        return data

    @property
    def state(self) -> dict[str, Any]:
        data: dict[str, Any] = json.loads((self.project / ".loop/receipts/run.json").read_text())
        return data


def copy_example(folder: Path) -> Path:
    ignored = shutil.ignore_patterns("__pycache__", "out", ".loop")
    project = Path(shutil.copytree(ROOT / "examples/workload", folder / "project", ignore=ignored))
    (project / "composer.py").write_text(COMPOSER_MODULE)
    (project / "notes.md").write_text("Receipts are short.\n")
    return project


def read_init_command() -> list[str]:
    """Return the words of the command that the documentation shows."""
    (block,) = re.findall(r"^```console\n\$ pytest-loop (.*?)^```$", DOCS, re.DOTALL | re.MULTILINE)
    return shlex.split(block.replace("\\\n", " "))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, caller: PytestCaller, _python_folder: Path) -> EndedExperiment:
    """The example from an empty manifest to its debrief, with parallel cases and without a terminal."""
    project = copy_example(tmp_path_factory.mktemp("run"))
    (project / "loop.manifest.yaml").unlink()
    variables = {**PLUGIN_VARIABLES, "PATH": f"{_python_folder}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "200"}
    words = [*read_init_command(), "--domain-docs", "notes.md", "--max-iterations", "6"]
    init = subprocess.run(
        [sys.executable, "-m", "pytest_loop", *words],
        cwd=project,
        env={**os.environ, **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    (project / "LOOP_PLAN.yaml").write_text(yaml.safe_dump(PLAN))
    arguments = ("--loop-manifest", "loop.manifest.yaml", "--loop-plan", "LOOP_PLAN.yaml", *COMPOSER, "--loop-yes")
    outputs = ("--loop-debrief", "reports/new/LOOP.md", "--loop-json", "result.json")
    policy = ("-o", "loop_on_regression=accept", "-n2", "-q", "--tb=no")
    process = caller.call(*arguments, *outputs, *policy, folder=project, variables=variables)
    return EndedExperiment(project, init, process)


class Row(NamedTuple):
    """A phase of the experiment, a claim about it, and the value that `look` has to find."""

    part: str
    claim: str
    look: Callable[[EndedExperiment], Any]
    expected: Any


def find_missing_output(*texts: str) -> Callable[[EndedExperiment], Any]:
    """Return a function that lists which of these texts the output of a run lacks."""
    return lambda run: [text for text in texts if text not in run.output]


def find_missing_in_debrief(*texts: str) -> Callable[[EndedExperiment], Any]:
    return lambda run: [text for text in texts if text not in run.debrief]


NOTHING_MISSING: list[str] = []
ROWS = [
    Row("flags", "--manifest, --plan, --case and --continue exist", lambda _: list_missing_flags(), NOTHING_MISSING),
    Row("setup", "proof: mode", lambda run: run.get("run_started", "proof", "mode"), "precision"),
    Row("setup", "proof: session_dir", lambda run: run.get("run_started", "proof", "session_dir"), ".loop"),
    Row("setup", "proof: parameters_parsed", lambda run: run.get("run_started", "proof", "parameters_parsed"), True),
    Row("setup", "proof: flags_parsed", lambda run: run.get("run_started", "proof", "flags_parsed"), True),
    Row("setup", "proof: routing", lambda run: run.get("run_started", "proof", "routing"), "manifest"),
    Row("setup", "modes", lambda _: sorted(MODES), ["convergence", "custom", "exploration", "precision"]),
    Row("setup", "the mode configures role and focus", lambda run: list_composer_facts(run)[0][0], "You fix one pattern"),
    Row("interrogation", "the manifest is made from answers or flags", lambda run: run.init.returncode, 0),
    Row("interrogation", "its fields", lambda run: list(load_manifest(run)), [
        "workloadId", "artifactPaths", "casePaths", "expectedPaths", "runCommand", "outputPath", "evaluateCommand",
        "domainDocs", "maxIterations",
    ]),
    Row("interrogation", "all fields of the schema", lambda _: sorted(name for name in list_schema_fields()), sorted([
        "workloadId", "artifactPaths", "casePaths", "expectedPaths", "runCommand", "outputPath", "evaluateCommand",
        "reviewCommand", "agents", "domainDocs", "maxIterations", "buildCommand", "cacheStrategy",
        "holdout", "repeat", "need", "mode", "focus", "guard", "caseTimeout", "onPlateau", "onRegression", "decide",
    ])),
    Row("interrogation", "maxIterations is 10 by default", lambda _: Manifest.model_fields["max_iterations"].default, 10),
    Row("interrogation", "unknown fields are errors", lambda _: is_manifest_rejected(extra=1), True),
    Row("interrogation", "maxIterations 0 is an error", lambda _: is_manifest_rejected(maxIterations=0), True),
    Row("interrogation", "a glob list is never empty", lambda _: is_manifest_rejected(casePaths=[]), True),
    Row("interrogation", "it is shown", lambda run: "workloadId: receipts\n" in run.init.stdout, True),
    Row("interrogation", "it lies beside the workload", lambda run: (run.project / "loop.manifest.yaml").exists(), True),
    Row("interrogation", "proof: manifest_validated", lambda run: run.get("run_started", "proof", "manifest_validated"), True),
    Row("planning", "proof: failure_context", lambda run: run.get("run_started", "proof", "failure_context"), PLAN["problem"]),
    Row("planning", "proof: hypotheses_ranked", lambda run: run.get("run_started", "proof", "hypotheses_ranked"), 2),
    Row("planning", "proof: experiments_designed", lambda run: run.get("run_started", "proof", "experiments_designed"), 2),
    Row("planning", "proof: cases_selected", lambda run: run.get("run_started", "proof", "cases_selected"), 10),
    Row("planning", "proof: success_criteria", lambda run: run.get("run_started", "proof", "success_criteria"), "all cases pass"),
    Row("planning", "proof: plan_written", lambda run: run.get("run_started", "proof", "plan_written"), True),
    Row("planning", "proof: user_approved", lambda run: run.get("run_started", "proof", "user_approved"), "--loop-yes"),
    Row("planning", "hypotheses are ranked by priority", lambda run: run.state["experiment"]["plan"].splitlines()[1], (
        "1. (high priority, high confidence) Totals have other labels. services write them. "
        "Mechanism: each label is looked for. Predicted: cases/clinic.txt."
    )),
    Row("planning", "success has three levels", lambda run: run.state["experiment"]["plan"].splitlines()[3:], [
        "Minimum: +3 passing, 0 regressions", "Target: 90 %", "Stretch: 100 % of focus",
    ]),
    Row("planning", "focus cases", lambda run: run.state["experiment"]["focus"], [
        "cases/clinic.txt", "cases/garage.txt", "cases/grocer.txt",
    ]),
    Row("planning", "regression guards", lambda run: run.state["experiment"]["guards"], ["cases/bakery.txt", "cases/gym.txt"]),
    Row("planning", "exclusions", lambda run: len(run.state["experiment"]["excluded"]), 10),
    Row("planning", "the composer gets focus first", lambda run: "Look at these first: cases/clinic.txt" in list_composer_facts(run)[0], True),
    Row("calibration", "the first case", lambda run: run.get("calibration_done", "proof", "test_fixture"), "cases/bakery.txt"),
    Row("calibration", "proof: pipeline_result", lambda run: run.get("calibration_done", "proof", "pipeline_result"), "passed"),
    Row("calibration", "proof: manifest_saved", lambda run: run.get("calibration_done", "proof", "manifest_saved"), "loop.manifest.yaml"),
    Row("calibration", "proof: calibration_logged", lambda run: run.get("calibration_done", "proof", "calibration_logged"), True),
    Row("calibration", "it comes before everything", lambda run: run.events[1]["event"], "calibration_done"),
    Row("calibration", "it is announced", find_missing_output("Calibration with cases/bakery.txt: the pipeline works"), NOTHING_MISSING),
    Row("baseline", "iteration 0", lambda run: [event["iteration"] for event in run.events if event["event"] == "baseline_done"], [0]),
    Row("baseline", "the initial hypothesis is logged", lambda run: run.get("baseline_done", "hypothesis").startswith("(high priority"), True),
    Row("baseline", "X/Y passing (Z%)", find_missing_output("Baseline | 2/10 passing (20%)", "  first hypothesis: (high priority"), NOTHING_MISSING),
    Row("baseline", "cases with problems are listed", find_missing_output("  failing: cases/clinic.txt, cases/garage.txt"), NOTHING_MISSING),
    Row("baseline", "proof: cases_executed", lambda run: run.get("baseline_done", "proof", "cases_executed"), 10),
    Row("baseline", "proof: baseline_metrics", lambda run: run.get("baseline_done", "proof", "baseline_metrics"), "2/10 passing (20%)"),
    Row("baseline", "proof: baseline_presented", lambda run: run.get("baseline_done", "proof", "baseline_presented"), True),
    Row("baseline", "proof: user_approved", lambda run: run.get("baseline_done", "proof", "user_approved"), "--loop-yes"),
    Row("iteration", "hypothesize, run, review, analyze, decide, edit", lambda run: [event["event"] for event in run.events], [
        "run_started", "calibration_done", "baseline_done",
        "critique_done", "refinement_done", "hypothesis_formed", "iteration_advanced", "evaluation_done", "hypothesis_judged",
        "critique_done", "refinement_done", "hypothesis_formed", "iteration_advanced", "evaluation_done", "hypothesis_judged",
        "regression_detected",
        "critique_done", "refinement_done", "hypothesis_formed", "iteration_advanced", "evaluation_done", "hypothesis_judged",
        "stopped",
    ]),
    Row("iteration", "a prediction names cases", lambda run: run.get("hypothesis_formed", "prediction"), [
        f"cases/{name}.txt" for name in ("clinic", "garage", "laundry", "optician", "plumber")
    ]),
    Row("iteration", "outputs are at outputPath", lambda run: (run.project / "out/gym/receipt.json").is_file(), True),
    Row("iteration", "parallel cases count", lambda run: [payload.get("void", False) for payload in run.list_payloads("evaluation_done")], [False] * 3),
    Row("analyze", "the composer gets files, critiques, history and documents", lambda run: set(list_composer_facts(run)[0]) >= {
        "Labels: `Total`", "expected EUR, found None", "Receipts are short",
    }, True),
    Row("analyze", "later ones get the hypotheses so far", lambda run: {"Hypotheses so far", "confirmed"} <= set(list_composer_facts(run)[1]), True),
    Row("analyze", "root cause", lambda run: run.get("critique_done", "analysis", "root_cause").startswith("The prompt knows one label"), True),
    Row("analyze", "exactly 3 options", lambda run: [len(payload["analysis"]["options"]) for payload in run.list_payloads("critique_done")], [3] * 3),
    Row("analyze", "all options are shown", find_missing_output(
        "  1. Name the labels of services [prompt.md, Total] (high confidence, recommended)",
        "     why: The total is looked for at each label in turn",
        "     - Labels: `Total`\n     + Labels: `Total`, `Amount due`, `To pay`\n     improves cases/clinic.txt",
        "  2. Name the most frequent one [prompt.md, Total] (high confidence)",
        "  3. Name labels of other trades as well [prompt.md, Total] (medium confidence)",
    ), NOTHING_MISSING),
    Row("decide", "the decision is logged", lambda run: run.get("refinement_done", "decision"), {"chosen": 1, "reason": "recommended"}),
    Row("edit", "the edit is logged exactly", lambda run: [run.get("refinement_done", "option", key) for key in ("file", "section", "current", "proposed")], [
        "prompt.md", "Total", "Labels: `Total`", "Labels: `Total`, `Amount due`, `To pay`",
    ]),
    Row("edit", "the next run measures it", lambda run: [payload["metrics"] for payload in run.list_payloads("evaluation_done")], [
        "7/10 passing (70%)", "9/10 passing (90%)", "10/10 passing (100%)",
    ]),
    Row("convergence", "Confirmed, Partially Confirmed", lambda run: [payload["truth"] for payload in run.list_payloads("hypothesis_judged")], [
        "confirmed", "partially_confirmed", "confirmed",
    ]),
    Row("convergence", "a regression is surfaced although more pass", lambda run: run.list_payloads("regression_detected"), [{
        "regressions": ["cases/gym.txt"], "fixed": [f"cases/{name}.txt" for name in ("grocer", "museum", "parking")],
        "likely_cause": "Look anywhere", "action": "accept",
    }]),
    Row("convergence", "nothing is reverted by itself", lambda run: "Labels: `Total`, `Amount due`" in (run.project / "prompt.md").read_text(), True),
    Row("convergence", "all cases pass: converged", lambda run: (run.process.returncode, run.result["status"], run.result["stop"]), (
        0, "completed", {"passed": True, "reason": "converged"},
    )),
    Row("convergence", "proof: iterations_completed", lambda run: run.get("stopped", "proof", "iterations_completed"), 3),
    Row("convergence", "proof: log_entries", lambda run: run.get("stopped", "proof", "log_entries"), 4),
    Row("convergence", "proof: exit_condition", lambda run: run.get("stopped", "proof", "exit_condition"), "converged"),
    Row("convergence", "reasons to exit", lambda _: {"converged", "iteration_limit", "plateau", "regression", "calibration"} <= {reason.value for reason in Reason}, True),
    Row("synthesis", "the current state is compared with the baseline", find_missing_output(
        "receipts: baseline 2/10 passing (20%), now 10/10 passing (100%), net +8", "hypotheses: 2 of 3 confirmed",
    ), NOTHING_MISSING),
    Row("synthesis", "sections of the debrief", find_missing_in_debrief(*(f"\n## {title}\n" for title in (
        "Executive summary", "Manifest", "Hypothesis audit trail", "Iteration history", "Key edits", "Composer summary",
        "Remaining failures", "Insights", "Regressions and trade-offs", "Recommendations", "Opinion",
    ))), NOTHING_MISSING),
    Row("synthesis", "hypothesis records", find_missing_in_debrief(
        "| 0 | (high priority, high confidence) Totals have other labels.", "| Confirmed |", "| Partially Confirmed |",
    ), NOTHING_MISSING),
    Row("synthesis", "a report of 7 sections for each iteration", find_missing_in_debrief("## Report of iteration 1", *(f"### {title}" for title in (
        "Summary", "Failure modes", "Root causes", "Fix options", "Regression risks", "Case by case", "Reasoning trail",
    ))), NOTHING_MISSING),
    Row("invariants", "HYPOTHESIS_AUDIT_TRAIL", lambda run: [
        (formed["iteration"], judged["iteration"]) for formed, judged in
        zip(run.list_payloads("hypothesis_formed"), run.list_payloads("hypothesis_judged"), strict=True)
    ], [(1, 1), (2, 2), (3, 3)]),
    Row("invariants", "REVIEW_BEFORE_COMPOSE", lambda run: "expected EUR, found None" in list_composer_facts(run)[0], True),
    Row("invariants", "COMPOSER_STRUCTURAL_FIXES", lambda _: is_vague_option_rejected(), True),
    Row("invariants", "RE_REVIEW_AFTER_EDIT", lambda run: len({payload["artifact_sha256"] for payload in run.list_payloads("evaluation_done")}), 3),
    Row("invariants", "EXPECTED_OPTIONAL", lambda _: is_manifest_rejected(expectedPaths=None), False),
    Row("invariants", "MANIFEST_COLOCATED", lambda run: run.state["experiment"]["manifest"], "loop.manifest.yaml"),
    Row("invariants", "NO_SILENT_REGRESSION", find_missing_output("  REGRESSION after Look anywhere: cases/gym.txt passed before; decided: accept"), NOTHING_MISSING),
    Row("invariants", "VALIDATE_BEFORE_ITERATE", lambda _: end_without_calibration(), ("failed", "calibration")),
]  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.part}: {row.claim}")
def test_workload_from_manifest_to_debrief(run: EndedExperiment, row: Row) -> None:
    assert row.look(run) == row.expected, run.output


def list_missing_flags() -> list[str]:
    flags = {option.flag for option in OPTIONS}
    return [flag for flag in ("--loop-manifest", "--loop-plan", "--loop-case", "--loop-resume") if flag not in flags]


def load_manifest(run: EndedExperiment) -> dict[str, Any]:
    data: dict[str, Any] = yaml.safe_load((run.project / "loop.manifest.yaml").read_text())
    return data


def list_schema_fields() -> list[str]:
    return [field.alias or "" for field in Manifest.model_fields.values()]


def is_manifest_rejected(**fields: Any) -> bool:
    """Return whether a manifest with these fields is rejected; None removes a field."""
    (block,) = re.findall(r"^```yaml\n(.*?)^```$", DOCS, re.DOTALL | re.MULTILINE)
    data = {name: value for name, value in {**yaml.safe_load(block), **fields}.items() if value is not None}
    try:
        Manifest.model_validate(data)
    except ValidationError:
        return True
    return False


def list_composer_facts(run: EndedExperiment) -> list[list[str]]:
    """Return for each analysis the facts that its composer found in the prompt."""
    causes = [payload["analysis"]["root_cause"] for payload in run.list_payloads("critique_done")]
    return [cause.partition("Known: ")[2].removesuffix(".").split("; ") for cause in causes]


def is_vague_option_rejected() -> bool:
    """Return whether a surface-level suggestion is rejected because of its mechanism."""
    context = AnalysisContext(files={"p.md": "x"}, cases=frozenset("a"))
    reasons = review_answer(make_analysis(1, mechanism="extract it correctly"), context).reasons
    return all("expected a mechanism" in reason for reason in reasons[:1]) and bool(reasons)


def end_without_calibration() -> tuple[str, str]:
    state = ScriptedExperiment().complete(Kind.CALIBRATION_DONE, passed=False, errors=["x"] * 3).finish().state
    return state.status.value, state.stop.reason


@pytest.mark.parametrize(
    ("letters", "policy", "reason"),
    [
        (["F..", "..."], {}, "converged"),
        (["F..", "F.."], {"max_iterations": 2}, "iteration_limit"),
        (["...", "F.."], {"void": True, "max_iterations": 2}, "regression"),
        (["F..", "F..", "F.."], {}, "plateau"),
        (["F..", "F..", "F..", ".FF"], {"on_plateau": "continue"}, "regression"),
        (["..F", "F.F"], {"on_regression": "stop"}, "regression"),
        (["..F", "F..", "..."], {"on_regression": "accept"}, "converged"),
        (["..F", "F..", "..."], {"on_regression": "different"}, "converged"),
        (["..F", "FF.", "..."], {"mode": "exploration"}, "converged"),
    ],
)
def test_convergence_check_at_the_end_of_each_iteration(
    letters: list[str], policy: dict[str, Any], reason: str
) -> None:
    is_void = policy.pop("void", False)
    run = ScriptedExperiment(**policy).measure(letters[0], void=is_void)
    assert run.measure(*letters[1:]).finish().state.stop.reason == reason


def test_manifest_of_the_documentation_is_the_one_that_its_command_writes(run: EndedExperiment) -> None:
    (block,) = re.findall(r"^```yaml\n(.*?)^```$", DOCS, re.DOTALL | re.MULTILINE)
    assert load_manifest(run) == {**yaml.safe_load(block), "domainDocs": ["notes.md"], "maxIterations": 6}
    example = yaml.safe_load((ROOT / "examples/workload/loop.manifest.yaml").read_text())
    assert {**yaml.safe_load(block), "maxIterations": 5} == example


def test_run_continues_after_the_last_iteration(run: EndedExperiment, caller: PytestCaller) -> None:
    """The flag --continue: the run is over here, and says so."""
    process = caller.call("--loop-resume", folder=run.project)
    assert "is over: completed, converged" in process.stdout, process.stdout + process.stderr


def test_single_case_is_run_alone(tmp_path: Path, caller: PytestCaller) -> None:
    """The flag --case."""
    project = copy_example(tmp_path)
    arguments = (
        "--loop-manifest",
        "loop.manifest.yaml",
        "--loop-case",
        "cases/taxi.txt",
        *COMPOSER,
        "--loop-yes",
        "-q",
    )
    process = caller.call(*arguments, folder=project)
    assert "Baseline | 1/1 passing (100%)" in process.stdout, process.stdout + process.stderr
    assert process.returncode == 0


def test_every_choice_at_a_terminal(tmp_path: Path) -> None:
    """Ready, feedback to the composer, alternatives, and what to do about regressions."""
    project = copy_example(tmp_path)
    edits = iter(["accept less", "1", "1", "3"])
    decisions = iter(["d", "s"])
    answers: Answers = {
        "start? [y/N] ": "y",
        "Ready to begin?": "",
        "which edit? [1 is recommended": lambda: next(edits),
        "accept it, try something": lambda: next(decisions),
        "your answer (empty leaves": "",
    }
    cases = tuple(f"--loop-case={name}.txt" for name in RUN)
    arguments = ("--loop-manifest", "loop.manifest.yaml", *COMPOSER, *cases, "-qq", "--tb=no", "-n2")
    code, output = run_at_terminal(project, arguments, answers)
    assert code == 1, output
    for text in (
        "  first hypothesis: all cases pass with the files as they are",
        "baseline: 2/10 passing (20%). Ready to begin? [Y/n, n pauses] ",
        "  decided: no edit (sent back by a person)",
        "accept less.",  # the composer found the words in its prompt
        "  1. Name the labels of services [prompt.md, Total] (high confidence, recommended)",
        "REGRESSION after Look anywhere: cases/gym.txt passed before; cases/grocer.txt, cases/museum.txt, cases/parking.txt",
        "  decided: 3. Go back to the label (chosen by a person)",
        "REGRESSION after Go back to the label: cases/grocer.txt, cases/museum.txt, cases/parking.txt passed before",
        " · regression: ",
    ):
        assert text in output, (text, output)
