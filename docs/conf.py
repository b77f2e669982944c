"""Sphinx builds the manual from these settings: `tox -e docs`."""

from __future__ import annotations

import re
from typing import Any

project = "pytest-loop"
author = "the authors of pytest-loop"
extensions = ["myst_parser"]
html_theme = "furo"
html_title = "pytest-loop"
myst_heading_anchors = 3
nitpicky = True
# Diagrams of the machines are shown as their source.
suppress_warnings = ["misc.highlighting_failure"]


def setup(app: Any) -> None:
    """Show links to files outside of the manual as plain text."""
    app.connect("source-read", _remove_outer_links)


def _remove_outer_links(_app: Any, name: str, source: list[str]) -> None:
    up = "../" * (name.count("/") + 1)
    source[0] = re.sub(rf"\[([^\]]+)\]\({re.escape(up)}[^)]*\)", r"\1", source[0])
