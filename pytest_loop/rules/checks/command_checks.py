"""Checks that run a command: its exit code, its output, a number that it prints."""

from __future__ import annotations

import json
import math
import os
import re
import shlex
import shutil
from abc import abstractmethod
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import ConfigDict, Field, model_validator

from pytest_loop.core.judging.test_counts import count_tests
from pytest_loop.core.model.rules import Finding, Proof
from pytest_loop.errors import CheckError
from pytest_loop.processes import child
from pytest_loop.rules import patterns
from pytest_loop.rules.checks.check import Check, Context, Inputs, Seconds, StrictModel, Text, TextList, format_value
from pytest_loop.rules.checks.data_checks import OPERATORS, Comparison, JmesPath, Number, run_query

DEFAULT_TIMEOUT = 60.0
_FIXED_ASSERT = Path(__file__).with_name("fixed_assert.cjs")
_SHOWN_LINES = 12
_SHELL_OPERATORS = frozenset("();<>|&")
# A file and a line, as `shop.py:3` or `shop.ts(3,5)`.
_PLACE = re.compile(r"(?<![\w./-])(/?(?:[\w.@+-]+/)*[\w.@+-]+\.\w+)[:(](\d+)")
# The last line of output of sh, bash and `python -m` if a program or module is not installed.
_MISSING_TOOL = re.compile(
    r"(?:(?<=[ :])(?P<program>[^\s:]+): (?:command )?not found|: No module named '?(?P<module>[\w.]+)'?)\s*\Z"
)
# The message of npx if a package is not installed; the programs that run the scripts of a package.
_MISSING_PACKAGE = re.compile(r"npx canceled due to missing packages[^\[]*\[\"(?P<package>@?[^\"@]+)")
_PACKAGE_MANAGERS = frozenset(("npm", "pnpm", "yarn", "bun"))


def split_command(command: str, advice: str = "add `shell: true`") -> list[str]:
    """Split a command that runs without a shell; raise `ValueError` with advice for shell operators."""
    try:
        symbols = list(shlex.shlex(command, posix=True, punctuation_chars=True))
        words = shlex.split(command)
    except ValueError as error:
        raise ValueError(f"expected a command, found {format_value(command)} ({str(error).lower()})") from None
    if not words:
        raise ValueError("expected a command, found an empty text")
    operator = next((symbol for symbol in symbols if symbol and set(symbol) <= _SHELL_OPERATORS), None)
    if operator:
        raise ValueError(f"expected a plain command, found the shell operator {operator!r}: {advice}")
    return words


def fill_placeholders(text: str, context: Context, *, for_shell: bool) -> str:
    """Replace `{artifact}` and `{workspace}` by paths, quoted if `for_shell`; leave other braces unchanged."""
    paths: dict[str, Path] = {"{workspace}": context.workspace}
    if "{artifact}" in text:
        paths["{artifact}"] = context.resolve_artifact()
    for name, path in paths.items():
        text = text.replace(name, shlex.quote(str(path)) if for_shell else str(path))
    return text


def _is_program_judged(program: str, context: Context) -> bool:
    """Return whether the program is the target of the rule: the artifact or, without an artifact, a project file."""
    is_from_project = "/" in program and (context.folder / program).resolve().is_relative_to(context.root.resolve())
    return "{artifact}" in program or (context.artifact is None and is_from_project)


def _find_missing_tool(command_line: str, completed: child.CommandResult) -> str:
    """Return the program, module or package that a shell, Python or npx reports as not installed; empty without one.

    Ignore a name that the command does not contain, unless the command is a package manager: its scripts call other
    programs.
    """
    words = re.split(r"[\s;&|()]+", command_line)
    if "npx" in words and (package := _MISSING_PACKAGE.search(completed.stderr)):
        return package["package"]
    match = _MISSING_TOOL.search(completed.stderr)
    name = (match["program"] or match["module"] or "") if match else ""
    is_named = name in words if match and match["program"] else name and ("-m", name) in pairwise(words)
    is_named = is_named or (completed.exit_code == 127 and "/" not in name and not _PACKAGE_MANAGERS.isdisjoint(words))
    return name if is_named else ""


def _protect_assertions(root: Path) -> dict[str, str] | None:
    """Return an environment in which Node.js forbids replacing its assertions; None outside a Node.js project."""
    if not (root / "package.json").exists():
        return None
    options = f'{os.environ.get("NODE_OPTIONS", "")} --require "{_FIXED_ASSERT}"'.strip()
    return {**os.environ, "NODE_OPTIONS": options}


