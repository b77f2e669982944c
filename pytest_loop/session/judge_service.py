"""Who answers the questions of rules in a session: the judge of the run, or one that the person named."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from pytest_loop.settings.session_settings import SessionSettings

if TYPE_CHECKING:
    from pytest_loop.rules.checks.check import Answer
    from pytest_loop.settings.settings import Settings


class Court(NamedTuple):
    """A judge at work in this process: where others can ask it, and how it is dismissed."""

    address: str
    key: str
    close: Callable[[], None]


def opened(config: pytest.Config, asked: SessionSettings) -> Court:
    """A judge for a session of its own: it lives here, and workers ask it too."""
    import os
    import secrets

    from pytest_loop.agents.agent_judge import Judge
    from pytest_loop.agents.factory import AgentFactory
    from pytest_loop.agents.protocol import AgentUnavailableError, Watch
    from pytest_loop.core.text.redaction import Redactor
    from pytest_loop.session.broker import Broker

    spec, root = asked.judge, config.rootpath
    try:
        agent = AgentFactory(root, config.hook, Redactor(os.environ)).make(spec)
    except AgentUnavailableError as error:
        raise pytest.UsageError(f"--loop-judge: {error}") from None
    watch = partial(Watch, asked.agent_timeout, asked.agent_silence)
    judge = Judge(agent, root, secrets.token_hex(4), watch, asked.prompts, phase=asked.phase)
    broker = Broker(judge.answer, judge.dismiss)

    def close() -> None:
        broker.close()
        agent.close()

    return Court(broker.address, broker.key, close)


def seated(config: pytest.Config, asked: Settings) -> Court | None:
    """A judge where the person has named one."""
    agents = asked.agents
    if not agents.judge:
        return None
    prompts = config.rootpath / agents.prompts if agents.prompts else None
    session = SessionSettings("B", None, None, agents.judge, prompts, agents.agent_timeout, agents.agent_silence)
    return opened(config, session)


def answer(address: str, key: str, question: str, artifact: Path | None) -> Answer:
    """Ask the judge that listens there."""
    from pytest_loop.rules.checks.check import Answer
    from pytest_loop.session.broker import ask

    found = ask(address, key, question, artifact)
    return Answer(found.passed, found.reason, found.evidence)
