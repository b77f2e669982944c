"""Lessons from the histories of earlier runs of the same project."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone

from pytest_loop.core.reporting.lessons import Lesson, find_lessons
from pytest_loop.store.project_runs import Store
from pytest_loop.store.run_files import RunFiles

# Older runs are about a project that has changed too much.
MAX_AGE_DAYS = 90
MAX_RUNS = 50


def load_lessons(store: Store, current: RunFiles) -> tuple[Lesson, ...]:
    """Return the lessons of the latest other runs."""
    others = [files for files in store.list_runs() if files.alias != current.alias]
    latest = sorted(others, key=lambda files: files.last_change, reverse=True)[:MAX_RUNS]
    return tuple(lesson for files in latest for lesson in _load_run(files))


def _load_run(files: RunFiles) -> Iterator[Lesson]:
    """Yield the lessons of a run that is recent and whose history is undamaged."""
    since = (datetime.now(timezone.utc) - timedelta(days=MAX_AGE_DAYS)).isoformat()
    history = files.read_history()
    if history.events and not history.damage and history.events[-1].ts >= since:
        yield from find_lessons(history.events, files.alias)
