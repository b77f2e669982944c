"""Runs built from events by the machine, without agents, sessions or files."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

from pytest_loop.core.judging.assessment import assess
from pytest_loop.core.judging.critique import build_critique
from pytest_loop.core.machine.run_machine import RUN_MACHINE
from pytest_loop.core.model.rules import Evidence, Finding, Outcome, Phase, Severity
from pytest_loop.core.model.run_criteria import RunCriteria, RunRule
from pytest_loop.core.model.run_state import RunState, Task
from pytest_loop.core.model.vocabulary import Kind, Target
from tests.event_factory import make_event

MOMENT = "2026-01-02T03:04:05.678Z"
HOSTILE = [
    "<script>alert(1)</script>", "</script><script>alert(1)</script>", "</style><img src=x onerror=alert(1)>", "-->", "<!--",
    "\" onclick=\"alert(1)", "' onclick='alert(1)", "&lt;b&gt;", "]]>", "</svg></title></desc><b>", "</textarea>", "{{ 7 * 7 }}",
    "{% raw %}", "\x00\x01\x1b[31m\x7f\x9b", "\u202egnp.exe\u2066", "\u2028\u2029", "\ud800", "__proto__", "constructor", "\\u003cscript>",
    "javascript:alert(1)", "</pre></del></ins>", "a\tb", "\ufeff", "é日本",
]  # fmt: skip


class RunStory:
    """A run on existing files; every event is added at the current step."""

    def __init__(self, *rules: RunRule | str, task: str = "fix until green", **fields: Any) -> None:
        criteria_rules = tuple(
            evaluation if isinstance(evaluation, RunRule) else RunRule(id=evaluation, description=evaluation)
            for evaluation in rules
        )
        usual = {"target": Target.WORKSPACE, "artifact": "artifact.md", "agents": ("scripted",), "max_iterations": 99}
        state = RunState(
            run_id="green-1",
            task_alias="green",
            task=Task(prompt=task),
            criteria=RunCriteria(rules=criteria_rules),
            created_at=MOMENT,
        )
        self.state = self.first_state = RUN_MACHINE.begin(state.replace(**{**usual, **fields}))
        self.events = [make_event(self.state, "run_started", {"state": self.state.model_dump(mode="json")}, MOMENT)]

    def add(self, kind: Kind, **payload: Any) -> RunStory:
        event = make_event(self.state, kind.value, payload, MOMENT)
        self.state = RUN_MACHINE.apply(self.state, event)
        self.events.append(event)
        return self

    def evaluate(self, failing: Mapping[str, str | Finding] | Iterable[str] = (), **payload: Any) -> RunStory:
        messages = failing if isinstance(failing, Mapping) else dict.fromkeys(failing, "no")
        reported = {rule.key or rule.id: [_build_evidence(messages.get(rule.id))] for rule in self.state.criteria.rules}
        digest = _compute_hash(self.state.iteration)
        evaluation = assess(self.state.criteria, self.state.phase, reported, digest, self.state.evaluation)
        story = evaluation.model_dump(mode="json", exclude_defaults=True) | {
            "score": evaluation.score,
            "passed": evaluation.passed,
        }
        return self.add(Kind.EVALUATION_DONE, **{"seconds": 1.5, **story, **payload})

    def refine(self, **payload: Any) -> RunStory:
        """Add the critique, an edit and the next iteration."""
        assert self.state.evaluation is not None
        critique = build_critique(self.state.criteria, self.state.evaluation, self.state.progress.attempts)
        self.add(Kind.CRITIQUE_DONE, **critique.model_dump(mode="json", exclude_defaults=True), seconds=0.002)
        edit = {
            "previous_artifact_hash": self.state.progress.artifact_hash,
            "artifact_hash": _compute_hash(self.state.iteration + 1),
            "seconds": 2.0,
        }
        self.add(Kind.REFINEMENT_DONE, **{**edit, **payload})
        return self.add(Kind.ITERATION_ADVANCED).add(Kind.PLAN_CREATED, plan=[], seconds=0.0)

    def end(self, reason: str) -> RunStory:
        kind = Kind.FAILED if reason == "phase_error" else Kind.STOPPED
        return self.add(kind, reason=reason)


def _compute_hash(iteration: int) -> str:
    return hashlib.sha256(str(iteration).encode()).hexdigest()


def _build_evidence(messages: str | Finding | None) -> Evidence:
    if messages is None:
        return Evidence(outcome=Outcome.PASSED)
    finding = messages if isinstance(messages, Finding) else Finding(expected="", found=messages)
    return Evidence(outcome=Outcome.FAILED, findings=(finding,))


def build_small_run() -> RunStory:
    """Build a run with three evaluations, both phases, a warning, and a limit that ends it."""
    rules = (
        RunRule(id="a.totals", description="Totals are right", weight=3),
        RunRule(id="a.names", description="Names are unique"),
        RunRule(id="b.style", description="It reads well", severity=Severity.WARN, weight=1, phase=Phase.B),
        RunRule(id="b.speed", description="It is quick", phase=Phase.B),
    )
    wrong = Finding(expected="12", found="11", where="shop.py:3", detail="    def total():\n>       return 11")
    story = RunStory(*rules, max_iterations=2)
    story.evaluate({"a.totals": wrong, "a.names": "tea is there twice"})
    story.refine(
        agent="scripted",
        report="looked for the sum\nmended one line",
        usage={"tokens": 1200},
        changed=["shop.py"],
        diff="--- a/shop.py\n+++ b/shop.py\n@@ -1,3 +1,3 @@\n def total():\n---- 11\n-    return 11\n+    return 12\n+++ 12",
    )
    story.evaluate().add(Kind.PHASE_SWITCHED)
    return story.evaluate({"b.style": "too long", "b.speed": "3 s"}).end("iteration_limit")


def build_large_run(rules: int = 2_000, iterations: int = 50) -> RunStory:
    """Build a run in which most rules fail at first, each with its own message, and fewer in each iteration."""
    names = [
        f"tests/test_part_{number // 40:03}.py::test_number_{number:04}_is_as_it_should_be" for number in range(rules)
    ]
    story = RunStory(*names, max_iterations=iterations)
    for iteration in range(1, iterations + 1):
        failing = [number for number in range(rules) if (number * 7919) % rules > rules * iteration // (iterations + 4)]
        story.evaluate({names[number]: _build_finding(number, iteration) for number in failing})
        if iteration < iterations:
            story.refine(agent="scripted", usage={"tokens": 5_000}, diff=_build_diff(iteration))
    return story.end("iteration_limit")


def _build_finding(number: int, iteration: int) -> Finding:
    value = f"{number * 31 + iteration // 20}"
    lines = "\n".join(f"    step_{line} = prepare({number}, {line})" for line in range(6))
    detail = (
        f"    def test_number_{number:04}_is_as_it_should_be():\n{lines}\n>       assert total({number}) == {value}"
    )
    return Finding(
        expected="", found=f"assert {number} == {value}", where=f"tests/test_part.py:{number}", detail=detail
    )


def _build_diff(iteration: int) -> str:
    lines = "\n".join(f"-    old_{line} = {iteration}\n+    new_{line} = {iteration}" for line in range(40))
    return f"--- a/shop.py\n+++ b/shop.py\n@@ -1,40 +1,40 @@\n{lines}"


def build_hostile_run(text: str) -> RunStory:
    """Build a run that contains a text wherever foreign text may appear."""
    line = text.replace("\n", " ")
    rule = RunRule(id=f"r{text}", description=f"d{text}", phase=Phase.A)
    story = RunStory(rule, "other", task=f"t{text}", agents=(f"g{text}",), judge=f"j{text}", artifact=f"f{text}")
    finding = Finding(expected=f"e{text}", found=f"f{text}", where=f"w{text}", detail=f"l{text}")
    story.evaluate(
        {rule.id: finding}, assumptions=[f"m{text}"], findings=[{"kind": "k", "path": f"p{text}", "detail": text}]
    )
    story.refine(
        agent=f"n{text}",
        report=f"s{text}",
        changed=[f"c{text}"],
        diff=f"--- a/{line}\n+++ b/x\n@@ -1 +1 @@\n-{line}\n+{line}",
    )
    story.evaluate({rule.id: finding}).add(Kind.CRITIQUE_DONE, issues=[])
    story.add(Kind.PHASE_ERROR, step="REFINE", reason=f"x{text}", final=True)
    return story.end("phase_error")
