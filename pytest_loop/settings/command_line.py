"""The command line and the ini file: how options are declared and read; also the arguments of a child session."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pytest_loop.settings.options import ALL, COMMANDS, SETTINGS, amount

RULE_MARK = (
    "loop_rule(id, severity='fail', weight=None, phase=None, description=None): bind this test to a rule; "
    "its verdict counts in the loop score"
)
NO_ALIAS = "\0"
# Options of pytest that select by what its cache remembers.
_BY_MEMORY = frozenset(
    [
        "--lf",
        "--last-failed",
        "--lfnf",
        "--last-failed-no-failures",
        "--ff",
        "--failed-first",
        "--nf",
        "--new-first",
        "--sw",
        "--stepwise",
        "--sw-skip",
        "--stepwise-skip",
        "--sw-reset",
        "--stepwise-reset",
    ]
)


def declare(parser: pytest.Parser) -> None:
    """Every `--loop-*` option with its ini twin."""
    group = parser.getgroup("loop", "rules and agent loops (pytest-loop)")
    for one in ALL:
        if not one.metavar:
            group.addoption(one.name, action="store_true", help=one.help)
        elif one.many:
            group.addoption(one.name, action="append", metavar=one.metavar, type=one.read, default=[], help=one.help)
        elif one.optional:
            group.addoption(one.name, nargs="?", const=NO_ALIAS, metavar=one.metavar, help=one.help)
        else:
            group.addoption(one.name, metavar=one.metavar, type=one.read, help=one.help)
        if one.ini is not None and one.many:
            parser.addini(one.dest, one.help, type="args", default=[])
        elif one.ini is not None:
            parser.addini(one.dest, one.help, default=one.ini)
    for name, (text, default) in SETTINGS.items():
        parser.addini(name, text, default=default)


def asks_for_a_run(values: argparse.Namespace) -> bool:
    """Whether the command line is for a run or one of the commands around runs, and not for a session."""
    if values.help or values.version:
        return False
    starting = (values.loop_task, values.loop_manifest, values.loop_debrief, values.loop_report_open)
    asked = (*starting, *(getattr(values, one.dest) for one in COMMANDS))
    return any(value is not None and value is not False for value in asked)


def unknown_option(words: Sequence[str]) -> str | None:
    """A word that is nearly one of our options: a run takes over before pytest would complain."""
    from difflib import get_close_matches

    known = [one.name for one in ALL]
    for word in words:
        name = word.partition("=")[0]
        if name.startswith("--loop") and name not in known:
            near = ", ".join(get_close_matches(name, known, 3)) or "see pytest --help"
            return f"unrecognized arguments: {word} (did you mean {near}?)"
    return None


class Reader:
    """Reads options from the command line first, then from the ini file; what cannot be used is a usage error."""

    def __init__(self, config: pytest.Config, values: argparse.Namespace) -> None:
        self._config = config
        self._values = values
        self._options = {one.dest: one for one in ALL}

    def get(self, name: str) -> Any:
        value = getattr(self._values, name)
        option = self._options[name]
        if value not in (None, [], False) or option.ini is None:
            return value
        written = self._config.getini(name)
        if isinstance(written, list):
            return written
        return self._read(name, str(written), option.read)

    def setting(self, name: str, read: Callable[[str], Any] = str) -> Any:
        return self._read(name, str(self._config.getini(name)), read)

    def _read(self, name: str, text: str, read: Callable[[str], Any]) -> Any:
        if not text:
            return None
        try:
            return read(text)
        except argparse.ArgumentTypeError as error:
            raise pytest.UsageError(f"{name}: {error}") from None


class Options(NamedTuple):
    """What a session is asked to judge."""

    phase: str
    baseline: Path | None
    save_baseline: Path | None
    judge: str
    prompts: Path | None
    agent_timeout: float
    agent_silence: float


def options(config: pytest.Config) -> Options:
    """The options of a session."""
    reader = Reader(config, config.option)
    folder = config.invocation_params.dir
    baseline, saved = reader.get("loop_baseline"), reader.get("loop_save_baseline")
    prompts = reader.setting("loop_prompts")
    return Options(
        phase=reader.get("loop_phase"),
        baseline=folder / baseline if baseline else None,
        save_baseline=folder / saved if saved else None,
        judge=reader.get("loop_judge") or "",
        prompts=config.rootpath / prompts if prompts else None,
        agent_timeout=reader.get("loop_agent_timeout"),
        agent_silence=reader.setting("loop_agent_silence", amount),
    )


def child_arguments(arguments: Sequence[str], left_out: Sequence[str] = ()) -> tuple[str, ...]:
    """The person's arguments without those of the run, and without `left_out` (paths that do not judge).

    What failed last time never decides what is judged: every evaluation looks at all that the run began with.
    """
    valued = {one.name for one in ALL if one.takes_value}
    optional = {one.name for one in COMMANDS if one.optional}
    kept: list[str] = []
    words = iter(arguments)
    for word in words:
        name = word.partition("=")[0]
        if not name.startswith("--loop-"):
            if word not in left_out and name not in _BY_MEMORY:
                kept.append(word)
        elif name in valued and "=" not in word:
            next(words, None)
        elif name in optional and "=" not in word and left_out:
            continue
    return tuple(kept)
