"""Repairs of a project's files: the task for an agent, attempts that must help, and suspicious lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_loop.agents.builtin_agent import search_edits
from pytest_loop.agents.protocol import AgentError, RepairTask, StopRequestedError, Watch
from pytest_loop.core.judging.tampering import is_void
from pytest_loop.core.model.evaluation import Evaluation
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.text.lengths import shorten
from pytest_loop.repair.engine_process import RunShares
from pytest_loop.session.runner import SessionStoppedError
from pytest_loop.workspace.sealed_files import SealedFiles

MAX_SUSPECTS = 5
MAX_SEARCH_SECONDS = 30.0


@dataclass
class RepairAttempts:
    """Edits of a run's files that are kept only if they help; `evaluate` judges the current files."""

    project: SealedFiles
    state: RunState
    evaluate: Callable[[], Evaluation]
    run_shares: RunShares | None = None
    _best: Evaluation | None = None

    def build_task(self) -> RepairTask:
        """Return a repair task without held-out rules; attempts must beat the score of the last evaluation."""
        self._best = self.state.evaluation
        unmet = self._best.unmet if self._best else frozenset()
        rules = [
            rule
            for rule in self.state.criteria.get_active_rules(self.state.phase)
            if rule.id in unmet and not rule.held_out
        ]
        return RepairTask(
            session_arguments=self.state.setup.arguments,
            failing_tests=tuple(rule.id for rule in rules if rule.is_test),
            editable=self.project.allow.patterns,
            files_hash=self.project.digest,
            remedies=tuple(dict.fromkeys(rule.remedy for rule in rules if rule.remedy)),
            attempt=self._attempt,
            run_shares=self._run_shares if self.run_shares else None,
        )

    def _run_shares(self, engine: str, request: str) -> Sequence[str]:
        try:
            return self.run_shares(engine, request) if self.run_shares else ()
        except SessionStoppedError as error:
            raise StopRequestedError(str(error)) from None

    def _attempt(self, action: Callable[[], None]) -> bool:
        """Keep the edits of an action if the score rises and no further rule fails; return whether they were kept."""
        before, files = self._best, self.project.save_current()
        action()
        findings = self.project.enforce_seal()
        if before is not None and self.project.digest != files.digest:
            now = self.evaluate()
            if not is_void(findings) and now.score > before.score and now.unmet <= before.unmet:
                self._best = now
                return True
        self.project.restore_tree(files)
        return False


def find_suspicious_lines(task: RepairTask, root: Path, watch: Watch) -> tuple[str, ...]:
    """Return lines that failing tests run and passing ones rarely do, the most suspicious first."""
    if not task.failing_tests:
        return ()
    name = "the search for suspicious lines"
    try:
        lines = search_edits(task, root, MAX_SEARCH_SECONDS, watch, name, localise_only=True).localised[:MAX_SUSPECTS]
    except StopRequestedError:
        raise
    except AgentError:
        return ()
    return tuple(
        f"{line.path}:{line.line} ({line.score:.2f}) {_read_line(root / line.path, line.line)}" for line in lines
    )


def _read_line(path: Path, number: int) -> str:
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return shorten(lines[number - 1], 100) if number <= len(lines) else ""
