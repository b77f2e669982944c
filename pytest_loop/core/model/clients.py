"""Facts about an installed agent client."""

from __future__ import annotations

from pydantic import Field

from pytest_loop.core.model.rules import Value


class Client(Value):
    """A preset and its program; `path` is None if not installed, `version` None if the program does not print one.

    The preset was tested with `tested_version`.
    """

    name: str
    tested_version: str = Field(serialization_alias="checked")
    path: str | None = None
    version: str | None = None
    reports_tokens: bool = False
    reports_cost: bool = False
    takes_schema: bool = False
    can_resume: bool = Field(default=False, serialization_alias="goes_on")
