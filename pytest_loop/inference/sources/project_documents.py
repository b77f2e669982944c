"""Read the documents of a project: files for agents (layer 2), and records of its requirements (layer 5)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from pytest_loop.inference.command_candidate import Candidate, Layer, Source
from pytest_loop.inference.markdown_blocks import BlockKind, find_list_items, parse_blocks
from pytest_loop.inference.markdown_commands import find_markdown_commands
from pytest_loop.inference.project_files import Project, get_folder

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


def find_agent_file_candidates(project: Project) -> Iterator[Candidate]:
    """Yield the commands in files for agents; a file applies to its folder."""
    for path in project.find_named(*AGENT_FILES):
        yield from find_markdown_commands(path, project.texts[path], Layer.AGENT_FILES, get_folder(path))


def find_ci_demand(project: Project) -> Source | None:
    """Return the first line in a file for agents which says that nothing is done until CI passes."""
    for path in project.find_named(*AGENT_FILES):
        for block in parse_blocks(project.texts[path]):
            demand = _CI_DEMAND.search(block.text)
            if demand and block.kind is not BlockKind.CODE:
                return Source(path, block.line + block.text.count("\n", 0, demand.start()))
    return None


def find_record_candidates(project: Project) -> Iterator[Candidate]:
    """Yield the commands in test strategies, security gates, review guides and working notes."""
    for path in filter(_RECORD.fullmatch, sorted(project.texts)):
        yield from find_markdown_commands(path, project.texts[path], Layer.RECORDS)


@dataclass(frozen=True)
class UseCase:
    """A use case with its acceptance criteria."""

    id: str
    source: Source
    criteria: tuple[tuple[str, Source], ...]


def find_use_cases(project: Project, task: str) -> list[UseCase]:
    """Return the use cases that a task names and that have a file with acceptance criteria."""
    use_cases = []
    for name in dict.fromkeys(match.upper() for match in _USE_CASE.findall(task)):
        pattern = re.compile(rf"{re.escape(name)}(?![A-Z0-9])", re.IGNORECASE)
        for path in sorted(project.texts):
            if pattern.match(PurePosixPath(path).name):
                items = find_list_items(project.texts[path], _ACCEPTANCE)
                criteria = tuple((item.text, Source(path, item.line)) for item in items)
                use_cases += [UseCase(name, Source(path), criteria)] if criteria else []
    return use_cases
