"""Functions of the config template."""

from __future__ import annotations

import re
from pathlib import Path

from pytest_loop.rules.document import DATA_FORMATS, FORMATS_BY_SUFFIX
from pytest_loop.rules.syntax import ContentError, read_text
from pytest_loop.rules.templates.artifact_reader import fail_with, read_data, read_document

SYSTEM_VARIABLES = frozenset(("HOME", "HOSTNAME", "LANG", "PATH", "PWD", "SHELL", "TMPDIR", "TZ", "USER"))
DOCUMENTATION = (".env.example", ".env.sample", ".env.template", "example.env", "README.md")
_COMMENT = re.compile(r"(?:^|\s)#(.*)$")
_REFERENCE = re.compile(r"(?<!\$)\$(?:\{([A-Z_][A-Z0-9_]*)(:?[-?=+])?|([A-Z_][A-Z0-9_]*)\b)|\benv:([A-Z_][A-Z0-9_]*)\b")


def check_settings(artifact: Path, workspace: Path) -> None:
    """Fail unless the file has keys or entries, or, in a format without a parser, a line that is no comment."""
    document = read_document(artifact, workspace)
    if FORMATS_BY_SUFFIX.get(artifact.suffix.lower()) in DATA_FORMATS:
        data = read_data(document)
        has_settings = isinstance(data, (dict, list)) and bool(data)
    else:
        has_settings = any(map(_get_code, document.text.split("\n")))
    if not has_settings:
        raise AssertionError(f"{document.line(1)}: expected settings, found none")


def check_env_vars(artifact: Path, workspace: Path) -> None:
    """Fail unless each environment variable has a default, or an explanation in a comment or the documentation."""
    document = read_document(artifact, workspace)
    lines = document.text.split("\n")
    comments = [_get_comment(line) for line in lines]
    explanations = "\n".join(comments) + _read_documentation(document.path.parent, workspace)
    problems: dict[str, str] = {}
    for index, line in enumerate(lines):
        is_explained = comments[index] or (index and not _get_code(lines[index - 1]) and comments[index - 1])
        for name in _find_references(_get_code(line)):
            if not is_explained and not re.search(rf"\b{name}\b", explanations):
                problems.setdefault(name, f"{document.line(index + 1)}: expected a comment on {name}, found none")
    fail_with(problems.values())


def _find_references(code: str) -> list[str]:
    """Return the variables without a default in a line, except those of every system."""
    names = [match[1] or match[3] or match[4] for match in _REFERENCE.finditer(code) if not match[2]]
    return [name for name in names if name not in SYSTEM_VARIABLES]


def _get_comment(line: str) -> str:
    match = _COMMENT.search(line)
    return match[1].strip() if match else ""


def _get_code(line: str) -> str:
    return _COMMENT.sub("", line).strip()


def _read_documentation(folder: Path, workspace: Path) -> str:
    """Return the documentation beside the artifact and at the root of the project."""
    texts = ""
    for path in [parent / name for parent in {folder, workspace} for name in DOCUMENTATION]:
        try:
            texts += "\n" + read_text(path)
        except ContentError:  # missing or not readable
            continue
    return texts


def check_comments(artifact: Path, workspace: Path) -> None:
    """Fail unless some line has a comment; pass for JSON, which has none: a sentence of the template covers it."""
    document = read_document(artifact, workspace)
    is_json = document.path.suffix.lower() == ".json"
    if not is_json and not any(map(_get_comment, document.text.split("\n"))):
        raise AssertionError(f"{document.line(1)}: expected comments on values that are not obvious, found none")
