"""How criteria are found, beyond the corpus: vectors, scope, and what a project's own tests are."""

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

from pytest_loop.inference import coverage_checks
from pytest_loop.inference.candidate_selection import choose_candidates
from pytest_loop.inference.command_candidate import Candidate, Confidence, Goal, Layer, Source, find_weakest
from pytest_loop.inference.inferred_criteria import parse_pytest_selection
from pytest_loop.inference.installed_tools import find_installed
from pytest_loop.inference.project_files import Project, read_project
from pytest_loop.inference.proposal import (
    Criterion,
    Proposal,
    build_rules,
    explain_uncertainty,
    render_proposal,
    render_rule_file,
)
from pytest_loop.inference.synthesis import infer_criteria
from pytest_loop.inference.task_intent import Threshold
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


def proposed(task: str, files: dict[str, str]) -> Proposal:
    found = infer_criteria(parse_task(task), Project.from_texts(files), lambda name: name)
    assert isinstance(found, Proposal), str(found)
    return found


# -- the vectors of the contract


def test_two_layers_that_say_the_same_are_certain() -> None:
    """Vector 17."""
    files = {
        "pyproject.toml": "[tool.pytest.ini_options]",
        CI: "jobs: {t: {steps: [{run: pytest -q}]}}",
        "test_a.py": "",
    }
    found = proposed("fix the failing tests", files)
    assert (found.confidence, found.goal) == (Confidence.HIGH, Goal.TEST_PASS)


def test_nothing_makes_code_better() -> None:
    """Vector 17."""
    assert isinstance(infer_criteria(parse_task("make the code better"), Project.from_texts({"a.py": ""})), Refusal)


def test_a_command_in_the_task_is_taken_and_nothing_is_inferred() -> None:
    """Vector 17."""
    found = proposed("make `ruff check .` pass", {"package.json": '{"scripts": {"lint": "eslint ."}}'})
    assert found.verification_command == "ruff check ."
    assert found.rationale == ("the task names `ruff check .`: nothing had to be inferred",)
    assert found.alternatives == ()


def test_claude_is_believed_before_ci_and_the_difference_is_named() -> None:
    """Vector 17."""
    files = {"CLAUDE.md": "Always run `make test`.", CI: "jobs: {t: {steps: [{run: tox}]}}"}
    found = proposed("fix the failing tests", files)
    assert found.verification_command == "make test"
    assert f"{CI}:1 differs: `tox` (CI); CLAUDE.md is believed" in found.rationale
    assert [one.rejected_because for one in found.alternatives] == ["CLAUDE.md is believed before CI"]


def test_the_weakest_of_several() -> None:
    assert find_weakest([Confidence.HIGH, Confidence.LOW, Confidence.MEDIUM]) is Confidence.LOW
    assert find_weakest([Confidence.HIGH, Confidence.MEDIUM]) is Confidence.MEDIUM
    assert find_weakest([]) is Confidence.LOW


# -- what is said


def test_a_proposal_in_yaml() -> None:
    files = {"Makefile": "test:\n\tctest\n", "AGENTS.md": "Run `ctest` before you push.", "pyproject.toml": "["}
    text = render_proposal(proposed("fix the failing tests, stop after 7 cycles", files))
    said = yaml.safe_load(text)["proposed_completion"]
    assert list(said)[:8] == [
        "goal", "criterion", "verification_command", "rationale", "confidence", "alternatives_considered",
        "max_iterations_suggestion", "needs_human_confirmation",
    ]  # fmt: skip
    assert said["max_iterations_suggestion"] == 7
    assert said["alternatives_considered"] == [
        {"criterion": "`make test` (Makefile:1)", "rejected_because": "AGENTS.md is believed before the manifests"}
    ]
    assert said["needs_human_confirmation"] is True
    assert said["warnings"][0].startswith("pyproject.toml cannot be read")


def test_what_is_not_certain_says_how_it_would_be() -> None:
    text = explain_uncertainty(proposed("loop until coverage > 80%", {"shop.py": "", "test_shop.py": ""}))
    head, _, body = text.partition("\n")
    assert head == "it is not certain what tells that this is done; say it in the task:"
    said = yaml.safe_load(body)["proposed_completion"]
    assert said["confidence"] == "low"
    assert said["rewordings"][0] == "loop until coverage > 80 %, as `pytest --cov --cov-report=term` prints it"


