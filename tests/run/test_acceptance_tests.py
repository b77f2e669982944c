"""PREPARE of a run that begins with tests: who writes them, what is checked, put back, confirmed and sealed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pytest_loop.agents.protocol import AgentError, AgentReply, AgentRequest, AgentUnavailableError, StopRequestedError
from pytest_loop.cli.first_step import begin_with_tests
from pytest_loop.core.events.event import Event
from pytest_loop.core.events.run_payloads import AcceptanceTestsPrepared
from pytest_loop.core.machine.run_machine import PREPARE_TESTS, RUN_MACHINE
from pytest_loop.core.model.rules import Criteria, Evidence, Outcome, Rule, SessionPlan
from pytest_loop.core.model.run_setup import ConfirmedDraft
from pytest_loop.core.model.run_state import RunState, StepErrors, Task
from pytest_loop.core.model.vocabulary import Place
from pytest_loop.run.questions import Gates
from pytest_loop.run.steps import RunSteps
from pytest_loop.session.result import SessionResult
from pytest_loop.workspace.sealed_files import SealedFiles
from tests.run.parts import SmallRun, make_agent, make_run

NAME = "test_csv.py::test_header"
SOURCE = "import shop\n\ndef test_header():\n    assert shop.export() == 'name'\n"
PLAN = SessionPlan(
    criteria=(Criteria(name="tests", source="tests", rules=(Rule(id=NAME, description=NAME),)),),
    items={NAME: (f"tests::{NAME}",)},
)
UNCOLLECTED = SessionResult(SessionPlan())


def fail(text: str = "AssertionError: assert None == 'name'", outcome: Outcome = Outcome.FAILED) -> SessionResult:
    return SessionResult(PLAN, {NAME: Evidence(outcome=outcome, text=text)}, exit_status=1)


def write(**files: str) -> Callable[[AgentRequest], AgentReply]:
    """Return an agent's answer that writes files; `test_csv` is `test_csv.py`."""

    def answer(request: AgentRequest) -> AgentReply:
        for name, text in files.items():
            (request.workspace / f"{name}.py").write_text(text)
        return AgentReply()

    return answer


def begin(project: SealedFiles, *answers: Any, results: list[SessionResult] | None = None, **more: Any) -> SmallRun:
    """Return a run of a project that begins with tests; sessions collect nothing new, and then find one failure."""
    state = begin_with_tests(RunState(run_id="guide-1", task_alias="guide", task=Task(prompt="x")), project)
    context = {"gates": Gates(is_agreed=True), **more.pop("context", {})}
    fields = {"seal": state.setup.seal, "work_seal": state.setup.work_seal, "target": "workspace", **more}
    run = make_run(project.root, *answers, project=project, state=fields, **context)
    run.session.results = [UNCOLLECTED, fail()] if results is None else results
    return run


def prepare(run: SmallRun) -> AcceptanceTestsPrepared:
    payload = RunSteps().execute(PREPARE_TESTS, run.make_step())
    assert isinstance(payload, AcceptanceTestsPrepared)
    return payload


def test_tests_become_sealed_rules_of_the_run(project: SealedFiles) -> None:
    run = begin(project, write(test_csv=SOURCE))
    assert run.state.current_step is Place.PREPARE
    payload = prepare(run)
    assert (payload.paths, payload.arguments) == (("test_csv.py",), ("test_csv.py",))
    after = RUN_MACHINE.apply(run.state, Event.create(run.state, payload, "now"))
    assert [rule.id for rule in after.criteria.rules] == ["a.word.blue", NAME]
    assert (after.current_step, after.setup.work_seal) == (Place.EVALUATE, None)
    assert after.setup.arguments[-1] == "test_csv.py"
    (project.root / "test_csv.py").write_text("")
    (project.root / "shop.py").write_text("colour = 'blue'\n")
    assert [finding.path for finding in project.enforce_seal()] == ["test_csv.py"]
    request = run.agent.requests[0]
    assert (request.step, request.schema, request.workspace) == ("PREPARE", None, project.root)
    assert "write the acceptance tests for the task" in request.prompt
    assert "  fails: test_csv.py::test_header: AssertionError: assert None == 'name'\n" in run.output.getvalue()
    assert "  |     assert shop.export() == 'name'\n" in run.output.getvalue()


def test_every_other_change_is_put_back_and_named(project: SealedFiles) -> None:
    run = begin(project, write(test_csv=SOURCE, shop="def export(): ...\n", test_shop="", conftest=""))
    payload = prepare(run)
    assert {finding.path for finding in payload.findings} == {"shop.py", "test_shop.py", "conftest.py"}
    assert (project.root / "shop.py").read_text() == "colour = 'red'\n"
    assert not (project.root / "conftest.py").exists()
    assert "not allowed before the tests are confirmed: shop.py: was changed, and was put back" in run.output.getvalue()


@pytest.mark.parametrize(
    ("source", "results", "problem"),
    [
        (None, [], r"expected new files with tests or rules \(test_\*\.py, .*\), found none"),
        ("def test_it(:\n", [], r"test_csv\.py: .*cannot be parsed"),
        ("def test_it():\n    assert False\n", [], r"test_csv\.py: it asserts nothing about behaviour"),
        (SOURCE, [UNCOLLECTED, UNCOLLECTED], r"test_csv\.py: pytest collects nothing from it"),
        (SOURCE, [fail(), fail(outcome=Outcome.PASSED)], r"test_csv\.py: everything passes before the work begins"),
        (SOURCE, [fail(), fail(outcome=Outcome.SKIPPED)], r"test_csv\.py: everything passes before the work begins"),
        (SOURCE, [fail(), fail("No module named 'openpyxl'")], r"test_header fails for the wrong reason: it needs openpyxl"),
    ],
)  # fmt: skip
def test_tests_that_break_the_contract_are_an_error_with_its_reason(
    project: SealedFiles, source: str | None, results: list[SessionResult], problem: str
) -> None:
    run = begin(project, write(**({"test_csv": source} if source else {})), results=results)
    with pytest.raises(AgentError, match=problem):
        prepare(run)


