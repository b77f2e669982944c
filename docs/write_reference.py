"""Write the pages of docs that are made from the code: `python docs/write_reference.py`."""

from __future__ import annotations

import inspect
import json
import re
import sys
import textwrap
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel

import pytest_loop
from pytest_loop import hookspecs
from pytest_loop.cli.console_script import ROWS, Row
from pytest_loop.core.machine.experiment_machine import EXPERIMENT_MACHINE
from pytest_loop.core.machine.run_machine import ANYWHERE, RUN_MACHINE, Machine
from pytest_loop.core.machine.stop_reasons import STOP_ROWS
from pytest_loop.core.model.run_state import RunState, Task
from pytest_loop.core.model.vocabulary import Kind, Place
from pytest_loop.core.reporting.outcome import build_result
from pytest_loop.rules.checks.registry import BUILT_IN_KINDS, COMPOSITE_KINDS
from pytest_loop.settings.old_names import describe_new_key
from pytest_loop.settings.options import GROUPS, OPTIONS, PARTS
from pytest_loop.settings.rows import Option

FOLDER = Path(__file__).parent
_NOTE = "This page is made from the code by `python docs/write_reference.py`.\n"
# Fields that every check has, and that rule files do not set.
_HIDDEN = ("kind",)
_OPTIONS = """# Options

Every flag of the command line and every key of the ini file. A flag on the command line comes before its ini key.
This page is made from the tables in `pytest_loop/settings/` and `pytest_loop/cli/console_script.py` by
`python docs/write_reference.py`.
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
_MACHINE = """\
# The run as a machine

This page is made from the tables in `pytest_loop/core/machine/` by `python docs/write_reference.py`.

A run is always at one of six places. `list_next_commands(state)` returns the commands for that place. It returns none
if and only if the run is over. `apply(state, event)` returns the state after an event, and refuses an event that cannot
happen there. If several arrows have the same event, the run goes to the first place that has work to do.
`PRODUCE_PREPARE` and `PREPARE` are skipped if nothing is missing. A phase B that adds no rules is not evaluated again.

```mermaid
{run}
```

{anywhere} can happen at every place. The last two end the run.
`limits_raised` reopens a run that a limit has stopped, `answered` every run that is not a success.
Unknown events change nothing.

An experiment is a run over the cases of a workload. It has its own machine:

```mermaid
{experiment}
```

## Why a run ends

The first reason that holds wins. All reasons are checked at `CRITIQUE`, before any other work there. If phase A passes,
phase B decides instead. Some reasons are also checked at other places.

