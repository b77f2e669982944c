"""The third layer: what the manifests of a project, and the programs that run its scripts, say about verifying it."""

from __future__ import annotations

from pytest_loop.inference.command_candidate import Candidate
from pytest_loop.inference.project_files import Project
from pytest_loop.inference.sources import compiled_languages, node_packages, python_packages, task_runners


def find_candidates(project: Project) -> list[Candidate]:
    """All that the manifests offer, in every folder that has one."""
    found = [
        one
        for part in (python_packages, node_packages, compiled_languages, task_runners)
        for one in part.find_candidates(project)
    ]
    return list(dict.fromkeys(found))
