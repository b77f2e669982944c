"""Seal the files that decide verdicts, and take the baseline, before the first edit."""

from __future__ import annotations

import secrets
from typing import NamedTuple

from pytest_loop.cli.draft import Draft
from pytest_loop.core.judging.run_draft import apply_baseline, is_module_rule, is_test_rule
from pytest_loop.core.model.evaluation import Seal
from pytest_loop.core.model.rules import Outcome, Phase
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.model.session_order import SessionOrder
from pytest_loop.errors import StateError
from pytest_loop.inference.project_files import read_project
from pytest_loop.session.runner import Session, SessionError
from pytest_loop.store.run_files import RunFiles
from pytest_loop.workspace.seal import BUILD_FILES, build_seal_patterns, hash_site_files
from pytest_loop.workspace.sealed_files import SealedFiles


def seal_project(draft: Draft, state: RunState, files: RunFiles) -> SealedFiles:
    """Return the files of the project, with those sealed that decide verdicts.

    If a rule runs a command, its verdict may depend on tests of any language and on files of build tools: they are
    sealed too.
    """
    settings, rules = draft.settings, state.criteria.rules
    node_ids = (*draft.plan.items, *(rule.id for rule in rules))
    paths = [*(node_id.partition("::")[0] for node_id in node_ids), *draft.plan.judges]
    globs = settings.workspace.seal
    if any(rule.proof.is_executed and not is_test_rule(rule) for rule in rules):
        paths += read_project(settings.root).find_tests()
        globs = (*BUILD_FILES, *globs)
    patterns = build_seal_patterns(
        filter(None, paths), globs, settings.workspace.unseal, are_tests_added=draft.context.adds_tests
    )
    return SealedFiles(settings.root, files.folder, patterns, settings.workspace.allow)


def take_baseline(state: RunState, project: SealedFiles, session: Session) -> RunState:
    """Return the state with the seal and the results of two evaluations: rules that differ are unstable."""
    digests = project.record_start()
    baselines = [_evaluate_baseline(state, session) for _ in range(2)]
    criteria, unstable, unjudged = apply_baseline(state.criteria, *(baseline.outcomes for baseline in baselines))
    seal = Seal(
        patterns=project.sealed.patterns,
        allow=project.allow.patterns,
        files=digests,
        site=hash_site_files(),
        plugins=tuple(sorted(frozenset[str]().union(*(baseline.plugins for baseline in baselines)))),
        unstable=unstable,
        unjudged=unjudged,
    )
    return state.replace(criteria=criteria, seal=seal, artifact_hash=project.digest)


class BaselineSession(NamedTuple):
    """The worst outcome of each rule in one session, and the session's plugins."""

    outcomes: dict[str, Outcome]
    plugins: frozenset[str]


def _evaluate_baseline(state: RunState, session: Session) -> BaselineSession:
    try:
        result = session.evaluate(SessionOrder(phase=Phase.B, canary=secrets.token_hex(8)))
    except SessionError as error:
        raise StateError(f"the tests cannot be run: {error}") from None
    if result.canaries and not all(result.canaries):
        raise StateError(
            "a test that must fail does not fail here: something patches pytest, and nothing can be judged"
        )
    evidence = result.group_by_rule()
    modules = filter(is_module_rule, state.criteria.rules)
    evidence |= {rule.key: result.find_module_evidence(rule.id) for rule in modules}
    outcomes = {
        key: max((piece.outcome for piece in pieces), key=lambda outcome: outcome.rank)
        for key, pieces in evidence.items()
        if pieces
    }
    return BaselineSession(outcomes, result.plugins)
