"""Declare the options to pytest, and rewrite command lines for child processes."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from pytest_loop.settings.options import HELP_GROUPS, OPTIONS
from pytest_loop.settings.values import is_set

RULE_MARK = (
    "loop_rule(id, severity='fail', weight=None, phase=None, description=None): bind this test to a rule; "
    "its verdict counts in the loop score"
)
# The value of a flag whose optional value is missing.
NO_VALUE = "\0"
FLAGS = {flag: option for option in OPTIONS if option.flag for flag in (option.flag, *option.other_flags)}
# Options of pytest that select tests by the results of an earlier session.
_CACHE_FLAG = r"--(lf|ff|nf|sw|last-failed|failed-first|new-first|stepwise)(nf|-no-failures|-skip|-reset)?"
_COMMANDS_HINT = " (commands around runs: pytest-loop --help)"
# Flags of a run that its sessions read too.
_SHARED_FLAGS = ("--loop-workload",)
# Flags that start a run: a process that resumes it does not get them.
_START_FLAGS = ("--loop-task", "--loop-alias", "--loop-resume")
# Flags whose files belong to the folder of the caller, also for a process in a worktree.
_CALLER_FILES = ("--loop-json", "--loop-record", "--loop-fence-allow")


def declare_options(parser: pytest.Parser) -> None:
    """Declare every `--loop-*` flag and every ini key; the help shows the flags that most runs need."""
    groups = {
        f"--loop-{name}": parser.getgroup(
            f"loop-{number}", f"agent loops: {title}{_COMMANDS_HINT if number == 1 else ''}"
        )
        for number, (title, names) in enumerate(HELP_GROUPS.items(), 1)
        for name in names
    }
    hidden = parser.getgroup("loop", "agent loops")
    order = list(groups)
    for option in sorted(OPTIONS, key=lambda row: order.index(row.flag) if row.flag in groups else len(order)):
        group = groups.get(option.flag, hidden)
        description = option.description if option.flag in groups else argparse.SUPPRESS
        if option.flag and not option.metavar:
            group.addoption(option.flag, action="store_true", help=description)
        elif option.is_value_optional:
            group.addoption(option.flag, nargs="?", const=NO_VALUE, metavar=option.metavar, help=description)
        elif option.is_repeatable:
            group.addoption(option.flag, action="append", metavar=option.metavar, default=[], help=description)
        elif option.flag:
            names = (option.flag, *option.other_flags)
            group.addoption(*names, metavar=option.metavar, type=option.parse, help=description)
        if option.ini is not None and option.is_repeatable:
            parser.addini(option.key, option.description, type="args", default=[])
        elif option.ini is not None:
            parser.addini(option.key, option.description, default=option.ini)


def declare_old_keys(parser: pytest.Parser) -> None:
    """Declare the ini keys of earlier releases; they are left out of `pytest --help`."""
    for option in OPTIONS:
        if option.old_key and option.is_repeatable:
            parser.addini(option.old_key, "old name", type="args", default=[])
        elif option.old_key:
            parser.addini(option.old_key, "old name", default=option.old_default)


def takes_over(values: argparse.Namespace) -> bool:
    """Return whether the command line is for a run or a command around runs, and not for a session."""
    if values.help or values.version:
        return False
    return any(is_set(getattr(values, option.key)) for option in OPTIONS if option.takes_over)


def describe_unknown_flag(arguments: Sequence[str], *, is_run: bool = True) -> str | None:
    """Return an error message for a word that is nearly a flag: a run takes over before pytest would complain.

    Without a run, a word that resembles no flag closely is left to pytest: a conftest file may declare it.
    """
    from difflib import get_close_matches

    for argument in arguments:
        name = argument.partition("=")[0]
        if name.startswith("--loop") and name not in FLAGS:
            matches = get_close_matches(name, FLAGS, 3, 0.6 if is_run else 0.85)
            if matches or is_run:
                suggestions = ", ".join(matches) or "see pytest --help"
                return f"unrecognized arguments: {argument} (did you mean {suggestions}?)"
    return None


class Argument(NamedTuple):
    """One argument of a command line: `words` are the one or two words that it is written with.

    Of a flag with several names, `name` is the first.
    """

    name: str
    value: str
    words: tuple[str, ...]


def split_arguments(arguments: Sequence[str]) -> Iterator[Argument]:
    """Split a command line into arguments, each flag together with its value."""
    position = 0
    while position < len(arguments):
        word = arguments[position]
        name, sign, value = word.partition("=")
        name = FLAGS[name].flag if name in FLAGS else name
        following = arguments[position + 1 : position + 2]
        if not sign and following and _takes_word(name, following[0]):
            yield Argument(name, following[0], (word, following[0]))
            position += 2
        else:
            yield Argument(name, value, (word,))
            position += 1


def _takes_word(flag: str, word: str) -> bool:
    """Return whether the word after a flag is its value."""
    option = FLAGS.get(flag)
    return option is not None and bool(option.metavar) and (option.takes_value or not word.startswith("-"))


def build_session_arguments(arguments: Sequence[str], excluded: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the arguments of a session: without flags of runs, and without `excluded` paths.

    Flags that select by earlier results are left out, so that every evaluation judges all that the run began with.
    """
    words: list[str] = []
    for argument in split_arguments(arguments):
        is_of_run = argument.name.startswith("--loop-") and argument.name not in _SHARED_FLAGS
        if not is_of_run and not re.fullmatch(_CACHE_FLAG, argument.name) and argument.words[0] not in excluded:
            words += argument.words
    return tuple(words)


def build_resume_arguments(arguments: Sequence[str], keep: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the arguments of a process that resumes a run, without the flags that started it.

    Leave out `--loop-json=-`, too: standard output in the background is the log. Flags in `keep` stay.
    """
    words: list[str] = []
    for argument in split_arguments(arguments):
        is_used_up = argument.name in (*_START_FLAGS, "--loop-detach") or argument[:2] == ("--loop-json", "-")
        if argument.name in keep or not is_used_up:
            words += argument.words
    return tuple(words)


def replace_task(arguments: Sequence[str], task: str) -> tuple[str, ...]:
    """Return the arguments with another task."""
    words: list[str] = []
    for argument in split_arguments(arguments):
        words += ("--loop-task", task) if argument.name == "--loop-task" else argument.words
    return tuple(words)


def build_worktree_arguments(arguments: Sequence[str], root: Path, worktree: Path, folder: Path) -> tuple[str, ...]:
    """Return the arguments of a process in a worktree: paths in `root` become paths in `worktree`."""
    words: list[str] = []
    for argument in split_arguments(arguments):
        if argument.name in _CALLER_FILES:
            words.append(f"{argument.name}={'-' if argument.value == '-' else folder / argument.value}")
        elif argument.name != "--loop-worktree":
            words += (_move_path(word, root, worktree) for word in argument.words)
    return tuple(words)


def _move_path(word: str, root: Path, worktree: Path) -> str:
    """Replace the project's root at the start of a word, or of the value after its `=`."""
    name, sign, value = ("", "", word) if word.startswith("/") else word.partition("=")
    return f"{name}{sign}{worktree}{value.removeprefix(str(root))}" if value.startswith(f"{root}/") else word
