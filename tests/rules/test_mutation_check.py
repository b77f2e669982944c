from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_loop.errors import CheckError
from pytest_loop.rules.checks.registry import InvalidCheckError, build_check

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
