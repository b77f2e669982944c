"""The words of a task decide its class of criterion."""

from __future__ import annotations

import pytest

from pytest_loop.inference.command_candidate import Goal
from pytest_loop.inference.coverage_threshold import NumericGoal, parse_coverage_threshold
from pytest_loop.inference.task_intent import (
    ALL_CHECKS,
    WORKING_STATE,
    classify_task,
    find_concrete_objects,
    find_content_words,
    is_measured,
)
from pytest_loop.inference.tool_purposes import Purpose

TEST, COVERAGE, TYPES, LINT, BUILD, DOCS = Purpose


@pytest.mark.parametrize(
    ("task", "goal", "purposes"),
    [
        ("fix the failing tests", Goal.TEST_PASS, (TEST,)),
        ("make tests pass", Goal.TEST_PASS, (TEST,)),
        ("repair the test suite", Goal.TEST_PASS, (TEST,)),
        ("make all tests in tests/test_shop.py pass", Goal.TEST_PASS, (TEST,)),
        ("add tests for the parser", Goal.COVERAGE, (COVERAGE,)),
        ("increase coverage", Goal.COVERAGE, (COVERAGE,)),
        ("fix types", Goal.TYPE_CLEAN, (TYPES,)),
        ("get rid of all type errors", Goal.TYPE_CLEAN, (TYPES,)),
        ("migrate src to TypeScript", Goal.TYPE_CLEAN, (TYPES,)),
        ("fix lint", Goal.LINT_CLEAN, (LINT,)),
        ("clean up warnings", Goal.LINT_CLEAN, (LINT,)),
        ("fix the code style", Goal.LINT_CLEAN, (LINT,)),
        ("make it compile", Goal.BUILD_PASS, (BUILD,)),
        ("fix the build", Goal.BUILD_PASS, (BUILD,)),
        ("build", Goal.BUILD_PASS, (BUILD,)),
        ("refactor cart.py", Goal.REGRESSION_GATE, (TEST, BUILD)),
        ("extract a class from cart.py", Goal.REGRESSION_GATE, (TEST, BUILD)),
        ("rename total to sum", Goal.REGRESSION_GATE, (TEST, BUILD)),
        ("refactor cart.py; tests stay green", Goal.REGRESSION_GATE, (TEST, BUILD)),
        ("refactor cart.py, lint stays clean", Goal.REGRESSION_GATE, (TEST, BUILD, LINT)),
        ("migrate to Python 3.13", Goal.REGRESSION_GATE, WORKING_STATE),
        ("upgrade django", Goal.REGRESSION_GATE, WORKING_STATE),
        ("implement user login", Goal.IMPLEMENT_FEATURE, (TEST,)),
        ("add dark mode", Goal.IMPLEMENT_FEATURE, (TEST,)),
        ("build a login page", Goal.IMPLEMENT_FEATURE, (TEST,)),
        ("document the public functions", Goal.DOCUMENTED, (DOCS,)),
        ("add docstrings", Goal.DOCUMENTED, (DOCS,)),
        ("write the docs of the API", Goal.DOCUMENTED, (DOCS,)),
        ("fix the bug in the cart", Goal.BUG_FIXED, (TEST,)),
        ("resolve issue #12", Goal.BUG_FIXED, (TEST,)),
        ("fix TypeError in cart.py", Goal.BUG_FIXED, (TEST,)),
        ("fix lint and type errors", Goal.LINT_CLEAN, (LINT, TYPES)),
        ("fix TypeScript", Goal.TYPE_CLEAN, (TYPES,)),
        ("make mypy happy", Goal.TYPE_CLEAN, (TYPES,)),
        ("format with black", Goal.LINT_CLEAN, (LINT,)),
        ("make tox pass", Goal.TEST_PASS, (TEST,)),
        ("make everything pass", Goal.REGRESSION_GATE, ALL_CHECKS),
        ("fix all errors", Goal.REGRESSION_GATE, ALL_CHECKS),
        ("get CI passing", Goal.REGRESSION_GATE, ()),
        ("make the pipeline green", Goal.REGRESSION_GATE, ()),
        ("fix the build on GitHub Actions", Goal.REGRESSION_GATE, ()),
        ("fix the pipeline class", Goal.BUG_FIXED, (TEST,)),
        ("fix pipeline errors in shop.py", Goal.BUG_FIXED, (TEST,)),
        ("make the logo black", Goal.REGRESSION_GATE, WORKING_STATE),
        ("speed up the parser", Goal.REGRESSION_GATE, WORKING_STATE),
        ("change fixture.py", Goal.REGRESSION_GATE, WORKING_STATE),
    ],
)
def test_words_decide_the_class_of_a_task(task: str, goal: Goal, purposes: tuple[Purpose, ...]) -> None:
    intent = classify_task(task)
    assert (intent.goal, intent.purposes) == (goal, purposes)
    assert intent.is_ambiguous is (not intent.matched_words)


