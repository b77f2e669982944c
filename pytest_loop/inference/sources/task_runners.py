"""Programs that run what a project calls by a name: make, just, mise, tox and nox."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from pytest_loop.inference.command_candidate import Candidate, Layer, Source
from pytest_loop.inference.data_files import collect_strings, get_mapping
from pytest_loop.inference.project_files import MOST_SCRIPTS, Project, get_folder
from pytest_loop.inference.shell_script import LONGEST_LINE, split_steps
from pytest_loop.inference.tool_purposes import Purpose, classify_script

RANK = 4
_TARGET = re.compile(r"^(?P<names>[A-Za-z0-9][\w. /-]*?)\s*::?(?!=)(?P<needs>[^=\n]*)$")
_RECIPE = re.compile(r"^@?(?P<names>[A-Za-z0-9][\w-]*)(?:\s+[^:=\n]*)?:(?!=)(?P<needs>[^=\n]*)$")
_SESSION = re.compile(
    r"^@(?:nox\.)?session(?:\((?P<arguments>[^)]{0,400})\))?[ \t]*\n(?:@.*\n){0,9}def (?P<name>\w+)", re.MULTILINE
)


def find_candidates(project: Project) -> Iterator[Candidate]:
    """What can be asked of these programs."""
    for path in project.find_named("Makefile", "makefile", "GNUmakefile"):
        yield from _recipes(project, path, "make", _TARGET)
    for path in project.find_named("justfile", "Justfile", ".justfile"):
        yield from _recipes(project, path, "just", _RECIPE)
    for path in project.find_named("mise.toml", ".mise.toml"):
        yield from _mise(project, path)
    for path in project.find_named("tox.ini"):
        yield from _tox(project, path)
    for path in project.find_named("noxfile.py"):
        yield from _nox(project, path)


def _made(command: str, purpose: Purpose, source: Source, rank: int = RANK, *, is_trivial: bool = False) -> Candidate:
    return Candidate(
        command, purpose, Layer.MANIFESTS, source, get_folder(source.path), is_trivial=is_trivial, rank=rank
    )


def _recipes(project: Project, path: str, runner: str, pattern: re.Pattern[str]) -> Iterator[Candidate]:
    """The targets of a file of recipes; one that needs others does what they do."""
    recipes: list[tuple[int, re.Match[str], list[str]]] = []
    is_inside = False
    for number, line in enumerate(project.texts[path].split("\n"), 1):
        found = pattern.match(line[:LONGEST_LINE])
        if found:
            recipes.append((number, found, []))
            is_inside = True
        elif line.strip() and not line[0].isspace():
            is_inside = False
        elif is_inside:
            recipes[-1][2].append(re.sub(r"^\s*[@+-]*", "", line[:LONGEST_LINE]))
    for number, found, body in recipes:
        is_trivial = not found["needs"].strip() and all(step.is_trivial for step in split_steps("\n".join(body)))
        for name in found["names"].split():
            if purpose := classify_script(name):
                yield _made(f"{runner} {name}", purpose, Source(path, number), is_trivial=is_trivial)


def _mise(project: Project, path: str) -> Iterator[Candidate]:
    for name, task in islice(get_mapping(project.data.get(path), "tasks").items(), MOST_SCRIPTS):
        if purpose := classify_script(name):
            body = "\n".join(collect_strings(get_mapping(task).get("run", task)))
            is_trivial = bool(body) and all(step.is_trivial for step in split_steps(body))
            yield _made(f"mise run {name}", purpose, project.locate(path, re.escape(name)), is_trivial=is_trivial)


def _tox(project: Project, path: str) -> Iterator[Candidate]:
    data = project.data.get(path, {})
    if "testenv" in data or "tox" in data:
        yield _made("tox", Purpose.TEST, project.locate(path, r"^\[(?:testenv|tox)\]"), RANK + 1)
    for section in data:
        name = str(section).partition("testenv:")[2]
        if name and (purpose := classify_script(name)):
            yield _made(f"tox -e {name}", purpose, project.locate(path, re.escape(f"[{section}]")), RANK + 2)


def _nox(project: Project, path: str) -> Iterator[Candidate]:
    for found in _SESSION.finditer(project.texts[path]):
        said = re.search(r"name\s*=\s*[\"']([^\"']+)", found["arguments"] or "")
        name = said[1] if said else found["name"]
        if purpose := classify_script(name):
            line = project.texts[path].count("\n", 0, found.start()) + 1
            yield _made(f"nox -s {name}", purpose, Source(path, line), RANK + 2)