class _CommandCheck(Check):
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
    def command_line(self) -> str:
        """The command as written."""

    @model_validator(mode="after")
    def _validate_command(self) -> Any:
        if not self.shell:
            split_command(self.command_line)
        return self

    def depends_on(self, context: Context) -> Inputs | None:
        """Return the declared inputs, the artifact if the command names it, and the program."""
        if self.inputs is None:
            return None
        files = {path for pattern in self.inputs for path in context.folder.glob(pattern) if path.is_file()}
        if "{artifact}" in self.command_line:
            files.add(context.resolve_artifact())
        program = shutil.which(self.command_line.split()[0], path=None)
        return Inputs(tuple(sorted(files)), (Path(program),) if program else ())

    def find_obstacle(self, context: Context) -> str:
        """Return a message if the program is not installed; return "" for a path, which may be built later."""
        program = "" if self.shell else split_command(self.command_line)[0]
        if not program or "/" in program or "{" in program:
            return ""
        return child.find_program_problem(program, context.folder) or ""

    def _execute(self, context: Context) -> child.CommandResult:
        if self.shell:
            command: str | list[str] = fill_placeholders(self.command_line, context, for_shell=True)
        else:
            command = [fill_placeholders(word, context, for_shell=False) for word in split_command(self.command_line)]
        try:
            environment = _protect_assertions(context.root)
            completed = child.run_command(child.Command(command, context.folder, self.timeout, env=environment))
        except child.CannotStartError as error:
            if _is_program_judged(split_command(self.command_line)[0], context):
                raise AssertionError(str(error)) from None
            raise CheckError(str(error)) from None
        if completed.exit_code != self.expect_exit and (tool := _find_missing_tool(self.command_line, completed)):
            raise CheckError(f"cannot run `{self.command_line}`: {tool} is not installed here")
        if count := count_tests(completed.output):
            context.test_counts.append(count)
        return completed

    def _find_bad_ending(self, completed: child.CommandResult, context: Context) -> Finding | None:
        """Return a finding for a timeout or an unexpected exit code, or None."""
        if completed.ending is child.Ending.DEADLINE:
            expected = f"`{self.command_line}` to end within {self.timeout:g} s"
            found = "it still running, and ended it"
        elif completed.exit_code != self.expect_exit:
            code = completed.exit_code
            expected = f"exit code {self.expect_exit} of `{self.command_line}`"
            found = f"exit code {code}" if code >= 0 else f"an end by signal {-code}"
        else:
            return None
        where = _find_place(completed.output, context)
        return Finding(expected=expected, found=found, detail=get_last_lines(completed.output), where=where)


class Command(_CommandCheck):
    """A command ends with `expect_exit`, and its output matches `expect_output` where that is given."""

    command: Text
    expect_output: patterns.Pattern | None = None

    @property
    def command_line(self) -> str:
        return self.command

    def run(self, context: Context) -> Iterable[Finding]:
        completed = self._execute(context)
        if finding := self._find_bad_ending(completed, context):
            yield finding
        if self.expect_output and not patterns.find_matches(self.expect_output, completed.output):
            found = "other output" if completed.output.strip() else "no output"
            expected = f"output of `{self.command}` matching {format_value(self.expect_output)}"
            yield Finding(expected=expected, found=found, detail=get_last_lines(completed.output))


class Measured(StrictModel):
    """A command, where its output holds the number, and what the number must be."""

    command: Text
    pattern: patterns.Pattern | None = Field(
        default=None, description="the number is the first group, or the whole match"
    )
    json_: JmesPath | None = Field(default=None, alias="json", description="a JMESPath expression over the output")
    op: Comparison = ">="
    value: Annotated[Number, Field(allow_inf_nan=False)]

    @model_validator(mode="after")
    def _validate_source(self) -> Measured:
        if (self.pattern is None) == (self.json_ is None):
            raise ValueError(f"expected either pattern or json, found {'none' if self.pattern is None else 'both'}")
        return self


class Metric(_CommandCheck):
    """The number that a command prints compares as asked."""

    proof: ClassVar[Proof] = Proof.MEASUREMENT

    metric: Measured

    @property
    def command_line(self) -> str:
        return self.metric.command

    def run(self, context: Context) -> Iterable[Finding]:
        completed = self._execute(context)
        if finding := self._find_bad_ending(completed, context):
            yield finding
            return
        expected = f"a number {self.metric.op} {self.metric.value:g} from `{self.command_line}`"
        try:
            number = self._read_number(completed)
        except ValueError as error:
            yield Finding(expected=expected, found=str(error), detail=get_last_lines(completed.output))
            return
        if not OPERATORS[self.metric.op](number, self.metric.value):
            yield Finding(expected=expected, found=f"{number:g}")

    def measure(self, context: Context) -> float:
        """Return the number that the command prints, whatever its exit code is; raise `ValueError` without one."""
        return self._read_number(self._execute(context))

    def _read_number(self, completed: child.CommandResult) -> float:
        if self.metric.json_ is None:
            matches = patterns.find_matches(self.metric.pattern or "", completed.output)
            if not matches:
                raise ValueError(f"no match of {format_value(self.metric.pattern)} in its output")
            return _to_finite(matches[0].text.replace(",", "").rstrip("%"))
        try:
            data = json.loads(completed.stdout)
        except (ValueError, RecursionError):
            raise ValueError("output that is not JSON") from None
        return _to_finite(run_query(self.metric.json_, data))


def _to_finite(value: Any) -> float:
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{format_value(value)}, which is not a finite number")
    return number


def _find_place(output: str, context: Context) -> str:
    """Return the first `file:line` of the project in an output; empty without one, or if tests ran."""
    root = context.root.resolve()
    for match in () if context.test_counts else _PLACE.finditer(output):
        path = (context.folder / match[1]).resolve()
        if path.is_relative_to(root) and path.is_file():
            return f"{path.relative_to(root).as_posix()}:{match[2]}"
    return ""


def get_last_lines(output: str) -> str:
    """Return the last lines of an output, for a message."""
    return "\n".join(output.strip().splitlines()[-_SHOWN_LINES:])


class Executable(Command):
    """The form of other loop tools, `{type: executable, command, expected}`: a line for a shell."""

    model_config = ConfigDict(extra="allow")

    shell: bool = True
