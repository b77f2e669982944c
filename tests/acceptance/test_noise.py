"""Noisy rules are repeated, and a saved evaluation says what became worse."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import WORKERS_IF_THOROUGH

Write = Callable[..., Path]

# Passes or fails by its repeat: the n-th call looks up the n-th letter.
SCRIPT = """
    import pathlib, sys
    folder = pathlib.Path(sys.argv[1]); folder.mkdir(exist_ok=True)
    done = len(list(folder.iterdir()))
    (folder / f"{done}").touch()
    sys.exit(sys.argv[2][done] == "f")
"""


@pytest.fixture
def noisy(pytester: pytest.Pytester, write_rule_file: Write) -> Callable[..., pytest.RunResult]:
    pytester.makepyfile(noise=SCRIPT)

    def run(votes: str, need: str, *args: str, severity: str = "fail") -> pytest.RunResult:
        write_rule_file(
            f"""
            rules:
              - id: a.x.noisy
                description: Noisy
                severity: {severity}
                repeat: {len(votes)}
                need: {need}
                check: {{command: "python noise.py calls {votes}"}}
            """
        )
        return pytester.runpytest(*args)

    return run


def test_repeats_are_items_of_their_own_until_the_verdict_is_certain(noisy: Callable[..., pytest.RunResult]) -> None:
    result = noisy("pfppp", "majority")
    assert result.ret == pytest.ExitCode.OK
    assert result.parseoutcomes() == {"passed": 3, "missed": 1, "skipped": 1}
    result.stdout.fnmatch_lines(["it.rules.yaml .m..s *", "it  PASS  1 (2 of 2) >= 0.9 in phase B, 1 rule: 1 passed"])


def test_the_repeat_that_decides_the_verdict_fails(noisy: Callable[..., pytest.RunResult]) -> None:
    result = noisy("pfpff", "0.8", "-rs")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            "it.rules.yaml .m.Fs *",
            "SKIPPED *already certain: the rule fails",
            "  blocks: a.x.noisy: 2 of 4 repeats passed, 4 needed of 5 (rate 0.15 to 0.85): *found exit code 1*",
        ]
    )


def test_a_noisy_warning_only_warns(noisy: Callable[..., pytest.RunResult]) -> None:
    result = noisy("ffp", "all", severity="warn")
    assert result.parseoutcomes() == {"warned": 1, "skipped": 2}


@pytest.mark.measured
def test_workers_share_the_results_of_repeats(noisy: Callable[..., pytest.RunResult]) -> None:
    result = noisy("p" * 30, "2", "-n2")
    assert result.ret == pytest.ExitCode.OK
    outcomes = result.parseoutcomes()
    assert 2 <= outcomes["passed"] <= 4
    assert outcomes["passed"] + outcomes["skipped"] == 30


def test_repeats_can_be_selected_one_by_one(noisy: Callable[..., pytest.RunResult]) -> None:
    assert noisy("fpp", "majority", "it.rules.yaml::a.x.noisy[2]").parseoutcomes() == {"failed": 1}
    result = noisy("ppp", "majority", "it.rules.yaml::a.x.noisy")
    assert result.parseoutcomes() == {"passed": 2, "skipped": 1}


RULES = """
    rules:
      - {id: a.x.one, description: One, check: {command: test -e one}}
      - {id: a.x.two, description: Two, check: {command: test -e two}}
      - {id: a.x.three, description: Three, severity: warn, check: {command: test -e three}}
"""


@WORKERS_IF_THOROUGH
def test_only_regressions_fail_against_a_baseline(
    pytester: pytest.Pytester, write_rule_file: Write, workers: tuple[str, ...]
) -> None:
    write_rule_file(RULES)
    (pytester.path / "one").touch()
    assert pytester.runpytest("--loop-save-baseline=base.json", *workers).ret == pytest.ExitCode.TESTS_FAILED
    saved = json.loads((pytester.path / "base.json").read_text())
    assert saved["verdicts"] == {
        "it.rules.yaml::a.x.one": "pass",
        "it.rules.yaml::a.x.two": "fail",
        "it.rules.yaml::a.x.three": "warn",
    }
    result = pytester.runpytest("--loop-baseline=base.json", *workers)
    assert result.ret == pytest.ExitCode.OK
    assert result.parseoutcomes() == {"passed": 1, "known": 2}
    result.stdout.fnmatch_lines(["worse than the baseline: nothing"])
    (pytester.path / "one").unlink()
    (pytester.path / "two").touch()
    result = pytester.runpytest("--loop-baseline=base.json", *workers)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["worse than the baseline: it.rules.yaml::a.x.one"])


def test_a_rule_missing_from_the_baseline_must_pass(pytester: pytest.Pytester, write_rule_file: Write) -> None:
    write_rule_file(RULES)
    (pytester.path / "base.json").write_text('{"schema_version": 1, "verdicts": {"it.rules.yaml::a.x.one": "fail"}}')
    pytester.makeini("[pytest]\nloop_baseline = base.json")
    result = pytester.runpytest()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["worse than the baseline: it.rules.yaml::a.x.two, it.rules.yaml::a.x.three"])


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "No such file or directory"),
        ("", "it is not a saved evaluation"),
        ('{"verdicts": 5}', "it is not a saved evaluation"),
    ],
)
def test_an_unusable_baseline_is_a_usage_error(pytester: pytest.Pytester, content: str | None, reason: str) -> None:
    if content is not None:
        (pytester.path / "base.json").write_text(content)
    result = pytester.runpytest("--loop-baseline=base.json")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [f"ERROR: --loop-baseline: cannot use *base.json: {reason}; make one with --loop-save-baseline *base.json"]
    )


def test_a_baseline_that_cannot_be_written_is_reported(pytester: pytest.Pytester, write_rule_file: Write) -> None:
    write_rule_file(RULES)
    result = pytester.runpytest("--loop-save-baseline=none/base.json")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stdout.fnmatch_lines(
        ["ERROR: --loop-save-baseline: cannot write *none/base.json: No such file or directory"]
    )
    assert "Traceback" not in result.stderr.str() + result.stdout.str()
