"""Plain words are parsed into a task and its conditions."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pytest_loop.inference.task_phrases import MAX_ITERATIONS, ParsedTask, Route, find_commands, parse_task

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
    if before == ParsedTask(plain, plain, skips_gates=before.skips_gates):
        assert parse_task(f"ralph: {plain}").task == plain
