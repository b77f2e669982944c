"""Loop requests in plain words, from start to end: routing, phrases, extraction, inference, several runs.

Each row states one thing that users say, and what it means here.
"""

from __future__ import annotations

import json
import os
import re
import select
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from pytest_loop.cli.console_script import ROWS, build_pytest_arguments
from pytest_loop.inference.command_candidate import Goal
from pytest_loop.inference.project_files import Project
from pytest_loop.inference.proposal import Proposal, render_proposal
from pytest_loop.inference.synthesis import infer_criteria
from pytest_loop.inference.task_phrases import Route, parse_task
from pytest_loop.inference.task_refusal import Refusal
from pytest_loop.store.project_runs import ALIAS_PATTERN, MAX_ACTIVE_RUNS, Store, make_alias
from tests.acceptance.conftest import Pytest
from tests.acceptance.terminal import run_at_terminal

NODE = {
    "package.json": json.dumps(
        {
            "scripts": {"test": "jest", "lint": "eslint .", "build": "webpack"},
            "devDependencies": {"typescript": "5"},
        }
    ),
    "a.test.js": "",
    "src/index.ts": "",
    "lib/index.js": "",
    "src/auth/login.ts": "",
}
FIX_TESTS = "fix the failing tests"


def infer(task: str, files: dict[str, str]) -> Proposal | Refusal:
    return infer_criteria(parse_task(task), Project.from_texts(files, is_versioned=True), lambda name: name)


def propose(task: str, files: dict[str, str]) -> Proposal:
    result = infer(task, files)
    assert isinstance(result, Proposal), str(result)
    return result


# -- taxonomy and routing


@pytest.mark.parametrize(
    "text",
    [
        "agent-loop: fix lint",
        "al: fix lint",
        "ralph: fix lint",
        "ralph this: fix lint",
        "loop until lint is clean",
        "iterate until lint is clean",
        "keep trying until tests pass",
        "fix until green",
        "address issues",
        "handle all listed issues",
        "fix lint --iterations 200",
        # part of the task, and no wish for a background run
        "add a background job that sends mails",
        "make the daemon survive a crash",
    ],
)
def test_generic_requests_run_in_this_session(text: str) -> None:
    assert parse_task(text).route is Route.SESSION


@pytest.mark.parametrize(
    "text",
    [
        "run an external loop to fix lint",
        "fix lint in the background",
        "run it as a daemon: fix lint",
        "run it detached: fix lint",
        "start a crash-resilient loop to fix lint",
        "run this so that it survives the session: fix lint",
        "fix lint, with session survival",
        "do it so that I can resume later: fix lint",
        "fix lint in an unattended long run",
        "agent-loop-ext: fix lint",
        "ralph-external: fix lint",
        "use the ralph daemon and fix lint",
    ],
)
def test_only_explicit_words_ask_for_a_background_run(text: str) -> None:
    parsed = parse_task(text)
    assert parsed.route is Route.BACKGROUND
    assert "fix lint" in parsed.task


def test_goal_of_another_client_has_task_and_completion() -> None:
    parsed = parse_task('/goal "fix the auth tests; completion: npm test passes"')
    assert (parsed.task, parsed.completion, parsed.commands) == ("fix the auth tests", "npm test passes", ("npm test",))


# -- phrases


@pytest.mark.parametrize(
    ("text", "task", "completion"),
    [
        ("ralph this: fix all lint errors", "fix all lint errors", ""),
        ("ralph: migrate to TypeScript", "migrate to TypeScript", ""),
        ("al: fix all lint errors", "fix all lint errors", ""),
        ("keep trying until tests pass", FIX_TESTS, "tests pass"),
        ("loop until coverage >80%", "improve coverage", "coverage >80%"),
        ("iterate until no errors", "fix errors", "no errors"),
        ("run until passes", FIX_TESTS, "tests pass"),
        ("fix until green", FIX_TESTS, "tests pass"),
        ("keep fixing until lint is clean", "fix lint", "lint is clean"),
        ("ralph this: fix all TypeScript errors", "fix all TypeScript errors", ""),
        ("ralph: migrate src/ to ESM", "migrate src/ to ESM", ""),
        ("keep fixing until the tests are green", FIX_TESTS, "the tests are green"),
        ("loop until coverage is above 80%", "improve coverage", "coverage is above 80%"),
        ("ralph this: migrate all files in lib/ to ESM", "migrate all files in lib/ to ESM", ""),
    ],
)
def test_phrases_name_task_and_completion(text: str, task: str, completion: str) -> None:
    parsed = parse_task(text)
    assert (parsed.task, parsed.completion, parsed.route) == (task, completion, Route.SESSION)
    assert isinstance(infer(text, NODE), Proposal)


