"""Hints about names of earlier releases, and about flags without an effect."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from pytest_loop.settings.command_line import FLAGS, split_arguments
from pytest_loop.settings.options import OPTIONS
from pytest_loop.settings.rows import Option
from pytest_loop.settings.session_settings import is_given, read_old_key

# Flags that affect a session outside of a run.
_SESSION_FLAGS = tuple(
    f"--loop-{name}" for name in ("phase", "baseline", "save-baseline", "shard", "schema", "judge", "agent-timeout")
)


def list_hints(config: pytest.Config, values: argparse.Namespace) -> Iterator[str]:
    """Yield a line for each name of an earlier release in the ini file or on the command line."""
    for option in OPTIONS:
        value = read_old_key(option, config) if option.old_key else ""
        if value and value != option.old_default:
            yield f"hint: {option.old_key} is an old name, write: {describe_new_key(option, value)}"
        if option.new_flag and is_given(option, values):
            value = getattr(values, option.key)
            yield f"hint: {option.flag} is an old name, write: {option.new_flag.format(value=_join(value))}"


def describe_new_key(option: Option[Any], value: Any) -> str:
    """Return the current spelling of an old ini key with its value."""
    if option.bundle == "workload":
        text = _join(value)
        return f"{_to_camel(option.part)}: {text} in the manifest, or --loop-workload '{option.part} {text}'"
    if option.bundle:
        is_opposite = option.parse_part and not option.is_repeatable
        return f"loop_{option.bundle} = {option.part} {_invert(value) if is_opposite else _join(value)}"
    if option.ini is not None:
        return f"{option.key} = {_join(value)}"
    if option.new_flag:
        return option.new_flag.replace("--loop-limit '", "loop_limit = ").rstrip("'").format(value=value)
    return f"addopts = {option.flag}={_join(value)}" if option.flag else "loop_limit = estimates"


def _to_camel(name: str) -> str:
    """Return the name in camel case, as in manifests."""
    first, *others = name.split("_")
    return first + "".join(word.title() for word in others)


def _invert(word: str) -> str:
    return {"yes": "no", "no": "yes"}.get(word, word)


def _join(value: Any) -> str:
    return (
        " ".join(value)
        if isinstance(value, (list, tuple))
        else f"{value:g}"
        if isinstance(value, float)
        else str(value)
    )


def list_idle_flags(arguments: Sequence[str]) -> list[str]:
    """Return the flags that have no effect on a session, because only runs read them."""
    names = dict.fromkeys(argument.name for argument in split_arguments(arguments))
    effective = (*_SESSION_FLAGS, "--loop-json") if "--loop-shard" in names else _SESSION_FLAGS
    return [name for name in names if name in FLAGS and name not in effective]


def render_session_hints(config: pytest.Config) -> Iterator[str]:
    """Yield hints about old names and about flags that have no effect on this session."""
    yield from list_hints(config, config.option)
    flags = list_idle_flags([str(argument) for argument in config.invocation_params.args])
    if flags:
        verb = "has" if len(flags) == 1 else "have"
        other = " (--junitxml or --loop-save-baseline writes these verdicts)" if "--loop-json" in flags else ""
        yield f"hint: {', '.join(flags)} {verb} no effect without --loop-task: no run is started{other}"
