"""Facts about an installed agent client."""

from __future__ import annotations

from pytest_loop.core.model.rules import Value


class Client(Value):
    """A preset and its program; `path` is None if not installed, `version` None if the program does not print one.

    `checked` is the version that the preset was tested with. `goes_on`: whether the program can resume a conversation.
    """

    name: str
    checked: str
    path: str | None = None
    version: str | None = None
    reports_tokens: bool = False
    reports_cost: bool = False
    takes_schema: bool = False
    goes_on: bool = False
