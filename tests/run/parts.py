"""Small real parts of a run: an agent with prepared answers, a session that looks for words, and a context."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pytest_loop import hookspecs
from pytest_loop.agents.protocol import AgentReply, AgentRequest, Watch
from pytest_loop.core.machine.run_machine import RUN_MACHINE
from pytest_loop.core.model.rules import Evidence, Finding, Outcome, SessionPlan
from pytest_loop.core.model.run_criteria import RunCriteria, RunRule
from pytest_loop.core.model.run_state import RunState, Task
from pytest_loop.core.model.session_order import SessionOrder
from pytest_loop.run.context import RunContext
from pytest_loop.run.step_context import StepContext, StepRecord
from pytest_loop.session.result import SessionResult
from pytest_loop.settings.settings import make_default_settings
from pytest_loop.show.live_view import LiveView
from pytest_loop.store.project_runs import Store
from pytest_loop.store.run_files import RunFiles
from pytest_loop.workspace.artifact import Artifact
from pytest_loop.workspace.sealed_files import SealedFiles

Answer = str | AgentReply | BaseException | Callable[[AgentRequest], AgentReply]
# Closed after each test.
OPEN_PROJECTS: list[SealedFiles] = []


@dataclass
class ScriptedAgent:
    """An agent that gives prepared answers in order, and records its requests."""

    answers: list[Answer]
    name: str = "scripted"
    requests: list[AgentRequest] = field(default_factory=list)
    is_closed: bool = False

    def answer(self, request: AgentRequest, watch: Watch) -> AgentReply:
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        if isinstance(answer, str):
            return AgentReply(text=answer)
        return answer if isinstance(answer, AgentReply) else answer(request)

    def close(self) -> None:
        self.is_closed = True


def make_agent(*answers: Answer, **fields: Any) -> ScriptedAgent:
    return ScriptedAgent(list(answers), **fields)


@dataclass
class WordSession:
    """A session whose rules `a.word.WORD` pass if a file contains the word.

    `results` replace the next results. The document is that of the order, or `path` in a run that edits files.
    """

    path: Path
    rules: tuple[RunRule, ...]
    orders: list[SessionOrder] = field(default_factory=list)
    results: list[SessionResult] = field(default_factory=list)
    plugins: frozenset[str] = frozenset()

    def evaluate(self, order: SessionOrder, *extra: str) -> SessionResult:
        self.orders.append(order)
        if self.results:
            return self.results.pop(0)
        path = Path(order.artifact) if order.artifact else self.path
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        rules = [rule for rule in self.rules if not order.selected or rule.id in order.selected]
        evidence = {rule.id: _find_word(rule.id.rpartition(".")[2], text) for rule in rules}
        plan = SessionPlan(items={rule.id: (rule.id,) for rule in rules})
        return SessionResult(plan, evidence, canaries=[True], plugins=self.plugins, exit_status=0)


def _find_word(word: str, text: str) -> Evidence:
    if word in text:
        return Evidence(outcome=Outcome.PASSED)
    return Evidence(outcome=Outcome.FAILED, findings=(Finding(expected=word, found=text.strip() or "nothing"),))


def make_rules(*names: str, **fields: Any) -> tuple[RunRule, ...]:
    """Return rules whose phase is the first letter of their names, unless `fields` has one."""
    return tuple(
        RunRule(**{"id": name, "key": name, "description": name, "phase": name[0].upper(), **fields}) for name in names
    )


def make_hook(*plugins: object) -> Any:
    """Return the hooks of pytest-loop, with these plugins."""
    manager = pytest.PytestPluginManager()
    manager.add_hookspecs(hookspecs)
    for plugin in plugins:
        manager.register(plugin)
    return manager.hook


@dataclass
class SmallRun:
    """The files, state and context of a run in a temporary folder."""

    root: Path
    agent: ScriptedAgent
    state: RunState
    context: RunContext
    session: WordSession
    store: Store
    files: RunFiles
    output: io.StringIO

    def make_step(self, **state_fields: Any) -> StepContext:
        return StepContext(self.context, self.state.replace(**state_fields), lambda: True, StepRecord())


def make_run(
    root: Path,
    *answers: Answer,
    rules: tuple[RunRule, ...] = (),
    project: SealedFiles | None = None,
    plugins: tuple[object, ...] = (),
    settings: dict[str, Any] | None = None,
    state: dict[str, Any] | None = None,
    **context: Any,
) -> SmallRun:
    """Return a run at its first step; `answers` are those of its agent."""
    rules = rules or make_rules("a.word.blue")
    root.mkdir(exist_ok=True)
    path = root / ("shop.py" if project else "guide.md")
    artifact = ".loop/guide/artifact.md" if project else "guide.md"
    if project is None:
        project = SealedFiles(root, root / ".loop" / "guide", ["*.rules.yaml"], ["/guide.md"])
        OPEN_PROJECTS.append(project)
    fields: dict[str, Any] = {"artifact": artifact, **(state or {})}
    if "seal" not in fields:
        fields["seal"] = project.record_seal()
    first = RunState(run_id="guide-1", task_alias="guide", task=Task(prompt="Write"), criteria=RunCriteria(rules=rules))
    first = RUN_MACHINE.begin(first.replace(**fields))
    store = Store(root)
    files = store.get_run("guide")
    session, agent, output = WordSession(path, rules), make_agent(*answers), io.StringIO()
    parts: dict[str, Any] = {"agents": [agent], "judge": agent, **context}
    run_context = RunContext(
        make_default_settings(root, **(settings or {})),
        files,
        Artifact(root / artifact),
        session,
        hook=make_hook(*plugins),
        live=LiveView(output),
        project=project,
        **parts,
    )
    return SmallRun(root, agent, first, run_context, session, store, files, output)
