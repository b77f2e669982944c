"""The manifest of a workload: its fields, its placeholders, and the problems of a manifest file."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, ValidationInfo
from pydantic.alias_generators import to_camel

from pytest_loop.errors import ManifestError, Problem
from pytest_loop.rules.checks.check import format_value
from pytest_loop.rules.checks.command_checks import split_command
from pytest_loop.rules.document import format_path
from pytest_loop.rules.line_numbers import LineLookup, parse_with_lines
from pytest_loop.rules.rule_schema import MAX_REPEATS, Need
from pytest_loop.rules.syntax import DATA_FORMATS_BY_SUFFIX, ContentError, read_text
from pytest_loop.rules.validation_messages import describe_errors
from pytest_loop.settings.workload_options import WorkloadSettings

Model = TypeVar("Model", bound=BaseModel)
MANIFEST_NAMES = tuple(f"loop.manifest{suffix}" for suffix in DATA_FORMATS_BY_SUFFIX)
_NO_SHELL = "put it into a script, or say sh -c '...'"
# A manifest needs at least one of these keys: they decide whether an output is right.
_JUDGING_KEYS = ("evaluateCommand", "reviewCommand", "expectedPaths", "agents")
CASE_PLACEHOLDERS = ("case", "case_name", "case_stem", "case_dir")
PLACEHOLDERS = (*CASE_PLACEHOLDERS, "output", "expected")
# A word in braces; doubled braces are literal, as in `awk {{print}}`.
_BRACES = re.compile(r"\{\{(?P<literal>\w+)\}\}|\{(?P<name>\w+)\}")


def find_placeholders(text: str) -> tuple[str, ...]:
    """Return the placeholders in a text, known or not, each once."""
    return tuple(dict.fromkeys(match["name"] for match in _BRACES.finditer(text) if match["name"]))


def fill_placeholders(text: str, values: Mapping[str, str]) -> str:
    """Replace the placeholders in a text; a missing value raises `KeyError`."""
    return _BRACES.sub(lambda match: f"{{{match['literal']}}}" if match["literal"] else values[match["name"]], text)


def check_placeholders(text: str, field: str, allowed: Collection[str] = PLACEHOLDERS) -> str:
    """Return the text; raise `ValueError` if it has a placeholder that the field does not allow."""
    unknown = next((name for name in find_placeholders(text) if name not in allowed), None)
    if unknown is None:
        return text
    offered = ", ".join(f"{{{name}}}" for name in allowed) if allowed else "no placeholder"
    hint = f" (for the braces themselves write {{{{{unknown}}}}})" if unknown not in PLACEHOLDERS else ""
    raise ValueError(f"expected {offered} in `{field}`, found {{{unknown}}}{hint}")


def _check_command(text: str, info: ValidationInfo) -> str:
    field = to_camel(info.field_name or "")
    check_placeholders(text, field, () if field == "buildCommand" else PLACEHOLDERS)
    split_manifest_command(text)
    return text


def _check_output(text: str) -> str:
    return check_placeholders(text, "outputPath", CASE_PLACEHOLDERS)


@cache
def split_manifest_command(text: str) -> tuple[str, ...]:
    """Return the words of a command, which runs without a shell; cached because all cases share it."""
    return tuple(split_command(text, _NO_SHELL))


Text = Annotated[str, Field(min_length=1)]
Command = Annotated[Text, AfterValidator(_check_command)]
Paths = list[Text]


class _ManifestModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, alias_generator=to_camel)


class AgentPrompt(_ManifestModel):
    """A prompt of the workload's own for one of its agents."""

    prompt_file: Text = Field(default_factory=str)


class Agents(_ManifestModel):
    """The agents that compose fixes and review outputs."""

    composer: AgentPrompt = Field(default_factory=AgentPrompt)
    reviewer: AgentPrompt = Field(default_factory=AgentPrompt)


