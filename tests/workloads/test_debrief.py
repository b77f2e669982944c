from __future__ import annotations

from typing import Any

import pytest

from pytest_loop.core.events.event import Event
from pytest_loop.core.model.rules import Phase
from pytest_loop.core.workload.measurement import CaseOutcome, CaseResult, Measurement, Remark
from pytest_loop.workloads.debrief import classify_status, render_debrief
from pytest_loop.workloads.experiment_history import read_experiment

OUTCOMES = {".": CaseOutcome.PASSED, "F": CaseOutcome.FAILED, "E": CaseOutcome.INFRASTRUCTURE}
SECTIONS = [
    "Executive summary",
    "Manifest",
    "Hypothesis audit trail",
    "Iteration history",
    "Key edits",
    "Composer summary",
    "Remaining failures",
    "Insights",
    "Regressions and trade-offs",
    "Recommendations",
    "Opinion",
]


def make_event(kind: str, at: int = 0, /, **payload: Any) -> Event:
    return Event(ts="", run_id="r", iteration=at, phase=Phase.A, step="", event=kind, payload=payload)


def make_measurement_event(letters: str, iteration: int = 0) -> Event:
    remarks = {CaseOutcome.FAILED: (Remark(message="no\ntotal", location="total"),)}
    results = tuple(
        CaseResult(
            id=chr(97 + at), outcome=OUTCOMES[letter], critiques=remarks.get(OUTCOMES[letter], ()), text="no key"
        )
        for at, letter in enumerate(letters)
    )
    measurement = Measurement(iteration=iteration, results=results).model_dump(mode="json")
    kind = "evaluation_done" if iteration else "baseline_done"
    return make_event(kind, iteration, score=0.5, passed=False, measurement=measurement)


def make_option(name: str = "Edit", current: str = "a", proposed: str = "b", **fields: Any) -> dict[str, Any]:
    return {"name": name, "file": "p.md", "current": current, "proposed": proposed, "improves": ["a"], **fields}


def make_edit_event(iteration: int, **fields: Any) -> Event:
    return make_event("refinement_done", iteration, decision={"chosen": 1}, option=make_option(**fields))


def get_section(text: str, name: str) -> list[str]:
    return text.split(f"\n## {name}\n\n")[1].split("\n\n## ")[0].splitlines()


def test_debrief_without_events_has_every_section() -> None:
    text = render_debrief([])
    assert [line[3:] for line in text.splitlines() if line.startswith("## ")] == SECTIONS
    assert get_section(text, "Executive summary") == [
        "- Status: Inconclusive",
        "- Workload: unknown",
        "- Mode: precision",
        "- Iterations: 0",
        "- Baseline: not measured",
        "- Final: not measured",
        "- Ended: not yet",
    ]
    assert get_section(text, "Hypothesis audit trail") == ["None."]
    assert get_section(text, "Recommendations") == ["- Make the pipeline work for one case, and start again."]


def test_failed_calibration_is_reported() -> None:
    events = [
        make_event("run_started", workloadId="letters"),
        make_event("calibration_done", case="a", passed=False, attempts=3, errors=["x", "y", "no key"]),
        make_event("failed", reason="calibration"),
    ]
    summary = get_section(render_debrief(events), "Executive summary")
    assert summary[-2:] == [
        "- Ended: calibration",
        "- Calibration failed 3 times, the last time with: no key",
    ]
    nothing = [make_event("calibration_done", case="a", passed=False, errors=[])]
    assert get_section(render_debrief(nothing), "Executive summary")[-1].endswith(
        "1 times, the last time with: unknown"
    )


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([make_measurement_event("F."), make_measurement_event("..", 2)], "Converged"),
        ([make_measurement_event("FF."), make_measurement_event(".F.", 2)], "Improved"),
        ([make_measurement_event("F."), make_measurement_event("F.", 2)], "Inconclusive"),
        ([make_measurement_event("F."), make_edit_event(1), make_measurement_event("F.", 2)], "Inconclusive"),
        (
            [
                make_measurement_event("F."),
                make_edit_event(1),
                make_edit_event(2, current="b", proposed="a"),
                make_measurement_event("F.", 3),
            ],
            "Reverted",
        ),
        (
            [
                make_measurement_event("F."),
                make_edit_event(1),
                make_edit_event(2, current="b", proposed="a"),
                make_measurement_event(".F", 3),
            ],
            "Reverted",
        ),
    ],
)
def test_status_follows_from_the_events(events: list[Event], expected: str) -> None:
    assert classify_status(read_experiment(events)) == expected


