"""Render the end of a run: the result, the question of a stopped run, and the next commands."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_loop.core.machine.breakers import count_repetitions
from pytest_loop.core.machine.experiment_machine import select_machine
from pytest_loop.core.machine.stop_reasons import find_row
from pytest_loop.core.model.rules import Proof
from pytest_loop.core.model.run_state import SHORT_HASH_LENGTH, RunState
from pytest_loop.core.model.vocabulary import BUILTIN, Place, Reason, Status, Step, Target, parse_reason
from pytest_loop.core.reporting.closing_verdict import count_evidence, decide_closing, list_judged_rules
from pytest_loop.core.reporting.escalation import ask_question, describe_pattern, list_alternatives, render_attempt
from pytest_loop.core.reporting.outcome import ArtifactStatus, compute_distance, get_artifact_status
from pytest_loop.core.text.lengths import shorten
from pytest_loop.core.text.score_text import format_score
from pytest_loop.core.text.wording import list_names, name_step
from pytest_loop.core.workload.experiment_state import ExperimentState
from pytest_loop.show import experiment_text
from pytest_loop.show.look import Look, format_clock
from pytest_loop.show.run_story import PERMITTING_FLAGS, SHOWN_NAMES

_MAX_ERROR = 300
_INDENT = 2


def render_end(state: RunState, look: Look, diffstat: str = "") -> Iterator[str]:
    """Render the end of a run; a stop without success ends in a question. `-qq` has one line."""
    yield from look.wrap_parts(*_list_results(state, look, diffstat))
    if look.verbosity < -1:
        return
    if isinstance(state, ExperimentState):
        yield from experiment_text.render_experiment_end(state.experiment)
    elif state.evaluation and state.evaluation.held_out is not None:
        scores = f"{format_score(state.evaluation.held_out)}, all of them {format_score(state.evaluation.score)}"
        yield f"held out: the rules that no agent has seen score {scores}"
    notes = (*_list_undone_edits(state), *_describe_new_tests(state))
    yield from (line for text in notes for line in look.wrap(text, _INDENT))
    if look.verbosity > 0:
        yield from _render_details(state)
    if not state.stop.passed:
        yield from _render_escalation(state, look)
    yield from look.wrap_parts(*_list_commands(state))


def _list_results(state: RunState, look: Look, diffstat: str) -> tuple[str, ...]:
    """Return the parts of the first line: how the run ended, its rules, changes and cost, and the verdict."""
    word, because = decide_closing(state)
    passed = state.stop.passed
    clock = format_clock(state.completed_phase_seconds)
    if passed:
        head = look.paint(f"done in {clock}", "green", "bold")
    else:
        verb = "failed" if state.status is Status.FAILED else "stopped"
        head = look.paint(f"{verb} after {clock}", "red", "bold")
    reason = "" if passed else f"{format_reason(state)}: {_lower_first(find_row(state.stop.reason).sentence)}"
    is_plain = not passed and because.startswith("it is not done")  # the stop reason comes first already
    verdict = f"verdict {word.value}" if is_plain else f"verdict {word.value}: {because}"
    return head, reason, _count_rules(state), _describe_change(state, diffstat), format_cost(state), verdict


def _list_undone_edits(state: RunState) -> Iterator[str]:
    """Yield the files whose edits the run has undone, and the flag that permits such edits."""
    for kind, flag in PERMITTING_FLAGS.items():
        if paths := [path for path, reason in state.progress.put_back.items() if reason == kind]:
            copies = "copies are in `discarded` of the run's folder"
            yield f"put back: {list_names(paths, SHOWN_NAMES)} ({flag} GLOB permits such edits in a new run; {copies})"


def _describe_new_tests(state: RunState) -> Iterator[str]:
    tests = state.evaluation.new_tests if state.evaluation else None
    if tests:
        result = f"{list_names(tests.failing, SHOWN_NAMES)} fails" if tests.failing else "all pass"
        yield f"new tests: {tests.total}, {result} (not part of the score)"


def _lower_first(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:].rstrip(".")


def _count_rules(state: RunState) -> str:
    """Return how many rules pass; empty after a success, because the last evaluation's line has the number."""
    evaluation = state.evaluation
    return f"{evaluation.passing} of {evaluation.total} pass" if evaluation and not state.stop.passed else ""


