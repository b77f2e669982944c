"""One evaluation of a run: a session, the judge that answers its questions, and evidence of tampering."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from pytest_loop.agents.agent_judge import AgentJudge
from pytest_loop.core.judging.assessment import assess
from pytest_loop.core.judging.doctests import find_changed_doctests
from pytest_loop.core.judging.run_draft import find_changed_checks, is_module_rule, is_test_rule
from pytest_loop.core.judging.tampering import (
    ChangedSource,
    find_copied_literals,
    find_suspicious_changes,
    find_test_machinery,
    is_void,
)
from pytest_loop.core.judging.test_counts import require_counts
from pytest_loop.core.model.evaluation import Evaluation, Seal, SealFinding
from pytest_loop.core.model.rules import Proof, SessionPlan
from pytest_loop.core.model.run_state import RunState, Usage
from pytest_loop.core.model.session_order import SessionOrder
from pytest_loop.core.model.vocabulary import Target
from pytest_loop.run.context import RunContext
from pytest_loop.run.deciding_evaluation import DecidingEvaluation
from pytest_loop.run.new_test_session import run_new_tests
from pytest_loop.run.restore import restore_rules
from pytest_loop.session.interference import EXECUTES
from pytest_loop.session.judge_service import JudgeService
from pytest_loop.session.repeat import pass_all_now
from pytest_loop.session.result import SessionResult
from pytest_loop.show.live_view import SHOW_SESSIONS
from pytest_loop.workspace.git import GitError
from pytest_loop.workspace.ignored_files import find_ignored_sources
from pytest_loop.workspace.new_tests import is_test_path
from pytest_loop.workspace.outer_configuration import hash_outer_configuration
from pytest_loop.workspace.path_patterns import PathPatterns
from pytest_loop.workspace.project_changes import ProjectChanges
from pytest_loop.workspace.seal import find_opened_site_folders, hash_site_files, is_test_module


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
        """Evaluate the rules, and look for tampering; an evaluation with evidence of it is void."""
        project = self.context.project
        findings = [
            *self.state.signals.tampering,
            *project.enforce_seal(),
            *restore_rules(self.context.files, self.state),
        ]
        self._save_checkpoint()
        deciding = DecidingEvaluation(
            self.context, self.state, self.evaluate_rules, self._pass_failed_tests, self.should_continue
        )
        evaluate = self.evaluate_rules if self.manifest else deciding.evaluate
        evaluation = evaluate()
        if self._is_unstable(evaluation):
            evaluation = evaluate()
            if self._is_unstable(evaluation):
                detail = "the score rose, although no file has changed"
                findings.append(SealFinding(kind="unstable", rule="the tests", detail=detail))
        if evaluation.passed and self._edits_files and not self.manifest:
            evaluation = evaluation.model_copy(update={"new_tests": run_new_tests(project, self.context.session)})
        changed = project.enforce_seal()
        paths = {finding.path for finding in changed}
        findings += [*changed, *(finding for finding in deciding.findings if finding.path not in paths)]
        findings += self._find_tampering()
        return evaluation.model_copy(update={"void": is_void(findings), "findings": tuple(findings)})

    def evaluate_rules(self, *, is_deciding: bool = False) -> Evaluation:
        """Evaluate only the rules, again without reused results if they pass with them."""
        reuse = not self.context.settings.judging.no_reuse
        evaluation = self._run_session(reuse=reuse, is_deciding=is_deciding)
        if evaluation.passed and self.session_result.has_reused_evidence:
            return self._run_session(reuse=False, is_deciding=is_deciding)
        return evaluation

    def _pass_failed_tests(self) -> bool:
        """Return whether what did not pass last time were tests, and they pass alone now; False if nothing is known."""
        before, rules = self.state.evaluation, self.state.criteria.by_id
        unmet = [rules[name] for name in before.unmet if name in rules] if before else []
        if before is None or before.errors or not all(map(is_test_rule, unmet)):
            return False
        order = self._build_order(None, reuse=False, is_deciding=False)
        return pass_all_now(self.context.session, order, self.context.project.root, [rule.id for rule in unmet])

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

    def _run_session(self, *, reuse: bool, is_deciding: bool) -> Evaluation:
        state = self.state
        artifact_hash = self.context.project.digest if self._edits_files else self.context.artifact.compute_hash()
        judge = self._make_judge()
        service = JudgeService(judge.answer, judge.cancel) if judge else None
        self.context.project.begin_work(is_session=True)
        try:
            session_result = self.session_result = self._find_known_result(artifact_hash) or (
                self.context.session.evaluate(self._build_order(service, reuse, is_deciding))
            )
        finally:
            if judge and service:
                service.close()
                if judge.was_asked:
                    self.add_cost(judge.agent.name, judge.usage)
        modules = [rule for rule in state.criteria.get_active_rules(state.phase) if is_module_rule(rule)]
        evidence = session_result.group_by_rule(rule.key for rule in state.criteria.rules) | {
            rule.key: session_result.find_module_evidence(rule.id) for rule in modules
        }
        evidence = require_counts(evidence, state.setup.seal.test_counts if state.setup.seal else {})
        missing = session_result.make_missing_evidence()
        score_hook = self.context.hook.pytest_loop_score
        return assess(state.criteria, state.phase, evidence, artifact_hash, state.evaluation, missing, score_hook)

    def _find_known_result(self, artifact_hash: str) -> SessionResult | None:
        """Return the result of the baseline for the first evaluation, if no judge has to be asked for it."""
        known, state = self.context.known, self.state
        if known is None or state.has_agent_worked or state.evaluation or known.digest != artifact_hash:
            return None
        is_asked = any(rule.proof in (Proof.REVIEW, Proof.ASSUMPTION) for rule in state.criteria.rules)
        return None if is_asked or self.manifest else known.result

    def _save_checkpoint(self) -> None:
        """Save the files before the evaluation; without a checkpoint in git, the run continues."""
        if not self._edits_files:
            return
        project, iteration = self.context.project, self.state.iteration
        project.save_checkpoint(iteration)
        if self.context.checkpoints:
            try:
                self.context.checkpoints.write(iteration, project.current, f"iteration {iteration}")
            except GitError as error:
                self.context.live.write(f"no checkpoint: {error}", SHOW_SESSIONS)

    def _find_tampering(self) -> Iterator[SealFinding]:
        """Yield evidence of tampering in the files and the session, beside edits of sealed files."""
        seal, session_result = self.state.setup.seal or Seal(), self.session_result
        if session_result.exit_status is not None and not (session_result.canaries and all(session_result.canaries)):
            yield SealFinding(kind="canary", rule="the canary", detail="a test that must fail did not fail")
        for text in session_result.list_contradictions():
            yield SealFinding(kind="contradiction", rule="the session", detail=text)
        replaced = self._list_replaced_tests()
        if replaced:
            detail = f"tests are not what their files say: {', '.join(replaced[:3])}"
            yield SealFinding(kind="replaced", rule="the tests", detail=detail)
        yield from self._find_interference()
        for rule in find_changed_checks(self.state.criteria, session_result.plan or SessionPlan()):
            if not self.context.project.is_unsealed(rule.source):
                detail = "its check is not the one that the run began with"
                yield SealFinding(kind="sealed", rule=rule.id, detail=detail)
        new = [] if seal.plugins is None else sorted(session_result.plugins - set(seal.plugins))
        if new and not find_opened_site_folders((*seal.opened, *self.context.fence.opened)):
            yield SealFinding(kind="plugin", rule="plugins", detail=f"there are new ones: {', '.join(new[:3])}")
        opened = self.context.fence.opened
        is_opened_later = find_opened_site_folders(set(opened).difference(seal.opened))
        if hash_site_files(seal.opened, self.context.project.root) != seal.site and not is_opened_later:
            yield SealFinding(
                kind="site", rule="the environment", detail="what every interpreter or pytest loads first changed"
            )
        yield from self._find_outer_configuration(seal)
        yield from self._find_outer_links()
        yield from self._find_suspicious_code()
        yield from self._find_ignored_sources()

    def _find_outer_configuration(self, seal: Seal) -> Iterator[SealFinding]:
        """Find configuration above the project or in the home folder that is not as it was."""
        now = hash_outer_configuration(self.context.project.root)
        before = now if seal.outer is None else seal.outer
        changed = (path for path in now.keys() | before.keys() if now.get(path) != before.get(path))
        for path in sorted(path for path in changed if not path.startswith(self.context.fence.opened)):
            detail = "configuration outside of the project changed: put it back as it was"
            yield SealFinding(kind="site", rule=path, detail=detail)

    def _find_outer_links(self) -> Iterator[SealFinding]:
        """Find links of the change that lead out of the project: what they lead to is not part of the change."""
        for path, target in ProjectChanges(self.context.project).list_outer_links():
            yield SealFinding(kind="link", path=path, detail=f"leads out of the project, to {target}")

    def _find_suspicious_code(self) -> Iterator[SealFinding]:
        changes = ProjectChanges(self.context.project)
        sources = changes.list_sources()
        if sources and not self._writes_tests:
            texts = changes.read_start_sources(is_sealed=False)
            machinery = frozenset(name for text in texts for name in find_test_machinery(text))
            suspects = filter(self._can_interfere, sources)
            yield from find_suspicious_changes(suspects, machinery, is_linted=self._is_linted)
            yield from self._find_changed_doctests(sources)
            yield from find_copied_literals(sources, changes.read_start_sources(is_sealed=True))

    def _can_interfere(self, source: ChangedSource) -> bool:
        """Return whether code of a source may have run in the session; a command may run whatever it likes."""
        if PathPatterns((self.state.setup.seal or Seal()).named).matches(source.path):
            return False  # the task wants it to be edited
        reads = {path for path, _ in self.session_result.reads}
        is_new_test = source.before is None and is_test_path(source.path)
        return source.path in reads or not reads or (self._is_linted and not is_new_test)

    def _find_changed_doctests(self, sources: list[ChangedSource]) -> Iterator[SealFinding]:
        """Yield the modules of the product whose doctests were changed; their tests decide, so they must stay."""
        seal = self.state.setup.seal or Seal()
        for source in sources:
            if source.path in seal.doctest_sources:
                for name in find_changed_doctests(source.before or "", source.after):
                    detail = f"the doctest of {name} was changed: write it as it was"
                    yield SealFinding(kind="doctest", path=source.path, detail=detail)

    def _find_interference(self) -> Iterator[SealFinding]:
        """Yield what changed or new code did to the session, and no code did before the first edit."""
        seal, project = self.state.setup.seal or Seal(), self.context.project
        changed = {source.path for source in ProjectChanges(project).list_sources()}
        for path, text in sorted(self.session_result.interference.difference(seal.interference)):
            is_known = path in project.start.entries and path not in changed
            if not is_known and (self._is_linted or text != EXECUTES):
                yield SealFinding(kind="interference", path=path, rule="" if path else "the session", detail=text)

    def _find_ignored_sources(self) -> Iterator[SealFinding]:
        """Yield the source files that are newly ignored, so that a linter leaves them out."""
        seal, project = self.state.setup.seal or Seal(), self.context.project
        paths = [path for path in project.start.entries if (project.root / path).exists()]
        for path in find_ignored_sources(project.root, paths) if self._is_linted else ():
            if path not in seal.ignored:
                detail = "an ignore file newly names it, so that linters leave it out"
                yield SealFinding(kind="ratchet", path=path, detail=detail)

    @property
    def _is_linted(self) -> bool:
        """Whether rules check more than tests, so that a linter that sees less could raise the score."""
        return not all(is_test_rule(rule) for rule in self.state.criteria.rules)

    def _list_replaced_tests(self) -> list[str]:
        """Return the tests that were what their file says before the first edit, and are not any more.

        Nothing is known about tests of new files, and of modules that could not be imported.
        """
        unknown = {rule.id for rule in self.state.criteria.rules if is_module_rule(rule)}
        known = self.context.project.start.entries.keys() - unknown
        before = self.state.setup.seal.replaced_tests if self.state.setup.seal else ()
        names = (name for name in self.session_result.replaced_tests if name not in before)
        return [name for name in names if name.partition("::")[0] in known]

    @property
    def _writes_tests(self) -> bool:
        """Whether the document of the run is a test module, which speaks of the test machinery."""
        return not self._edits_files and is_test_module(self.context.artifact.path.name)

    def _build_order(self, service: JudgeService | None, reuse: bool, is_deciding: bool) -> SessionOrder:
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
            can_reuse=reuse,
            left_out=self._list_left_out(),
            can_stop_early=self.context.settings.judging.stop_early and not self.manifest,
            is_deciding=is_deciding,
        )

    def _list_left_out(self) -> tuple[str, ...]:
        """Return the new places of a project: its new tests run apart, because they could patch the product."""
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
