"""Which changes make the watcher judge again."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_loop.cli.watch import Watcher
from pytest_loop.core.model.rules import Criteria, Evidence, Outcome, Rule, SessionPlan
from pytest_loop.core.model.session_order import SessionOrder
from pytest_loop.session.result import SessionResult
from pytest_loop.session.runner import SessionError
from pytest_loop.workspace.file_scan import ScanScope, scan_files
from pytest_loop.workspace.file_tree import FileTree

KEY = "it.rules.yaml::a.x.green"


class WordSession:
    """Judges without pytest: the document must say `green`; a document that says `crash` ends the session."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def evaluate(self, order: SessionOrder, *extra: str) -> SessionResult:
        text = self.path.read_text()
        if "crash" in text:
            raise SessionError("the session ended with signal 9")
        rule = Rule(id="a.x.green", description="It is green")
        plan = SessionPlan(
            criteria=(Criteria(name="it", source="it.rules.yaml", rules=(rule,)),), items={"item": (KEY,)}
        )
        outcome = Outcome.PASSED if "green" in text else Outcome.FAILED
        return SessionResult(plan=plan, evidence={"item": Evidence(outcome=outcome)}, exit_status=0)


@pytest.fixture
def watcher(tmp_path: Path) -> Watcher:
    lines: list[str] = []
    session = WordSession(tmp_path / "doc.md")
    return Watcher(tmp_path, ScanScope(""), session, SessionOrder(), {}, lines.append, lambda **_arguments: None)


def scan(watcher: Watcher) -> FileTree:
    return scan_files(watcher.root, watcher.scope)


@pytest.mark.parametrize(
    ("text", "has_passed", "line"),
    [
        ("green", True, "PASS: score 1, 1 of 1 rules pass"),
        ("red", False, "FAIL: score 0, 0 of 1 rules pass"),
        ("crash", False, "the session ended with signal 9"),
    ],
)
def test_verdict_is_printed(tmp_path: Path, text: str, has_passed: bool, line: str) -> None:
    (tmp_path / "doc.md").write_text(text)
    lines: list[str] = []
    session = WordSession(tmp_path / "doc.md")
    watcher = Watcher(tmp_path, ScanScope(""), session, SessionOrder(), {}, lines.append, lambda **_arguments: None)
    watcher.judge()
    assert (watcher.has_passed, lines) == (has_passed, [line])


def test_file_that_every_session_writes_is_ignored(watcher: Watcher) -> None:
    trees = [scan(watcher)]
    for number in range(3):
        (watcher.root / "report.txt").write_text(f"{number}")
        trees.append(scan(watcher))
    assert watcher.find_changes(trees[0], trees[1]) == {"report.txt"}
    assert watcher.find_changes(trees[1], trees[2]) == set()
    assert watcher.find_changes(trees[2], trees[3]) == set()


def test_file_of_the_user_that_changes_during_one_session_is_a_change(watcher: Watcher) -> None:
    before = scan(watcher)
    (watcher.root / "a.py").write_text("1")
    middle = scan(watcher)
    (watcher.root / "b.py").write_text("2")
    assert watcher.find_changes(before, middle) == {"a.py"}
    assert watcher.find_changes(middle, scan(watcher)) == {"b.py"}
