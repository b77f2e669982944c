"""The prompt of a composer, the agent that proposes edits: files, visible cases, critiques, and earlier attempts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from pytest_loop.agents import prompts
from pytest_loop.core.model.vocabulary import Step
from pytest_loop.core.text.lengths import clip_text, shorten
from pytest_loop.core.text.sanitizer import fence_text
from pytest_loop.core.text.wording import list_names
from pytest_loop.core.workload.experiment_state import Experiment, ExperimentState
from pytest_loop.core.workload.hypotheses import MODES, OnRegression, Truth
from pytest_loop.core.workload.measurement import CaseOutcome, Measurement

COMPOSE = "COMPOSE"
MAX_CASES = 40
MAX_NAMES = 200
MAX_CASE_LENGTH = 1_500
MAX_FILE_LENGTH = 60_000
_TRY_DIFFERENT_APPROACH = "The last edit made cases worse. Try a different approach, or fix what it broke."


def render_compose_prompt(
    state: ExperimentState,
    files: Mapping[str, str],
    docs: Mapping[str, str],
    nonce: str,
    folder: Path | None = None,
    template: Path | None = None,
) -> str:
    """Render the composer's prompt without held-out cases, from `template`, else from `folder` or the built-in one."""
    experiment = state.experiment
    mode = MODES[experiment.policy.mode]
    last = experiment.last or Measurement(iteration=0, results=())
    values = {
        "trouble": shorten(state.get_error(Step.CRITIQUE), 2_000),
        "run_id": state.run_id,
        "iteration": str(state.iteration),
        "max_iterations": str(state.max_iterations),
        "task": state.task.prompt,
        "answers": prompts.render_answers(state),
        "workload_id": experiment.workload,
        "plan": experiment.plan,
        "feedback": _render_feedback(experiment),
        "role": mode.role,
        "focus": mode.focus,
        "shape": mode.hypothesis,
        "success": mode.success,
        "cases_summary": "\n".join(_list_outcomes(experiment, last)),
        "iteration_history": "\n".join(_list_attempts(experiment)),
        "current_hypothesis": experiment.hypotheses[-1].theory if experiment.hypotheses else "",
        "evaluation_critiques": _fence("\n\n".join(_list_critiques(experiment, last)), nonce),
        "domain_docs": _fence(_join_files(docs), nonce),
        "artifact_content": _fence(_join_files(files), nonce),
    }
    return prompts.render_template(COMPOSE, values, folder, template)


def _fence(text: str, nonce: str) -> str:
    return fence_text(text, nonce) if text else ""


def _join_files(files: Mapping[str, str]) -> str:
    return "\n".join(f"--- {name}\n{clip_text(text, MAX_FILE_LENGTH)}" for name, text in files.items())


def _render_feedback(experiment: Experiment) -> str:
    feedback = experiment.decision.feedback if experiment.decision and not experiment.is_edited else ""
    return "\n".join(
        filter(None, (feedback, _TRY_DIFFERENT_APPROACH if experiment.regression is OnRegression.DIFFERENT else ""))
    )


def _list_outcomes(experiment: Experiment, last: Measurement) -> Iterator[str]:
    yield f"{last}."
    for title, cases in (
        ("Pass", sorted(last.passing)),
        ("Fail", sorted(last.failing)),
        ("Could not be measured, which says nothing about the files", sorted(last.unmeasured)),
        ("Look at these first", [case for case in experiment.focus if case not in experiment.held_out_cases]),
        ("These must not become worse", [case for case in experiment.guards if case not in experiment.held_out_cases]),
    ):
        if cases:
            yield f"{title}: {list_names(cases, MAX_NAMES)}"


def _list_attempts(experiment: Experiment) -> Iterator[str]:
    hypothesis_outcomes = {outcome.iteration: outcome for outcome in experiment.hypothesis_outcomes}
    for hypothesis in experiment.hypotheses:
        outcome = hypothesis_outcomes.get(hypothesis.iteration)
        truth = (outcome.truth if outcome else Truth.UNTESTED).value.replace("_", " ")
        missed = f"; did not improve: {', '.join(outcome.missed)}" if outcome and outcome.missed else ""
        worse = f"; became worse: {', '.join(outcome.regressions)}" if outcome and outcome.regressions else ""
        yield f"- iteration {hypothesis.iteration}: {shorten(hypothesis.theory, 400)} {truth}{missed}{worse}"


def _list_critiques(experiment: Experiment, last: Measurement) -> Iterator[str]:
    """Yield the critiques of failing cases, those in focus first, up to a limit."""
    failing = [result for result in last.results if result.outcome is CaseOutcome.FAILED]
    ordered = sorted(failing, key=lambda result: (result.id not in experiment.focus, result.id))
    for result in ordered[:MAX_CASES]:
        lines = filter(None, (*(f"- {remark}" for remark in result.critiques), result.difference))
        yield clip_text(f"{result.id}\n" + "\n".join(lines), MAX_CASE_LENGTH)
    if len(ordered) > MAX_CASES:
        yield f"and {len(ordered) - MAX_CASES} more cases fail"
