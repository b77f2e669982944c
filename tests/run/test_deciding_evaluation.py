"""The deciding evaluation: when it is held, that it starts cold in a clean room, and what it finds."""

from __future__ import annotations

import shlex
import site
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_loop.core.model.evaluation import Evaluation, Seal
from pytest_loop.core.model.rules import TESTS_SOURCE, Evidence, Outcome, SessionPlan
from pytest_loop.core.model.run_criteria import RunRule
from pytest_loop.core.model.vocabulary import Target
from pytest_loop.run.deciding_evaluation import QUICK_SECONDS
from pytest_loop.session.result import SessionResult
from pytest_loop.session.runner import SessionError, SessionStoppedError
from pytest_loop.workspace.clean_room import CleanRoom
from pytest_loop.workspace.environment import hash_site_files
from pytest_loop.workspace.sealed_files import SealedFiles
from tests.run.parts import SmallRun, make_rules, make_run

MakeShop = Callable[..., SmallRun]


@pytest.fixture
def make_shop(tmp_path: Path, request: pytest.FixtureRequest) -> MakeShop:
    """A function that returns a run that edits files, after its agent has worked."""

    def make(
        seconds: float = QUICK_SECONDS, written: tuple[str, ...] = (), rules: tuple[RunRule, ...] = ()
    ) -> SmallRun:
        (tmp_path / ".gitignore").write_text("*.log\n")
        (tmp_path / "tests").mkdir()
        (tmp_path / "tests/test_shop.py").write_text("red\n")
        (tmp_path / "shop.py").write_text("red\n")
        folder = tmp_path / ".loop" / "guide"
        project = SealedFiles(tmp_path, folder, ["/tests/"])
        request.addfinalizer(project.close)
        room = CleanRoom(project, folder)
        request.addfinalizer(room.close)
        seal = project.record_seal()
        seal = seal.model_copy(update={"left_out": room.record(), "session_seconds": seconds, "written": written})
        state = {"target": Target.WORKSPACE, "seal": seal, "plan": ("fix",)}
        run = make_run(tmp_path, project=project, state=state, rules=rules)
        return replace(run, context=replace(run.context, clean_room=room))

    return make


def evaluate(run: SmallRun) -> Evaluation:
    return run.make_step().make_evaluator().evaluate()


def list_orders(run: SmallRun) -> list[bool]:
    return [order.is_deciding for order in run.session.orders]


def list_findings(evaluation: Evaluation) -> list[tuple[str, str]]:
    return [(finding.kind, finding.path) for finding in evaluation.findings]


@pytest.mark.parametrize(
    ("seconds", "text", "expected"),
    [(0.1, "red", [False]), (0.1, "blue", [False, True]), (QUICK_SECONDS, "red", [True]), (0.0, "blue", [True])],
    ids=["quick and failing", "quick and passing", "long", "unknown"],
)
def test_quick_suite_is_judged_once_more_if_it_passes_and_others_are_judged_in_the_room(
    make_shop: MakeShop, seconds: float, text: str, expected: list[bool]
) -> None:
    run = make_shop(seconds)
    (run.root / "shop.py").write_text(text)
    assert evaluate(run).passed is (text == "blue")
    assert list_orders(run) == expected


RED, BLUE, KIND = (f"{TESTS_SOURCE}::test_shop.py::test.{word}" for word in ("red", "blue", "kind"))


@pytest.mark.parametrize(
    ("text", "seconds", "iteration", "expected"),
    [
        ("blue", QUICK_SECONDS, 2, ([RED], 2, [(RED,)])),
        ("blue", QUICK_SECONDS, 4, ([RED, KIND], 0, [(RED,), ()])),
        ("blue", 0.1, 2, ([RED, KIND], 0, [(RED,), ()])),
        ("red blue", QUICK_SECONDS, 2, ([KIND], 0, [(RED,), ()])),
    ],
    ids=["long", "last iteration", "quick", "fixed"],
)
def test_only_failures_of_a_long_suite_are_repeated_until_they_pass(
    make_shop: MakeShop, text: str, seconds: float, iteration: int, expected: tuple[list[str], int, list[tuple[str]]]
) -> None:
    run = make_shop(seconds, rules=make_rules(RED, BLUE, KIND, phase="A"))
    (run.root / "shop.py").write_text("kind blue")
    before = evaluate(run)
    assert [result.id for result in before.failed] == [RED]
    run.session.orders.clear()
    (run.root / "shop.py").write_text(text)
    evaluation = run.make_step(evaluation=before, iteration=iteration).make_evaluator().evaluate()
    selections = [order.selected for order in run.session.orders]
    assert ([result.id for result in evaluation.failed], evaluation.not_repeated, selections) == expected


