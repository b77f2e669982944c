"""Every folder of `examples/` does what its README says."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.conftest import WORKERS_IF_THOROUGH

EXAMPLES = Path(__file__).parents[2] / "examples"
FOLDERS = ("good", "bad", "python_tests", "custom_check")

GOOD = [
    "courses-api * PASS  1 (12 of 12) >= 0.9 in phase B, 8 rules: 8 passed",
    "shipping * PASS  1 (10 of 10) >= 0.9 in phase B, 8 rules: 6 passed, 2 not judged",
    "service-config * PASS  1 (8 of 8) >= 0.9 in phase B, 8 rules: 5 passed, 3 not judged",
    "backup-guide * PASS  1 (7 of 7) >= 0.85 in phase B, 8 rules: 5 passed, 3 not judged",
]
BAD = [
    "courses-api-draft * FAIL  0 (0 of 12) < 0.9 in phase B, 8 rules: 4 failed, 4 warned",
    "shipping-draft * FAIL  0.181 (2 of 11) < 0.9 in phase B, 8 rules: 1 passed, 3 failed, 3 warned, 1 not judged",
    "service-config-draft * FAIL  0.181 (2 of 11) < 0.9 in phase B, 8 rules: 1 passed, 2 failed, 5 warned",
    "backup-guide-draft * FAIL  0 (0 of 7) < 0.85 in phase B, 8 rules: 1 failed, 5 warned, 1 not verified, 1 not judged",
]
PYTHON_TESTS = [
    "basket * PASS  1 (5 of 5) >= 0.9 in phase B, 3 rules: 3 passed",
    "tests * PASS  1 (1 of 1) >= 0.9 in phase B, 1 rule: 1 passed",
]
CUSTOM_CHECK = ["release-notes * PASS  1 (4 of 4) >= 0.9 in phase B, 2 rules: 2 passed"]

MISTAKES = """
    blocks: a.correctness.endpoints: * '/courses/{course_id}' is a required property
    blocks: a.correctness.schemas: *openapi.yaml:18: POST /courses: expected a request body with a schema, found none*
    blocks: a.completeness.examples: *openapi.yaml:7: GET /courses: expected an example, found none*
    blocks: b.completeness.auth: * 'securitySchemes' is a required property*
    warns: a.completeness.errors: *GET /courses: expected a 500 response, found 200*
    warns: b.style.naming: *openapi.yaml:28: * expected snake_case as for most parameters, found 'courseId'
    warns: b.completeness.pagination: *GET /courses: expected a parameter for pages *
    warns: b.quality.descriptions: */paths/~1courses/post to be valid, found 'description' is a required property
    blocks: a.correctness.logic: *shipping_draft.py: expected 0 for 50 home, found 4.90
    blocks: a.completeness.functions: *shipping_draft.py:20: expected parse_total to do something, found a stub
    blocks: b.security.input-validation: *shipping_draft.py:17: expected no code from outside, found eval *
    warns: a.completeness.types: *shipping_draft.py:8: shipping_cost: expected annotations for total, zone and *
    warns: b.quality.error-handling: *shipping_draft.py:11: expected a named exception, found a bare `except`
    warns: b.style.conventions: *shipping_draft.py:16: expected a name such as order_line, found 'parseTotal'*
    blocks: a.correctness.required: *service.yaml: expected /log/level to be valid, found 'verbose' is not one of *
    blocks: a.security.no-secrets: *service.yaml:6: * *a password in an address* *service.yaml:7: *
    warns: a.completeness.env-vars: *service.yaml:8: expected a comment on REPLICA_URL, found none
    warns: b.quality.defaults: *service.yaml:3: *debug or insecure by default*
    warns: b.completeness.comments: *service.yaml:1: expected comments on values that are not obvious, found none
    warns: b.quality.portability: *service.yaml:11: *the home of a person*
    warns: b.security.permissions: *service.yaml:12: *rights for everybody*
    blocks: a.completeness.sections: *guide.md: expected a section 'Installation', found none; *
    warns: a.completeness.examples: *guide.md:18: expected JSON, *
    warns: a.quality.clarity: *guide.md:7: *a placeholder*
    warns: b.quality.structure: *guide.md:5: expected 'Usage' at level 2 or above, found it at level 3
    warns: b.completeness.cross-refs: *guide.md:3: expected the link '#options' to lead somewhere, *
    warns: b.style.consistency: *guide.md:23: expected bullets of level 1 as in line 9 (*), found -