def _describe_change(state: RunState, diffstat: str) -> str:
    if state.setup.target is Target.WORKSPACE:
        return diffstat
    return "" if get_artifact_status(state) is ArtifactStatus.NOT_CREATED else f"document {state.setup.artifact}"


def format_cost(state: RunState) -> str:
    """Return the cost and tokens of a run; empty if no agent has worked."""
    usage = state.progress.usage
    tokens = f", {usage.tokens:,} tokens" if usage.tokens else ""
    if usage.estimated_usd is not None:
        tokens += f", about {usage.estimated_usd:.2g} USD (estimated by {usage.estimated_by})"
    if usage.cost_usd is not None:
        return f"{usage.cost_usd:.4g} USD{tokens}"
    return f"cost unknown{tokens}" if state.has_agent_worked else ""


def format_reason(state: RunState) -> str:
    """Return the stop reason, with the words of a person or plugin in brackets."""
    reason = parse_reason(state.stop.reason).value
    return reason if reason == state.stop.reason else f"{reason} ({shorten(state.stop.reason)})"


def _render_details(state: RunState) -> Iterator[str]:
    """Render what only `-v` shows: the score, the hash, the attempts, and how each rule was verified."""
    where = f"iteration {state.iteration} of {state.max_iterations}, phase {state.phase.value}"
    yield f"{state.status.value}: {format_reason(state)} after {where}"
    yield _format_score(state)
    if distance := compute_distance(state):
        yield (
            f"distance: score {format_score(distance['score'])} of {distance['threshold']:g} "
            f"(gap {distance['gap']:.3g}), "
            f"{distance['rules_passed']} of {distance['rules_total']} rules pass"
        )
    for attempt in state.progress.attempts:
        yield f"  {render_attempt(attempt, has_message=True)}"
    for kind, (passed, total) in count_evidence(state).items():
        yield f"  {kind.value:<12} {passed} of {total} pass: {_list_rules(state, kind)}"


def _format_score(state: RunState) -> str:
    """Format the final score: the last evaluation's if the artifact has not changed since, else unavailable."""
    evaluation, status = state.evaluation, get_artifact_status(state)
    if status is ArtifactStatus.EVALUATED and evaluation:
        digest = state.progress.artifact_hash[:SHORT_HASH_LENGTH]
        score = format_score(evaluation.score)
        return f"final_score: {score}, artifact: {state.setup.artifact} ({digest}, {status.value})"
    last = f", last_evaluated_score: {format_score(evaluation.score)}" if evaluation else ""
    path = f", artifact: {state.setup.artifact}" if status is not ArtifactStatus.NOT_CREATED else ""
    return f"final_score: unavailable (the artifact is {status.value}){last}{path}"


def _list_rules(state: RunState, kind: Proof) -> str:
    names = [shorten(rule.id, 60) for rule, proof in list_judged_rules(state) if proof is kind]
    return list_names(names, SHOWN_NAMES)


def _render_escalation(state: RunState, look: Look) -> Iterator[str]:
    distance = compute_distance(state)
    if distance and distance["blocking"]:
        yield from look.wrap(f"still failing: {list_names(distance['blocking'], SHOWN_NAMES)}", _INDENT)
    yield from look.wrap(f"progress: {describe_pattern(state).rpartition(': ')[2]}", _INDENT)
    yield from render_step_errors(state)
    for line in render_question(state):  # commands stay on one line, to be copied
        yield from [line] if line.startswith(("answer: ", "continue: ")) else look.wrap(line, _INDENT)


def render_step_errors(state: RunState) -> Iterator[str]:
    """Render the errors of steps that have failed and not succeeded since."""
    for step, errors in state.progress.step_errors.items():
        yield f"{name_step(step)} failed: {shorten(errors.reason, _MAX_ERROR)}"


