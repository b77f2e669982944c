"""Templates of edits, in groups: each selects nodes of a tree and yields texts that may replace them."""

from __future__ import annotations

from pytest_loop.repair.templates import (
    calls,
    dict_keys,
    exceptions,
    file_calls,
    format_specs,
    names,
    none_guards,
    operators,
    regexes,
    statements,
    values,
    wrapped_calls,
)
from pytest_loop.repair.templates.template import Template

TEMPLATES: tuple[Template, ...] = (
    *values.TEMPLATES,
    *dict_keys.TEMPLATES,
    *operators.TEMPLATES,
    *names.TEMPLATES,
    *calls.TEMPLATES,
    *wrapped_calls.TEMPLATES,
    *format_specs.TEMPLATES,
    *statements.TEMPLATES,
    *exceptions.TEMPLATES,
    *regexes.TEMPLATES,
    *none_guards.TEMPLATES,
    *file_calls.TEMPLATES,
)
