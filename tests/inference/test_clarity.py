"""Drafts are scored, and the shape of a run decides its questions."""

from __future__ import annotations

import pytest

from pytest_loop.inference.clarity import (
    Clarity,
    ClarityFacts,
    DimensionScore,
    DraftRule,
    Shape,
    find_strictest_shape,
    score_clarity,
)
from pytest_loop.inference.gates import (
    Confirm,
    Gate,
    GateDecision,
    decide_gate,
    render_iteration_question,
    render_success_question,
)
from pytest_loop.inference.reversibility import UndoEffort, assess_reversibility, find_open_pre_checks
from pytest_loop.inference.workflow import Workflow, classify_workflow

TESTS = DraftRule("tests/test_a.py::test_a")
LINT = DraftRule("a.lint.clean", "command")
NEVER = DraftRule("a.safety.no-force", "absent", must_not=True)
JUDGED = DraftRule("b.style.kind", "judge")
NICE = DraftRule("b.style.nice", "command", is_blocking=False)
TEMPLATE = (
    DraftRule("a.completeness.sections", "execution", is_default=True),
    DraftRule("a.quality.clarity", "judge", is_default=True),
)
ABOUT_BACKUPS = DraftRule("a.task.subject", "observation")


def make_template_draft(task: str, *more: DraftRule) -> ClarityFacts:
    """Return a draft that a template judges, whose document the user did not name."""
    return ClarityFacts(task, (*TEMPLATE, *more), artifact="artifact.md", is_artifact_named=False)


@pytest.mark.parametrize(
    ("draft", "points", "shape"),
    [
        (ClarityFacts("make it better"), [0, 0, 0, 0, 0], Shape.UNCLEAR),
        (ClarityFacts("improve the login"), [0, 1, 0, 0, 0], Shape.UNCLEAR),
        (ClarityFacts("p95 latency < 100 ms"), [2, 1, 0, 0, 0], Shape.UNCLEAR),
        (ClarityFacts("rename `total`"), [1, 1, 0, 0, 0], Shape.UNCLEAR),
        (ClarityFacts("fix the failing tests", (TESTS,)), [2, 1, 0, 1, 2], Shape.COLLEAGUE),
        (ClarityFacts("fix the failing tests", (TESTS,), ("5 USD",)), [2, 1, 1, 1, 2], Shape.COLLEAGUE),
        (ClarityFacts("fix it", (TESTS,)), [2, 0, 0, 1, 2], Shape.COLLEAGUE),
        (
            ClarityFacts("fix src/auth/token.py, no new dependencies", (TESTS, LINT), ("5 USD",)),
            [2, 2, 2, 2, 2],
            Shape.TOOL,
        ),
        (ClarityFacts("fix it", (TESTS, NEVER), ("5 USD",), ("src/*",)), [2, 2, 2, 1, 2], Shape.TOOL),
        (ClarityFacts("write a spec of courses", (TESTS,), (), (), "openapi.yaml"), [2, 2, 0, 1, 2], Shape.COLLEAGUE),
        (ClarityFacts("write it", (JUDGED,)), [1, 0, 0, 1, 1], Shape.UNCLEAR),
        (ClarityFacts("write it", (NICE,)), [1, 0, 0, 1, 0], Shape.UNCLEAR),
        (ClarityFacts("write it", (NEVER,)), [1, 0, 1, 0, 0], Shape.UNCLEAR),
        (make_template_draft("make it better"), [1, 1, 0, 2, 1], Shape.COLLEAGUE),
        (make_template_draft("Write a guide to backups"), [1, 1, 0, 2, 1], Shape.COLLEAGUE),
        (make_template_draft("Write a guide to backups", ABOUT_BACKUPS), [2, 1, 0, 2, 2], Shape.COLLEAGUE),
    ],
)
def test_points_decide_the_shape(draft: ClarityFacts, points: list[int], shape: Shape) -> None:
    found = score_clarity(draft)
    assert [point.score for point in found.points] == points, found
    assert found.total == sum(points)
    assert found.shape is shape
    assert all(point.reason for point in found.points)
    assert len(found.missing) == sum(score < 2 for score in points)


