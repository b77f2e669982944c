"""The order that a run passes to each of its sessions."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from pytest_loop.core.model.rules import Phase, Value


class SessionOrder(Value):
    """The task of one session: phase, artifact and checks, and facts from earlier sessions.

    - `canary`: the random name of a hidden test that must fail; empty for none.
    - `judge_address`, `judge_key`: where the session sends questions for the judge.
    - `can_reuse`: whether `cached_evidence` may hold earlier evidence for rules whose inputs are unchanged.
    - `can_stop_early`: whether the session may stop at a failure.
    - `excluded`: files and folders in which nothing is collected; `only`: the only files to collect, empty for all.
    - `selected`: the only items that run, or the files of these items; empty for all.
    - `is_deciding`: whether the session may end the run as a success, and therefore starts in a new interpreter.
    - `durations`, `failed_before`: facts that decide the order of items.
    - `shard`: the number of the judged shard, and how many there are.
    - `trials`: the results of trials that workers carried out, as JSON, by their requests.
    - `records_reach`: whether the session records which files each test executes.
    - `columns`: the width of the terminal that shows the session's output; 0 if it is not shown.
    """

    phase: Phase = Phase.A
    artifact: str = ""
    manifest: str = ""
    prepared_checks: dict[str, Any] = Field(default_factory=dict)
    confirmed_rules: tuple[str, ...] = ()
    judge_address: str = ""
    judge_key: str = ""
    canary: str = ""
    can_reuse: bool = False
    can_stop_early: bool = False
    excluded: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    selected: tuple[str, ...] = ()
    is_deciding: bool = False
    durations: dict[str, float] = Field(default_factory=dict)
    failed_before: tuple[str, ...] = ()
    cached_evidence: dict[str, Any] = Field(default_factory=dict)
    shard: tuple[int, int] | None = None
    trials: dict[str, str] = Field(default_factory=dict)
    records_reach: bool = False
    columns: int = 0
