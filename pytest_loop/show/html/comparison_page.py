"""Two runs side by side: figures, rules that ended differently, scores and changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pytest_loop.core.events.event import Event
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.text.score_text import format_score
from pytest_loop.show.html.diff_view import DiffRenderer, DiffView
from pytest_loop.show.html.ledger import build_ledger
from pytest_loop.show.html.page import render_page
from pytest_loop.show.html.score_chart import Chart, build_chart
from pytest_loop.show.html.texts import format_moment
from pytest_loop.show.html.verdict_panel import build_verdict_panel, describe_closing
from pytest_loop.show.job_summary import list_evaluations

_MISSING = "not in this run"


@dataclass(frozen=True)
class ComparedRun:
    """One of two runs: its state, its events, and the diff or document that it has made."""

    state: RunState
    events: Sequence[Event]
    change: str = ""
    document: str = ""


@dataclass(frozen=True)
class _Side:
    name: str
    chart: Chart | None
    change: DiffView
    document: str


def render_comparison(first: ComparedRun, second: ComparedRun) -> str:
    """Render the page of two runs."""
    runs, diffs = (first, second), DiffRenderer()
    different_rules, same_count = _compare_rules(first.state, second.state)
    names = [run.state.task_alias for run in runs]
    return render_page(
        "compare.html.j2",
        f"{names[0]} and {names[1]}",
        headline=_choose_headline(first.state, second.state),
        figures=[row for row in _list_figures(runs) if any(row[1])],
        different_rules=different_rules,
        same_count=same_count,
        sides=[
            _Side(
                run.state.task_alias,
                build_chart(run.state, list_evaluations(run.events), run.events),
                diffs.render(run.change),
                run.document,
            )
            for run in runs
        ],
    )


def _choose_headline(first: RunState, second: RunState) -> str:
    if first.stop.passed != second.stop.passed:
        return f"Only {(first if first.stop.passed else second).task_alias} succeeded"
    return "Both succeeded" if first.stop.passed else "Neither succeeded"


def _list_figures(runs: Sequence[ComparedRun]) -> list[tuple[str, list[str]]]:
    columns = [_describe_run(run) for run in runs]
    return [(name, [column[name] for column in columns]) for name in columns[0]]


def _describe_run(run: ComparedRun) -> dict[str, str]:
    state, ledger = run.state, build_ledger(run.events, run.state.setup.agents)
    evaluation = state.evaluation
    return {
        "result": build_verdict_panel(state).title,
        "stop reason": state.stop.reason,
        "verdict": ": ".join(describe_closing(state)),
        "rules that pass": f"{evaluation.passing} of {evaluation.total}" if evaluation else "",
        "score": format_score(evaluation.score) if evaluation else "",
        "iterations": f"{state.iteration} of at most {state.max_iterations}",
        "agent": ", then ".join(state.setup.agents),
        "time": ledger.seconds,
        "tokens": ledger.tokens if ledger.has_tokens else "",
        "cost": ledger.cost if ledger.has_cost else "",
        "task": state.task.prompt,
        "began": format_moment(state.created_at),
        "git revision": state.setup.origin.revision,
        "command line": state.setup.origin.command,
        **state.setup.origin.versions,
    }


def _compare_rules(first: RunState, second: RunState) -> tuple[list[dict[str, Any]], int]:
    """Return the rules that ended differently, and how many ended alike."""
    rules = {**second.criteria.by_id, **first.criteria.by_id}
    rows = [
        {
            "id": name,
            "description": rule.description if rule.description != name else "",
            "verdicts": [_find_verdict(state, name) for state in (first, second)],
        }
        for name, rule in rules.items()
    ]
    different = [row for row in rows if len(set(row["verdicts"])) > 1]
    return different, len(rows) - len(different)


def _find_verdict(state: RunState, name: str) -> str:
    """Return the last verdict about a rule."""
    if name not in state.criteria.by_id:
        return _MISSING
    evaluation = state.evaluation
    if evaluation is None or not evaluation.phase.includes(state.criteria.by_id[name].phase):
        return "not judged"
    verdicts = {result.id: result.verdict.value for result in evaluation.rule_results}
    verdicts |= {complaint.id: "fail" for complaint in evaluation.failed}
    verdicts |= {complaint.id: "warn" for complaint in evaluation.warnings}
    return verdicts.get(name, "pass")
