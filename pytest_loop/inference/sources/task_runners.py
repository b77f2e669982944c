"""Find verification commands in the files of task runners: make, just, mise, tox and nox."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice

from pytest_loop.inference.command_candidate import CommandCandidate, Layer, SourceLine
from pytest_loop.inference.data_files import collect_strings, get_mapping
from pytest_loop.inference.project_files import MAX_SCRIPTS, Project, get_folder
from pytest_loop.inference.shell_script import MAX_LINE_LENGTH, split_steps
from pytest_loop.inference.tool_purposes import Purpose, classify_script

_RECIPE_RANK, _TOX_RANK, _ENVIRONMENT_RANK = 4, 5, 6
_MAKE_TARGET = re.compile(r"^(?P<names>[A-Za-z0-9][\w. /-]*?)\s*::?(?!=)(?P<needs>[^=\n]*)$")
_JUST_RECIPE = re.compile(r"^@?(?P<names>[A-Za-z0-9][\w-]*)(?:\s+[^:=\n]*)?:(?!=)(?P<needs>[^=\n]*)$")
_NOX_SESSION = re.compile(
    r"^@(?:nox\.)?session(?:\((?P<arguments>[^)]{0,400})\))?[ \t]*\n(?:@.*\n){0,9}def (?P<name>\w+)", re.MULTILINE
)


def find_runner_candidates(project: Project) -> Iterator[CommandCandidate]:
    """Yield the commands of all task runner files in a project."""
    for names, list_candidates in _RUNNERS.items():
        for path in project.find_by_name(*names):
            yield from list_candidates(project, path)


def _build_candidate(
    command: str, purpose: Purpose, source: SourceLine, rank: int, *, is_trivial: bool = False
) -> CommandCandidate:
    folder = get_folder(source.path)
    return CommandCandidate(command, purpose, Layer.MANIFESTS, source, folder, is_trivial=is_trivial, rank=rank)


def _list_recipes(project: Project, path: str, runner: str, pattern: re.Pattern[str]) -> Iterator[CommandCandidate]:
    """Yield the recipes of a file; one without commands and dependencies is trivial."""
    recipes: list[tuple[int, re.Match[str], list[str]]] = []
    is_in_body = False
    for number, line in enumerate(project.texts[path].split("\n"), 1):
        header = pattern.match(line[:MAX_LINE_LENGTH])
        if header:
            recipes.append((number, header, []))
            is_in_body = True
        elif line.strip() and not line[0].isspace():
            is_in_body = False
        elif is_in_body:
            recipes[-1][2].append(re.sub(r"^\s*[@+-]*", "", line[:MAX_LINE_LENGTH]))
    for number, header, body in recipes:
        is_trivial = not header["needs"].strip() and all(step.is_trivial for step in split_steps("\n".join(body)))
        for name in header["names"].split():
            if purpose := classify_script(name):
                yield _build_candidate(
                    f"{runner} {name}", purpose, SourceLine(path, number), _RECIPE_RANK, is_trivial=is_trivial
                )


def _list_mise_tasks(project: Project, path: str) -> Iterator[CommandCandidate]:
    for name, task in islice(get_mapping(project.data.get(path), "tasks").items(), MAX_SCRIPTS):
        if purpose := classify_script(name):
            body = "\n".join(collect_strings(get_mapping(task).get("run", task)))
            is_trivial = bool(body) and all(step.is_trivial for step in split_steps(body))
            source = project.locate(path, re.escape(name))
            yield _build_candidate(f"mise run {name}", purpose, source, _RECIPE_RANK, is_trivial=is_trivial)


def _list_tox_environments(project: Project, path: str) -> Iterator[CommandCandidate]:
    sections = project.data.get(path, {})
    if "testenv" in sections or "tox" in sections:
        yield _build_candidate("tox", Purpose.TEST, project.locate(path, r"^\[(?:testenv|tox)\]"), _TOX_RANK)
    for section in sections:
        name = str(section).partition("testenv:")[2]
        if name and (purpose := classify_script(name)):
            source = project.locate(path, re.escape(f"[{section}]"))
            yield _build_candidate(f"tox -e {name}", purpose, source, _ENVIRONMENT_RANK)


def _list_nox_sessions(project: Project, path: str) -> Iterator[CommandCandidate]:
    for session in _NOX_SESSION.finditer(project.texts[path]):
        declared = re.search(r"name\s*=\s*[\"']([^\"']+)", session["arguments"] or "")
        name = declared[1] if declared else session["name"]
        if purpose := classify_script(name):
            line = project.texts[path].count("\n", 0, session.start()) + 1
            yield _build_candidate(f"nox -s {name}", purpose, SourceLine(path, line), _ENVIRONMENT_RANK)


_RUNNERS: dict[tuple[str, ...], Callable[[Project, str], Iterator[CommandCandidate]]] = {
    ("Makefile", "makefile", "GNUmakefile"): partial(_list_recipes, runner="make", pattern=_MAKE_TARGET),
    ("justfile", "Justfile", ".justfile"): partial(_list_recipes, runner="just", pattern=_JUST_RECIPE),
    ("mise.toml", ".mise.toml"): _list_mise_tasks,
    ("tox.ini",): _list_tox_environments,
    ("noxfile.py",): _list_nox_sessions,
}
