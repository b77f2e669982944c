"""Several candidates for one edit: each in a work tree of its own, all at once; all are judged, and the best stays."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_loop.agents.protocol import Agent, AgentError, AgentReply, AgentUnavailableError, StopAskedError
from pytest_loop.core.judging.tampering import is_void
from pytest_loop.core.model.evaluation import Assessment, SealFinding
from pytest_loop.store import disk
from pytest_loop.workspace.file_tree import Scope, Tree, look
from pytest_loop.workspace.git import GitError
from pytest_loop.workspace.git_worktree import Worktree, changed, lay_change
from pytest_loop.workspace.project_diff import Change
from pytest_loop.workspace.sealed_files import SealedFiles

MOST_NAMED = 20


@dataclass
class Candidate:
    """One attempt: who made it and where, what it changed, and what the rules say about it."""

    number: int
    agent: Agent
    folder: Path
    before: Tree
    reply: AgentReply = field(default_factory=AgentReply)
    error: AgentError | None = None
    after: Tree | None = None
    change: Change | None = None
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
    say: Callable[[str], None]

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
            disk.write_whole(self._note, start.dump())
            try:
                for one in candidates:
                    self._judged(one, start)
                best = min(candidates, key=lambda one: one.rank)
                self._lay(best)
            except BaseException:
                self.project.go_back(start)
                raise
            finally:
                disk.remove(self._note)
        self.say(f"candidate {best.number} of {self.count} is kept")
        return best, candidates

    @property
    def _note(self) -> Path:
        """Where it is written down how the files were before the first candidate was judged among them."""
        return self.folder / "before-candidates.json"

    def _start(self) -> Tree:
        """The files as they are; after a crash among the candidates, as they were before."""
        if left := disk.content(self._note):
            self.project.go_back(Tree.load(left))
            disk.remove(self._note)
        return self.project.hold()

    @contextmanager
    def _made(self) -> Iterator[list[Candidate]]:
        with ExitStack() as stack:
            candidates = []
            for number in range(1, self.count + 1):
                worktree = Worktree(self.project.root, self.folder / f"candidate-{number}")
                try:
                    worktree.remove()  # of a crash
                    stack.callback(worktree.remove)
                    worktree.make(self.project.scope)
                except GitError as error:
                    raise AgentUnavailableError(f"there is no work tree for a candidate: {error}") from None
                agent = self.make(worktree.project)
                stack.callback(agent.close)
                candidates.append(Candidate(number, agent, worktree.project, look(worktree.project, Scope(""))))
            yield candidates

    def _asked(self, candidates: list[Candidate]) -> None:
        """Let all work at the same time; where one is interrupted, nobody waits for the others."""
        leaving = threading.Event()

        def work(one: Candidate) -> None:
            try:
                one.reply = self.ask(one, leaving.is_set)
            except (AgentUnavailableError, StopAskedError):
                leaving.set()
                raise
            except AgentError as error:
                one.error = error
            one.after = look(one.folder, Scope(""), one.before)
            one.change = changed(self.project.root, one.before, one.folder, one.after)

        with ThreadPoolExecutor(len(candidates)) as pool:
            try:
                for running in [pool.submit(work, one) for one in candidates]:
                    running.result()
            except BaseException:
                leaving.set()
                raise

    def _judged(self, one: Candidate, start: Tree) -> None:
        """Judge a candidate where the run judges everything, sealed as ever; the files are those from before then."""
        if not one.is_edited:
            return
        self._lay(one)
        one.findings = self.project.settle()
        one.judged = self.judge()
        self.project.go_back(start)
        self.say(f"candidate {one.number}: score {one.judged.score:.3g}, {one.lines} lines changed")

    def _lay(self, one: Candidate) -> None:
        if one.change and one.after:
            lay_change(one.folder, one.after, one.change.difference, self.project.root)
