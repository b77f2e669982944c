"""Lessons of earlier runs: recent, undamaged, and of other runs only."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from pytest_loop.core.model.vocabulary import Kind
from pytest_loop.run.earlier_runs import load_lessons
from pytest_loop.store.project_runs import Store
from tests.core.scripted_run import ScriptedRun


def write_run(store: Store, alias: str, *, age: timedelta = timedelta()) -> None:
    """Write a run whose only edit fixed a failure."""
    run = ScriptedRun().evaluate("a.x.y").complete(Kind.REFINEMENT_DONE, diff="-red\n+blue").evaluate()
    written_at = (datetime.now(timezone.utc) - age).isoformat()
    files = store.get_run(alias)
    files.acquire()
    files.append([event.model_copy(update={"ts": written_at}) for event in run.events], run.state)
    files.release()


def test_lessons_come_from_other_recent_runs(tmp_path: Path) -> None:
    store = Store(tmp_path)
    write_run(store, "recent")
    write_run(store, "current")
    write_run(store, "outdated", age=timedelta(days=100))
    lessons = load_lessons(store, store.get_run("current"))
    assert [(lesson.run, lesson.rule, lesson.diff) for lesson in lessons] == [("recent", "a.x.y", "-red\n+blue")]


@pytest.mark.parametrize("text", ["", "{torn"])
def test_damaged_run_has_no_lessons(tmp_path: Path, text: str) -> None:
    store = Store(tmp_path)
    write_run(store, "damaged")
    history = store.get_run("damaged").history
    lines = history.read_text().splitlines(keepends=True)
    history.write_text("".join([lines[0], text, *lines[2:]]))
    assert load_lessons(store, store.get_run("current")) == ()
