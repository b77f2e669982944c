"""The kinds of edits, in groups; each finds spans in the tree and gives the text that may stand there instead."""

from __future__ import annotations

from pytest_loop.repair.templates import calls, errors, keys, names, operators, statements, texts, values, wraps
from pytest_loop.repair.templates.shape import Hints, Template

TEMPLATES: tuple[Template, ...] = (
    *values.TEMPLATES,
    *keys.TEMPLATES,
    *operators.TEMPLATES,
    *names.TEMPLATES,
    *calls.TEMPLATES,
    *wraps.TEMPLATES,
    *texts.TEMPLATES,
    *statements.TEMPLATES,
    *errors.TEMPLATES,
)

__all__ = ["TEMPLATES", "Hints", "Template"]
