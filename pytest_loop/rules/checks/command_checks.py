"""Commands and the numbers they print."""

from __future__ import annotations

import json
import math
import shlex
import shutil
from abc import abstractmethod
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from pytest_loop.core.model.rules import Finding, Proof
from pytest_loop.errors import CheckError
from pytest_loop.processes import child
from pytest_loop.rules import patterns
from pytest_loop.rules.checks.check import Check, Context, Inputs, Seconds, TextList, format_value
from pytest_loop.rules.checks.data_checks import OPERATORS, Comparison, JmesPath, Number, run_query

DEFAULT_TIMEOUT = 60.0
_OPERATORS = frozenset("();<>|&")


def _pattern(text: str) -> str:
    if problem := patterns.find_pattern_error(text):
        raise ValueError(f"expected a regular expression, found {problem}")
    return text


Pattern = Annotated[str, AfterValidator(_pattern)]


def split_command(command: str, advice: str = "add `shell: true`") -> list[str]:
    """The words of a command that is run without a shell; what only a shell understands is refused, with an advice."""
    try:
        split = list(shlex.shlex(command, posix=True, punctuation_chars=True))
        plain = shlex.split(command)
    except ValueError as error:
        raise ValueError(f"expected a command, found {format_value(command)} ({str(error).lower()})") from None
    if not plain:
        raise ValueError("expected a command, found an empty text")
    strange = next((word for word in split if word and set(word) <= _OPERATORS), None)
    if strange:
        raise ValueError(f"expected a plain command, found the shell operator {strange!r}: {advice}")
    return plain


def fill_placeholders(text: str, context: Context, *, quoted: bool) -> str:
    """`{artifact}` and `{workspace}` replaced by their paths; other braces stay."""
    paths: dict[str, Path] = {"{workspace}": context.workspace}
    if "{artifact}" in text:
        paths["{artifact}"] = context.path()
    for name, path in paths.items():
        text = text.replace(name, shlex.quote(str(path)) if quoted else str(path))
    return text


class _Runs(Check):
    is_quiet: ClassVar[bool] = True
    is_slow: ClassVar[bool] = True
    proof: ClassVar[Proof] = Proof.EXECUTION

    timeout: Seconds = DEFAULT_TIMEOUT
    shell: bool = False
    expect_exit: Annotated[int, Field(ge=-255, le=255)] = 0
    inputs: TextList | None = Field(
        default=None, description="all files that it reads (globs): its verdict is kept while none of them changes"
    )

    @property
    @abstractmethod
    def line(self) -> str:
        """The command as it was written."""

    @model_validator(mode="after")
    def _words(self) -> Any:
        if not self.shell:
            split_command(self.line)
        return self

    def depends_on(self, context: Context) -> Inputs | None:
        """What the person declared, the artifact where the command names it, and the program itself."""
        if self.inputs is None:
            return None
        files = {path for pattern in self.inputs for path in context.folder.glob(pattern) if path.is_file()}
        if "{artifact}" in self.line:
            files.add(context.path())
        program = shutil.which(self.line.split()[0], path=None)
        return Inputs(tuple(sorted(files)), (Path(program),) if program else ())

    def _completed(self, context: Context) -> child.CommandResult:
        if self.shell:
            command: str | list[str] = fill_placeholders(self.line, context, quoted=True)
        else:
            command = [fill_placeholders(word, context, quoted=False) for word in split_command(self.line)]
        try:
            return child.run_command(child.Command(command, context.folder, self.timeout))
        except child.CannotStartError as error:
            raise CheckError(str(error)) from None

    def _unfinished(self, done: child.CommandResult) -> Finding | None:
        """What is wrong with the way in which the command ended, if anything is."""
        if done.ending is child.Ending.DEADLINE:
            found = "it still running, and ended it"
            return Finding(
                expected=f"`{self.line}` to end within {self.timeout:g} s", found=found, detail=_tail(done.output)
            )
        if done.exit_code != self.expect_exit:
            found = f"exit code {done.exit_code}" if done.exit_code >= 0 else f"an end by signal {-done.exit_code}"
            return Finding(
                expected=f"exit code {self.expect_exit} of `{self.line}`", found=found, detail=_tail(done.output)
            )
        return None


class Command(_Runs):
    """A command ends with `expect_exit`, and its output matches `expect_output` where that is given."""

    command: Annotated[str, Field(min_length=1)]
    expect_output: Pattern | None = None

    @property
    def line(self) -> str:
        return self.command

    def run(self, context: Context) -> Iterable[Finding]:
        done = self._completed(context)
        if problem := self._unfinished(done):
            yield problem
        if self.expect_output and not patterns.find_matches(self.expect_output, done.output):
            found = "other output" if done.output.strip() else "no output"
            expected = f"output of `{self.command}` matching {format_value(self.expect_output)}"
            yield Finding(expected=expected, found=found, detail=_tail(done.output))


class Measured(BaseModel):
    """A command, where its output holds the number, and what the number must be."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)

    command: Annotated[str, Field(min_length=1)]
    pattern: Pattern | None = Field(default=None, description="the number is the first group, or the whole match")
    json_: JmesPath | None = Field(default=None, alias="json", description="a JMESPath expression over the output")
    op: Comparison = ">="
    value: Annotated[Number, Field(allow_inf_nan=False)]

    @model_validator(mode="after")
    def _one_source(self) -> Measured:
        if (self.pattern is None) == (self.json_ is None):
            raise ValueError(f"expected either pattern or json, found {'none' if self.pattern is None else 'both'}")
        return self


class Metric(_Runs):
    """The number that a command prints compares as asked."""

    proof: ClassVar[Proof] = Proof.MEASUREMENT

    metric: Measured

    @property
    def line(self) -> str:
        return self.metric.command

    def run(self, context: Context) -> Iterable[Finding]:
        done = self._completed(context)
        if problem := self._unfinished(done):
            yield problem
            return
        number, missing = self._number(done)
        expected = f"a number {self.metric.op} {self.metric.value:g} from `{self.line}`"
        if number is None:
            yield Finding(expected=expected, found=missing, detail=_tail(done.output))
        elif not OPERATORS[self.metric.op](number, self.metric.value):
            yield Finding(expected=expected, found=f"{number:g}")

    def _number(self, done: child.CommandResult) -> tuple[float | None, str]:
        if self.metric.json_ is None:
            found = patterns.find_matches(self.metric.pattern or "", done.output)
            if not found:
                return None, f"no match of {format_value(self.metric.pattern)} in its output"
            return _finite(found[0].text.replace(",", "").rstrip("%"))
        try:
            data = json.loads(done.stdout)
        except (ValueError, RecursionError):
            return None, "output that is not JSON"
        return _finite(run_query(self.metric.json_, data))


def _finite(value: Any) -> tuple[float | None, str]:
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        number = math.nan
    return (number, "") if math.isfinite(number) else (None, f"{format_value(value)}, which is not a finite number")


def _tail(output: str, lines: int = 12) -> str:
    return "\n".join(output.strip().splitlines()[-lines:])


class Executable(Command):
    """The form of other loop tools, `{type: executable, command, expected}`: a line for a shell."""

    model_config = ConfigDict(extra="allow")

    shell: bool = True
