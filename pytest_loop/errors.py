"""Everything that can go wrong, by whose fault it is."""

from __future__ import annotations

from typing import NamedTuple


class LoopError(Exception):
    """The root of the tree; its text is written for the person who reads it."""


class CheckError(LoopError):
    """A check could not be carried out: says nothing about the artifact, and is never a pass."""


class NotJudgedError(LoopError):
    """Nobody can judge this rule here (no agent, no person): an assumption until somebody does."""


class SavedFileError(LoopError):
    """A file that an earlier session wrote cannot be used."""


class Problem(NamedTuple):
    """One thing wrong with a file, at a line."""

    path: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}"


class FileError(LoopError):
    """A file that a person wrote cannot be used; every problem in it is listed."""

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = sorted(problems, key=lambda problem: (problem.path, problem.line))
        super().__init__("\n".join(str(problem) for problem in self.problems))


class RuleFileError(FileError):
    """A rule file cannot be used."""


class ManifestError(FileError):
    """The manifest of a workload cannot be used."""


class StateError(LoopError):
    """The files of a run cannot be read or written; its text says what to do."""


class BusyError(StateError):
    """Another process is working on this run."""
