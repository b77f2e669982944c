"""The steps of an experiment: calibrate, measure, compose, and edit what was decided on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pytest_loop.agents.answers import extract_data
from pytest_loop.agents.protocol import AgentError, AgentReply, AgentRequest, AgentUnavailableError
from pytest_loop.core.model.evaluation import SealFinding
from pytest_loop.core.model.run_state import Kind, RunState, Usage
from pytest_loop.core.workload.analysis import Analysis, AnalysisContext, Option, apply_edit, review_answer
from pytest_loop.core.workload.experiment_state import Notebook
from pytest_loop.core.workload.hypotheses import RECOMMENDED, Decide, Decision
from pytest_loop.core.workload.measurement import CaseResult, Measurement, read_case_result
from pytest_loop.core.workload.phase_proofs import BaselineProof, CalibrationProof
from pytest_loop.errors import StateError
from pytest_loop.rules.syntax import ContentError, read_text
from pytest_loop.run.context import Tools
from pytest_loop.run.evaluator import Examination
from pytest_loop.run.questions import asked_decision
from pytest_loop.session.runner import Judgement
from pytest_loop.store import disk
from pytest_loop.workloads.cases import Workload, workload
from pytest_loop.workloads.manifest import load
from pytest_loop.workloads.pipeline import Pipeline, calibrated
from pytest_loop.workloads.prompting import COMPOSE, compose_prompt
from pytest_loop.workspace.content_archive import RestoreResult
from pytest_loop.workspace.sealed_files import SealedFiles

Payload = dict[str, Any]


@dataclass
class Trial:
    """One step of an experiment; `spend` hears who was asked, and what that has cost."""

    tools: Tools
    state: RunState
    book: Notebook
    wanted: Callable[[], bool]
    spend: Callable[[str, Usage], None]

    def carry_out(self, kind: Kind) -> Payload:
        """Do what ends in an event of this kind; raises `AgentError` and `SessionError`."""
        return _STEPS[kind](self)

    @cached_property
    def workload(self) -> Workload:
        root = self.tools.settings.root
        return workload(load(root / self.book.manifest, root), root)

    @property
    def _project(self) -> SealedFiles:
        if self.tools.project is None:
            raise StateError("expected the files of the project as they were, found a run without them")
        return self.tools.project

    # -- calibrate and measure

    def _calibrate(self) -> Payload:
        """The pipeline has to work for the first case before anything is measured."""
        pipeline = Pipeline(self.workload, self.tools.settings.case_timeout)
        case = next(one for one in self.workload.cases if one.id == self.book.cases[0])
        with self.tools.live.work(f"calibrating with {case.id}"):
            found = calibrated(pipeline, case)
        proof = CalibrationProof(
            test_fixture=case.id,
            pipeline_result="passed" if found.passed else "failed",
            manifest_saved=self.book.manifest,
        )
        return {**found.payload(), "proof": proof.model_dump()}

    def _baseline(self) -> Payload:
        found = self._measured(0)
        proof = BaselineProof(cases_executed=len(self.book.cases), baseline_metrics=found["metrics"])
        return {**found, "proof": proof.model_dump()}

    def _measure(self) -> Payload:
        return self._measured(self.state.iteration)

    def _measured(self, iteration: int) -> Payload:
        """All cases in one session; what was said about cases that are held out is not even written down."""
        examination = Examination(self.tools, self.state, self.wanted, self.spend)
        one = examination.whole()
        results = tuple(self._result(case, examination.judgement) for case in self.book.cases)
        measurement = Measurement(iteration=iteration, results=results)
        return one.model_dump(mode="json", exclude_defaults=True) | {
            "score": one.score,
            "passed": one.passed,
            "metrics": str(measurement.exclude_cases(self.book.hidden)),
            "measurement": measurement.model_dump(mode="json", exclude_defaults=True),
        }

    def _result(self, case: str, judgement: Judgement) -> CaseResult:
        nodeid = f"{self.book.manifest}::{case}"
        found = read_case_result(case, judgement.evidence.get(nodeid) or judgement.missing(nodeid))
        is_hidden = case in self.book.hidden
        return CaseResult(id=case, outcome=found.outcome, seconds=found.seconds) if is_hidden else found

    # -- compose

    def _compose(self) -> Payload:
        """What a composer makes of the measurement; an answer with a flaw is sent back once, with what is wrong."""
        files = self._files()
        ground = AnalysisContext(
            files=files,
            cases=frozenset(self.book.cases) - self.book.hidden,
            failing=self.book.last.failing if self.book.last else frozenset(),
            tried=self.book.tried,
        )
        reply, touched = self._asked(files)
        found = review_answer(extract_data(reply), ground)
        if found.analysis is None:
            raise AgentError("; ".join(found.reasons))
        findings = [one.model_dump(exclude_defaults=True) for one in touched]
        return {
            "analysis": found.analysis.model_dump(mode="json", exclude_defaults=True),
            "files": {name: disk.hash_file(self.workload.folder / name) for name in files},
            **({"findings": findings} if findings else {}),
        }

    def _asked(self, files: Mapping[str, str]) -> tuple[AgentReply, list[SealFinding]]:
        """The answer of the composer; whatever it edited itself is put back, and named."""
        if not self.tools.agents:
            raise AgentUnavailableError("there is nobody to compose: name an agent with --loop-agent")
        agent = self.tools.agents[0]
        request = AgentRequest(
            COMPOSE,
            self._prompt(files),
            self.tools.settings.root,
            iteration=self.state.iteration,
            phase=self.state.phase.value,
            schema=Analysis.model_json_schema(),
        )
        self._project.enforce_seal()
        before = self._project.save_current()
        try:
            reply = self.tools.answer(agent, request, self.wanted)
        finally:
            touched = _touched(self._project.restore_tree(before))
            for one in touched:
                self.tools.live.write(f"  {one.path}: {one.detail}")
        self.spend(agent.name, reply.usage)
        return reply, touched

    def _prompt(self, files: Mapping[str, str]) -> str:
        settings, manifest = self.tools.settings, self.workload.source.manifest
        own = manifest.agents.composer.prompt_file
        docs = {name: self._text(name) for name in self.workload.docs}
        place = self.workload.folder / own if own else None
        return compose_prompt(self.state, self.book, files, docs, settings.nonce, settings.prompts, place)

    def _files(self) -> dict[str, str]:
        return {name: self._text(name) for name in self.book.artifacts}

    def _text(self, name: str) -> str:
        try:
            return read_text(self.workload.folder / name)
        except ContentError as error:
            raise AgentUnavailableError(f"{name}:{error.line}: {error}") from None

    # -- decide and edit

    def _edit(self) -> Payload:
        """What was decided, and the edit; a crash between edit and event makes neither of them happen twice."""
        if self.book.analysis is None:
            raise StateError("expected an analysis to decide about, found none")
        decision = self._decision()
        option = decision.option(self.book.analysis)
        before = self.state.artifact_hash
        if option is not None:
            self._apply(option)
        findings = [one.model_dump(exclude_defaults=True) for one in self._project.enforce_seal()]
        change = self._project.compute_diff()
        self.tools.files.write_artifact(self.tools.settings.redact(change.text), self.tools.artifact.path)
        return {
            "decision": decision.model_dump(mode="json"),
            "option": option.model_dump(mode="json") if option else None,
            "previous_artifact_hash": before,
            "artifact_hash": self._project.digest,
            "changed": list(change.paths),
            **({"findings": findings} if findings else {}),
        }

    def _decision(self) -> Decision:
        ask = self.tools.ask
        if ask is None or self.book.policy.decide is Decide.RECOMMENDED:
            return RECOMMENDED
        return asked_decision(ask)

    def _apply(self, option: Option) -> None:
        """Write the edit of what was composed about; the same edit made before a crash is left as it is."""
        path = self.workload.folder / option.file
        before, now = self._project.get_content(self.book.files.get(option.file, "")), disk.read_file(path)
        if before is None:
            raise AgentUnavailableError(f"{option.file} was not kept as it was when the edit was composed")
        after = _edited(before, option)
        if now == before:
            disk.write_atomically(path, after)
        elif now != after:
            raise AgentUnavailableError(f"{option.file} is no longer as it was when the edit was composed")


def _edited(data: bytes, option: Option) -> bytes:
    """With the line ends that the file had."""
    text = apply_edit(data.decode("utf-8", "replace").replace("\r\n", "\n"), option)
    return (text.replace("\n", "\r\n") if b"\r\n" in data else text).encode("utf-8", "replace")


def _touched(done: RestoreResult) -> list[SealFinding]:
    """What a composer edited although it was only asked."""
    words = dict.fromkeys(done.restored, "was edited by the composer, and was put back")
    words |= dict.fromkeys(done.removed, "was made by the composer, and was removed")
    words |= {path: f"was edited by the composer, and cannot be put back: {reason}" for path, reason in done.lost}
    return [SealFinding(kind="compose", path=path, detail=detail) for path, detail in words.items()]


_STEPS: dict[Kind, Callable[[Trial], Payload]] = {
    Kind.CALIBRATION_DONE: Trial._calibrate,
    Kind.BASELINE_DONE: Trial._baseline,
    Kind.EVALUATION_DONE: Trial._measure,
    Kind.CRITIQUE_DONE: Trial._compose,
    Kind.REFINEMENT_DONE: Trial._edit,
}