@pytest.mark.parametrize(
    "text", ["ralph it", "Run this in the background with crash recovery and let me attach later", "address issues"]
)
def test_words_without_a_task_are_answered_with_examples(text: str) -> None:
    refusal = infer(text, NODE)
    assert isinstance(refusal, Refusal)
    assert "missing: what to " in str(refusal)
    assert str(refusal).count("for example: ") == 3


# -- completion inference


@pytest.mark.parametrize(
    ("task", "goal", "command"),
    [
        # the usual commands of a Node project
        ("fix tests", Goal.TEST_PASS, "npm test"),
        ("fix lint", Goal.LINT_CLEAN, "npm run lint"),
        ("fix linting", Goal.LINT_CLEAN, "npm run lint"),
        ("fix types", Goal.TYPE_CLEAN, "npx tsc --noEmit"),
        ("fix TypeScript", Goal.TYPE_CLEAN, "npx tsc --noEmit"),
        ("fix build", Goal.BUILD_PASS, "npm run build"),
        ("migrate to ESM", Goal.REGRESSION_GATE, "npm run build && npm test && npm run lint"),
        ("refactor the auth module", Goal.REGRESSION_GATE, "npm test && npm run build"),
        ("implement a login form", Goal.IMPLEMENT_FEATURE, "npm test"),
        (
            "migrate lib/ to ESM; completion: node --experimental-vm-modules lib/index.js runs without errors",
            Goal.REGRESSION_GATE,
            "node --experimental-vm-modules lib/index.js",
        ),
    ],
)
def test_words_of_the_task_choose_the_command(task: str, goal: Goal, command: str) -> None:
    result = propose(task, NODE)
    assert (result.goal, result.verification_command) == (goal, command)


def test_added_tests_increase_the_coverage() -> None:
    package = {"package.json": '{"scripts": {"test": "jest", "coverage": "jest --coverage"}}', "a.test.js": ""}
    result = propose("add tests", package)
    assert (result.goal, result.verification_command) == (Goal.COVERAGE, "npm run coverage")
    assert result.criteria[0].needs_baseline


@pytest.mark.parametrize(
    ("layer", "files", "command"),
    [
        ("task verb", {"test_a.py": ""}, "pytest"),
        ("files for agents", {"CLAUDE.md": "## Development\n\n```\nmake check\n```\n"}, "make check"),
        ("files for agents", {"AIWG.md": "Always run `make check`."}, "make check"),
        ("package.json", {"package.json": '{"scripts": {"test": "jest"}}'}, "npm test"),
        ("Cargo.toml", {"Cargo.toml": "[package]\n"}, "cargo test"),
        ("pyproject.toml", {"pyproject.toml": "[tool.pytest.ini_options]\n", "test_a.py": ""}, "pytest"),
        ("go.mod", {"go.mod": "module a\n", "a_test.go": ""}, "go test ./..."),
        ("pom.xml", {"pom.xml": "<project/>", "src/test/java/ATest.java": ""}, "mvn -q test"),
        ("Makefile", {"Makefile": "test:\n\tctest\n"}, "make test"),
        ("CI", {".github/workflows/ci.yml": "jobs: {t: {steps: [{run: tox}]}}"}, "tox"),
        ("CI", {".gitea/workflows/ci.yml": "jobs: {t: {steps: [{run: tox}]}}"}, "tox"),
        ("CI", {".gitlab-ci.yml": "t: {script: [tox]}"}, "tox"),
        ("CI", {".circleci/config.yml": "jobs: {t: {steps: [{run: tox}]}}"}, "tox"),
        ("CI", {"Jenkinsfile": "stage('Test') { sh 'tox' }"}, "tox"),
        ("records", {".aiwg/testing/test-strategy.md": "The gate is `ctest`."}, "ctest"),
    ],
)
def test_every_layer_of_a_project_can_name_the_command(layer: str, files: dict[str, str], command: str) -> None:
    result = propose("fix the failing tests", files)
    assert result.verification_command == command, layer
    assert result.confidence.value == "medium"


def test_use_case_gives_its_acceptance_criteria() -> None:
    files = {".aiwg/requirements/UC-004-login.md": "## Acceptance criteria\n- a user can log in\n", "test_a.py": ""}
    result = propose("implement UC-004", files)
    assert result.criteria[0].description == "a user can log in"


