"""Seal the files that decide verdicts, and take the baseline, before the first edit."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import pytest

from pytest_loop.cli.draft import RunDraft, list_rule_file_problems
from pytest_loop.core.judging.run_draft import apply_baseline
from pytest_loop.core.model.rules import Outcome, Phase, Proof, Severity
from pytest_loop.core.model.run_criteria import RunCriteria
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.model.session_order import SessionOrder
from pytest_loop.core.model.vocabulary import Target
from pytest_loop.errors import StateError
from pytest_loop.inference.file_roles import find_judging_scripts, find_named_files
from pytest_loop.inference.project_files import read_project
from pytest_loop.run.build import build_files
from pytest_loop.run.fence import plan_fence, resolve_writable_paths
from pytest_loop.run.sealed_reads import find_read_patterns
from pytest_loop.session.isolated_items import confirm_failures
from pytest_loop.session.reach import IS_CHEAP
from pytest_loop.session.result import BaselineResult, SessionResult
from pytest_loop.session.runner import SessionError
from pytest_loop.store import disk
from pytest_loop.store.run_files import RunFiles
from pytest_loop.workspace.clean_room import CleanRoom
from pytest_loop.workspace.environment import find_changed_package_files
from pytest_loop.workspace.fenced_paths import WriteWatch
from pytest_loop.workspace.file_tree import compare_trees
from pytest_loop.workspace.ignored_files import find_ignored_sources
from pytest_loop.workspace.path_patterns import PathPatterns
from pytest_loop.workspace.seal import BUILD_FILES, GUIDANCE_FILES, build_seal_patterns, format_path_pattern
from pytest_loop.workspace.sealed_files import SealedFiles
from pytest_loop.workspace.session_outputs import OutputWatch, is_written_since


def seal_files(draft: RunDraft, state: RunState, files: RunFiles) -> SealedFiles:
    """Seal the files that decide verdicts, and return the files of the project.

    A run of a document may edit nothing else. If a rule runs a command, its verdict may depend on tests of any language
    and on files of build tools: they are sealed too.
    """
    settings, rules = draft.settings, state.criteria.rules
    node_ids = (*draft.plan.items, *(rule.id for rule in rules))
    tests = dict.fromkeys(node_id.partition("::")[0] for node_id in node_ids)
    paths = [*(path for path in tests if path not in draft.plan.doctest_sources), *draft.plan.judges]
    globs, allow = settings.workspace.seal, settings.workspace.allow
    named_files = find_named_files(draft.context.task.text) if draft.target is Target.WORKSPACE else ()
    unseal = (*settings.workspace.unseal, *named_files)
    if any(rule.proof is Proof.REVIEW for rule in rules):
        prompts = (f"/{settings.agents.prompts.strip('/')}/",) if settings.agents.prompts else ()
        globs = (*GUIDANCE_FILES, *prompts, *globs)
    if any(rule.is_command for rule in rules):
        files_of_project = read_project(settings.root)
        paths += files_of_project.find_tests()
        paths += find_judging_scripts(
            files_of_project.files, draft.plan.command_files, lambda path: _read_text(settings.root / path)
        )
        globs = (*BUILD_FILES, *globs)
    if draft.target is Target.ARTIFACT:
        paths += draft.plan.command_files
        document = format_path_pattern(state.setup.artifact)
        allow = (document, *allow, *unseal)
        unseal = (*unseal, document)
    paths = list(filter(None, paths))
    patterns = build_seal_patterns(paths, globs, unseal, _find_packages(settings.root, paths))
    return SealedFiles(settings.root, files.folder, patterns, allow)


def _read_text(path: Path) -> str:
    return (disk.read_file(path) or b"").decode("utf-8", "replace")


def _find_packages(root: Path, paths: Iterable[str]) -> set[str]:
    """Return the folders of paths that are Python packages."""
    folders = {str(folder) for path in paths for folder in PurePosixPath(path).parents}
    return {folder for folder in folders if (root / folder / "__init__.py").exists()}


def _find_unsealed_by_task(draft: RunDraft, project: SealedFiles) -> tuple[str, ...]:
    """Return the files named in the task that would be sealed otherwise."""
    patterns = PathPatterns(pattern for pattern in project.sealed.patterns if not pattern.startswith("!"))
    return tuple(
        name.lstrip("/") for name in find_named_files(draft.context.task.text) if patterns.matches(name.lstrip("/"))
    )


def seal_document(draft: RunDraft, state: RunState, project: SealedFiles) -> RunState:
    """Record the seal of a document's run in its state; there is nothing to evaluate before the first edit.

    Raise `UsageError` for `--loop-tests-first`: a document is judged by rules, not by tests.
    """
    if draft.settings.start.tests_first:
        raise pytest.UsageError("--loop-tests-first: expected a run that edits files, found one of a document")
    opened = resolve_writable_paths(draft.settings)
    seal = project.record_seal(opened).model_copy(
        update={
            "left_out": record_left_out_files(project, opened, state.setup.artifact),
            "taken_at": time.time_ns(),
            "start_digest": state.progress.artifact_hash,
            "plugins": tuple(sorted(draft.plugins)),
            "replaced_tests": draft.plan.replaced_tests,
        }
    )
    return state.replace(seal=seal)


def record_left_out_files(project: SealedFiles, opened: tuple[str, ...], document: str = "") -> str:
    """Record the left-out files, which clean rooms set aside, and return the hash of the list.

    Files in `opened`, to which agents may write, and the `document` stay in place.
    """
    room = CleanRoom(project, project.folder, opened, document=document)
    listing_hash = room.record()
    room.close()
    return listing_hash


class SealedState(NamedTuple):
    """The state of a run with its seal, the number of failing goals at baseline, and the result of the last session."""

    state: RunState
    failing_count: int
    baseline_result: BaselineResult


def take_baseline(draft: RunDraft, state: RunState, project: SealedFiles, runs_folder: Path) -> SealedState:
    """Take the baseline and complete the seal; mark rules whose results differ as unstable, and drop failing guards.

    The first session shows which files sessions read and write: those that tests read get sealed, and those that
    sessions write stay writable in the fence. If the first session wrote sealed files, or is inconclusive, run a second
    one inside of this fence: a rule that fails only there must not block.
    """
    session, settings = draft.session, draft.settings
    opened, build = resolve_writable_paths(settings), settings.judging.build
    if build and (problem := build_files(build, settings.root, settings.judging.session_timeout)):
        raise StateError(problem)
    project.record_start()
    start_files, started = project.start, time.time_ns()
    watch = WriteWatch(project)
    first = second = _evaluate_baseline(draft, state)
    written_paths = watch.find_written_paths()
    read_patterns = _seal_read_files(project, first.result, started)
    if state.criteria.has_tests_only:  # else new files that hide a module cannot be told: commands import elsewhere
        project.module_folders = tuple(sorted({".", *first.result.module_folders}))
    seal = project.record_seal(opened)
    changes = compare_trees(start_files, project.start).exclude(PathPatterns(read_patterns))
    written = tuple(sorted({*written_paths, *changes.paths}))
    outputs = OutputWatch(project, start_files)
    fenced_state = state.replace(seal=seal.model_copy(update={"written": written}))
    session.fence = plan_fence(settings, runs_folder, project, fenced_state).build(project.root)
    if written or _needs_second_session(draft, first, project, started):
        second = _evaluate_baseline(draft, state)
        project.extend_seal((), outputs.find_outputs())
    criteria, unstable, unjudged = apply_baseline(state.criteria, first.outcomes, second.outcomes)
    fields = {"build": build, "written": written, "unstable": unstable, "unjudged": unjudged}
    seal = project.record_seal(opened).model_copy(update=fields | _collect_facts(draft, project, first, second, opened))
    seal = seal.model_copy(update={"guard_seconds": sum(first.seconds.get(rule.key, 0.0) for rule in criteria.guards)})
    state = state.replace(criteria=criteria, seal=seal, artifact_hash=project.digest)
    return SealedState(state, _count_failing_goals(criteria, first), BaselineResult(project.digest, second.result))


def _seal_read_files(project: SealedFiles, result: SessionResult, started: int) -> tuple[str, ...]:
    """Seal the files that a session read and did not write since `started`; return their patterns."""
    reads = [(path, owner) for path, owner in result.reads if not is_written_since(project.root / path, started)]
    patterns = find_read_patterns(project, reads, result.plugin_files)
    project.extend_seal(patterns, ())
    return patterns


def _collect_facts(
    draft: RunDraft, project: SealedFiles, first: BaselineSession, second: BaselineSession, opened: tuple[str, ...]
) -> dict[str, Any]:
    """Return the fields of a seal that describe the project and its sessions before the first edit."""
    results = first.result, second.result
    return {
        "start_digest": project.digest,
        "left_out": record_left_out_files(project, opened),
        "taken_at": time.time_ns(),
        "session_seconds": min(first.duration, second.duration),
        "plugins": _merge(result.plugins for result in results),
        "module_folders": project.module_folders,
        "named": _find_unsealed_by_task(draft, project),
        "doctest_sources": draft.plan.doctest_sources,
        "replaced_tests": _merge(result.replaced_tests for result in results),
        "test_counts": {key: min(count, second.test_counts.get(key, 0)) for key, count in first.test_counts.items()},
        "ignored": find_ignored_sources(project.root, project.start.entries),
        "interference": _merge(result.interference for result in results),
    }


def _merge(groups: Iterable[Iterable[Any]]) -> tuple[Any, ...]:
    return tuple(sorted({value for group in groups for value in group}))


def _count_failing_goals(criteria: RunCriteria, session: BaselineSession) -> int:
    goals = [rule for rule in criteria.goals if rule.severity is not Severity.INFO and not rule.must_not]
    return sum(session.outcomes.get(rule.key) is not Outcome.PASSED for rule in goals)


def _needs_second_session(draft: RunDraft, first: BaselineSession, project: SealedFiles, started: int) -> bool:
    """Return whether the first session is inconclusive: it died, a fence may disturb it, or a failure does not repeat.

    A failed test that passes alone is flaky or depends on others: only another session of the whole suite can tell.
    """
    settings, session = draft.settings, draft.session
    if settings.judging.baseline_runs > 1 or first.result.exit_status is None:
        return True
    if session.fence and any(map(project.is_sealed, first.result.opened_to_write)):
        return True
    if session.fence and find_changed_package_files(settings.root, started, resolve_writable_paths(settings)):
        return True
    order = SessionOrder(phase=Phase.B)
    return not confirm_failures(session, order, settings.root, first.result.failed_items)


class BaselineSession(NamedTuple):
    """One baseline session, with the worst outcome, the seconds and the number of tests of each rule."""

    result: SessionResult
    duration: float
    outcomes: dict[str, Outcome]
    seconds: dict[str, float]
    test_counts: dict[str, int]


def _evaluate_baseline(draft: RunDraft, state: RunState) -> BaselineSession:
    """Run one baseline session; raise `StateError` if it cannot run or collect, or if a hidden failing test passes."""
    records_reach = IS_CHEAP or draft.settings.judging.affected
    order = SessionOrder(phase=Phase.B, canary=secrets.token_hex(8), records_reach=records_reach)
    started = time.monotonic()
    try:
        result = draft.session.evaluate(order)
    except SessionError as error:
        raise StateError(f"the tests cannot be run: {error}") from None
    duration = time.monotonic() - started
    if problems := list_rule_file_problems(result):
        raise StateError("the rules cannot be collected:\n" + "\n".join(problems))
    if result.canaries and not all(result.canaries):
        raise StateError(
            "a hidden test that must fail does not fail as it must: something patches pytest, or a hook fails in every "
            "test, and nothing can be judged; look at what `pytest` prints"
        )
    evidence = result.collect_evidence(state.criteria.rules)
    outcomes = {
        key: max((piece.outcome for piece in pieces), key=lambda outcome: outcome.rank)
        for key, pieces in evidence.items()
        if pieces
    }
    seconds = {key: sum(piece.seconds for piece in pieces) for key, pieces in evidence.items()}
    counts = {key: min(piece.tests[0] if piece.tests else 0 for piece in pieces) for key, pieces in evidence.items()}
    return BaselineSession(result, duration, outcomes, seconds, {key: count for key, count in counts.items() if count})
