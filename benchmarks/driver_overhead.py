"""Measure the cost of the driver per iteration with 1,000 rules, without agent and session.

The agent and the session answer at once in this process, so that only the machine, the critique and the files remain.
"""

from __future__ import annotations

import io
import itertools
import tempfile
import time
from pathlib import Path
from statistics import median

import pytest
from side_by_side import format_spread, make_parser, render_table

from pytest_loop import hookspecs
from pytest_loop.agents.protocol import AgentReply, AgentRequest, Watch
from pytest_loop.core.events.event import Event
from pytest_loop.core.events.run_payloads import RunStarted
from pytest_loop.core.judging.run_draft import build_run_criteria
from pytest_loop.core.machine.run_machine import RUN_MACHINE
from pytest_loop.core.model.rules import Criteria, Evidence, Finding, Outcome, Rule, SessionPlan
from pytest_loop.core.model.run_setup import Breakers, Setup
from pytest_loop.core.model.run_state import RunState, Task
from pytest_loop.core.model.session_order import SessionOrder
from pytest_loop.core.model.vocabulary import Kind
from pytest_loop.run.context import RunContext
from pytest_loop.run.driver import Driver
from pytest_loop.run.steps import RunSteps
from pytest_loop.session.result import SessionResult
from pytest_loop.settings.settings import make_default_settings
from pytest_loop.show.live_view import LiveView
from pytest_loop.store.project_runs import Store
from pytest_loop.workspace.artifact import Artifact
from pytest_loop.workspace.sealed_files import SealedFiles

FAILING = 20
TARGET = 15
GROWTH = 1.1
PLACES = (10, 100, 300)
WINDOW = 16


class InstantAgent:
    """An agent that answers with a new document each time."""

    name = "instant"
    is_serial = True

    def answer(self, request: AgentRequest, _watch: Watch) -> AgentReply:
        return AgentReply(text=f"# Document\n\niteration {request.iteration}\n" + "words " * 500)

    def close(self) -> None:
        pass


class InstantSession:
    """A session with a prepared result; other rules fail each time."""

    def __init__(self, rules: int) -> None:
        ids = [f"a.rule.n{number}" for number in range(rules)]
        self.plan = SessionPlan(
            criteria=(
                Criteria(
                    name="many", source="many", rules=tuple(Rule(id=rule_id, description=rule_id) for rule_id in ids)
                ),
            ),
            items={f"many::{rule_id}": (f"many::{rule_id}",) for rule_id in ids},
        )
        self.passed = {nodeid: Evidence(outcome=Outcome.PASSED) for nodeid in self.plan.items}
        self.calls = 0

    def evaluate(self, _order: SessionOrder, *_extra: str) -> SessionResult:
        self.calls += 1
        failing = list(self.plan.items)[self.calls % 50 : self.calls % 50 + FAILING]
        failures = {nodeid: _make_failure(nodeid, self.calls) for nodeid in failing}
        return SessionResult(plan=self.plan, evidence=self.passed | failures, canaries=[True], exit_status=1)


def _make_failure(nodeid: str, call: int) -> Evidence:
    finding = Finding(expected="the text 'x'", found=f"it nowhere ({call})", where="doc.md:3", detail="a line\n" * 10)
    return Evidence(outcome=Outcome.FAILED, findings=(finding,), text=nodeid)


def measure_iterations(folder: Path, rules: int, iterations: int) -> list[float]:
    session = InstantSession(rules)
    store = Store(folder)
    files = store.get_run("bench")
    files.acquire()
    state = RunState(
        run_id="bench-1",
        task_alias="bench",
        task=Task(prompt="measure"),
        max_iterations=iterations,
        criteria=build_run_criteria(session.plan, {}),
        setup=Setup(artifact="artifact.md", breakers=Breakers(stuck=0, same_error=0, thrashing=0, stagnation=0)),
    )
    project = SealedFiles(folder, files.folder, (), ("/artifact.md",))
    state = state.replace(seal=project.record_seal())
    start = Event.create(state, RunStarted(state=state), "")
    files.append([start], state)
    ticks: list[float] = []

    def listen(event: Event, _state: RunState) -> None:
        if event.event == Kind.ITERATION_ADVANCED.value:
            ticks.append(time.perf_counter())

    plugins = pytest.PytestPluginManager()
    plugins.add_hookspecs(hookspecs)
    settings = make_default_settings(folder)
    artifact = Artifact(files.artifact)
    tools = RunContext(
        settings, files, artifact, session, [InstantAgent()], None, plugins.hook, LiveView(io.StringIO()), project
    )
    Driver(state, RUN_MACHINE, RunSteps(), store, tools, listen).run()
    files.release()
    return [1000 * (later - earlier) for earlier, later in itertools.pairwise(ticks)]


def main() -> None:
    parser = make_parser(__doc__, rounds=3)
    parser.add_argument("--rules", type=int, default=1_000, metavar="N", help="rules (default: 1,000)")
    parser.add_argument("--iterations", type=int, default=1_000, metavar="N", help="iterations (default: 1,000)")
    options = parser.parse_args()
    places = [at for at in PLACES if at < options.iterations] + [options.iterations]
    windows: dict[int, list[list[float]]] = {at: [] for at in places}
    for _ in range(options.rounds):
        with tempfile.TemporaryDirectory() as folder:
            costs = measure_iterations(Path(folder), options.rules, options.iterations)
        for at in places:
            windows[at].append(costs[max(0, at - WINDOW // 2) :][:WINDOW] or costs[-WINDOW:])
    rows = []
    for at in places:
        typical = [median(window) for window in windows[at]]
        growth = [value / median(first) for value, first in zip(typical, windows[places[0]], strict=True)]
        best = min(map(min, windows[at]))
        rows.append([f"{at:,}", f"{median(typical):.2f}", format_spread(growth), f"{best:.2f}"])
    print(f"The driver alone, {options.rules:,} rules of which {FAILING} fail, {options.rounds} rounds")
    print(f"each figure: the median of {WINDOW} iterations around the one named, and the quickest of all rounds")
    print(render_table(["iteration", "ms", f"ratio to iteration {places[0]}", "best ms"], rows))
    print(f"targets: below {TARGET} ms at iteration 10, a ratio of at most {GROWTH} at iteration 1,000")


if __name__ == "__main__":
    main()
