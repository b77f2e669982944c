"""The text of an experiment."""

from __future__ import annotations

from typing import Any

from pytest_loop.core.model.vocabulary import Kind
from pytest_loop.show.experiment_text import render_experiment_draft, render_experiment_event
from pytest_loop.show.experiment_text import render_experiment_end as closing_lines
from pytest_loop.show.run_tables import render_history
from pytest_loop.show.run_text import format_resume_command, render_end
from tests.core.scripted_experiment import ScriptedExperiment
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
    run = ScriptedExperiment(hidden="c", guards="a", agents=("codex",), judge="claude", on_regression="accept")
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
    assert "cases       3" in list(render_experiment_draft(plain.state))


def test_regression_and_infrastructure_error_are_shown() -> None:
    run = end(ScriptedExperiment(4).measure(".FFE", "F..E"))
    assert render_lines(run) == [
        "Calibration with a: the pipeline works",
        "Baseline | 1/4 passing (25%), 1 not measured",
        "  failing: b, c",
        "  not measured (infrastructure): d",
        "  root cause: r",
        *[line for number in (1, 2, 3) for line in (f"  {number}. o1{number} [p.md]", "     improves a; risk: low")],
        "  decided: 1. o11 (recommended)",
        "  hypothesis: t1",
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
    assert format_resume_command(run.state) == "pytest --loop-resume=it -o loop_on_regression=accept"


def test_plateau_bad_answer_and_failed_calibration_are_shown() -> None:
    still = end(ScriptedExperiment().measure("F..", "F..", "F.."))
    assert "  PLATEAU: 2 times no better than the best; decided: stop" in render_lines(still)
    assert format_resume_command(still.state) == "pytest --loop-resume=it -o loop_on_plateau=continue"
    broken = ScriptedExperiment().measure("F..")
    broken.record(Kind.PHASE_ERROR, step="CRITIQUE", reason="no\nmechanism")
    assert render_lines(broken)[-1] == "CRITIQUE went wrong: no mechanism"
    failed = ScriptedExperiment()
    failed.complete(Kind.CALIBRATION_DONE, passed=False, errors=["no\nkey"] * 3)
    assert render_lines(failed) == [*[f"  try {number}: no key" for number in (1, 2, 3)], "Calibration with a: failed"]
    assert list(closing_lines(failed.experiment)) == []
    over = end(failed).state
    assert format_resume_command(over).startswith(
        "pytest --loop-manifest loop.manifest.json (a new run; this one is failed)"
    )


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


def test_gap_of_held_out_cases_is_shown() -> None:
    run = end(ScriptedExperiment(4, hidden="d").measure("F..F", "...F"))
    assert list(closing_lines(run.experiment))[-1] == (
        "held out: 0/1 passing that no composer has seen, a gap of 100 points"
    )
    assert "letters: baseline 2/3 passing (67%), now 3/3 passing (100%), net +1" in list(render_end(run.state))


def test_options_show_the_cases_they_may_break() -> None:
    run = ScriptedExperiment().measure("F..")
    options = [
        {
            "name": f"o{number}",
            "file": "p.md",
            "section": "Total",
            "improves": ["a"],
            "regresses": ["b"],
            "risk": "some",
        }
        for number in (1, 2, 3)
    ]
    run.record(Kind.CRITIQUE_DONE, analysis={"root_cause": "r", "hypothesis": "t", "options": options})
    assert render_lines(run)[-2:] == ["  3. o3 [p.md, Total]", "     improves a, may break b; risk: some"]


def test_other_events_have_no_lines_and_history_shows_key_fields() -> None:
    run = end(ScriptedExperiment(on_regression="accept", max_iterations=2).measure(".FF", "F.."))
    assert list(render_experiment_event(run.events[0], run.state)) == []
    empty = ScriptedExperiment()
    assert list(render_experiment_event(make_event(empty.state, "baseline_done", {}, "now"), empty.state)) == []
    lines = "\n".join(render_history(run.events))
    for gist in ("1/3 passing (33%)", "truth=rejected", "action=accept regressions=a", "theory=t1"):
        assert gist in lines