def test_commands_of_several_folders_run_one_after_another(tmp_path: Path) -> None:
    files = {f"{folder}/Makefile": "test:\n\ttouch done\n" for folder in ("services/api", "packages/web")}
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_text(text)
    command = proposed("fix the failing tests", files).verification_command
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
def test_what_is_installed_here(name: str, is_here: bool) -> None:
    assert (find_installed(name) is not None) is is_here


def test_a_program_that_is_not_here_is_named() -> None:
    found = infer_criteria(
        parse_task("fix the failing tests"), Project.from_texts({"go.mod": "module a", "a_test.go": ""}), lambda _: None
    )
    assert isinstance(found, Proposal)
    assert found.needs_human_confirmation
    assert yaml.safe_load(render_proposal(found))["proposed_completion"]["cannot_run_here"] == [
        "go test ./...: go is not here"
    ]


def test_rules_say_where_they_came_from() -> None:
    files = {"web/package.json": '{"scripts": {"lint": "eslint ."}}', "AGENTS.md": "```\ncd web && npm run lint\n```"}
    made = build_rules(proposed("fix lint", files))
    assert render_rule_file(made) == (
        "criteria: inferred\nrules:\n  # AGENTS.md:2, web/package.json:1\n  - id: a.lint.clean\n"
        "    description: the linter has no complaint (`cd web && npm run lint`)\n    check:\n"
        "      command: cd web && npm run lint\n      timeout: 300\n      shell: true\n"
    )


def test_a_rule_of_the_task_itself_says_so() -> None:
    assert "  # the task\n  - id: a.lint.clean\n" in render_rule_file(
        build_rules(proposed("make `ruff check .` pass", {}))
    )


def test_new_code_has_tests_where_there_are_none() -> None:
    found = proposed("implement a search", {"go.mod": "module a"})
    assert [one.id for one in found.criteria] == ["a.tests.pass", "a.tests.exist"]
    assert found.criteria[1].check == {"files": {"exist": "**/*_test.go"}}
    assert proposed("implement a search", {"Cargo.toml": "[package]"}).confidence is Confidence.MEDIUM


def test_a_condition_of_the_persons_own_is_a_sentence() -> None:
    found = proposed("loop until the logo is blue", {"test_a.py": ""})
    assert found.unmeasured == ("the logo is blue",)
    assert found.rewordings == (
        "add a test that the logo is blue, and fix it until `pytest` passes",
        "make this true: the logo is blue until `pytest` passes",
        "fix the failing tests until `pytest` passes",
    )
    assert found.criteria[-1] == Criterion("a.task.completion", "the logo is blue", check="the logo is blue")
    assert yaml.safe_load(render_proposal(found))["proposed_completion"]["unmeasured"] == ["the logo is blue"]


def test_ids_are_told_apart() -> None:
    files = {"CLAUDE.md": "```\nctest\nbats a\nbats b\ncd web && npm test\n```"}
    found = proposed("fix the failing tests", files)
    assert [one.id for one in found.criteria] == [
        "a.tests.pass",
        "a.tests.pass-2",
        "a.tests.pass-3",
        "a.tests.pass-web",
    ]


# -- what is chosen


def offered(command: str, layer: Layer = Layer.MANIFESTS, **fields: object) -> Candidate:
    return Candidate(command, Purpose.TEST, layer, Source("x"), **fields)  # type: ignore[arg-type]


def test_nobody_says_anything() -> None:
    assert choose_candidates(Purpose.TEST, [], "x") is None


def test_what_was_passed_over_is_kept_with_its_reason() -> None:
    found = choose_candidates(
        Purpose.TEST,
        [
            offered("npm test", family="node"),
            offered("npm run test:unit", family="node", rank=2),
            offered("make test", rank=4),
            offered("make check", rank=4, is_trivial=True),
            offered("go test ./...", folder="api", family="go"),
        ],
        "fix the failing tests",
    )
    assert found is not None
    assert [one.command for one in found.chosen] == ["npm test", "go test ./..."]
    assert [(one.command, why) for one, why in found.rejected] == [
        ("npm run test:unit", "`npm test` is closer to what people run here"),
        ("make test", "`npm test` is closer to what people run here"),
        ("make check", "it comes out the same whatever the code does"),
    ]


