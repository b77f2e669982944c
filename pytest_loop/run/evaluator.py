"""An evaluation of a run: a session, who answers its questions, and what gives a cheat away."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from pytest_loop.agents.agent_judge import Judge
from pytest_loop.core.judging.assessment import assess
from pytest_loop.core.judging.draft import is_module_rule, is_test_rule
from pytest_loop.core.judging.tampering import (
    find_copied_literals,
    find_suspicious_changes,
    find_test_machinery,
    is_void,
)
from pytest_loop.core.model.run_state import Assessment, RunState, Sealed, SealFinding, Usage
from pytest_loop.core.model.session_order import SessionOrder
from pytest_loop.run.context import Tools
from pytest_loop.session.broker import Broker
from pytest_loop.session.runner import Judgement
from pytest_loop.workspace.git import GitError
from pytest_loop.workspace.seal import hash_site_files
from pytest_loop.workspace.sealed_files import SealedFiles


@dataclass
class Examination:
    """Judges what is there now; `spend` hears who was asked as a judge, and what that has cost.

    `judgement` is what the session said.
    """

    tools: Tools
    state: RunState
    wanted: Callable[[], bool]
    spend: Callable[[str, Usage], None]
    judgement: Judgement = field(default_factory=Judgement)

    def whole(self) -> Assessment:
        """What the rules say; where files are judged, also whether that can be believed."""
        project = self.tools.project
        return self.quick() if project is None else self._sealed(project)

    def quick(self) -> Assessment:
        """What the rules say."""
        project = self.tools.project
        return self._judged(project.digest if project else self.tools.artifact.compute_hash())[0]

    def _sealed(self, project: SealedFiles) -> Assessment:
        findings = [*self.state.tampered, *project.enforce_seal(), *self._kept_rules()]
        self._remember(project)
        one, judgement = self._judged(project.digest)
        if self._is_greener_by_itself(one):
            one, judgement = self._judged(project.digest)
            if self._is_greener_by_itself(one):
                detail = "the score rose, although no file has changed"
                findings.append(SealFinding(kind="unstable", rule="the tests", detail=detail))
        findings += [*project.enforce_seal(), *self._suspicions(project, judgement)]
        return one.model_copy(update={"void": is_void(findings), "findings": tuple(findings)})

    def _kept_rules(self) -> Iterator[SealFinding]:
        """What was inferred judges as it was when the run began."""
        files = self.tools.files
        if self.state.inferred and not files.save_rules(self.state.inferred):
            yield SealFinding(kind="sealed", path=files.rules.name, detail="was changed, and was put back")

    def _is_greener_by_itself(self, one: Assessment) -> bool:
        before = self.state.evaluation
        if before is None or before.phase is not one.phase or before.void:
            return False
        return before.artifact_sha256 == one.artifact_sha256 and one.score > before.score

    def _judged(self, artifact_hash: str) -> tuple[Assessment, Judgement]:
        """One session, and what it says about every rule; what would be a success is judged whole."""
        found = self._session(artifact_hash, reuse=self.tools.settings.reuse)
        if found[0].passed and found[1].is_reused:
            return self._session(artifact_hash, reuse=False)
        return found

    def _session(self, artifact_hash: str, *, reuse: bool) -> tuple[Assessment, Judgement]:
        state = self.state
        judge = self._seated()
        broker = Broker(judge.answer, judge.dismiss) if judge else None
        try:
            judgement = self.judgement = self.tools.session.evaluate(self._order(broker, reuse))
        finally:
            if judge and broker:
                broker.close()
                if judge.was_asked:
                    self.spend(judge.agent.name, judge.usage)
        modules = [rule for rule in state.criteria.get_active_rules(state.phase) if is_module_rule(rule)]
        reported = judgement.by_rule() | {rule.key: judgement.of_module(rule.id) for rule in modules}
        missing = judgement.missing()
        own = self.tools.hook.pytest_loop_score
        made = assess(state.criteria, state.phase, reported, artifact_hash, state.evaluation, missing, own)
        return made, judgement

    def _remember(self, project: SealedFiles) -> None:
        """The files as they are judged, to come back to; a repository that takes none is no reason to stop."""
        project.save_checkpoint(self.state.iteration)
        if self.tools.checkpoints:
            try:
                self.tools.checkpoints.write(self.state.iteration, project.current, f"iteration {self.state.iteration}")
            except GitError as error:
                self.tools.live.write(f"no checkpoint: {error}")

    def _suspicions(self, project: SealedFiles, judgement: Judgement) -> Iterator[SealFinding]:
        """What the files and the session give away, beside edits of what judges."""
        sealed = self.state.sealed or Sealed()
        if judgement.finished is not None and not (judgement.canaries and all(judgement.canaries)):
            yield SealFinding(kind="canary", rule="the canary", detail="a test that must fail did not fail")
        new = sorted(judgement.plugins - set(sealed.plugins))
        if new:
            yield SealFinding(kind="plugin", rule="plugins", detail=f"there are new ones: {', '.join(new[:3])}")
        if hash_site_files() != sealed.site:
            yield SealFinding(kind="site", rule="the environment", detail="what every interpreter loads first changed")
        sources = project.list_changed_sources()
        if sources:
            known = frozenset(name for text in project.read_product_sources() for name in find_test_machinery(text))
            is_linted = not all(is_test_rule(rule) for rule in self.state.criteria.rules)
            yield from find_suspicious_changes(sources, known, is_linted=is_linted)
            yield from find_copied_literals(sources, project.read_sealed_sources())

    def _order(self, broker: Broker | None, reuse: bool) -> SessionOrder:
        rules = self.state.criteria.by_id
        prepared = (self.state.prepared_checks or {}).get("checks", [])
        return SessionOrder(
            phase=self.state.phase,
            artifact="" if self.tools.project else str(self.tools.artifact.path),
            canary=secrets.token_hex(8) if self.tools.project else "",
            prepared_checks={rules[one["rule_id"]].key: one["check"] for one in prepared if one["rule_id"] in rules},
            confirmed_rules=self.tools.settings.confirmed,
            judge_address=broker.address if broker else "",
            judge_key=broker.key if broker else "",
            manifest=self.state.notebook.manifest if self.state.notebook else "",
            can_reuse=reuse,
            can_stop_early=self.tools.settings.stop_early and self.state.notebook is None,
        )

    def _seated(self) -> Judge | None:
        """Who answers the questions of rules in an evaluation."""
        if self.tools.judge is None:
            return None
        return Judge(
            self.tools.judge,
            self.tools.settings.root,
            self.tools.settings.nonce,
            lambda: self.tools.watch(self.wanted),
            self.tools.settings.prompts,
            lambda request: self.tools.hook.pytest_loop_make_prompt(request=request),
            self.state.iteration,
            self.state.phase.value,
        )
