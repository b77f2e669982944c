"""The draft at the terminal, and the failures of a document."""

from __future__ import annotations

from pytest_loop.core.model.evaluation import Evaluation, RuleResult
from pytest_loop.core.model.rules import Finding, Verdict
from pytest_loop.core.model.run_criteria import RunCriteria, RunRule
from pytest_loop.core.model.run_setup import Setup
from pytest_loop.core.model.run_state import RunState, Task
from pytest_loop.core.model.vocabulary import Target
from pytest_loop.show.draft_text import DraftFacts, render_draft
from pytest_loop.show.failure_lines import render_failures
from pytest_loop.show.look import Look

RULE_FILE = ".loop/page/inferred.rules.yaml"
DOCUMENT = ".loop/page/artifact.md"


def make_state(target: Target = Target.ARTIFACT) -> RunState:
    rules = (
        RunRule(id="a.task.subject", description="It is about backups", key=f"{RULE_FILE}::a.task.subject"),
        RunRule(id="a.sections", description="It has sections", key=f"{RULE_FILE}::a.sections", check="Has it?"),
    )
    return RunState(
        run_id="page-1",
        task_alias="page",
        task=Task(prompt="Write docs"),
        criteria=RunCriteria(rules=rules),
        setup=Setup(target=target, artifact=DOCUMENT, agents=("x",)),
    )


ORIGINS = {f"{RULE_FILE}::a.task.subject": "`backups` in the task", f"{RULE_FILE}::a.sections": "template docs"}


def test_draft_lists_drafted_rules_without_repeating_their_file_and_template() -> None:
    _, *lines = render_draft(make_state(), DraftFacts(ORIGINS), Look())
    assert lines == [
        f"judge: the rules below · writes: {DOCUMENT}",
        "  a.task.subject  It is about backups  [`backups` in the task]",
        "  a.sections      It has sections  [judged]",
    ]


def test_long_description_is_cut_to_the_width_of_the_terminal() -> None:
    state = make_state()
    command = "a sentence with a command `pytest --cov=. --cov-report=term` that users want to read"
    rule = state.criteria.rules[0].model_copy(update={"description": command})
    state = state.model_copy(update={"criteria": RunCriteria(rules=(rule,))})
    assert command in "\n".join(render_draft(state, DraftFacts(), Look()))
    narrow = list(render_draft(state, DraftFacts(), Look(width=60)))
    assert max(map(len, narrow[2:])) <= 60


def test_failures_name_a_document_without_its_folder() -> None:
    finding = Finding(expected="a section 'Usage'", found="none", where=f"{DOCUMENT}:3")
    result = RuleResult(id="a.sections", verdict=Verdict.FAIL, findings=(finding,))
    state = make_state().model_copy(update={"evaluation": Evaluation(score=0, passed=False, rule_results=(result,))})
    assert list(render_failures(state, ["a.sections"], Look())) == [
        "       a.sections  artifact.md:3: expected a section 'Usage', found none"
    ]
