"""The evaluator: orders to sessions, costs of the judge, and evidence of tampering."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_loop.agents.protocol import AgentReply
from pytest_loop.core.model.evaluation import Evaluation, Seal
from pytest_loop.core.model.rules import Evidence, Outcome, SessionPlan
from pytest_loop.core.model.run_state import PreparedChecks, RuleChecks, Usage
from pytest_loop.core.model.session_order import SessionOrder
from pytest_loop.core.model.vocabulary import Target
from pytest_loop.session.interference import CAUGHT_FAILURE
from pytest_loop.session.judge_service import ask_judge
from pytest_loop.session.result import SessionResult
from pytest_loop.settings.options import JudgingSettings
from pytest_loop.workspace.artifact import Artifact
from pytest_loop.workspace.environment import hash_site_files
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
    assert (order.artifact, order.can_reuse) == (str(tmp_path / "guide.md"), True)
    assert order.canary


def test_evaluation_of_a_document_whose_rule_file_was_edited_is_void(tmp_path: Path) -> None:
    (tmp_path / "guide.md").write_text("blue")
    (tmp_path / "guide.rules.yaml").write_text("strict")
    run = make_run(tmp_path)
    assert evaluate(run).is_reached
    (tmp_path / "guide.rules.yaml").write_text("easy")
    evaluation = evaluate(run)
    assert [(finding.kind, finding.path) for finding in evaluation.findings] == [("sealed", "guide.rules.yaml")]
    assert (evaluation.passed, evaluation.is_reached) == (True, False)
    assert evaluate(run).is_reached, "the file was put back"


def test_check_that_is_not_the_one_of_run_json_makes_the_evaluation_void(tmp_path: Path) -> None:
    """A rule file outside of the project is not among its sealed files."""
    (tmp_path / "guide.md").write_text("blue")
    run = make_run(tmp_path, rules=make_rules("a.word.blue", check={"contains": "blue"}))
    passed = {"a.word.blue": Evidence(outcome=Outcome.PASSED)}
    plan = SessionPlan(items={"a.word.blue": ("a.word.blue",)}, checks={"a.word.blue": {"contains": ""}})
    run.session.results.append(SessionResult(plan, passed, canaries=[True], exit_status=0))
    evaluation = evaluate(run)
    assert [(finding.kind, finding.rule) for finding in evaluation.findings] == [("sealed", "a.word.blue")]
    assert evaluation.void


def test_document_that_is_a_test_module_may_speak_of_pytest(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    for name, is_void in (("test_guide.py", False), ("guide.py", True)):
        root = tmp_path / name.removesuffix(".py")
        root.mkdir()
        project = SealedFiles(root, root / ".loop" / "guide", (), [f"/{name}"])
        request.addfinalizer(project.close)
        seal = project.record_seal()
        (root / name).write_text("import pytest  # blue\n")
        run = make_run(root, project=project, state={"target": Target.ARTIFACT, "seal": seal, "artifact": name})
        run = replace(run, context=replace(run.context, artifact=Artifact(root / name)))
        assert evaluate(run).void is is_void


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
    assert (step.record.agent, step.record.usage.tokens) == ("scripted", 7)


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


def test_contradiction_makes_the_evaluation_void(run: SmallRun) -> None:
    result = SessionResult(SessionPlan(), canaries=[True], exit_status=0, contradictions=["it reported two plans"])
    run.session.results.append(result)
    assert list_findings(evaluate(run)) == [("contradiction", True)]


def test_test_that_is_newly_not_what_its_file_says_makes_the_evaluation_void(run: SmallRun) -> None:
    plan = SessionPlan(replaced_tests=("shop.py::test_it", "new.py::test_it"))
    run.session.results.append(SessionResult(plan, canaries=[True], exit_status=0))
    assert list_findings(evaluate(run)) == [("replaced", True)]


def test_new_file_among_the_tests_that_a_sealed_test_reads_makes_the_evaluation_void(project: SealedFiles) -> None:
    (project.root / "tests").mkdir()
    (project.root / "tests/test_old.py").touch()
    project.reseal((*project.sealed.patterns, "/tests/"), ())
    run = make_run(project.root, project=project, state={"target": Target.WORKSPACE, "seal": project.record_seal()})
    (project.root / "tests/unit").mkdir()
    (project.root / "tests/unit/fixtures.py").touch()
    (project.root / "shop.py").write_text("colour = 'blue'\n")
    reads = {("tests/unit/fixtures.py", "tests/test_old.py")}
    for result in (SessionResult(canaries=[True], exit_status=0), SessionResult(canaries=[True], reads=reads)):
        run.session.results.append(result)
    assert list_findings(evaluate(run)) == []
    assert list_findings(evaluate(run)) == [("sealed", True)]


def test_new_file_that_a_test_opens_is_not_verified(run: SmallRun) -> None:
    """The task may ask for it, or it may replace what the test would read otherwise."""
    for name in ("local.json", "new.py", "out.txt"):
        (run.root / name).touch()
    reads = {(name, "test_shop.py") for name in ("local.json", "new.py", "out.txt")}
    result = SessionResult(SessionPlan(), canaries=[True], reads=reads, opened_to_write={"out.txt"}, exit_status=0)
    run.session.results.append(result)
    (finding,) = evaluate(run).findings
    assert (finding.kind, finding.path) == ("not verified", "local.json")


def test_test_that_passes_although_its_assertion_failed_is_not_verified(run: SmallRun) -> None:
    deeds = {("test_shop.py::test_total", CAUGHT_FAILURE)}
    run.session.results.append(SessionResult(SessionPlan(), canaries=[True], interference=deeds, exit_status=0))
    (finding,) = evaluate(run).findings
    assert (finding.kind, finding.path) == ("not verified", "test_shop.py::test_total")


def test_module_where_the_product_newly_searches_cannot_replace_a_sealed_one(run: SmallRun) -> None:
    (run.root / "alt").mkdir()
    (run.root / "alt/test_shop.py").touch()
    run.context.project.module_folders = (".",)
    result = SessionResult(SessionPlan(), canaries=[True], module_folders={"alt"}, exit_status=0)
    run.session.results.append(result)
    assert list_findings(evaluate(run)) == [("sealed", True)]
    assert not (run.root / "alt/test_shop.py").exists()


def test_changed_source_that_reads_a_test_is_named(run: SmallRun) -> None:
    (run.root / "shop.py").write_text("colour = 'blue'\n")
    reads = {("test_shop.py", "shop.py"), ("test_shop.py", "test_other.py"), ("data.txt", "shop.py")}
    run.session.results.append(SessionResult(SessionPlan(), canaries=[True], reads=reads, exit_status=0))
    (finding,) = evaluate(run).findings
    assert (finding.kind, finding.path, finding.detail) == ("not verified", "shop.py", "it reads test_shop.py")


def test_interference_of_changed_code_makes_the_evaluation_void(run: SmallRun) -> None:
    deeds = {("", "math.isclose was replaced"), ("new.py", "it looks at its callers")}
    run.session.results.append(SessionResult(SessionPlan(), canaries=[True], interference=deeds, exit_status=0))
    assert list_findings(evaluate(run)) == [("interference", True), ("interference", True)]


def test_interference_before_the_first_edit_is_no_finding(run: SmallRun) -> None:
    deeds = {("", "math.isclose was replaced")}
    run.session.results.append(SessionResult(SessionPlan(), canaries=[True], interference=deeds, exit_status=0))
    assert list_findings(evaluate(run, seal=Seal(interference=tuple(deeds), site=hash_site_files()))) == []


def test_source_that_is_newly_ignored_counts_where_linters_judge(project: SealedFiles, run: SmallRun) -> None:
    subprocess.run(["git", "init", "-q", str(project.root)], check=True)
    (project.root / ".gitignore").write_text("shop.py\n")
    assert [finding.detail for finding in evaluate(run).findings] == [
        "an ignore file newly names it, so that linters leave it out"
    ]
    seal = Seal(ignored=("shop.py",), site=hash_site_files())
    assert list_findings(evaluate(run, seal=seal)) == []


def test_canary_that_passes_makes_the_evaluation_void(run: SmallRun) -> None:
    run.session.results.append(SessionResult(SessionPlan(), canaries=[False], exit_status=0))
    assert list_findings(evaluate(run)) == [("canary", True)]


def test_new_plugin_makes_the_evaluation_void(run: SmallRun) -> None:
    run.session.plugins = frozenset({"cov", "cheat"})
    assert list_findings(evaluate(run)) == [("plugin", True)]


def test_plugins_are_not_compared_before_the_seal_has_them(project: SealedFiles) -> None:
    seal = Seal(site=hash_site_files(), plugins=None)
    run = make_run(project.root, project=project, state={"target": Target.WORKSPACE, "seal": seal})
    run.session.plugins = frozenset({"dsession"})
    assert list_findings(evaluate(run)) == []


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


def test_command_that_runs_fewer_tests_than_before_fails(tmp_path: Path) -> None:
    (tmp_path / "guide.md").write_text("blue")
    seal = Seal(test_counts={"a.word.blue": 2}, site=hash_site_files())
    evaluation = evaluate(make_run(tmp_path, state={"seal": seal}))
    assert (evaluation.passed, evaluation.void) == (False, False)
    assert "at least 2 passing tests" in evaluation.failed[0].message


def test_new_tests_run_apart_after_the_others_pass(project: SealedFiles, run: SmallRun) -> None:
    (project.root / "shop.py").write_text("colour = 'blue'\n")
    (project.root / "test_new.py").write_text("def test(): assert False\n")
    good = Evidence(outcome=Outcome.PASSED)
    judged = SessionResult(
        SessionPlan(items={"a.word.blue": ("a.word.blue",)}), {"a.word.blue": good}, canaries=[True], exit_status=0
    )
    added = SessionResult(evidence={"test_new.py::test": good, ".loop/x/inferred.rules.yaml::a.word.blue": good})
    run.session.results += [judged, added]
    evaluation = evaluate(run)
    *_, last = run.session.orders
    new_test = str(project.root / "test_new.py")
    assert (last.only, run.session.orders[0].excluded) == ((new_test,), (new_test,))
    assert evaluation.passed
    assert evaluation.new_tests is not None
    assert (evaluation.new_tests.total, evaluation.new_tests.failing) == (1, ())


def test_new_file_whose_name_is_not_utf8_is_in_no_order(run: SmallRun) -> None:
    Path(os.fsdecode(os.fsencode(run.root) + b"/test_\xff.py")).touch()
    evaluate(run)
    assert run.session.orders[0].excluded == ()


def test_changed_doctest_makes_the_evaluation_void(project: SealedFiles, run: SmallRun) -> None:
    (project.root / "shop.py").write_text('"""\n>>> 1\n2\n"""\ncolour = "blue"\n')
    project.record_start()
    (project.root / "shop.py").write_text('"""\n>>> 1\n1\n"""\ncolour = "blue"\n')
    seal = Seal(doctest_sources=("shop.py",), site=hash_site_files())
    assert list_findings(evaluate(run, seal=seal)) == [("doctest", True)]


def test_configuration_outside_of_the_project_makes_the_evaluation_void(run: SmallRun) -> None:
    seal = Seal(outer={"/nowhere/ruff.toml": "x"}, site=hash_site_files())
    assert ("site", True) in list_findings(evaluate(run, seal=seal))


def test_file_that_the_task_names_may_speak_of_pytest(project: SealedFiles, run: SmallRun) -> None:
    (project.root / "shop.py").write_text("import pytest\ncolour = 'blue'\n")
    assert list_findings(evaluate(run, seal=Seal(named=("shop.py",), site=hash_site_files()))) == []
