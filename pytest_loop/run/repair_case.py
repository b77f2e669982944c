"""What there is to mend in the files of a project, and attempts that stay only where they help."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pytest_loop.agents.protocol import AgentError, RepairTask, StopRequestedError, Watch
from pytest_loop.agents.search_engine import search_edits
from pytest_loop.core.judging.draft import is_test_rule
from pytest_loop.core.judging.tampering import is_void
from pytest_loop.core.model.run_state import Assessment, RunState
from pytest_loop.core.text.lengths import shorten
from pytest_loop.workspace.sealed_files import SealedFiles

MOST_SUSPECTS = 5
LONGEST_LOOK = 30.0


@dataclass
class Mending:
    """The files of a run as somebody may mend them; `judge` is an evaluation of what is there now."""

    project: SealedFiles
    state: RunState
    judge: Callable[[], Assessment]
    _reached: Assessment | None = None

    def case(self) -> RepairTask:
        """Nothing of it gives away rules that agents must not see."""
        self._reached = self.state.evaluation
        unmet = self._reached.unmet if self._reached else frozenset()
        rules = [
            rule
            for rule in self.state.criteria.get_active_rules(self.state.phase)
            if rule.id in unmet and not rule.holdout
        ]
        return RepairTask(
            session_arguments=self.state.arguments,
            failing_tests=tuple(rule.id for rule in rules if is_test_rule(rule)),
            editable=self.project.allow.patterns,
            files_hash=self.project.digest,
            remedies=tuple(dict.fromkeys(rule.remedy for rule in rules if rule.remedy)),
            attempt=self._attempt,
        )

    def _attempt(self, action: Callable[[], None]) -> bool:
        """Keep what an action does only if more passes than before, and nothing less."""
        before, files = self._reached, self.project.save_current()
        action()
        findings = self.project.enforce_seal()
        if before is not None and self.project.digest != files.digest:
            now = self.judge()
            if not is_void(findings) and now.score > before.score and now.unmet <= before.unmet:
                self._reached = now
                return True
        self.project.restore_tree(files)
        return False


def suspects(case: RepairTask, root: Path, watch: Watch) -> tuple[str, ...]:
    """Lines that failing tests run and passing ones seldom do, the most suspicious first; none where that is open."""
    if not case.failing_tests:
        return ()
    name = "the search for suspicious lines"
    try:
        found = search_edits(case, root, LONGEST_LOOK, watch, name, localise_only=True).localised[:MOST_SUSPECTS]
    except StopRequestedError:
        raise
    except AgentError:
        return ()
    return tuple(f"{one.path}:{one.line} ({one.score:.2f}) {_line(root / one.path, one.line)}" for one in found)


def _line(path: Path, number: int) -> str:
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return shorten(lines[number - 1], 100) if number <= len(lines) else ""
