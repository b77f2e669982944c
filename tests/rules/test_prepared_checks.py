"""Rules whose sentences an agent has turned into checks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_loop.core.model.session_order import SessionOrder
from pytest_loop.rules.checks.check import JudgeReply
from pytest_loop.rules.items import ASK_JUDGE, ORDER

RULES = """
    artifact: doc.md
    rules:
      - {id: a.docs.limits, description: Limits, check: The limits are named}
"""


class OrderPlugin:
    """Give a session the order of a run."""

    def __init__(self, order: SessionOrder) -> None:
        self.order = order

    def pytest_configure(self, config: pytest.Config) -> None:
        config.stash[ORDER] = self.order


@pytest.mark.parametrize(("text", "outcome"), [("five calls", "passed"), ("six calls", "failed")])
def test_prepared_check_replaces_the_sentence_of_its_rule(
    pytester: pytest.Pytester, write_rule_file: Callable[..., Path], text: str, outcome: str
) -> None:
    (pytester.path / "doc.md").write_text(text, encoding="utf-8")
    write_rule_file(RULES)
    order = SessionOrder(prepared_checks={"it.rules.yaml::a.docs.limits": {"contains": "five"}})
    result = pytester.inline_run("-p", "no:randomly", "it.rules.yaml", plugins=[OrderPlugin(order)])
    assert [report.outcome for report in result.getreports("pytest_runtest_logreport") if report.when == "call"] == [
        outcome
    ]


def test_sentence_is_judged_if_its_prepared_check_cannot_be_carried_out(
    pytester: pytest.Pytester, write_rule_file: Callable[..., Path]
) -> None:
    write_rule_file(RULES)
    order = SessionOrder(prepared_checks={"it.rules.yaml::a.docs.limits": {"command": "no-such-tool {artifact}"}})

    class JudgePlugin(OrderPlugin):
        def pytest_configure(self, config: pytest.Config) -> None:
            super().pytest_configure(config)
            config.stash[ASK_JUDGE] = lambda question, artifact: JudgeReply("The limits are named" in question)

    result = pytester.inline_run("-p", "no:randomly", "it.rules.yaml", plugins=[JudgePlugin(order)])
    result.assertoutcome(passed=1)
