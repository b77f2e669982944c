"""The engine repairs small packages that have a bug in one place."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from tests.repair.conftest import Repair, Write

BUGS_FOLDER = Path(__file__).parent / "bugs"
PROJECTS: dict[str, dict[str, str]] = yaml.safe_load((BUGS_FOLDER / "projects.yaml").read_text(encoding="utf-8"))
DAILY_KINDS = ("await", "early_exit", "module_const", "add_import")


class Bug(NamedTuple):
    kind: str
    project: str
    path: str
    right: str
    wrong: str


BUGS = [Bug(*row) for row in yaml.safe_load((BUGS_FOLDER / "bugs.yaml").read_text(encoding="utf-8"))]
# Set by `tox -e bugs`.
IS_EVERY = bool(os.environ.get("PYTEST_LOOP_EVERY_BUG"))


def select_bugs() -> list[Bug]:
    return BUGS if IS_EVERY else [next(bug for bug in BUGS if bug.kind == kind) for kind in DAILY_KINDS]


def test_corpus_has_at_least_twenty_kinds_of_bugs() -> None:
    assert len(BUGS) >= 20
    assert len({bug.kind for bug in BUGS}) >= 20
    for bug in BUGS:
        assert PROJECTS[bug.project][bug.path].count(bug.right) == 1, bug


@pytest.mark.parametrize("bug", select_bugs(), ids=lambda bug: f"{bug.kind}-{bug.project}")
def test_bug_is_fixed_where_it_is(bug: Bug, write: Write, repair: Repair) -> None:
    files = dict(PROJECTS[bug.project])
    files[bug.path] = files[bug.path].replace(bug.right, bug.wrong)
    result = repair(write(files), seconds=40.0, seconds_after_green=0.0)
    assert result.failing
    assert result.patches, result.end_reason
    best = result.patches[0]
    assert not best.remaining
    assert best.path == bug.path
    compile(best.after, best.path, "exec")


def test_real_sized_bugs_of_the_benchmark_can_be_put_in() -> None:
    """Every right text is in its file exactly once, and the changed code is valid."""
    folder = Path(__file__).resolve().parents[2] / "benchmarks/real_bugs"
    rows = [
        (path.parent, row) for path in folder.glob("*/bugs.yaml") for row in yaml.safe_load(path.read_text("utf-8"))
    ]
    assert len(rows) >= 30
    for project, row in rows:
        for name, right, wrong in row["changes"]:
            text = (project / name).read_text("utf-8")
            assert len(text.splitlines()) > 500
            assert text.count(right) == 1, row["id"]
            compile(text.replace(right, wrong), name, "exec")
