"""The agent that needs no model: commands that mend what a rule complains about, then a search over small edits."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from pytest_loop.agents.protocol import AgentError, AgentReply, AgentRequest, AgentUnavailableError, RepairTask, Watch
from pytest_loop.agents.search_engine import make_search_order, run_search
from pytest_loop.core.model.rules import Remedy
from pytest_loop.core.model.run_state import Usage
from pytest_loop.processes import child
from pytest_loop.repair.order import Patch, Result

NAME = "builtin"
SECONDS = 45.0
_SHOWN_LINES = 5
_SHOWN_PATCHES = 3
_FIXER = 120.0

Tell = Callable[[str], None]


class BuiltinAgent:
    """Mends the files of a project; it writes no documents and answers no questions.

    `seconds` is how long it may search in one iteration. What it has tried in vain it does not try again, unless time
    was all that it lacked: then it takes twice as long.
    """

    is_serial = True

    def __init__(self, name: str = NAME, seconds: float = SECONDS) -> None:
        self.name = name
        self._seconds = seconds
        self._tried: dict[tuple[str, tuple[str, ...]], tuple[float, str]] = {}

    def answer(self, request: AgentRequest, watch: Watch) -> AgentReply:
        case = request.repair_task
        if case is None or request.schema is not None:
            raise AgentUnavailableError(
                "the built-in agent mends the Python files of a project, and nothing else: name another agent with "
                "--loop-agent (--loop-agents lists those that are installed)"
            )
        told: list[str] = []

        def tell(line: str) -> None:
            told.append(line)
            watch.on_output(f"{line}\n".encode())

        fixed = [self._fixed(one, request.workspace, case, watch, tell) for one in case.remedies]
        if not any(fixed):
            self._repaired(request.workspace, case, watch, tell)
        return AgentReply(report="\n".join(told), usage=Usage(tokens=0, cost_usd=0.0))

    def close(self) -> None:
        """There is nothing that outlives an answer."""

    def _fixed(self, remedy: Remedy, root: Path, case: RepairTask, watch: Watch, tell: Tell) -> bool:
        """Run a command that mends; what it does stays only if that makes things better."""
        problem = ""

        def run() -> None:
            nonlocal problem
            command = remedy.command if remedy.shell else shlex.split(remedy.command)
            try:
                child.run_command(
                    child.Command(
                        command, root / remedy.folder, _FIXER, should_continue=watch.should_continue, is_thorough=True
                    )
                )
            except child.CannotStartError as error:
                problem = str(error)

        is_better = case.attempt(run)
        what = "made it better" if is_better else problem or "made nothing better, and was undone"
        tell(f"`{remedy.command}`: {what}")
        return is_better

    def _repaired(self, root: Path, case: RepairTask, watch: Watch, tell: Tell) -> None:
        """Search for small edits, and write down those that mend something and break nothing."""
        asked = (case.files_hash, case.failing_tests)
        before, ended = self._tried.get(asked, (0.0, "time"))
        if not case.failing_tests or ended != "time":
            tell("no test fails" if not case.failing_tests else "nothing is left to try with these files")
            return
        seconds = min(max(self._seconds, 2 * before), watch.timeout)
        tell(f"searching for small edits of the code, for at most {seconds:g} s")
        found = run_search(make_search_order(case, root, case.failing_tests, seconds), watch, self.name)
        self._tried[asked] = (seconds, found.ended)
        for line in render_report(found):
            tell(line)
        for step in found.steps:
            apply_patch(step, root)


def apply_patch(patch: Patch, root: Path) -> None:
    """Write an edit down."""
    path = root / patch.path
    if path.read_bytes() != patch.before.encode():
        raise AgentError(f"{patch.path} was changed by somebody else while a mistake in it was looked for")
    path.write_bytes(patch.after.encode())


def render_report(found: Result) -> Iterator[str]:
    """What was looked at, what was found, and what was tried: an edit is plausible, and never more than that."""
    died = f" ({found.died:,} ran wild and were ended)" if found.died else ""
    yield f"{found.tried:,} edits tried in {found.seconds:.1f} s{died}"
    if found.localised:
        places = ", ".join(f"{one.path}:{one.line} ({one.score:.2f})" for one in found.localised[:_SHOWN_LINES])
        yield f"most suspicious: {places}"
    for step in found.steps:
        yield f"plausible: {step.path}, {step.description} ({_counted(len(step.fixed))})"
        for other in _instead(step, found.patches)[:_SHOWN_PATCHES]:
            yield f"  as plausible: {other.description}"
    if found.steps:
        yield "an edit that passes the tests may still be wrong: look at it before you keep it"
    if found.remaining or not found.steps:
        reason = found.problem or found.ended
        names = ", ".join(found.remaining[:_SHOWN_LINES])
        yield f"no edit mends {names or 'it'}{f' ({reason})' if reason else ''}"


def _instead(step: Patch, patches: Sequence[Patch]) -> list[Patch]:
    """Other edits that mend the same tests."""
    others = (one for one in patches if (one.path, one.description) != (step.path, step.description))
    return [one for one in others if not one.broken and set(one.fixed) == set(step.fixed)]


def _counted(tests: int) -> str:
    return f"{tests} test{'s' if tests > 1 else ''} pass{'es' if tests == 1 else ''} by it"
