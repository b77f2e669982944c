"""Find verification commands in the pipelines of CI, in a form that can be run locally."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from pytest_loop.inference.command_candidate import CommandCandidate, Layer, SourceLine
from pytest_loop.inference.command_lines import classify_command
from pytest_loop.inference.data_files import collect_strings, get_line, get_list, get_mapping
from pytest_loop.inference.project_files import MAX_SCRIPTS, Project
from pytest_loop.inference.shell_script import resolve_folder, split_steps
from pytest_loop.inference.tool_purposes import split_names

# Workflows, jobs and stages with these words in their names deliver and verify nothing.
_DELIVERY = re.compile(
    r"(?:^|[^a-z])(?:deploy|releas|publish|deliver|cd(?![a-z])|rollout|docker|image|pages|upload|notif|stale|label|promot)",
    re.IGNORECASE,
)
_WORKFLOW = re.compile(r"\.(?:github|gitea)/workflows/[^/]+\.ya?ml")
_ACTION_COMMANDS = {
    "pre-commit/action": "pre-commit run --all-files",
    "golangci/golangci-lint-action": "golangci-lint run",
    "astral-sh/ruff-action": "ruff check .",
    "psf/black": "black --check .",
}
_GITLAB_KEYWORDS = split_names(
    "default include stages variables workflow image services cache before_script after_script pages spec"
)
_Matrix = dict[str, list[str]]


@dataclass(frozen=True)
class _Script:
    """The shell script of one step of a pipeline, and the values of its matrix by name."""

    text: str
    folder: str = ""
    matrix: _Matrix = field(default_factory=dict)
    line: int = 1
    is_ignored: bool = False


def find_ci_candidates(project: Project) -> Iterator[CommandCandidate]:
    """Yield the verification commands of CI, each once; those of a delivery workflow only if there are no others."""
    verifying: dict[tuple[str, str], CommandCandidate] = {}
    delivering: dict[tuple[str, str], CommandCandidate] = {}
    for path in sorted(project.texts):
        is_workflow = _WORKFLOW.fullmatch(path) is not None
        read = _read_workflow if is_workflow else _READERS.get(path)
        candidates = delivering if is_workflow and _is_delivery(path.rpartition("/")[2]) else verifying
        for script in read(project, path) if read else ():
            for candidate in _find_in_script(path, script):
                candidates.setdefault((candidate.command, candidate.folder), candidate)
    yield from (verifying or delivering).values()


def _is_delivery(*names: object) -> bool:
    return any(isinstance(name, str) and _DELIVERY.search(name) for name in names)


def _find_in_script(path: str, script: _Script) -> Iterator[CommandCandidate]:
    for step in split_steps(_mark_expressions(script.text, script.matrix), script.folder):
        for command in expand_matrix(step.command, script.matrix):
            if purpose := classify_command(command):
                source = SourceLine(path, script.line + step.offset)
                is_trivial = step.is_trivial or script.is_ignored
                yield CommandCandidate(command, purpose, Layer.CI, source, step.folder, is_trivial=is_trivial)


# -- expressions and matrices

_EXPRESSION = re.compile(
    r"\$\{\{\s*(?:matrix\.)?([^{}\n]{0,200}?)\s*\}\}|<<\s*(?:matrix\.|parameters\.)?([^<>\n]{0,200}?)\s*>>"
)
# Characters that stand in no script enclose the name of an expression.
_START, _END = "\ue000", "\ue001"
_MARKED_NAME = re.compile(f"{_START}([^{_END}]*){_END}")
_WORD = re.compile(r"(?:[^\s\"']|\"[^\"]*\"|'[^']*')+|[\"']")
MAX_VALUES = 20
# Programs and subcommands whose next word is the name of a script.
_SCRIPT_RUNNERS = split_names("run make just yarn pnpm npm poe task")


def _mark_expressions(script: str, matrix: _Matrix) -> str:
    """Replace each expression by its marked name, so that it stays one word."""
    script = _EXPRESSION.sub(lambda match: f"{_START}{''.join((match[1] or match[2] or '').split())}{_END}", script)
    if not matrix:
        return script
    names = "|".join(map(re.escape, matrix))
    return re.sub(rf"\$\{{?({names})\b\}}?", rf"{_START}\1{_END}", script)


def expand_matrix(command: str, matrix: _Matrix) -> list[str]:
    """Return the local commands for a command with marked expressions.

    The name of a script becomes one command for each value of the matrix. An expression inside a word becomes its first
    value; without one, the result is empty. Other expressions are left out, with the flag before them.
    """
    commands = [""]
    words: list[str] = []
    for word in _WORD.findall(command):
        marked = _MARKED_NAME.search(word)
        if not marked:
            words.append(word)
            commands = [f"{start} {word}".strip() for start in commands]
            continue
        values = matrix.get(marked[1], [])[:MAX_VALUES]
        is_whole_word = word.strip("\"'") == marked[0]
        if is_whole_word and values and words and words[-1] in _SCRIPT_RUNNERS:
            commands = [f"{start} {value}" for start in commands[:MAX_VALUES] for value in values]
        elif words and words[-1].startswith("-"):
            flag = words.pop()
            commands = [start.removesuffix(flag).rstrip() for start in commands]
        elif not words:
            commands = [_MARKED_NAME.sub("", word)]
        elif not is_whole_word and not word.startswith("-") and "=" not in word:
            if not values:
                return []
            commands = [f"{start} {word.replace(marked[0], values[0])}" for start in commands]
    return [command for command in commands if command]


def _read_matrix(matrix: Any) -> _Matrix:
    rows = [get_mapping(matrix), *map(get_mapping, get_list(get_mapping(matrix).get("include")))]
    values = {str(name): list(map(str, value)) for name, value in rows[0].items() if isinstance(value, list)}
    for row in rows[1:]:
        for name, value in row.items():
            values.setdefault(str(name), []).append(str(value))
    return values


# -- formats of CI systems


def _read_workflow(project: Project, path: str) -> Iterator[_Script]:
    workflow = project.data.get(path)
    if _is_delivery(get_mapping(workflow).get("name")) and not _is_delivery(path):
        return
    for name, job in get_mapping(workflow, "jobs").items():
        if _is_delivery(name, get_mapping(job).get("name")) or "environment" in get_mapping(job):
            continue
        folders = (get_mapping(level, "defaults", "run").get("working-directory") for level in (job, workflow))
        folder = str(next(filter(None, folders), ""))
        matrix = _read_matrix(get_mapping(job, "strategy", "matrix"))
        for step in map(get_mapping, get_list(get_mapping(job).get("steps"))):
            place = resolve_folder(folder, str(step.get("working-directory") or ""))
            is_ignored = step.get("continue-on-error") is True
            for text in collect_strings(step.get("run")):
                yield _Script(text, place, matrix, get_line(text), is_ignored)
            for action in collect_strings(step.get("uses")):
                if command := _ACTION_COMMANDS.get(action.partition("@")[0]):
                    yield _Script(command, place, matrix, get_line(action), is_ignored)


def _read_gitlab(project: Project, path: str) -> Iterator[_Script]:
    pipeline = get_mapping(project.data.get(path))
    for name, job in pipeline.items():
        if str(name).startswith(".") or name in _GITLAB_KEYWORDS or _is_delivery(name, get_mapping(job).get("stage")):
            continue
        parents = [get_mapping(pipeline, parent) for parent in collect_strings(get_mapping(job).get("extends"))]
        script = next((level["script"] for level in (get_mapping(job), *parents) if "script" in level), None)
        rows = get_list(get_mapping(job, "parallel").get("matrix"))
        matrix = {key: values for row in rows for key, values in _read_matrix(row).items()}
        is_ignored = get_mapping(job).get("allow_failure") is True
        for text in collect_strings(script):
            yield _Script(text, "", matrix, get_line(text), is_ignored)


def _read_circle(project: Project, path: str) -> Iterator[_Script]:
    for name, job in get_mapping(project.data.get(path), "jobs").items():
        if _is_delivery(name):
            continue
        root = str(get_mapping(job).get("working_directory") or "").removeprefix("~/")
        for step in get_list(get_mapping(job).get("steps")):
            run = get_mapping(step).get("run")
            folder = resolve_folder("", str(get_mapping(run).get("working_directory") or ""))
            for text in collect_strings(get_mapping(run).get("command", run)):
                yield _Script(text, folder if folder != root else "", {}, get_line(text))


_STAGE = re.compile(r"\bstage\s*\(\s*['\"](?P<stage>[^'\"\n]+)['\"]")
_SHELL_CALL = re.compile(
    r"\bsh\b\s*\(?\s*(?:script\s*:\s*)?"
    r"(?:'''([\s\S]*?)'''|\"\"\"([\s\S]*?)\"\"\"|'(?!'')([^'\n]*)'|\"(?!\"\")([^\"\n]*)\")"
)
_OPEN_FOLDER = re.compile(r"\bdir\s*\(\s*['\"](?P<folder>[^'\"]+)['\"]\s*\)\s*\{[^{}]*$")
_OPEN_FOLDER_REACH = 300


def _read_jenkins(project: Project, path: str) -> Iterator[_Script]:
    text = project.texts[path]
    stages = [(match.start(), match["stage"]) for match in _STAGE.finditer(text)]
    for call in islice(_SHELL_CALL.finditer(text), MAX_SCRIPTS):
        stage = next((name for start, name in reversed(stages) if start < call.start()), "")
        if _is_delivery(stage):
            continue
        folder = _OPEN_FOLDER.search(text[max(0, call.start() - _OPEN_FOLDER_REACH) : call.start()])
        group = call.lastindex or 1
        line = text.count("\n", 0, call.start(group)) + 1
        yield _Script(call[group], folder["folder"] if folder else "", {}, line)


_READERS: dict[str, Callable[[Project, str], Iterator[_Script]]] = {
    ".gitlab-ci.yml": _read_gitlab,
    ".circleci/config.yml": _read_circle,
    "Jenkinsfile": _read_jenkins,
}
