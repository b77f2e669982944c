"""Read groups of settings, and the settings of a session: imported by every session, so it imports little."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pytest

from pytest_loop.settings.options import OPTIONS, PARTS, AgentSettings, JudgingSettings
from pytest_loop.settings.rows import Group, Option
from pytest_loop.settings.values import Shard, is_set, parse_parts

AnyGroup = TypeVar("AnyGroup", bound=Group)


def read_group(group: type[AnyGroup], config: pytest.Config, values: argparse.Namespace) -> AnyGroup:
    """Read the values of one group."""
    return group(**{name: _read_value(option, config, values) for name, option in group.get_options().items()})


def _read_value(option: Option[Any], config: pytest.Config, values: argparse.Namespace) -> Any:
    if option.flag and is_given(option, values):
        value = getattr(values, option.key)
        return tuple(value) if option.is_repeatable else value
    if option.bundle:
        parts = _read_bundle(option.bundle, config, values)
        if option.part in parts:
            return _parse(option.parse_part or option.parse, parts[option.part], f"loop_{option.bundle}: {option.part}")
    text = read_ini_value(option, config)
    if not text:
        return option.default
    if option.is_repeatable:
        return tuple(text)
    value = _parse(option.parse, str(text), option.key)
    if option.key in PARTS:
        _refuse_unknown_parts(option.key, value)
    return value


def _read_bundle(name: str, config: pytest.Config, values: argparse.Namespace) -> dict[str, str]:
    parts = getattr(values, f"loop_{name}", None)
    if parts is not None:
        _refuse_unknown_parts(f"loop_{name}", parts)
        return dict(parts)
    text = "" if name == "workload" else str(config.getini(f"loop_{name}"))
    return _parse(parse_parts, text, f"loop_{name}") if text else {}


def _refuse_unknown_parts(key: str, parts: dict[str, str]) -> None:
    for name in parts:
        if name not in PARTS[key]:
            from difflib import get_close_matches

            close = get_close_matches(name, PARTS[key], 1)
            hint = f"did you mean {close[0]}?" if close else f"expected {', '.join(PARTS[key])}"
            raise pytest.UsageError(f"{key}: there is no {name!r} ({hint})")


def read_ini_value(option: Option[Any], config: pytest.Config) -> Any:
    """Return the value of the ini key, or else of its old name."""
    text = "" if option.ini is None else config.getini(option.key)
    is_default = not text or text == option.ini
    return read_old_key(option, config) or text if option.old_key and is_default else text


def read_old_key(option: Option[Any], config: pytest.Config) -> Any:
    """Return the value of an ini key of earlier releases, or its default if it is not declared, as for `--help`."""
    try:
        return config.getini(option.old_key)
    except ValueError:
        return option.old_default


def has_old_keys(config: pytest.Config) -> bool:
    """Return whether the ini file has a key of an earlier release."""
    return any(
        option.old_key and (read_old_key(option, config) or option.old_default) != option.old_default
        for option in OPTIONS
    )


def _parse(parse: Callable[[str], Any], text: str, name: str) -> Any:
    try:
        return parse(text)
    except argparse.ArgumentTypeError as error:
        raise pytest.UsageError(f"{name}: {error}") from None


def is_given(option: Option[Any], values: argparse.Namespace) -> bool:
    """Return whether the command line has this flag."""
    return is_set(getattr(values, option.key))


class SessionSettings(NamedTuple):
    """The settings of a session; paths are absolute."""

    phase: str
    baseline: Path | None
    save_baseline: Path | None
    judge: str
    prompts: Path | None
    agent_timeout: float
    agent_silence: float
    shard: Shard | None = None


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
        shard=judging.shard,
    )
