"""Write docs/options.md from the table of options: `python docs/write_options.py`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pytest_loop.cli.console_script import ROWS, Row
from pytest_loop.settings.old_names import describe_new_key
from pytest_loop.settings.options import GROUPS, OPTIONS, PARTS
from pytest_loop.settings.rows import Option

PATH = Path(__file__).with_name("options.md")
_HEAD = """# Options

Every flag of the command line and every key of the ini file. A flag on the command line comes before its ini key.
This page is made from `pytest_loop/settings/options.py` and `pytest_loop/cli/console_script.py` by
`python docs/write_options.py`.
"""
_PARTS = """
## Keys with several values

An ini key such as `loop_stop_when` holds several values: `loop_stop_when = stuck 3, same_error 0`. Values that you
leave out keep their defaults. The values of `--loop-workload` can stand in the manifest, too (`case_timeout` as
`caseTimeout`); the flag comes first.
"""
# Defaults that are written as the opposite of their old names.
_NO_DEFAULTS = {"rules_fail": "no", "review_rejects": "no"}
_OLD_NAMES = """
## Old names

These names work in this release, with a hint.

| old | new |
|---|---|
"""
_COMMANDS = """
## The command `pytest-loop`

Everything around a run is a command of its own. `pytest-agent-loop` and `python -m pytest_loop` are other names of it.
Each command takes `--run ALIAS`, `-v` and `-q`; without `--run` it is about the active run, else the latest.
An option is the flag of the same name: `--json PATH` is `--loop-json PATH`.

| command | the same as | options | |
|---|---|---|---|
"""


def render_page() -> str:
    """Return the page with one table for each group, and one of commands."""
    groups = "".join(f"{line}\n" for group in GROUPS.values() for line in _render_group(group))
    commands = _COMMANDS + "".join(map(_render_command, ROWS))
    others = "".join(f"{line}\n" for line in (*_render_parts(), *_render_old_names()))
    return _HEAD + groups + others + commands


def _render_command(row: Row) -> str:
    flags = " ".join(f"--loop-{flag}" for flag in row.flags)
    options = " ".join(f"`--{name}`" for name in row.options)
    command = _code(f"pytest-loop {row.name} {row.argument}".rstrip())
    return f"| {command} | {_code(flags)} | {options} | {row.description} |\n"


def _render_group(group: Any) -> Iterator[str]:
    yield from ("", f"## {group.__doc__}", "", "| flag | ini key | default | |", "|---|---|---|---|")
    for option in group.get_options().values():
        is_part_alone = option.bundle and (not option.flag or option.new_flag)
        if is_part_alone or option.new_flag or not (option.flag or option.ini is not None):
            continue
        key = _code(option.key) if option.ini is not None else ""
        default = _code(option.ini or option.old_default)
        yield f"| {_render_flag(option)} | {key} | {default} | {option.description} |"


def _render_parts() -> Iterator[str]:
    """Yield one table for each ini key or flag that holds several values."""
    yield from _PARTS.splitlines()
    for key, options in PARTS.items():
        name = "--loop-workload" if key == "loop_workload" else key
        yield from ("", f"### `{name}`", "", "| name | default | |", "|---|---|---|")
        for part, option in options.items():
            default = _NO_DEFAULTS.get(part, option.old_default)
            yield f"| {_code(part)} | {_code(default)} | {option.description} |"


def _render_old_names() -> Iterator[str]:
    yield from _OLD_NAMES.splitlines()
    for option in OPTIONS:
        if option.new_flag:
            new = option.new_flag.format(value="...")
            yield f"| {_code(option.flag)} | {_code(new)} |"
        if option.old_key:
            yield f"| {_code(option.old_key)} | {_code(describe_new_key(option, '...'))} |"


def _render_flag(option: Option[Any]) -> str:
    if not option.flag:
        return ""
    metavar = option.metavar.replace("|", "\\|")
    value = f"[={metavar}]" if option.is_value_optional else f" {metavar}" if metavar else ""
    names = ", ".join(_code(f"{flag}{value}") for flag in (option.flag, *option.other_flags))
    return names + (" (repeatable)" if option.is_repeatable else "")


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


if __name__ == "__main__":
    PATH.write_text(render_page(), encoding="utf-8")
