"""Tell a run at the terminal: one line per evaluation, each new failure once, and each edit as a short diff."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pytest_loop.core.events.event import Event
from pytest_loop.core.events.run_payloads import (
    CritiqueDone,
    EditPayload,
    EvaluationDone,
    PhaseError,
    PhaseSwitched,
)
from pytest_loop.core.judging.critique import render_critique
from pytest_loop.core.judging.tampering import FORBIDDEN
from pytest_loop.core.machine.stop_conditions import MAX_STEP_ERRORS
from pytest_loop.core.model.changed_parts import ChangedParts
from pytest_loop.core.model.evaluation import Evaluation, SealFinding
from pytest_loop.core.model.run_state import RunState, Usage
from pytest_loop.core.model.vocabulary import Target
from pytest_loop.core.text.lengths import shorten
from pytest_loop.core.text.score_text import format_score
from pytest_loop.core.text.wording import format_count, limit_lines, list_names, name_step
from pytest_loop.core.workload.experiment_state import ExperimentState
from pytest_loop.show import experiment_text
from pytest_loop.show.failure_lines import INDENT, render_failures
from pytest_loop.show.live_view import SHOW_AGENTS, SHOW_SESSIONS
from pytest_loop.show.look import Look, shorten_agent
from pytest_loop.show.run_tables import format_plan
from pytest_loop.show.short_diff import render_short_diff

SHOWN_NAMES = 3
SHOWN_FINDINGS = 5
SHOWN_REPORT_LINES = 12
_MAX_ERROR = 300
PERMITTING_FLAGS = {"sealed": "--loop-unseal", FORBIDDEN: "--loop-allow"}
_STEP = " " * 5
_DETAIL = " " * INDENT
_NO_CHANGE = "changed nothing"


@dataclass
class RunStory:
    """Tell a run event by event; `failing` maps each rule already told as failing to the signature of the failure."""

    look: Look
    failing: dict[str, str] = field(default_factory=dict)
    has_evaluation: bool = False

    def tell(self, event: Event, state: RunState) -> Iterator[str]:
        """Yield the lines of an event at this verbosity; yield nothing for most events."""
        if isinstance(state, ExperimentState) and not isinstance(event.payload, PhaseError):
            yield from experiment_text.render_experiment_event(event, state)
            return
        verbosity = self.look.verbosity
        match event.payload:
            case EvaluationDone() if state.evaluation:
                yield from self._tell_evaluation(state, state.evaluation)
            case PhaseSwitched() if verbosity >= SHOW_SESSIONS:
                yield "phase A passes, phase B begins"
            case PhaseError(step=step, reason=reason) if verbosity >= -1 and _is_retried(state, step):
                text = f"{_STEP}{name_step(step)} failed, and is tried again: {shorten(reason, _MAX_ERROR)}"
                yield from self.look.wrap(text, INDENT)
            case EditPayload() as payload if verbosity >= 0:
                yield from self._tell_edit(payload, state)
            case CritiqueDone() if state.critique and verbosity >= SHOW_AGENTS:
                yield from (f"{_DETAIL}{line}" for line in render_critique(state.critique).splitlines())

    def _tell_evaluation(self, state: RunState, evaluation: Evaluation) -> Iterator[str]:
        signatures = {result.id: result.signature for result in evaluation.rule_results}
        unmet = {name: signatures.get(name, "") for name in evaluation.unmet}
        fixed = len(self.failing.keys() - unmet)
        new = [name for name, signature in unmet.items() if self.failing.get(name) != signature]
        gain = self._describe_gain(fixed, len(evaluation.regressions)) if self.has_evaluation else ""
        self.failing, self.has_evaluation = unmet, True
        if self.look.verbosity >= -1:
            yield self._format_headline(state, evaluation, gain)
        if self.look.verbosity < 0:
            return
        yield from render_failures(state, new, self.look)
        yield from (f"{_DETAIL}{line}" for line in self._list_notes(state, evaluation))
        yield from self._list_findings(evaluation.findings)
        if self.look.verbosity >= SHOW_SESSIONS:
            yield from (f"{_DETAIL}{line}" for line in _list_details(state, evaluation))

    def _describe_gain(self, fixed: int, broken: int) -> str:
        if not fixed and not broken:
            return "no gain" if self.failing else ""
        return ", ".join(filter(None, (f"+{fixed}" if fixed else "", f"{broken} broken" if broken else "")))

    def _format_headline(self, state: RunState, evaluation: Evaluation, gain: str) -> str:
        """Return `2/4  ✓ 6 of 6 pass (+3)`, followed by notes."""
        counts = f"{evaluation.passing} of {evaluation.total} pass"
        if evaluation.void:
            counts = f"void: {counts}, but it does not count"
        if state.criteria.has_phase_b:
            counts += f" in phase {state.phase.value}"
        threshold = float(state.criteria.phase[evaluation.phase].threshold)
        others = {
            "1 warning"
            if len(evaluation.warnings) == 1
            else f"{len(evaluation.warnings)} warnings": evaluation.warnings,
            f"{len(evaluation.errors)} cannot be judged": evaluation.errors,
            f"{len(evaluation.assumptions)} to confirm": evaluation.assumptions,
            f"score {format_score(evaluation.score)} of {threshold:g}": _are_weights_different(state),
            f"{evaluation.not_repeated:,} as before": evaluation.not_repeated,
        }
        text = ", ".join([counts, *(words for words, is_shown in others.items() if is_shown)])
        place = self.look.paint(f"{state.iteration}/{state.max_iterations}", "bold")
        gain = self.look.paint(f" ({gain})", "dim") if gain else ""
        return f"{place}  {self.look.draw_mark(is_good=evaluation.is_reached)} {text}{gain}"

    def _list_notes(self, state: RunState, evaluation: Evaluation) -> Iterator[str]:
        yield from _render_errors(evaluation)
        if evaluation.is_reached and state.signals.exit_signal is False:
            yield "it passes, but the agent says that it is not done"
        if evaluation.must_not:
            yield f"forbidden, and true now: {list_names(evaluation.must_not, SHOWN_NAMES)}"
        if evaluation.assumptions:
            yield f"to confirm: {list_names(evaluation.assumptions, SHOWN_NAMES)}"
        if state.progress.agent_since == state.iteration + 1 and not evaluation.is_reached:
            agent = state.setup.agents[state.progress.agent_index]
            yield f"{agent} takes over: the agent before has stopped making progress"

    def _list_findings(self, findings: Sequence[SealFinding]) -> Iterator[str]:
        """Yield evidence of tampering; for files put back, add the place of copies and the permitting flag."""
        lines = [
            f"{_DETAIL}{'not allowed' if finding.kind == FORBIDDEN else finding.kind}: "
            f"{shorten(finding.path or finding.rule)}: {shorten(finding.detail)}"
            for finding in findings
        ]
        yield from limit_lines(lines, SHOWN_FINDINGS, f"{_DETAIL}… {{}} more findings")
        kinds = {finding.kind for finding in findings if finding.path}
        if flags := [f"{flag} GLOB" for kind, flag in PERMITTING_FLAGS.items() if kind in kinds]:
            text = (
                f"copies are in `discarded` of the run's folder; {' or '.join(flags)} permits such edits in a new run"
            )
            yield from self.look.wrap(_DETAIL + text, INDENT)

    def _tell_edit(self, payload: EditPayload, state: RunState) -> Iterator[str]:
        """Yield one line with the agent, summary and usage of an edit, then its short diff."""
        summary, *report = payload.report.splitlines() or [""]
        seconds = f" in {_format_seconds(payload.seconds)} s" if payload.seconds else ""
        change = describe_change(payload.change, state.setup.target)
        names = list_names([finding.path for finding in payload.findings], SHOWN_NAMES)
        put_back = f"put back: {names}" if names else ""
        done = "" if put_back and change == _NO_CHANGE else f"{change}{seconds}"
        agent, usage = shorten_agent(shorten(payload.agent)), format_usage(payload.usage)
        line = self.look.join(agent, summary or done, put_back, usage)
        if self.look.wraps:
            yield from self.look.wrap(_STEP + shorten(line), INDENT)
        else:
            yield _STEP + self.look.fit(line, len(_STEP))
        if payload.error:
            yield from self.look.wrap(f"{_DETAIL}{payload.error}; what it edited is judged all the same", INDENT)
        if self.look.verbosity >= SHOW_SESSIONS:
            yield from (f"{_DETAIL}{self.look.fit(line, INDENT)}" for line in report[:SHOWN_REPORT_LINES])
        yield from render_short_diff(payload.diff, self.look)


def _format_seconds(seconds: float) -> str:
    return f"{seconds:.1f}" if seconds < 10 else f"{seconds:.0f}"


def _is_retried(state: RunState, step: str) -> bool:
    """Return whether a failed step will be tried again; if not, the ending gives the reason."""
    errors = state.progress.step_errors.get(step)
    return errors is not None and errors.times < MAX_STEP_ERRORS


def describe_change(change: ChangedParts | None, target: Target) -> str:
    """Describe how many files of a workspace, or parts of a document, were changed."""
    parts = (*change.added, *change.modified, *change.removed) if change else ()
    if change and change.is_first:
        return "wrote the first version"
    if not parts:
        return _NO_CHANGE
    return f"{format_count(len(parts), 'file' if target is Target.WORKSPACE else 'part')} changed"


def format_usage(usage: Usage) -> str:
    """Return the known tokens and costs; empty without any."""
    tokens = f"{usage.tokens:,} tokens" if usage.tokens else ""
    return ", ".join(filter(None, (tokens, f"{usage.cost_usd:.4g} USD" if usage.cost_usd else "")))


def _render_errors(evaluation: Evaluation) -> Iterator[str]:
    """Render the rules that cannot be judged: one line for each reason."""
    rules: dict[str, list[str]] = {}
    for error in evaluation.errors:
        rules.setdefault(error.message, []).append(error.id)
    lines = [f"cannot be judged: {list_names(names, SHOWN_NAMES)}: {reason}" for reason, names in rules.items()]
    yield from limit_lines(lines, SHOWN_FINDINGS, "… {} more reasons")


def _are_weights_different(state: RunState) -> bool:
    """Return whether weights or severities differ, so that the score says more than the number of passing rules."""
    rules = state.criteria.get_active_rules(state.phase)
    return len({(rule.weight, rule.severity) for rule in rules if not rule.guard}) > 1


def _list_details(state: RunState, evaluation: Evaluation) -> Iterator[str]:
    """Yield the details shown only with `-v`: the score, the hash, the plan and the change."""
    threshold = float(state.criteria.phase[evaluation.phase].threshold)
    score = f"phase {evaluation.phase.value}, score {format_score(evaluation.score)} of {threshold:g}"
    yield f"{score}, hash {evaluation.artifact_hash or '-'}, {state.setup.artifact}"
    if evaluation.cluster:
        yield f"cluster: {evaluation.cluster}"
    yield f"plan: {format_plan(state.plan) or 'none, because it was judged as it is'}"
    yield f"changed: {state.progress.last_change or 'nothing yet'}"
    for title, complaints in (("failed", evaluation.failed), ("warnings", evaluation.warnings)):
        yield f"{title}: {list_names([complaint.id for complaint in complaints], SHOWN_NAMES) or 'none'}"
