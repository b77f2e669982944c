"""The second layer: what AGENTS.md, CLAUDE.md and AIWG.md tell those who work on the project."""

from __future__ import annotations

import re

from pytest_loop.inference.command_candidate import Candidate, Layer, Source
from pytest_loop.inference.markdown_commands import commands, lines
from pytest_loop.inference.project_files import Project, get_folder

NAMES = ("AGENTS.md", "CLAUDE.md", "AIWG.md")
_CI = re.compile(
    r"\b(?:done|finished|complete|merge[ds]?|ready)\b[^.\n]{0,40}\b(?:until|when|if|unless|once|after|before)\b[^.\n]{0,30}"
    r"\b(?:CI|pipeline|build)\b[^.\n]{0,20}\b(?:pass\w*|green|succeeds?)"
    r"|\b(?:CI|pipeline) must (?:pass|be green)",
    re.IGNORECASE,
)


def find_candidates(project: Project) -> list[Candidate]:
    """The commands that these files name; one in a folder speaks for that folder."""
    return [
        Candidate(
            said.command,
            said.purpose,
            Layer.AGENT_FILES,
            Source(path, said.line),
            said.folder,
            is_trivial=said.is_trivial,
        )
        for path in project.find_named(*NAMES)
        for said in commands(project.texts[path], get_folder(path))
    ]


def find_ci_demand(project: Project) -> Source | None:
    """Where one of these files says that nothing is done until CI passes."""
    for path in project.find_named(*NAMES):
        for line in lines(project.texts[path]):
            if line.language is None and _CI.search(line.text):
                return Source(path, line.number)
    return None
