"""Write the pages of docs/reference from the code: `python docs/write_reference.py`."""

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
from pytest_loop.core.machine.stop_reasons import STOP_ROWS
from pytest_loop.core.model.run_state import RunState, Task
from pytest_loop.core.reporting.outcome import build_result
from pytest_loop.rules.checks.registry import BUILT_IN_KINDS, COMPOSITE_KINDS

FOLDER = Path(__file__).parent / "reference"
_NOTE = "This page is made from the code by `python docs/write_reference.py`.\n"
# Fields that every check has, and that rule files do not set.
_HIDDEN = ("kind",)


def render_pages() -> dict[str, str]:
    """Return the text of each page by its name."""
    return {
        "checks.md": "".join(_render_checks()),
        "hooks.md": "".join(_render_hooks()),
        "json.md": "".join(_render_result()),
        "python-api.md": "".join(_render_api()),
        "stop-reasons.md": "".join(_render_reasons()),
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
