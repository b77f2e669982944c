"""What earlier runs of this project teach, read from their histories: there is no other store."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone

from pytest_loop.core.reporting.lessons import Lesson, lessons
from pytest_loop.store.project_runs import Store
from pytest_loop.store.run_files import RunFiles

# Older runs speak of a project that is no more.
LONGEST_DAYS = 90
MOST_RUNS = 50


def remembered(store: Store, own: RunFiles) -> tuple[Lesson, ...]:
    """The lessons of the other runs, the latest of them where there are very many."""
    others = [files for files in store.list_runs() if files.alias != own.alias]
    latest = sorted(others, key=_changed, reverse=True)[:MOST_RUNS]
    return tuple(lesson for files in latest for lesson in _of(files))


def _of(files: RunFiles) -> Iterator[Lesson]:
    """Those of a run that is recent, and whose history nobody has edited."""
    since = (datetime.now(timezone.utc) - timedelta(days=LONGEST_DAYS)).isoformat()
    history = files.read_history()
    if history.events and not history.damage and history.events[-1].ts >= since:
        yield from lessons(history.events, files.alias)


def _changed(files: RunFiles) -> float:
    try:
        return files.history.stat().st_mtime
    except OSError:
        return 0.0
