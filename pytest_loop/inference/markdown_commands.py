"""Markdown as people write it for agents: sections, lists, tables, and the commands in it with their lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from pytest_loop.inference.command_lines import classify_command
from pytest_loop.inference.shell_script import LONGEST_LINE, split_steps
from pytest_loop.inference.task_phrases import is_command
from pytest_loop.inference.tool_purposes import Purpose, split_names

_HEADING = re.compile(r"(#{1,6})\s+(.*?)\s*#*\s*$")
_FENCE = re.compile(r"\s*(```+|~~~+)\s*([\w+-]*)")
_ITEM = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+(?:\[[ xX]\]\s+)?(.*)")
_SHELLS = split_names("bash sh shell zsh console terminal shell-session text") | {""}
_QUOTED = re.compile(r"`([^`\n]{1,300})`")
# Sections about these say nothing of what verifies a change.
_ELSEWHERE = re.compile(r"\b(?:deploy|releas|publish|changelog|history|install|example|troubleshoot)\w*", re.IGNORECASE)
# Commands that are shown and not meant as they stand.
_SHOWN = re.compile(r"<[^<>]+>|\bpath/to\b|\.\.\.(?!\s|$|/)|::|\[[\w -]+\]|\bfoo\b|\s-k\s")
_ONE = re.compile(
    r"\b(?:single|specific|one|individual|particular|only|e\.g\.|example)\b[^`\n]{0,30}\b(?:tests?|files?|case)\b",
    re.IGNORECASE,
)
_DEMAND = re.compile(
    r"\bnot (?:be )?(?:done|finished|complete)\b|\b(?:done|finished|complete) (?:only )?(?:when|if|once|after)\b"
    r"|\bmust (?:all )?pass\b|\balways run\b|\bdefinition of done\b"
    r"|\bbefore (?:you |every |each |any )?(?:commit|push|finish|claim|open|hand|merg)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Line:
    """A line that stands in no fence, or a whole fence; `titles` are the headings above it."""

    number: int
    text: str
    titles: tuple[str, ...] = ()
    language: str | None = None


def lines(text: str) -> Iterator[Line]:
    """The text line by line, with each fence as one; headings are not lines of their own."""
    titles: list[tuple[int, str]] = []
    fence: tuple[str, str, int, list[str]] | None = None
    for number, whole in enumerate(text.split("\n"), 1):
        line = whole[:LONGEST_LINE]
        above = tuple(title for _, title in titles)
        found = _FENCE.match(line)
        if fence:
            mark, language, start, body = fence
            if found and found[1].startswith(mark) and not found[2]:
                yield Line(start, "\n".join(body), above, language)
                fence = None
            else:
                body.append(line)
        elif found:
            fence = (found[1], found[2].lower(), number + 1, [])
        elif heading := _HEADING.match(line):
            level = len(heading[1])
            titles = [*(one for one in titles if one[0] < level), (level, heading[2])]
        else:
            yield Line(number, line, above)


def items(text: str, title: re.Pattern[str]) -> list[Line]:
    """The entries of the lists under the headings that match, no heading being an empty one.

    An entry may go on in the lines below it.
    """
    found: list[Line] = []
    last = 0
    for line in lines(text):
        if line.language is not None or not any(title.search(one) for one in line.titles or ("",)):
            continue
        item = _ITEM.match(line.text)
        if item and item[1].strip():
            found.append(Line(line.number, item[1].strip(), line.titles))
            last = line.number
        elif found and last == line.number - 1 and line.text.startswith(" ") and line.text.strip():
            found[-1] = Line(found[-1].number, f"{found[-1].text} {line.text.strip()}", line.titles)
            last = line.number
    return found


def rows(text: str) -> Iterator[list[str]]:
    """The rows of all tables, without those that only draw a line."""
    for line in lines(text):
        if line.language is None and line.text.strip().startswith("|"):
            cells = [cell.strip() for cell in line.text.strip().strip("|").split("|")]
            if not all(re.fullmatch(r":?-+:?", cell) for cell in cells):
                yield cells


@dataclass(frozen=True)
class Said:
    """A command in a text, and what it verifies."""

    command: str
    purpose: Purpose
    line: int
    folder: str = ""
    is_trivial: bool = False


def commands(text: str, folder: str = "") -> list[Said]:
    """The commands that a text says verify something, each once, in its order."""
    found: dict[tuple[str, str], Said] = {}
    for line in lines(text):
        if not any(_ELSEWHERE.search(title) for title in line.titles):
            for one in _fenced(line, folder) if line.language is not None else _inline(line, folder):
                found.setdefault((one.command, one.folder), one)
    return list(found.values())


def _fenced(line: Line, folder: str) -> Iterator[Said]:
    if line.language not in _SHELLS:
        return
    written = line.text.split("\n")
    for step in split_steps(line.text, folder):
        purpose = classify_command(step.command)
        if purpose and not _SHOWN.search(step.command) and not _ONE.search(written[step.offset]):
            yield Said(step.command, purpose, line.number + step.offset, step.folder, step.is_trivial)


def _inline(line: Line, folder: str) -> Iterator[Said]:
    is_demand = bool(_DEMAND.search(line.text))
    for found in _QUOTED.finditer(line.text):
        command = found[1].strip()
        before, after = line.text[: found.start()], line.text[found.end() :]
        if not is_command(command, before, after) or _SHOWN.search(command) or _ONE.search(before):
            continue
        purpose = classify_command(command) or (Purpose.TEST if is_demand else None)
        for step in split_steps(command, folder) if purpose else ():
            yield Said(
                step.command, classify_command(step.command) or Purpose.TEST, line.number, step.folder, step.is_trivial
            )
