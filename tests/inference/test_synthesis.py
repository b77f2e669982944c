"""Criteria are inferred beyond the corpus: vectors, scope, and the project's tests."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_loop.inference.candidate_selection import choose_candidates
from pytest_loop.inference.command_candidate import CommandCandidate, Confidence, Goal, Layer, SourceLine, find_weakest
from pytest_loop.inference.coverage_criteria import find_coverage_pattern, read_coverage_threshold
from pytest_loop.inference.coverage_threshold import NumericGoal
from pytest_loop.inference.inferred_criteria import describe_installation, find_installed_tool, parse_pytest_selection
from pytest_loop.inference.project_files import Project, read_project
from pytest_loop.inference.proposal import (
    Criterion,
    Proposal,
    build_rules,
    render_proposal,
    render_rule_file,
)
from pytest_loop.inference.synthesis import infer_criteria
from pytest_loop.inference.task_phrases import parse_task
from pytest_loop.inference.task_refusal import Refusal
from pytest_loop.inference.tool_purposes import Purpose

WORDS = [
    "fix",
    "tests",
    "lint",
    "better",
    "until",
    "loop until",
    "good enough",
    "`ruff check .`",
    "coverage",
    "80%",
    "refactor",
    "a.py",
    "implement",
    "docs",
]
CI = ".github/workflows/ci.yml"


def propose(task: str, files: dict[str, str]) -> Proposal:
    result = infer_criteria(parse_task(task), Project.from_texts(files), lambda name: name)
    assert isinstance(result, Proposal), str(result)
    return result


# -- the vectors of the contract


def test_agreement_of_two_layers_gives_high_confidence() -> None:
    """Vector 17."""
    files = {
        "pyproject.toml": "[tool.pytest.ini_options]",
        CI: "jobs: {t: {steps: [{run: pytest -q}]}}",
        "test_a.py": "",
    }
    result = propose("fix the failing tests", files)
    assert (result.confidence, result.goal) == (Confidence.HIGH, Goal.TEST_PASS)


def test_a_task_without_an_object_is_refused() -> None:
    """Vector 17."""
    assert isinstance(infer_criteria(parse_task("make the code better"), Project.from_texts({"a.py": ""})), Refusal)


def test_a_command_in_the_task_is_used_without_inference() -> None:
    """Vector 17."""
    result = propose("make `ruff check .` pass", {"package.json": '{"scripts": {"lint": "eslint ."}}'})
    assert result.verification_command == "ruff check ."
    assert result.rationale == ("the task names `ruff check .`: nothing had to be inferred",)
    assert result.alternatives == ()


def test_agent_files_are_trusted_before_ci_and_the_difference_is_named() -> None:
    """Vector 17."""
    files = {"CLAUDE.md": "Always run `make test`.", CI: "jobs: {t: {steps: [{run: tox}]}}"}
    result = propose("fix the failing tests", files)
    assert result.verification_command == "make test"
    assert f"{CI}:1 differs: `tox` (CI); CLAUDE.md is believed" in result.rationale
    assert [entry.rejected_because for entry in result.alternatives] == ["CLAUDE.md is believed before CI"]


def test_the_weakest_confidence_counts() -> None:
    assert find_weakest([Confidence.HIGH, Confidence.LOW, Confidence.MEDIUM]) is Confidence.LOW
    assert find_weakest([Confidence.HIGH, Confidence.MEDIUM]) is Confidence.MEDIUM
    assert find_weakest([]) is Confidence.LOW


# -- what is content


def test_a_proposal_renders_as_yaml() -> None:
    files = {"Makefile": "test:\n\tctest\n", "AGENTS.md": "Run `ctest` before you push.", "pyproject.toml": "["}
    text = render_proposal(propose("fix the failing tests, stop after 7 cycles", files))
    content = yaml.safe_load(text)["proposed_completion"]
    assert list(content)[:8] == [
        "goal", "criterion", "verification_command", "rationale", "confidence", "alternatives_considered",
        "max_iterations_suggestion", "needs_human_confirmation",
    ]  # fmt: skip
    assert content["max_iterations_suggestion"] == 7
    assert content["alternatives_considered"] == [
        {"criterion": "`make test` (Makefile:1)", "rejected_because": "AGENTS.md is believed before the manifests"}
    ]
    assert content["needs_human_confirmation"] is True
    assert content["warnings"][0].startswith("pyproject.toml cannot be read")


@pytest.mark.parametrize(
    ("task", "files", "doubt", "can_be_confirmed"),
    [
        ("fix lint", {"shop.py": ""}, "`ruff check .` is a guess: nothing in the project names it", True),
        (
            "fix the failing tests",
            {"CLAUDE.md": "Always run `make test`.", CI: "jobs: {t: {steps: [{run: tox}]}}"},
            f"CLAUDE.md says `make test`, {CI} says `tox`",
            True,
        ),
        (
            "fix lint and type errors",
            {"package.json": '{"scripts": {"lint": "eslint ."}}'},
            "nothing in the project verifies this: types",
            True,
        ),
        (
            "fix lint",
            {"package.json": '{"scripts": {"lint": "true"}}'},
            "`npm run lint` in package.json judges nothing: it comes out the same whatever the code does",
            False,
        ),
        ("fix until green", {"shop.py": ""}, "there are no tests yet: the agent has to write them", False),
        ("loop until the logo is blue", {"test_a.py": ""}, "nothing in the project measures `the logo is blue`", False),
        ("fix the failing tests", {"test_a.py": ""}, "", True),
    ],
)
def test_a_doubt_says_why_and_whether_a_yes_settles_it(
    task: str, files: dict[str, str], doubt: str, can_be_confirmed: bool
) -> None:
    result = propose(task, files)
    assert (result.doubt, result.can_be_confirmed) == (doubt, can_be_confirmed)
    assert bool(doubt) is (result.confidence is Confidence.LOW)
    assert bool(result.rewordings) is bool(doubt)


def test_commands_of_several_folders_run_one_after_another(tmp_path: Path) -> None:
    files = {f"{folder}/Makefile": "test:\n\ttouch done\n" for folder in ("services/api", "packages/web")}
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_text(text)
    command = propose("fix the failing tests", files).verification_command
    assert command == "(cd packages/web && make test) && (cd services/api && make test)"
    subprocess.run(command.replace("make test", "touch done"), shell=True, cwd=tmp_path, check=True)
    assert len(list(tmp_path.glob("*/*/done"))) == 2


@pytest.mark.parametrize(
    ("name", "is_here"),
    [
        ("python -m json.tool", True),
        ("python -m nosuchtool", False),
        ("python -m .", False),
        ("pytest-cov", importlib.util.find_spec("pytest_cov") is not None),
        ("nosuchtool", False),
        (sys.executable, True),
    ],
)
def test_installed_tools_are_found(name: str, is_here: bool) -> None:
    assert (find_installed_tool(name) is not None) is is_here


def test_a_missing_program_is_named() -> None:
    result = infer_criteria(
        parse_task("fix the failing tests"), Project.from_texts({"go.mod": "module a", "a_test.go": ""}), lambda _: None
    )
    assert isinstance(result, Proposal)
    assert result.needs_human_confirmation
    assert yaml.safe_load(render_proposal(result))["proposed_completion"]["cannot_run_here"] == [
        "go test ./...: go is not here"
    ]


def test_rules_name_their_sources() -> None:
    files = {"web/package.json": '{"scripts": {"lint": "eslint ."}}', "AGENTS.md": "```\ncd web && npm run lint\n```"}
    rules = build_rules(propose("fix lint", files))
    assert render_rule_file(rules) == (
        "criteria: inferred\nrules:\n  # AGENTS.md:2, web/package.json:1\n  - id: a.lint.clean\n"
        "    description: the linter has no complaint (`cd web && npm run lint`)\n    check:\n"
        "      command: cd web && npm run lint\n      timeout: 300\n      shell: true\n"
    )


def test_a_rule_from_the_task_names_the_task() -> None:
    assert "  # the task\n  - id: a.lint.clean\n" in render_rule_file(
        build_rules(propose("make `ruff check .` pass", {}))
    )


def test_a_project_without_tests_needs_tests_for_new_code() -> None:
    result = propose("implement a search", {"go.mod": "module a"})
    assert [entry.id for entry in result.criteria] == ["a.tests.pass", "a.tests.exist"]
    assert result.criteria[1].check == {"files": {"exist": "**/*_test.go"}}
    assert propose("implement a search", {"Cargo.toml": "[package]"}).confidence is Confidence.MEDIUM


def test_an_unmeasured_completion_becomes_a_sentence() -> None:
    result = propose("loop until the logo is blue", {"test_a.py": ""})
    assert result.unmeasured == ("the logo is blue",)
    assert result.rewordings == (
        "add a test that the logo is blue, and fix it until `pytest` passes",
        "make this true: the logo is blue until `pytest` passes",
        "fix the failing tests until `pytest` passes",
    )
    assert result.criteria[-1] == Criterion("a.task.completion", "the logo is blue", check="the logo is blue")
    assert yaml.safe_load(render_proposal(result))["proposed_completion"]["unmeasured"] == ["the logo is blue"]


def test_criteria_have_distinct_ids() -> None:
    files = {"CLAUDE.md": "```\nctest\nbats a\nbats b\ncd web && npm test\n```"}
    result = propose("fix the failing tests", files)
    assert [entry.id for entry in result.criteria] == [
        "a.tests.pass",
        "a.tests.pass-2",
        "a.tests.pass-3",
        "a.tests.pass-web",
    ]


# -- what is chosen


def make_candidate(command: str, layer: Layer = Layer.MANIFESTS, **fields: object) -> CommandCandidate:
    return CommandCandidate(command, Purpose.TEST, layer, SourceLine("x"), **fields)  # type: ignore[arg-type]


def test_without_candidates_there_is_no_choice() -> None:
    assert choose_candidates(Purpose.TEST, [], "x") is None


def test_rejected_candidates_have_reasons() -> None:
    result = choose_candidates(
        Purpose.TEST,
        [
            make_candidate("npm test", family="node"),
            make_candidate("npm run test:unit", family="node", rank=2),
            make_candidate("make test", rank=4),
            make_candidate("make check", rank=4, is_trivial=True),
            make_candidate("go test ./...", folder="api", family="go"),
        ],
        "fix the failing tests",
    )
    assert result is not None
    assert [entry.command for entry in result.chosen] == ["npm test", "go test ./..."]
    assert [(entry.command, why) for entry, why in result.rejected] == [
        ("npm run test:unit", "`npm test` is closer to what people run here"),
        ("make test", "`npm test` is closer to what people run here"),
        ("make check", "it comes out the same whatever the code does"),
    ]


def test_a_guess_is_preferred_to_a_trivial_command() -> None:
    result = choose_candidates(
        Purpose.TEST, [make_candidate("pytest", is_guess=True), make_candidate("make test", is_trivial=True)], "x"
    )
    assert result is not None
    assert [entry.command for entry in result.chosen] == ["pytest"]
    assert [entry.command for entry, _ in result.rejected] == ["make test"]
    assert result.confidence is Confidence.LOW


def test_a_language_at_the_root_is_preferred_to_make_in_a_folder() -> None:
    result = choose_candidates(
        Purpose.TEST, [make_candidate("cargo test", family="rust"), make_candidate("make test", folder="docs")], "x"
    )
    assert result is not None
    assert [entry.command for entry in result.chosen] == ["cargo test"]


@pytest.mark.parametrize(
    ("command", "folder", "expected"),
    [
        ("pytest", "", ((), "")),
        ("pytest -q --tb=short tests/a.py tests/b", "", (("tests/a.py", "tests/b"), "")),
        ("pytest tests", "", (("tests/",), "")),
        ("pytest", "api", None),
        ("pytest -m slow", "", ((), "slow")),
        ("pytest -k cart", "", None),
        ("A=1 pytest", "", None),
        ("pytest && make x", "", None),
        ("tox", "", None),
        ("", "", None),
    ],
)
def test_a_pytest_call_becomes_a_selection(command: str, folder: str, expected: object) -> None:
    assert parse_pytest_selection(make_candidate(command, folder=folder), ()) == expected


# -- coverage


@pytest.mark.parametrize(
    ("command", "printed", "number"),
    [
        ("coverage report", "TOTAL      10      2    80%\n", "80"),
        ("pytest --cov", "TOTAL      10      2      4      0    81.5%\n", "81.5"),
        ("go test && go tool cover", "total:\t(statements)\t71.4%\n", "71.4"),
        ("cargo tarpaulin", "83.33% coverage, 5/6 lines covered\n", "83.33"),
        ("cargo llvm-cov", "TOTAL  9  1  88.89%  4  0  100.00%  20  1  95.00%  0  0  -\n", "95.00"),
        ("npm run coverage", "All files |   90.1 |    80 |   70 |   85.2 |\n", "85.2"),
        ("make cov", None, None),
    ],
)
def test_the_coverage_is_found_in_the_output(command: str, printed: str | None, number: str | None) -> None:

    pattern = find_coverage_pattern(make_candidate(command), Project())
    result = re.search(pattern, printed, re.MULTILINE) if pattern and printed else None
    assert (result[1] if result else None) == number


def test_an_unknown_tool_of_a_python_project_is_read_like_coverage() -> None:
    assert find_coverage_pattern(
        make_candidate("make cov"), Project.from_texts({"test_a.py": ""})
    ) == find_coverage_pattern(make_candidate("pytest"), Project())


def test_a_coverage_command_with_unknown_output_has_to_pass() -> None:
    result = propose("increase coverage to 90%", {"Makefile": "coverage:\n\tgcov\n"})
    assert result.criteria[0].check == {"command": "make coverage", "timeout": 600}


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"pyproject.toml": "[tool.coverage.report]\nfail_under = 85\n"}, NumericGoal(">=", 85)),
        ({"package.json": '{"jest": {"coverageThreshold": {"global": {"lines": 70}}}}'}, NumericGoal(">=", 70)),
        ({"package.json": '{"jest": {"coverageThreshold": {"global": {"lines": "x"}}}}'}, None),
        ({}, None),
    ],
)
def test_a_project_may_configure_its_coverage(files: dict[str, str], expected: NumericGoal | None) -> None:
    assert read_coverage_threshold(Project.from_texts(files), "") == expected


@pytest.mark.parametrize(
    ("task", "files", "command", "pattern"),
    [
        ("add tests for lib/cart.py", ["lib/cart.py", "tests/test_a.py"], "pytest --cov=lib --cov-report=term", r"^lib/cart\.py\s"),
        ("add tests for the cart", ["cart.py", "test_a.py"], "pytest --cov=. --cov-report=term", r"^cart\.py\s"),
        ("add tests for the cart", ["a/cart.py", "b/cart.py", "test_a.py"], "pytest --cov=. --cov-report=term", "^TOTAL"),
        ("add tests in tests/", ["cart.py", "tests/test_a.py"], "pytest --cov=. --cov-report=term", "^TOTAL"),
        ("add tests in lib/", ["api/pyproject.toml", "api/test_a.py", "lib/x.py"], "cd api && pytest --cov=. --cov-report=term", "^TOTAL"),
    ],
)  # fmt: skip
def test_coverage_is_measured_for_the_part_that_the_task_names(
    task: str, files: list[str], command: str, pattern: str
) -> None:
    (criterion,) = propose(task, dict.fromkeys(files, "")).criteria
    assert criterion.command == command
    assert isinstance(criterion.check, dict)
    assert criterion.check["metric"]["pattern"].startswith(pattern)
    assert criterion.needs_baseline


def test_a_coverage_command_of_the_project_needs_its_plugin() -> None:
    files = {"test_a.py": "", "AGENTS.md": "Run `pytest --cov=src --cov-branch`. Coverage: `pytest --cov=src -q`."}
    task = parse_task("loop until coverage > 80 %, as `pytest --cov=src -q` prints it")
    result = infer_criteria(task, Project.from_texts(files), lambda name: name if name != "pytest-cov" else None)
    assert isinstance(result, Proposal)
    assert (result.verification_command, result.missing_tool) == ("pytest --cov=src -q", "pytest-cov")


@pytest.mark.parametrize(
    ("tool", "advice"),
    [
        ("pytest-cov", "pip install pytest-cov"),
        ("lint-imports", "pip install import-linter"),
        ("python -m mypy", "pip install mypy"),
        ("npx", "npx, as its documentation says"),
    ],
)
def test_the_installation_of_a_tool_is_described(tool: str, advice: str) -> None:
    assert describe_installation(tool) == advice


@settings(deadline=None)
@given(st.text() | st.lists(st.sampled_from(WORDS)).map(" ".join))
def test_every_text_gets_an_answer(text: str) -> None:
    project = Project.from_texts(
        {"pyproject.toml": "[tool.ruff]", "tests/test_a.py": "", CI: "jobs: {t: {steps: [{run: tox}]}}"}
    )
    result = infer_criteria(parse_task(text), project, lambda name: name)
    if isinstance(result, Refusal):
        assert result.sentence
        assert len(result.rewordings) == 3 if result.missing else len(result.rewordings) <= 1
    else:
        assert result.criteria
        assert result.rationale


@pytest.mark.parametrize(
    "piece", ["-", "a-", " ", "1.", "`", "fix ", "ralph: ", "/goal ", "loop until ", "coverage ", "a/"]
)
def test_a_long_text_gets_an_answer(piece: str) -> None:
    result = infer_criteria(parse_task(f"fix x{piece * 4_000}y"), Project.from_texts({"a.py": ""}), lambda name: name)
    assert isinstance(result, (Proposal, Refusal))
    assert parse_task(piece * 4_000).text == piece * 4_000


# -- judged


def test_inferred_rules_judge_a_session(pytester: pytest.Pytester) -> None:
    pytester.makefile(".md", AGENTS="Always run `pytest unit`. Before you push, run `python lint.py`.")
    pytester.makepyfile(
        **{"lint": "", "unit/test_a": "def test_a(): assert 0", "live/test_b": "def test_b(): assert 0"}
    )
    result = infer_criteria(parse_task("refactor lint.py; lint stays clean"), read_project(pytester.path))
    assert isinstance(result, Proposal)
    pytester.path.joinpath("inferred.rules.yaml").write_text(render_rule_file(build_rules(result)))
    arguments = ("unit", "inferred.rules.yaml")
    pytester.runpytest(*arguments).stdout.fnmatch_lines(["*inferred*fail*"])
    pytester.path.joinpath("unit/test_a.py").write_text("def test_a(): pass")
    assert pytester.runpytest(*arguments).ret is pytest.ExitCode.OK
