"""What a session is told by the run that it belongs to."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from pytest_loop.core.model import Phase, Value


class Order(Value):
    """One EVALUATE: in which phase, of which artifact, with which checks, and where to report."""

    phase: Phase = Phase.A
    artifact: str = ""
    template: str = ""
    prepared: dict[str, Any] = Field(default_factory=dict)
    confirmed: tuple[str, ...] = ()
    judge: str = ""
    judge_key: str = ""
    canary: str = ""
