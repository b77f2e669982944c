"""What a composer reads: the files, the cases that it may know, what was said about them, and what was tried."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from pytest_loop.agents import prompts
from pytest_loop.core.model.vocabulary import Step
from pytest_loop.core.text.lengths import clip_text, shorten
from pytest_loop.core.text.sanitizer import fence_text
from pytest_loop.core.text.wording import list_names
from pytest_loop.core.workload.experiment_state import Experiment, ExperimentState
from pytest_loop.core.workload.hypotheses import MODES, OnRegression, Truth
from pytest_loop.core.workload.measurement import CaseOutcome, CaseResult, Measurement

COMPOSE = "COMPOSE"
MOST_CASES = 40
MOST_NAMES = 200
LONGEST_CASE = 1_500
LONGEST_FILE = 60_000
_DIFFERENT = "The last edit made cases worse. Try a different approach, or mend what it broke."


def compose_prompt(
    state: ExperimentState,
    files: Mapping[str, str],
    docs: Mapping[str, str],
    nonce: str,
    folder: Path | None = None,
    own: Path | None = None,
) -> str:
    """The prompt of COMPOSE; of cases that are held out not even the names are in it."""
    experiment = state.experiment
    mode = MODES[experiment.policy.mode]
    last = experiment.last or Measurement(iteration=0, results=())
    values = {
        "trouble": shorten(state.error_of(Step.CRITIQUE), 2_000),
        "run_id": state.run_id,
        "iteration": str(state.iteration),
        "max_iterations": str(state.max_iterations),
        "task": state.task.prompt,
        "workload_id": experiment.workload,
        "plan": experiment.plan,
        "feedback": _feedback(experiment),
        "role": mode.role,
        "focus": mode.focus,
        "shape": mode.hypothesis,
        "success": mode.success,
        "cases_summary": "\n".join(_summary(experiment, last)),
        "iteration_history": "\n".join(_history(experiment)),
        "current_hypothesis": experiment.hypotheses[-1].theory if experiment.hypotheses else "",
        "evaluation_critiques": _marked("\n\n".join(_critiques(experiment, last)), nonce),
        "domain_docs": _marked(_whole(docs), nonce),
        "artifact_content": _marked(_whole(files), nonce),
    }
    return prompts.render_template(COMPOSE, values, folder, own)


def _marked(text: str, nonce: str) -> str:
    return fence_text(text, nonce) if text else ""


def _whole(files: Mapping[str, str]) -> str:
    return "\n".join(f"--- {name}\n{clip_text(text, LONGEST_FILE)}" for name, text in files.items())


def _feedback(experiment: Experiment) -> str:
    said = experiment.decision.feedback if experiment.decision and not experiment.is_edited else ""
    return "\n".join(filter(None, (said, _DIFFERENT if experiment.regression is OnRegression.DIFFERENT else "")))


def _summary(experiment: Experiment, last: Measurement) -> Iterator[str]:
    yield f"{last}."
    for word, names in (
        ("Pass", sorted(last.passing)),
        ("Fail", sorted(last.failing)),
        ("Could not be measured, which says nothing about the files", sorted(last.unmeasured)),
        ("Look at these first", [one for one in experiment.focus if one not in experiment.hidden]),
        ("These must not become worse", [one for one in experiment.guards if one not in experiment.hidden]),
    ):
        if names:
            yield f"{word}: {list_names(names, MOST_NAMES)}"


def _history(experiment: Experiment) -> Iterator[str]:
    judgements = {one.iteration: one for one in experiment.judgements}
    for said in experiment.hypotheses:
        found = judgements.get(said.iteration)
        truth = (found.truth if found else Truth.UNTESTED).value.replace("_", " ")
        worse = f"; became worse: {', '.join(found.regressions)}" if found and found.regressions else ""
        missed = f"; did not improve: {', '.join(found.missed)}" if found and found.missed else ""
        yield f"- iteration {said.iteration}: {shorten(said.theory, 400)} {truth}{missed}{worse}"


def _critiques(experiment: Experiment, last: Measurement) -> Iterator[str]:
    """Those of the cases to look at first, and no more than anybody reads."""
    failing = [one for one in last.results if one.outcome is CaseOutcome.FAILED]
    ordered = sorted(failing, key=lambda one: (one.id not in experiment.focus, one.id))
    for one in ordered[:MOST_CASES]:
        yield clip_text(f"{one.id}\n" + "\n".join(_said(one)), LONGEST_CASE)
    if len(ordered) > MOST_CASES:
        yield f"and {len(ordered) - MOST_CASES} more cases fail"


def _said(one: CaseResult) -> Iterable[str]:
    return filter(None, (*(f"- {remark}" for remark in one.critiques), one.difference))
