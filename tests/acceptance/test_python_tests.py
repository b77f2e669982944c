"""Python tests are rules too: by a mark, or because a rule names them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

Write = Callable[..., Path]


def test_marked_tests_form_criteria_of_their_own(pytester: pytest.Pytester, workers: tuple[str, ...]) -> None:
    pytester.makepyfile(
        test_it="""
        import pytest

        @pytest.mark.loop_rule("a.totals.sum", description="Sums are right")
        @pytest.mark.parametrize("n", [1, 2])
        def test_sum(n): assert n > 0

        @pytest.mark.loop_rule("b.style.short", severity="warn", weight=0.5)
        def test_short(): assert len("long") < 3

        @pytest.mark.loop_rule("a.x.info", severity="info")
        def test_info(): assert False

        @pytest.mark.loop_rule("a.x.later", severity="warn", phase="B")
        @pytest.mark.skip(reason="not now")
        def test_later(): pass

        @pytest.mark.loop_rule("a.x.known", weight=1)
        @pytest.mark.xfail(reason="a known bug", strict=True)
        def test_known(): assert False

        def test_ordinary(): pass
        """
    )
    result = pytester.runpytest(*workers)
    assert result.parseoutcomes() == {"passed": 3, "warned": 1, "info": 1, "skipped": 1, "xfailed": 1}
    result.stdout.fnmatch_lines(
        [
            "tests  FAIL  0.571 (2 of 3.5) < 0.9 in phase B, 5 rules: 1 passed, 1 info, 2 warned, 1 not judged",
            "  warns: b.style.short: *assert*",
            "  info: a.x.info: *assert*",
            "  warns: a.x.known: *",
            "  not judged: a.x.later: not now",
        ]
    )
    assert result.ret == pytest.ExitCode.TESTS_FAILED


def test_a_skipped_blocking_rule_is_not_verified(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.loop_rule("a.x.y")
        @pytest.mark.parametrize("n", [1, pytest.param(2, marks=pytest.mark.skip(reason="no network"))])
        def test_it(n): pass
        """
    )
    result = pytester.runpytest()
    result.assert_outcomes(passed=1, skipped=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["  blocks: a.x.y: not verified: no network"])


def test_an_error_before_or_after_the_test_is_never_a_pass(pytester: pytest.Pytester, workers: tuple[str, ...]) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.fixture
        def broken(): raise OSError("no server")

        @pytest.fixture
        def torn():
            yield
            raise OSError("no goodbye")

        @pytest.mark.loop_rule("a.x.before", severity="warn")
        def test_before(broken): pass

        @pytest.mark.loop_rule("a.x.after")
        def test_after(torn): pass
        """
    )
    result = pytester.runpytest(*workers)
    result.assert_outcomes(passed=1, errors=2)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            "tests  FAIL  0 (0 of 3) *",
            "  blocks: a.x.after: *.py:9: OSError: no goodbye",
            "  warns: a.x.before: *.py:4: OSError: no server",
        ]
    )


BOUND = """
    rules:
      - id: a.x.sum
        description: Sums
        severity: warn
        check: {tests: test_it.py::test_sum}
      - id: a.x.marked
        description: Marked slow
        check: [{tests: "slow and not loop_rule(severity='info')"}, {command: "true"}]
      - id: a.x.both
        description: By id in the mark
        check: {command: "true"}
      - id: a.x.none
        description: Names tests that are not here
        severity: warn
        check: {tests: [tests/none.py, test_it.py]}
