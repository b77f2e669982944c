"""Read rule files and follow the chain of files that they extend."""

from __future__ import annotations

import copy
import functools
import operator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pytest_loop.core.model.rules import INFERRED_FILE
from pytest_loop.errors import Problem
from pytest_loop.rules.checks.check import format_value
from pytest_loop.rules.document import format_path
from pytest_loop.rules.line_numbers import LineLookup, ParsedText, parse_with_lines
from pytest_loop.rules.rule_schema import RuleFile
from pytest_loop.rules.syntax import DATA_FORMATS_BY_SUFFIX, ContentError, ValuePath, read_text
from pytest_loop.rules.validation_messages import describe_errors

TEMPLATES = Path(__file__).parent / "templates"
MAX_EXTENDS = 10


@dataclass
class RuleSource:
    """One rule file of a chain; its paths start in `folder`. The display names are for messages."""

    path: Path
    display_name: str
    folder: Path
    folder_display_name: str
    model: RuleFile
    find_line: LineLookup
    problems: list[Problem]

    def add_problem(self, text: str, *path: str | int) -> None:
        """Add a problem with the value at `path` in the file."""
        self.problems.append(Problem(self.display_name, self.find_line(path), text))


def list_templates() -> list[str]:
    """Return the names of the templates in the package."""
    return sorted(path.name.removesuffix(".rules.yaml") for path in TEMPLATES.glob("*.rules.yaml"))


def read_template(name: str) -> RuleFile:
    """Return the template with this name, or an empty rule file for an empty name."""
    return read_chain(TEMPLATES / f"{name}.rules.yaml", TEMPLATES, [])[0].model if name else RuleFile()


def name_source(source: str) -> str:
    """Return how messages name a rule file: a template by its name, others by their path."""
    path = Path(source)
    return name_template(path.name.removesuffix(".rules.yaml")) if path.parent == TEMPLATES else source


def name_template(name: str) -> str:
    """Return how messages name a template."""
    return f"template {name}"


def read_chain(path: Path, root: Path, problems: list[Problem]) -> list[RuleSource]:
    """Return a rule file, then the files it extends, nearest first; stop at an invalid one, and add to `problems`."""
    # Templates, and inferred rules in the folder of a run, have paths that start at the root.
    folder = root if path.parent == TEMPLATES or path.name == INFERRED_FILE else path.parent
    chain: list[RuleSource] = []
    extended: Path | None = path
    while extended and (source := _read_source(extended, root, folder, problems)):
        chain.append(source)
        extended = _find_extended(chain, root)
        folder = extended.parent if extended and extended.parent != TEMPLATES else folder
    return chain


def _find_extended(chain: list[RuleSource], root: Path) -> Path | None:
    source = chain[-1]
    path = _resolve_extends(source, root) if source.model.extends else None
    visited = [link.path for link in chain]
    if path and (path in visited or len(visited) > MAX_EXTENDS):
        names = " -> ".join(link.name for link in [*visited, path])
        source.add_problem(f"expected files that extend each other in one direction, found {names}", "extends")
        return None
    return path


def _resolve_extends(source: RuleSource, root: Path) -> Path | None:
    name = source.model.extends or ""
    if name in list_templates():
        return TEMPLATES / f"{name}.rules.yaml"
    path = source.folder / name
    if not path.resolve().is_relative_to(root.resolve()):
        expected = "a file inside the project"
    elif not path.is_file():
        expected = f"a rule file or one of the templates {', '.join(list_templates())}"
    elif path.suffix.lower() not in DATA_FORMATS_BY_SUFFIX:
        expected = "a .yaml, .yml, .json or .toml file"
    else:
        return path.resolve()
    source.add_problem(f"expected {expected} for `extends`, found {format_value(name)}", "extends")
    return None


def _read_source(path: Path, root: Path, folder: Path, problems: list[Problem]) -> RuleSource | None:
    display_name = format_path(path, root)
    try:
        parsed = parse_with_lines(read_text(path), DATA_FORMATS_BY_SUFFIX[path.suffix.lower()])
    except ContentError as error:
        problems.append(Problem(display_name, error.line, str(error)))
        return None
    model = _validate(parsed, display_name, problems)
    if model is None:
        return None
    return RuleSource(path, display_name, folder, format_path(folder, root), model, parsed.find_line, problems)


def _validate(parsed: ParsedText, display_name: str, problems: list[Problem]) -> RuleFile | None:
    """Return the valid part of a rule file, or None without one; add to `problems`."""

    def add_problem(text: str, *path: str | int) -> None:
        problems.append(Problem(display_name, parsed.find_line(path), text))

    problems += [Problem(display_name, error.line, str(error)) for error in parsed.duplicates]
    if not isinstance(parsed.data, dict):
        found = "an empty file" if parsed.data is None else format_value(parsed.data)
        add_problem(f"expected a mapping with `rules`, found {found}")
        return None
    model, invalid_paths = None, []
    try:
        model = RuleFile.model_validate(parsed.data)
    except ValidationError as error:
        for problem in describe_errors(error, RuleFile, parsed.data):
            add_problem(problem.text, *problem.path)
            invalid_paths.append(problem.path)
    if model is None and ("rules",) not in invalid_paths:
        model = _validate_without(invalid_paths, parsed.data)
    if model is None:
        return None
    first_indices: dict[str, int] = {}
    for index, rule in enumerate(model.rules):
        first_index = first_indices.setdefault(rule.id, index)
        if first_index != index:
            line = parsed.find_line(("rules", first_index))
            add_problem(f"expected each id once, found {rule.id!r} again (first in line {line})", "rules", index)
    if not model.rules and model.extends is None:
        add_problem("expected at least one rule in `rules`, found none", "rules")
    return model


def _validate_without(invalid_paths: list[ValuePath], data: Any) -> RuleFile | None:
    """Return the file without its invalid values, so that its checks are validated too; return None if impossible."""
    data = copy.deepcopy(data)
    try:
        for *parents, name in invalid_paths:
            parent = functools.reduce(operator.getitem, parents, data)
            del parent[name]
            if "description" not in parent and parents[:1] == ["rules"]:
                parent["description"] = str(name)
        return RuleFile.model_validate(data)
    except (ValidationError, LookupError, TypeError):
        return None
