"""Tasks that nothing can measure: what is missing, and how to say it so that this very project can tell."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from pytest_loop.core.text.lengths import shorten
from pytest_loop.inference import coverage_checks
from pytest_loop.inference.command_candidate import TRUST_ORDER, Candidate, Goal
from pytest_loop.inference.inferred_criteria import render_command
from pytest_loop.inference.project_files import Project
from pytest_loop.inference.task_intent import Intent, Threshold, is_measured
from pytest_loop.inference.task_phrases import ParsedTask
from pytest_loop.inference.task_words import METRIC, find_content_words
from pytest_loop.inference.tool_purposes import Purpose

REWORDINGS = 3
_PRAISE = re.compile(
    r"\b(?:good|great|perfect|better|best|nice|clean|robust|solid|thorough|comprehensive|complete|polished|finished|fine"
    r"|decent|acceptable|satisf\w+)\b"
    r"|\b(?:done|ready|happy|zero bugs?|no bugs?|high quality)\b|\b(?:it|everything|all) (?:just )?works?\b",
    re.IGNORECASE,
)
_UNTIL = re.compile(r"\buntil\s+(?P<said>[^.,;\n]{1,200})", re.IGNORECASE)
# A program that waits for something is a task, and what it waits for no condition of it.
_WAITING = re.compile(r"\b(?:wait|block|poll|retr|sleep|hang|hold|paus)\w{0,9}\s$", re.IGNORECASE)
_SOURCE = re.compile(r".*\.(?:py|[cm]?[jt]sx?|go|rs|java|rb|kt|c|cpp|cs|php)")
_PLAIN = re.compile(r"(?:.*/)?(?:__init__|__main__|conftest|setup|noxfile|index|main|[\w.-]*config)\.\w+")
_USUAL = {
    Purpose.TEST: "pytest",
    Purpose.COVERAGE: "pytest --cov --cov-report=term",
    Purpose.TYPES: "mypy .",
    Purpose.LINT: "ruff check .",
    Purpose.BUILD: "make build",
    Purpose.DOCS: "interrogate --fail-under 80 .",
}
_ASIDE = re.compile(r"(?:examples?|benchmarks?|scripts?|docs?|tools?|tests?)/")


@dataclass(frozen=True)
class Refusal:
    """Why a task cannot be started, and three ways to say something like it that can."""

    task: str
    missing: tuple[str, ...]
    suggest_rewordings: tuple[str, ...]

    def __str__(self) -> str:
        lines = [f"this cannot be measured: {self.task}" if self.task else "there is no task"]
        lines += [f"  missing: {one}" for one in self.missing]
        lines += [f"  for example: {one}" for one in self.suggest_rewordings]
        return "\n".join(lines)


def missing(asked: ParsedTask, intent: Intent) -> tuple[str, ...]:
    """What a task lacks to be measured; nothing where it has it."""
    if asked.needs_context:
        return ("what to do: there is no conversation here that the words could point to",)
    lacks = []
    condition = asked.completion if is_vague_condition(asked.completion) else _vague_tail(asked.task)
    if condition:
        lacks.append(f"a condition that a command can decide: nobody can measure `{condition}`")
    is_named = bool(intent.objects or is_measured(asked.task) or find_content_words(asked.completion))
    if not is_named and (intent.is_ambiguous or not find_content_words(asked.task)):
        lacks.append("what to change: no file, name, tool, number or issue is named")
        lacks.append("how to tell that it is done: a command that passes, or a number that is reached")
    return tuple(lacks)


def is_vague_condition(completion: str) -> bool:
    """Whether a condition only praises: `good enough`, `clean`, `everything works`."""
    is_measurable = is_measured(completion) or METRIC.search(completion) or "`" in completion
    return bool(_PRAISE.search(completion)) and not is_measurable


def _vague_tail(task: str) -> str:
    """What a task says after `until`, where that is praise and nothing else."""
    for found in _UNTIL.finditer(task):
        said = found["said"].strip()
        is_waiting = _WAITING.search(task[max(0, found.start() - 20) : found.start()])
        rest = re.sub(r"['\u2019]\w+", "", _PRAISE.sub("", said))
        if is_vague_condition(said) and not is_waiting and not find_content_words(rest):
            return said
    return ""


def build_refusal(asked: ParsedTask, lacks: tuple[str, ...], project: Project, found: Sequence[Candidate]) -> Refusal:
    """A refusal with three rewordings made of the commands and the files of this project."""
    ways = dict.fromkeys(_ways(project, found))
    return Refusal(shorten(asked.text), lacks, tuple(ways)[:REWORDINGS])


def refuse_unverifiable(asked: ParsedTask, aim: Intent, project: Project, found: Sequence[Candidate]) -> Refusal:
    """A refusal of a task that is clear, in a project where nothing verifies anything."""
    wanted = ", ".join(purpose.value for purpose in aim.purposes)
    lacks = f"a command that verifies it ({wanted}): nothing here does, and outside of git no change can be seen either"
    return Refusal(shorten(asked.text), (lacks,), rewordings(asked, aim, project, found))


def rewordings(asked: ParsedTask, aim: Intent, project: Project, found: Sequence[Candidate]) -> tuple[str, ...]:
    """Three ways to say a task with a command that decides it, the closest to what was asked first."""
    ways = dict.fromkeys((*_closer(asked, aim, found), *_ways(project, found)))
    return tuple(ways)[:REWORDINGS]


def _closer(asked: ParsedTask, aim: Intent, found: Sequence[Candidate]) -> Iterable[str]:
    """The task itself with the commands that this project has for it, or those that are usual where it has none."""
    tests = _command(Purpose.TEST, found)
    if tests and asked.completion and not is_measured(asked.completion):
        yield f"add a test that {asked.completion}, and fix it until `{tests}` passes"
    for purpose in aim.purposes:
        offered = (one for one in _ranked(purpose, found) if not (one.is_guess and aim.is_ambiguous))
        known = [render_command(one) for one in offered]
        for command in (known or _usual(purpose, aim, found))[:2]:
            if purpose is Purpose.COVERAGE:
                yield _measured_by(command, aim.threshold or coverage_checks.DEFAULT_THRESHOLD)
            else:
                yield f"{shorten(asked.task)} until `{command}` passes"


def _usual(purpose: Purpose, aim: Intent, found: Sequence[Candidate]) -> list[str]:
    """What is usual where a project has nothing of its own; where there are no tests, none can fail."""
    is_build = purpose is Purpose.BUILD
    is_foreign = aim.goal is not Goal.BUILD_PASS if is_build else bool(found)
    return [] if is_foreign or aim.goal is Goal.TEST_PASS else [_USUAL[purpose]]


def _measured_by(command: str, wanted: Threshold) -> str:
    return f"loop until coverage {wanted.op} {wanted.value:g} %, as `{command}` prints it"


def _ways(project: Project, found: Sequence[Candidate]) -> Iterable[str]:
    """Ways to say it, the closest to this project first; there are always three that hold for any project."""
    known = {purpose: command for purpose in Purpose if (command := _command(purpose, found))}
    module = _module(project)
    tests = known.get(Purpose.TEST)
    if tests and project.find_tests():
        yield f"fix the failing tests until `{tests}` passes"
    if tests and module:
        both = f"`{tests}` and `{known[Purpose.LINT]}` pass" if Purpose.LINT in known else f"`{tests}` passes"
        yield f"refactor {module} until {both}"
    for purpose, what in ((Purpose.LINT, "lint"), (Purpose.TYPES, "the type errors"), (Purpose.BUILD, "the build")):
        if purpose in known:
            yield f"fix {what} until `{known[purpose]}` passes"
    if module:
        yield f"write tests for {module} until `{tests or 'pytest'}` passes"
    yield "write tests/test_first.py until `pytest` passes"
    yield "add a Makefile with a target `check` until `make check` passes"
    yield "fix lint until `pre-commit run --all-files` passes"


def _command(purpose: Purpose, found: Sequence[Candidate]) -> str | None:
    return next((one.command for one in _ranked(purpose, found) if not (one.is_guess or one.folder)), None)


def _ranked(purpose: Purpose, found: Sequence[Candidate]) -> list[Candidate]:
    """The commands for a purpose that say anything, the most trusted first and guesses last."""
    solid = (one for one in found if one.purpose is purpose and not one.is_trivial)
    return sorted(solid, key=lambda one: (one.is_guess, TRUST_ORDER.index(one.layer), one.rank))


def _module(project: Project) -> str | None:
    """A file of source code that a task could be about."""
    tests = frozenset(project.find_tests())
    source = (path for path in project.files if _SOURCE.fullmatch(path) and path not in tests)
    own = (path for path in source if not _PLAIN.fullmatch(path) and not PurePosixPath(path).name.startswith("."))
    return min(own, key=lambda path: (_ASIDE.match(path) is not None, path.count("/"), path), default=None)
