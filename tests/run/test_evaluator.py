"""The evaluator: orders to sessions, costs of the judge, and evidence of tampering."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_loop.agents.protocol import AgentReply
from pytest_loop.core.model.evaluation import Evaluation, Seal
from pytest_loop.core.model.rules import Evidence, Outcome, SessionPlan
from pytest_loop.core.model.run_state import PreparedChecks, RuleChecks, Usage
from pytest_loop.core.model.session_order import SessionOrder
from pytest_loop.core.model.vocabulary import Target
from pytest_loop.session.judge_service import ask_judge
from pytest_loop.session.result import SessionResult
from pytest_loop.settings.options import JudgingSettings
from pytest_loop.workspace.seal import hash_site_files
from pytest_loop.workspace.sealed_files import SealedFiles
from tests.run.parts import SmallRun, make_rules, make_run


def evaluate(run: SmallRun, **state: object) -> Evaluation:
    return run.make_step(**state).make_evaluator().evaluate()


def test_document_is_evaluated_by_its_rules(tmp_path: Path) -> None:
    (tmp_path / "guide.md").write_text("blue")
    run = make_run(tmp_path, rules=make_rules("a.word.blue", "a.word.red"))
    evaluation = evaluate(run)
    assert (evaluation.passed, evaluation.passing, [result.id for result in evaluation.failed]) == (
        False, 1, ["a.word.red"],
    )  # fmt: skip
    assert evaluation.artifact_sha256 == run.context.artifact.compute_hash()
    (order,) = run.session.orders
    assert (order.artifact, order.canary, order.can_reuse) == (str(tmp_path / "guide.md"), "", True)


def test_order_has_prepared_checks_and_confirmed_rules(tmp_path: Path) -> None:
    run = make_run(tmp_path, settings={"judging": JudgingSettings(confirm=("a.word.blue",), no_reuse=True)})
    checks = [RuleChecks(rule_id=name, check=[{"contains": "x"}]) for name in ("a.word.blue", "a.gone.x")]
    evaluate(run, prepared_checks=PreparedChecks(checks=tuple(checks)))
    (order,) = run.session.orders
    assert order.prepared_checks == {"a.word.blue": [{"contains": "x"}]}
    assert (order.confirmed_rules, order.can_reuse) == (("a.word.blue",), False)


def test_success_with_reused_evidence_is_evaluated_again_without_it(tmp_path: Path) -> None:
    (tmp_path / "guide.md").write_text("red")
    run = make_run(tmp_path)
    evidence = {"a.word.blue": Evidence(outcome=Outcome.PASSED, reused=True)}
    plan = SessionPlan(items={"a.word.blue": ("a.word.blue",)})
    run.session.results.append(SessionResult(plan, evidence, exit_status=0))
    assert not evaluate(run).passed
    assert [order.can_reuse for order in run.session.orders] == [True, False]


def test_plugin_replaces_the_score(tmp_path: Path) -> None:
    class Generous:
        @pytest.hookimpl
        def pytest_loop_score(self) -> float:
            return 0.5

    assert evaluate(make_run(tmp_path, plugins=(Generous(),))).score == 0.5


def test_answers_of_the_judge_are_paid_for(tmp_path: Path) -> None:
    reply = AgentReply(data={"passed": True, "reason": "it is"}, usage=Usage(tokens=7))
    run = make_run(tmp_path, reply)
    answers = []

    class AskingSession:
        def evaluate(self, order: SessionOrder, *extra: str) -> SessionResult:
            answers.append(ask_judge(order.judge_address, order.judge_key, "Is it blue?", None))
            return run.session.evaluate(order, *extra)

    run.context = replace(run.context, session=AskingSession())
    step = run.make_step()
    step.make_evaluator().evaluate()
    assert [answer.passed for answer in answers] == [True]
    assert (step.costs.agent, step.costs.usage.tokens) == ("scripted", 7)


@pytest.fixture
def run(project: SealedFiles) -> SmallRun:
    seal = Seal(patterns=("test_*.py",), site=hash_site_files(), plugins=("cov",))
    return make_run(project.root, project=project, state={"target": Target.WORKSPACE, "seal": seal})


def list_findings(evaluation: Evaluation) -> list[tuple[str, bool]]:
    return [(finding.kind, evaluation.void) for finding in evaluation.findings]


def test_honest_edit_has_no_findings_and_a_checkpoint(project: SealedFiles, run: SmallRun) -> None:
    (project.root / "shop.py").write_text("colour = 'blue'\n")
    evaluation = evaluate(run)
    assert (evaluation.passed, evaluation.findings) == (True, ())
    assert project.restore_checkpoint(1, evaluation.artifact_sha256).lost == ()
    assert run.session.orders[0].canary


def test_changed_sealed_file_makes_the_evaluation_void(project: SealedFiles, run: SmallRun) -> None:
    (project.root / "test_shop.py").write_text("")
    assert list_findings(evaluate(run)) == [("sealed", True)]
    assert (project.root / "test_shop.py").read_text() == "import shop\n"


def test_canary_that_passes_makes_the_evaluation_void(run: SmallRun) -> None:
    run.session.results.append(SessionResult(SessionPlan(), canaries=[False], exit_status=0))
    assert list_findings(evaluate(run)) == [("canary", True)]


def test_new_plugin_makes_the_evaluation_void(run: SmallRun) -> None:
    run.session.plugins = frozenset({"cov", "cheat"})
    assert list_findings(evaluate(run)) == [("plugin", True)]


def test_changed_environment_makes_the_evaluation_void(project: SealedFiles) -> None:
    seal = Seal(patterns=("test_*.py",), site="another")
    run = make_run(project.root, project=project, state={"target": Target.WORKSPACE, "seal": seal})
    assert list_findings(evaluate(run)) == [("site", True)]


def test_edit_that_detects_tests_is_a_finding(project: SealedFiles, run: SmallRun) -> None:
    (project.root / "shop.py").write_text("import os\ncolour = 'blue' if 'PYTEST_CURRENT_TEST' in os.environ else 1\n")
    assert evaluate(run).void


def test_changed_rule_file_is_restored_and_makes_the_evaluation_void(run: SmallRun) -> None:
    run.files.save_rules("rules: []\n")
    assert list_findings(evaluate(run, inferred_rules="rules: [a]\n")) == [("sealed", True)]
    assert run.files.rules.read_text() == "rules: [a]\n"


def test_score_that_rises_without_an_edit_is_unstable(run: SmallRun) -> None:
    before = evaluate(run)
    passing = SessionResult(
        SessionPlan(items={"a.word.blue": ("a.word.blue",)}),
        {"a.word.blue": Evidence(outcome=Outcome.PASSED)},
        canaries=[True],
        exit_status=0,
    )
    run.session.results += [passing, passing]
    assert ("unstable", False) in list_findings(evaluate(run, evaluation=before))
    run.session.results.append(passing)
    assert evaluate(run, evaluation=before).findings == (), "the second session decides"
