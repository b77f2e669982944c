"""The manifest of a workload: its fields, and what is wrong with a file that should be one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, ValidationInfo
from pydantic.alias_generators import to_camel

from pytest_loop.errors import ManifestError, Problem
from pytest_loop.rules.checks.check import format_value
from pytest_loop.rules.checks.command_checks import split_command
from pytest_loop.rules.line_numbers import LineLookup, parse_with_lines
from pytest_loop.rules.rule_schema import MAX_REPEATS, Need
from pytest_loop.rules.syntax import FORMATS, ContentError, read_text
from pytest_loop.rules.validation_messages import describe_errors
from pytest_loop.workloads import placeholders

Model = TypeVar("Model", bound=BaseModel)
NAMES = tuple(f"loop.manifest{suffix}" for suffix in FORMATS)
_NO_SHELL = "put it into a script, or say sh -c '...'"
# Somebody has to judge: a command, a second one, an expected file, or a reviewer.
_JUDGES = ("evaluateCommand", "reviewCommand", "expectedPaths", "agents")


def _command(text: str, info: ValidationInfo) -> str:
    field = to_camel(info.field_name or "")
    known = () if field == "buildCommand" else placeholders.ALL
    if problem := placeholders.complaint(text, field, known):
        raise ValueError(problem)
    command_words(text)
    return text


def _output(text: str) -> str:
    if problem := placeholders.complaint(text, "outputPath", placeholders.OF_THE_CASE):
        raise ValueError(problem)
    return text


@cache
def command_words(text: str) -> tuple[str, ...]:
    """The words of a command of a manifest: it is run without a shell, and the same one for many cases."""
    return tuple(split_command(text, _NO_SHELL))


Text = Annotated[str, Field(min_length=1)]
Command = Annotated[Text, AfterValidator(_command)]
Paths = list[Text]


class _Form(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, alias_generator=to_camel)


class AgentPrompt(_Form):
    """A prompt of the workload's own for one of its agents."""

    prompt_file: Text = Field(default_factory=str)


class Agents(_Form):
    """Who composes fixes, and who reviews outputs."""

    composer: AgentPrompt = Field(default_factory=AgentPrompt)
    reviewer: AgentPrompt = Field(default_factory=AgentPrompt)


class Manifest(_Form):
    """A workload: what may be edited, which cases are run, how, and who judges what comes out.

    What is left out is empty.
    """

    model_config = ConfigDict(json_schema_extra={"anyOf": [{"required": [name]} for name in _JUDGES]})

    workload_id: Text
    artifact_paths: Annotated[Paths, Field(min_length=1, description="the files that may be edited (globs)")]
    case_paths: Annotated[Paths, Field(min_length=1, description="the inputs (globs)")]
    run_command: Annotated[Command, Field(description="run once for each case")]
    output_path: Annotated[Text, AfterValidator(_output), Field(description="what the command writes for a case")]
    evaluate_command: Command = Field(default_factory=str, description="judges an output: by exit code, or JSON")
    expected_paths: Paths = Field(default_factory=list, description="what should come out (globs)")
    review_command: Command = Field(default_factory=str, description="a second judge: both must agree")
    agents: Agents = Field(default_factory=Agents)
    domain_docs: Paths = Field(default_factory=list, description="what a composer should know (globs)")
    max_iterations: Annotated[int, Field(ge=1)] = 10
    build_command: Command = Field(default_factory=str, description="run once before the cases of an iteration")
    cache_strategy: Annotated[
        Literal["force", "smart"], Field(description="force appends --force to runCommand, and keeps no result")
    ] = "smart"
    holdout: Paths = Field(default_factory=list, description="cases that no composer sees (globs)")
    repeat: Annotated[int, Field(ge=1, le=MAX_REPEATS, description="run a noisy case so often")] = 1
    need: Annotated[Need, Field(description="how many repeats must pass")] = "majority"

    @property
    def reviewer(self) -> str:
        """The prompt of the agent that reviews, if there is one."""
        return self.agents.reviewer.prompt_file


@dataclass(frozen=True)
class Source:
    """A manifest with the file that it stands in; its paths start from the folder of that file."""

    path: Path
    shown: str
    manifest: Manifest
    locate: LineLookup

    @property
    def folder(self) -> Path:
        return self.path.parent

    def problem(self, text: str, *path: str | int) -> Problem:
        """Something wrong with what stands at `path` in the file."""
        return Problem(self.shown, self.locate(path), text)


def load(path: Path, root: Path) -> Source:
    """Read a manifest; raises `ManifestError` with every problem of its form."""
    found = form(path, root, Manifest, "workloadId")
    source = Source(path, found.name, found.model, found.locate)
    problems = list(_together(source))
    if problems:
        raise ManifestError(problems)
    return source


@dataclass(frozen=True)
class Form(Generic[Model]):
    """A file of a certain form: its name from the root, what stands in it, and where."""

    name: str
    model: Model
    locate: LineLookup


def form(path: Path, root: Path, model: type[Model], first: str) -> Form[Model]:
    """Read a file of this form, whose first key is usually `first`; raises `ManifestError` with every problem."""
    name = path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)
    kind = FORMATS.get(path.suffix.lower())
    if kind is None:
        problem = f"expected a .json, .yaml, .yml or .toml file, found {path.name!r}"
        raise ManifestError([Problem(name, 1, problem)])
    try:
        data, duplicates, locate = parse_with_lines(read_text(path), kind)
    except ContentError as error:
        raise ManifestError([Problem(name, error.line, str(error))]) from None
    problems = [Problem(name, error.line, str(error)) for error in duplicates]
    if not isinstance(data, dict):
        found = "an empty file" if data is None else format_value(data)
        raise ManifestError([*problems, Problem(name, 1, f"expected a mapping with `{first}`, found {found}")])
    try:
        made = model.model_validate(data)
    except ValidationError as error:
        problems += [Problem(name, locate(one.path), one.text) for one in describe_errors(error, model, data)]
    if problems:
        raise ManifestError(problems)
    return Form(name, made, locate)


def _together(source: Source) -> Iterator[Problem]:
    """What is only wrong because of another field."""
    manifest = source.manifest
    if not (manifest.evaluate_command or manifest.review_command or manifest.expected_paths or manifest.reviewer):
        others = "or `expectedPaths`, `reviewCommand` or a reviewer's `promptFile` instead"
        yield source.problem(f"expected the key `evaluateCommand` ({others}), found none")
    if manifest.expected_paths:
        return
    for field in ("run_command", "evaluate_command", "review_command"):
        if "expected" in placeholders.named(getattr(manifest, field)):
            name = to_camel(field)
            yield source.problem(f"expected `expectedPaths` for {{expected}} in `{name}`, found none", name)


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a manifest, for editors."""
    whole = Manifest.model_json_schema()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **whole,
        "title": "Manifest of a workload of pytest-agent-loop",
    }