def test_regressions_are_listed_with_gains_and_decisions() -> None:
    events = [
        make_measurement_event("..FF"),
        make_edit_event(1, name="Bold"),
        make_measurement_event("FF..", 2),
        make_event("regression_detected", 2, regressions=["a", "b"], action="accept"),
    ]
    assert get_section(render_debrief(events), "Regressions and trade-offs") == [
        "- Iteration 2 after Bold: a, b became worse, while c, d became better. Decided: accept."
    ]
    events = [make_measurement_event(".."), make_measurement_event("F.", 2)]
    assert get_section(render_debrief(events), "Regressions and trade-offs") == [
        "- Iteration 2: a became worse, while nothing became better."
    ]


def test_remaining_failures_are_listed_apart_from_infrastructure_errors() -> None:
    text = render_debrief([make_measurement_event(".FE")])
    assert get_section(text, "Remaining failures") == ["- b: total: no total", "- c (infrastructure): no key"]
    assert get_section(text, "Recommendations")[:2] == [
        "- Look at the infrastructure first: 1 cases could not be measured.",
        "- Never passed: b. Look whether what is expected of them is right.",
    ]


def make_analysis_event(iteration: int) -> Event:
    options = [
        make_option(),
        make_option("Other", proposed="c", risk="some | risk"),
        make_option("Third", proposed="d"),
    ]
    analysis = {"root_cause": "No | label.", "hypothesis": "More labels.", "options": options}
    return make_event("critique_done", iteration, analysis=analysis)


def test_untried_options_are_recommended_while_cases_fail() -> None:
    events = [make_measurement_event("F."), make_analysis_event(1), make_edit_event(1), make_measurement_event(".F", 2)]
    assert get_section(render_debrief(events), "Recommendations") == [
        "- Passed at the beginning and fails now: b. Fix these, or accept them by name.",
        "- Not tried yet: Other.",
        "- Not tried yet: Third.",
    ]
    finished = [*events[:-1], make_measurement_event("..", 2)]
    assert get_section(render_debrief(finished), "Recommendations") == [
        "- Add cases that are harder than these before the next change."
    ]


def test_skipped_and_open_iterations_are_named() -> None:
    skip = make_event("refinement_done", 1, decision={"chosen": None, "reason": "not convinced"}, option=None)
    lines = get_section(render_debrief([make_analysis_event(1), skip, make_analysis_event(2)]), "Composer summary")
    assert lines[0] == "- Iteration 1: No | label. Chosen: nothing (not convinced)."
    assert lines[2] == "    2. Other (medium; risk: some | risk)"
    assert lines[4] == "- Iteration 2: No | label. Chosen: nothing yet."


def make_hypothesis_events(iteration: int, truth: str, **fields: Any) -> list[Event]:
    formed = make_event(
        "hypothesis_formed", iteration, iteration=iteration, theory="a | b", mechanism="m", prediction=["a", "b"]
    )
    return [formed, make_event("hypothesis_judged", iteration + 1, iteration=iteration, truth=truth, **fields)]


def test_every_hypothesis_is_in_the_audit_trail_with_its_outcome() -> None:
    events = [
        *make_hypothesis_events(1, "partially_confirmed", improved=["a"], missed=["b"]),
        *make_hypothesis_events(2, "rejected", missed=["a", "b"]),
        *make_hypothesis_events(3, "confirmed", improved=["a", "b"]),
        make_event("hypothesis_formed", 4, iteration=4, theory="nothing yet"),
    ]
    assert get_section(render_debrief(events), "Hypothesis audit trail")[2:] == [
        "| 1 | a \\| b | a, b | Partially Confirmed (not b) | m |",
        "| 2 | a \\| b | a, b | Rejected | m |",
        "| 3 | a \\| b | a, b | Confirmed | m |",
        "| 4 | nothing yet | none | Untested |  |",
    ]
    assert get_section(render_debrief(events), "Insights") == ["- m. It held for a, b."]
    assert get_section(render_debrief(events), "Opinion") == [
        "1 of 3 predictions came true. The failures are not understood yet: look at single cases before the next edit."
    ]
    assert get_section(render_debrief(events[-1:]), "Opinion")[0].startswith("No prediction was tested")


def test_edits_are_rendered_as_code() -> None:
    events = [make_edit_event(1, current="", proposed="say `x` and ``y``", section="Total")]
    assert get_section(render_debrief(events), "Key edits") == [
        "- Iteration 1, p.md, Total: Edit",
        "    - from: (nothing)",
        "    - to: ``` say `x` and ``y`` ```",
    ]


def test_unknown_events_are_ignored() -> None:
    events = [
        make_event("iteration_advanced"),
        make_event("evaluation_done", score=1),
        make_event("critique_done"),
        make_event("refinement_done"),
    ]
    assert render_debrief(events) == render_debrief([])


def test_untrusted_text_is_not_markup() -> None:
    events = [make_event("run_started", workloadId="x\n## <b>", cases=["<i>"], empty="", more={"a": 1})]
    text = render_debrief(events)
    assert "# Debrief: x ## &lt;b>" in text
    assert get_section(text, "Manifest") == ["- `workloadId`: x ## &lt;b>", "- `cases`: &lt;i>"]
