"""Find commands and use cases in the documents of a project: files for agents, and records of requirements."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from pytest_loop.inference.command_candidate import CommandCandidate, Layer, SourceLine
from pytest_loop.inference.command_lines import classify_command
from pytest_loop.inference.markdown_blocks import BlockKind, MarkdownBlock, find_list_items, parse_blocks
from pytest_loop.inference.project_files import Project, get_folder
from pytest_loop.inference.quoted_commands import QUOTED, is_command
from pytest_loop.inference.shell_script import ScriptCommand, split_steps
from pytest_loop.inference.tool_purposes import Purpose, split_names

AGENT_FILES = ("AGENTS.md", "CLAUDE.md", "AIWG.md")
_CI_DEMAND = re.compile(
    r"\b(?:done|finished|complete|merge[ds]?|ready)\b[^.\n]{0,40}\b(?:until|when|if|unless|once|after|before)\b[^.\n]{0,30}"
    r"\b(?:CI|pipeline|build)\b[^.\n]{0,20}\b(?:pass\w*|green|succeeds?)"
    r"|\b(?:CI|pipeline) must (?:pass|be green)",
    re.IGNORECASE,
)
_RECORD = re.compile(r"\.aiwg/(?:.+/)?(?:test-strategy|security-gates|code-review-guide)\.md|\.aiwg/working/.+\.md")
_USE_CASE = re.compile(r"\bUC-[A-Z0-9]+(?:-\d+)*\b", re.IGNORECASE)
_ACCEPTANCE = re.compile(r"\b(?:acceptance|completion|success) criteria\b|\bdone when\b", re.IGNORECASE)


def find_agent_file_candidates(project: Project) -> Iterator[CommandCandidate]:
    """Yield the commands in files for agents; a file applies to its folder."""
    for path in project.find_by_name(*AGENT_FILES):
        yield from find_markdown_commands(path, project.texts[path], Layer.AGENT_FILES, get_folder(path))


def find_ci_demand(project: Project) -> SourceLine | None:
    """Return the first line in a file for agents which says that nothing is done until CI passes."""
    for path in project.find_by_name(*AGENT_FILES):
        for block in parse_blocks(project.texts[path]):
            demand = _CI_DEMAND.search(block.text)
            if demand and block.kind is not BlockKind.CODE:
                return SourceLine(path, block.line + block.text.count("\n", 0, demand.start()))
    return None


def find_record_candidates(project: Project) -> Iterator[CommandCandidate]:
    """Yield the commands in test strategies, security gates, review guides and working notes."""
    for path in filter(_RECORD.fullmatch, sorted(project.texts)):
        yield from find_markdown_commands(path, project.texts[path], Layer.RECORDS)


@dataclass(frozen=True)
class UseCase:
    """A use case with its acceptance criteria."""

    id: str
    source: SourceLine
    criteria: tuple[tuple[str, SourceLine], ...]


def find_use_cases(project: Project, task: str) -> list[UseCase]:
    """Return the use cases that a task names and that have a file with acceptance criteria."""
    use_cases = []
    for name in dict.fromkeys(match.upper() for match in _USE_CASE.findall(task)):
        pattern = re.compile(rf"{re.escape(name)}(?![A-Z0-9])", re.IGNORECASE)
        for path in sorted(project.texts):
            if pattern.match(PurePosixPath(path).name):
                items = find_list_items(project.texts[path], _ACCEPTANCE)
                criteria = tuple((item.text, SourceLine(path, item.line)) for item in items)
                use_cases += [UseCase(name, SourceLine(path), criteria)] if criteria else []
    return use_cases


# -- commands in Markdown

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
_Command = tuple[ScriptCommand, Purpose, int]


def find_markdown_commands(path: str, text: str, layer: Layer, folder: str = "") -> list[CommandCandidate]:
    """Return the verification commands of a document, each once, in its order."""
    candidates: dict[tuple[str, str], CommandCandidate] = {}
    for block in parse_blocks(text):
        if any(_OTHER_TOPICS.search(title) for title in block.headings):
            continue
        find = _find_in_code if block.kind is BlockKind.CODE else _find_in_text
        for step, purpose, line in find(block, folder):
            candidate = CommandCandidate(
                step.command, purpose, layer, SourceLine(path, line), step.folder, is_trivial=step.is_trivial
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
