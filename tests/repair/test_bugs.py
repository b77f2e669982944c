"""The project's own bugs: small packages that work, broken in one place."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from tests.repair.conftest import Repair, Write

HERE = Path(__file__).parent / "bugs"
PROJECTS: dict[str, dict[str, str]] = yaml.safe_load((HERE / "projects.yaml").read_text(encoding="utf-8"))
A_FEW = ("await", "early_exit", "module_const", "add_import")


class Bug(NamedTuple):
    kind: str
    project: str
    path: str
    right: str
    wrong: str


BUGS = [Bug(*row) for row in yaml.safe_load((HERE / "bugs.yaml").read_text(encoding="utf-8"))]
# `tox -e bugs`: all of them.
EVERY = bool(os.environ.get("PYTEST_LOOP_EVERY_BUG"))


def chosen() -> list[Bug]:
    return BUGS if EVERY else [next(one for one in BUGS if one.kind == kind) for kind in A_FEW]


def test_there_are_many_bugs_of_different_kinds() -> None:
    assert len(BUGS) >= 20
    assert len({one.kind for one in BUGS}) >= 20
    for one in BUGS:
        assert PROJECTS[one.project][one.path].count(one.right) == 1, one


@pytest.mark.parametrize("bug", chosen(), ids=lambda one: f"{one.kind}-{one.project}")
def test_a_bug_is_fixed(bug: Bug, write: Write, repair: Repair) -> None:
    files = dict(PROJECTS[bug.project])
    files[bug.path] = files[bug.path].replace(bug.right, bug.wrong)
    found = repair(write(files), seconds=40.0, seconds_after_green=0.0)
    assert found.failing
    assert found.patches, found.end_reason
    best = found.patches[0]
    assert not best.remaining
    assert not best.broken
    assert best.path == bug.path
    compile(best.after, best.path, "exec")
