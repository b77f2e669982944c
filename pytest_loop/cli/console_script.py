"""The console script `pytest-loop`: one row per command around runs.

Most commands are flags of pytest under a shorter name: `pytest-loop status --run NAME` calls pytest with
`--loop-status --loop-alias=NAME`, which takes over before anything is collected. Options are taken from the table of
options, without `--loop-` in front. Other commands name a function that parses its own words.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_loop.cli.command_parser import USAGE_ERROR, Parser
from pytest_loop.settings.options import OPTIONS
from pytest_loop.settings.rows import Option

PREFIX = "--loop-"
_FLAGS = {option.flag: option for option in OPTIONS if option.flag}
_LIMITS = ("max-iterations", "limit")
# Names of earlier releases that still work, and that the help leaves out.
_OLD_LIMITS = ("budget", "max-tokens", "max-seconds")
_RUN_OPTIONS = (
    "agent",
    "judge",
    *_LIMITS,
    "workload",
    "fence-allow",
    "keep",
    "yes",
    "force",
    "detach",
    "record",
    "status-block",
    "json",
    "report",
)
# Options of pytest that change what is shown, or where its configuration comes from.
_PYTEST_OPTIONS = ("-o", "-c", "-p", "--rootdir", "--color")
_ALL_PLUGINS = ("-p", "no:loop")
# Commands that only look at a run need no plugin: loading all of them would take longer than the command.
_OWN_PLUGIN = ("--disable-plugin-autoload", "-p", "pytest_loop.plugin", "-o", "required_plugins=")
_ANSWER = "answer the question of a stopped run in your words or by a number, and continue"


@dataclass(frozen=True)
class Row:
    """One command.

    `flags` are the flags of pytest that the command sets; the last one takes `argument`, if there is one. The help
    shows `argument`: `[NAME]` is optional, `NAME...` may be repeated, and `default` replaces a missing one. `options`
    are further flags that the command accepts. A command that `drives` a run loads all plugins; one that `takes_rest`
    passes unknown words to pytest. Instead of pytest, a `function` is called with the words after the name.
    """

    name: str
    description: str
    flags: tuple[str, ...] = ()
    argument: str = ""
    default: str = ""
    options: tuple[str, ...] = ()
    drives: bool = False
    takes_rest: bool = False
    function: str = ""


ROWS = (
    Row("status", "show the state of a run; -v shows all fields", ("status",), options=("json", "status-block")),
    Row("list", "list all runs; -v shows more fields", ("list",), options=("json",)),
    Row("show", "show every rule that does not pass", ("show",)),
    Row("diff", "show what a run has changed", ("diff",)),
    Row("history", "tell a run again; -v shows every event", ("history",), options=("json",)),
    Row("resume", "continue a run where it stopped", ("resume",), options=(*_RUN_OPTIONS, "confirm"), drives=True),
    Row(
        "confirm",
        "mark manual rules as confirmed, and continue",
        ("resume", "confirm"),
        "RULE...",
        options=_RUN_OPTIONS,
        drives=True,
    ),
    Row("answer", _ANSWER, ("resume", "answer"), "TEXT", options=(*_RUN_OPTIONS, "unseal"), drives=True),
    Row("stop", "end the active run", ("stop",), "[REASON]", options=("json",)),
    Row("pause", "interrupt a run; resume continues it", ("pause",), options=("json",)),
    Row("attach", "follow a run in the background", ("attach",), options=("json",)),
    Row("watch", "judge again whenever files change", ("watch",), takes_rest=True, drives=True),
    Row("restore", "restore the files of an iteration; 0 undoes all edits", ("restore",), "N"),
    Row(
        "report",
        "write an HTML report of a run, or a comparison of two: report [RUN [RUN]] [PATH.html]",
        ("report",),
        "[RUN...]",
        "loop-report.html",
        ("report-open", "json"),
    ),
    Row("debrief", "write the debrief of a workload run", ("debrief",), "[PATH]", "loop-debrief.md"),
    Row("clean", "delete a run (--run), or all of them", ("clean",), "[all]", options=("yes", "json")),
    Row("agents", "list the installed agent clients", ("agents",), options=("json",)),
    Row("infer", "show which checks would decide that a task is done", ("infer",), "TEXT"),
    Row("limit", "change a limit of a working run", function="pytest_loop.integrations.limit:main"),
    Row(
        "install",
        "connect the judge to a coding agent: Stop hook, MCP server",
        function="pytest_loop.integrations.install:main",
    ),
    Row("mcp", "serve the judge to MCP clients", function="pytest_loop.integrations.mcp_server:main"),
    Row("init", "write the manifest of a workload: init manifest", function="pytest_loop.cli.init_manifest:main"),
    Row("mutate", "test your tests: change the code in small ways", function="pytest_loop.cli.mutate:main"),
    Row(
        "doctor",
        "check clients and their hooks, fence, warm sessions, git and versions",
        function="pytest_loop.integrations.doctor:main",
    ),
    Row("merge", "make one verdict of the shards of a session", function="pytest_loop.cli.merge:main"),
    Row("schema", "print the JSON Schema of rule files", function="pytest_loop.cli.schema:main"),
)


COMMANDS = tuple(row.name for row in ROWS)


def main(words: Sequence[str] | None = None) -> int:
    """Execute the command of a command line, and return the exit code."""
    words = list(sys.argv[1:] if words is None else words)
    row = next((row for row in ROWS if words and row.name == words[0]), None)
    if row is not None and row.function:
        module, _, function = row.function.partition(":")
        try:
            return int(getattr(importlib.import_module(module), function)(words[1:]))
        except BrokenPipeError:  # the reader, such as `head`, has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 1
    arguments = build_pytest_arguments(words)
    import pytest

    return int(pytest.main(arguments))


def build_pytest_arguments(words: Sequence[str]) -> list[str]:
    """Return the arguments of pytest for a command line; end the process with a usage error if it is invalid."""
    parser = _make_parser()
    words = [word.replace(PREFIX, "--", 1) if word.startswith(PREFIX) else word for word in words]
    if not words:
        parser.print_help(sys.stderr)
        parser.exit(USAGE_ERROR)
    if words[0] not in COMMANDS and not words[0].startswith("-"):
        from difflib import get_close_matches

        close = " or ".join(get_close_matches(words[0], COMMANDS, 2))
        hint = f"did you mean {close}?" if close else "pytest-loop --help lists all"
        parser.error(f"there is no command {words[0]!r} ({hint})")
    values, rest = parser.parse_known_args(words)
    if rest and not values.row.takes_rest:
        values.parser.error(f"unrecognized arguments: {' '.join(rest)}")
    plugins = _ALL_PLUGINS if values.row.drives else _OWN_PLUGIN
    return [*plugins, *_translate(values.row, values), *rest]


def _translate(row: Row, values: argparse.Namespace) -> Iterator[str]:
    """Yield the arguments of pytest that a command stands for."""
    *others, last = row.flags
    yield from (f"{PREFIX}{flag}" for flag in others)
    argument, run = values.argument or row.default, values.run
    if row.name == "report" and values.argument:
        path, runs = _split_report_words(values)
        argument, run = path or row.default, ",".join(runs) or run
    if row.name == "clean":
        argument = argument or run
        if not argument:
            values.parser.error("name a run with --run ALIAS, or delete all of them with: pytest-loop clean all")
    texts = argument if isinstance(argument, list) else [argument]
    option = _FLAGS[PREFIX + last]
    if argument and not option.is_repeatable:
        _check_value(option, argument, values.parser)
    needs_value = option.takes_value
    yield from (f"{PREFIX}{last}={text}" if text or needs_value else f"{PREFIX}{last}" for text in texts)
    if run:
        yield f"{PREFIX}alias={run}"
    for name in (*row.options, *(_OLD_LIMITS if "limit" in row.options else ())):
        value = getattr(values, name.replace("-", "_"))
        texts = value if isinstance(value, list) else [value]
        yield from (f"{PREFIX}{name}" if text is True else f"{PREFIX}{name}={text}" for text in texts if text)
    for name in _PYTEST_OPTIONS:
        yield from (word for text in getattr(values, f"pytest{name}") for word in (name, text))
    yield from ["-v"] * values.verbose + ["-q"] * values.quiet


def _check_value(option: Option[Any], text: str, parser: argparse.ArgumentParser) -> None:
    """End the process for a value that the option does not take; pytest would show its own usage."""
    try:
        option.parse(text)
    except argparse.ArgumentTypeError as error:
        parser.error(str(error))


def _split_report_words(values: argparse.Namespace) -> tuple[str, list[str]]:
    """Return the path among the words of `report`, if any, and the runs: all other words."""
    paths = [word for word in values.argument if "." in word or "/" in word]
    runs = [word for word in values.argument if word not in paths]
    if len(paths) > 1 or len(runs) > 2:
        values.parser.error("expected at most two runs and one path like report.html")
    return (paths[0] if paths else ""), runs


def _make_parser() -> argparse.ArgumentParser:
    parser = Parser(prog="pytest-loop", description="Commands around runs. A run starts with: pytest --loop-task TEXT")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for row in ROWS:
        command = commands.add_parser(row.name, help=row.description, description=row.description, allow_abbrev=False)
        command.set_defaults(row=row, parser=command, argument="")
        if row.argument:
            command.add_argument("argument", **_declare_argument(row.argument))
        command.add_argument(
            "--run", metavar="ALIAS", default="", help="the run (default: the active, else the latest)"
        )
        for name in row.options:
            command.add_argument(f"--{name}", **_declare_option(_FLAGS[PREFIX + name]))
        for name in _OLD_LIMITS if "limit" in row.options else ():
            command.add_argument(f"--{name}", help=argparse.SUPPRESS)
        command.add_argument("-v", "--verbose", action="count", default=0, help="show more")
        command.add_argument("-q", "--quiet", action="count", default=0, help="show less")
        for name in _PYTEST_OPTIONS:
            command.add_argument(name, dest=f"pytest{name}", action="append", default=[], help=argparse.SUPPRESS)
    return parser


def _declare_argument(argument: str) -> dict[str, Any]:
    if argument.endswith("...]"):
        return {"nargs": "*", "metavar": argument.strip("[.]")}
    if argument.endswith("..."):
        return {"nargs": "+", "metavar": argument.removesuffix("...")}
    if argument.startswith("["):
        return {"nargs": "?", "default": "", "metavar": argument.strip("[]")}
    return {"metavar": argument}


def _declare_option(option: Option[Any]) -> dict[str, Any]:
    """Declare an option as in the table; pytest checks its value."""
    if not option.metavar:
        return {"action": "store_true", "help": option.description}
    action = {"action": "append", "default": []} if option.is_repeatable else {}
    return {**action, "metavar": option.metavar, "help": option.description}
