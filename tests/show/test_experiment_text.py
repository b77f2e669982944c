"""The text of an experiment."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_loop.core.model.vocabulary import Kind
from pytest_loop.show.ending_text import format_resume_command, render_end
from pytest_loop.show.experiment_text import render_experiment_draft, render_experiment_event
from pytest_loop.show.experiment_text import render_experiment_end as closing_lines
from pytest_loop.show.look import Look
from pytest_loop.show.run_story import RunStory
from pytest_loop.show.run_tables import render_history
from tests.core.scripted_experiment import ScriptedExperiment, make_analysis
from tests.event_factory import make_event


def render_lines(run: ScriptedExperiment) -> list[str]:
    """Render all events of an experiment, each with the state at its time."""
    lines: list[str] = []
    state = run.first_state
    for event in run.events[1:]:
        state = run.machine.apply(state, event)
        lines += render_experiment_event(event, state)
    return lines


def end(run: ScriptedExperiment) -> ScriptedExperiment:
    run.finish()
    return run


def test_draft_counts_the_roles_of_cases() -> None:
    run = ScriptedExperiment(held_out="c", guards="a", agents=("codex",), judge="claude", on_regression="accept")
    assert list(render_experiment_draft(run.state)) == [
        "workload    letters (loop.manifest.json)",
        "task        x",
        "cases       3 (1 held out, 1 guards)",
        "may edit    p.md",
        "composer    codex, judge claude",
        "mode        precision",
        "policies    decide: ask, plateau: ask, regression: accept",
        "limits      10 iterations, 25 USD",
    ]
    plain = ScriptedExperiment()
    lines = list(render_experiment_draft(plain.state, is_attended=False))
    assert "cases       3" in lines
    assert "policies    decide: recommended, plateau: stop, regression: stop" in lines


def render_plain_option(number: int) -> list[str]:
    return [
        f"  {number}. o1{number} [p.md] (medium confidence{', recommended' if number == 1 else ''})",
        f"     why: m1{number}",
        "     - x",
        f"     + y1{number}",
        "     improves a; risk: low",
    ]


def test_regression_and_infrastructure_error_are_shown() -> None:
    run = end(ScriptedExperiment(4).measure(".FFE", "F..E"))
    assert render_lines(run) == [
        "Calibration with a: the pipeline works",
        "Baseline | 1/4 passing (25%), 1 not measured",
        "  failing: b, c",
        "  not measured (infrastructure): d",
        "  root cause: r",
        "  hypothesis: t1",
        *[line for number in (1, 2, 3) for line in render_plain_option(number)],
        "  decided: 1. o11 (recommended)",
        "  prediction: a will pass",
        "Iteration 2/10 | 2/4 passing (50%), 1 not measured | Improved (+2 -1)",
        "  failing: a",
        "  not measured (infrastructure): d",
        "  hypothesis of iteration 1: rejected; did not improve: a; guards broken: a",
        "  REGRESSION after o11: a passed before; decided: stop",
    ]
    assert list(closing_lines(run.experiment)) == [
        "letters: baseline 1/4 passing (25%), 1 not measured, now 2/4 passing (50%), 1 not measured, net +1",
        "hypotheses: 0 of 1 confirmed",
    ]
    assert format_resume_command(run.state) == "pytest-loop resume --run it --workload 'on_regression accept'"


def test_plateau_bad_answer_and_failed_calibration_are_shown() -> None:
    still = end(ScriptedExperiment().measure("F..", "F..", "F.."))
    assert "  PLATEAU: 2 times no better than the best; decided: stop" in render_lines(still)
    assert format_resume_command(still.state) == "pytest-loop resume --run it --workload 'on_plateau continue'"
    broken = ScriptedExperiment().measure("F..")
    story, lines = RunStory(Look()), list[str]()
    for _ in range(2):
        broken.record(Kind.PHASE_ERROR, step="CRITIQUE", reason="no\nmechanism")
        lines += story.tell(broken.events[-1], broken.state)
    assert lines == ["     the critique failed, and is tried again: no mechanism"]
    failed = ScriptedExperiment()
    failed.complete(Kind.CALIBRATION_DONE, passed=False, errors=["no\nkey"] * 3)
    assert render_lines(failed) == [*[f"  try {number}: no key" for number in (1, 2, 3)], "Calibration with a: failed"]
    assert list(closing_lines(failed.experiment)) == []
    over = end(failed).state
    assert format_resume_command(over) == "pytest-loop resume --run it"
    done = end(ScriptedExperiment().measure("F..", "...")).state
    assert format_resume_command(done) == "pytest --loop-manifest loop.manifest.json (a new run; this one is completed)"


def test_tampering_and_skipped_edits_are_shown() -> None:
    sign: dict[str, Any] = {"kind": "sealed", "path": "judge.py", "detail": "was changed, and was put back"}
    run = ScriptedExperiment().measure("F..", void=True, findings=[sign])
    assert render_lines(run)[-3:] == [
        "Baseline | 2/3 passing (67%) | VOID",
        "  failing: a",
        "  sealed: judge.py: was changed, and was put back",
    ]
    run.advance_to(Kind.REFINEMENT_DONE)
    skip = {"chosen": None, "reason": "skipped by a person"}
    run.record(Kind.REFINEMENT_DONE, decision=skip, option=None, findings=[sign])
    assert render_lines(run)[-2:] == [
        "  decided: no edit (skipped by a person)",
        "  sealed: judge.py: was changed, and was put back",
    ]


@pytest.mark.parametrize(
    ("letters", "because"),
    [
        (["..."], "there was nothing to do: every rule passed before anything was changed"),
        (["F..", "..."], "every rule was verified"),
    ],
)
def test_verdict_says_whether_anything_was_edited(letters: list[str], because: str) -> None:
    lines = list(render_end(end(ScriptedExperiment().measure(*letters)).state, Look(width=300)))
    assert lines[0].endswith(f" · verdict SHIP: {because}")


def test_gap_of_held_out_cases_is_shown() -> None:
    run = end(ScriptedExperiment(4, held_out="d").measure("F..F", "...F"))
    assert list(closing_lines(run.experiment))[-1] == (
        "held out: 0/1 passing that no composer has seen, a gap of 100 points"
    )
    assert "letters: baseline 2/3 passing (67%), now 3/3 passing (100%), net +1" in list(render_end(run.state, Look()))


def test_options_show_the_cases_they_may_break_and_a_diff_of_limited_length() -> None:
    current = ["begin", "old", *(f"line {number}" for number in range(20))]
    texts = {"current": "\n".join(current), "proposed": "\n".join(["begin", "new", *current[2:], *["more"] * 20])}
    fields = {"section": "Total", "regresses": ["b"], "risk": "some", "confidence": "low", **texts}
    run = ScriptedExperiment().measure("F..")
    run.record(Kind.CRITIQUE_DONE, analysis=make_analysis(1, **fields))
    option = render_lines(run)[-16:]
    assert option[:7] == [
        "  3. o13 [p.md, Total] (low confidence)",
        "     why: m13",
        "       begin",
        "     - old",
        "     + new",
        "       line 0",
        "       line 19",
    ]
    assert option[7:14] == ["     + more"] * 7
    assert option[14:] == ["     (13 more lines)", "     improves a, may break b; risk: some"]


def test_other_events_have_no_lines_and_history_shows_key_fields() -> None:
    run = end(ScriptedExperiment(on_regression="accept", max_iterations=2).measure(".FF", "F.."))
    assert list(render_experiment_event(run.events[0], run.state)) == []
    empty = ScriptedExperiment()
    assert list(render_experiment_event(make_event(empty.state, "baseline_done", {}, "now"), empty.state)) == []
    lines = "\n".join(render_history(run.events))
    for gist in ("1/3 passing (33%)", "truth=rejected", "action=accept regressions=a", "theory=t1"):
        assert gist in lines
