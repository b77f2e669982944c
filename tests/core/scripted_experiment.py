"""Experiments for tests: a test states the outcomes of cases, and the machine's commands supply the other events."""

from __future__ import annotations

from typing import Any

from pytest_loop.core.machine.run_machine import Command
from pytest_loop.core.model.run_criteria import RunCriteria
from pytest_loop.core.model.run_setup import Breakers
from pytest_loop.core.model.vocabulary import Kind, Target
from pytest_loop.core.workload.experiment_state import Experiment, ExperimentState
from pytest_loop.core.workload.hypotheses import RECOMMENDED, Policy
from pytest_loop.core.workload.measurement import CaseOutcome, CaseResult, Measurement
from pytest_loop.workloads.experiment_steps import ExperimentSteps
from tests.core.scripted_run import ScriptedRun, make_rule

OUTCOMES = {".": CaseOutcome.PASSED, "F": CaseOutcome.FAILED, "E": CaseOutcome.INFRASTRUCTURE}
NO_BREAKERS = Breakers(stuck=0, same_error=0, thrashing=0, stagnation=0)


def make_measurement(letters: str, iteration: int = 0) -> Measurement:
    """Return the results of cases a, b, c ...: `.` passes, `F` fails, `E` is an error of the infrastructure."""
    results = tuple(CaseResult(id=chr(97 + index), outcome=OUTCOMES[letter]) for index, letter in enumerate(letters))
    return Measurement(iteration=iteration, results=results)


def make_option(number: int, **fields: Any) -> dict[str, Any]:
    edit = {"file": "p.md", "current": "x", "proposed": f"y{number}"}
    return {"name": f"o{number}", "mechanism": f"m{number}", "improves": ["a"], "risk": "low", **edit, **fields}


def make_analysis(iteration: int, **fields: Any) -> dict[str, Any]:
    options = [make_option(10 * iteration + number, **fields) for number in (1, 2, 3)]
    return {"root_cause": "r", "hypothesis": f"t{iteration}", "options": options}


class ScriptedExperiment(ScriptedRun):
    """An experiment whose cases are called a, b, c and so on."""

    def __init__(self, count: int = 3, *, held_out: str = "", guards: str = "", **fields: Any) -> None:
        policy = {name: fields.pop(name) for name in tuple(fields) if name in Policy.model_fields}
        names = tuple(chr(97 + index) for index in range(count))
        self.settings = Experiment(
            manifest="loop.manifest.json",
            workload="letters",
            cases=names,
            artifacts=("p.md",),
            policy=Policy.model_validate(policy),
            held_out_cases=frozenset(held_out),
            guards=tuple(guards),
        )
        criteria = RunCriteria(rules=tuple(make_rule(name) for name in names))
        settings = {"max_iterations": 10, "target": Target.WORKSPACE, "breakers": NO_BREAKERS, **fields}
        super().__init__(criteria=criteria, **settings)

    def _make_state(self, criteria: RunCriteria) -> ExperimentState:
        common = dict(super()._make_state(criteria))
        return ExperimentState(**common, experiment=self.settings)

    @property
    def experiment(self) -> Experiment:
        assert isinstance(self.state, ExperimentState)
        return self.state.experiment

    def build_payload(self, command: Command) -> dict[str, Any]:
        kind = command.kind
        if kind is Kind.CALIBRATION_DONE:
            return {"case": "a", "passed": True, "attempts": 1, "errors": []}
        if kind in (Kind.BASELINE_DONE, Kind.EVALUATION_DONE):
            return self.build_measurement_payload("." * len(self.experiment.cases))
        if kind is Kind.CRITIQUE_DONE:
            return {"analysis": make_analysis(self.state.iteration), "files": {"p.md": "h"}}
        if kind is Kind.REFINEMENT_DONE and self.experiment.analysis:
            option = RECOMMENDED.get_option(self.experiment.analysis)
            assert option is not None
            decision = {"decision": RECOMMENDED.model_dump(mode="json"), "option": option.model_dump(mode="json")}
            return super().build_payload(command) | decision
        assert isinstance(self.state, ExperimentState)
        return ExperimentSteps().make_payload(command, self.state).dump()

    def build_measurement_payload(self, letters: str) -> dict[str, Any]:
        """Return the payload of an evaluation with these results of cases."""
        iteration = self.state.iteration if self.experiment.measurements else 0
        failing = {name: "no" for name, letter in zip(self.experiment.cases, letters, strict=True) if letter != "."}
        measurement = make_measurement(letters, iteration)
        return self.build_evaluation(failing) | {
            "measurement": measurement.model_dump(mode="json"),
            "metrics": str(measurement),
        }

    def measure(self, *all_letters: str, **payload: Any) -> ScriptedExperiment:
        """Advance to the next measurement and apply it, once for each of these results."""
        for letters in all_letters:
            self.advance_to(Kind.BASELINE_DONE, Kind.EVALUATION_DONE)
            (command,) = self.machine.list_next_commands(self.state)
            self.record(command.kind, **self.build_measurement_payload(letters) | payload)
        return self
