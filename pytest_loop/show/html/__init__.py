"""The report of a run: one page of HTML that needs nothing else, made from events and state alone."""

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
from pytest_loop.show.analysis import tendency
from pytest_loop.show.html.chart import chart
from pytest_loop.show.html.grid import grid, plain
from pytest_loop.show.html.story import UNKNOWN, edits, ledger, remarks
from pytest_loop.show.html.verdict import exact, verdict
from pytest_loop.show.run import go_on
from pytest_loop.show.score_section import format_decimal
from pytest_loop.show.summary import rounds

FOLDER = Path(__file__).parent
MISSING = "the report needs Jinja2: pip install 'pytest-agent-loop[report]'"


class ReportError(LoopError):
    """The report cannot be made here."""


def report(state: RunState, events: Sequence[Event], status: str = "") -> str:
    """The page; `status` is what became of the run in words, where somebody knows more than the state."""
    check()
    told = rounds(events)
    script = _part("report.js")
    page: str = _template().render(
        state=state,
        status=status or state.status.value,
        has_files=state.setup.target is Target.WORKSPACE,
        verdict=verdict(state),
        chart=chart(state, told, events),
        tendency=tendency(state, build_records(state, events)),
        rounds=told,
        tampered=[one for one in told if one.found.findings],
        data=grid(state, told, events),
        began=_moment(state.created_at),
        changed=_moment(state.updated_at),
        edits=edits(events, state.setup.agents),
        ledger=ledger(events, state.setup.agents),
        remarks=remarks(events),
        worth=_worth(state),
        escalation=_escalation(state),
        go_on=go_on(state),
        style=_markup(_part("report.css")),
        script=_markup(script),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )
    return page


def check() -> None:
    """Say what is missing before anybody has worked for a report."""
    try:
        import jinja2  # noqa: F401
    except ImportError:
        raise ReportError(MISSING) from None


@cache
def _template() -> Any:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    def shown(value: Any) -> Any:
        """What a text hides is written as codes, wherever it stands on the page."""
        return plain(value) if isinstance(value, str) and not isinstance(value, Markup) else value

    environment = Environment(
        autoescape=True,
        finalize=shown,
        loader=FileSystemLoader(FOLDER),
        lstrip_blocks=True,
        trim_blocks=True,
        undefined=StrictUndefined,
    )
    environment.policies["json.dumps_kwargs"] = {"ensure_ascii": False, "separators": (",", ":")}
    environment.filters["score"] = lambda score: format_decimal(exact(score))
    return environment.get_template("report.html.j2")


def _part(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def _markup(own: str) -> Any:
    """A part of the page that is ours."""
    from markupsafe import Markup

    return Markup(own)  # noqa: S704 - a file of this package


def _moment(text: str) -> str:
    """A moment as a person writes it."""
    return f"{text[:10]} {text[11:19]} UTC" if text.endswith("Z") and len(text) >= 20 else text or UNKNOWN


def _worth(state: RunState) -> str:
    """The closing word for a run that is over, and why it is that one."""
    if not state.is_over:
        return ""
    word, because = decide_closing(state)
    return f"{word.value}: {because}"


def _escalation(state: RunState) -> dict[str, Any] | None:
    """What a person has to know and to answer where a run has ended without success."""
    if not state.is_over or state.stop.passed:
        return None
    return {
        "pattern": describe_pattern(state),
        "error": state.last_error,
        "blocked": state.signals.blocked,
        "question": ask_question(state, parse_reason(state.stop.reason)),
    }
