"""The steps of a run: plan, checks of sentences, critique, decisions and the end."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_loop.agents.protocol import AgentError, AgentReply, AgentRequest, AgentUnavailableError
from pytest_loop.core.events.run_decision import Action
from pytest_loop.core.events.run_payloads import (
    ChecksPrepared,
    CritiqueDone,
    EvaluationDone,
    PhaseSwitched,
    PlanCreated,
    ReviewDone,
)
from pytest_loop.core.machine.run_machine import Command
from pytest_loop.core.model.evaluation import Critique, Evaluation
from pytest_loop.core.model.rules import Evidence, Finding, Outcome, SessionPlan
from pytest_loop.core.model.vocabulary import Kind, Reason, ReviewStatus, Step, Target
from pytest_loop.run.steps import RunSteps, end_run
from pytest_loop.session.result import SessionResult
from pytest_loop.settings.options import AgentSettings
from pytest_loop.workspace.sealed_files import SealedFiles
from tests.core.scripted_run import ScriptedRun
from tests.run.parts import SmallRun, make_rules, make_run

STEPS = RunSteps()
PLAN = Command(Kind.PLAN_CREATED, Step.PLAN)
PREPARE = Command(Kind.CHECKS_PREPARED, Step.PREPARE)
CRITICISE = Command(Kind.CRITIQUE_DONE, Step.CRITIQUE)


def test_plan_is_made_from_visible_rules(tmp_path: Path) -> None:
    rules = (*make_rules("a.word.blue"), *make_rules("a.secret.red", held_out=True))
    payload = STEPS.execute(PLAN, make_run(tmp_path, rules=rules).make_step())
    assert isinstance(payload, PlanCreated)
    assert "word" in " ".join(payload.plan)
    assert "secret" not in " ".join(payload.plan)


def test_plan_of_an_agent_must_have_three_steps(tmp_path: Path) -> None:
    settings = {"agents": AgentSettings(planner="agent")}
    answers = [AgentReply(data={"plan": ["read", "write", "check"]}), AgentReply(data={"plan": ["write"]})]
    run = make_run(tmp_path, *answers, settings=settings)
    assert STEPS.execute(PLAN, run.make_step()).dump()["plan"] == ["read", "write", "check"]
    with pytest.raises(AgentError, match="plan"):
        STEPS.execute(PLAN, run.make_step())


def test_edit_of_an_agent_that_plans_is_put_back_and_named(project: SealedFiles) -> None:
    def edit(request: AgentRequest) -> AgentReply:
        (request.workspace / "shop.py").write_text("colour = 'blue'\n")
        (request.workspace / "new.py").write_text("")
        return AgentReply(data={"plan": ["read", "write", "check"]})

    run = make_run(project.root, edit, settings={"agents": AgentSettings(planner="agent")}, project=project)
    step = run.make_step()
    STEPS.execute(PLAN, step)
    assert step.record.put_back == ("new.py", "shop.py")
    assert (project.root / "shop.py").read_text() == "colour = 'red'\n"
    assert not (project.root / "new.py").exists()
    assert "PLAN may edit nothing: put back new.py, shop.py" in run.output.getvalue()


def test_nothing_is_prepared_without_sentences(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    assert STEPS.execute(PREPARE, run.make_step()) == ChecksPrepared()
    assert run.agent.requests == []


def test_sentences_cannot_be_prepared_without_an_agent(tmp_path: Path) -> None:
    run = make_run(tmp_path, rules=make_rules("a.word.blue", check="It is blue"), agents=[], judge=None)
    with pytest.raises(AgentUnavailableError, match="--loop-judge"):
        STEPS.execute(PREPARE, run.make_step())


def make_evaluated_run(tmp_path: Path, **fields: object) -> tuple[SmallRun, Evaluation]:
    (tmp_path / "guide.md").write_text("red")
    run = make_run(tmp_path, **fields)  # type: ignore[arg-type]
    return run, run.make_step().make_evaluator().evaluate()


def test_critique_lists_failing_rules(tmp_path: Path) -> None:
    run, evaluation = make_evaluated_run(tmp_path)
    payload = STEPS.execute(CRITICISE, run.make_step(evaluation=evaluation))
    assert [issue["rule_id"] for issue in payload.dump()["issues"]] == ["a.word.blue"]
    assert STEPS.execute(CRITICISE, run.make_step()) == CritiqueDone()


def test_plugin_replaces_the_critique(tmp_path: Path) -> None:
    class Lenient:
        @pytest.hookimpl
        def pytest_loop_critique(self) -> Critique:
            return Critique()

    run, evaluation = make_evaluated_run(tmp_path, plugins=(Lenient(),))
    assert STEPS.execute(CRITICISE, run.make_step(evaluation=evaluation)) == CritiqueDone()


def test_evaluation_and_review_are_recorded_with_the_decision_that_follows() -> None:
    run = ScriptedRun().advance_to(Kind.EVALUATION_DONE)
    evaluation = EvaluationDone.model_validate(run.build_evaluation({"a.x.y": "no"}))
    concluded = STEPS.add_decision(evaluation, run.state)
    assert isinstance(concluded, EvaluationDone)
    assert concluded.decision is not None
    assert concluded.decision.action is Action.RETRY
    run.evaluate().evaluate()
    review = STEPS.add_decision(ReviewDone(status=ReviewStatus.REJECT, feedback="shorter"), run.state)
    assert review.dump()["decision"]["feedback"]["actionable_items"] == ["shorter"]
    assert STEPS.add_decision(PlanCreated(), run.state) == PlanCreated()


def test_commands_without_work_are_only_recorded() -> None:
    state = ScriptedRun().state
    assert STEPS.make_payload(Command(Kind.PHASE_SWITCHED), state) == PhaseSwitched()
    assert STEPS.make_payload(Command(Kind.ITERATION_ADVANCED), state).kind is Kind.ITERATION_ADVANCED
    assert STEPS.make_payload(Command(Kind.STOPPED, reason=Reason.USER_STOP), state).dump()["reason"] == "user_stop"


def test_end_over_budget_reports_the_overshoot() -> None:
    run = ScriptedRun(max_completed_phase_seconds=600).evaluate("a.x.y", seconds=624)
    payload = end_run(Command(Kind.STOPPED, reason=Reason.BUDGET_EXCEEDED), run.state)
    assert payload.dump()["overshoot_seconds"] == 24
    assert end_run(Command(Kind.FAILED, reason=Reason.PHASE_ERROR), run.state).kind is Kind.FAILED


def test_only_slow_steps_need_earlier_events_on_disk() -> None:
    assert STEPS.is_slow(PREPARE)
    assert not STEPS.is_slow(PLAN)


def test_complaint_about_a_sealed_file_says_so(project: SealedFiles) -> None:
    rule = make_rules("a.word.blue")[0]
    run = make_run(project.root, project=project, rules=(rule,), state={"target": Target.WORKSPACE})
    finding = Finding(expected="blue", found="red", where="test_shop.py:1")
    failed = SessionResult(
        SessionPlan(items={rule.id: (rule.id,)}),
        {rule.id: Evidence(outcome=Outcome.FAILED, findings=(finding,))},
        canaries=[True],
        exit_status=0,
    )
    run.session.results.append(failed)
    evaluation = run.make_step().make_evaluator().evaluate()
    payload = STEPS.execute(CRITICISE, run.make_step(evaluation=evaluation))
    assert "test_shop.py is sealed" in payload.dump()["issues"][0]["fix_instruction"]
    assert "a.word.blue complains about test_shop.py, which is sealed: --loop-unseal" in run.output.getvalue()
