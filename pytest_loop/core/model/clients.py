"""A client of an agent, as a person would ask about it: is it here, which one is it, and what can it tell."""

from __future__ import annotations

from pytest_loop.core.model.rules import Value


class Client(Value):
    """A preset and the program behind it; `path` is None where that is not installed, `version` where it is silent.

    `checked` is the version that the preset was made with.
    """

    name: str
    checked: str
    path: str | None = None
    version: str | None = None
    reports_tokens: bool = False
    reports_cost: bool = False
    takes_schema: bool = False
    goes_on: bool = False