def render_question(state: RunState) -> Iterator[str]:
    """Render the question of a run that is over, the alternatives, and the commands that continue it."""
    if not state.stop.passed:
        reason = parse_reason(state.stop.reason)
        yield f"question: {ask_question(state, reason)}"
        for number, alternative in enumerate(list_alternatives(state, reason), 1):
            yield f"  {number}. {alternative.text}"
        yield f"answer: {format_answer_command(state)}"
    if not find_row(state.stop.reason).needs_answer:
        yield f"continue: {format_resume_command(state)}"


def _list_commands(state: RunState) -> Iterator[str]:
    """Yield the commands that show a run, and the command that undoes its edits."""
    is_interrupted = state.current_step is Place.REFINE and parse_reason(state.stop.reason) is Reason.USER_STOP
    has_worked = state.has_agent_worked or state.progress.last_change is not None
    has_edits = (has_worked or is_interrupted) and state.setup.target is Target.WORKSPACE
    undo = "pytest-loop restore 0" + (" (unfinished edits stay until then)" if is_interrupted else "")
    commands = {
        "diff": "pytest-loop diff" if has_worked else "",
        "report": "pytest-loop report",
        "undo": undo if has_edits else "",
    }
    return (f"{name}: {command}" for name, command in commands.items() if command)


def format_answer_command(state: RunState) -> str:
    """Return the command that answers the question of a run."""
    if list_alternatives(state, parse_reason(state.stop.reason)):
        return f"pytest-loop answer 1 --run {state.task_alias} (or 2, or your own words)"
    return f"pytest-loop answer TEXT --run {state.task_alias}"


def format_resume_command(state: RunState) -> str:
    """Return the command that continues the run, or a command that starts a new run."""
    resume = f"pytest-loop resume --run {state.task_alias}"
    if not state.is_over:
        return resume
    names = state.evaluation.assumptions if state.evaluation else ()
    row = find_row(state.stop.reason)
    flags = row.resume_with.format(
        more_iterations=state.max_iterations + 4, confirmations=" ".join(f"--confirm {name}" for name in names)
    )
    if row.needs_answer:
        return format_answer_command(state)
    if Step.PREPARE.value in state.progress.step_errors and state.setup.work_seal is None:
        flags = "--judge NAME (another agent that turns sentences into checks)"
    if not state.setup.agents and row.reason is Reason.PHASE_ERROR:
        flags = "--agent NAME (pytest-loop agents lists all)"
    if _is_search_exhausted(state) and "max_iterations" in row.reopened_by:
        flags += " --agent NAME (another agent: the built-in search has found nothing more)"
    if not row.is_success:
        return f"{resume} {flags}".rstrip()
    manifest = state.experiment.manifest if isinstance(state, ExperimentState) else ""
    new = f"--loop-manifest {manifest}" if manifest else "--loop-task ..."
    return f"pytest {new} (a new run; this one is {state.status.value})"


def _is_search_exhausted(state: RunState) -> bool:
    """Return whether the built-in agent tried last and fixed nothing."""
    attempts, agents = state.progress.attempts, state.setup.agents
    agent = agents[min(state.progress.agent_index, len(agents) - 1)] if agents else ""
    return agent.partition(":")[0] == BUILTIN and bool(attempts) and not attempts[-1].fixed


def describe_next_step(state: RunState) -> str:
    """Describe the next step in a few words."""
    if state.is_over:
        return "nothing" if state.stop.passed else format_resume_command(state)
    first = select_machine(state).list_next_commands(state)[0]
    return f"the end: {first.reason.value}" if first.reason else f"{first.kind.value} of iteration {state.iteration}"


def render_breakers(state: RunState) -> str:
    """Render the count of each breaker, and its limit."""
    counts = [f"{name} {times} of {limit}" for name, (times, limit) in count_repetitions(state).items() if limit]
    return f"breakers: {', '.join(counts)}" if counts else "breakers: all are off"
