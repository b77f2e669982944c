"""The example is what its README says, and its composer keeps the contract of a composer."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_loop.core.composing import Ground, edited, received
from pytest_loop.core.experiment import RECOMMENDED, Ending, Move, Policy, course, hypothesis, judged
from pytest_loop.core.measuring import Measurement, suggested
from pytest_loop.core.model import Phase
from pytest_loop.core.run import Event
from pytest_loop.workloads.cases import Workload, workload
from pytest_loop.workloads.debrief import debrief
from pytest_loop.workloads.manifest import load
from pytest_loop.workloads.pipeline import Pipeline, calibrated

EXAMPLE = Path(__file__).parents[2] / "examples" / "workload"
GOLDEN = Path(__file__).parent / "golden" / "debrief.md"


@pytest.fixture
def example(pytester: pytest.Pytester) -> Path:
    """A copy, for it is edited."""
    ignored = shutil.ignore_patterns("__pycache__", "out")
    return Path(shutil.copytree(EXAMPLE, pytester.path / "workload", ignore=ignored))


@pytest.mark.usefixtures("example")
def test_twelve_of_twenty_cases_pass(pytester: pytest.Pytester, workers: tuple[str, ...]) -> None:
    result = pytester.runpytest(*workers)
    result.assert_outcomes(passed=12, failed=8)
    result.stdout.fnmatch_lines(
        ["FAILED workload/loop.manifest.yaml::cases/museum.txt - date: Blocking: expected 2024*"]
    )


def analyses() -> list[Any]:
    spec = importlib.util.spec_from_file_location("scripted_composer", EXAMPLE / "scripted_composer.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return list(module.ANALYSES)


def measure(found: Workload, iteration: int) -> Measurement:
    results = [Pipeline(found).result(case).model_copy(update={"seconds": 0.0}) for case in found.cases]
    return Measurement(iteration=iteration, results=tuple(results))


def experiment(found: Workload, policy: Policy, tell: Callable[..., None]) -> Iterator[Measurement]:
    """The loop around the pure parts, as short as it can be: what happens in it is told as events."""
    calibration = calibrated(Pipeline(found))
    tell("calibration_done", 0, calibration.payload())
    measurements = [measure(found, 0)]
    tell("baseline_done", 0, {"measurement": measurements[0].model_dump(mode="json")})
    yield measurements[0]
    _, guards = suggested(measurements[0])
    prompt = found.folder / "prompt.md"
    for iteration, data in enumerate(analyses(), 1):
        ground = Ground(files={"prompt.md": prompt.read_text()}, cases=frozenset(one.id for one in found.cases))
        analysis = received(data, ground).analysis
        assert analysis is not None
        said = hypothesis(analysis, RECOMMENDED, iteration)
        option = RECOMMENDED.option(analysis)
        assert said is not None
        assert option is not None
        tell("critique_done", iteration, {"analysis": analysis.model_dump(mode="json")})
        tell("hypothesis_formed", iteration, said.model_dump(mode="json"))
        prompt.write_text(edited(prompt.read_text(), option))
        tell(
            "refinement_done",
            iteration,
            {"decision": RECOMMENDED.model_dump(), "option": option.model_dump(mode="json")},
        )
        measurements.append(measure(found, iteration + 1))
        yield measurements[-1]
        tell("evaluation_done", iteration + 1, {"measurement": measurements[-1].model_dump(mode="json")})
        tell(
            "hypothesis_judged",
            iteration + 1,
            judged(said, measurements[-2], measurements[-1], guards).model_dump(mode="json"),
        )
        following = course(measurements, policy, iteration + 1)
        if following.change.regressions:
            tell("regression_detected", iteration + 1, {"action": policy.at_a_regression.value})
        if following.ending:
            tell("stopped", iteration + 1, {"reason": following.ending.value})
            return


def test_three_edits_one_of_them_a_regression_make_all_cases_pass(example: Path) -> None:
    found = workload(load(example / "loop.manifest.yaml", example), example)
    events: list[Event] = []

    def tell(kind: str, iteration: int, payload: dict[str, Any]) -> None:
        events.append(
            Event(
                ts="now", run_id="r", iteration=iteration, phase=Phase.A, step="EVALUATE", event=kind, payload=payload
            )
        )

    manifest = found.source.manifest.model_dump(by_alias=True, exclude_defaults=True)
    tell("run_started", 0, {**manifest, "mode": "precision"})
    policy = Policy.model_validate({"on_regression": "accept"})
    measurements = list(experiment(found, policy, tell))
    assert [len(one.passing) for one in measurements] == [12, 17, 19, 20]
    assert [event.payload["truth"] for event in events if event.event == "hypothesis_judged"] == ["confirmed"] * 3
    assert events[-1].payload == {"reason": "converged"}
    unattended = course(measurements[:3], Policy(), 3)
    assert (unattended.move, unattended.ending) == (Move.STOP, Ending.REGRESSION)
    assert unattended.change.regressions == ("cases/gym.txt",)
    assert debrief(events) == GOLDEN.read_text(encoding="utf-8")
