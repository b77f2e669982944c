"""`builtin`: the agent without a model. It runs the fix commands of failing rules, then searches for small edits."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

from pytest_loop.agents.protocol import AgentError, AgentReply, AgentRequest, AgentUnavailableError, RepairTask, Watch
from pytest_loop.agents.search_engine import search_edits
from pytest_loop.core.model.rules import Remedy
from pytest_loop.core.model.run_state import Usage
from pytest_loop.processes.child import CannotStartError, Command, run_command
from pytest_loop.repair.order import Patch, Result

BUILTIN = "builtin"
SECONDS = 45.0
_SHOWN_LINES = 5
_SHOWN_PATCHES = 3
_REMEDY_TIMEOUT = 120.0

Report = Callable[[str], None]


class BuiltinAgent:
    """Fix the files of a project; it writes no documents and answers no questions.

    `seconds` limits the search of one iteration. A search that found nothing is not repeated for the same files, unless
    it ran out of time: then the next one takes twice as long.
    """

    is_serial = True

    def __init__(self, name: str = BUILTIN, seconds: float = SECONDS) -> None:
        self.name = name
        self._seconds = seconds
        self._searches: dict[tuple[str, tuple[str, ...]], tuple[float, str]] = {}

    def answer(self, request: AgentRequest, watch: Watch) -> AgentReply:
        task = request.repair_task
        if task is None or request.schema is not None:
            raise AgentUnavailableError(
                "the built-in agent mends the Python files of a project, and nothing else: name another agent with "
                "--loop-agent (--loop-agents lists those that are installed)"
            )
        lines: list[str] = []

        def report(line: str) -> None:
            lines.append(line)
            watch.on_output(f"{line}\n".encode())

        outcomes = [self._try_remedy(remedy, request.workspace, task, watch, report) for remedy in task.remedies]
        if not any(outcomes):
            self._apply_edits(request.workspace, task, watch, report)
        return AgentReply(report="\n".join(lines), usage=Usage(tokens=0, cost_usd=0.0))

    def close(self) -> None:
        """Do nothing: no state outlives an answer."""

    def _try_remedy(self, remedy: Remedy, root: Path, task: RepairTask, watch: Watch, report: Report) -> bool:
        """Run a fix command, and return whether its edits were kept."""
        problem = ""

        def run() -> None:
            nonlocal problem
            words = remedy.command if remedy.shell else shlex.split(remedy.command)
            folder, timeout = root / remedy.folder, _REMEDY_TIMEOUT
            try:
                run_command(Command(words, folder, timeout, should_continue=watch.should_continue, is_thorough=True))
            except CannotStartError as error:
                problem = str(error)

        is_better = task.attempt(run)
        outcome = "made it better" if is_better else problem or "made nothing better, and was undone"
        report(f"`{remedy.command}`: {outcome}")
        return is_better

    def _apply_edits(self, root: Path, task: RepairTask, watch: Watch, report: Report) -> None:
        """Search for edits that fix failing tests and break none, and write them."""
        key = (task.files_hash, task.failing_tests)
        seconds_before, ending = self._searches.get(key, (0.0, "time"))
        if not task.failing_tests or ending != "time":
            report("nothing is left to try with these files" if task.failing_tests else "no test fails")
            return
        seconds = min(max(self._seconds, 2 * seconds_before), watch.timeout)
        report(f"searching for small edits of the code, for at most {seconds:g} s")
        result = search_edits(task, root, seconds, watch, self.name)
        self._searches[key] = (seconds, result.ended)
        for line in render_report(result):
            report(line)
        for patch in result.steps:
            apply_patch(patch, root)


def apply_patch(patch: Patch, root: Path) -> None:
    """Write an edit; raise `AgentError` if the file was changed since the search read it."""
    path = root / patch.path
    if path.read_bytes() != patch.before.encode():
        raise AgentError(f"{patch.path} was changed by somebody else while a mistake in it was looked for")
    path.write_bytes(patch.after.encode())


def render_report(result: Result) -> Iterator[str]:
    """Describe a search: the edits tried, the most suspicious lines, and the plausible edits."""
    died = f" ({result.died:,} ran wild and were ended)" if result.died else ""
    yield f"{result.tried:,} edits tried in {result.seconds:.1f} s{died}"
    if result.localised:
        places = (f"{line.path}:{line.line} ({line.score:.2f})" for line in result.localised[:_SHOWN_LINES])
        yield f"most suspicious: {', '.join(places)}"
    for patch in result.steps:
        tests = len(patch.fixed)
        outcome = f"{tests} test{'s' if tests > 1 else ''} pass{'es' if tests == 1 else ''} by it"
        yield f"plausible: {patch.path}, {patch.description} ({outcome})"
        for other in _find_alternatives(patch, result)[:_SHOWN_PATCHES]:
            yield f"  as plausible: {other.description}"
    if result.steps:
        yield "an edit that passes the tests may still be wrong: look at it before you keep it"
    if result.remaining or not result.steps:
        reason = result.problem or result.ended
        names = ", ".join(result.remaining[:_SHOWN_LINES])
        yield f"no edit mends {names or 'it'}{f' ({reason})' if reason else ''}"


def _find_alternatives(patch: Patch, result: Result) -> list[Patch]:
    """Return other edits that fix the same tests."""
    return [
        other
        for other in result.patches
        if (other.path, other.description) != (patch.path, patch.description)
        and not other.broken
        and set(other.fixed) == set(patch.fixed)
    ]
