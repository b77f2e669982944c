"""The steps PRODUCE and REFINE: an agent writes a document, or edits the files of a project."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_loop.agents.answers import parse_blocked_claim, split_exit_signal
from pytest_loop.agents.protocol import AgentError, AgentReply, AgentUnavailableError, StopRequestedError
from pytest_loop.core.events.run_payloads import ArtifactCreated, CandidateResult, EditPayload, RefinementDone
from pytest_loop.core.model.changed_parts import ChangedParts
from pytest_loop.core.model.run_state import Blocked
from pytest_loop.core.model.vocabulary import BUILTIN, Step
from pytest_loop.errors import StateError
from pytest_loop.rules.document_parts import compare_documents
from pytest_loop.run.candidates import Candidate, CandidateRound
from pytest_loop.run.document_text import unwrap_document
from pytest_loop.run.step_context import StepContext
from pytest_loop.workspace.artifact import Artifact
from pytest_loop.workspace.edit_counter import EditCounter, Rewrites, count_file_edits, count_project_edits
from pytest_loop.workspace.file_tree import FileTree, compare_trees
from pytest_loop.workspace.project_diff import render_document_diff

MAX_PATHS = 50
MAX_REPORT_LENGTH = 4_000
MAX_DIFF_LENGTH = 32 * 1024


def produce(context: StepContext) -> EditPayload:
    """Ask for the first version."""
    return _edit(context, Step.PRODUCE)


def refine(context: StepContext) -> EditPayload:
    """Ask for the fixes of a critique."""
    return _edit(context, Step.REFINE)


def _edit(context: StepContext, step: Step) -> EditPayload:
    if not context.run.agents:
        raise AgentUnavailableError("there is no agent: name one with --loop-agent (pytest-loop agents lists all)")
    return _edit_files(context, step) if context.edits_files else _edit_document(context, step)


def _make_payload(context: StepContext, step: Step, **fields: Any) -> EditPayload:
    if step is Step.REFINE:
        return RefinementDone(previous_artifact_hash=context.state.progress.artifact_hash, **fields)
    return ArtifactCreated(**fields)


def _edit_document(context: StepContext, step: Step) -> EditPayload:
    """Ask for the document, restore all other files, and write the document before its event is recorded."""
    run, path = context.run, context.run.artifact.path
    reply, failure = AgentReply(), None
    with run.artifact.make_scratch_copy() as copy:
        before = Artifact(copy).read_text()
        counter = count_file_edits(copy)
        try:
            reply = _watch_edits(context, counter).ask(step, context.agent, artifact=copy)
        except StopRequestedError:
            raise
        except AgentError as error:
            failure = error
        after = _read_copy(copy)
        rewrites = counter.find_most_edited(copy.parent)
    if failure and (after is None or after == before):
        raise failure
    reply = _read_exit_signal(reply, is_document=after is None or after == before)
    claim = _find_claim(context, reply)
    text = _choose_text(reply, claim, before, after, path.name)
    payload = _make_payload(
        context,
        step,
        exit_signal=reply.exit_signal,
        blocked=claim,
        findings=tuple(run.project.enforce_seal()),
        error=str(failure or ""),
        diff=run.redact(render_document_diff(path.name, before or "", text, MAX_DIFF_LENGTH)),
        change=_redact_parts(compare_documents(before, text, path.name), run.redact),
        **_describe_rewrites(rewrites, path.name),
        **context.record.fields,
    )
    return run.files.write_answer(payload, text, path)


def _choose_text(reply: AgentReply, claim: Blocked | None, before: str | None, after: str | None, name: str) -> str:
    """Return the document: an edited copy comes before the text of the reply."""
    if after is not None and after != before:
        return after
    if claim or (before and not (reply.text or "").strip() and reply.exit_signal is not None):
        return before or ""
    if reply.text is None:
        raise AgentError("expected a document or an edit of it, found neither")
    text = unwrap_document(reply.text, name)
    if not text.strip():
        raise AgentError("expected a document, found an empty answer")
    return text


def _edit_files(context: StepContext, step: Step) -> EditPayload:
    """Let an agent edit the files, and restore sealed ones.

    Raise the error of a failed agent only if it changed nothing: otherwise, the rules judge its edits.
    """
    run, project = context.run, context.run.project
    before = project.current
    reply, failure, rewrites = AgentReply(), None, Rewrites()
    candidates: tuple[CandidateResult, ...] = ()
    try:
        if _uses_candidates(context):
            reply, candidates = _try_candidates(context, step)
        elif context.agent.name == BUILTIN:  # count no edits: its search writes and reverts files again and again
            reply = context.ask(step, context.agent)
        else:
            counter = count_project_edits(project)
            reply = _watch_edits(context, counter).ask(step, context.agent)
            rewrites = counter.find_most_edited(project.root)
    except StopRequestedError:
        raise
    except AgentError as error:
        failure = error
    reply = _read_exit_signal(reply, is_document=False)
    findings = project.enforce_seal()
    if failure and project.digest == before.digest and not findings:
        raise failure
    diff, redact = project.compute_diff(), run.redact
    run.files.write_artifact(redact(diff.text), run.artifact.path)
    return _make_payload(
        context,
        step,
        exit_signal=reply.exit_signal,
        blocked=_find_claim(context, reply),
        findings=tuple(findings),
        candidates=candidates,
        error=str(failure or ""),
        report=redact(reply.report)[:MAX_REPORT_LENGTH],
        diff=redact(project.render_diff(before, MAX_DIFF_LENGTH)),
        artifact_hash=project.digest,
        change=_redact_parts(_compare_files(before, project.current), redact),
        changed=tuple(diff.paths[:MAX_PATHS]),
        **_describe_rewrites(rewrites),
    )


def _watch_edits(context: StepContext, counter: EditCounter) -> StepContext:
    """Return a context that polls the counter of edits whenever it checks whether to continue."""

    def should_continue() -> bool:
        counter.poll()
        return context.should_continue()

    return replace(context, should_continue=should_continue)


def _describe_rewrites(rewrites: Rewrites, name: str = "") -> dict[str, Any]:
    """Return payload fields for a file that was written several times, else none; `name` replaces its path."""
    return {"rewrites": rewrites.times, "rewritten": name or rewrites.path} if rewrites.times > 1 else {}


def _read_exit_signal(reply: AgentReply, *, is_document: bool) -> AgentReply:
    """Return a reply whose exit signal is a field, also if the agent wrote it into its text."""
    if reply.text is None:
        return reply
    text, signal = split_exit_signal(reply.text, is_document=is_document)
    return reply.model_copy(
        update={"text": text, "exit_signal": signal if reply.exit_signal is None else reply.exit_signal}
    )


def _compare_files(before: FileTree, after: FileTree) -> ChangedParts:
    changes = compare_trees(before, after)
    return ChangedParts.create(added=changes.added, modified=changes.modified, removed=changes.removed)


def _redact_parts(parts: ChangedParts, redact: Callable[[str], str]) -> ChangedParts:
    """Remove secrets from the names of parts."""
    groups = {"added": parts.added, "modified": parts.modified, "removed": parts.removed}
    return parts.model_copy(update={action: tuple(map(redact, names)) for action, names in groups.items()})


def _uses_candidates(context: StepContext) -> bool:
    """Return whether several candidates try the edit; False for the built-in agent, which repeats itself."""
    return (
        context.state.setup.candidates > 1 and context.run.make_candidate is not None and context.agent.name != BUILTIN
    )


def _try_candidates(context: StepContext, step: Step) -> tuple[AgentReply, tuple[CandidateResult, ...]]:
    """Return the reply of the best candidate, and the results of all; all of them are paid for."""
    run, request = context.run, context.build_request(step)
    context.record_prompt(request)

    def ask(candidate: Candidate, is_cancelled: Callable[[], bool]) -> AgentReply:
        own_request = replace(request, workspace=candidate.folder, key=f"candidate {candidate.number}")
        own_request = run.finish_prompt(own_request)
        return run.ask_agent(candidate.agent, own_request, lambda: context.should_continue() and not is_cancelled())

    candidate_round = CandidateRound(
        run.project,
        run.files.folder,
        context.state.setup.candidates,
        lambda folder: run.make_candidate(context.agent_index, folder),  # type: ignore[misc]  # not None: checked by the caller
        ask,
        context.make_evaluator().evaluate_rules,
        run.live.write,
    )
    best, candidates = candidate_round.keep_best()
    for candidate in candidates:
        context.record.add_usage(candidate.agent.name, candidate.usage)
    return best.reply, tuple(candidate.summarise(is_kept=candidate is best) for candidate in candidates)


def _find_claim(context: StepContext, reply: AgentReply) -> Blocked | None:
    """Return the claim that a rule cannot be met, if it names a rule of this run and a reason."""
    claim = reply.blocked
    if claim is None and reply.text and (words := parse_blocked_claim(reply.text)):
        claim = Blocked(rule=words[0], reason=words[1])
    is_valid = claim is not None and claim.rule in context.state.criteria.by_id and claim.reason.strip()
    return claim if is_valid else None


def _read_copy(copy: Path) -> str | None:
    """Return the text of the agent's copy; raise `AgentError` if it cannot be read."""
    try:
        return Artifact(copy).read_text()
    except StateError as error:
        raise AgentError(str(error)) from None
