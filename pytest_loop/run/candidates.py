"""Several candidates for one edit: each in a work tree of its own, all at once; all are judged, and the best stays."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_loop.agents.protocol import Agent, AgentError, AgentReply, AgentUnavailableError, StopRequestedError
from pytest_loop.core.judging.tampering import is_void
from pytest_loop.core.model.run_state import Assessment, SealFinding
from pytest_loop.core.text.wording import PrintLine
from pytest_loop.store import disk
from pytest_loop.workspace.file_scan import ScanScope, scan_files
from pytest_loop.workspace.file_tree import FileTree
from pytest_loop.workspace.git import GitError
from pytest_loop.workspace.git_worktree import Worktree, compute_folder_diff, copy_changes
from pytest_loop.workspace.project_diff import ProjectDiff
from pytest_loop.workspace.sealed_files import SealedFiles

MOST_NAMED = 20


@dataclass
class Candidate:
    """One attempt: who made it and where, what it changed, and what the rules say about it."""

    number: int
    agent: Agent
    folder: Path
    before: FileTree
    reply: AgentReply = field(default_factory=AgentReply)
    error: AgentError | None = None
    after: FileTree | None = None
    change: ProjectDiff | None = None
    judged: Assessment | None = None
    findings: list[SealFinding] = field(default_factory=list)

    @property
    def lines(self) -> int:
        """How many lines it changed."""
        return self.change.lines_added + self.change.lines_removed if self.change else 0

    @property
    def is_edited(self) -> bool:
        return self.change is not None and bool(self.change.paths)

    @property
    def rank(self) -> tuple[bool, float, int, int]:
        """The best is the smallest: never one that touched what judges, then by score, then the smallest change."""
        score = self.judged.score if self.judged else -1.0
        return is_void(self.findings), -score, self.lines, self.number

    def told(self, *, is_kept: bool) -> dict[str, Any]:
        """As the history has it."""
        said: dict[str, Any] = {"candidate": self.number, "agent": self.agent.name, "kept": is_kept}
        usage = self.reply.usage.model_dump(exclude_none=True)
        said |= {"lines": self.lines, **({"usage": usage} if usage else {})}
        said |= {"changed": list(self.change.paths[:MOST_NAMED])} if self.change else {}
        if self.judged:
            said |= {"score": self.judged.score, "passed": self.judged.passed, "failed": len(self.judged.failed)}
        said |= {"void": True} if is_void(self.findings) else {}
        said |= {"error": str(self.error)} if self.error else {}
        return said


@dataclass(frozen=True)
class Trying:
    """The project, who makes candidates in the folder of each (`make`, `ask`), and who judges what is there now."""

    project: SealedFiles
    folder: Path
    count: int
    make: Callable[[Path], Agent]
    ask: Callable[[Candidate, Callable[[], bool]], AgentReply]
    judge: Callable[[], Assessment]
    say: PrintLine

    def tried(self) -> tuple[Candidate, list[Candidate]]:
        """The best candidate, whose files are in place then, and all of them."""
        start = self._start()
        with self._made() as candidates:
            self._asked(candidates)
            if failed := [one.error for one in candidates if one.error and not one.is_edited]:
                if len(failed) == len(candidates):
                    raise failed[0]
                for error in failed:
                    self.say(str(error))
            disk.write_atomically(self._note, start.to_json())
            try:
                for one in candidates:
                    self._judged(one, start)
                best = min(candidates, key=lambda one: one.rank)
                self._lay(best)
            except BaseException:
                self.project.restore_tree(start)
                raise
            finally:
                disk.remove_file(self._note)
        self.say(f"candidate {best.number} of {self.count} is kept")
        return best, candidates

    @property
    def _note(self) -> Path:
        """Where it is written down how the files were before the first candidate was judged among them."""
        return self.folder / "before-candidates.json"

    def _start(self) -> FileTree:
        """The files as they are; after a crash among the candidates, as they were before."""
        if left := disk.read_file(self._note):
            self.project.restore_tree(FileTree.from_json(left))
            disk.remove_file(self._note)
        return self.project.save_current()

    @contextmanager
    def _made(self) -> Iterator[list[Candidate]]:
        with ExitStack() as stack:
            candidates = []
            for number in range(1, self.count + 1):
                worktree = Worktree(self.project.root, self.folder / f"candidate-{number}")
                try:
                    worktree.remove()  # of a crash
                    stack.callback(worktree.remove)
                    worktree.create(self.project.scope)
                except GitError as error:
                    raise AgentUnavailableError(f"there is no work tree for a candidate: {error}") from None
                agent = self.make(worktree.project)
                stack.callback(agent.close)
                candidates.append(
                    Candidate(number, agent, worktree.project, scan_files(worktree.project, ScanScope("")))
                )
            yield candidates

    def _asked(self, candidates: list[Candidate]) -> None:
        """Let all work at the same time; where one is interrupted, nobody waits for the others."""
        leaving = threading.Event()

        def work(one: Candidate) -> None:
            try:
                one.reply = self.ask(one, leaving.is_set)
            except (AgentUnavailableError, StopRequestedError):
                leaving.set()
                raise
            except AgentError as error:
                one.error = error
            one.after = scan_files(one.folder, ScanScope(""), one.before)
            one.change = compute_folder_diff(self.project.root, one.before, one.folder, one.after)

        with ThreadPoolExecutor(len(candidates)) as pool:
            try:
                for running in [pool.submit(work, one) for one in candidates]:
                    running.result()
            except BaseException:
                leaving.set()
                raise

    def _judged(self, one: Candidate, start: FileTree) -> None:
        """Judge a candidate where the run judges everything, sealed as ever; the files are those from before then."""
        if not one.is_edited:
            return
        self._lay(one)
        one.findings = self.project.enforce_seal()
        one.judged = self.judge()
        self.project.restore_tree(start)
        self.say(f"candidate {one.number}: score {one.judged.score:.3g}, {one.lines} lines changed")

    def _lay(self, one: Candidate) -> None:
        if one.change and one.after:
            copy_changes(one.folder, one.after, one.change.changes, self.project.root)
