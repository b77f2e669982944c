"""One evaluation of a run: a session, the judge that answers its questions, and evidence of tampering."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pytest_loop.agents.agent_judge import AgentJudge
from pytest_loop.core.judging.assessment import assess
from pytest_loop.core.judging.tampering import is_void
from pytest_loop.core.judging.test_counts import needs_new_tests, require_counts
from pytest_loop.core.model.evaluation import Evaluation, SealFinding
from pytest_loop.core.model.rules import Evidence, Outcome, Proof, SessionPlan, Verdict
from pytest_loop.core.model.run_state import RunState, Usage
from pytest_loop.core.model.session_order import SessionOrder
from pytest_loop.core.model.vocabulary import Target
from pytest_loop.core.text.wording import list_names
from pytest_loop.run.context import RunContext
from pytest_loop.run.deciding_evaluation import QUICK_SECONDS, DecidingEvaluation
from pytest_loop.run.new_tests import have_no_assertions, list_new_test_files, run_new_tests
from pytest_loop.run.restore import restore_rules
from pytest_loop.run.sealed_reads import seal_late_reads
from pytest_loop.run.tampering_search import TamperingSearch
from pytest_loop.session.history import is_failure
from pytest_loop.session.isolated_items import run_items_alone
from pytest_loop.session.judge_service import JudgeService
from pytest_loop.session.result import SessionResult
from pytest_loop.show.live_view import SHOW_SESSIONS
from pytest_loop.workspace.git import GitError
from pytest_loop.workspace.project_changes import ProjectChanges

_PASSED, _SKIPPED = Evidence(outcome=Outcome.PASSED), Evidence(outcome=Outcome.SKIPPED)


@dataclass
class Evaluator:
    """Evaluate the current files in a session.

    `add_cost` receives the judge's costs. `session_result` is the result of the last session. `manifest` is the path of
    an experiment's manifest.
    """

    context: RunContext
    state: RunState
    should_continue: Callable[[], bool]
    add_cost: Callable[[str, Usage], None]
    manifest: str = ""
    session_result: SessionResult = field(default_factory=SessionResult)

    def evaluate(self) -> Evaluation:
        """Evaluate the rules, and look for tampering; an evaluation with evidence of it is void."""
        project = self.context.project
        findings = [
            *self.state.signals.tampering,
            *project.enforce_seal(),
            *restore_rules(self.context.files, self.state),
        ]
        self._save_checkpoint()
        deciding = DecidingEvaluation(
            self.context, self.state, self.evaluate_rules, self._evaluate_failures, self.should_continue
        )
        evaluate = self.evaluate_rules if self.manifest else deciding.evaluate
        tree = project.current
        evaluation = evaluate()
        if self._is_unstable(evaluation):
            evaluation = evaluate()
            if self._is_unstable(evaluation):
                detail = "the score rose, although no file has changed"
                findings.append(SealFinding(kind="unstable", rule="the tests", detail=detail))
        if self._edits_files and not self.manifest:
            self.context.affected_tests.record(tree, self.session_result.reach)
            if evaluation.passed:
                evaluation = evaluation.model_copy(update={"new_tests": run_new_tests(project, self.context.session)})
                findings += self._judge_without_new_tests()
            seal_late_reads(project, self.session_result.reads)
            project.add_module_folders(self.session_result.module_folders)
        # Without a fence, a process may reset the times of files: compare contents before a success.
        changed = project.enforce_seal(read_all=evaluation.passed and not self.context.fence.sealing_tool)
        paths = {finding.path for finding in changed}
        findings += [*changed, *(finding for finding in deciding.findings if finding.path not in paths)]
        findings += TamperingSearch(self.context, self.state, self.session_result).find()
        return evaluation.model_copy(update={"void": is_void(findings), "findings": tuple(findings)})

    def evaluate_rules(self, *, is_deciding: bool = False) -> Evaluation:
        """Evaluate the rules without a search for tampering, in a new interpreter if `is_deciding`.

        If a pass rests on reused results, evaluate again without reuse.
        """
        can_reuse = not self.context.settings.judging.no_reuse
        evaluation = self._run_session(can_reuse=can_reuse, is_deciding=is_deciding)
        if evaluation.passed and self.session_result.has_reused_evidence:
            return self._run_session(can_reuse=False, is_deciding=is_deciding)
        return evaluation

    def _evaluate_failures(self, *, stop_early: bool) -> Evaluation | None:
        """Run only the tests that failed or warned last time and, unless `stop_early`, those that the change affects.

        Others keep their verdict, so never end a run on this. Return None if this is inconclusive: the change may
        affect every test, rules other than tests did not pass, or some tests cannot be collected.
        """
        before, rules = self.state.evaluation, self.state.criteria.by_id
        if before is None or before.void or before.phase is not self.state.phase:
            return None
        unmet = before.unmet & rules.keys()
        affected = set[str]() if stop_early else self.context.affected_tests.find(self.context.project.current)
        skipped = {result.id for result in before.rule_results if result.verdict is Verdict.NA}
        not_passed = {result.id for result in before.rule_results} - skipped - before.unmet
        if not unmet or not_passed or not all(rules[name].is_test for name in before.unmet | skipped if name in rules):
            return None
        if affected is None:
            return None
        names = unmet | affected
        repeated = [rule for rule in rules.values() if rule.id in names]
        order = self._build_order(None, can_reuse=False, is_deciding=False, stop_early=stop_early)
        selected = tuple(rule.id for rule in repeated)
        result = run_items_alone(self.context.session, order, self.context.project.root, selected)
        if result is None or result.problems:
            return None
        self.session_result = result
        others = {
            rule.key: [_SKIPPED if rule.id in skipped else _PASSED] for rule in rules.values() if rule.id not in names
        }
        evaluation = self._assess(others | result.collect_evidence(repeated), self._compute_hash())
        return evaluation.model_copy(update={"not_repeated": len(others)})

    def _judge_without_new_tests(self) -> Iterator[SealFinding]:
        """Repeat commands without new tests, which may patch the product; yield a finding if a pass needs these."""
        project, seal, room = self.context.project, self.state.setup.seal, self.context.clean_room
        paths = list_new_test_files(project)
        rules = self.state.criteria.rules
        keys = {rule.key for rule in rules if rule.is_command}
        plan = self.session_result.plan or SessionPlan()
        items = tuple(nodeid for nodeid, names in plan.items.items() if keys.intersection(names))
        if not (paths and items and room and seal):
            return
        order = self._build_order(None, can_reuse=False, is_deciding=True).model_copy(update={"selected": items})
        with room.enter(paths):
            result = self.context.session.evaluate(order)
        before, after = self.session_result.collect_evidence(rules), result.collect_evidence(rules)
        keys &= before.keys()
        names = list_names(paths, 3)
        if any(needs_new_tests(before[key], after[key], seal.test_counts.get(key, 0)) for key in keys):
            detail = "commands that judge pass only together with this new test: remove it"
            yield SealFinding(kind="interference", path=names, detail=detail)
        elif any(is_failure(piece) for key in keys for piece in after[key]) and have_no_assertions(project, paths):
            detail = "a goal is reached by a new test that asserts nothing about behaviour: add assertions"
            yield SealFinding(kind="ratchet", path=names, detail=detail)

    @property
    def _is_suite_long(self) -> bool:
        seal = self.state.setup.seal
        return seal is not None and seal.session_seconds >= QUICK_SECONDS

    @property
    def _edits_files(self) -> bool:
        return self.state.setup.target is Target.WORKSPACE

    def _is_unstable(self, evaluation: Evaluation) -> bool:
        """Return whether the score rose although no file has changed."""
        before = self.state.evaluation
        if before is None or before.phase is not evaluation.phase or before.void or before.errors:
            return False
        if not self._edits_files and len(self.context.project.allow.patterns) > 1:
            return False  # other files than the document may have changed
        return before.artifact_sha256 == evaluation.artifact_sha256 and evaluation.score > before.score

    def _run_session(self, *, can_reuse: bool, is_deciding: bool) -> Evaluation:
        state = self.state
        artifact_hash = self._compute_hash()
        judge = self._make_judge()
        service = JudgeService(judge.answer, judge.cancel) if judge else None
        self.context.project.begin_work(is_session=True)
        try:
            session_result = self.session_result = self._find_baseline_result(artifact_hash) or (
                self.context.session.evaluate(self._build_order(service, can_reuse, is_deciding))
            )
        finally:
            if judge and service:
                service.close()
                if judge.was_asked:
                    self.add_cost(judge.agent.name, judge.usage)
        evidence = session_result.collect_evidence(state.criteria.rules)
        evidence = require_counts(evidence, state.setup.seal.test_counts if state.setup.seal else {})
        evaluation = self._assess(evidence, artifact_hash)
        return (
            evaluation.model_copy(update={"cluster": session_result.cluster}) if session_result.cluster else evaluation
        )

    def _compute_hash(self) -> str:
        """Return the hash of the project's files, or of the document."""
        return self.context.project.digest if self._edits_files else self.context.artifact.compute_hash()

    def _assess(self, evidence: Mapping[str, Sequence[Evidence]], artifact_hash: str) -> Evaluation:
        """Return the evaluation of all active rules; those without evidence have not been verified."""
        state, missing = self.state, self.session_result.make_missing_evidence()
        score_hook = self.context.hook.pytest_loop_score
        return assess(state.criteria, state.phase, evidence, artifact_hash, state.evaluation, missing, score_hook)

    def _find_baseline_result(self, artifact_hash: str) -> SessionResult | None:
        """Return the baseline's result for a first evaluation of the same files; None if a judge must be asked."""
        baseline, state = self.context.baseline_result, self.state
        if baseline is None or state.has_agent_worked or state.evaluation or baseline.digest != artifact_hash:
            return None
        is_asked = any(rule.proof in (Proof.REVIEW, Proof.ASSUMPTION) for rule in state.criteria.rules)
        if is_asked or self.manifest:
            return None
        self.context.live.write_session_output(baseline.result.output.encode())
        return baseline.result

    def _save_checkpoint(self) -> None:
        """Save the files before the evaluation; only print a note if git cannot store them."""
        if not self._edits_files:
            return
        project, iteration = self.context.project, self.state.iteration
        project.save_checkpoint(iteration)
        if self.context.checkpoints:
            try:
                self.context.checkpoints.write(iteration, project.current, f"iteration {iteration}")
            except GitError as error:
                self.context.live.write(f"no checkpoint: {error}", SHOW_SESSIONS)

    def _build_order(
        self, service: JudgeService | None, can_reuse: bool, is_deciding: bool, *, stop_early: bool = False
    ) -> SessionOrder:
        rules, prepared = self.state.criteria.by_id, self.state.prepared_checks
        checks = [check for check in prepared.checks if check.rule_id in rules] if prepared else []
        return SessionOrder(
            phase=self.state.phase,
            artifact="" if self._edits_files else str(self.context.artifact.path),
            canary=secrets.token_hex(8),
            prepared_checks={rules[check.rule_id].key: check.check for check in checks},
            confirmed_rules=(*self.context.settings.judging.confirm, *self.state.signals.confirmed_rules),
            judge_address=service.address if service else "",
            judge_key=service.key if service else "",
            manifest=self.manifest,
            can_reuse=can_reuse,
            excluded=self._list_excluded(),
            can_stop_early=stop_early or (self.context.settings.judging.stop_early and not self.manifest),
            is_deciding=is_deciding,
            records_reach=bool(self.context.affected_tests.reach) and self._is_suite_long,
        )

    def _list_excluded(self) -> tuple[str, ...]:
        """Return new Python files and folders, which the session must not collect: they could patch the product."""
        project = self.context.project
        if not self._edits_files or self.manifest:
            return ()
        outputs = (path.rstrip("/") for path in project.scope.outputs if path.endswith("/"))
        return tuple(str(project.root / path) for path in (*ProjectChanges(project).list_new_places(), *outputs))

    def _make_judge(self) -> AgentJudge | None:
        """Return the judge that answers the questions of rules."""
        if self.context.judge is None:
            return None
        return AgentJudge(
            self.context.judge,
            self.context.settings.root,
            self.context.nonce,
            lambda: self.context.make_watch(self.should_continue),
            self.context.settings.prompts,
            lambda request: self.context.hook.pytest_loop_make_prompt(request=request),
            self.state.iteration,
            self.state.phase.value,
        )
