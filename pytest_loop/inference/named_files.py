"""Find files that a task asks to edit by name: these are not sealed."""

from __future__ import annotations

import re

_VERBS = (
    "add|append|put|regenerate|update|refresh|rewrite|rename|move|migrate|convert|adapt|edit|change|extend|adjust|"
    "create|replace|remove|delete|drop|bump|configure"
)
# Words behind which a clause names a condition or a reason, not what is to be edited.
_CLAUSE_END = re.compile(r"[;\n]|[,.:]\s|\b(?:until|so that|such that|because|while|when|for|if|then|and fix)\b", re.I)
_VERB = re.compile(rf"\b(?:{_VERBS})\b", re.I)
_COMMAND = re.compile(r"`[^`]*\s[^`]*`")
_PATH = re.compile(r"(?<![\w./-])(?:[\w.-]+/)*\.?[\w-][\w.-]*\.\w+(?!\S*\s+(?:pass|is\b|are\b|succeed|green))")
# Work that has to edit files which it rarely names.
_PHRASES = {
    re.compile(r"\bsrc[ -]?layout\b", re.I): ("pytest.ini", "tox.ini", "setup.cfg", "pyproject.toml"),
    re.compile(rf"\b(?:{_VERBS})\b[^,.;]*\bsnapshots?\b", re.I): ("__snapshots__/", "*.snap", "*.ambr"),
}


def find_named_files(task: str) -> tuple[str, ...]:
    """Return patterns of the files that a task says to edit; a file that only has to pass is not among them."""
    patterns = [pattern for phrase, names in _PHRASES.items() if phrase.search(task) for pattern in names]
    for clause in _CLAUSE_END.split(_COMMAND.sub(" ", task)):
        if verb := _VERB.search(clause):
            paths = (match[0].rstrip(".") for match in _PATH.finditer(clause, verb.end()))
            patterns += [f"/{path}" if "/" in path else path for path in paths]
    return tuple(dict.fromkeys(patterns))
