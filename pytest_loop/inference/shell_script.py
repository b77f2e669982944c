"""Scripts taken apart: their commands one by one, where each runs, and whether it says anything at all."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from pytest_loop.inference.tool_purposes import split_names

# No person writes a longer line, and patterns need not be tried on it.
LONGEST_LINE = 2_000
ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
_HOLLOW = split_names("echo true false exit : printf sleep")
_SILENCED = re.compile(r"\|\|\s*(?:true|:|exit\s+0|echo\b.*)\s*$")
_KEYWORDS = split_names("if then else elif fi for do done while case esac { } set export source . function")
_COMMENT = re.compile(r"(?:^|\s)#.*")
_PROMPT = re.compile(r"^[$>%]\s+")
_LOOKED_AT = re.compile(r"\s*\|\|?\s*(?:tee|cat|true|:|exit\s+0|echo)(?:\s.*)?$")
# What only a shell understands.
_SHELL = re.compile(r"[();<>|&$*?~`\n]")


@dataclass(frozen=True)
class Step:
    """One command of a script: the folder it runs in, and how many lines below the first one it stands."""

    command: str
    folder: str = ""
    offset: int = 0
    is_trivial: bool = False


def split_words(command: str) -> list[str]:
    """The words of a command; text that no shell would take is split at spaces."""
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()


def needs_shell(command: str) -> bool:
    """Whether a command means something else without a shell."""
    return bool(_SHELL.search(command) or ASSIGNMENT.fullmatch(command.split(" ")[0]))


def split_steps(script: str, folder: str = "") -> Iterator[Step]:
    """The commands of a script, one by one: chains are split, `cd` is followed, and what only prepares is left out."""
    here = folder
    for offset, line in _lines(script):
        for part in _chain(line):
            command = part.strip().strip("()").strip()
            said = split_words(command)
            if not said or said[0] in _KEYWORDS or all(ASSIGNMENT.fullmatch(word) for word in said):
                continue
            if said[0] == "cd":
                here = resolve_folder(here, said[1]) if len(said) > 1 else folder
                continue
            yield Step(_plain(command), here, offset, is_trivial(command))


def resolve_folder(folder: str, name: str) -> str:
    """A folder beneath another, as a path from the root of the project; what leads out of it is the root."""
    parts: list[str] = []
    for part in PurePosixPath(folder, name).parts:
        if part == "..":
            parts = parts[:-1]
        elif part != "/":
            parts.append(part)
    return "/".join(parts)


def is_trivial(command: str) -> bool:
    """Whether a command comes out the same whatever the code does, such as `echo "no tests" && exit 1` or `true`."""
    if _SILENCED.search(command):
        return True
    return all(not said or said[0] in _HOLLOW for said in map(split_words, _chain(command)))


def _lines(script: str) -> Iterator[tuple[int, str]]:
    """The lines of a script, those that go on joined, without comments and prompts."""
    joined, start = "", 0
    for number, line in enumerate([*script.split("\n"), ""]):
        if len(line) + len(joined) > LONGEST_LINE:
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


def _chain(line: str) -> list[str]:
    """The parts of a chain; what follows `||` belongs to the command before it."""
    parts, quote, start, at = [], "", 0, 0
    while at < len(line):
        character = line[at]
        length = 1
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character == ";" or line.startswith("&&", at):
            length = 1 if character == ";" else 2
            parts.append(line[start:at])
            start = at + length
        at += length
    return [*parts, line[start:]]


def _plain(command: str) -> str:
    """A command without what only looks at its output, or hides how it ended."""
    return _LOOKED_AT.sub("", re.sub(r"\s+2>&1(?=\s|$)", "", command)).strip()
