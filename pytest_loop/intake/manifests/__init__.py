"""The third layer: what the manifests of a project, and the programs that run its scripts, say about verifying it."""

from __future__ import annotations

from pytest_loop.intake.manifests import compiled, node, python, runners
from pytest_loop.intake.model import Candidate
from pytest_loop.intake.project import Project


def candidates(project: Project) -> list[Candidate]:
    """All that the manifests offer, in every folder that has one."""
    found = [one for part in (python, node, compiled, runners) for one in part.candidates(project)]
    return list(dict.fromkeys(found))
