"""The steps of an experiment: calibrate, measure, compose, and apply the chosen edit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from pytest_loop.agents.answers import extract_data
from pytest_loop.agents.protocol import AgentError, AgentReply, AgentRequest, AgentUnavailableError
from pytest_loop.core.events.experiment_payloads import (
    AnalysisDone,
    BaselineDone,
    CalibrationDone,
    MeasurementDone,
    OptionChosen,
)
from pytest_loop.core.events.run_payloads import IterationAdvanced, Payload, StepPayload
from pytest_loop.core.machine.run_machine import Command
from pytest_loop.core.model.evaluation import SealFinding
from pytest_loop.core.model.vocabulary import Kind
from pytest_loop.core.workload.analysis import Analysis, AnalysisContext, EditOption, apply_edit, review_answer
from pytest_loop.core.workload.experiment_state import Experiment, ExperimentState
from pytest_loop.core.workload.hypotheses import RECOMMENDED, OptionChoice, OptionDecision
from pytest_loop.core.workload.measurement import CaseResult, Measurement, read_case_result
from pytest_loop.core.workload.phase_proofs import BaselineProof, CalibrationProof
from pytest_loop.errors import StateError
from pytest_loop.rules.syntax import ContentError, read_text
from pytest_loop.run.evaluator import Evaluator
from pytest_loop.run.questions import Ask, ask_for_option
from pytest_loop.run.step_context import StepContext
from pytest_loop.session.result import SessionResult
from pytest_loop.store import disk
from pytest_loop.workloads.cases import Workload, load_workload
from pytest_loop.workloads.composer_prompt import COMPOSE, render_compose_prompt
from pytest_loop.workloads.experiment_notes import end_experiment, make_note
from pytest_loop.workloads.manifest import choose_setting
from pytest_loop.workloads.pipeline import Calibration, Pipeline, calibrate
from pytest_loop.workspace.content_archive import RestoreResult
from pytest_loop.workspace.sealed_files import SealedFiles


@dataclass(frozen=True)
class ExperimentSteps:
    """The steps of an experiment.

    `ask` is None if no person can be asked. `calibration` is the result of a calibration before the start.
    """

    ask: Ask | None = None
    calibration: Calibration | None = None

    def is_slow(self, _command: Command) -> bool:
        """Return True: earlier events are written first, so that no crash makes a measurement run again."""
        return True

    def execute(self, command: Command, context: StepContext) -> StepPayload:
        step = ExperimentStep(context, context.state, self.ask, self.calibration)  # type: ignore[arg-type]  # the state of an experiment
        return _STEPS[command.kind](step)

    def make_payload(self, command: Command, state: ExperimentState) -> Payload:
        if command.reason is not None:
            return end_experiment(command, state)
        if command.kind is Kind.ITERATION_ADVANCED:
            return IterationAdvanced()
        return make_note(command.kind, state, self.ask)

    def add_decision(self, payload: Payload, _state: ExperimentState) -> Payload:
        return payload


@dataclass(frozen=True)
class ExperimentStep:
    """One step of an experiment."""

    context: StepContext
    state: ExperimentState
    ask: Ask | None
    calibration: Calibration | None = None

    @property
    def experiment(self) -> Experiment:
        return self.state.experiment

    @cached_property
    def workload(self) -> Workload:
        root = self.context.run.settings.root
        return load_workload(root / self.experiment.manifest, root)

    @property
    def _project(self) -> SealedFiles:
        return self.context.run.project

    # -- calibrate and measure

    def calibrate(self) -> CalibrationDone:
        """Return the calibration from before the start, or run the first case, to show that the pipeline works."""
        calibration = self.calibration or self._try_first_case()
        proof = CalibrationProof(
            test_fixture=calibration.case,
            pipeline_result="passed" if calibration.passed else "failed",
            manifest_saved=self.experiment.manifest,
        )
        return CalibrationDone(
            case=calibration.case,
            passed=calibration.passed,
            attempts=calibration.attempts,
            errors=calibration.errors,
            proof=proof,
        )

    def _try_first_case(self) -> Calibration:
        run = self.context.run
        timeout = choose_setting("case_timeout", run.settings.workload, self.workload.manifest)
        pipeline = Pipeline(self.workload, timeout)
        case = next(case for case in self.workload.cases if case.id == self.experiment.cases[0])
        with run.live.show_work(f"calibrating with {case.id}"):
            return calibrate(pipeline, case)

    def measure_baseline(self) -> BaselineDone:
        """Measure before the first edit: iteration 0."""
        evaluator = self._make_evaluator()
        fields = dict(self._measure(0, evaluator))
        proof = BaselineProof(
            cases_executed=len(self.experiment.cases),
            baseline_metrics=fields["metrics"],
            user_approved="asked" if self.ask else self.state.setup.draft.confirmed_by,
        )
        return BaselineDone(
            **fields,
            hypothesis=self.experiment.first_hypothesis,
            plugins=tuple(sorted(evaluator.session_result.plugins)),
            proof=proof,
        )

    def measure(self) -> MeasurementDone:
        """Measure after an edit."""
        return self._measure(self.state.iteration, self._make_evaluator())

    def _make_evaluator(self) -> Evaluator:
        return self.context.make_evaluator(self.experiment.manifest)

    def _measure(self, iteration: int, evaluator: Evaluator) -> MeasurementDone:
        """Run all cases in one session; record only the outcome and time of held-out cases."""
        evaluation = evaluator.evaluate()
        results = tuple(self._read_result(case, evaluator.session_result) for case in self.experiment.cases)
        measurement = Measurement(iteration=iteration, results=results)
        metrics = str(measurement.exclude_cases(self.experiment.held_out_cases))
        return MeasurementDone(**dict(evaluation), measurement=measurement, metrics=metrics)

    def _read_result(self, case: str, session_result: SessionResult) -> CaseResult:
        nodeid = f"{self.experiment.manifest}::{case}"
        result = read_case_result(
            case, session_result.evidence.get(nodeid) or session_result.make_missing_evidence(nodeid)
        )
        if case in self.experiment.held_out_cases:
            return CaseResult(id=case, outcome=result.outcome, seconds=result.seconds)
        return result

    # -- compose

    def compose(self) -> AnalysisDone:
        """Ask the composer for an analysis of the last measurement; raise `AgentError` for an invalid one."""
        files, last = self._read_files(), self.experiment.last
        analysis_context = AnalysisContext(
            files=files,
            cases=frozenset(self.experiment.cases) - self.experiment.held_out_cases,
            failing=last.failing if last else frozenset(),
            tried=self.experiment.tried,
        )
        reply, findings = self._ask_composer(files)
        answer = review_answer(extract_data(reply), analysis_context)
        if answer.analysis is None:
            raise AgentError("; ".join(answer.reasons))
        hashes = {name: disk.hash_file(self.workload.folder / name) for name in files}
        return AnalysisDone(analysis=answer.analysis, files=hashes, findings=findings)

    def _ask_composer(self, files: Mapping[str, str]) -> tuple[AgentReply, tuple[SealFinding, ...]]:
        """Return the composer's answer, and findings for files that it edited itself; undo these edits."""
        run = self.context.run
        if not run.agents:
            raise AgentUnavailableError("expected an agent that composes, found none: name one with --loop-agent")
        agent = self.context.agent
        request = AgentRequest(
            COMPOSE,
            self._build_prompt(files),
            run.settings.root,
            iteration=self.state.iteration,
            phase=self.state.phase.value,
            schema=Analysis.model_json_schema(),
        )
        request = run.finish_prompt(request)
        self.context.record_prompt(request)
        self._project.enforce_seal()
        before = self._project.save_current()
        try:
            reply = run.ask_agent(agent, request, self.context.should_continue)
        finally:
            findings = _make_findings(self._project.restore_tree(before))
            for finding in findings:
                run.live.write(f"  {finding.path}: {finding.detail}")
        self.context.record.add_usage(agent.name, reply.usage)
        return reply, findings

    def _build_prompt(self, files: Mapping[str, str]) -> str:
        run, manifest = self.context.run, self.workload.manifest
        template = manifest.agents.composer.prompt_file
        docs = {name: self._read_text(name) for name in self.workload.docs}
        path = self.workload.folder / template if template else None
        return render_compose_prompt(self.state, files, docs, run.nonce, run.settings.prompts, path)

    def _read_files(self) -> dict[str, str]:
        return {name: self._read_text(name) for name in self.experiment.artifacts}

    def _read_text(self, name: str) -> str:
        try:
            return read_text(self.workload.folder / name)
        except ContentError as error:
            raise AgentUnavailableError(f"{name}:{error.line}: {error}") from None

    # -- decide and edit

    def edit(self) -> OptionChosen:
        """Choose an option of the analysis and apply its edit, once even if a crash repeats this step."""
        if self.experiment.analysis is None:
            raise StateError("expected an analysis to decide about, found none")
        run = self.context.run
        decision = self._decide()
        option = decision.get_option(self.experiment.analysis)
        if option is not None:
            self._apply_once(option)
        findings = tuple(self._project.enforce_seal())
        diff = self._project.compute_diff()
        run.files.write_artifact(run.redact(diff.text), run.artifact.path)
        return OptionChosen(
            decision=decision,
            option=option,
            previous_artifact_hash=self.state.progress.artifact_hash,
            artifact_hash=self._project.digest,
            changed=tuple(diff.paths),
            findings=findings,
        )

    def _decide(self) -> OptionDecision:
        if self.ask is None or self.experiment.policy.decide is OptionChoice.RECOMMENDED:
            return RECOMMENDED
        return ask_for_option(self.ask)

    def _apply_once(self, option: EditOption) -> None:
        """Apply an edit to the file version that it was composed for, unless it was applied before a crash."""
        path = self.workload.folder / option.file
        before = self._project.get_content(self.experiment.files.get(option.file, ""))
        now = disk.read_file(path)
        if before is None:
            raise AgentUnavailableError(f"{option.file} was not kept as it was when the edit was composed")
        after = _apply_to_bytes(before, option)
        if now == before:
            disk.write_atomically(path, after)
        elif now != after:
            raise AgentUnavailableError(f"{option.file} is no longer as it was when the edit was composed")


