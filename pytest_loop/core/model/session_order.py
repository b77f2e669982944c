"""What a session is told by the run that it belongs to."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from pytest_loop.core.model.rules import Phase, Value


class Order(Value):
    """One EVALUATE: in which phase, of which artifact, with which checks, and what is known from those before."""

    phase: Phase = Phase.A
    artifact: str = ""
    template: str = ""
    manifest: str = ""
    prepared: dict[str, Any] = Field(default_factory=dict)
    confirmed: tuple[str, ...] = ()
    judge: str = ""
    judge_key: str = ""
    canary: str = ""
    reuse: bool = False
    stop_early: bool = False
    seconds: dict[str, float] = Field(default_factory=dict)
    failed: tuple[str, ...] = ()
    known: dict[str, Any] = Field(default_factory=dict)
