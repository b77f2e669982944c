"""Render self-contained pages: template, style and script in one file that loads nothing."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from pytest_loop.core.text.score_text import format_score
from pytest_loop.show.html.texts import reveal_lines

FOLDER = Path(__file__).parent


def render_page(template: str, title: str, **values: Any) -> str:
    """Render a template with the style and script of this package; the page forbids every other script."""
    script = _read_part("report.js")
    return (
        _load_templates()
        .get_template(template)
        .render(
            title=title,
            style=Markup(_read_part("report.css")),  # noqa: S704 - a file of this package
            script=Markup(script),  # noqa: S704 - a file of this package
            script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
            **values,
        )
    )


@cache
def _load_templates() -> Environment:
    environment = Environment(
        autoescape=True,
        finalize=_reveal,
        loader=FileSystemLoader(FOLDER),
        lstrip_blocks=True,
        trim_blocks=True,
        undefined=StrictUndefined,
    )
    environment.policies["json.dumps_kwargs"] = {"ensure_ascii": False, "separators": (",", ":")}
    environment.filters["score"] = format_score
    return environment


def _reveal(value: Any) -> Any:
    """Return a text with hidden characters as codes; return any other value unchanged."""
    return reveal_lines(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _read_part(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")