def test_a_guess_is_taken_before_what_is_hollow() -> None:
    found = choose_candidates(
        Purpose.TEST, [offered("pytest", is_guess=True), offered("make test", is_trivial=True)], "x"
    )
    assert found is not None
    assert [one.command for one in found.chosen] == ["pytest"]
    assert [one.command for one, _ in found.rejected] == ["make test"]
    assert found.confidence is Confidence.LOW


def test_make_in_a_folder_is_second_to_the_root() -> None:
    found = choose_candidates(
        Purpose.TEST, [offered("cargo test", family="rust"), offered("make test", folder="docs")], "x"
    )
    assert found is not None
    assert [one.command for one in found.chosen] == ["cargo test"]


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
def test_what_pytest_is_to_collect(command: str, folder: str, expected: object) -> None:
    assert parse_pytest_selection(offered(command, folder=folder), ()) == expected


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
def test_where_the_number_stands(command: str, printed: str | None, number: str | None) -> None:

    pattern = coverage_checks.find_output_pattern(offered(command), Project())
    found = re.search(pattern, printed, re.MULTILINE) if pattern and printed else None
    assert (found[1] if found else None) == number


def test_an_unknown_tool_of_a_python_project_prints_as_coverage_does() -> None:
    assert coverage_checks.find_output_pattern(
        offered("make cov"), Project.from_texts({"test_a.py": ""})
    ) == coverage_checks.find_output_pattern(offered("pytest"), Project())


def test_a_number_that_nobody_can_read_is_left_to_the_command() -> None:
    found = proposed("increase coverage to 90%", {"Makefile": "coverage:\n\tgcov\n"})
    assert found.criteria[0].check == {"command": "make coverage", "timeout": 600}


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"pyproject.toml": "[tool.coverage.report]\nfail_under = 85\n"}, Threshold(">=", 85)),
        ({"package.json": '{"jest": {"coverageThreshold": {"global": {"lines": 70}}}}'}, Threshold(">=", 70)),
        ({"package.json": '{"jest": {"coverageThreshold": {"global": {"lines": "x"}}}}'}, None),
        ({}, None),
    ],
)
def test_what_a_project_asks_of_itself(files: dict[str, str], expected: Threshold | None) -> None:
    assert coverage_checks.read_configured_threshold(Project.from_texts(files), "") == expected


@settings(deadline=None)
@given(st.text() | st.lists(st.sampled_from(WORDS)).map(" ".join))
def test_every_text_gets_an_answer(text: str) -> None:
    project = Project.from_texts(
        {"pyproject.toml": "[tool.ruff]", "tests/test_a.py": "", CI: "jobs: {t: {steps: [{run: tox}]}}"}
    )
    found = infer_criteria(parse_task(text), project, lambda name: name)
    if isinstance(found, Refusal):
        assert found.missing
        assert len(found.suggest_rewordings) == 3
    else:
        assert found.criteria
        assert found.rationale


@pytest.mark.parametrize(
    "piece", ["-", "a-", " ", "1.", "`", "fix ", "ralph: ", "/goal ", "loop until ", "coverage ", "a/"]
)
def test_a_long_text_gets_an_answer_too(piece: str) -> None:
    found = infer_criteria(parse_task(f"fix x{piece * 4_000}y"), Project.from_texts({"a.py": ""}), lambda name: name)
    assert isinstance(found, (Proposal, Refusal))
    assert parse_task(piece * 4_000).text == piece * 4_000


# -- judged


def test_what_is_inferred_judges(pytester: pytest.Pytester) -> None:
    pytester.makefile(".md", AGENTS="Always run `pytest unit`. Before you push, run `python lint.py`.")
    pytester.makepyfile(
        **{"lint": "", "unit/test_a": "def test_a(): assert 0", "live/test_b": "def test_b(): assert 0"}
    )
    found = infer_criteria(parse_task("refactor lint.py; lint stays clean"), read_project(pytester.path))
    assert isinstance(found, Proposal)
    pytester.path.joinpath("inferred.rules.yaml").write_text(render_rule_file(build_rules(found)))
    arguments = ("unit", "inferred.rules.yaml")
    pytester.runpytest(*arguments).stdout.fnmatch_lines(["*inferred*fail*"])
    pytester.path.joinpath("unit/test_a.py").write_text("def test_a(): pass")
    assert pytester.runpytest(*arguments).ret is pytest.ExitCode.OK
