"""The beginning of a run: its command, its versions, and the draft that was confirmed."""

from __future__ import annotations

from pydantic import Field

from pytest_loop.core.model.rules import Value


class ConfirmedDraft(Value):
    """The draft that was confirmed before the run began.

    `shape` decides which questions are asked on the way, `workflow` is the kind of work, `reversal` how hard it is to
    undo.
    """

    shape: str = "tool"
    workflow: str = ""
    reversal: str = "2B"
    clarity: int | None = None
    confirmed_by: str = ""


class Origin(Value):
    """How a run was started: its command line, the commit that was checked out, and the versions of programs."""

    command: str = ""
    revision: str = ""
    versions: dict[str, str] = Field(default_factory=dict)
