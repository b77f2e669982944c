"""Functions of the templates code and config for the syntax of a file: by a parser, or by its language's own tool."""

from __future__ import annotations

import configparser
import re
import shutil
from pathlib import Path

from pytest_loop.errors import CheckError
from pytest_loop.processes import child
from pytest_loop.rules.document import FORMATS_BY_SUFFIX, Document, find_syntax_error
from pytest_loop.rules.templates.artifact_reader import read_document

# Commands that parse a file and do not execute it, by its suffix.
_SYNTAX_TOOLS = {
    ".go": ("gofmt", "-e"),
    ".js": ("node", "--check"),
    ".mjs": ("node", "--check"),
    ".sh": ("bash", "-n"),
    ".rb": ("ruby", "-c"),
    ".php": ("php", "-l"),
    ".c": ("cc", "-fsyntax-only"),
    ".cpp": ("c++", "-fsyntax-only"),
}
_CLOSING = {"}": "{", "]": "["}
_BRACKET = re.compile(r"[][{}]")
_QUOTED = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'[^']*'|(?:^|\s)[#;].*$")
_TIMEOUT = 60.0
_MAX_LINES = 8


def check_code(artifact: Path, workspace: Path) -> None:
    """Fail unless the file is code that can be parsed; raise `CheckError` for a language without a parser here."""
    document = read_document(artifact, workspace)
    format_name = FORMATS_BY_SUFFIX.get(artifact.suffix.lower())
    if format_name == "markdown":
        raise CheckError(f"{document.shown} is Markdown, and this check reads code: name a file such as main.py")
    if format_name:
        _check_format(document, format_name)
    else:
        _run_syntax_tool(document)


def check_config(artifact: Path, workspace: Path) -> None:
    """Fail unless the file can be parsed as its suffix says; in a format without a parser, brackets must match."""
    document = read_document(artifact, workspace)
    suffix = artifact.suffix.lower()
    if suffix == ".ini":
        _check_ini(document)
    elif format_name := FORMATS_BY_SUFFIX.get(suffix):
        _check_format(document, format_name)
    else:
        _check_brackets(document)


def _check_format(document: Document, format_name: str) -> None:
    if error := find_syntax_error(document.text, format_name):
        raise AssertionError(f"{document.line(error.line)}: {error}")


def _check_ini(document: Document) -> None:
    try:
        configparser.ConfigParser(interpolation=None, allow_no_value=True).read_string(document.text, document.shown)
    except configparser.Error as error:
        line = getattr(error, "lineno", 1)
        raise AssertionError(f"{document.line(line)}: expected INI, found {' '.join(str(error).split())}") from None


def _check_brackets(document: Document) -> None:
    """Fail unless braces and square brackets outside of comments and quotes match."""
    opened: list[tuple[str, int]] = []
    for number, line in enumerate(document.text.split("\n"), 1):
        for bracket in _BRACKET.findall(_QUOTED.sub("", line)):
            if bracket in _CLOSING.values():
                opened.append((bracket, number))
            elif not opened or opened.pop()[0] != _CLOSING[bracket]:
                raise AssertionError(
                    f"{document.line(number)}: expected {_CLOSING[bracket]!r} before it, found {bracket!r} alone"
                )
    if opened:
        bracket, number = opened[-1]
        raise AssertionError(f"{document.line(number)}: expected an end of {bracket!r}, found none")


def _run_syntax_tool(document: Document) -> None:
    """Fail unless the tool of the file's language accepts it; raise `CheckError` without one."""
    suffix = document.path.suffix.lower()
    words = _SYNTAX_TOOLS.get(suffix)
    advice = "say how in a rule file with `extends: code` and a command for a.correctness.compiles"
    if words is None:
        raise CheckError(f"there is no check for the syntax of {document.path.name}: {advice}")
    if shutil.which(words[0]) is None:
        raise CheckError(
            f"{words[0]} is not installed here, and checks the syntax of {suffix} files: install it, or {advice}"
        )
    command = child.Command([*words, str(document.path)], document.path.parent, _TIMEOUT)
    result = child.run_command(command)
    if result.exit_code != 0:
        lines = [line for line in result.output.splitlines() if line.strip()][:_MAX_LINES]
        raise AssertionError(
            f"{document.line(1)}: expected code that `{' '.join(words)}` accepts, found {' | '.join(lines)}"
        )
