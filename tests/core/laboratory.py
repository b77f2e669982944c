"""Experiments that are told: a test says how the cases do, and the machine's own commands say the rest."""

from __future__ import annotations

from typing import Any

from pytest_loop.core.machine.run_machine import Command
from pytest_loop.core.model.run_criteria import RunCriteria
from pytest_loop.core.model.run_state import Breakers, RunState
from pytest_loop.core.model.vocabulary import Kind, Target
from pytest_loop.core.workload.experiment_state import Experiment, ExperimentState
from pytest_loop.core.workload.hypotheses import RECOMMENDED, Policy
from pytest_loop.core.workload.measurement import CaseOutcome, CaseResult, Measurement
from pytest_loop.workloads.experiment_steps import ExperimentSteps
from tests.core.conftest import Story, a_rule

OUTCOMES = {".": CaseOutcome.PASSED, "F": CaseOutcome.FAILED, "E": CaseOutcome.INFRASTRUCTURE}
NO_BREAKERS = Breakers(stuck=0, same_error=0, thrashing=0, stagnation=0)


def measured(letters: str, iteration: int = 0) -> Measurement:
    results = tuple(CaseResult(id=chr(97 + at), outcome=OUTCOMES[one]) for at, one in enumerate(letters))
    return Measurement(iteration=iteration, results=results)


def option(number: int, **fields: Any) -> dict[str, Any]:
    edit = {"file": "p.md", "current": "x", "proposed": f"y{number}"}
    return {"name": f"o{number}", "mechanism": f"m{number}", "improves": ["a"], "risk": "low", **edit, **fields}


def analysis(iteration: int, **fields: Any) -> dict[str, Any]:
    options = [option(10 * iteration + number, **fields) for number in (1, 2, 3)]
    return {"root_cause": "r", "hypothesis": f"t{iteration}", "options": options}


class ExperimentStory(Story):
    """An experiment whose cases are called a, b, c and so on."""

    def __init__(self, count: int = 3, *, hidden: str = "", guards: str = "", **fields: Any) -> None:
        policy = {name: fields.pop(name) for name in tuple(fields) if name in Policy.model_fields}
        names = tuple(chr(97 + at) for at in range(count))
        self.settings = Experiment(
            manifest="loop.manifest.json",
            workload="letters",
            cases=names,
            artifacts=("p.md",),
            policy=Policy.model_validate(policy),
            hidden=frozenset(hidden),
            guards=tuple(guards),
        )
        self.letters = ""
        criteria = RunCriteria(rules=tuple(a_rule(name) for name in names))
        settings = {"max_iterations": 10, "target": Target.WORKSPACE, "breakers": NO_BREAKERS, **fields}
        super().__init__(criteria=criteria, **settings)

    def _make_state(self, criteria: RunCriteria) -> ExperimentState:
        common = dict(super()._make_state(criteria))
        return ExperimentState(**common, experiment=self.settings)

    @property
    def experiment(self) -> Experiment:
        assert isinstance(self.state, ExperimentState)
        return self.state.experiment

    def usual(self, command: Command) -> dict[str, Any]:
        kind = command.kind
        if kind is Kind.CALIBRATION_DONE:
            return {"case": "a", "passed": True, "attempts": 1, "errors": []}
        if kind in (Kind.BASELINE_DONE, Kind.EVALUATION_DONE):
            return self.measurement("." * len(self.experiment.cases))
        if kind is Kind.CRITIQUE_DONE:
            return {"analysis": analysis(self.state.iteration), "files": {"p.md": "h"}}
        if kind is Kind.REFINEMENT_DONE and self.experiment.analysis:
            chosen = RECOMMENDED.get_option(self.experiment.analysis)
            assert chosen is not None
            said = {"decision": RECOMMENDED.model_dump(mode="json"), "option": chosen.model_dump(mode="json")}
            return super().usual(command) | said
        assert isinstance(self.state, ExperimentState)
        return ExperimentSteps().record(command, self.state).dump()

    def measurement(self, letters: str) -> dict[str, Any]:
        """The payload of an evaluation in which the cases do like this: pass, Fail, or an Error of something else."""
        at = self.state.iteration if self.experiment.measurements else 0
        failing = {name: "no" for name, letter in zip(self.experiment.cases, letters, strict=True) if letter != "."}
        found = measured(letters, at)
        return self.judgement(failing) | {"measurement": found.model_dump(mode="json"), "metrics": str(found)}

    def measures(self, *all_letters: str, **payload: Any) -> ExperimentStory:
        """Everything up to the next measurement, and then that; again for each."""
        for letters in all_letters:
            self.until(Kind.BASELINE_DONE, Kind.EVALUATION_DONE)
            (command,) = self.machine.next_commands(self.state)
            self.happens(command.kind, **self.measurement(letters) | payload)
        return self

    def ended(self) -> RunState:
        state: RunState = self.to_the_end().state
        return state
