"""Runs as their events tell them: made by the machine itself, without agents, sessions or files."""

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


class Told:
    """A run on files that were there before it; every event happens where the run stands."""

    def __init__(self, *rules: RunRule | str, task: str = "fix until green", **fields: Any) -> None:
        own = tuple(one if isinstance(one, RunRule) else RunRule(id=one, description=one) for one in rules)
        usual = {"target": Target.WORKSPACE, "artifact": "artifact.md", "agents": ("scripted",), "max_iterations": 99}
        state = RunState(
            run_id="green-1",
            task_alias="green",
            task=Task(prompt=task),
            criteria=RunCriteria(rules=own),
            created_at=MOMENT,
        )
        self.state = RUN_MACHINE.begin(state.replace(**{**usual, **fields}))
        self.events = [make_event(self.state, "run_started", {"state": self.state.model_dump(mode="json")}, MOMENT)]

    def happens(self, kind: Kind, **payload: Any) -> Told:
        event = make_event(self.state, kind.value, payload, MOMENT)
        self.state = RUN_MACHINE.apply(self.state, event)
        self.events.append(event)
        return self

    def judged(self, failing: Mapping[str, str | Finding] | Iterable[str] = (), **payload: Any) -> Told:
        said = failing if isinstance(failing, Mapping) else dict.fromkeys(failing, "no")
        reported = {rule.id: [_evidence(said.get(rule.id))] for rule in self.state.criteria.rules}
        digest = _hash(self.state.iteration)
        one = assess(self.state.criteria, self.state.phase, reported, digest, self.state.evaluation)
        told = one.model_dump(mode="json", exclude_defaults=True) | {"score": one.score, "passed": one.passed}
        return self.happens(Kind.EVALUATION_DONE, **{"seconds": 1.5, **told, **payload})

    def refined(self, **payload: Any) -> Told:
        """The critique, an edit, and the next iteration."""
        assert self.state.evaluation is not None
        made = build_critique(self.state.criteria, self.state.evaluation, self.state.progress.attempts)
        self.happens(Kind.CRITIQUE_DONE, **made.model_dump(mode="json", exclude_defaults=True), seconds=0.002)
        edit = {
            "previous_artifact_hash": self.state.progress.artifact_hash,
            "artifact_hash": _hash(self.state.iteration + 1),
            "seconds": 2.0,
        }
        self.happens(Kind.REFINEMENT_DONE, **edit, **payload)
        return self.happens(Kind.ITERATION_ADVANCED).happens(Kind.PLAN_CREATED, plan=[], seconds=0.0)

    def ended(self, reason: str) -> Told:
        kind = Kind.FAILED if reason == "phase_error" else Kind.STOPPED
        return self.happens(kind, reason=reason)


def _hash(iteration: int) -> str:
    return hashlib.sha256(str(iteration).encode()).hexdigest()


def _evidence(said: str | Finding | None) -> Evidence:
    if said is None:
        return Evidence(outcome=Outcome.PASSED)
    finding = said if isinstance(said, Finding) else Finding(expected="", found=said)
    return Evidence(outcome=Outcome.FAILED, findings=(finding,))


def small() -> Told:
    """Three iterations, both phases, a warning, and a limit that ends it."""
    rules = (
        RunRule(id="a.totals", description="Totals are right", weight=3),
        RunRule(id="a.names", description="Names are unique"),
        RunRule(id="b.style", description="It reads well", severity=Severity.WARN, weight=1, phase=Phase.B),
        RunRule(id="b.speed", description="It is quick", phase=Phase.B),
    )
    wrong = Finding(expected="12", found="11", where="shop.py:3", detail="    def total():\n>       return 11")
    told = Told(*rules, max_iterations=2)
    told.judged({"a.totals": wrong, "a.names": "tea is there twice"})
    told.refined(
        agent="scripted",
        report="looked for the sum\nmended one line",
        usage={"tokens": 1200},
        changed=["shop.py"],
        diff="--- a/shop.py\n+++ b/shop.py\n@@ -1,3 +1,3 @@\n def total():\n---- 11\n-    return 11\n+    return 12\n+++ 12",
    )
    told.judged().happens(Kind.PHASE_SWITCHED)
    return told.judged({"b.style": "too long", "b.speed": "3 s"}).ended("iteration_limit")


def large(rules: int = 2_000, iterations: int = 50) -> Told:
    """Most rules fail at first, each with words of its own that change twice, and fewer do so in each iteration."""
    names = [
        f"tests/test_part_{number // 40:03}.py::test_number_{number:04}_is_as_it_should_be" for number in range(rules)
    ]
    told = Told(*names, max_iterations=iterations)
    for iteration in range(1, iterations + 1):
        left = [number for number in range(rules) if (number * 7919) % rules > rules * iteration // (iterations + 4)]
        told.judged({names[number]: _wrong(number, iteration) for number in left})
        if iteration < iterations:
            told.refined(agent="scripted", usage={"tokens": 5_000}, diff=_diff(iteration))
    return told.ended("iteration_limit")


def _wrong(number: int, iteration: int) -> Finding:
    value = f"{number * 31 + iteration // 20}"
    lines = "\n".join(f"    step_{line} = prepare({number}, {line})" for line in range(6))
    detail = (
        f"    def test_number_{number:04}_is_as_it_should_be():\n{lines}\n>       assert total({number}) == {value}"
    )
    return Finding(
        expected="", found=f"assert {number} == {value}", where=f"tests/test_part.py:{number}", detail=detail
    )


def _diff(iteration: int) -> str:
    lines = "\n".join(f"-    old_{line} = {iteration}\n+    new_{line} = {iteration}" for line in range(40))
    return f"--- a/shop.py\n+++ b/shop.py\n@@ -1,40 +1,40 @@\n{lines}"


def hostile(text: str) -> Told:
    """A run in which a text stands wherever somebody else's may."""
    line = text.replace("\n", " ")
    rule = RunRule(id=f"r{text}", description=f"d{text}", phase=Phase.A)
    told = Told(rule, "other", task=f"t{text}", agents=(f"g{text}",), judge=f"j{text}", artifact=f"f{text}")
    finding = Finding(expected=f"e{text}", found=f"f{text}", where=f"w{text}", detail=f"l{text}")
    told.judged(
        {rule.id: finding}, assumptions=[f"m{text}"], findings=[{"kind": "k", "path": f"p{text}", "detail": text}]
    )
    told.refined(
        agent=f"n{text}",
        report=f"s{text}",
        changed=[f"c{text}"],
        diff=f"--- a/{line}\n+++ b/x\n@@ -1 +1 @@\n-{line}\n+{line}",
    )
    told.judged({rule.id: finding}).happens(Kind.CRITIQUE_DONE, issues=[])
    told.happens(Kind.PHASE_ERROR, step="REFINE", reason=f"x{text}", final=True)
    return told.ended("phase_error")
