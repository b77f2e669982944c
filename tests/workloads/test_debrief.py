from __future__ import annotations

from typing import Any

import pytest

from pytest_loop.core.events.event import Event
from pytest_loop.core.model.rules import Phase
from pytest_loop.core.workload.measurement import CaseOutcome, CaseResult, Measurement, Remark
from pytest_loop.workloads.debrief import debrief, status
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


def event(kind: str, at: int = 0, /, **payload: Any) -> Event:
    return Event(ts="", run_id="r", iteration=at, phase=Phase.A, step="", event=kind, payload=payload)


def measured(letters: str, iteration: int = 0) -> Event:
    said = {CaseOutcome.FAILED: (Remark(message="no\ntotal", location="total"),)}
    results = tuple(
        CaseResult(id=chr(97 + at), outcome=OUTCOMES[one], critiques=said.get(OUTCOMES[one], ()), text="no key")
        for at, one in enumerate(letters)
    )
    found = Measurement(iteration=iteration, results=results).model_dump(mode="json")
    kind = "evaluation_done" if iteration else "baseline_done"
    return event(kind, iteration, score=0.5, passed=False, measurement=found)


def option(name: str = "Edit", current: str = "a", proposed: str = "b", **fields: Any) -> dict[str, Any]:
    return {"name": name, "file": "p.md", "current": current, "proposed": proposed, "improves": ["a"], **fields}


def edit(iteration: int, **fields: Any) -> Event:
    return event("refinement_done", iteration, decision={"chosen": 1}, option=option(**fields))


def section(text: str, name: str) -> list[str]:
    return text.split(f"\n## {name}\n\n")[1].split("\n\n## ")[0].splitlines()


def test_every_section_is_there_also_where_nothing_has_happened() -> None:
    text = debrief([])
    assert [line[3:] for line in text.splitlines() if line.startswith("## ")] == SECTIONS
    assert section(text, "Executive summary") == [
        "- Status: Inconclusive",
        "- Workload: unknown",
        "- Mode: precision",
        "- Iterations: 0",
        "- Baseline: not measured",
        "- Final: not measured",
        "- Ended: not yet",
    ]
    assert section(text, "Hypothesis audit trail") == ["None."]
    assert section(text, "Recommendations") == ["- Make the pipeline work for one case, and start again."]


def test_a_calibration_that_failed_is_all_there_is_to_say() -> None:
    events = [
        event("run_started", workloadId="letters"),
        event("calibration_done", case="a", passed=False, attempts=3, errors=["x", "y", "no key"]),
        event("failed", reason="calibration"),
    ]
    summary = section(debrief(events), "Executive summary")
    assert summary[-2:] == [
        "- Ended: calibration",
        "- Calibration failed 3 times, the last time with: no key",
    ]
    nothing = [event("calibration_done", passed=False, errors=[])]
    assert section(debrief(nothing), "Executive summary")[-1].endswith("1 times, the last time with: unknown")


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([measured("F."), measured("..", 2)], "Converged"),
        ([measured("FF."), measured(".F.", 2)], "Improved"),
        ([measured("F."), measured("F.", 2)], "Inconclusive"),
        ([measured("F."), edit(1), measured("F.", 2)], "Inconclusive"),
        ([measured("F."), edit(1), edit(2, current="b", proposed="a"), measured("F.", 3)], "Reverted"),
        ([measured("F."), edit(1), edit(2, current="b", proposed="a"), measured(".F", 3)], "Reverted"),
    ],
)
def test_the_status_says_what_it_came_to(events: list[Event], expected: str) -> None:
    assert status(read_experiment(events)) == expected


def test_regressions_are_all_named_with_what_was_gained_and_decided() -> None:
    events = [
        measured("..FF"),
        edit(1, name="Bold"),
        measured("FF..", 2),
        event("regression_detected", 2, action="accept"),
    ]
    assert section(debrief(events), "Regressions and trade-offs") == [
        "- Iteration 2 after Bold: a, b became worse, while c, d became better. Decided: accept."
    ]
    events = [measured(".."), measured("F.", 2)]
    assert section(debrief(events), "Regressions and trade-offs") == [
        "- Iteration 2: a became worse, while nothing became better."
    ]


