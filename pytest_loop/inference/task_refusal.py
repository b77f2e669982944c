"""Refuse tasks that cannot be measured: name the gaps, and suggest rewordings that fit the project."""

from __future__ import annotations

import re
import shlex
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from pytest_loop.core.text.lengths import shorten
from pytest_loop.inference.command_candidate import TRUST_ORDER, CommandCandidate, Goal
from pytest_loop.inference.coverage_criteria import DEFAULT_COVERAGE
from pytest_loop.inference.loop_commands import LoopCommand
from pytest_loop.inference.project_files import Project
from pytest_loop.inference.task_intent import METRIC, Intent, find_content_words, is_measured
from pytest_loop.inference.task_phrases import ParsedTask
from pytest_loop.inference.tool_purposes import Purpose, split_names

MAX_REWORDINGS = 3
ONLY_ENGLISH = "only English is understood here"
_PRAISE = re.compile(
    r"\b(?:good|great|perfect|better|best|nice|clean|robust|solid|thorough|comprehensive|complete|polished|finished|fine"
    r"|decent|acceptable|satisf\w+)\b"
    r"|\b(?:done|ready|happy|zero bugs?|no bugs?|high quality)\b|\b(?:it|everything|all) (?:just )?works?\b",
    re.IGNORECASE,
)
_UNTIL = re.compile(r"\buntil\s+(?P<condition>[^.,;\n]{1,200})", re.IGNORECASE)
# A program that waits for something is a task; what it waits for is no condition of the run.
_WAITING = re.compile(r"\b(?:wait|block|poll|retr|sleep|hang|hold|paus)\w{0,9}\s$", re.IGNORECASE)
_SOURCE_FILE = re.compile(r".*\.(?:py|[cm]?[jt]sx?|go|rs|java|rb|kt|c|cpp|cs|php)")
_BOILERPLATE = re.compile(r"(?:.*/)?(?:__init__|__main__|conftest|setup|noxfile|index|main|[\w.-]*config)\.\w+")
_SIDE_FOLDER = re.compile(r"(?:examples?|benchmarks?|scripts?|docs?|tools?|tests?)/")
_USUAL_COMMANDS = {
    Purpose.TEST: "pytest",
    Purpose.COVERAGE: "pytest --cov=. --cov-report=term",
    Purpose.TYPES: "mypy .",
    Purpose.LINT: "ruff check .",
    Purpose.BUILD: "make build",
    Purpose.DOCS: "interrogate --fail-under 80 .",
}
_FIXABLE = {Purpose.LINT: "lint", Purpose.TYPES: "the type errors", Purpose.BUILD: "the build"}


@dataclass(frozen=True)
class Refusal:
    """The refusal of a task in one sentence, what is missing in it, and three similar tasks that can be started."""

    sentence: str
    missing: tuple[str, ...] = ()
    rewordings: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [self.sentence, *(f"  missing: {gap}" for gap in self.missing)]
        lines += [f"  for example: {task}" for task in self.rewordings]
        return "\n".join(lines)

    def explain(self, build_command: Callable[[str], str]) -> str:
        """Explain the refusal in three lines: the problem, what is missing, and a command to type."""
        missing = [f"  missing: {'; '.join(self.missing)}"] if self.missing else []
        return "\n".join(
            [self.sentence, *missing, *(f"  for example: {build_command(task)}" for task in self.rewordings[:1])]
        )


def refuse_command(task: ParsedTask, command: LoopCommand) -> Refusal:
    """Refuse a text that asks for a command about runs, and name the command line to type."""
    start = shlex.join(["pytest", "--loop-task", command.next_task])
    after = f", then {start}" if command.next_task else ""
    return Refusal(f"`{shorten(task.text)}` is a command, not a task: type {command.line}{after}")


