"""The report of a run: one self-contained HTML page, made from events and state."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from pytest_loop.core.events.event import Event
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.model.vocabulary import Target, parse_reason
from pytest_loop.core.reporting.closing_verdict import decide_closing
from pytest_loop.core.reporting.iteration_records import build_records
from pytest_loop.core.reporting.outcome import ask_question, describe_pattern
from pytest_loop.errors import LoopError
from pytest_loop.show.html.agent_work import UNKNOWN, build_ledger, list_edits, list_remarks
from pytest_loop.show.html.rule_grid import build_grid, reveal_lines
from pytest_loop.show.html.score_chart import build_chart
from pytest_loop.show.html.verdict_panel import build_verdict
from pytest_loop.show.job_summary import list_evaluations
from pytest_loop.show.run_tables import describe_trajectory
from pytest_loop.show.run_text import format_resume_command
from pytest_loop.show.score_section import format_score

FOLDER = Path(__file__).parent
MISSING = "the report needs Jinja2: pip install 'pytest-agent-loop[report]'"


class ReportError(LoopError):
    """The report cannot be made."""


def render_report(state: RunState, events: Sequence[Event], status: str = "") -> str:
    """Render the page; `status` replaces the status of the state if more is known."""
    check_dependencies()
    evaluations = list_evaluations(events)
    script = _read_part("report.js")
    page: str = _load_template().render(
        state=state,
        status=status or state.status.value,
        has_files=state.setup.target is Target.WORKSPACE,
        verdict=build_verdict(state),
        chart=build_chart(state, evaluations, events),
        tendency=describe_trajectory(state, build_records(state, events)),
        rounds=evaluations,
        tampered=[item for item in evaluations if item.evaluation.findings],
        data=build_grid(state, evaluations, events),
        began=_format_moment(state.created_at),
        changed=_format_moment(state.updated_at),
        edits=list_edits(events, state.setup.agents),
        ledger=build_ledger(events, state.setup.agents),
        remarks=list_remarks(events),
        worth=_describe_closing(state),
        escalation=_build_escalation(state),
        go_on=format_resume_command(state),
        style=_mark_safe(_read_part("report.css")),
        script=_mark_safe(script),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )
    return page


def check_dependencies() -> None:
    """Raise ReportError if Jinja2 is missing."""
    try:
        import jinja2  # noqa: F401
    except ImportError:
        raise ReportError(MISSING) from None


@cache
def _load_template() -> Any:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    def reveal(value: Any) -> Any:
        """Write hidden characters of every text on the page as codes."""
        return reveal_lines(value) if isinstance(value, str) and not isinstance(value, Markup) else value

    environment = Environment(
        autoescape=True,
        finalize=reveal,
        loader=FileSystemLoader(FOLDER),
        lstrip_blocks=True,
        trim_blocks=True,
        undefined=StrictUndefined,
    )
    environment.policies["json.dumps_kwargs"] = {"ensure_ascii": False, "separators": (",", ":")}
    environment.filters["score"] = format_score
    return environment.get_template("report.html.j2")


def _read_part(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def _mark_safe(text: str) -> Any:
    """Exempt a part of the page from escaping."""
    from markupsafe import Markup

    return Markup(text)  # noqa: S704 - a file of this package


def _format_moment(text: str) -> str:
    return f"{text[:10]} {text[11:19]} UTC" if text.endswith("Z") and len(text) >= 20 else text or UNKNOWN


def _describe_closing(state: RunState) -> str:
    """Return the closing verdict of a run that is over, with the reason."""
    if not state.is_over:
        return ""
    word, because = decide_closing(state)
    return f"{word.value}: {because}"


def _build_escalation(state: RunState) -> dict[str, Any] | None:
    """Build the escalation of a run that ended without success."""
    if not state.is_over or state.stop.passed:
        return None
    return {
        "pattern": describe_pattern(state),
        "error": state.last_error,
        "blocked": state.signals.blocked,
        "question": ask_question(state, parse_reason(state.stop.reason)),
    }