def _apply_to_bytes(data: bytes, option: EditOption) -> bytes:
    """Return the content of a file after an edit; keep CRLF line ends."""
    text = apply_edit(data.decode("utf-8", "replace").replace("\r\n", "\n"), option)
    return (text.replace("\n", "\r\n") if b"\r\n" in data else text).encode("utf-8", "replace")


def _make_findings(result: RestoreResult) -> tuple[SealFinding, ...]:
    """Return findings for the files that a composer edited, although it may only propose edits."""
    details = dict.fromkeys(result.restored, "was edited by the composer, and was put back")
    details |= dict.fromkeys(result.removed, "was made by the composer, and was removed")
    details |= {path: f"was edited by the composer, and cannot be put back: {reason}" for path, reason in result.lost}
    return tuple(SealFinding(kind="compose", path=path, detail=detail) for path, detail in details.items())


_STEPS: dict[Kind, Callable[[ExperimentStep], StepPayload]] = {
    Kind.CALIBRATION_DONE: ExperimentStep.calibrate,
    Kind.BASELINE_DONE: ExperimentStep.measure_baseline,
    Kind.EVALUATION_DONE: ExperimentStep.measure,
    Kind.CRITIQUE_DONE: ExperimentStep.compose,
    Kind.REFINEMENT_DONE: ExperimentStep.edit,
}