@pytest.mark.parametrize(
    ("reach", "expected"),
    [
        ({}, [(RED,)]),
        ({BLUE: frozenset({"shop.py"}), KIND: frozenset({"tests/test_shop.py"})}, [(RED, BLUE)]),
        ({BLUE: frozenset({"other.py"})}, [()]),
    ],
    ids=["unknown", "of a test", "of no test"],
)
def test_tests_that_execute_an_edited_file_run_with_the_failures(
    make_shop: MakeShop, reach: dict[str, frozenset[str]], expected: list[tuple[str]]
) -> None:
    run = make_shop(rules=make_rules(RED, BLUE, KIND, phase="A"))
    (run.root / "shop.py").write_text("kind blue")
    before = evaluate(run)
    run.session.orders.clear()
    run.context.affected_tests.reach = reach
    (run.root / "shop.py").write_text("kind, not the other")
    evaluation = run.make_step(evaluation=before).make_evaluator().evaluate()
    assert [order.selected for order in run.session.orders] == expected
    assert all(order.records_reach is bool(reach) for order in run.session.orders)
    assert (BLUE in {result.id for result in evaluation.failed}) is bool(reach)


@pytest.mark.parametrize("change", [{"void": True}, {"phase": "B"}], ids=["void", "another phase"])
def test_a_long_suite_runs_as_a_whole_if_its_last_evaluation_does_not_count(
    make_shop: MakeShop, change: dict[str, object]
) -> None:
    run = make_shop(rules=make_rules(RED, BLUE, phase="A"))
    before = evaluate(run).model_copy(update=change)
    run.session.orders.clear()
    assert run.make_step(evaluation=before).make_evaluator().evaluate().not_repeated == 0
    assert run.session.orders[-1].selected == ()


def test_nothing_decides_before_an_agent_has_worked(make_shop: MakeShop) -> None:
    run = make_shop()
    run.make_step(plan=()).make_evaluator().evaluate()
    assert list_orders(run) == [False]


def test_product_in_an_ignored_file_does_not_pass_and_the_file_is_named(make_shop: MakeShop) -> None:
    run = make_shop(0.1)
    impl = run.root / "impl.log"
    impl.write_text("blue")
    (run.root / "shop.py").unlink()
    (run.root / "shop.py").symlink_to("impl.log")
    evaluation = evaluate(run)
    assert (evaluation.passed, evaluation.void) == (False, False)
    assert list_findings(evaluation) == [("left out", "impl.log")]
    assert impl.read_text() == "blue"


def test_leftovers_of_an_honest_agent_are_not_named(make_shop: MakeShop) -> None:
    run = make_shop()
    (run.root / "debug.log").write_text("new")
    (run.root / "shop.py").write_text("blue")
    evaluation = evaluate(run)
    assert (evaluation.is_reached, evaluation.findings) == (True, ())


@pytest.mark.parametrize("written", [(), ("tests/test_shop.py",), ("tests/",)])
def test_sealed_file_that_is_written_and_restored_makes_the_evaluation_void(
    make_shop: MakeShop, written: tuple[str, ...]
) -> None:
    run = make_shop(written=written)
    (run.root / "shop.py").write_text("blue")
    judge, test = run.session.evaluate, run.root / "tests/test_shop.py"

    def evaluate_and_write(*arguments: object) -> object:
        test.write_text("weak\n")
        test.write_text("red\n")
        return judge(*arguments)  # type: ignore[arg-type]

    run.session.evaluate = evaluate_and_write  # type: ignore[method-assign,assignment]
    evaluation = evaluate(run)
    assert list_findings(evaluation) == ([] if written else [("sealed", "tests/test_shop.py")])
    assert evaluation.void is (not written)


