"""The exceptions of the package, one class per cause."""

from __future__ import annotations

from typing import NamedTuple


class LoopError(Exception):
    """The base class; its text is a message for the user."""


class CheckError(LoopError):
    """A check could not be executed: no statement about the artifact, and never a pass."""


class NotJudgedError(LoopError):
    """No agent and no user can judge this rule here: the rule stays an assumption until one of them does."""


class TrialsDeferredError(LoopError):
    """All workers of a cluster carry out the trials of a check; the text is the request."""


class NothingToJudgeError(LoopError):
    """There is no rule at all."""


class SavedFileError(LoopError):
    """A file of an earlier session cannot be used."""


class Problem(NamedTuple):
    """One problem in a file, with its line."""

    path: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}"


class FileError(LoopError):
    """A file of the user cannot be used; the text lists every problem."""

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = sorted(problems, key=lambda problem: (problem.path, problem.line))
        super().__init__("\n".join(str(problem) for problem in self.problems))


class RuleFileError(FileError):
    """A rule file cannot be used."""


class ManifestError(FileError):
    """The manifest of a workload cannot be used."""


class UnmatchedPathsError(ManifestError):
    """A path or glob of a manifest matches no file."""


class StateError(LoopError):
    """The files of a run cannot be read or written; the text says what to do."""


class BusyError(StateError):
    """Another process owns this run."""
