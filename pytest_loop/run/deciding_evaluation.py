"""The evaluation that may end a run as a success: a new interpreter judges the start of the run plus the change."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Protocol

from pytest_loop.core.judging.tampering import LEFT_OUT, UNVERIFIED
from pytest_loop.core.model.evaluation import Evaluation, Seal, SealFinding
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.text.wording import list_names
from pytest_loop.run.build import build_files
from pytest_loop.run.context import RunContext
from pytest_loop.session.runner import SessionError, SessionStoppedError
from pytest_loop.workspace.clean_room import RoomReport
from pytest_loop.workspace.environment import find_changed_package_files
from pytest_loop.workspace.left_out_files import make_entry
from pytest_loop.workspace.session_outputs import is_written

# Evaluate a quicker suite in the usual session first: a second evaluation costs less than a new interpreter each time.
QUICK_SECONDS = 3.0
_MAX_NAMES = 3
_ADVICE = "not part of the change, so set aside for this evaluation: move it, or make it with loop_build"


class EvaluateRules(Protocol):
    """Evaluate the rules in one session; start a new interpreter if `is_deciding`."""

    def __call__(self, *, is_deciding: bool) -> Evaluation: ...


class EvaluateFailures(Protocol):
    """Evaluate only rules that did not pass last time, until a first failure if `stop_early`; None if inconclusive."""

    def __call__(self, *, stop_early: bool) -> Evaluation | None: ...


@dataclass
class DecidingEvaluation:
    """Evaluate in a clean room if the run may be a success; `findings` are signs of tampering found only there."""

    context: RunContext
    state: RunState
    evaluate_rules: EvaluateRules
    evaluate_failures: EvaluateFailures
    should_continue: Callable[[], bool] = lambda: True
    findings: list[SealFinding] = field(default_factory=list)

    def evaluate(self) -> Evaluation:
        """Evaluate the rules in the clean room, unless a test that failed last time still fails.

        Before an agent has worked, use the usual session: there are no edits to keep out. If the tests that failed last
        time pass now, use the clean room at once: most likely everything passes, so one session of all tests is enough.
        While one of them fails, run a long suite as a whole only in the last iteration.
        """
        state = self.state
        if not state.has_agent_worked:
            return self.evaluate_rules(is_deciding=False)
        runs_all = 0 < self._seal.session_seconds < QUICK_SECONDS or state.iteration >= state.max_iterations
        failures = self.evaluate_failures(stop_early=runs_all)
        if failures is None or failures.failed or failures.must_not:
            evaluation = self.evaluate_rules(is_deciding=False) if runs_all else failures
            if evaluation and (evaluation.failed or evaluation.must_not):
                return evaluation
        return self._evaluate_in_clean_room()

    @property
    def _seal(self) -> Seal:
        return self.state.setup.seal or Seal()

    def _evaluate_in_clean_room(self) -> Evaluation:
        room = self.context.clean_room
        stamps = self._read_stamps()
        with room.enter() if room else nullcontext(RoomReport()) as report:
            self._build()
            evaluation = self.evaluate_rules(is_deciding=True)
        self.findings = [
            *self._compare_stamps(stamps),
            *self._compare_environment(),
            *_describe_room(report, is_failed=bool(evaluation.failed)),
        ]
        return evaluation

    def _build(self) -> None:
        """Build what is compiled or generated; raise `SessionError` if that fails."""
        context, command = self.context, self._seal.build
        if not command:
            return
        root, timeout = context.settings.root, context.settings.judging.session_timeout
        with context.live.show_work("building"):
            problem = build_files(command, root, timeout, context.fence.build(root), self.should_continue)
        if not self.should_continue():
            raise SessionStoppedError("the build was stopped on request")
        if problem:
            raise SessionError(problem)

    def _compare_environment(self) -> Iterator[SealFinding]:
        """Yield a finding if installed packages changed; none if a fence keeps them read-only."""
        seal, fence = self._seal, self.context.fence
        if not seal.taken_at or fence.sealing_tool:
            return
        opened = (*seal.opened, *fence.opened)
        if changed := find_changed_package_files(self.context.project.root, seal.taken_at, opened):
            detail = f"{list_names(changed, _MAX_NAMES)} changed; --loop-fence-allow PATH permits installs"
            yield SealFinding(kind="site", rule="the environment", detail=detail)

    def _read_stamps(self) -> dict[str, object]:
        project = self.context.project
        entries = ((path, make_entry(f"{project.root}/{path}")) for path in project.list_sealed_files())
        return {path: entry.stamp if entry else None for path, entry in entries}

    def _compare_stamps(self, before: dict[str, object]) -> Iterator[SealFinding]:
        """Yield a finding for each sealed file written during the evaluation, unless baseline sessions wrote it."""
        written = self._seal.written or ()
        for path, stamp in self._read_stamps().items():
            if stamp != before[path] and not is_written(path, written):
                yield SealFinding(kind="sealed", path=path, detail="was written while it was judged")


def _describe_room(report: RoomReport, *, is_failed: bool) -> Iterator[SealFinding]:
    """Yield files that could not be verified and, after a failure, files set aside that may be its cause."""
    for path, reason in report.unverified.items():
        yield SealFinding(kind=UNVERIFIED, path=path, detail=reason)
    names = [path for path in report.changed if path not in report.unverified]
    if is_failed and names:
        yield SealFinding(kind=LEFT_OUT, path=list_names(names, _MAX_NAMES), detail=_ADVICE)