def test_every_point_names_the_words_that_earned_it() -> None:
    found = score_clarity(
        ClarityFacts("fix src/cart.py without new dependencies", (TESTS, NEVER), ("5 USD", "600 seconds"), ("src/*",))
    )
    assert found.points == (
        DimensionScore("outcome", 2, "1 rule that a machine decides: tests/test_a.py::test_a"),
        DimensionScore("scope", 2, "only src/* may change"),
        DimensionScore(
            "constraints",
            2,
            "1 must-not rule; edits only in src/*; `without` in the task; a limit of 5 USD, 600 seconds",
        ),
        DimensionScore("success", 1, "verified by tests"),
        DimensionScore("done", 2, "it is done when tests/test_a.py::test_a passes"),
    )
    assert found.missing == ("success: verify it in a second way: tests and a linter, or tests and a measurement",)


@pytest.mark.parametrize(
    ("draft", "reasons"),
    [
        (
            make_template_draft("make it better"),
            [
                "a template judges, and the task names no result of its own",
                "one document, and artifact.md is only a default",
                "nothing that you said limits how it is done",
                "verified by execution, judge",
                "the template says when it is done, and the task does not",
            ],
        ),
        (
            make_template_draft("Write a guide to backups in at most 300 words, only for admins"),
            [
                "`at most 300 words` in the task",
                "`guide` in the task, and artifact.md is only a default",
                "`at most 300 words` in the task; `only` in the task",
                "verified by execution, judge",
                "the template says when it is done, and the task does not",
            ],
        ),
        (
            ClarityFacts("rename `total` in shop/cart.py", (JUDGED,)),
            [
                "`shop/cart.py` in the task, and no machine decides it",
                "`shop/cart.py` in the task",
                "nothing that you said limits how it is done",
                "verified by judge",
                "b.style.kind blocks, and no machine decides it",
            ],
        ),
    ],
)
def test_reasons_quote_the_task(draft: ClarityFacts, reasons: list[str]) -> None:
    assert [point.reason for point in score_clarity(draft).points] == reasons


@pytest.mark.parametrize(
    ("total", "shape"),
    [(10, Shape.TOOL), (8, Shape.TOOL), (7, Shape.COLLEAGUE), (5, Shape.COLLEAGUE), (4, Shape.UNCLEAR)],
)
def test_the_total_decides_the_shape(total: int, shape: Shape) -> None:
    assert Clarity(tuple(DimensionScore("outcome", 1, "x") for _ in range(total))).shape is shape


# -- gates


def test_questions_name_the_progress() -> None:
    assert render_iteration_question(2, 4, 3) == "iteration 2 of 4 is over, 3 rules left: go on?"
    assert render_success_question(1) == "1 rule judged, and it passes: is it done?"


def test_the_strictest_of_several_shapes_counts() -> None:
    assert find_strictest_shape([Shape.TOOL, Shape.COLLEAGUE]) is Shape.COLLEAGUE
    assert find_strictest_shape([Shape.UNCLEAR, Shape.TOOL]) is Shape.UNCLEAR


@pytest.mark.parametrize(
    ("name", "shape", "confirm", "fields", "expected"),
    [
        ("G1", Shape.TOOL, Confirm.SHAPE, {}, GateDecision.ASK),
        ("G2", Shape.TOOL, Confirm.SHAPE, {}, GateDecision.PASS),
        ("G3", Shape.TOOL, Confirm.ALWAYS, {}, GateDecision.ASK),
        ("G1", Shape.TOOL, Confirm.NEVER, {"is_terminal": False}, GateDecision.PASS),
        ("G1", Shape.TOOL, Confirm.ALWAYS, {}, GateDecision.ASK),
        ("G1", Shape.COLLEAGUE, Confirm.SHAPE, {}, GateDecision.ASK),
        ("G2", Shape.COLLEAGUE, Confirm.SHAPE, {}, GateDecision.ASK),
        ("G3", Shape.COLLEAGUE, Confirm.NEVER, {}, GateDecision.PASS),
        ("G1", Shape.COLLEAGUE, Confirm.SHAPE, {"is_agreed": True}, GateDecision.PASS),
        ("G1", Shape.COLLEAGUE, Confirm.SHAPE, {"is_terminal": False}, GateDecision.REFUSE),
        ("G2", Shape.COLLEAGUE, Confirm.SHAPE, {"is_terminal": False}, GateDecision.PASS),
        ("G1", Shape.COLLEAGUE, Confirm.SHAPE, {"skips_gates": True}, GateDecision.ASK),
        ("G2", Shape.COLLEAGUE, Confirm.SHAPE, {"skips_gates": True}, GateDecision.PASS),
        ("G1", Shape.UNCLEAR, Confirm.NEVER, {"is_agreed": True}, GateDecision.REFUSE),
    ],
)
def test_a_gate_passes_asks_or_refuses(
    name: str, shape: Shape, confirm: Confirm, fields: dict[str, bool], expected: GateDecision
) -> None:
    given = {"is_agreed": False, "is_terminal": True, **fields}
    assert decide_gate(Gate(name), shape, confirm, **given) is expected