def test_what_still_fails_is_named_and_infrastructure_apart() -> None:
    text = debrief([measured(".FE")])
    assert section(text, "Remaining failures") == ["- b: total: no total", "- c (infrastructure): no key"]
    assert section(text, "Recommendations")[:2] == [
        "- Look at the infrastructure first: 1 cases could not be measured.",
        "- Never passed: b. Look whether what is expected of them is right.",
    ]


def analysed(iteration: int) -> Event:
    options = [option(), option("Other", proposed="c", risk="some | risk"), option("Third", proposed="d")]
    analysis = {"root_cause": "No | label.", "hypothesis": "More labels.", "options": options}
    return event("critique_done", iteration, analysis=analysis)


def test_options_that_were_not_tried_are_recommended_as_long_as_something_fails() -> None:
    events = [measured("F."), analysed(1), edit(1), measured(".F", 2)]
    assert section(debrief(events), "Recommendations") == [
        "- Passed at the beginning and fails now: b. Mend these, or accept them by name.",
        "- Not tried yet: Other.",
        "- Not tried yet: Third.",
    ]
    done = [*events[:-1], measured("..", 2)]
    assert section(debrief(done), "Recommendations") == [
        "- Add cases that are harder than these before the next change."
    ]


def test_a_skipped_iteration_and_an_open_one_are_told_as_such() -> None:
    skip = event("refinement_done", 1, decision={"chosen": None, "reason": "not convinced"}, option=None)
    lines = section(debrief([analysed(1), skip, analysed(2)]), "Composer summary")
    assert lines[0] == "- Iteration 1: No | label. Chosen: nothing (not convinced)."
    assert lines[2] == "    2. Other (medium; risk: some | risk)"
    assert lines[4] == "- Iteration 2: No | label. Chosen: nothing yet."


def believed(iteration: int, truth: str, **fields: Any) -> list[Event]:
    formed = event(
        "hypothesis_formed", iteration, iteration=iteration, theory="a | b", mechanism="m", prediction=["a", "b"]
    )
    return [formed, event("hypothesis_judged", iteration + 1, iteration=iteration, truth=truth, **fields)]


def test_every_hypothesis_stands_in_the_audit_trail_with_its_outcome() -> None:
    events = [
        *believed(1, "partially_confirmed", improved=["a"], missed=["b"]),
        *believed(2, "rejected", missed=["a", "b"]),
        *believed(3, "confirmed", improved=["a", "b"]),
        event("hypothesis_formed", 4, iteration=4, theory="nothing yet"),
    ]
    assert section(debrief(events), "Hypothesis audit trail")[2:] == [
        "| 1 | a \\| b | a, b | Partially Confirmed (not b) | m |",
        "| 2 | a \\| b | a, b | Rejected | m |",
        "| 3 | a \\| b | a, b | Confirmed | m |",
        "| 4 | nothing yet | none | Untested |  |",
    ]
    assert section(debrief(events), "Insights") == ["- m It held for a, b."]
    assert section(debrief(events), "Opinion") == [
        "1 of 3 predictions came true. The failures are not understood yet: look at single cases before the next edit."
    ]
    assert section(debrief(events[-1:]), "Opinion")[0].startswith("No prediction was tested")


def test_edits_are_shown_as_code_whatever_is_in_them() -> None:
    events = [edit(1, current="", proposed="say `x` and ``y``", section="Total")]
    assert section(debrief(events), "Key edits") == [
        "- Iteration 1, p.md, Total: Edit",
        "    - from: (nothing)",
        "    - to: ``` say `x` and ``y`` ```",
    ]


def test_events_of_other_kinds_are_left_out() -> None:
    events = [
        event("iteration_advanced"),
        event("evaluation_done", score=1),
        event("critique_done"),
        event("refinement_done"),
    ]
    assert debrief(events) == debrief([])


def test_words_of_others_are_no_markup_of_ours() -> None:
    events = [event("run_started", workloadId="x\n## <b>", cases=["<i>"], empty="", more={"a": 1})]
    text = debrief(events)
    assert "# Debrief: x ## &lt;b>" in text
    assert section(text, "Manifest") == ["- `workloadId`: x ## &lt;b>", "- `cases`: &lt;i>"]
