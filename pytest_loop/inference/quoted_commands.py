"""Find the commands that a text spells out: in backticks, or as its whole completion."""

from __future__ import annotations

import re
from typing import Any

from pytest_loop.inference.command_lines import classify_command
from pytest_loop.inference.proposal import build_command_check
from pytest_loop.inference.tool_purposes import TOOLS, split_names

QUOTED = re.compile(r"`([^`\n]{1,300})`")
_FORBIDDEN_BEFORE = re.compile(
    r"(?:n't|\bnot(?! (?:be )?(?:done|finished|complete))|\bnever|\bwithout|\bavoid|\binstead of)\b[^.`\n]{0,20}$",
    re.IGNORECASE,
)
_RUN_BEFORE = re.compile(
    r"(?:\b(?:run(?:ning)?|until|(?:verify|check) (?:it )?with|completion:|command(?: is)?:?)|--completion)\s*[\"'=]?$",
    re.IGNORECASE,
)
_PASSES_AFTER = re.compile(
    r"[\"']?\s+(?:pass(?:es)?|succeeds?|exits?|is (?:clean|green)|returns? 0|ends? with|runs? clean\w*)\b",
    re.IGNORECASE,
)
_ONLY_COMMAND = re.compile(
    r"\W*(?:run\s+)?`([^`]+)`\W*(?:(?:passes|succeeds|exits 0|is clean|exits with 0)\W*)?", re.IGNORECASE
)
_ONE_WORD_COMMANDS = frozenset(TOOLS) | split_names("tox nox make")


def find_commands(text: str) -> tuple[str, ...]:
    """Return the commands in backticks; names of files, functions and values in backticks are none."""
    quotes = ((quoted[1].strip(), *quoted.span()) for quoted in QUOTED.finditer(text))
    commands = (
        command
        for command, start, end in quotes
        if is_command(command, text[max(0, start - 60) : start], text[end : end + 40])
    )
    return tuple(dict.fromkeys(commands))


def is_command(quoted: str, before: str = "", after: str = "") -> bool:
    """Return whether a text in backticks is a command, by itself or by the texts before and after it."""
    if not quoted or _FORBIDDEN_BEFORE.search(before):
        return False
    if _RUN_BEFORE.search(before) or _PASSES_AFTER.match(after):
        return True
    may_be_command = " " in quoted or quoted in _ONE_WORD_COMMANDS or quoted.startswith("./")
    return may_be_command and classify_command(quoted) is not None


# Programs that a completion may begin with, with any arguments; make and just with one target.
_PROGRAM = re.compile(
    r"\./\S|(?:make|just) [\w.:/-]+$|(?:npm|npx|pnpm|yarn|uv|poetry|python3?|cargo|node|bash|sh|docker|git) \S"
)
_PASSING = re.compile(
    r"\s{1,9}(?:(?:all|both|finally) )?(?:pass(?:es)?|succeeds?|works?|finish(?:es)?|stops? failing|no longer fails?"
    r"|exits? (?:with )?0|returns? 0|(?:is|are) (?:(?:all|both) )?(?:clean|green|happy|ok|fine|quiet)"
    r"|(?:runs?|goes|go|comes? back) (?:through|without errors?|clean\w*))\W*$",
    re.IGNORECASE,
)
# A number to compare with, or a verb: a sentence about a command.
_SENTENCE = re.compile(
    r"[<>]=?\s*\d|\s(?:is|are|has|have|does|doesn't|gives|says|reports|prints|shows)\s", re.IGNORECASE
)


def parse_commands(completion: str) -> tuple[str, ...]:
    """Return the commands of a completion that consists only of commands; empty for any other completion."""
    text = re.sub(r"(?<=\w)[.!]+$", "", _PASSING.sub("", completion))
    parts = re.split(r",\s{1,9}|\s{1,9}and\s{1,9}", text)
    are_commands = all(is_command(part) or _PROGRAM.match(part) for part in parts)
    return tuple(parts) if are_commands and not _SENTENCE.search(text) else ()


def build_quoted_check(text: str) -> dict[str, Any] | None:
    """Build the check of a text that is only a command in backticks, perhaps with `run` or `passes`."""
    match = _ONLY_COMMAND.fullmatch(text)
    return build_command_check(match[1].strip(), None) if match else None
