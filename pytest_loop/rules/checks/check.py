"""Define the base class of checks and the context they run in, and run one check."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from pytest_loop.core.judging.test_counts import CountedTests
from pytest_loop.core.model.rules import Finding, Proof
from pytest_loop.errors import CheckError, LoopError
from pytest_loop.rules.document import Document, Documents
from pytest_loop.rules.syntax import ContentError


class JudgeReply(NamedTuple):
    """A judge's answer to a question, its reason, and the quotation that decides it."""

    passed: bool
    reason: str = ""
    evidence: str = ""


class Inputs(NamedTuple):
    """The files that a check reads and the programs that it runs."""

    files: tuple[Path, ...] = ()
    tools: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Context:
    """Everything that a check may read: the project (`root`), the folder of its rule file, the artifact, fixtures.

    `ask` asks a judge. `is_confirmed` says that a person has confirmed the rule. A check adds the numbers of tests that
    its commands report to `test_counts`. `trials` are results of trials by their requests; `defers_trials` says that
    all workers of a cluster carry them out.
    """

    root: Path
    folder: Path
    artifact: Path | None = None
    documents: Documents = field(default_factory=lambda: Documents(Path()))
    fixtures: Mapping[str, Any] = field(default_factory=dict)
    ask: Callable[[str], JudgeReply] | None = None
    is_confirmed: bool = False
    test_counts: list[CountedTests] = field(default_factory=list)
    trials: Mapping[str, str] = field(default_factory=dict)
    defers_trials: bool = False

    @property
    def workspace(self) -> Path:
        return self.root

    @cached_property
    def _resolved_root(self) -> Path:
        return self.root.resolve()

    def document(self) -> Document:
        """Return the artifact, read once per session."""
        path = self._artifact_path  # unresolved: resolving it for every rule takes longer than a check
        return self.documents.find_unchanged(path) or self.documents.read(self.resolve_artifact(), path)

    @cached_property
    def _artifact_path(self) -> Path:
        return self.folder / (self.artifact or "")

    def resolve_artifact(self) -> Path:
        """Return the artifact's path with links resolved; raise `CheckError` without one or outside the project."""
        if self.artifact is None:
            raise CheckError("this check reads the artifact, and the rule file names none: add `artifact: PATH`")
        return self.resolve_inside(self.artifact)

    def resolve_inside(self, path: Path) -> Path:
        """Return a path of the rule file with links resolved; raise `CheckError` outside the project."""
        resolved = (self.folder / path).resolve()
        if not resolved.is_relative_to(self._resolved_root):
            raise CheckError(f"{path} leads out of the project {self.root}")
        return resolved

    def list_artifact_inputs(self) -> Inputs | None:
        """Return the artifact as the only input; None without one."""
        return Inputs((self.folder / self.artifact,)) if self.artifact is not None else None


class StrictModel(BaseModel):
    """Base of everything that a rule file may contain: unknown keys and other types are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)


class Check(StrictModel):
    """How a rule is tested. `run` yields one finding per problem; none means that the check passes.

    A check that cannot run raises `CheckError`.
    """

    reads_artifact: ClassVar[bool] = False
    is_slow: ClassVar[bool] = False  # runs a program or asks an agent
    has_trials: ClassVar[bool] = False  # raises `TrialsDeferredError` if its trials are deferred
    proof: ClassVar[Proof] = Proof.OBSERVATION

    def run(self, context: Context) -> Iterable[Finding]:
        raise CheckError(f"{type(self).__name__} has no run(context), asked for in {context.folder}")

    def depends_on(self, context: Context) -> Inputs | None:
        """Return all files and programs that the result depends on; return None if they are not all known."""
        return context.list_artifact_inputs() if self.reads_artifact else None

    def find_obstacle(self, context: Context) -> str:  # noqa: ARG002 - most checks have none
        """Return why the check cannot run here, without running it; empty if no reason is known."""
        return ""


class ContentCheck(Check):
    """A check that reads nothing but the artifact."""

    reads_artifact: ClassVar[bool] = True


def run_check(check: Any, context: Context) -> tuple[Finding, ...]:
    """Run a check and return its findings; accept a bool, a text or a failed assertion of a third party's check."""
    try:
        answer = check.run(context)
        if answer is None or answer is True:
            return ()
        if answer is False:
            return (Finding(expected="the check to pass", found="that it did not"),)
        if isinstance(answer, str):
            return (Finding(expected="the check to pass", found=answer),)
        return (answer,) if isinstance(answer, Finding) else tuple(answer)
    except ContentError as error:
        where = f"{context.documents.display_path(context.resolve_artifact())}:{error.line}"
        return (Finding(expected=error.expected, found=error.found, where=where),)
    except AssertionError as error:
        return (Finding(expected="the check to pass", found=str(error) or "a failed assertion"),)
    except LoopError:
        raise
    except Exception as error:  # a crash of a third party's check
        raise CheckError(f"the check broke: {type(error).__name__}: {error}") from error


def find_obstacle(check: Any, context: Context) -> str:
    """Return why a check cannot run here; empty if no reason is known, as for third-party checks."""
    return str(check.find_obstacle(context)) if isinstance(check, Check) else ""


def format_value(value: object) -> str:
    """Format a value as in a rule file, shortened to 80 characters."""
    text = str(value).lower() if isinstance(value, bool) else "null" if value is None else repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _wrap_text(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


Text = Annotated[str, Field(min_length=1)]
TextList = Annotated[
    list[Text],
    Field(min_length=1),
    BeforeValidator(_wrap_text, json_schema_input_type=Text | Annotated[list[Text], Field(min_length=1)]),
]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0)]
