"""What the config template asks of a configuration file beyond patterns."""

from __future__ import annotations

import re
from pathlib import Path

from pytest_loop.rules.document import Document
from pytest_loop.rules.syntax import ContentError, read_text
from pytest_loop.rules.templates import artifact_reader

FAMILIAR = frozenset(("HOME", "HOSTNAME", "LANG", "PATH", "PWD", "SHELL", "TMPDIR", "TZ", "USER"))
BESIDE = (".env.example", ".env.sample", ".env.template", "example.env", "README.md")
_COMMENT = re.compile(r"(?:^|\s)#(.*)$")
_REFERENCE = re.compile(r"(?<!\$)\$(?:\{([A-Z_][A-Z0-9_]*)(:?[-?=+])?|([A-Z_][A-Z0-9_]*)\b)|\benv:([A-Z_][A-Z0-9_]*)\b")


def check_env_vars(artifact: Path, workspace: Path) -> None:
    """Every environment variable has a default where it stands, or is explained in a comment or beside the file."""
    source = artifact_reader.read_document(artifact, workspace)
    lines = source.text.split("\n")
    comments = [_comment(line) for line in lines]
    told = "\n".join(comments) + _told_beside(source.path.parent, workspace)
    problems: dict[str, str] = {}
    for index, line in enumerate(lines):
        explained = comments[index] or (index and not _code(lines[index - 1]) and comments[index - 1])
        for name in _references(_code(line)):
            if not explained and not re.search(rf"\b{name}\b", told):
                problems.setdefault(name, f"{source.line(index + 1)}: expected a comment on {name}, found none")
    artifact_reader.fail_with(problems.values())


def _references(code: str) -> list[str]:
    """The variables without a default that a line uses; those that every system has need no words."""
    found = [match[1] or match[3] or match[4] for match in _REFERENCE.finditer(code) if not match[2]]
    return [name for name in found if name not in FAMILIAR]


def _comment(line: str) -> str:
    found = _COMMENT.search(line)
    return found[1].strip() if found else ""


def _code(line: str) -> str:
    return _COMMENT.sub("", line).strip()


def _told_beside(folder: Path, workspace: Path) -> str:
    """What files that explain a configuration say: those of its folder and of the project."""
    return "".join(_text(place / name) for place in {folder, workspace} for name in BESIDE)


def _text(path: Path) -> str:
    try:
        return "\n" + read_text(path)
    except ContentError:  # there is none, or none that can be read
        return ""


def check_comments(artifact: Path, workspace: Path) -> None:
    """Some value is explained; JSON has no comments, and is left to the sentence beside this check."""
    source = artifact_reader.read_document(artifact, workspace)
    if not _is_json(source) and not any(_comment(line) for line in source.text.split("\n")):
        raise AssertionError(f"{source.line(1)}: expected comments on values that are not obvious, found none")


def _is_json(source: Document) -> bool:
    return source.path.suffix.lower() == ".json"
