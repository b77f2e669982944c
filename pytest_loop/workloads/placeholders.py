"""The placeholders of a manifest: what stands for the case, its output and its expected file."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

OF_THE_CASE = ("case", "case_name", "case_stem", "case_dir")
ALL = (*OF_THE_CASE, "output", "expected")
# Braces around one word; doubled they are only braces, as in `awk {{print}}`.
_BRACES = re.compile(r"\{\{(?P<plain>\w+)\}\}|\{(?P<name>\w+)\}")


def named(text: str) -> tuple[str, ...]:
    """The placeholders in a text, known or not, each once."""
    return tuple(dict.fromkeys(found["name"] for found in _BRACES.finditer(text) if found["name"]))


def complaint(text: str, field: str, known: Collection[str] = ALL) -> str | None:
    """What is wrong with the placeholders of a field, if anything is."""
    unknown = next((name for name in named(text) if name not in known), None)
    if unknown is None:
        return None
    offered = ", ".join(f"{{{name}}}" for name in known) if known else "no placeholder"
    hint = f" (for the braces themselves write {{{{{unknown}}}}})" if unknown not in ALL else ""
    return f"expected {offered} in `{field}`, found {{{unknown}}}{hint}"


def filled(text: str, values: Mapping[str, str]) -> str:
    """The text with its placeholders replaced; one without a value is a `KeyError` that names it."""
    return _BRACES.sub(lambda found: f"{{{found['plain']}}}" if found["plain"] else values[found["name"]], text)
