"""One rule file with a way to its lines, and the chain of files that it extends."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pytest_loop.errors import Problem
from pytest_loop.rules.checks.check import format_value
from pytest_loop.rules.line_numbers import LineLookup, build_line_lookup
from pytest_loop.rules.parse_cache import MEANINGS
from pytest_loop.rules.rule_schema import RuleFile
from pytest_loop.rules.syntax import FORMATS, ContentError, parse_with_nodes, read_text
from pytest_loop.rules.validation_messages import describe_errors

TEMPLATES = Path(__file__).parent / "templates"
# What a run has inferred is written into its own folder, and speaks of the project all the same.
INFERRED_FILE = "inferred.rules.yaml"
MAX_CHAIN = 10


@dataclass
class Source:
    """One file on the way: its data, and a way to its lines. `place` is its folder, from the project."""

    path: Path
    shown: str
    folder: Path
    place: str
    text: str
    kind: str
    problems: list[Problem]
    locate: LineLookup | None = None

    def line(self, *path: str | int) -> int:
        if self.locate is None:
            self.locate = build_line_lookup(self.text, self.kind)
        return self.locate(path)

    def complain(self, text: str, *path: str | int) -> None:
        self.problems.append(Problem(self.shown, self.line(*path), text))


def list_templates() -> list[str]:
    """The templates that come with the package."""
    return sorted(path.name.removesuffix(".rules.yaml") for path in TEMPLATES.glob("*.rules.yaml"))


def read_chain(path: Path, root: Path, problems: list[Problem]) -> Iterator[tuple[Source, RuleFile]]:
    """The file, then what it extends, and so on."""
    seen: list[Path] = []
    folder = root if path.parent == TEMPLATES or path.name == INFERRED_FILE else path.parent
    while True:
        seen.append(path)
        source, model = _read(path, root, folder, problems)
        if model is None:
            return
        yield source, model
        if model.extends is None:
            return
        found = _extended(model.extends, source, root)
        if found is None:
            return
        if found in seen or len(seen) > MAX_CHAIN:
            names = " -> ".join(one.name for one in [*seen, found])
            source.complain(f"expected files that extend each other in one direction, found {names}", "extends")
            return
        path = found
        folder = folder if path.parent == TEMPLATES else path.parent


def _extended(name: str, source: Source, root: Path) -> Path | None:
    template = TEMPLATES / f"{name}.rules.yaml"
    if name in list_templates():
        return template
    path = source.folder / name
    if not path.resolve().is_relative_to(root.resolve()):
        source.complain(f"expected a file inside the project for `extends`, found {format_value(name)}", "extends")
    elif not path.is_file():
        names = ", ".join(list_templates())
        source.complain(
            f"expected a rule file or one of the templates {names} for `extends`, found {format_value(name)}", "extends"
        )
    elif path.suffix.lower() not in FORMATS:
        source.complain(
            f"expected a .yaml, .yml, .json or .toml file for `extends`, found {format_value(name)}", "extends"
        )
    else:
        return path.resolve()
    return None


def _read(path: Path, root: Path, folder: Path, problems: list[Problem]) -> tuple[Source, RuleFile | None]:
    name = _inside(path, root)
    source = Source(path, name, folder, _inside(folder, root), "", FORMATS[path.suffix.lower()], problems)
    twice: list[ContentError] = []
    try:
        source.text = read_text(path)
        if known := MEANINGS.file(source.kind, source.text):
            source.locate = known.locate
            return source, known.form
        data, node = parse_with_nodes(source.text, source.kind, twice)
    except ContentError as error:
        problems.append(Problem(name, error.line, str(error)))
        return source, None
    if node is not None:
        source.locate = build_line_lookup(source.text, source.kind, node)
    problems += [Problem(name, one.line, str(one)) for one in twice]
    if not isinstance(data, dict):
        found = "an empty file" if data is None else format_value(data)
        source.complain(f"expected a mapping with `rules`, found {found}")
        return source, None
    model = _validated(data, source)
    if model is not None and not problems:
        MEANINGS.keep(source.kind, source.text, model, source.locate)
    return source, model


def _inside(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)


def _validated(data: dict[Any, Any], source: Source) -> RuleFile | None:
    try:
        model = RuleFile.model_validate(data)
    except ValidationError as error:
        for one in describe_errors(error, RuleFile, data):
            source.complain(one.text, *one.path)
        return None
    first: dict[str, int] = {}
    for at, rule in enumerate(model.rules):
        if first.setdefault(rule.id, at) != at:
            line = source.line("rules", first[rule.id])
            source.complain(f"expected each id once, found {rule.id!r} again (first in line {line})", "rules", at)
    if not model.rules and model.extends is None:
        source.complain("expected at least one rule in `rules`, found none", "rules")
    return model
