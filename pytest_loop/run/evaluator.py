"""One evaluation of a run: a session, the judge that answers its questions, and evidence of tampering."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from pytest_loop.agents.agent_judge import Judge
from pytest_loop.core.judging.assessment import assess
from pytest_loop.core.judging.run_draft import is_module_rule, is_test_rule
from pytest_loop.core.judging.tampering import (
    find_copied_literals,
    find_suspicious_changes,
    find_test_machinery,
    is_void,
)
from pytest_loop.core.model.evaluation import Evaluation, Seal, SealFinding
from pytest_loop.core.model.run_state import RunState, Usage
from pytest_loop.core.model.session_order import SessionOrder
from pytest_loop.run.context import RunContext
from pytest_loop.session.judge_service import JudgeService
from pytest_loop.session.result import SessionResult
from pytest_loop.workspace.git import GitError
from pytest_loop.workspace.seal import hash_site_files
from pytest_loop.workspace.sealed_files import SealedFiles


@dataclass
class Evaluator:
    """Evaluate the current files in a session.

    `add_cost` receives the judge's costs. `session_result` is that of the last session. `manifest` is the path of an
    experiment's manifest.
    """

    context: RunContext
    state: RunState
    should_continue: Callable[[], bool]
    add_cost: Callable[[str, Usage], None]
    manifest: str = ""
    session_result: SessionResult = field(default_factory=SessionResult)

    def evaluate(self) -> Evaluation:
        """Evaluate the rules; check the files of a project for tampering too."""
        project = self.context.project
        return self.evaluate_rules() if project is None else self._evaluate_project(project)

    def evaluate_rules(self) -> Evaluation:
        """Evaluate only the rules."""
        project = self.context.project
        return self._judge(project.digest if project else self.context.artifact.compute_hash())

    def _evaluate_project(self, project: SealedFiles) -> Evaluation:
        findings = [*self.state.signals.tampering, *project.enforce_seal(), *self._restore_rules()]
        self._save_checkpoint(project)
        evaluation = self._judge(project.digest)
        if self._is_unstable(evaluation):
            evaluation = self._judge(project.digest)
            if self._is_unstable(evaluation):
                detail = "the score rose, although no file has changed"
                findings.append(SealFinding(kind="unstable", rule="the tests", detail=detail))
        findings += [*project.enforce_seal(), *self._find_tampering(project)]
        return evaluation.model_copy(update={"void": is_void(findings), "findings": tuple(findings)})

    def _restore_rules(self) -> Iterator[SealFinding]:
        """Restore inferred rules to what they were when the run began."""
        files, rules = self.context.files, self.state.setup.inferred_rules
        if rules and not files.save_rules(rules):
            yield SealFinding(kind="sealed", path=files.rules.name, detail="was changed, and was put back")

    def _is_unstable(self, evaluation: Evaluation) -> bool:
        """Return whether the score rose although no file has changed."""
        before = self.state.evaluation
        if before is None or before.phase is not evaluation.phase or before.void:
            return False
        return before.artifact_sha256 == evaluation.artifact_sha256 and evaluation.score > before.score

    def _judge(self, artifact_hash: str) -> Evaluation:
        """Run one session; repeat it without reused results if it passes with them."""
        evaluation = self._run_session(artifact_hash, reuse=not self.context.settings.judging.no_reuse)
        if evaluation.passed and self.session_result.has_reused_evidence:
            return self._run_session(artifact_hash, reuse=False)
        return evaluation

    def _run_session(self, artifact_hash: str, *, reuse: bool) -> Evaluation:
        state = self.state
        judge = self._make_judge()
        service = JudgeService(judge.answer, judge.cancel) if judge else None
        try:
            session_result = self.session_result = self.context.session.evaluate(self._build_order(service, reuse))
        finally:
            if judge and service:
                service.close()
                if judge.was_asked:
                    self.add_cost(judge.agent.name, judge.usage)
        modules = [rule for rule in state.criteria.get_active_rules(state.phase) if is_module_rule(rule)]
        evidence = session_result.group_by_rule() | {
            rule.key: session_result.find_module_evidence(rule.id) for rule in modules
        }
        missing = session_result.make_missing_evidence()
        score_hook = self.context.hook.pytest_loop_score
        return assess(state.criteria, state.phase, evidence, artifact_hash, state.evaluation, missing, score_hook)

    def _save_checkpoint(self, project: SealedFiles) -> None:
        """Save the files before the evaluation; without a checkpoint in git, the run continues."""
        iteration = self.state.iteration
        project.save_checkpoint(iteration)
        if self.context.checkpoints:
            try:
                self.context.checkpoints.write(iteration, project.current, f"iteration {iteration}")
            except GitError as error:
                self.context.live.write(f"no checkpoint: {error}")

    def _find_tampering(self, project: SealedFiles) -> Iterator[SealFinding]:
        """Yield evidence of tampering in the files and the session, beside edits of sealed files."""
        seal, session_result = self.state.setup.seal or Seal(), self.session_result
        if session_result.exit_status is not None and not (session_result.canaries and all(session_result.canaries)):
            yield SealFinding(kind="canary", rule="the canary", detail="a test that must fail did not fail")
        new = sorted(session_result.plugins - set(seal.plugins))
        if new:
            yield SealFinding(kind="plugin", rule="plugins", detail=f"there are new ones: {', '.join(new[:3])}")
        if hash_site_files() != seal.site:
            yield SealFinding(kind="site", rule="the environment", detail="what every interpreter loads first changed")
        sources = project.list_changed_sources()
        if sources:
            machinery = frozenset(name for text in project.read_product_sources() for name in find_test_machinery(text))
            is_linted = not all(is_test_rule(rule) for rule in self.state.criteria.rules)
            yield from find_suspicious_changes(sources, machinery, is_linted=is_linted)
            yield from find_copied_literals(sources, project.read_sealed_sources())

    def _build_order(self, service: JudgeService | None, reuse: bool) -> SessionOrder:
        rules, prepared = self.state.criteria.by_id, self.state.prepared_checks
        checks = [check for check in prepared.checks if check.rule_id in rules] if prepared else []
        return SessionOrder(
            phase=self.state.phase,
            artifact="" if self.context.project else str(self.context.artifact.path),
            canary=secrets.token_hex(8) if self.context.project else "",
            prepared_checks={rules[check.rule_id].key: check.check for check in checks},
            confirmed_rules=self.context.settings.judging.confirm,
            judge_address=service.address if service else "",
            judge_key=service.key if service else "",
            manifest=self.manifest,
            can_reuse=reuse,
            can_stop_early=self.context.settings.judging.stop_early and not self.manifest,
        )

    def _make_judge(self) -> Judge | None:
        """Return the judge that answers the questions of rules."""
        if self.context.judge is None:
            return None
        return Judge(
            self.context.judge,
            self.context.settings.root,
            self.context.nonce,
            lambda: self.context.make_watch(self.should_continue),
            self.context.settings.prompts,
            lambda request: self.context.hook.pytest_loop_make_prompt(request=request),
            self.state.iteration,
            self.state.phase.value,
        )
