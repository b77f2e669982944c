"""Fix failing rules and tests without a model (`builtin`): run fix commands, then search for small edits."""

from __future__ import annotations

import json
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import ValidationError

from pytest_loop.agents.command_agent import run_agent_command
from pytest_loop.agents.protocol import AgentError, AgentReply, AgentRequest, AgentUnavailableError, RepairTask, Watch
from pytest_loop.core.model.rules import Remedy
from pytest_loop.core.model.run_state import Usage
from pytest_loop.core.model.vocabulary import BUILTIN
from pytest_loop.core.text.lengths import shorten
from pytest_loop.core.text.wording import list_names
from pytest_loop.errors import LoopError
from pytest_loop.processes.child import CannotStartError, Command, run_command
from pytest_loop.repair.engine_process import RunShares
from pytest_loop.repair.repair_request import Patch, RepairRequest, RepairResult, merge_shares

DEFAULT_SECONDS = 45.0
_SHOWN_LINES = 5
_SHOWN_PATCHES = 3
_SHOWN_NAMES = 2
_END_REASONS = {"exhausted": "", "time": "out of time: builtin:300 searches longer", "candidates": "enough edits tried"}
_REMEDY_TIMEOUT = 120.0
ENGINE = "pytest_loop.repair"
# The time limit of a search does not include collection, one run of all tests, and the confirmation of its edits.
_OVERHEAD = 60.0
_SECONDS_AFTER_GREEN = 1.5
_WITHOUT_THIS_PLUGIN = ("-p", "no:agent_loop")

Report = Callable[[str], None]


class BuiltinAgent:
    """Fix the files of a project; write no documents and answer no questions.

    `seconds` limits the search of one iteration. A search that found nothing is repeated for the same files only if it
    ran out of time, with twice the limit.
    """

    def __init__(self, seconds: float = DEFAULT_SECONDS) -> None:
        self.name = BUILTIN
        self._seconds = seconds
        self._searches: dict[tuple[str, tuple[str, ...]], tuple[float, str]] = {}

    def answer(self, request: AgentRequest, watch: Watch) -> AgentReply:
        task = request.repair_task
        if task is None or request.schema is not None:
            raise AgentUnavailableError(
                "the built-in agent fixes the Python files of a project, and nothing else: name another agent with "
                "--loop-agent (pytest-loop agents lists all)"
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
            command = Command(words, root / remedy.folder, _REMEDY_TIMEOUT, ends_detached=True, fence=watch.fence)
            try:
                run_command(replace(command, should_continue=watch.should_continue))
            except CannotStartError as error:
                problem = str(error)

        is_better = task.attempt(run)
        outcome = "made it better" if is_better else problem or "no improvement; reverted"
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

        def show(line: str) -> None:
            watch.on_output(f"{line}\n".encode())

        show(f"searching for small edits of the code, for at most {seconds:g} s")
        result = search_edits(task, root, seconds, watch, self.name, show)
        if result.end_reason == "time" and task.run_shares is not None:
            show(f"searching on workers, for at most {seconds:g} s")
            try:
                result = merge_shares(_search_shares(task, task.run_shares, root, seconds))
            except AgentError:
                raise
            except LoopError as error:
                report(f"not searched on workers: {error}")
        self._searches[key] = (seconds, result.end_reason)
        for line in render_report(result):
            report(line)
        for patch in result.steps:
            apply_patch(patch, root)


def search_edits(
    task: RepairTask,
    root: Path,
    seconds: float,
    watch: Watch,
    name: str,
    report: Report | None = None,
    *,
    localise_only: bool = False,
) -> RepairResult:
    """Search in a separate process for edits that fix the failing tests; raise `AgentError` if it returns no result.

    `report` is called with the plan of the search, `name` is the agent's name in errors. With `localise_only`, the
    search only ranks lines.
    """
    repair_request = _make_request(task, root, seconds).model_copy(update={"localise_only": localise_only})
    with tempfile.TemporaryDirectory(prefix="pytest-loop-") as home:
        folder = Path(home)  # the project's own folder could replace installed modules
        request_file, result_file = folder / "request.json", folder / "result.jsonl"
        request_file.write_text(repair_request.model_dump_json(), encoding="utf-8")
        command = [sys.executable, "-m", ENGINE, str(request_file), str(result_file)]
        planning = replace(watch, should_continue=_PlanReader(result_file, watch.should_continue, report).poll)
        command_result = run_agent_command(Command(command, folder, seconds + _OVERHEAD), name, planning)
        lines = result_file.read_text(encoding="utf-8").splitlines() if result_file.exists() else []
    try:
        return RepairResult.model_validate_json(lines[-1] if lines else "")
    except ValidationError:
        output = shorten(command_result.output[-400:], 300)
        raise AgentError(
            f"the search for an edit ended without a result (exit code {command_result.exit_code}): {output}"
        ) from None


def _make_request(task: RepairTask, root: Path, seconds: float) -> RepairRequest:
    return RepairRequest(
        folder=root,
        pytest_arguments=(*_WITHOUT_THIS_PLUGIN, *task.session_arguments),
        allow=task.editable,
        failing=task.failing_tests,
        seconds=seconds,
        seconds_after_green=min(_SECONDS_AFTER_GREEN, seconds / 4),
    )


def _search_shares(task: RepairTask, run_shares: RunShares, root: Path, seconds: float) -> list[RepairResult]:
    """Return the result of each worker, which tries a share of the edits."""
    texts = run_shares(ENGINE, _make_request(task, root, seconds).model_dump_json())
    return [RepairResult.model_validate_json(text.splitlines()[-1]) for text in texts]


@dataclass
class _PlanReader:
    """Report the plan of a search once, when the search has written it."""

    result_file: Path
    should_continue: Callable[[], bool]
    report: Report | None

    def poll(self) -> bool:
        """Report the plan if it is new; return whether the search may continue."""
        if self.report is not None and self.result_file.exists():
            line, newline, _ = self.result_file.read_text(encoding="utf-8").partition("\n")
            if newline:
                if plan := json.loads(line).get("plan"):
                    self.report(plan)
                self.report = None
        return self.should_continue()


def apply_patch(patch: Patch, root: Path) -> None:
    """Write an edit; raise `AgentError` if the file was changed since the search read it."""
    path = root / patch.path
    if path.read_bytes() != patch.before.encode():
        raise AgentError(f"{patch.path} was changed by another program during the search")
    path.write_bytes(patch.after.encode())


def render_report(result: RepairResult) -> Iterator[str]:
    """Describe a search: the edits tried, the most suspicious lines, and the plausible edits."""
    yield f"{result.tried:,} edits tried in {result.seconds:.1f} s{_describe_remaining(result)}"
    if result.crash_count:
        yield f"{result.crash_count:,} of them crashed or timed out"
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
        yield "an edit that passes the tests may still be wrong: review it before you keep it"


def _describe_remaining(result: RepairResult) -> str:
    if not result.remaining and result.steps:
        return ""
    reason = result.problem or _END_REASONS.get(result.end_reason, result.end_reason)
    names = list_names([name.rpartition("::")[2] for name in result.remaining], _SHOWN_NAMES)
    return f", none fixes {names or 'it'}{f' ({reason})' if reason else ''}"


def _find_alternatives(patch: Patch, result: RepairResult) -> list[Patch]:
    """Return other edits that fix the same tests."""
    return [
        other
        for other in result.patches
        if (other.path, other.description) != (patch.path, patch.description) and set(other.fixed) == set(patch.fixed)
    ]
