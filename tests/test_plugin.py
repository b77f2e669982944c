"""The hooks of the plugin."""

from __future__ import annotations

import sys

import pytest

from pytest_loop.core.model.rules import Phase, infer_phase

TESTS = """
import pytest

@pytest.mark.loop_rule("{rule_id}")
def test_late():
    assert False

@pytest.mark.loop_rule("a.early")
def test_early():
    pass
"""


@pytest.mark.parametrize("rule_id", ["b.late", "B.late"])
def test_rules_of_phase_b_are_deselected_in_phase_a(pytester: pytest.Pytester, rule_id: str) -> None:
    pytester.makepyfile(TESTS.format(rule_id=rule_id))
    result = pytester.runpytest("--loop-phase", "A")
    result.assert_outcomes(passed=1, deselected=1)
    assert result.ret == pytest.ExitCode.OK
    result = pytester.runpytest("--loop-phase", "B")
    result.assert_outcomes(passed=1, failed=1)


def test_the_phase_of_a_mark_wins_over_its_id(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(TESTS.format(rule_id='B.late", phase="A'))
    pytester.runpytest("--loop-phase", "A").assert_outcomes(passed=1, failed=1)


@pytest.mark.parametrize(
    ("rule_id", "phase"), [("b.x", Phase.B), ("B.x", Phase.B), ("a.x", Phase.A), ("bx", Phase.A), ("", Phase.A)]
)
def test_the_prefix_of_an_id_is_its_phase(rule_id: str, phase: Phase) -> None:
    assert infer_phase(rule_id) is phase


def test_a_session_without_rules_imports_no_judging_module(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        "import sys\ndef test_it():\n    assert not [name for name in sys.modules if name.startswith('pytest_loop.rules')]\n"
    )
    result = pytester.run(sys.executable, "-m", "pytest", "--loop-phase", "A")
    result.assert_outcomes(passed=1)
