"""Reads groups of settings, and the settings of a session: imported by every session, so it imports little."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pytest

from pytest_loop.settings.options import AgentSettings, JudgingSettings
from pytest_loop.settings.rows import Group, Option

AnyGroup = TypeVar("AnyGroup", bound=Group)


def read_group(group: type[AnyGroup], config: pytest.Config, values: argparse.Namespace) -> AnyGroup:
    """Read the values of one group."""
    return group(**{name: _read_value(option, config, values) for name, option in group.get_options().items()})


def _read_value(option: Option[Any], config: pytest.Config, values: argparse.Namespace) -> Any:
    if option.flag and is_given(option, values):
        value = getattr(values, option.key)
        return tuple(value) if option.is_repeatable else value
    text = "" if option.ini is None else config.getini(option.key)
    if not text:
        return option.default
    if option.is_repeatable:
        return tuple(text)
    try:
        return option.parse(str(text))
    except argparse.ArgumentTypeError as error:
        raise pytest.UsageError(f"{option.key}: {error}") from None


def is_given(option: Option[Any], values: argparse.Namespace) -> bool:
    """Return whether the command line has this flag."""
    value = getattr(values, option.key)
    return value is not None and value is not False and value != []  # 0 is a value


class SessionSettings(NamedTuple):
    """The settings of a session; paths are absolute."""

    phase: str
    baseline: Path | None
    save_baseline: Path | None
    judge: str
    prompts: Path | None
    agent_timeout: float
    agent_silence: float


def read_session_settings(config: pytest.Config) -> SessionSettings:
    """Read the settings of this session."""
    judging = read_group(JudgingSettings, config, config.option)
    agents = read_group(AgentSettings, config, config.option)
    folder = config.invocation_params.dir
    return SessionSettings(
        phase=judging.phase,
        baseline=folder / judging.baseline if judging.baseline else None,
        save_baseline=folder / judging.save_baseline if judging.save_baseline else None,
        judge=agents.judge,
        prompts=config.rootpath / agents.prompts if agents.prompts else None,
        agent_timeout=agents.agent_timeout,
        agent_silence=agents.agent_silence,
    )
