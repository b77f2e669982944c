"""Templates of edits, in groups: each template applies to some kinds of nodes and yields edits at one of them."""

from __future__ import annotations

from pytest_loop.repair.templates import (
    calls,
    exceptions,
    format_specs,
    missing_values,
    names,
    operators,
    regexes,
    statements,
    values,
    wrapped_calls,
)
from pytest_loop.repair.templates.template import Template

TEMPLATES: tuple[Template, ...] = (
    *values.TEMPLATES,
    *operators.TEMPLATES,
    *names.TEMPLATES,
    *calls.TEMPLATES,
    *wrapped_calls.TEMPLATES,
    *format_specs.TEMPLATES,
    *statements.TEMPLATES,
    *exceptions.TEMPLATES,
    *regexes.TEMPLATES,
    *missing_values.TEMPLATES,
)
