"""Rules are collected with the garbage collector at rest, and what somebody froze stays frozen."""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path

import pytest


def test_what_somebody_froze_stays_frozen(pytester: pytest.Pytester, rule_file: Callable[..., Path]) -> None:
    rule_file("artifact: it.rules.yaml\nrules: [{id: a.x.y, description: Y, check: {contains: artifact}}]")
    gc.freeze()
    try:
        pytester.runpytest_inprocess().assert_outcomes(passed=1)
        assert gc.get_freeze_count()
    finally:
        gc.unfreeze()


def test_nothing_is_frozen_by_collecting_rules(pytester: pytest.Pytester, rule_file: Callable[..., Path]) -> None:
    rule_file("artifact: it.rules.yaml\nrules: [{id: a.x.y, description: Y, check: {contains: artifact}}]")
    pytester.runpytest_inprocess().assert_outcomes(passed=1)
    assert not gc.get_freeze_count()
