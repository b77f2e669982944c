"""Split shell scripts into commands, with the folder and line of each."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from pytest_loop.inference.tool_purposes import split_names

# Longer lines are not written by people; skipping them bounds the cost of the patterns.
MAX_LINE_LENGTH = 2_000
ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
_TRIVIAL = split_names("echo true false exit : printf sleep")
_SILENCED = re.compile(r"\|\|\s*(?:true|:|exit\s+0|echo\b.*)\s*$")
_KEYWORDS = split_names("if then else elif fi for do done while case esac { } set export source . function")
_COMMENT = re.compile(r"(?:^|\s)#.*")
_PROMPT = re.compile(r"^[$>%]\s+")
_OUTPUT_FILTER = re.compile(r"\s*\|\|?\s*(?:tee|cat|true|:|exit\s+0|echo)(?:\s.*)?$")
_SHELL_SYNTAX = re.compile(r"[();<>|&$*?~`\n]")
_QUOTED_OR_SEPARATOR = re.compile(r"(?P<quoted>\"[^\"]*(?:\"|$)|'[^']*(?:'|$))|&&|;")


@dataclass(frozen=True)
class ScriptCommand:
    """One command of a script: its folder, and its line counted from the first line of the script."""

    command: str
    folder: str = ""
    offset: int = 0
    is_trivial: bool = False


def split_words(command: str) -> list[str]:
    """Split a command like a shell; split at spaces if its quoting is broken."""
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()


def needs_shell(command: str) -> bool:
    """Return whether a command uses shell syntax or sets environment variables."""
    return bool(_SHELL_SYNTAX.search(command) or ASSIGNMENT.fullmatch(command.split(" ")[0]))


def split_steps(script: str, folder: str = "") -> Iterator[ScriptCommand]:
    """Yield the commands of a script: chains are split, `cd` is followed, and shell keywords are skipped."""
    current = folder
    for offset, line in _join_lines(script):
        for part in _split_chain(line):
            command = part.strip().strip("()").strip()
            words = split_words(command)
            if not words or words[0] in _KEYWORDS or all(ASSIGNMENT.fullmatch(word) for word in words):
                continue
            if words[0] == "cd":
                current = resolve_folder(current, words[1]) if len(words) > 1 else folder
                continue
            yield ScriptCommand(_drop_output_filter(command), current, offset, is_trivial(command))


def resolve_folder(folder: str, name: str) -> str:
    """Return a folder relative to another as a path from the project's root; never a path outside of it."""
    return posixpath.normpath(posixpath.join("/", folder, name)).lstrip("/")


def is_trivial(command: str) -> bool:
    """Return whether the result does not depend on the code, as with `true` or `echo "no tests" && exit 1`."""
    if _SILENCED.search(command):
        return True
    return all(not words or words[0] in _TRIVIAL for words in map(split_words, _split_chain(command)))


def _join_lines(script: str) -> Iterator[tuple[int, str]]:
    """Yield lines with their numbers: continued lines joined, comments and prompts removed."""
    joined, start = "", 0
    for number, line in enumerate([*script.split("\n"), ""]):
        if len(line) + len(joined) > MAX_LINE_LENGTH:
            joined = ""
            continue
        text = _PROMPT.sub("", _COMMENT.sub("", line).strip())
        start = start if joined else number
        joined = f"{joined} {text}".strip()
        if joined.endswith("\\"):
            joined = joined[:-1].strip()
            continue
        if joined:
            yield start, joined
        joined = ""


def _split_chain(line: str) -> list[str]:
    """Split a line at `;` and `&&` outside of quotes; what follows `||` stays with the command before it."""
    return _QUOTED_OR_SEPARATOR.sub(lambda match: match["quoted"] or "\0", line).split("\0")


def _drop_output_filter(command: str) -> str:
    """Remove `2>&1`, pipes into `tee` or `cat`, and `|| true`."""
    return _OUTPUT_FILTER.sub("", re.sub(r"\s+2>&1(?=\s|$)", "", command)).strip()
