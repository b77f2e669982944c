"""Plain words are parsed into a task and its conditions."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pytest_loop.inference.quoted_commands import find_commands
from pytest_loop.inference.task_limits import MAX_ITERATIONS
from pytest_loop.inference.task_phrases import ParsedTask, Route, add_task, parse_task

FIX_TESTS = "fix the failing tests"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # the phrases of the contract
        ("ralph this: fix all lint errors", {"task": "fix all lint errors"}),
        ("ralph: migrate src/ to ESM", {"task": "migrate src/ to ESM"}),
        ("al: fix all lint errors", {"task": "fix all lint errors"}),
        ("ralph it", {"task": "", "needs_context": True}),
        ("ralph it: fix the cart", {"task": "fix the cart"}),
        ("Ralph this!", {"task": "", "needs_context": True}),
        ("keep trying until tests pass", {"task": FIX_TESTS, "completion": "tests pass"}),
        ("loop until coverage >80%", {"task": "improve coverage", "completion": "coverage >80%"}),
        ("iterate until no errors", {"task": "fix errors", "completion": "no errors"}),
        ("keep fixing until lint is clean", {"task": "fix lint", "completion": "lint is clean"}),
        ("run until passes", {"task": FIX_TESTS, "completion": "tests pass"}),
        ("fix until green", {"task": FIX_TESTS, "completion": "tests pass"}),
        # the same with something around it
        ("Fix until green!", {"task": FIX_TESTS, "completion": "tests pass"}),
        ("fix until everything is green in packages/api", {"task": f"{FIX_TESTS} in packages/api", "completion": "tests pass"}),
        ("fix the parser until green", {"task": "fix the parser", "completion": "tests pass"}),
        ("run the linter until it passes", {"task": "fix the linter", "completion": "the linter pass"}),
        ("run ruff until it's clean", {"task": "fix ruff", "completion": "ruff pass"}),
        ("run ./check.sh until it passes", {"task": "fix ./check.sh", "commands": ("./check.sh",)}),
        ("run the app until it passes", {"task": "fix the app", "completion": "tests pass"}),
        ("keep fixing until the types are clean", {"task": "fix type errors", "completion": "the types are clean"}),
        ("iterate until it compiles", {"task": "fix the build", "completion": "it compiles"}),
        ("loop until the logo is blue", {"task": "make this true: the logo is blue", "completion": "the logo is blue"}),
        ("refactor cart.py, then loop until tests pass", {"task": "refactor cart.py", "completion": "tests pass"}),
        (
            "Mend cart.py. Keep trying until tests pass, then update the changelog.",
            {"task": "Mend cart.py.; then update the changelog.", "completion": "tests pass"},
        ),
        ("ralph: keep fixing until lint is clean", {"task": "fix lint", "completion": "lint is clean"}),
        ('/goal "fix auth; completion: pytest tests/auth passes"', {"task": "fix auth", "completion": "pytest tests/auth passes"}),
        ('ralph: fix auth --completion "npm test passes"', {"task": "fix auth", "completion": "npm test passes"}),
        ("fix auth --completion 'a b'", {"task": "fix auth", "completion": "a b"}),
        ("--completion=lint", {"task": "fix lint", "completion": "lint"}),
        ("Run this in the background with crash recovery and let me attach later", {"task": "", "needs_context": True}),
        ('/ralph "fix tests" --completion "npm test passes"', {"task": "fix tests", "completion": "npm test passes"}),
        # what only looks like a phrase
        ("fix the event loop until it stops", {"task": "fix the event loop until it stops"}),
        ("a worker that waits until the lock is free", {"task": "a worker that waits until the lock is free"}),
        ("rename al to all", {"task": "rename al to all"}),
        ("", {"task": "", "needs_context": True}),
    ],
)  # fmt: skip
def test_phrases_give_task_and_completion(text: str, expected: dict[str, Any]) -> None:
    parsed = parse_task(text)
    assert parsed.text == text
    assert {name: getattr(parsed, name) for name in expected} == expected
    assert parsed.needs_context is expected.get("needs_context", False)


@pytest.mark.parametrize(
    ("text", "task", "limit"),
    [
        ("fix until green, stop after 3 cycles", FIX_TESTS, 3),
        ("Fix lint. Stop after five iterations.", "Fix lint.", 5),
        ("fix lint and stop after 12 rounds", "fix lint", 12),
        ("fix lint (at most 4 iterations)", "fix lint", 4),
        ("al: fix lint --iterations 200", "fix lint", 200),
        ("al: fix lint --iterations 201", "fix lint", 200),
        ("fix lint, stop after 100000 cycles", "fix lint", 200),
        ("fix lint --max-iterations=7 in src", "fix lint in src", 7),
        ("stop after 3 cycles: fix lint", "fix lint", 3),
        ("stop after 3 cycles", "", 3),
        ("fix lint, give up after 5 tries", "fix lint", 5),
        ("stop after 3 rounds or 10 minutes: fix lint", "fix lint", 3),
        ("fix lint, stop after 0 cycles", "fix lint, stop after 0 cycles", None),
        ("make the worker stop after 3 cycles", "make the worker stop after 3 cycles", None),
        ("lock the account after 3 attempts", "lock the account after 3 attempts", None),
        ("set the timeout to 30 seconds", "set the timeout to 30 seconds", None),
    ],
)
def test_a_phrase_limits_the_iterations(text: str, task: str, limit: int | None) -> None:
    parsed = parse_task(text)
    assert (parsed.task, parsed.iteration_limit) == (task, limit)


@pytest.mark.parametrize(
    ("text", "task", "seconds"),
    [
        ("fix until green in at most 20 minutes", FIX_TESTS, 1200),
        ("fix the failing tests within two hours", FIX_TESTS, 7200),
        ("in at most an hour: fix lint", "fix lint", 3600),
        ("fix lint, stop after 90 seconds", "fix lint", 90),
        ("fix lint, 5 min max", "fix lint", 300),
        ("fix lint for at most half an hour", "fix lint", 1800),
        ("fix lint, stop after 1.5 hours", "fix lint", 5400),
        ("fix lint, stop after 3 rounds or 10 minutes", "fix lint", 600),
        ("keep going until the build works but stop after an hour", "fix the build", 3600),
        ("fix lint --timeout 30", "fix lint", 1800),
        ("fix lint, stop after 0 minutes", "fix lint, stop after 0 minutes", None),
        ("make the export finish in at most 20 minutes", "make the export finish in at most 20 minutes", None),
        ("make the tests pass within 2 minutes", "make the tests pass within 2 minutes", None),
        ("loop until the tests are done within 2 minutes", FIX_TESTS, None),
        ("let the session expire within 20 minutes", "let the session expire within 20 minutes", None),
        ("the lint job that ends within 5 minutes", "the lint job that ends within 5 minutes", None),
    ],
)
def test_a_phrase_limits_the_time_of_the_run_and_not_of_the_software(text: str, task: str, seconds: int | None) -> None:
    parsed = parse_task(text)
    assert (parsed.task, parsed.time_limit) == (task, seconds)


@pytest.mark.parametrize(
    ("text", "request_", "alias"),
    [
        ("ralph this: fix all lint errors", "fix all lint errors", ""),
        ("al: fix lint, stop after 3 cycles", "fix lint", ""),
        ("fix lint --loop-id ralph-my-fixes-12345678", "fix lint", "ralph-my-fixes-12345678"),
        ("fix until green in the background, in at most 5 minutes", "fix until green", ""),
        ("fix lint, stop after 2 cycles. Run this in the background, with crash recovery.", "fix lint.", ""),
        ("keep fixing until lint is clean", "keep fixing until lint is clean", ""),
        ("also run an external ralph loop to add missing tests in lib/", "add missing tests in lib/", ""),
        ("ralph it", "ralph it", ""),
    ],
)
def test_the_request_has_no_words_for_the_loop(text: str, request_: str, alias: str) -> None:
    parsed = parse_task(text)
    assert (parsed.request, parsed.alias) == (request_, alias)


def test_a_task_that_is_said_afterwards_keeps_the_conditions_said_before() -> None:
    first = parse_task("Run this in the background, in at most 20 minutes, stop after 3 cycles --loop-id shop-1")
    second = add_task(first, "fix lint, stop after 2 cycles")
    assert (second.task, second.route) == ("fix lint", Route.BACKGROUND)
    assert (second.iteration_limit, second.time_limit, second.alias) == (2, 1200, "shop-1")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("pause the loop", "pytest-loop pause"),
        ("Stop the loop!", "pytest-loop stop"),
        ("please stop this run", "pytest-loop stop"),
        ("abort", "pytest-loop stop"),
        ("abort loop ralph-fix-tests-a1b2c3d4", "pytest-loop stop --run ralph-fix-tests-a1b2c3d4"),
        ("aiwg ralph-abort ralph-fix-tests-a1b2c3d4", "pytest-loop stop --run ralph-fix-tests-a1b2c3d4"),
        ("aiwg ralph-resume ralph-fix-tests-a1b2c3d4", "pytest-loop resume --run ralph-fix-tests-a1b2c3d4"),
        ("aiwg ralph-status ralph-fix-tests-a1b2c3d4", "pytest-loop status --run ralph-fix-tests-a1b2c3d4"),
        ("aiwg ralph-status --all", "pytest-loop list"),
        ("list the active loops", "pytest-loop list"),
        ("resume the agent-loop", "pytest-loop resume"),
        ("attach to it", "pytest-loop attach"),
        ("loop status", "pytest-loop status"),
        ("stop the loop in worker.py", None),
        ("pause the loop when the window is hidden", None),
        ("stop reading files twice", None),
        ("continue the refactoring", None),
        ("show the status in the header", None),
        ("cancel orders of customers", None),
    ],
)
def test_a_command_around_runs_is_no_task(text: str, line: str | None) -> None:
    command = parse_task(text).loop_command
    assert (command.line if command else None) == line


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        ("fix it until `ruff check .` passes", ["ruff check ."]),
        ("make `pytest -q tests/unit` and `mypy` happy", ["pytest -q tests/unit", "mypy"]),
        ("`pytest` and again `pytest`", ["pytest"]),
        ("keep going until `frobnicate` exits 0", ["frobnicate"]),
        ("run `our-own-thing --hard`", ["our-own-thing --hard"]),
        ("the gate is `./check.sh`", ["./check.sh"]),
        ("rename `build` to `make_all` in `src/app.py`", []),
        ("never run `npm test`; mend cart.py", []),
        ("use `npm ci`, not `npm install`", []),
        ("an unclosed `backtick", []),
        ("empty ` ` ticks", []),
    ],
)
def test_commands_in_backticks_are_kept_verbatim(text: str, commands: list[str]) -> None:
    assert list(find_commands(text)) == commands
    assert list(parse_task(text).commands) == commands


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        ("tidy shop.py; completion: make check", ["make check"]),
        ("tidy shop.py. Completion: make frobnicate.", ["make frobnicate"]),
        ("completion: ruff check .", ["ruff check ."]),
        ('tidy shop.py --completion "npm test"', ["npm test"]),
        ("tidy shop.py --completion=./verify.sh", ["./verify.sh"]),
        ('/goal "fix auth; completion: pytest tests/auth passes"', ["pytest tests/auth"]),
        ("tidy it; completion: mypy and ruff check . both pass", ["mypy", "ruff check ."]),
        ("tidy it; completion: python tools/verify.py --all exits with 0", ["python tools/verify.py --all"]),
        ("tidy it; completion: `make check`, stop after 3 cycles", ["make check"]),
        ('tidy it; completion: pytest -k "a or b" passes', ['pytest -k "a or b"']),
        ("keep going until npm run build works", ["npm run build"]),
        ("keep going until make all and npm test are both happy", ["make all", "npm test"]),
        ("keep going until npm test is a pleasure to watch", []),
        ("loop until python verify.py stops failing", ["python verify.py"]),
        ("tidy it; completion: make it fast", []),
        ("tidy it; completion: mypy and the reviewers pass", []),
        ("tidy it; completion: coverage report > 80%", []),
        ("tidy it; completion: the logo is blue", []),
    ],
)
def test_a_completion_that_is_a_command_is_kept_verbatim(text: str, commands: list[str]) -> None:
    parsed = parse_task(text)
    assert list(parsed.commands) == commands
    assert parsed.completion


@pytest.mark.parametrize(
    ("text", "route"),
    [
        ("fix until green", Route.SESSION),
        ("ralph: fix lint", Route.SESSION),
        ("run this in the background with crash recovery and let me attach later", Route.BACKGROUND),
        ("run it detached: fix lint", Route.BACKGROUND),
        ("start a crash-resilient loop to fix lint", Route.BACKGROUND),
        ("ralph-external: fix lint", Route.BACKGROUND),
        ("use agent-loop-ext and fix lint", Route.BACKGROUND),
        ("do it so that I can resume later", Route.BACKGROUND),
        ("fix lint in an unattended long run", Route.BACKGROUND),
        ("fix until green in the background", Route.BACKGROUND),
        ("fix all type errors in the background with crash recovery", Route.BACKGROUND),
        ("run a loop in the background to fix lint", Route.BACKGROUND),
        ("make the exporter run in the background", Route.SESSION),
        ("write tests for the job that runs in the background", Route.SESSION),
        ("add a background job for mails", Route.SESSION),
        ("fix crash recovery of the external store", Route.SESSION),
        ("the daemon thread leaks", Route.SESSION),
    ],
)
def test_only_explicit_words_move_a_run_to_the_background(text: str, route: Route) -> None:
    assert parse_task(text).route is route


def test_a_background_loop_keeps_its_task() -> None:
    parsed = parse_task("run an external ralph loop to fix TypeScript errors in src/")
    assert parsed.task == "fix TypeScript errors in src/"


@pytest.mark.parametrize(
    ("text", "is_skipped"),
    [
        ("fix lint, proceed without confirmation", True),
        ("fix lint and proceed without confirmation", True),
        ("fix lint without asking", True),
        ("fix lint without asking me again.", True),
        ("Without further questions: fix lint", True),
        ("Without confirming, fix lint", True),
        ("make lint pass; go ahead without asking", True),
        ("fix lint", False),
        ("Make the client continue without asking for a password", False),
        ("Make the client continue without asking", False),
        ("Make the client reconnect and continue without asking", False),
        ("add a command that deletes users without confirmation", False),
        ("fix logins without confirmation mails", False),
    ],
)
def test_gates_are_skipped_if_the_task_says_so(text: str, is_skipped: bool) -> None:
    assert parse_task(text).skips_gates is is_skipped


_WORDS = st.sampled_from(
    ["ralph:", "ralph it", "loop until", "keep fixing until", "fix", "until green", "stop after 3 cycles", "`pytest -q`", ";",
     "completion:", "--completion", "--iterations 4", ",", ".", "and", "\n", "run", "passes", "src/a.py", "/goal", '"', "`"]
)  # fmt: skip


@settings(deadline=None)
@given(st.text() | st.lists(_WORDS | st.text(max_size=8)).map(" ".join))
@example("loop until ")
@example("--completion=")
@example("stop after 3 cycles stop after 4 cycles")
def test_any_text_can_be_parsed_without_losing_the_task(text: str) -> None:
    parsed = parse_task(text)
    assert isinstance(parsed, ParsedTask)
    assert parsed.text == text
    assert parsed.task or parsed.needs_context
    assert parsed.iteration_limit is None or 0 < parsed.iteration_limit <= MAX_ITERATIONS
    assert all(command in text for command in parsed.commands)


@settings(deadline=None)
@given(st.text(alphabet=st.characters(categories=("L", "N", "Zs")), min_size=1).filter(str.strip))
def test_a_text_without_phrases_is_the_task_and_a_prefix_changes_nothing(text: str) -> None:
    plain = " ".join(text.split())
    before = parse_task(plain)
    if before == ParsedTask(plain, plain, plain, skips_gates=before.skips_gates):
        assert parse_task(f"ralph: {plain}").task == plain