def test_the_completion_decides_before_the_task() -> None:
    assert classify_task("fix the failing tests", "lint is clean").goal is Goal.LINT_CLEAN
    assert classify_task("fix lint", "the logo is blue").goal is Goal.LINT_CLEAN


@pytest.mark.parametrize(
    ("task", "commands"),
    [
        ("fix all ruff findings", ["ruff check ."]),
        ("format the code with ruff", ["ruff format --check ."]),
        ("make black, isort and flake8 happy", ["black --check .", "isort --check-only .", "flake8"]),
        ("fix eslint in src", ["npx eslint ."]),
        ("make eslint stop complaining", ["npx eslint ."]),
        ("keep going until go vet is silent", ["go vet ./..."]),
        ("keep trying until mypy and mypy pass", ["mypy ."]),
        ("replace flake8 by ruff", []),
        ("fix the pytest plugin", []),
        ("upgrade eslint to 9", []),
    ],
)
def test_tools_that_are_named_as_judges_are_found(task: str, commands: list[str]) -> None:
    assert [tool.command for tool in classify_task(task).tools] == commands


@pytest.mark.parametrize("completion", ["no errors", "zero errors", "there are no more errors left", "0 errors"])
def test_no_errors_is_about_every_check(completion: str) -> None:
    intent = classify_task("fix errors", completion)
    assert (intent.goal, intent.purposes) == (Goal.REGRESSION_GATE, (*WORKING_STATE, TYPES))
    assert is_measured(completion)
    assert not is_measured(f"{completion} in the log")


def test_an_unknown_verb_is_ambiguous() -> None:
    assert classify_task("speed up the parser").is_ambiguous
    assert not classify_task("refactor the parser").is_ambiguous


def test_a_large_refactoring_gets_more_iterations() -> None:
    assert classify_task("refactor the entire codebase").iteration_cap == 20
    assert classify_task("fix the entire codebase").iteration_cap == 10
    assert classify_task("refactor cart.py").iteration_cap == 10


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("coverage >80%", NumericGoal(">", 80)),
        ("coverage is above 80 %", NumericGoal(">", 80)),
        ("coverage of cart.py is at least 92.5 percent", NumericGoal(">=", 92.5)),
        ("coverage reaches 85%", NumericGoal(">=", 85)),
        ("90% test coverage", NumericGoal(">=", 90)),
        ("coverage above 80", NumericGoal(">", 80)),
        ("coverage is 80, then stop", NumericGoal(">=", 80)),
        ("coverage > 0.85", NumericGoal(">", 85)),
        ("raise coverage to 90.", NumericGoal(">=", 90)),
        ("improve coverage of 3 modules", None),
        ("bring coverage of src/ to ninety percent", NumericGoal(">=", 90)),
        ("coverage above eighty-five", NumericGoal(">", 85)),
        ("improve coverage by 5", None),
        ("improve coverage by 5%", None),
        ("raise test coverage from 40% to 60%", NumericGoal(">=", 60)),
        ("coverage 800", None),
        ("coverage 800%", None),
        ("increase coverage", None),
    ],
)
def test_a_coverage_threshold_is_read_from_words(text: str, expected: NumericGoal | None) -> None:
    assert parse_coverage_threshold(text) == expected


@pytest.mark.parametrize(
    ("text", "objects"),
    [
        ("improve src/shop/cart.py", ["src/shop/cart.py"]),
        ("improve `total` of ShopCart and make_total()", ["total", "ShopCart", "make_total"]),
        ("p95 latency below 100 ms", ["below 100 ms"]),
        ("bundle < 200kB", ["< 200kB"]),
        ("see #12 and UC-004", ["#12", "UC-004"]),
        ("make eslint happy", ["eslint"]),
        ("improve the cart", ["cart"]),
        ("improve shop", ["shop"]),
        ("make the code better", []),
        ("improve main", []),
    ],
)
def test_concrete_objects_are_found(text: str, objects: list[str]) -> None:
    assert list(find_concrete_objects(text, ["shop/cart.py", "shop/main.py"])) == objects


def test_generic_words_are_no_content() -> None:
    assert find_content_words("Please make the code better") == []
    assert find_content_words("Fix the login page") == ["login", "page"]