def test_proposal_has_the_fields_of_the_contract() -> None:
    content = yaml.safe_load(render_proposal(propose("fix tests, stop after 7 cycles", NODE)))["proposed_completion"]
    assert content["criterion"] == "the tests pass (`npm test`)"
    assert content["verification_command"] == "npm test"
    assert content["rationale"]
    assert content["confidence"] == "medium"
    assert content["alternatives_considered"] == []
    assert content["max_iterations_suggestion"] == 7
    assert content["needs_human_confirmation"] is False


@pytest.mark.parametrize("task", ["make it better", "make the code better", "loop until it is good enough"])
def test_vague_tasks_are_refused_with_tasks_that_can_be_measured(task: str) -> None:
    refusal = infer(task, NODE)
    assert isinstance(refusal, Refusal)
    assert str(refusal).startswith(f"this cannot be measured: {task}\n")
    assert all(isinstance(infer(reworded, NODE), Proposal) for reworded in refusal.rewordings)


# -- clarification


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Path]:
    """A project in which only lint is verified; runs that remain at the end are paused."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "Makefile").write_text("lint:\n\tgrep -q tidy shop.txt\n")
    (folder / "shop.txt").write_text("\n")
    (folder / "good.txt").write_text("tidy\n")
    yield folder
    for files in Store(folder).list_busy_runs():
        handle = os.pidfd_open(int(files.pid))
        files.requests.ask_to_pause()
        select.select([handle], [], [], 60)
        os.close(handle)


def test_ambiguous_request_ends_in_one_question_at_a_terminal(project: Path) -> None:
    arguments = ("--loop-task", "ralph it, stop after 3 cycles", "--loop-agent", "command:cp good.txt shop.txt", "-q")
    answers = {
        "What is to be done until it succeeds? ": "fix lint and type errors",
        "Judge by `make lint`? [Y/n/other] ": "",
        "start? [y/N] ": "y",
        "go on? [Y/n] ": "y",
        "is it done? [Y/n] ": "y",
    }
    code, output = run_at_terminal(project, arguments, dict(answers))
    assert code == 0, output
    assert "doubt       nothing in the project verifies this: types\r\n" in output
    assert "proposed_completion" not in output
    state = json.loads((project / ".loop/fix-lint-and-type-errors/run.json").read_text())
    assert (state["task"]["prompt"], state["max_iterations"]) == ("fix lint and type errors", 3)


def test_ambiguous_request_ends_in_three_lines_elsewhere(project: Path, run: Pytest) -> None:
    done = run("--loop-task", "fix lint and type errors", "--loop-yes")
    assert done.returncode == 4
    doubt = "nothing in the project verifies this: types"
    lines = done.stderr.replace(" --loop-fence=off", "").replace("--loop-fence=off ", "").strip().splitlines()
    assert lines == [
        f"ERROR: it is not certain that `make lint` judges this: {doubt} (fix lint and type errors)",
        "  to judge by it: pytest --loop-task 'fix lint and type errors until `make lint` passes' --loop-yes",
        "  to judge by another command, end the task with: until `COMMAND` passes",
    ]
    assert not (project / ".loop").exists()


# -- several loops


def test_at_most_four_loops_and_six_paths_between_them() -> None:
    assert MAX_ACTIVE_RUNS == 4
    assert MAX_ACTIVE_RUNS * (MAX_ACTIVE_RUNS - 1) // 2 == 6


@pytest.mark.parametrize(
    "name", ["ralph-fix-tests-a1b2c3d4", "ralph-my-fixes-12345678", "ralph-add-docs-b2c3d4e5", make_alias("fix tests")]
)
def test_identifiers_of_other_loops_name_runs(name: str) -> None:
    assert ALIAS_PATTERN.fullmatch(name)


def test_identifier_may_stand_in_the_text() -> None:
    parsed = parse_task('/ralph "fix tests" --completion "npm test passes" --loop-id ralph-my-fixes-12345678')
    assert (parsed.task, parsed.commands, parsed.alias) == ("fix tests", ("npm test",), "ralph-my-fixes-12345678")


@pytest.mark.parametrize(
    ("text", "line", "flags"),
    [
        ("aiwg ralph-status --all", "pytest-loop list", ["--loop-list"]),
        (
            "aiwg ralph-status ralph-fix-tests-a1b2c3d4",
            "pytest-loop status --run ralph-fix-tests-a1b2c3d4",
            ["--loop-status", "--loop-alias=ralph-fix-tests-a1b2c3d4"],
        ),
        (
            "aiwg ralph-abort ralph-fix-tests-a1b2c3d4",
            "pytest-loop stop --run ralph-fix-tests-a1b2c3d4",
            ["--loop-stop", "--loop-alias=ralph-fix-tests-a1b2c3d4"],
        ),
        (
            "aiwg ralph-resume ralph-fix-tests-a1b2c3d4",
            "pytest-loop resume --run ralph-fix-tests-a1b2c3d4",
            ["--loop-resume", "--loop-alias=ralph-fix-tests-a1b2c3d4"],
        ),
        ("pause the loop", "pytest-loop pause", ["--loop-pause"]),
        ("stop the loop", "pytest-loop stop", ["--loop-stop"]),
        ("please stop the loop now", "pytest-loop stop", ["--loop-stop"]),
        ("attach to the loop", "pytest-loop attach", ["--loop-attach"]),
    ],
)
def test_commands_in_words_name_the_command_to_type(text: str, line: str, flags: list[str]) -> None:
    refusal = infer(text, NODE)
    assert str(refusal) == f"`{text}` is a command, not a task: type {line}"
    words = line.split()[1:]
    assert words[0] in [row.name for row in ROWS]
    assert build_pytest_arguments(words)[-len(flags) :] == flags


@pytest.mark.parametrize(
    ("text", "task", "alias"),
    [
        (
            "run an external ralph loop to fix TypeScript errors in src/",
            "fix TypeScript errors in src/",
            "fix-typescript-errors-in-src",
        ),
        (
            "also run an external ralph loop to add missing tests in lib/",
            "add missing tests in lib/",
            "add-missing-tests-in-lib",
        ),
        (
            "run an external ralph loop to refactor the entire auth module",
            "refactor the entire auth module",
            "refactor-the-entire-auth-module",
        ),
    ],
)
def test_background_loops_are_named_after_their_tasks(text: str, task: str, alias: str) -> None:
    parsed = parse_task(text)
    assert (parsed.task, parsed.route, make_alias(parsed.request)) == (task, Route.BACKGROUND, alias)
    assert isinstance(infer(text, NODE), Proposal)


def test_large_refactoring_suggests_more_iterations() -> None:
    assert propose("refactor the entire auth module", NODE).max_iterations == 20
    assert propose("refactor the auth module", NODE).max_iterations == 10


def test_loop_that_is_given_up_for_another_task_names_both_commands() -> None:
    assert str(infer("actually, abort that and just fix the login bug", NODE)) == (
        "`actually, abort that and just fix the login bug` is a command, not a task: "
        "type pytest-loop stop, then pytest --loop-task 'fix the login bug'"
    )


@pytest.mark.thorough
@pytest.mark.measured
def test_background_loop_is_registered_and_stopped_by_its_identifier(project: Path, run: Pytest) -> None:
    name = "ralph-fix-lint-a1b2c3d4"
    text = "fix lint, stop after 2 cycles, in at most 20 minutes. Run this in the background with crash recovery"
    done = run("--loop-task", text, "--loop-id", name, "--loop-agent", "command:sleep 60", "--loop-yes", "-q")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{name} works in the background: process " in done.stdout
    (entry,) = json.loads(run("--loop-list", "--loop-json", "-").stdout)
    expected: dict[str, Any] = {"task_alias": name, "status": "running", "iteration": 1, "task": "fix lint."}
    assert {key: entry[key] for key in expected} == expected
    assert entry["pid"] == int(re.findall(r"process (\d+)", done.stdout)[0])
    assert re.match(r"\d{4}-\d\d-\d\dT", entry["started_at"])
    state = json.loads((project / f".loop/{name}/run.json").read_text())
    assert (state["max_iterations"], state["max_completed_phase_seconds"]) == (2, 1200)
    assert f"asked {name} to stop" in run("--loop-stop", f"--loop-id={name}").stdout


@pytest.mark.thorough
def test_every_loop_has_a_folder_with_state_history_and_iterations(project: Path, run: Pytest) -> None:
    arguments = (
        "--loop-task",
        "fix lint until `make lint` passes",
        "--loop-agent",
        "command:cp good.txt shop.txt",
        "--loop-yes",
    )
    done = run(*arguments, "--loop-alias", "ralph-fix-lint-a1b2c3d4", "-q")
    assert done.returncode == 0, done.stdout + done.stderr
    folder = project / ".loop/ralph-fix-lint-a1b2c3d4"
    assert {"run.json", "history.jsonl", "artifact.md"} <= {path.name for path in folder.iterdir()}
    assert run("--loop-restore", "1", "--loop-alias", folder.name).returncode == 0
    assert (project / "shop.txt").read_text() == "\n"
