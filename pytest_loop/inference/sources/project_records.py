"""The fifth layer: what a project keeps about itself: use cases with their acceptance criteria, and test strategies."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

from pytest_loop.inference.command_candidate import Candidate, Layer, Source
from pytest_loop.inference.markdown_commands import commands, items
from pytest_loop.inference.project_files import Project

_ID = re.compile(r"\bUC-[A-Z0-9]+(?:-\d+)*\b", re.IGNORECASE)
_ACCEPTANCE = re.compile(r"\b(?:acceptance|completion|success) criteria\b|\bdone when\b", re.IGNORECASE)
_TELLING = re.compile(r"\.aiwg/(?:.+/)?(?:test-strategy|security-gates|code-review-guide)\.md|\.aiwg/working/.+\.md")


@dataclass(frozen=True)
class UseCase:
    """A use case that a task names, and what has to be true when it is done."""

    id: str
    source: Source
    criteria: tuple[tuple[str, Source], ...]


def find_use_cases(project: Project, text: str) -> list[UseCase]:
    """The use cases whose ids stand in a text, where the project has their files and these have criteria."""
    found = []
    for name in dict.fromkeys(one.upper() for one in _ID.findall(text)):
        pattern = re.compile(rf"{re.escape(name)}(?![A-Z0-9])", re.IGNORECASE)
        for path in sorted(project.texts):
            if pattern.match(PurePosixPath(path).name):
                said = items(project.texts[path], _ACCEPTANCE)
                criteria = tuple((line.text, Source(path, line.number)) for line in said)
                found += [UseCase(name, Source(path), criteria)] if criteria else []
    return found


def find_candidates(project: Project) -> list[Candidate]:
    """The commands in strategies, gates, guides and notes of the work so far."""
    return [
        Candidate(
            said.command, said.purpose, Layer.RECORDS, Source(path, said.line), said.folder, is_trivial=said.is_trivial
        )
        for path in sorted(project.texts)
        if _TELLING.fullmatch(path)
        for said in commands(project.texts[path])
    ]
