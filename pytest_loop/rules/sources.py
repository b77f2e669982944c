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
from pytest_loop.rules.line_numbers import LineLookup, ParsedText, parse_with_lines
from pytest_loop.rules.rule_schema import RuleFile
from pytest_loop.rules.syntax import FORMATS, ContentError, read_text
from pytest_loop.rules.validation_messages import describe_errors

TEMPLATES = Path(__file__).parent / "templates"
# A run writes inferred rules into its own folder; their paths start at the root of the project all the same.
MAX_CHAIN = 10


@dataclass
class RuleSource:
    """One rule file of a chain; `folder` is where its paths start, `place` the same relative to the project."""

    path: Path
    shown: str
    folder: Path
    place: str
    text: str
    model: RuleFile
    find_line: LineLookup
    problems: list[Problem]

    def line(self, *path: str | int) -> int:
        return self.find_line(path)

    def add_problem(self, text: str, *path: str | int) -> None:
        self.problems.append(Problem(self.shown, self.line(*path), text))


def list_templates() -> list[str]:
    """Return the names of the templates in the package."""
    return sorted(path.name.removesuffix(".rules.yaml") for path in TEMPLATES.glob("*.rules.yaml"))


def read_template(name: str) -> RuleFile:
    """Return a template; one without rules if the name is empty."""
    return read_chain(TEMPLATES / f"{name}.rules.yaml", TEMPLATES, [])[0].model if name else RuleFile()


def name_source(source: str) -> str:
    """Return how messages name a rule file: a template by its name, others by their path."""
    path = Path(source)
    return name_template(path.name.removesuffix(".rules.yaml")) if path.parent == TEMPLATES else source


def name_template(name: str) -> str:
    """Return how messages name a template."""
    return f"template {name}"


def read_chain(path: Path, root: Path, problems: list[Problem]) -> list[RuleSource]:
    """Read a rule file and the files it extends, nearest first; stop at one that is invalid."""
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
    if path and (path in visited or len(visited) > MAX_CHAIN):
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
    elif path.suffix.lower() not in FORMATS:
        expected = "a .yaml, .yml, .json or .toml file"
    else:
        return path.resolve()
    source.add_problem(f"expected {expected} for `extends`, found {format_value(name)}", "extends")
    return None


def _read_source(path: Path, root: Path, folder: Path, problems: list[Problem]) -> RuleSource | None:
    shown = _display_path(path, root)
    kind = FORMATS[path.suffix.lower()]
    place = _display_path(folder, root)
    try:
        text = read_text(path)
        parsed = parse_with_lines(text, kind)
    except ContentError as error:
        problems.append(Problem(shown, error.line, str(error)))
        return None
    model = _validate(parsed, shown, problems)
    if model is None:
        return None
    return RuleSource(path, shown, folder, place, text, model, parsed.find_line, problems)


def _validate_rest(data: Any, wrong: list[tuple[str | int, ...]]) -> RuleFile | None:
    """Return the file without its wrong fields, so that problems with its checks are found in the same round."""
    data = copy.deepcopy(data)
    try:
        for *parents, name in wrong:
            parent = functools.reduce(operator.getitem, parents, data)
            del parent[name]
            if "description" not in parent and parents[:1] == ["rules"]:
                parent["description"] = str(name)
        return RuleFile.model_validate(data)
    except (ValidationError, LookupError, TypeError):
        return None


def _display_path(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)


def _validate(parsed: ParsedText, shown: str, problems: list[Problem]) -> RuleFile | None:
    def add_problem(text: str, *path: str | int) -> None:
        problems.append(Problem(shown, parsed.find_line(path), text))

    problems += [Problem(shown, error.line, str(error)) for error in parsed.duplicates]
    if not isinstance(parsed.data, dict):
        found = "an empty file" if parsed.data is None else format_value(parsed.data)
        add_problem(f"expected a mapping with `rules`, found {found}")
        return None
    model, wrong = None, []
    try:
        model = RuleFile.model_validate(parsed.data)
    except ValidationError as error:
        for problem in describe_errors(error, RuleFile, parsed.data):
            add_problem(problem.text, *problem.path)
            wrong.append(problem.path)
    if model is None and ("rules",) not in wrong:
        model = _validate_rest(parsed.data, wrong)
    if model is None:
        return None
    first: dict[str, int] = {}
    for index, rule in enumerate(model.rules):
        if first.setdefault(rule.id, index) != index:
            line = parsed.find_line(("rules", first[rule.id]))
            add_problem(f"expected each id once, found {rule.id!r} again (first in line {line})", "rules", index)
    if not model.rules and model.extends is None:
        add_problem("expected at least one rule in `rules`, found none", "rules")
    return model