def test_module_that_the_task_must_create_may_be_missing(project: SealedFiles) -> None:
    missing = SessionResult(problems={"test_csv.py": "E   ModuleNotFoundError: No module named 'shop.csv'"})
    payload = prepare(begin(project, write(test_csv=SOURCE), results=[missing, missing]))
    assert ([rule.id for rule in payload.rules], payload.arguments) == (["test_csv.py"], ())


def test_rule_file_may_measure_the_task(project: SealedFiles) -> None:
    key = "csv.rules.yaml::a.csv.header"
    rules = Criteria(name="csv", source="csv.rules.yaml", rules=(Rule(id="a.csv.header", description="It has one"),))
    plan = SessionPlan(criteria=(rules,), items={key: (key,)}, checks={key: {"command": "sh check.sh"}})
    result = SessionResult(plan, {key: Evidence(outcome=Outcome.FAILED, text="exit code 1")})

    def answer(request: AgentRequest) -> AgentReply:
        (request.workspace / "csv.rules.yaml").write_text("rules: []\n")
        return AgentReply()

    payload = prepare(begin(project, answer, results=[result, result]))
    assert [(rule.id, rule.check) for rule in payload.rules] == [("a.csv.header", {"command": "sh check.sh"})]


def test_tests_of_a_killed_process_are_checked_before_the_agent_is_asked_again(project: SealedFiles) -> None:
    run = begin(project)
    (project.root / "test_csv.py").write_text(SOURCE)
    (project.root / "shop.py").write_text("half an edit")
    project.accept_current()  # as another process does that resumes the run
    assert prepare(run).paths == ("test_csv.py",)
    assert run.agent.requests == []
    assert (project.root / "shop.py").read_text() == "colour = 'red'\n"


@pytest.mark.parametrize("is_retry", [True, False])
def test_agent_is_asked_again_after_an_error_and_about_half_a_test(project: SealedFiles, is_retry: bool) -> None:
    errors = {"PREPARE": StepErrors(times=1, reason="it has no test function")} if is_retry else {}
    run = begin(project, write(test_csv=SOURCE), step_errors=errors)
    (project.root / "test_csv.py").write_text(SOURCE if is_retry else "def test_he")
    project.accept_current()
    prepare(run)
    assert ("it has no test function" in run.agent.requests[0].prompt) is is_retry


def test_built_in_agent_writes_no_tests(project: SealedFiles) -> None:
    builtin, other = make_agent(name="builtin"), make_agent(write(test_csv=SOURCE))
    prepare(begin(project, context={"agents": [builtin, other], "judge": builtin}))
    assert (len(builtin.requests), len(other.requests)) == (0, 1)
    with pytest.raises(AgentUnavailableError, match="name one with --loop-agent"):
        prepare(begin(project, context={"agents": [builtin], "judge": None}))


@pytest.mark.parametrize(
    ("answer", "error"), [("y", None), ("n", StopRequestedError), ("", StopRequestedError), (None, KeyboardInterrupt)]
)
def test_user_confirms_the_tests(project: SealedFiles, answer: str | None, error: type[BaseException] | None) -> None:
    gates = Gates(is_terminal=True, read_answer=lambda _question: answer)
    run = begin(project, write(test_csv=SOURCE), context={"gates": gates})
    if error is None:
        prepare(run)
        return
    with pytest.raises(error):
        prepare(run)
    assert ("the tests are not confirmed" in run.output.getvalue()) is (error is StopRequestedError)


@pytest.mark.parametrize("confirmed_by", ["terminal", "--loop-yes"])
def test_tests_are_not_confirmed_where_nobody_is_asked(project: SealedFiles, confirmed_by: str) -> None:
    draft = ConfirmedDraft(confirmed_by=confirmed_by)
    run = begin(project, write(test_csv=SOURCE), draft=draft, context={"gates": Gates()})
    if confirmed_by == "--loop-yes":
        prepare(run)
        return
    with pytest.raises(StopRequestedError):
        prepare(run)


@pytest.mark.parametrize("edited", [SOURCE + "# more\n", "def test_it(:\n"])
def test_tests_that_the_user_edits_at_the_question_are_checked_again(project: SealedFiles, edited: str) -> None:
    def edit(_question: str) -> str:
        (project.root / "test_csv.py").write_text(edited)
        return "y"

    results = [UNCOLLECTED, fail()] * 2
    gates = Gates(is_terminal=True, read_answer=edit)
    run = begin(project, write(test_csv=SOURCE), results=results, context={"gates": gates})
    if edited.startswith("def"):
        with pytest.raises(AgentError, match="cannot be parsed"):
            prepare(run)
    else:
        prepare(run)
        assert run.session.results == []


def test_file_that_cannot_be_read_is_an_error_of_the_agent(project: SealedFiles) -> None:
    def answer(request: AgentRequest) -> AgentReply:
        (request.workspace / "test_csv.py").symlink_to("nowhere")
        return AgentReply()

    with pytest.raises(AgentError, match=r"test_csv\.py: No such file or directory"):
        prepare(begin(project, answer))