"""


@pytest.fixture
def examples(pytester: pytest.Pytester) -> pytest.Pytester:
    """A copy of the examples in a project without any configuration."""
    for name in FOLDERS:
        shutil.copytree(
            EXAMPLES / name, pytester.path / "examples" / name, ignore=shutil.ignore_patterns("__pycache__")
        )
    return pytester


def read_score_section(result: pytest.RunResult) -> list[str]:
    """Return the lines of the `loop score` section."""
    start = next(index for index, line in enumerate(result.outlines) if " loop score " in line)
    return result.outlines[start + 1 : -1]


def read_headlines(result: pytest.RunResult) -> list[str]:
    return [line for line in read_score_section(result) if not line.startswith(" ")]


def assert_lines(lines: list[str], expected: list[str]) -> None:
    assert len(lines) == len(expected)
    pytest.LineMatcher(lines).fnmatch_lines_random([escape_brackets(line) for line in expected])


def escape_brackets(line: str) -> str:
    """Escape brackets, which fnmatch reads as a set of characters."""
    return line.replace("[", "[[]")


@WORKERS_IF_THOROUGH
def test_good_artifacts_pass(examples: pytest.Pytester, workers: tuple[str, ...]) -> None:
    result = examples.runpytest_subprocess("examples/good", *workers)
    assert result.ret == pytest.ExitCode.OK
    assert_lines(read_headlines(result), GOOD)
    result.stdout.fnmatch_lines(["*24 passed, 8 assumed*"])


@WORKERS_IF_THOROUGH
def test_bad_artifacts_fail_and_every_mistake_is_named(examples: pytest.Pytester, workers: tuple[str, ...]) -> None:
    result = examples.runpytest_subprocess("examples/bad", *workers)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert_lines(read_headlines(result), BAD)
    mistakes = [line.strip() for line in read_score_section(result) if line.startswith(("  blocks", "  warns"))]
    assert_lines(mistakes, [line.strip() for line in MISTAKES.strip().splitlines()])


def test_failure_shows_the_fix(examples: pytest.Pytester) -> None:
    result = examples.runpytest_subprocess("examples/bad/api-spec", "-k", "endpoints")
    result.stdout.fnmatch_lines(["fix: Add the missing paths below `paths`, each with its methods."])


@WORKERS_IF_THOROUGH
@pytest.mark.parametrize(("folder", "headlines"), [("python_tests", PYTHON_TESTS), ("custom_check", CUSTOM_CHECK)])
def test_python_tests_and_custom_checks_are_rules(
    examples: pytest.Pytester, workers: tuple[str, ...], folder: str, headlines: list[str]
) -> None:
    result = examples.runpytest_subprocess(f"examples/{folder}", *workers)
    assert result.ret == pytest.ExitCode.OK
    assert_lines(read_headlines(result), headlines)


def test_rule_fails_without_its_fixture(examples: pytest.Pytester) -> None:
    path = examples.path / "examples/python_tests/basket.rules.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("    fixtures: [euro_shop]\n", ""), encoding="utf-8")
    result = examples.runpytest_subprocess("examples/python_tests")
    result.stdout.fnmatch_lines(["  warns: b.completeness.currency: *expected 2.50 EUR, found 2.50 USD"])


def test_custom_check_reports_its_findings(examples: pytest.Pytester) -> None:
    (examples.path / "examples/custom_check/notes.txt").write_text("Version 2.1\n\n" + "x" * 80, encoding="utf-8")
    result = examples.runpytest_subprocess("examples/custom_check")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["examples/custom_check/notes.txt:3: expected at most 72 characters, found 80"])


def test_all_examples_run_in_one_session(examples: pytest.Pytester, workers: tuple[str, ...]) -> None:
    result = examples.runpytest_subprocess("examples", *workers)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert_lines(read_headlines(result), GOOD + BAD + PYTHON_TESTS + CUSTOM_CHECK)


def test_all_but_the_bad_examples_pass_in_a_strict_project(examples: pytest.Pytester) -> None:
    strict = ("--import-mode=importlib", "--strict-markers", "--strict-config", "-W", "error")
    result = examples.runpytest_subprocess(*strict, "examples", "--ignore=examples/bad")
    assert result.ret == pytest.ExitCode.OK
    assert_lines(read_headlines(result), GOOD + PYTHON_TESTS + CUSTOM_CHECK)


def test_readme_names_every_folder_and_its_command() -> None:
    text = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    names = re.findall(r"`pytest examples/(\w+)`", text)
    assert set(FOLDERS) <= set(names)
    assert all((EXAMPLES / name).is_dir() for name in names)
