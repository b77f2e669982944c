"""Find files that a task asks to edit by name: these are not sealed."""

from __future__ import annotations

import re

_VERBS = (
    "add|append|put|regenerate|update|refresh|rewrite|rename|move|migrate|convert|adapt|edit|change|extend|adjust|"
    "create|replace|remove|delete|drop|bump|configure|correct|modify|mark|tighten|relax|re-?record"
)
# Behind these verbs "to" leads to a file that is edited; behind the others to what the edit is for.
_MOVING = re.compile(r"add|append|put|rename|move|migrate|convert", re.I)
_PURPOSE = re.compile(r"\bto\b", re.I)
# Words behind which a clause names a condition or a reason, not what is to be edited.
_CLAUSE_END = re.compile(
    r"[;\n]|[,.:]\s|\b(?:until|so that|such that|because|while|when|for|if|then|and fix"
    r"|according|to (?:satisfy|match|fit|follow|meet)|based on|against|like|per|that|as"
    r"|(?:described|expected|needed|required|tested|used) (?:by|in))\b",
    re.I,
)
_VERB = re.compile(rf"\b(?:{_VERBS})\b", re.I)
_COMMAND = re.compile(r"`[^`]*\s[^`]*`")
_PATH = re.compile(r"(?<![\w./-])(?:[\w.-]+/)*\.?[\w-][\w.-]*\.\w+(?!\S*\s+(?:pass|is\b|are\b|succeed|green))")
# What a program writes, so that a task may name the folder alone.
_RECORDED = re.compile(r"\b(?:snapshots?|golden|cassettes?|recordings?|expected (?:files?|outputs?|results?))\b", re.I)
_FOLDER = re.compile(r"(?<![\w./-])(?:[\w.-]+/)+[\w-]+/?(?![\w./])")
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
            edited = clause[verb.end() :]
            if not _MOVING.fullmatch(verb[0]):
                edited = _PURPOSE.split(edited)[0]
            paths = [match[0].rstrip(".") for match in _PATH.finditer(edited)]
            if not paths and _RECORDED.search(edited):
                paths = _FOLDER.findall(edited)
            patterns += [f"/{path}" if "/" in path else path for path in paths]
    return tuple(dict.fromkeys(patterns))