def find_gaps(task: ParsedTask, intent: Intent) -> tuple[str, ...]:
    """Return what a task lacks to be measured; empty if it lacks nothing."""
    if task.needs_context:
        return ("what to do: there is no conversation here that the words could point to",)
    gaps = []
    condition = task.completion if _is_vague(task.completion) else _find_vague_condition(task.task)
    if condition:
        gaps.append(f"a condition that a command can decide: no command measures `{condition}`")
    is_concrete = bool(intent.objects or is_measured(task.task) or find_content_words(task.completion))
    if not is_concrete and (intent.is_ambiguous or not find_content_words(task.task)):
        gaps.append("what to change: no file, name, tool, number or issue is named")
        gaps.append("how to tell that it is done: a command that passes, or a number that is reached")
    return tuple(gaps)


def _is_vague(condition: str) -> bool:
    """Return whether a condition only praises: `good enough`, `clean`, `everything works`."""
    can_be_measured = is_measured(condition) or METRIC.search(condition) or "`" in condition
    return bool(_PRAISE.search(condition)) and not can_be_measured


def _find_vague_condition(task: str) -> str:
    """Return the text after `until` if it consists of praise only; empty if not."""
    for until in _UNTIL.finditer(task):
        condition = until["condition"].strip()
        is_waiting = _WAITING.search(task[max(0, until.start() - 20) : until.start()])
        rest = re.sub(r"['\u2019]\w+", "", _PRAISE.sub("", condition))
        if _is_vague(condition) and not is_waiting and not find_content_words(rest):
            return condition
    return ""


@dataclass(frozen=True)
class TaskAdvisor:
    """Refuse tasks and suggest rewordings made of the commands and files of one project."""

    task: ParsedTask
    intent: Intent
    project: Project
    candidates: Sequence[CommandCandidate]

    def refuse_unclear(self, gaps: tuple[str, ...]) -> Refusal:
        """Refuse a task that does not say what to do or when it is done."""
        if is_foreign_language(self.task.request):
            sentence = f"{ONLY_ENGLISH}: say it in English, or add the command that has to pass"
            return Refusal(sentence, rewordings=(f"{self.task.request} `{_USUAL_COMMANDS[Purpose.TEST]}`",))
        problem = "there is no task in" if self.task.needs_context else "this cannot be measured"
        text = shorten(self.task.text)
        return Refusal(
            f"{problem}: {text}" if text else "there is no task", gaps, limit_rewordings(self._list_project_tasks())
        )

    def refuse_unverifiable(self) -> Refusal:
        """Refuse a clear task in a project in which nothing is verified."""
        purposes = ", ".join(purpose.value for purpose in self.intent.purposes) or "CI"
        gap = f"a command that verifies it ({purposes})"
        reason = "nothing here does, and outside of git no change can be seen either"
        sentence = f"this cannot be measured: {shorten(self.task.text)}"
        return Refusal(sentence, (f"{gap}: {reason}",), self.suggest_rewordings())

    def suggest_rewordings(self) -> tuple[str, ...]:
        """Suggest three tasks with a command that decides them, the closest to the original first."""
        return limit_rewordings((*self._list_similar_tasks(), *self._list_project_tasks()))

    def _list_similar_tasks(self) -> Iterable[str]:
        """Yield the task with commands of the project, or with usual commands if it has none."""
        tests = self.find_root_command(Purpose.TEST)
        if tests and self.task.completion and not is_measured(self.task.completion):
            yield f"add a test that {self.task.completion}, and fix it until `{tests}` passes"
        for purpose in self.intent.purposes:
            for command in self._list_commands(purpose)[:2]:
                if purpose is Purpose.COVERAGE:
                    threshold = self.intent.threshold or DEFAULT_COVERAGE
                    yield f"loop until coverage {threshold.op} {threshold.value:g} %, as `{command}` prints it"
                else:
                    yield f"{shorten(self.task.task)} until `{command}` passes"

    def _list_commands(self, purpose: Purpose) -> list[str]:
        """Return commands of the project, or else the usual one if it fits, but not to fix failing tests."""
        goal = self.intent.goal
        lacks_tests = goal is Goal.TEST_PASS and not self.project.find_tests()
        commands = [
            candidate.command_line
            for candidate in self._rank_candidates(purpose)
            if not (candidate.is_guess and self.intent.is_ambiguous) and not (candidate.family and lacks_tests)
        ]
        # The usual commands are those of Python: a project with commands of its own may use another language.
        fits = goal is Goal.BUILD_PASS if purpose is Purpose.BUILD else not self.candidates
        return commands or ([_USUAL_COMMANDS[purpose]] if fits and goal is not Goal.TEST_PASS else [])

    def _list_project_tasks(self) -> Iterable[str]:
        """Yield tasks for this project; the last three hold for any project."""
        commands = {purpose: command for purpose in Purpose if (command := self.find_root_command(purpose))}
        module = _find_module(self.project)
        tests, lint = commands.get(Purpose.TEST), commands.get(Purpose.LINT)
        if tests and self.project.find_tests():
            yield f"fix the failing tests until `{tests}` passes"
        if tests and module:
            yield f"refactor {module} until " + (f"`{tests}` and `{lint}` pass" if lint else f"`{tests}` passes")
        for purpose, target in _FIXABLE.items():
            if purpose in commands:
                yield f"fix {target} until `{commands[purpose]}` passes"
        if module:
            yield f"write tests for {module} until `{tests or 'pytest'}` passes"
        yield "write tests/test_first.py until `pytest` passes"
        yield "add a Makefile with a target `check` until `make check` passes"
        yield "fix lint until `pre-commit run --all-files` passes"

    def find_root_command(self, purpose: Purpose) -> str | None:
        """Return the project's command for a purpose at its root; None if it names none."""
        ranked = self._rank_candidates(purpose)
        return next((candidate.command for candidate in ranked if not (candidate.is_guess or candidate.folder)), None)

    def _rank_candidates(self, purpose: Purpose) -> list[CommandCandidate]:
        """Return the commands for a purpose, the most trusted first and guesses last."""
        relevant = (
            candidate for candidate in self.candidates if candidate.purpose is purpose and not candidate.is_trivial
        )
        return sorted(
            relevant, key=lambda candidate: (candidate.is_guess, TRUST_ORDER.index(candidate.layer), candidate.rank)
        )


