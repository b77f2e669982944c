from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_loop.core.model.rules import Evidence, Outcome
from pytest_loop.core.model.session_order import SessionOrder
from pytest_loop.errors import CheckError
from pytest_loop.repair.mutation.mutation_request import MutationRequest, MutationResult
from pytest_loop.rules.checks.registry import InvalidCheckError, build_check
from tests.rules.test_prepared_checks import OrderPlugin

Run = Callable[..., list[str]]

CODE = "def cap(amount):\n    return min(amount, 100)\n"
TESTS = "from shop import cap\n\n\ndef test_cap():\n    assert cap(500) == 100\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "shop.py").write_text(CODE)
    (tmp_path / "test_shop.py").write_text(TESTS)
    return tmp_path


def test_tests_that_notice_every_change_pass(run: Run, project: Path) -> None:
    assert (project / "shop.py").exists()
    assert run({"mutation": {"paths": "shop.py", "tests": "test_shop.py", "limit": "30 s"}}) == []


def test_survivors_are_findings(run: Run, project: Path) -> None:
    (project / "test_shop.py").write_text(TESTS.replace("== 100", "> 0"))
    score, *survivors = run({"mutation": {"paths": ["shop.py"], "score": "> 0.9", "limit": 30}})
    assert score.startswith("expected a mutation score > 0.9, found score ")
    assert survivors[0].startswith("shop.py:2: expected a test that fails with this change, found `return min(amount")


def test_tests_that_cannot_run_are_an_error_of_the_set_up(run: Run, project: Path) -> None:
    (project / "test_shop.py").write_text("def test_it():\n    assert False\n")
    with pytest.raises(CheckError, match="no mutant could be run: no test passes"):
        run({"mutation": {"paths": ["shop.py"]}})


@pytest.mark.parametrize("limit", ["soon", "60", 0, -1])
def test_a_limit_is_a_duration(limit: object) -> None:
    with pytest.raises(InvalidCheckError, match="limit"):
        build_check({"mutation": {"paths": ["a"], "limit": limit}})


@pytest.mark.parametrize(("limit", "seconds"), [("60 s", 60), ("2 min", 120), ("1.5s", 1.5), (5, 5)])
def test_a_limit_may_have_a_unit(limit: object, seconds: float) -> None:
    assert build_check({"mutation": {"paths": ["a"], "limit": limit}}).mutation.limit == seconds


@pytest.mark.parametrize("score", ["0.8", ">= 80", "about 1"])
def test_a_score_is_a_comparison(score: str) -> None:
    with pytest.raises(InvalidCheckError, match="expected a comparison with a number from 0 to 1"):
        build_check({"mutation": {"paths": ["a"], "score": score}})


def test_a_shard_leaves_the_mutants_to_all_workers_and_uses_their_result(
    pytester: pytest.Pytester, write_rule_file: Callable[..., Path]
) -> None:
    path = pytester.path.resolve()
    (path / "shop.py").write_text(CODE)
    write_rule_file("rules: [{id: bugs, description: bugs, check: {mutation: {paths: shop.py, tests: .}}}]")

    def judge(order: SessionOrder) -> Evidence:
        result = pytester.inline_run("-p", "no:randomly", "it.rules.yaml", plugins=[OrderPlugin(order)])
        (report,) = (report for report in result.getreports("pytest_runtest_logreport") if report.when == "call")
        return Evidence.model_validate(report.loop["evidence"])

    deferred = judge(SessionOrder(shard=(1, 1)))
    assert (deferred.outcome, deferred.text) == (Outcome.UNCHECKED, "its trials were not carried out")
    request = MutationRequest.model_validate_json(deferred.trials)
    assert (request.folder, request.paths, request.pytest_arguments) == (path, ("shop.py",), (str(path),))
    measured = MutationResult(mutants=4, tried=4, killed=1, tests=1)
    order = SessionOrder(trials={deferred.trials: measured.model_dump_json()})
    assert judge(order).findings[0].found == "score 0.25: 1 of 4 mutants killed by 1 tests in 0.0 s"
