"""The steps PRODUCE and REFINE: an agent writes a document, or edits the files of a project."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_loop.agents.answers import parse_blocked_claim, strip_fence
from pytest_loop.agents.builtin_agent import BUILTIN
from pytest_loop.agents.protocol import AgentError, AgentReply, AgentUnavailableError, StopRequestedError
from pytest_loop.core.events.run_payloads import ArtifactCreated, CandidateResult, EditPayload, RefinementDone
from pytest_loop.core.model.run_state import Blocked
from pytest_loop.core.model.vocabulary import Step
from pytest_loop.errors import StateError
from pytest_loop.run.candidates import Candidate, CandidateRound
from pytest_loop.run.step_context import StepContext
from pytest_loop.workspace.artifact import Artifact
from pytest_loop.workspace.project_diff import render_document_diff
from pytest_loop.workspace.sealed_files import SealedFiles

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
        raise AgentUnavailableError(
            "there is nobody to ask: name an agent with --loop-agent (--loop-agents lists those that are installed)"
        )
    if context.run.project:
        return _edit_files(context, context.run.project, step)
    return _edit_document(context, step)


def _make_payload(context: StepContext, step: Step, **fields: Any) -> EditPayload:
    if step is Step.REFINE:
        return RefinementDone(previous_artifact_hash=context.state.progress.artifact_hash, **fields)
    return ArtifactCreated(**fields)


def _edit_document(context: StepContext, step: Step) -> EditPayload:
    """Ask for the document, and write it before its event is recorded."""
    run = context.run
    with run.artifact.make_scratch_copy() as copy:
        before = Artifact(copy).read_text()
        reply = context.ask(step, context.agent, artifact=copy)
        after = _read_copy(copy)
    claim = _find_claim(context, reply)
    text = _choose_text(reply, claim, before, after)
    path = run.artifact.path
    payload = _make_payload(
        context,
        step,
        exit_signal=reply.exit_signal,
        blocked=claim,
        diff=run.redact(render_document_diff(path.name, before or "", text, MAX_DIFF_LENGTH)),
        **context.costs.fields,
    )
    return run.files.write_answer(payload, text, path)


def _choose_text(reply: AgentReply, claim: Blocked | None, before: str | None, after: str | None) -> str:
    """Return the document: an edited copy comes before the text of the reply."""
    if after is not None and after != before:
        return after
    if claim or (before and reply.text is None and reply.exit_signal is not None):
        return before or ""
    if reply.text is None:
        raise AgentError("expected a document or an edit of it, found neither")
    text = strip_fence(reply.text)
    if not text.strip():
        raise AgentError("expected a document, found an empty answer")
    return text


def _edit_files(context: StepContext, project: SealedFiles, step: Step) -> EditPayload:
    """Let an agent edit the files, and restore sealed ones.

    An agent that fails is no verdict: if it has edited something, the rules decide.
    """
    run = context.run
    before = project.current
    reply, failure = AgentReply(), None
    candidates: tuple[CandidateResult, ...] = ()
    try:
        if _uses_candidates(context):
            reply, candidates = _try_candidates(context, project, step)
        else:
            reply = context.ask(step, context.agent)
    except (AgentUnavailableError, StopRequestedError):
        raise
    except AgentError as error:
        failure = error
    findings = project.enforce_seal()
    if failure and project.digest == before.digest and not findings:
        raise failure
    if failure:
        run.live.write(f"{failure}; what it edited is judged all the same")
    diff, redact = project.compute_diff(), run.redact
    run.files.write_artifact(redact(diff.text), run.artifact.path)
    return _make_payload(
        context,
        step,
        exit_signal=reply.exit_signal,
        blocked=_find_claim(context, reply),
        findings=tuple(findings),
        candidates=candidates,
        report=redact(reply.report)[:MAX_REPORT_LENGTH],
        diff=redact(project.render_diff(before, MAX_DIFF_LENGTH)),
        artifact_hash=project.digest,
        changed=tuple(diff.paths[:MAX_PATHS]),
    )


def _uses_candidates(context: StepContext) -> bool:
    """Return whether several agents try; the built-in agent would find the same edit each time."""
    return (
        context.state.setup.candidates > 1 and context.run.make_candidate is not None and context.agent.name != BUILTIN
    )


def _try_candidates(
    context: StepContext, project: SealedFiles, step: Step
) -> tuple[AgentReply, tuple[CandidateResult, ...]]:
    """Return the reply of the best candidate, and the results of all; all of them are paid for."""
    run, request = context.run, context.build_request(step)

    def ask(candidate: Candidate, is_cancelled: Callable[[], bool]) -> AgentReply:
        candidate_request = replace(request, workspace=candidate.folder, key=f"candidate {candidate.number}")
        return run.answer(candidate.agent, candidate_request, lambda: context.should_continue() and not is_cancelled())

    candidate_round = CandidateRound(
        project,
        run.files.folder,
        context.state.setup.candidates,
        lambda folder: run.make_candidate(context.agent_index, folder),  # type: ignore[misc]
        ask,
        context.make_evaluator().evaluate_rules,
        run.live.write,
    )
    best, candidates = candidate_round.choose_best()
    for candidate in candidates:
        context.costs.add(candidate.agent.name, candidate.reply.usage)
    return best.reply, tuple(candidate.summarise(is_kept=candidate is best) for candidate in candidates)


def _find_claim(context: StepContext, reply: AgentReply) -> Blocked | None:
    """Return the claim that a rule cannot be met, if it names a rule of this run and a reason."""
    claim = reply.blocked
    if claim is None and reply.text and (words := parse_blocked_claim(reply.text)):
        claim = Blocked(rule=words[0], reason=words[1])
    is_valid = claim is not None and claim.rule in context.state.criteria.by_id and claim.reason.strip()
    return claim if is_valid else None


def _read_copy(copy: Path) -> str | None:
    """Return the agent's copy; what cannot be read is the agent's error."""
    try:
        return Artifact(copy).read_text()
    except StateError as error:
        raise AgentError(str(error)) from None