def test_file_that_cannot_be_replaced_is_a_finding_that_does_not_void(
    make_shop: MakeShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pytest_loop.workspace.clean_room.MAX_SIZE", 0)
    run = make_shop()
    log = run.root / "debug.log"
    log.write_text("of the start")
    room = run.context.clean_room
    assert room is not None
    room.record()
    log.write_text("of the agent")
    (run.root / "shop.py").write_text("blue")
    evaluation = evaluate(run)
    assert list_findings(evaluation) == [("not verified", "debug.log")]
    assert evaluation.is_reached


def test_run_without_a_list_of_left_out_files_is_judged_cold(make_shop: MakeShop) -> None:
    run = make_shop()
    run = replace(run, context=replace(run.context, clean_room=None))
    run.make_step(
        seal=Seal(files=run.state.setup.seal.files if run.state.setup.seal else "")
    ).make_evaluator().evaluate()
    assert list_orders(run) == [True]


def test_build_runs_in_the_clean_room_before_the_session(make_shop: MakeShop) -> None:
    run = make_shop()
    assert run.state.setup.seal is not None
    (run.root / "shop.log").write_text("forged")
    script = "from pathlib import Path; assert not Path('shop.log').exists(); Path('shop.py').write_text('blue')"
    command = shlex.join([sys.executable, "-c", script])
    seal = run.state.setup.seal.model_copy(update={"build": command})
    assert run.make_step(seal=seal).make_evaluator().evaluate().passed
    broken = seal.model_copy(update={"build": "false"})
    with pytest.raises(SessionError, match=r"loop_build = false: exit code 1"):
        run.make_step(seal=broken).make_evaluator().evaluate()
    with pytest.raises(SessionStoppedError):
        replace(run.make_step(seal=seal), should_continue=lambda: False).make_evaluator().evaluate()


def test_installed_package_that_changed_makes_the_evaluation_void(
    make_shop: MakeShop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages = tmp_path.parent / f"{tmp_path.name}-packages"
    packages.mkdir()
    (packages / "old.py").write_text("")
    monkeypatch.setattr(site, "getsitepackages", lambda: [str(packages)])
    run = make_shop()
    assert run.state.setup.seal is not None
    time.sleep(0.02)
    seal = run.state.setup.seal.model_copy(update={"taken_at": time.time_ns(), "site": hash_site_files()})
    time.sleep(0.02)
    (packages / "shop.py").write_text("blue")
    (run.root / "shop.py").write_text("blue")
    evaluation = run.make_step(seal=seal).make_evaluator().evaluate()
    assert evaluation.void
    (finding,) = evaluation.findings
    assert finding.kind == "site"
    assert finding.detail == f"{packages / 'shop.py'} changed; --loop-fence-allow PATH permits installs"


@pytest.mark.parametrize("is_needed", [True, False])
def test_command_that_passes_only_with_a_new_test_is_void(make_shop: MakeShop, is_needed: bool) -> None:
    run = make_shop()
    new_test = run.root / "test_more.py"
    new_test.write_text("blue")
    (run.root / "shop.py").write_text("blue")
    run.session.path = new_test if is_needed else run.session.path
    evaluation = evaluate(run)
    assert new_test.exists()
    assert (evaluation.passed, evaluation.void) == (True, is_needed)
    assert list_findings(evaluation) == ([("interference", "test_more.py")] if is_needed else [])


@pytest.mark.parametrize(
    "text", ["import shop\n\n\ndef test_more(): shop\n", "import shop\n\n\ndef test_more(): assert shop\n"]
)
def test_goal_that_a_new_test_reaches_without_an_assertion_is_void(make_shop: MakeShop, text: str) -> None:
    run = make_shop()
    (run.root / "test_more.py").write_text(text)
    key = run.state.criteria.rules[0].key
    seal = run.state.setup.seal
    assert seal
    for outcome in (Outcome.PASSED, Outcome.PASSED, Outcome.FAILED):  # all, the new tests, all without them
        evidence = {key: Evidence(outcome=outcome, tests=(2, 2))}
        result = SessionResult(SessionPlan(items={key: (key,)}), evidence, canaries=[True], exit_status=0)
        run.session.results.append(result)
    state = run.state.replace(seal=seal.model_copy(update={"test_counts": {key: 2}}))
    evaluation = replace(run, state=state).make_step().make_evaluator().evaluate()
    assert (evaluation.passed, evaluation.void) == (True, "assert" not in text)
    assert list_findings(evaluation) == ([] if "assert" in text else [("ratchet", "test_more.py")])