class Manifest(_ManifestModel):
    """A workload: what may be edited, which cases are run, how, and who judges what comes out.

    What is left out is empty.
    """

    model_config = ConfigDict(json_schema_extra={"anyOf": [{"required": [name]} for name in _JUDGING_KEYS]})

    workload_id: Text
    artifact_paths: Annotated[Paths, Field(min_length=1, description="the files that may be edited (globs)")]
    case_paths: Annotated[Paths, Field(min_length=1, description="the inputs (globs)")]
    run_command: Annotated[Command, Field(description="run once for each case")]
    output_path: Annotated[
        Text, AfterValidator(_check_output), Field(description="the file that the command writes for a case")
    ]
    evaluate_command: Command = Field(default_factory=str, description="judges an output by its exit code or JSON")
    expected_paths: Paths = Field(default_factory=list, description="the expected outputs (globs)")
    review_command: Command = Field(default_factory=str, description="a second judge: both must agree")
    agents: Agents = Field(default_factory=Agents)
    domain_docs: Paths = Field(default_factory=list, description="documents that the composer should read (globs)")
    max_iterations: Annotated[int, Field(ge=1)] = 10
    build_command: Command = Field(default_factory=str, description="run once before the cases of an iteration")
    cache_strategy: Annotated[
        Literal["force", "smart"], Field(description="force appends --force to runCommand, and keeps no result")
    ] = "smart"
    holdout: Paths = Field(default_factory=list, description="cases that no composer sees (globs)")
    repeat: Annotated[int, Field(ge=1, le=MAX_REPEATS, description="maximum number of runs of a noisy case")] = 1
    need: Annotated[Need, Field(description="how many repeats must pass")] = "majority"
    mode: Literal["precision", "exploration", "convergence", "custom"] | None = Field(
        default=None, description="how to experiment"
    )
    focus: Paths = Field(default_factory=list, description="cases to look at first (globs)")
    guard: Paths = Field(default_factory=list, description="cases that must not become worse (globs)")
    case_timeout: Annotated[float, Field(gt=0, strict=False)] | None = Field(
        default=None, description="stop a command of a case after this many seconds"
    )
    on_plateau: Literal["ask", "continue", "stop"] | None = Field(
        default=None, description="what to do when no case improves any more"
    )
    on_regression: Literal["ask", "accept", "different", "stop"] | None = Field(
        default=None, description="what to do when a case becomes worse"
    )
    decide: Literal["ask", "recommended"] | None = Field(
        default=None, description="who chooses among the proposed edits"
    )

    @property
    def reviewer(self) -> str:
        """The prompt file of the reviewing agent, if there is one."""
        return self.agents.reviewer.prompt_file

    @property
    def commands(self) -> list[str]:
        """The commands that are set, in the order in which they run."""
        return list(filter(None, (self.build_command, self.run_command, self.evaluate_command, self.review_command)))


def choose_setting(name: str, settings: WorkloadSettings, manifest: Manifest, flags: Collection[str] = ()) -> Any:
    """Return a setting from the command line, or else from the manifest, or else from the ini file."""
    is_on_command_line = name in settings.workload or f"--loop-{name}" in flags
    return settings.values[name] if is_on_command_line else getattr(manifest, name) or settings.values[name]


@dataclass(frozen=True)
class LoadedManifest:
    """A manifest and its file; its paths are relative to the folder of the file."""

    path: Path
    display_name: str
    manifest: Manifest
    find_line: LineLookup

    @property
    def folder(self) -> Path:
        return self.path.parent

    def build_problem(self, text: str, *path: str | int) -> Problem:
        """Build a problem with the value at `path` in the file."""
        return Problem(self.display_name, self.find_line(path), text)


def load_manifest(path: Path, root: Path) -> LoadedManifest:
    """Load a manifest; raise `ManifestError` with all problems of single fields, else with those between fields."""
    file = load_file(path, root, Manifest, "workloadId")
    loaded = LoadedManifest(path, file.display_name, file.model, file.find_line)
    check_conflicts(loaded)
    return loaded


def check_conflicts(loaded: LoadedManifest) -> None:
    """Raise `ManifestError` with every problem between fields."""
    if problems := list(_find_conflicts(loaded)):
        raise ManifestError(problems)


@dataclass(frozen=True)
class LoadedFile(Generic[Model]):
    """A parsed file: its path as messages show it, its content, and a function that finds the lines of its values."""

    display_name: str
    model: Model
    find_line: LineLookup


def load_file(path: Path, root: Path, model: type[Model], required_key: str) -> LoadedFile[Model]:
    """Load a file as a model; raise `ManifestError` with every problem. For an empty file, ask for `required_key`."""
    name = format_path(path, root)
    format_name = DATA_FORMATS_BY_SUFFIX.get(path.suffix.lower())
    if format_name is None:
        problem = f"expected a .json, .yaml, .yml or .toml file, found {path.name!r}"
        raise ManifestError([Problem(name, 1, problem)])
    try:
        data, duplicates, find_line = parse_with_lines(read_text(path), format_name)
    except ContentError as error:
        raise ManifestError([Problem(name, error.line, str(error))]) from None
    problems = [Problem(name, error.line, str(error)) for error in duplicates]
    if not isinstance(data, dict):
        value = "an empty file" if data is None else format_value(data)
        raise ManifestError([*problems, Problem(name, 1, f"expected a mapping with `{required_key}`, found {value}")])
    try:
        content = model.model_validate(data)
    except ValidationError as error:
        problems += [Problem(name, find_line(fault.path), fault.text) for fault in describe_errors(error, model, data)]
    if problems:
        raise ManifestError(problems)
    return LoadedFile(name, content, find_line)


def _find_conflicts(loaded: LoadedManifest) -> Iterator[Problem]:
    """Yield a problem if no field evaluates outputs, and for each use of `{expected}` without expected files."""
    manifest = loaded.manifest
    if not (manifest.evaluate_command or manifest.review_command or manifest.expected_paths or manifest.reviewer):
        others = "or `expectedPaths`, `reviewCommand` or a reviewer's `promptFile` instead"
        yield loaded.build_problem(f"expected the key `evaluateCommand` ({others}), found none")
    for field in ("run_command", "evaluate_command", "review_command"):
        if "expected" in find_placeholders(getattr(manifest, field)) and not manifest.expected_paths:
            name = to_camel(field)
            yield loaded.build_problem(f"expected `expectedPaths` for {{expected}} in `{name}`, found none", name)


def build_json_schema() -> dict[str, Any]:
    """Return the JSON Schema of a manifest, for editors."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **Manifest.model_json_schema(),
        "title": "Manifest of a workload of pytest-agent-loop",
    }
