"""The steps of an experiment: measurements, the composer, and the edit that is applied once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from pytest_loop.agents.protocol import AgentError, AgentReply, AgentRequest, AgentUnavailableError
from pytest_loop.core.machine.run_machine import Command
from pytest_loop.core.model.evaluation import Seal
from pytest_loop.core.model.rules import Evidence, Finding, Outcome, SessionPlan
from pytest_loop.core.model.vocabulary import Kind, Step, Target
from pytest_loop.core.workload.analysis import Analysis
from pytest_loop.core.workload.experiment_state import Experiment, ExperimentState
from pytest_loop.core.workload.hypotheses import Policy
from pytest_loop.core.workload.measurement import CaseOutcome
from pytest_loop.errors import StateError
from pytest_loop.run.step_context import StepContext, StepRecord
from pytest_loop.session.result import SessionResult
from pytest_loop.store import disk
from pytest_loop.workloads.experiment_steps import ExperimentSteps
from pytest_loop.workspace.environment import hash_site_files
from pytest_loop.workspace.sealed_files import SealedFiles
from tests.run.parts import Answer, SmallRun, make_rules, make_run

MANIFEST = "loop.manifest.json"
CASES = ("cases/a.txt", "cases/b.txt")


def make_answer(proposed: str = "Copy it in capitals.") -> dict[str, Any]:
    options = [
        {
            "name": f"option {number}",
            "mechanism": f"the letters change in way {number}",
            "improves": ["cases/b.txt"],
            "risk": "low",
            "file": "prompt.md",
            "current": "Copy it.",
            "proposed": f"{proposed}{'!' * number}",
        }
        for number in range(3)
    ]
    return {"root_cause": "small letters", "hypothesis": "capitals help", "options": options}


@dataclass
class StepRunner:
    """Executes steps of an experiment whose composer has prepared answers."""

    run: SmallRun
    experiment: Experiment
    ask: Callable[[str], str] | None = None

    def execute(self, kind: Kind, step: Step = Step.CRITIQUE) -> Any:
        state = ExperimentState(**dict(self.run.state), experiment=self.experiment)
        context = StepContext(self.run.context, state, lambda: True, StepRecord())
        return ExperimentSteps(self.ask).execute(Command(kind, step), context)

    def compose(self) -> Any:
        payload = self.execute(Kind.CRITIQUE_DONE)
        self.experiment = self.experiment.replace(analysis=payload.analysis, files=payload.files)
        return payload


Start = Callable[..., StepRunner]


@pytest.fixture
def start(write_workload: Callable[..., Path], tmp_path: Path) -> Iterator[Start]:
    projects: list[SealedFiles] = []

    def create(*answers: Answer, held_out: tuple[str, ...] = (), ask: Any = None, **policy: Any) -> StepRunner:
        write_workload()
        project = SealedFiles(tmp_path, tmp_path / ".loop" / "guide", ["cases/", MANIFEST], outputs=["out/"])
        project.record_start()
        projects.append(project)
        seal = Seal(site=hash_site_files())
        rules = make_rules(*(f"{MANIFEST}::{case}" for case in CASES), phase="A")
        run = make_run(
            tmp_path, *answers, rules=rules, project=project, state={"target": Target.WORKSPACE, "seal": seal}
        )
        experiment = Experiment(
            manifest=MANIFEST,
            workload="letters",
            cases=CASES,
            artifacts=("prompt.md",),
            policy=Policy.model_validate(policy),
            held_out_cases=frozenset(held_out),
        )
        return StepRunner(run, experiment, ask)

    yield create
    for project in projects:
        project.close()


def test_calibration_runs_the_first_case(start: Start) -> None:
    payload = start().execute(Kind.CALIBRATION_DONE, Step.EVALUATE)
    assert (payload.case, payload.passed, payload.attempts) == ("cases/a.txt", True, 1)
    assert payload.proof.pipeline_result == "passed"


@pytest.mark.parametrize(("held_out", "critiques"), [((), 1), (("cases/b.txt",), 0)])
def test_measurement_has_the_result_of_each_case_and_no_details_of_held_out_ones(
    start: Start, held_out: tuple[str, ...], critiques: int
) -> None:
    steps = start(held_out=held_out)
    evidence = {
        f"{MANIFEST}::cases/a.txt": Evidence(outcome=Outcome.PASSED),
        f"{MANIFEST}::cases/b.txt": Evidence(outcome=Outcome.FAILED, findings=(Finding(expected="TWO", found="two"),)),
    }
    plan = SessionPlan(items={nodeid: (nodeid,) for nodeid in evidence})
    steps.run.session.results.append(SessionResult(plan, evidence, canaries=[True], exit_status=0))
    payload = steps.execute(Kind.BASELINE_DONE, Step.EVALUATE)
    assert steps.run.session.orders[0].manifest == MANIFEST
    assert [result.outcome for result in payload.measurement.results] == [CaseOutcome.PASSED, CaseOutcome.FAILED]
    assert len(payload.measurement.results[1].critiques) == critiques
    assert payload.proof.cases_executed == 2


def test_answer_of_the_composer_becomes_an_analysis(start: Start, tmp_path: Path) -> None:
    steps = start(AgentReply(data=make_answer()))
    payload = steps.compose()
    assert isinstance(payload.analysis, Analysis)
    assert payload.files == {"prompt.md": disk.hash_file(tmp_path / "prompt.md")}
    assert "Copy it." in steps.run.agent.requests[0].prompt


def test_invalid_answer_of_the_composer_is_an_error(start: Start) -> None:
    with pytest.raises(AgentError, match="expected exactly 3 options, found 1"):
        start(AgentReply(data=make_answer() | {"options": make_answer()["options"][:1]})).compose()


def test_experiment_without_an_agent_cannot_compose(start: Start) -> None:
    steps = start()
    steps.run.context = replace(steps.run.context, agents=[])
    with pytest.raises(AgentUnavailableError, match="--loop-agent"):
        steps.compose()


def test_edits_by_the_composer_itself_are_reverted_and_reported(start: Start, tmp_path: Path) -> None:
    def edit(request: AgentRequest) -> AgentReply:
        (request.workspace / "prompt.md").write_text("capitals\n")
        (request.workspace / "new.py").write_text("")
        return AgentReply(data=make_answer())

    payload = start(edit).compose()
    assert sorted((finding.kind, finding.path) for finding in payload.findings) == [
        ("compose", "new.py"),
        ("compose", "prompt.md"),
    ]
    assert (tmp_path / "prompt.md").read_text() == "Copy it.\n"
    assert not (tmp_path / "new.py").exists()


def test_recommended_edit_is_applied_once(start: Start, tmp_path: Path) -> None:
    steps = start(AgentReply(data=make_answer()), decide="recommended", ask=lambda _question: "2")
    steps.compose()
    payload = steps.execute(Kind.REFINEMENT_DONE, Step.REFINE)
    assert (payload.option.name, payload.changed) == ("option 0", ("prompt.md",))
    assert steps.execute(Kind.REFINEMENT_DONE, Step.REFINE).artifact_hash == payload.artifact_hash, "after a crash"
    assert (tmp_path / "prompt.md").read_text() == "Copy it in capitals.\n"


@pytest.mark.parametrize(
    ("answer", "chosen", "text"), [("2", 2, "Copy it in capitals.!\n"), ("look at dates", None, "Copy it.\n")]
)
def test_user_chooses_the_edit_or_skips_it(
    start: Start, tmp_path: Path, answer: str, chosen: int | None, text: str
) -> None:
    steps = start(AgentReply(data=make_answer()), ask=lambda _question: answer)
    steps.compose()
    assert steps.execute(Kind.REFINEMENT_DONE, Step.REFINE).decision.chosen == chosen
    assert (tmp_path / "prompt.md").read_text() == text


def test_file_changed_since_the_analysis_is_not_edited(start: Start, tmp_path: Path) -> None:
    steps = start(AgentReply(data=make_answer()))
    steps.compose()
    (tmp_path / "prompt.md").write_text("Copy it twice.\n")
    with pytest.raises(AgentUnavailableError, match="is no longer as it was when the edit was composed"):
        steps.execute(Kind.REFINEMENT_DONE, Step.REFINE)
    assert (tmp_path / "prompt.md").read_text() == "Copy it twice.\n"


def test_line_ends_of_the_file_are_kept(start: Start, tmp_path: Path) -> None:
    steps = start(AgentReply(data=make_answer()))
    (tmp_path / "prompt.md").write_bytes(b"Copy it.\r\n")
    steps.compose()
    steps.execute(Kind.REFINEMENT_DONE, Step.REFINE)
    assert (tmp_path / "prompt.md").read_bytes() == b"Copy it in capitals.\r\n"


def test_edit_without_an_analysis_is_refused(start: Start) -> None:
    with pytest.raises(StateError, match="expected an analysis to decide about"):
        start().execute(Kind.REFINEMENT_DONE, Step.REFINE)