def limit_rewordings(rewordings: Iterable[str]) -> tuple[str, ...]:
    """Return the first three distinct rewordings."""
    return tuple(dict.fromkeys(rewordings))[:MAX_REWORDINGS]


def _find_module(project: Project) -> str | None:
    """Return a source file that a task could be about."""
    tests = frozenset(project.find_tests())
    modules = (
        path
        for path in project.files
        if _SOURCE_FILE.fullmatch(path)
        and path not in tests
        and not _BOILERPLATE.fullmatch(path)
        and not PurePosixPath(path).name.startswith(".")
    )
    return min(modules, key=lambda path: (_SIDE_FOLDER.match(path) is not None, path.count("/"), path), default=None)


_ENGLISH = split_names(
    "the a an and or of to in on for with by from is are be it this that these those all until when if so not no make "
    "fix add write create update improve refactor run keep loop iterate please my our your we you what which every"
)
# Short words of Spanish, Portuguese, French, Italian, German, Dutch, Polish and Turkish that English does not have.
_FOREIGN = split_names(
    "el los las del que una para con por hasta esta este todos todas y en se o os um uma com não nao até dos das as "
    "le les des une dans pour avec et sur tous toutes jusqu ce cette il lo gli che della dei delle per fino nel "
    "der die den dem und nicht bis alle mit für fur ein eine einen im zu auf ist sind het een niet voor met "
    "tot van w na nie wszystkie aż popraw bütün tüm için ve bir hata kadar testleri"
)


def is_foreign_language(text: str) -> bool:
    """Return whether a text is most likely not English: another script, or short words of another language."""
    letters = [character for character in text if character.isalpha()]
    if not letters:
        return False
    latin_letters = sum(unicodedata.name(character, "").startswith("LATIN") for character in letters)
    if latin_letters * 2 < len(letters):
        return True
    words = re.findall(r"[^\W\d_]+", text.lower())
    english_words = sum(word in _ENGLISH for word in words)
    return sum(word in _FOREIGN for word in words) > english_words
