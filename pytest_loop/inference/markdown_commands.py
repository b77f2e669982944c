"""Find the commands in Markdown documents that verify a change."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pytest_loop.inference.command_candidate import Candidate, Layer, Source
from pytest_loop.inference.command_lines import classify_command
from pytest_loop.inference.markdown_blocks import BlockKind, MarkdownBlock, parse_blocks
from pytest_loop.inference.shell_script import Step, split_steps
from pytest_loop.inference.task_phrases import QUOTED, is_command
from pytest_loop.inference.tool_purposes import Purpose, split_names

_SHELLS = split_names("bash sh shell zsh console terminal shell-session text") | {""}
# Sections with these words in their headings say nothing about verification.
_OTHER_TOPICS = re.compile(
    r"\b(?:deploy|releas|publish|changelog|history|install|example|troubleshoot)\w*", re.IGNORECASE
)
# Placeholders and selections of single tests.
_EXAMPLE_COMMAND = re.compile(r"<[^<>]+>|\bpath/to\b|\.\.\.(?!\s|$|/)|::|\[[\w -]+\]|\bfoo\b|\s-k\s")
_SINGLE_TEST = re.compile(
    r"\b(?:single|specific|one|individual|particular|only|e\.g\.|example)\b[^`\n]{0,30}\b(?:tests?|files?|case)\b",
    re.IGNORECASE,
)
_DEMAND = re.compile(
    r"\bnot (?:be )?(?:done|finished|complete)\b|\b(?:done|finished|complete) (?:only )?(?:when|if|once|after)\b"
    r"|\bmust (?:all )?pass\b|\balways run\b|\bdefinition of done\b"
    r"|\bbefore (?:you |every |each |any )?(?:commit|push|finish|claim|open|hand|merg)",
    re.IGNORECASE,
)
_Command = tuple[Step, Purpose, int]


def find_markdown_commands(path: str, text: str, layer: Layer, folder: str = "") -> list[Candidate]:
    """Return the verification commands of a document, each once, in its order."""
    candidates: dict[tuple[str, str], Candidate] = {}
    for block in parse_blocks(text):
        if any(_OTHER_TOPICS.search(title) for title in block.headings):
            continue
        find = _find_in_code if block.kind is BlockKind.CODE else _find_in_text
        for step, purpose, line in find(block, folder):
            candidate = Candidate(
                step.command, purpose, layer, Source(path, line), step.folder, is_trivial=step.is_trivial
            )
            candidates.setdefault((step.command, step.folder), candidate)
    return list(candidates.values())


def _find_in_code(block: MarkdownBlock, folder: str) -> Iterator[_Command]:
    if block.language not in _SHELLS:
        return
    lines = block.text.split("\n")
    for step in split_steps(block.text, folder):
        purpose = classify_command(step.command)
        if purpose and not _EXAMPLE_COMMAND.search(step.command) and not _SINGLE_TEST.search(lines[step.offset]):
            yield step, purpose, block.line + step.offset


def _find_in_text(block: MarkdownBlock, folder: str) -> Iterator[_Command]:
    for number, line in enumerate(block.text.split("\n"), block.line):
        is_demand = bool(_DEMAND.search(line))
        for quoted in QUOTED.finditer(line):
            command, before = quoted[1].strip(), line[: quoted.start()]
            is_example = _EXAMPLE_COMMAND.search(command) or _SINGLE_TEST.search(before)
            if is_example or not is_command(command, before, line[quoted.end() :]):
                continue
            if is_demand or classify_command(command):
                for step in split_steps(command, folder):
                    yield step, classify_command(step.command) or Purpose.TEST, number
