"""Presets: how the clients of well-known agents are called, as data in `presets.json`."""

from __future__ import annotations

import importlib
import json
import re
import shutil
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Literal

from pydantic import Field

from pytest_loop.core.model.rules import Value

Words = tuple[str, ...]
Scope = Literal["run", "session"]
_PLACEHOLDER = re.compile(
    r"\{(model|session|schema|schema_file|prompt_file|report_file|artifact|folder|state|workspace)\}"
)


class Mode(Value):
    """What is added where the agent may edit, or where it may not."""

    arguments: Words = ()
    environment: dict[str, str] = Field(default_factory=dict)


class Form(Value):
    """How a client is told the form of its answer; a strict one takes only schemas that leave nothing open."""

    arguments: Words
    is_strict: bool = False


class Preset(Value):
    """How a client is called, and what its output means.

    `start` and `resume` come first: a conversation that begins, and one that goes on. Where `start` names the session,
    we choose its name; elsewhere the client tells it. `bundled` is a function of an installed package that knows where
    the program is. `is_silent` says that the client says nothing before its end, `is_report` that its words while it
    edits are no document but a report of its work. `tokens` and `cost` say what its numbers count: this run of it, or
    the whole conversation so far; null is unknown. `checked` is the version that all this was seen with.
    `outside_git` keeps a client from making a repository where there is none. `environment` holds values for variables
    that are not set.
    """

    program: str
    bundled: str = ""
    checked: str
    version: Words = ("--version",)
    format: str
    prompt: Literal["stdin", "file"] = "stdin"
    start: Words = ()
    resume: Words | None = None
    arguments: Words = ()
    is_silent: bool = False
    is_report: bool = False
    edit: Mode = Mode()
    read_only: Mode = Mode()
    model: Words = ()
    artifact: Words = ()
    outside_git: Words = ()
    form: Form | None = None
    environment: dict[str, str] = Field(default_factory=dict)
    tokens: Scope | None = None
    cost: Scope | None = None

    def find_program(self) -> str | None:
        """The path of the program; None where it is not installed."""
        return shutil.which(self.program) or _bundled(self.bundled)

    @property
    def names_session(self) -> bool:
        """Whether we choose the name of a conversation."""
        return any("{session}" in word for word in self.start)


@cache
def load_presets() -> dict[str, Preset]:
    """Every preset by its name."""
    text = files("pytest_loop.agents").joinpath("presets.json").read_text(encoding="utf-8")
    return {name: Preset.model_validate(data) for name, data in json.loads(text).items()}


def fill_placeholders(words: Words, values: Mapping[str, object]) -> list[str]:
    """Words with their placeholders replaced; one without a value stays."""
    return [_PLACEHOLDER.sub(lambda found: str(values.get(found[1], found[0])), word) for word in words]


def _bundled(reference: str) -> str | None:
    module, _, function = reference.partition(":")
    if not module:
        return None
    try:
        return str(getattr(importlib.import_module(module), function)())
    except (ImportError, AttributeError, OSError):
        return None
