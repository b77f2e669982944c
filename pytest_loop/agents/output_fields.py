"""Read the output of a client as its preset describes it: where each value is in the JSON objects that it prints."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from pytest_loop.agents.json_values import (
    Event,
    get_at,
    get_number,
    get_prose,
    get_text,
    list_members,
    parse_object,
    read_events,
    sum_known,
)
from pytest_loop.agents.transcripts import ClientFailure, ClientReport, Transcript
from pytest_loop.core.model.rules import Value


class OutputField(Value):
    """A value of the last JSON object with the values of `where`; `at` are dotted paths, whose numbers are added."""

    where: dict[str, str] = Field(default_factory=dict)
    at: tuple[str, ...]

    def find_values(self, events: list[Event]) -> list[Any]:
        """Return the values at the paths, or none if no object fits."""
        for event in reversed(events):
            fits = all(get_at(event, *path.split(".")) == value for path, value in self.where.items())
            values = [get_at(event, *path.split(".")) for path in self.at] if fits else []
            if any(value is not None for value in values):
                return values
        return []


class OutputFields(Value):
    """The fields of a client that prints one JSON object per line, or writes one as its report.

    An object with `error` is a failure, and so is output without `text`.
    """

    text: OutputField
    session: OutputField | None = None
    tokens: OutputField | None = None
    cost: OutputField | None = None
    error: OutputField | None = None
    status: OutputField | None = None

    def read(self, transcript: Transcript) -> ClientReport:
        """Return the facts of a transcript."""
        report = parse_object(transcript.report)
        events = [*read_events(transcript.stdout), *([report] if report else read_events(transcript.report))]
        text = _find_text(self.text, events)
        error = _find_text(self.error, events)
        is_failed = bool(error.strip() or not text.strip())
        return ClientReport(
            text=get_prose(text),
            session=_find_text(self.session, events),
            tokens=_add_numbers(self.tokens, events),
            cost_usd=_add_numbers(self.cost, events),
            failure=ClientFailure(error, _add_numbers(self.status, events)) if is_failed else None,
        )


def _find_text(field: OutputField | None, events: list[Event]) -> str:
    """Return the text of a field, which may be split into parts."""
    values = field.find_values(events) if field else []
    return "".join(
        value if isinstance(value, str) else "".join(get_text(part, "text") for part in list_members(value))
        for value in values
    )


def _add_numbers(field: OutputField | None, events: list[Event]) -> Any:
    values = field.find_values(events) if field else []
    return sum_known(get_number({"": value}, "") for value in values)