# -- the scope


@pytest.mark.parametrize(
    ("task", "paths", "kind"),
    [
        ("change the schema of orders", [], UndoEffort.HARD),
        ("rename a column", ["shop/migrations/0004.py"], UndoEffort.HARD),
        ("extend the public API", [], UndoEffort.HARD),
        ("mend it", ["db/orders.sql"], UndoEffort.HARD),
        ("add a field to user.proto", [], UndoEffort.HARD),
        ("describe the errors in api/openapi.yaml", [], UndoEffort.HARD),
        ("mend shop/migrations/0004_total.py", ["shop/*"], UndoEffort.HARD),
        ("add an index to the database table", [], UndoEffort.HARD),
        ("rename a db column", [], UndoEffort.HARD),
        ("fix the db connection test", [], UndoEffort.SLOW),
        ("mend what database.py says", [], UndoEffort.SLOW),
        ("build what SPEC.md describes", [], UndoEffort.SLOW),
        ("migrate to TypeScript", [], UndoEffort.SLOW),
        ("upgrade the config library", [], UndoEffort.SLOW),
        ("refactor cart.py", [], UndoEffort.SLOW),
        ("fix the failing tests", [], UndoEffort.SLOW),
        ("fix a typo", [], UndoEffort.QUICK),
        ("change the config", [], UndoEffort.QUICK),
        ("mend it", ["README.md", "setup.cfg"], UndoEffort.QUICK),
        ("mend it", ["README.md", "cart.py"], UndoEffort.SLOW),
    ],
)
def test_reversibility_depends_on_words_and_paths(task: str, paths: list[str], kind: UndoEffort) -> None:
    found = assess_reversibility(task, paths)
    assert found.kind is kind
    assert found.reason
    assert bool(found.pre_check) is (kind is UndoEffort.HARD)


def test_document_apart_from_the_project_is_undone_quickly_whatever_it_is_about() -> None:
    found = assess_reversibility("Write the database schema", [".loop/run/openapi.yaml"], is_separate=True)
    assert (found.kind, found.reason) == (UndoEffort.QUICK, "a new document, apart from the project")


def test_a_hard_scope_names_open_pre_checks() -> None:
    manual = DraftRule("a.looks.right", "manual")
    assert find_open_pre_checks(UndoEffort.HARD, [TESTS, NEVER, manual]) == (
        "2 must_not rules, found 1",
        "something that runs instead of an assumption for a.looks.right",
    )
    assert find_open_pre_checks(UndoEffort.HARD, [TESTS, NEVER, NEVER]) == ()
    assert find_open_pre_checks(UndoEffort.SLOW, [manual]) == ()


@pytest.mark.parametrize(
    ("task", "expected", "gate"),
    [
        ("add a search", Workflow.BUILD, "look for it"),
        ("implement login and fix the tests", Workflow.BUILD, "look for it"),
        ("fix the failing tests", Workflow.DEBUG, "Find the cause"),
        ("the login is broken", Workflow.DEBUG, "70 % sure"),
        ("refactor the cart", Workflow.REFACTOR, "Delete before you redesign"),
        ("clean up src", Workflow.REFACTOR, "Delete before you redesign"),
        ("extract the price into a function", Workflow.BUILD, "look for it"),
        ("extract a helper function from cart.py", Workflow.REFACTOR, "Delete before you redesign"),
        ("migrate the shop to pydantic 2", Workflow.REFACTOR, "Delete before you redesign"),
        ("speed up the parser", Workflow.BUILD, "look for it"),
        ("upgrade the dependencies", Workflow.BUILD, "look for it"),
        ("make mypy happy", Workflow.DEBUG, "Find the cause"),
        ("the lint must be clean", Workflow.DEBUG, "Find the cause"),
        ("loop until coverage > 80%", Workflow.BUILD, "look for it"),
        ("OpenAPI 3.1 spec with error responses", Workflow.BUILD, "look for it"),
        ("Write a guide to refactoring legacy code", Workflow.BUILD, "look for it"),
        ("run the migration guide through the linter", Workflow.DEBUG, "Find the cause"),
    ],
)
def test_the_first_telling_word_decides_the_workflow(task: str, expected: Workflow, gate: str) -> None:
    assert classify_workflow(task) is expected
    assert gate in classify_workflow(task).instruction
