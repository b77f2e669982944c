"""Let several agents try one edit, each in its own worktree; evaluate all candidates, and keep the best."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pytest_loop.agents.protocol import Agent, AgentError, AgentReply, AgentUnavailableError, StopRequestedError
from pytest_loop.core.events.run_payloads import CandidateResult
from pytest_loop.core.judging.tampering import is_void
from pytest_loop.core.model.evaluation import Evaluation, SealFinding
from pytest_loop.core.model.run_state import Usage
from pytest_loop.core.text.score_text import format_score
from pytest_loop.core.text.wording import PrintLine
from pytest_loop.store import disk
from pytest_loop.workspace.file_scan import ScanScope, scan_files
from pytest_loop.workspace.file_tree import FileTree
from pytest_loop.workspace.git import GitError
from pytest_loop.workspace.git_worktree import Worktree, compute_folder_diff, copy_changes
from pytest_loop.workspace.project_diff import ProjectDiff
from pytest_loop.workspace.sealed_files import SealedFiles

MAX_PATHS = 20


@dataclass
class Candidate:
    """One attempt at an edit: its agent and worktree, its change, and its evaluation."""

    number: int
    agent: Agent
    folder: Path
    before: FileTree
    reply: AgentReply = field(default_factory=AgentReply)
    error: AgentError | None = None
    after: FileTree | None = None
    diff: ProjectDiff | None = None
    evaluation: Evaluation | None = None
    findings: list[SealFinding] = field(default_factory=list)

    @property
    def usage(self) -> Usage:
        return self.error.usage if self.error else self.reply.usage

    @property
    def changed_lines(self) -> int:
        return self.diff.lines_added + self.diff.lines_removed if self.diff else 0

    @property
    def has_edit(self) -> bool:
        return self.diff is not None and bool(self.diff.paths)

    @property
    def rank(self) -> tuple[bool, float, int, int]:
        """The sort key, best first: no edit of sealed files, the highest score, the smallest change."""
        score = self.evaluation.score if self.evaluation else -1.0
        return is_void(self.findings), -score, self.changed_lines, self.number

    def summarise(self, *, is_kept: bool) -> CandidateResult:
        """Return the record for the history."""
        evaluation = self.evaluation
        return CandidateResult(
            candidate=self.number,
            agent=self.agent.name,
            kept=is_kept,
            lines=self.changed_lines,
            usage=self.usage,
            changed=tuple(self.diff.paths[:MAX_PATHS]) if self.diff else None,
            score=evaluation.score if evaluation else None,
            passed=evaluation.passed if evaluation else None,
            failed=len(evaluation.failed) if evaluation else None,
            void=is_void(self.findings),
            error=str(self.error) if self.error else "",
        )


@dataclass(frozen=True)
class CandidateRound:
    """One edit by `count` candidates; `folder` is the run's folder.

    `make_agent` makes an agent for a worktree, `ask` asks the agent of a candidate, and `evaluate` judges the project.
    """

    project: SealedFiles
    folder: Path
    count: int
    make_agent: Callable[[Path], Agent]
    ask: Callable[[Candidate, Callable[[], bool]], AgentReply]
    evaluate: Callable[[], Evaluation]
    print_line: PrintLine

    def keep_best(self) -> tuple[Candidate, list[Candidate]]:
        """Try all candidates, and copy the files of the best one into the project; return it, and all of them."""
        start = self._save_snapshot()
        with self._prepare_candidates() as candidates:
            self._ask_all(candidates)
            self._report_errors(candidates)
            disk.write_atomically(self._snapshot_file, start.to_json())
            try:
                for candidate in candidates:
                    self._evaluate(candidate, start)
                best = min(candidates, key=lambda candidate: candidate.rank)
                self._copy_to_project(best)
            except BaseException:
                self.project.restore_tree(start)
                raise
            finally:
                disk.remove_file(self._snapshot_file)
        self.print_line(f"candidate {best.number} of {self.count} is kept")
        return best, candidates

    def _report_errors(self, candidates: list[Candidate]) -> None:
        """Print the errors of candidates without an edit; if there are no others, raise the first."""
        errors = [candidate.error for candidate in candidates if candidate.error and not candidate.has_edit]
        if errors and len(errors) == len(candidates):
            raise errors[0]
        for error in errors:
            self.print_line(str(error))

    @property
    def _snapshot_file(self) -> Path:
        """The saved files of the project: present only while candidates are evaluated in it."""
        return self.folder / "before-candidates.json"

    def _save_snapshot(self) -> FileTree:
        """Return the files of the project; if a crash left a snapshot, restore it first."""
        if data := disk.read_file(self._snapshot_file):
            self.project.restore_tree(FileTree.from_json(data))
            disk.remove_file(self._snapshot_file)
        return self.project.save_current()

    @contextmanager
    def _prepare_candidates(self) -> Iterator[list[Candidate]]:
        """Make a worktree and an agent for each candidate, and remove them in the end."""
        with ExitStack() as stack:
            candidates = []
            for number in range(1, self.count + 1):
                worktree = Worktree(self.project.root, self.folder / f"candidate-{number}")
                try:
                    worktree.remove()  # left by a crash
                    stack.callback(worktree.remove)
                    worktree.create(self.project.scope)
                except GitError as error:
                    raise AgentUnavailableError(f"there is no work tree for a candidate: {error}") from None
                agent = self.make_agent(worktree.project)
                stack.callback(agent.close)
                before = scan_files(worktree.project, ScanScope(""))
                candidates.append(Candidate(number, agent, worktree.project, before))
            yield candidates

    def _ask_all(self, candidates: list[Candidate]) -> None:
        """Ask all agents at the same time; if one is interrupted, cancel the others."""
        cancelled = threading.Event()

        def ask_one(candidate: Candidate) -> None:
            try:
                candidate.reply = self.ask(candidate, cancelled.is_set)
            except (AgentUnavailableError, StopRequestedError):
                cancelled.set()
                raise
            except AgentError as error:
                candidate.error = error
            folder = candidate.folder
            candidate.after = scan_files(folder, ScanScope(""), candidate.before)
            candidate.diff = compute_folder_diff(self.project.root, candidate.before, folder, candidate.after)

        with ThreadPoolExecutor(len(candidates)) as pool:
            try:
                for future in [pool.submit(ask_one, candidate) for candidate in candidates]:
                    future.result()
            except BaseException:
                cancelled.set()
                raise

    def _evaluate(self, candidate: Candidate, start: FileTree) -> None:
        """Evaluate a candidate in the project, where the seal applies, and restore the files afterwards."""
        if not candidate.has_edit:
            return
        self._copy_to_project(candidate)
        candidate.findings = self.project.enforce_seal()
        candidate.evaluation = self.evaluate()
        self.project.restore_tree(start)
        score, lines = candidate.evaluation.score, candidate.changed_lines
        self.print_line(f"candidate {candidate.number}: score {format_score(score)}, {lines} lines changed")

    def _copy_to_project(self, candidate: Candidate) -> None:
        if candidate.diff and candidate.after:
            copy_changes(candidate.folder, candidate.after, candidate.diff.changes, self.project.root)
