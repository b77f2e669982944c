"""A new manifest before it is written: its fields, suggestions for them, and the problems of their values."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError
from pydantic.alias_generators import to_snake

from pytest_loop.errors import ManifestError, Problem
from pytest_loop.rules.validation_messages import describe_errors
from pytest_loop.workloads.cases import Workload, build_workload, find_files
from pytest_loop.workloads.manifest import LoadedManifest, Manifest, check_conflicts

REVIEWER_FILE = "reviewer.md"
_REVIEWER_PROMPT = """\
Judge the output for the case {{case}}.

A good output: {good}

Is it good? If not, name everything that is wrong with it.
"""
_PROMPTS = ("*prompt*.md", "*prompt*.txt", "prompts/*", "*.prompt")
_CASES = ("cases/*", "inputs/*", "examples/*", "data/*")
_EXPECTED = ("expected/*", "golden/*")
_RUNNERS = ("run.py", "main.py", "pipeline.py", "extract.py")
_EVALUATORS = ("evaluate.py", "judge.py", "check.py", "score.py")
# Valid values of the required fields, to find the problems of one field alone.
_VALID_VALUES = {"workloadId": "x", "artifactPaths": ["x"], "casePaths": ["x"], "runCommand": "x", "outputPath": "x"}
_WORD = re.compile(r"\w+")


class ValueKind(Enum):
    """The kinds of values of fields, each with the metavar of its flags."""

    TEXT = "TEXT"
    LIST = "GLOB"
    NUMBER = "N"

    def parse(self, text: str) -> Any:
        """Convert an answer to a value; leave a text that is not a number unchanged, for the manifest to refuse."""
        if self is ValueKind.LIST:
            return text.split()
        return int(text) if self is ValueKind.NUMBER and text.isdecimal() else text


@dataclass(frozen=True)
class ManifestField:
    """A field of a manifest, nested at `path` if set. Without a `question`, only the flag of the field sets it.

    The question of an advanced field is asked only after a yes to further questions.
    """

    name: str
    question: str = ""
    kind: ValueKind = ValueKind.TEXT
    is_required: bool = False
    is_advanced: bool = False
    path: tuple[str, ...] = ()

    @property
    def flag(self) -> str:
        return f"--{to_snake(self.name).replace('_', '-')}"

    @property
    def description(self) -> str:
        return self.question or Manifest.model_fields[to_snake(self.name)].description or ""


_LIST, _NUMBER = ValueKind.LIST, ValueKind.NUMBER
FIELDS = (
    ManifestField("workloadId", "What is the workload called?", is_required=True),
    ManifestField("artifactPaths", "Which files may be edited?", _LIST, is_required=True),
    ManifestField("casePaths", "Where are the inputs, one file for each case?", _LIST, is_required=True),
    ManifestField("expectedPaths", "Where are the expected outputs, if there are any?", _LIST),
    ManifestField(
        "runCommand", "Which command runs one case ({case}, and {output} for what it writes)?", is_required=True
    ),
    ManifestField("outputPath", "Where does it write the output of a case?", is_required=True),
    ManifestField("evaluateCommand", "Which command judges an output ({output}, {expected}), if there is one?"),
    ManifestField("reviewCommand", "Is there a second command that judges?", is_advanced=True),
    ManifestField(
        "composerPrompt",
        "Is there a file with a prompt for the composer?",
        is_advanced=True,
        path=("agents", "composer", "promptFile"),
    ),
    ManifestField(
        "reviewerPrompt",
        "Is there a file with a prompt for a reviewing agent?",
        is_advanced=True,
        path=("agents", "reviewer", "promptFile"),
    ),
    ManifestField("domainDocs", "Which documents should the composer know?", _LIST, is_advanced=True),
    ManifestField("maxIterations", "How many iterations at most?", _NUMBER, is_advanced=True),
    ManifestField("buildCommand"),
    ManifestField("cacheStrategy"),
    ManifestField("holdout", kind=_LIST),
    ManifestField("repeat", kind=_NUMBER),
    ManifestField("need"),
    ManifestField("mode"),
    ManifestField("focus", kind=_LIST),
    ManifestField("guard", kind=_LIST),
    ManifestField("caseTimeout", kind=_NUMBER),
    ManifestField("onPlateau"),
    ManifestField("onRegression"),
    ManifestField("decide"),
)
JUDGING_FIELDS = frozenset({"evaluateCommand", "expectedPaths", "reviewCommand", "reviewerPrompt"})
_GLOB_FIELDS = frozenset({"artifactPaths", "casePaths", "expectedPaths", "domainDocs"})


@dataclass
class NewManifest:
    """The values of a manifest by the names of `FIELDS`, and the file to write it to."""

    path: Path
    values: dict[str, Any] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        return self.path.parent.resolve()

    @property
    def has_judge(self) -> bool:
        return any(self.values.get(name) for name in JUDGING_FIELDS)

    def suggest(self, name: str) -> str:
        """Suggest a value from the files of the folder, or return an empty text."""
        if name == "workloadId":
            return self.folder.name
        if name == "maxIterations":
            return str(Manifest.model_fields["max_iterations"].default)
        if name == "outputPath":
            expected = self._find_first(self.values.get("expectedPaths", ()))
            return "out/{case_stem}" + (Path(expected).suffix if expected else ".txt")
        if name == "runCommand":
            script = self._find_first(_RUNNERS)
            return f"python3 {script} {{case}} {{output}}" if script else ""
        if name == "evaluateCommand":
            script = self._find_first(_EVALUATORS)
            expected = " {expected}" if self.values.get("expectedPaths") else ""
            return f"python3 {script} {{output}}{expected}" if script else ""
        globs = {"artifactPaths": _PROMPTS, "casePaths": _CASES, "expectedPaths": _EXPECTED}.get(name, ())
        return next(filter(None, map(self._suggest_files, globs)), "")

    def _suggest_files(self, pattern: str) -> str:
        """Return the file that matches a pattern, the pattern itself if several match, or an empty text."""
        files = list(find_files(self.folder, pattern))
        return "" if not files else files[0] if len(files) == 1 else pattern

    def format_value(self, name: str) -> str:
        """Return the value of a field as a user types it."""
        value = self.values.get(name, "")
        return " ".join(value) if isinstance(value, list) else str(value)

    def _find_first(self, patterns: Iterable[str]) -> str:
        files = (file for pattern in patterns for file in sorted(find_files(self.folder, pattern)))
        return next(files, "")

    def find_problems(self, name: str) -> Iterator[str]:
        """Yield the problems of one field, independent of the others."""
        data = {**_VALID_VALUES, **self._build_data({name: self.values[name]})}
        try:
            Manifest.model_validate(data)
        except ValidationError as error:
            yield from (problem.text for problem in describe_errors(error, Manifest, data))
            return
        for pattern in self.values[name] if name in _GLOB_FIELDS else ():
            if not self._find_first([pattern]):
                yield f"expected files that match {pattern!r}, found none in {self.folder}"

    def _build_data(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values as the data of a manifest; empty ones are left out."""
        data: dict[str, Any] = {}
        for row in FIELDS:
            if values.get(row.name) not in (None, "", []):
                *parents, last = row.path or (row.name,)
                mapping = data
                for parent in parents:
                    mapping = mapping.setdefault(parent, {})
                mapping[last] = values[row.name]
        return data

    def render(self) -> str:
        """Render the manifest in the format of its file."""
        data = self._build_data(self.values)
        if self.path.suffix == ".json":
            return json.dumps(data, indent=2, ensure_ascii=False) + "\n"
        return yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=120, default_flow_style=None)

    def load(self) -> Workload:
        """Build the workload without writing the manifest; raise `ManifestError` with every problem."""
        data = self._build_data(self.values)
        try:
            manifest = Manifest.model_validate(data)
        except ValidationError as error:
            texts = [problem.text for problem in describe_errors(error, Manifest, data)]
            raise ManifestError([Problem(self.path.name, 1, text) for text in texts]) from None
        source = LoadedManifest(self.folder / self.path.name, self.path.name, manifest, lambda _path: 1)
        check_conflicts(source)
        root = Path.cwd()
        return build_workload(source, root if self.folder.is_relative_to(root) else self.folder)

    def write_reviewer(self, good: str) -> None:
        """Write a reviewing agent's prompt from a description of a good output, and set it in `values`."""
        prompt = _REVIEWER_PROMPT.format(good=good)
        (self.folder / REVIEWER_FILE).write_text(prompt, encoding="utf-8")
        self.values["reviewerPrompt"] = REVIEWER_FILE


def list_named_fields(problems: Iterable[str]) -> list[ManifestField]:
    """Return the fields that problems name, or all required fields if they name none."""
    words = {word for problem in problems for word in _WORD.findall(problem.partition("\n")[0])}
    return [row for row in FIELDS if row.name in words] or [row for row in FIELDS if row.is_required]