"""


def test_node_ids_start_at_the_folder_of_the_rule_file_or_at_the_root(
    pytester: pytest.Pytester, write_rule_file: Write
) -> None:
    write_rule_file(
        """
        rules:
          - {id: a.x.here, description: Here, check: {tests: "test_it.py::TestIt"}}
          - {id: a.x.root, description: Root, check: {tests: "sub/test_it.py::TestIt::test_one"}}
          - {id: a.x.folder, description: Folder, check: {tests: ./}}
          - {id: a.x.none, description: None, severity: warn, check: {tests: "test_it.py::TestI"}}
        """,
        "sub/it.rules.yaml",
    )
    (pytester.path / "sub" / "test_it.py").write_text(
        "class TestIt:\n    def test_one(self): pass\n    def test_two(self): assert 0\n"
    )
    (pytester.path / "test_other.py").write_text("def test_other(): assert 0\n")
    result = pytester.runpytest()
    result.stdout.fnmatch_lines(
        [
            "it  FAIL  0.285 (2 of 7) *",
            "  blocks: a.x.here: sub/test_it.py:3: assert 0",
            "  blocks: a.x.folder: sub/test_it.py:3: assert 0",
            "  warns: a.x.none: expected tests 'test_it.py::TestI' in this session, *",
        ]
    )


def test_a_rule_has_the_verdict_of_the_tests_it_names(
    pytester: pytest.Pytester, write_rule_file: Write, workers: tuple[str, ...]
) -> None:
    write_rule_file(BOUND)
    pytester.makepyfile(
        test_it="""
        import pytest

        def test_sum(): assert 0

        def test_summary(): pass

        @pytest.mark.slow
        class TestSlow:
            def test_one(self): pass
            def test_two(self): assert 0

        @pytest.mark.loop_rule("a.x.both", severity="info")
        def test_both(): assert 0
        """
    )
    pytester.makeini("[pytest]\nmarkers = slow")
    result = pytester.runpytest(*workers)
    result.stdout.fnmatch_lines(
        [
            "it  FAIL  0 (0 of 6) < 0.9 in phase B, 4 rules: 2 failed, 2 warned",
            "  blocks: a.x.marked: test_it.py:10: assert 0",
            "  blocks: a.x.both: test_it.py:13: assert 0",
            "  warns: a.x.sum: test_it.py:3: assert 0",
            "  warns: a.x.none: *expected tests 'tests/none.py' in this session, found none: add their path to the command*",
        ]
    )
    outcomes = result.parseoutcomes()
    assert outcomes["failed"] == 2
    assert outcomes["warned"] == 2


@pytest.mark.parametrize(
    ("mark", "message"),
    [
        ("()", "loop_rule: expected one id such as 'a.correctness.totals', found ()"),
        ("(5)", "loop_rule: expected one id such as 'a.correctness.totals', found (5,)"),
        ("('a', severity='bad')", "loop_rule: expected 'fail', 'warn' or 'info' for severity, found 'bad'"),
        ("('a', phase='C')", "loop_rule: expected 'A' or 'B' for phase, found 'C'"),
        ("('a', weight=-1)", "loop_rule: expected a finite number >= 0 for weight, found -1"),
        ("('a', weight=float('nan'))", "loop_rule: expected a finite number >= 0 for weight, found nan"),
        ("('a', weight=True)", "loop_rule: expected a finite number >= 0 for weight, found true"),
        ("('a', holdout=1)", "loop_rule: expected True or False for holdout, found 1"),
        ("('a', description=5)", "loop_rule: expected text for description, found 5"),
        (
            "('a', sevrity='warn')",
            "loop_rule: expected one of severity, weight, phase, description, holdout, found 'sevrity'",
        ),
        (
            "('other', severity='warn')",
            "loop_rule: expected severity='fail' as in another test of 'other', found 'warn'",
        ),
    ],
)
def test_an_invalid_mark_is_an_error_of_its_test(pytester: pytest.Pytester, mark: str, message: str) -> None:
    module = pytester.makepyfile(
        f"""
        import pytest

        @pytest.mark.loop_rule("other", severity="fail")
        def test_fine(): pass

        @pytest.mark.loop_rule{mark}
        def test_it(): pass
        """
    )
    result = pytester.runpytest()
    result.assert_outcomes(passed=1, errors=1)
    assert f"ERROR {module.name}::test_it - Failed: {message}" in result.stdout.str()
    assert "Traceback" not in result.stdout.str()


def test_rules_of_files_can_use_fixtures(
    pytester: pytest.Pytester, write_rule_file: Write, workers: tuple[str, ...]
) -> None:
    pytester.makeconftest(
        """
        import os
        from typing import Any
        import pytest
        from pydantic import BaseModel

        class Answer(BaseModel):
            equals: int
            def run(self, context):
                return context.fixtures["answer"] == self.equals

        def pytest_loop_checks():
            return {"answer": Answer}

        @pytest.fixture(scope="session")
        def base(): return 40

        @pytest.fixture(scope="module")
        def answer(base, tmp_path): return base + 2

        @pytest.fixture(scope="module")
        def tmp_path(tmp_path_factory): return tmp_path_factory.mktemp("x")
        """
    )
    write_rule_file(
        """
        rules:
          - {id: a.x.right, description: R, fixtures: [answer], check: {answer: {equals: 42}}}
          - {id: a.x.wrong, description: W, fixtures: [answer], check: {answer: {equals: 41}}}
          - {id: a.x.none, description: N, fixtures: [nobody], check: {command: "true"}}
        """
    )
    result = pytester.runpytest(*workers)
    result.assert_outcomes(passed=1, failed=1, errors=1)
    result.stdout.fnmatch_lines(["*fixture 'nobody' not found*", "it  FAIL  0.333 (2 of 6) *"])


def test_autouse_fixtures_apply_to_rules(pytester: pytest.Pytester, write_rule_file: Write) -> None:
    pytester.makeconftest(
        """
        import pytest

        @pytest.fixture(autouse=True)
        def prepared(tmp_path_factory):
            import os
            os.environ["PREPARED"] = "yes"
            yield
            del os.environ["PREPARED"]
        """
    )
    write_rule_file("rules: [{id: a.x.y, description: x, check: {command: printenv PREPARED}}]")
    pytester.runpytest().assert_outcomes(passed=1)


def test_third_parties_add_kinds_of_checks(pytester: pytest.Pytester, write_rule_file: Write) -> None:
    pytester.makeconftest(
        """
        from pytest_loop import Check, Finding

        class Shorter(Check):
            shorter: int
            strict: bool = False
            reads_artifact = True

            def run(self, context):
                document = context.document()
                if len(document.text) >= self.shorter:
                    yield Finding(expected=f"less than {self.shorter} characters", found=str(len(document.text)), where=document.shown)

        def pytest_loop_checks():
            return {"shorter": Shorter}
        """
    )
    (pytester.path / "doc.md").write_text("hello")
    write_rule_file(
        """
        artifact: doc.md
        rules:
          - {id: a.x.ok, description: ok, check: {shorter: 10}}
          - {id: a.x.no, description: nope, check: {not: {shorter: 3, strict: true}}}
          - {id: a.x.bad, description: bad, check: {any: [{shorter: 3}, {shorter: 4}]}}
        """
    )
    result = pytester.runpytest()
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["doc.md: expected less than 3 characters or less than 4 characters, found 5"])
    write_rule_file("artifact: doc.md\nrules: [{id: a.x.ok, description: ok, check: {shorter: 10, stict: true}}]")
    pytester.runpytest().stdout.fnmatch_lines(["it.rules.yaml:2: expected `strict`, found the unknown key `stict`"])


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ("{'command': Mine}", "pytest_loop_checks: expected a new name, found 'command', which exists already"),
        (
            "{'mine': dict}",
            "pytest_loop_checks: expected a pydantic model with run(context) for 'mine', found <class 'dict'>",
        ),
        (
            "{'mine': BaseModel}",
            "pytest_loop_checks: expected a pydantic model with run(context) for 'mine', found *BaseModel*",
        ),
    ],
)
def test_an_invalid_kind_is_a_collection_error(
    pytester: pytest.Pytester, write_rule_file: Write, returned: str, message: str
) -> None:
    pytester.makeconftest(
        f"from pydantic import BaseModel\nfrom pytest_loop import Check as Mine\ndef pytest_loop_checks(): return {returned}"
    )
    write_rule_file("rules: [{id: a.x.ok, description: ok, check: x}]")
    pytester.runpytest().stdout.fnmatch_lines([message])


def test_a_kind_whose_model_describes_its_value_needs_a_mapping(
    pytester: pytest.Pytester, write_rule_file: Write
) -> None:
    pytester.makeconftest(
        "from pydantic import BaseModel\nclass M(BaseModel):\n    a: int\n    b: int = 0\n    def run(self, context): pass\n"
        "def pytest_loop_checks(): return {'mine': M}"
    )
    write_rule_file(
        "rules:\n - {id: a.x.ok, description: ok, check: {mine: 5}}\n - {id: a.x.no, description: nope, check: {mine: {b: x}}}"
    )
    pytester.runpytest().stdout.fnmatch_lines(
        [
            "it.rules.yaml:2: expected a mapping with a, b for `mine`, found 5",
            "it.rules.yaml:3: expected the key `a`, found none",
        ]
    )
