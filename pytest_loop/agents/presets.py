"""Presets: the data in `presets.json` on how to call the clients of well-known agents, and read their output."""

from __future__ import annotations

import importlib
import json
import re
import shutil
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from pydantic import Field

from pytest_loop.agents.json_values import (
    ClientEvent,
    get_at,
    get_nonblank_text,
    get_number,
    get_text,
    list_members,
    parse_object,
    read_events,
)
from pytest_loop.agents.transcripts import ClientFailure, ClientReport, Transcript
from pytest_loop.core.model.rules import Value
from pytest_loop.core.model.run_state import sum_known


class OutputField(Value):
    """A value of the last JSON object with the values of `where`; `at` are dotted paths, whose numbers are added."""

    where: dict[str, str] = Field(default_factory=dict)
    at: tuple[str, ...]

    def find_values(self, events: list[ClientEvent]) -> list[Any]:
        """Return the values at the paths in the last matching object; an empty list if no object matches."""
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
            text=get_nonblank_text(text),
            session=_find_text(self.session, events),
            tokens=_add_numbers(self.tokens, events),
            cost_usd=_add_numbers(self.cost, events),
            failure=ClientFailure(error, _add_numbers(self.status, events)) if is_failed else None,
        )


def _find_text(field: OutputField | None, events: list[ClientEvent]) -> str:
    """Return the text of a field, joined if it is split into parts."""
    values = field.find_values(events) if field else []
    return "".join(
        value if isinstance(value, str) else "".join(get_text(part, "text") for part in list_members(value))
        for value in values
    )


def _add_numbers(field: OutputField | None, events: list[ClientEvent]) -> Any:
    values = field.find_values(events) if field else []
    return sum_known(get_number({"": value}, "") for value in values)


Arguments = tuple[str, ...]
UsageScope = Literal["run", "session"]
PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")


class AccessMode(Value):
    """Arguments and variables of one kind of requests: those that may edit, or those that may only read."""

    arguments: Arguments = ()
    environment: dict[str, str] = Field(default_factory=dict)


class SchemaArguments(Value):
    """Arguments that pass the schema of the answer; a strict client requires every property and allows no other."""

    arguments: Arguments
    is_strict: bool = False


class Preset(Value):
    """How to call a client and read its output.

    - `bundled`: a function `module:name` of an installed package that returns the path of the program.
    - `shows`: a pattern of the output of `version`; another program of the same name does not match it.
    - `refusals`: patterns of plain lines of output after which no further call would help.
    - `tested_version`: the version of the client that this preset was tested with.
    - `output`: where the values are in the client's output; without it, `format` names a reader in `transcripts`.
      The format `acp` is a client that is driven through the Agent Client Protocol with `arguments`.
    - `report`: the name of a file that the client writes into `{report_folder}` (`{report_file}` is its path).
    - `start`, `resume`: the first arguments for a new conversation and one that continues. `{session}` is the
      name of the conversation: if `start` contains it, we choose the name; otherwise the client reports it.
    - `is_silent`: the client prints nothing before its end.
    - `is_report`: the text that the client prints during an edit is a report of its work, not the document.
    - `outside_git`: arguments that keep the client from making a repository.
    - `form`: how to pass the schema of the answer; without it, only the prompt asks for the schema.
    - `environment`: defaults for variables that are not set.
    - `tokens`, `cost`: whether the reported numbers count this call (`run`) or the conversation so far (`session`);
    null if
      unknown.
    """

    program: str
    bundled: str = ""
    tested_version: str = ""
    version: Arguments = ("--version",)
    shows: str = ""
    refusals: Arguments = ()
    format: str = ""
    output: OutputFields | None = None
    report: str = "report_file"
    prompt: Literal["stdin", "file"] = "stdin"
    start: Arguments = ()
    resume: Arguments | None = None
    arguments: Arguments = ()
    is_silent: bool = False
    is_report: bool = False
    edit: AccessMode = AccessMode()
    read_only: AccessMode = AccessMode()
    model: Arguments = ()
    artifact: Arguments = ()
    outside_git: Arguments = ()
    form: SchemaArguments | None = None
    environment: dict[str, str] = Field(default_factory=dict)
    tokens: UsageScope | None = None
    cost: UsageScope | None = None

    def find_program(self) -> str | None:
        """Return the path of the program, or None if it is not installed."""
        return shutil.which(self.program) or _find_bundled_program(self.bundled)

    @property
    def names_session(self) -> bool:
        return any("{session}" in word for word in self.start)


@cache
def load_presets() -> dict[str, Preset]:
    """Return every preset by its name."""
    text = files("pytest_loop.agents").joinpath("presets.json").read_text(encoding="utf-8")
    return {name: Preset.model_validate(data) for name, data in json.loads(text).items()}


def fill_placeholders(words: Sequence[str], values: Mapping[str, object]) -> list[str]:
    """Replace `{name}` in words by the value of that name; keep other braces."""
    return [PLACEHOLDER.sub(lambda match: str(values.get(match[1], match[0])), word) for word in words]


def _find_bundled_program(reference: str) -> str | None:
    module, _, function = reference.partition(":")
    if not module:
        return None
    try:
        return str(getattr(importlib.import_module(module), function)())
    except (ImportError, AttributeError, OSError):
        return None