| | reason | status | checked elsewhere | when |
|---|---|---|---|---|
{reasons}
"""


def render_pages() -> dict[str, str]:
    """Return the text of each page by its path in docs."""
    return {
        "reference/checks.md": "".join(_render_checks()),
        "reference/hooks.md": "".join(_render_hooks()),
        "reference/json.md": "".join(_render_result()),
        "reference/python-api.md": "".join(_render_api()),
        "reference/stop-reasons.md": "".join(_render_reasons()),
        "options.md": render_options(),
        "machine.md": render_machines(),
    }


def _render_checks() -> Iterator[str]:
    yield f"# Checks\n\nEvery kind of check with its fields. [Rule files](../rules.md) shows them in use.\n{_NOTE}"
    for name, kind in {**BUILT_IN_KINDS, **COMPOSITE_KINDS}.items():
        yield f"\n## `{name}`\n\n{_clean(kind.__doc__)}\n"
        rows = [
            f"| `{field.alias or key}` | {_name_type(field.annotation)} | {_name_default(field)} |\n"
            for key, field in kind.model_fields.items()
            if key not in _HIDDEN
        ]
        if rows:
            yield "\n| field | type | default |\n|---|---|---|\n" + "".join(rows)


def _render_hooks() -> Iterator[str]:
    yield f"# Hooks\n\nPlugins can implement these hooks. All of them are optional.\n{_NOTE}"
    for name, function in inspect.getmembers(hookspecs, inspect.isfunction):
        if not name.startswith("pytest_loop_"):
            continue
        parameters = ", ".join(inspect.signature(function).parameters)
        head, _, fields = inspect.getdoc(function).partition("\n:")  # type: ignore[union-attr]
        yield f"\n## `{name}`\n\n```python\ndef {name}({parameters}): ...\n```\n\n{head.strip()}\n"
        for field in re.findall(r":(?:param )?(\w+): (.*?)(?=\n:|\Z)", f":{fields}", re.DOTALL):
            text = f"- *{field[0]}*: {' '.join(field[1].split())}"
            yield "\n" + textwrap.fill(
                text, 118, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
            )
        yield "\n"


def _render_api() -> Iterator[str]:
    yield f"# Python API\n\nImport these names from `pytest_loop`. {_NOTE}"
    for name in sorted(pytest_loop.__all__):
        value = getattr(pytest_loop, name)
        yield f"\n## `{name}`\n\n{_clean(inspect.getdoc(value))}\n"
        fields = list(_list_fields(value))
        if fields:
            yield "\n| field | type |\n|---|---|\n" + "".join(fields)


def _list_fields(value: Any) -> Iterator[str]:
    """Yield a row for each field of a model or dataclass."""
    if isinstance(value, type) and issubclass(value, BaseModel):
        fields: dict[str, Any] = {name: field.annotation for name, field in value.model_fields.items()}
    else:
        fields = dict(inspect.get_annotations(value)) if isinstance(value, type) else {}
    for name, kind in fields.items():
        if not name.startswith("_"):
            yield f"| `{name}` | {_name_type(kind)} |\n"


def _render_result() -> Iterator[str]:
    yield f"# JSON\n\n`--loop-json PATH` writes the result of a run, and `-` prints it.\n{_NOTE}"
    yield "\nThis is the result of a run that has just begun. Unknown values are `null`, never 0.\n"
    state = RunState(run_id="guide-1", task_alias="guide", task=Task(prompt="Write a guide"))
    result = build_result(state, [], ".loop/guide/history.jsonl")
    yield f"\n```json\n{json.dumps(result, indent=1)}\n```\n"
    yield "\nA rule file has the schema that `pytest-loop schema` prints.\n"


def _render_reasons() -> Iterator[str]:
    yield f"# Stop reasons\n\nAfter each evaluation the first reason that holds ends the run.\n{_NOTE}"
    yield "\n| reason | status | what it says |\n|---|---|---|\n"
    for row in STOP_ROWS:
        yield f"| `{row.reason.value}` | {row.status.value} | {row.sentence} |\n"


def render_options() -> str:
    """Return the page with one table for each group, and one of commands."""
    groups = "".join(f"{line}\n" for group in GROUPS.values() for line in _render_group(group))
    others = "".join(f"{line}\n" for line in (*_render_parts(), *_render_old_names()))
    return _OPTIONS + groups + others + _COMMANDS + "".join(map(_render_command, ROWS))


def _render_command(row: Row) -> str:
    flags = " ".join(f"--loop-{flag}" for flag in row.flags)
    options = " ".join(f"`--{name}`" for name in row.options)
    command = _code(f"pytest-loop {row.name} {row.argument}".rstrip())
    return f"| {command} | {_code(flags)} | {options} | {row.description} |\n"


def _render_group(group: Any) -> Iterator[str]:
    yield from ("", f"## {group.__doc__}", "", "| flag | ini key | default | |", "|---|---|---|---|")
    for option in group.get_options().values():
        if option.new_flag or not (option.flag or option.ini is not None):
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
            yield f"| {_code(option.flag)} | {_code(option.new_flag.format(value='...'))} |"
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


def render_machines() -> str:
    """Return the page with the diagrams of both machines, and when each reason holds."""
    return _MACHINE.format(
        run=render_diagram(RUN_MACHINE),
        experiment=render_diagram(EXPERIMENT_MACHINE),
        anywhere=", ".join(f"`{kind.value}`" for kind in Kind if kind in ANYWHERE),
        reasons="\n".join(_render_conditions()),
    )


def render_diagram(machine: Machine[Any]) -> str:
    """Return the transitions of a machine as a Mermaid state diagram."""
    arrows: dict[tuple[str, str], list[str]] = {("[*]", place.value): ["run_started"] for place in machine.first_places}
    for (place, kind), targets in machine.transitions.items():
        for target in targets:
            arrows.setdefault((place.value, target.value), []).append(kind.value)
    arrows[Place.CRITIQUE.value, "[*]"] = [Kind.STOPPED.value]
    lines = [f"    {start} --> {end}: {', '.join(kinds)}" for (start, end), kinds in arrows.items()]
    return "\n".join(["stateDiagram-v2", *lines])


def _render_conditions() -> list[str]:
    lines = []
    for number, row in enumerate(STOP_ROWS, 1):
        elsewhere = "yes" if row.is_interruption else ""
        when = (inspect.getdoc(row.holds) or "").rstrip(".")
        lines.append(f"| {number} | `{row.reason.value}` | {row.status.value} | {elsewhere} | {when} |")
    return lines


def _name_type(kind: Any) -> str:
    """Return a type as a reader writes it."""
    if kind is None or kind is type(None):
        return "nothing"
    if isinstance(kind, str):
        return f"`{kind}`".replace("|", "\\|")
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        return _name_type(arguments[0])
    if origin is typing.Literal:
        return ", ".join(f"`{argument}`" for argument in arguments)
    if origin is None:
        return f"`{getattr(kind, '__name__', str(kind))}`"
    if "Union" in str(origin):
        return " or ".join(_name_type(argument) for argument in arguments if argument is not type(None))
    text = re.sub(r"[a-z_]+[.]", "", str(kind)) if len(str(kind)) < 60 else origin.__name__
    return f"`{text}`".replace("|", "\\|")


def _name_default(field: Any) -> str:
    if field.is_required():
        return "required"
    default = field.get_default(call_default_factory=True)
    return "" if default is None or default == () else f"`{getattr(default, 'value', default)}`"


def _clean(text: str | None) -> str:
    return inspect.cleandoc(text or "").strip()


def main() -> None:
    """Write all pages; with `--check`, only say which ones are old."""
    pages = render_pages()
    if "--check" in sys.argv:
        old = [name for name, text in pages.items() if (FOLDER / name).read_text(encoding="utf-8") != text]
        sys.exit(f"python docs/write_reference.py writes anew: {', '.join(old)}" if old else 0)
    for name, text in pages.items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
