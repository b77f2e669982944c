"""Write docs/options.md from the table of options: `python docs/write_options.py`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pytest_loop.settings.options import GROUPS
from pytest_loop.settings.rows import Option

PATH = Path(__file__).with_name("options.md")
_HEAD = """# Options

Every flag of the command line and every key of the ini file. A flag on the command line comes before its ini key.
This page is made from `pytest_loop/settings/options.py` by `python docs/write_options.py`.
"""


def render_page() -> str:
    """Return the page with one table for each group."""
    return _HEAD + "".join(f"{line}\n" for group in GROUPS.values() for line in _render_group(group))


def _render_group(group: Any) -> Iterator[str]:
    yield from ("", f"## {group.__doc__}", "", "| flag | ini key | default | |", "|---|---|---|---|")
    for option in group.get_options().values():
        key = _code(option.key) if option.ini is not None else ""
        yield f"| {_render_flag(option)} | {key} | {_code(option.ini or '')} | {option.description} |"


def _render_flag(option: Option[Any]) -> str:
    if not option.flag:
        return ""
    metavar = option.metavar.replace("|", "\\|")
    value = f"[={metavar}]" if option.is_value_optional else f" {metavar}" if metavar else ""
    return _code(f"{option.flag}{value}") + (" (repeatable)" if option.is_repeatable else "")


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


if __name__ == "__main__":
    PATH.write_text(render_page(), encoding="utf-8")
