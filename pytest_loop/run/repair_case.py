"""What there is to mend in the files of a project, and attempts that stay only where they help."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pytest_loop.agents.protocol import AgentError, Case, StopAskedError, Watch
from pytest_loop.agents.search_engine import order, search
from pytest_loop.core.judging.draft import is_test
from pytest_loop.core.judging.tampering import is_void
from pytest_loop.core.model.evaluation import Assessment
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.text.sanitizer import one_line
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

    def case(self) -> Case:
        """Nothing of it gives away rules that agents must not see."""
        self._reached = self.state.evaluation
        unmet = self._reached.unmet if self._reached else frozenset()
        rules = [rule for rule in self.state.criteria.active(self.state.phase) if rule.id in unmet and not rule.holdout]
        return Case(
            words=self.state.arguments,
            failing=tuple(rule.id for rule in rules if is_test(rule)),
            allow=self.project.allow.patterns,
            files=self.project.digest,
            remedies=tuple(dict.fromkeys(rule.remedy for rule in rules if rule.remedy)),
            attempt=self._attempt,
        )

    def _attempt(self, action: Callable[[], None]) -> bool:
        """Keep what an action does only if more passes than before, and nothing less."""
        before, files = self._reached, self.project.hold()
        action()
        findings = self.project.settle()
        if before is not None and self.project.digest != files.digest:
            now = self.judge()
            if not is_void(findings) and now.score > before.score and now.unmet <= before.unmet:
                self._reached = now
                return True
        self.project.go_back(files)
        return False


def suspects(case: Case, root: Path, watch: Watch) -> tuple[str, ...]:
    """Lines that failing tests run and passing ones seldom do, the most suspicious first; none where that is open."""
    if not case.failing:
        return ()
    asked = order(case, root, case.failing, LONGEST_LOOK).model_copy(update={"localise_only": True})
    try:
        found = search(asked, watch, "the search for suspicious lines").localised[:MOST_SUSPECTS]
    except StopAskedError:
        raise
    except AgentError:
        return ()
    return tuple(f"{one.path}:{one.line} ({one.score:.2f}) {_line(root / one.path, one.line)}" for one in found)


def _line(path: Path, number: int) -> str:
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return one_line(lines[number - 1], 100) if number <= len(lines) else ""
