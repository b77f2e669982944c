"""The fourth layer: the steps of CI that verify something, as somebody would run them at a desk."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from pytest_loop.inference.command_candidate import Candidate, Layer, Source
from pytest_loop.inference.command_lines import classify_command
from pytest_loop.inference.data_files import collect_strings, get_line, get_list, get_mapping
from pytest_loop.inference.project_files import MOST_SCRIPTS, Project
from pytest_loop.inference.shell_script import resolve_folder, split_steps
from pytest_loop.inference.tool_purposes import Purpose, split_names

# Workflows, jobs and stages of these names bring something somewhere, and verify nothing.
_DELIVERING = re.compile(
    r"(?:^|[^a-z])(?:deploy|releas|publish|deliver|cd(?![a-z])|rollout|docker|image|pages|upload|notif|stale|label|promot)",
    re.IGNORECASE,
)
_WORKFLOW = re.compile(r"\.(?:github|gitea)/workflows/[^/]+\.ya?ml")
# Actions that do what a command does.
_ACTIONS = {
    "pre-commit/action": "pre-commit run --all-files",
    "golangci/golangci-lint-action": "golangci-lint run",
    "astral-sh/ruff-action": "ruff check .",
    "psf/black": "black --check .",
}
_NOT_JOBS = split_names(
    "default include stages variables workflow image services cache before_script after_script pages spec"
)


@dataclass(frozen=True)
class _Script:
    """What one step runs; `matrix` are the values of which every job of a matrix gets one."""

    text: str
    folder: str = ""
    matrix: dict[str, list[str]] = field(default_factory=dict)
    line: int = 1
    is_ignored: bool = False


def find_candidates(project: Project) -> list[Candidate]:
    """All that CI verifies; what belongs to a delivery counts only where nothing else is there."""
    found: list[tuple[bool, Candidate]] = []
    for path in sorted(project.texts):
        reader = _reader(path)
        for script in reader(project, path) if reader else ():
            is_delivery = bool(_WORKFLOW.fullmatch(path)) and _is_delivery(path.rpartition("/")[2])
            found += [(is_delivery, one) for one in _verifying(path, script)]
    primary = [one for is_delivery, one in found if not is_delivery] or [one for _, one in found]
    return list({(one.command, one.folder): one for one in reversed(primary)}.values())[::-1]


def _is_delivery(*said: object) -> bool:
    return any(isinstance(name, str) and _DELIVERING.search(name) for name in said)


def _verifying(path: str, script: _Script) -> Iterator[Candidate]:
    for step in split_steps(_marked(script.text, script.matrix), script.folder):
        for command in expand_matrix(step.command, script.matrix):
            if purpose := classify_command(command):
                source = Source(path, script.line + step.offset)
                is_trivial = step.is_trivial or script.is_ignored
                yield Candidate(command, purpose, Layer.CI, source, step.folder, is_trivial=is_trivial)


# -- values that only CI knows

_EXPRESSION = re.compile(
    r"\$\{\{\s*(?:matrix\.)?([^{}\n]{0,200}?)\s*\}\}|<<\s*(?:matrix\.|parameters\.)?([^<>\n]{0,200}?)\s*>>"
)
_MARK = re.compile("\ue000([^\ue001]*)\ue001")
_TOKEN = re.compile(r"(?:[^\s\"']|\"[^\"]*\"|'[^']*')+|[\"']")
MOST_VALUES = 20
_NAMING = split_names("run make just yarn pnpm npm poe task")


def _marked(script: str, matrix: dict[str, list[str]]) -> str:
    """The script with one word for each expression: a name between two marks."""
    script = _EXPRESSION.sub(lambda found: f"\ue000{''.join((found[1] or found[2] or '').split())}\ue001", script)
    if not matrix:
        return script
    known = "|".join(map(re.escape, matrix))
    return re.sub(rf"\$\{{?({known})\b\}}?", "\ue000\\1\ue001", script)


def expand_matrix(command: str, matrix: dict[str, list[str]]) -> list[str]:
    """The commands at a desk: what a matrix varies is left out, or is a command for each of its values."""
    made = [""]
    kept: list[str] = []
    for word in _TOKEN.findall(command):
        mark = _MARK.search(word)
        if not mark:
            kept.append(word)
            made = [f"{one} {word}".strip() for one in made]
            continue
        values = matrix.get(mark[1], [])[:MOST_VALUES]
        is_whole = word.strip("\"'") == mark[0]
        if is_whole and values and kept and kept[-1] in _NAMING:
            made = [f"{one} {value}" for one in made[:MOST_VALUES] for value in values]
        elif kept and kept[-1].startswith("-"):
            flag = kept.pop()
            made = [one.removesuffix(flag).rstrip() for one in made]
        elif not kept:
            made = [_MARK.sub("", word)]
        elif not is_whole and not word.startswith("-") and "=" not in word:
            if not values:
                return []
            made = [f"{one} {word.replace(mark[0], values[0])}" for one in made]
    return [one for one in made if one]


def _values(matrix: Any) -> dict[str, list[str]]:
    """The values of a matrix, by name."""
    found = {
        str(name): [str(one) for one in value] for name, value in get_mapping(matrix).items() if isinstance(value, list)
    }
    for row in get_list(get_mapping(matrix).get("include")):
        for name, value in get_mapping(row).items():
            found.setdefault(str(name), []).append(str(value))
    return found


# -- the files

_Reader = Callable[[Project, str], Iterator[_Script]]


def _reader(path: str) -> _Reader | None:
    if _WORKFLOW.fullmatch(path):
        return _workflow
    return {".gitlab-ci.yml": _gitlab, ".circleci/config.yml": _circle, "Jenkinsfile": _jenkins}.get(path)


def _workflow(project: Project, path: str) -> Iterator[_Script]:
    data = project.data.get(path)
    if _is_delivery(get_mapping(data).get("name")) and not _is_delivery(path):
        return
    for name, job in get_mapping(data, "jobs").items():
        if _is_delivery(name, get_mapping(job).get("name")) or "environment" in get_mapping(job):
            continue
        folder = next(
            (place for one in (job, data) if (place := get_mapping(one, "defaults", "run").get("working-directory"))),
            "",
        )
        matrix = _values(get_mapping(job, "strategy", "matrix"))
        for step in get_list(get_mapping(job).get("steps")):
            yield from _step(get_mapping(step), str(folder), matrix)


def _step(step: dict[Any, Any], folder: str, matrix: dict[str, list[str]]) -> Iterator[_Script]:
    here = resolve_folder(folder, str(step.get("working-directory") or ""))
    is_ignored = step.get("continue-on-error") is True
    for text in collect_strings(step.get("run")):
        yield _Script(text, here, matrix, get_line(text), is_ignored)
    for action in collect_strings(step.get("uses")):
        if command := _ACTIONS.get(action.partition("@")[0]):
            yield _Script(command, here, matrix, get_line(action), is_ignored)


def _gitlab(project: Project, path: str) -> Iterator[_Script]:
    data = get_mapping(project.data.get(path))
    for name, job in data.items():
        if str(name).startswith(".") or name in _NOT_JOBS or _is_delivery(name, get_mapping(job).get("stage")):
            continue
        parents = [get_mapping(data, parent) for parent in collect_strings(get_mapping(job).get("extends"))]
        said = next((one["script"] for one in (get_mapping(job), *parents) if "script" in one), None)
        rows = get_list(get_mapping(job, "parallel").get("matrix"))
        matrix = {key: values for row in rows for key, values in _values(row).items()}
        is_ignored = get_mapping(job).get("allow_failure") is True
        for text in collect_strings(said):
            yield _Script(text, "", matrix, get_line(text), is_ignored)


def _circle(project: Project, path: str) -> Iterator[_Script]:
    for name, job in get_mapping(project.data.get(path), "jobs").items():
        if _is_delivery(name):
            continue
        folder = str(get_mapping(job).get("working_directory") or "").removeprefix("~/")
        for step in get_list(get_mapping(job).get("steps")):
            run = get_mapping(step).get("run")
            here = resolve_folder("", str(get_mapping(run).get("working_directory") or ""))
            for text in collect_strings(get_mapping(run).get("command", run)):
                yield _Script(text, here if here != folder else "", {}, get_line(text))


_STAGE = re.compile(r"\bstage\s*\(\s*['\"](?P<stage>[^'\"\n]+)['\"]")
_SHELL = re.compile(
    r"\bsh\b\s*\(?\s*(?:script\s*:\s*)?"
    r"(?:'''([\s\S]*?)'''|\"\"\"([\s\S]*?)\"\"\"|'(?!'')([^'\n]*)'|\"(?!\"\")([^\"\n]*)\")"
)
_NEAR = 300
_INSIDE = re.compile(r"\bdir\s*\(\s*['\"](?P<folder>[^'\"]+)['\"]\s*\)\s*\{[^{}]*$")


def _jenkins(project: Project, path: str) -> Iterator[_Script]:
    text = project.texts[path]
    stages = [(found.start(), found["stage"]) for found in _STAGE.finditer(text)]
    for found in islice(_SHELL.finditer(text), MOST_SCRIPTS):
        stage = next((name for start, name in reversed(stages) if start < found.start()), "")
        if _is_delivery(stage):
            continue
        place = _INSIDE.search(text[max(0, found.start() - _NEAR) : found.start()])
        group = found.lastindex or 1
        line = text.count("\n", 0, found.start(group)) + 1
        yield _Script(found[group], place["folder"] if place else "", {}, line)


def list_purposes(found: list[Candidate]) -> tuple[Purpose, ...]:
    """What CI verifies, in its order."""
    return tuple(dict.fromkeys(one.purpose for one in found if not one.is_trivial))
