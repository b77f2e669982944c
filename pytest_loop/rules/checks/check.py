"""What every check is: a frozen model of its rule-file form with a `run(context)` that says what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from pytest_loop.core.model.rules import Finding, Proof
from pytest_loop.errors import CheckError, LoopError
from pytest_loop.rules.document import Document, Documents
from pytest_loop.rules.syntax import ContentError


class Answer(NamedTuple):
    """What a judge says: whether it is so, why, and the words that decide it."""

    passed: bool
    reason: str = ""
    evidence: str = ""


class Inputs(NamedTuple):
    """What a check looks at: files, and programs that it runs."""

    files: tuple[Path, ...] = ()
    tools: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Context:
    """What a check may look at: the artifact, the folder of its rule file, the project, the fixtures it asked for.

    `name` is what the rule file calls the artifact, where a run keeps it elsewhere. `ask` puts a question to a judge.
    """

    root: Path
    folder: Path
    artifact: Path | None = None
    documents: Documents = field(default_factory=lambda: Documents(Path()))
    fixtures: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""
    ask: Callable[[str], Answer] | None = None
    is_confirmed: bool = False

    @property
    def workspace(self) -> Path:
        return self.root

    def document(self) -> Document:
        """The artifact, read once for all checks of the session."""
        if self.artifact is not None and (known := self.documents.unchanged(self._place)):
            return known
        return self.documents.read(self.path(), self.name, self._place)

    @cached_property
    def _place(self) -> Path:
        return self.folder / (self.artifact or "")

    def path(self) -> Path:
        """The artifact's path; it must stay inside the project even if somebody made it a link."""
        if self.artifact is None:
            raise CheckError("this check reads the artifact, and the rule file names none: add `artifact: PATH`")
        return self.inside(self.artifact)

    def only_artifact(self) -> Inputs | None:
        """What a check depends on that looks at nothing but the artifact."""
        return Inputs((self._place,)) if self.artifact is not None else None

    def inside(self, path: Path) -> Path:
        resolved = (self.folder / path).resolve()
        if not resolved.is_relative_to(self.root.resolve()):
            raise CheckError(f"{path} leads out of the project {self.root}")
        return resolved


class Check(BaseModel):
    """How a rule is judged. `run` gives what is wrong; nothing means that the check passes.

    It raises `CheckError` where it cannot be carried out.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)
    reads_artifact: ClassVar[bool] = False
    is_quiet: ClassVar[bool] = False  # runs no code of the user, and prints nothing
    is_slow: ClassVar[bool] = False  # runs or asks somebody, which takes its time
    proof: ClassVar[Proof] = Proof.OBSERVATION

    def run(self, context: Context) -> Iterable[Finding]:
        raise CheckError(f"{type(self).__name__} has no run(context), asked for in {context.folder}")

    def depends_on(self, context: Context) -> Inputs | None:
        """All that the answer depends on; None where that is not certain."""
        return context.only_artifact() if self.reads_artifact else None


def run_check(check: Any, context: Context) -> tuple[Finding, ...]:
    """Run a check, of ours or of a third party, and make its answer one of findings."""
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
        where = context.documents.shown(context.inside(context.artifact)) if context.artifact else ""
        return (Finding(expected=error.expected, found=error.found, where=f"{where}:{error.line}" if where else ""),)
    except AssertionError as error:
        return (Finding(expected="the check to pass", found=str(error) or "a failed assertion"),)
    except LoopError:
        raise
    except Exception as error:  # a third party's check that broke; what it says is all that helps
        raise describe_crash(error) from error


def describe_crash(error: Exception) -> CheckError:
    """What becomes of an error that a check has not foreseen."""
    return CheckError(f"the check broke: {type(error).__name__}: {error}")


def format_value(value: object) -> str:
    """A value as a person would write it in a rule file, on one line and not longer than needed."""
    text = (
        {True: "true", False: "false"}[value] if isinstance(value, bool) else "null" if value is None else repr(value)
    )
    return text if len(text) <= 80 else text[:77] + "..."


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


TextList = Annotated[
    list[Annotated[str, Field(min_length=1)]],
    Field(min_length=1),
    BeforeValidator(_listed),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "minLength": 1},
                {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1},
            ]
        }
    ),
]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0)]
