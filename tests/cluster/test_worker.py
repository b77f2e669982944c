"""A worker moves the paths of a project into its tree, and protects its own environment."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pytest_loop.cluster.environment import BuildError
from pytest_loop.cluster.job import FencePlan, Job, pack
from pytest_loop.cluster.worker import _build_fence, _judge_elsewhere, _replace_root
from pytest_loop.core.model.session_order import SessionOrder

TREE = Path("/tmp/trees/1/shop")


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("/work/shop", "{tree}"),
        ("/work/shop/tests", "{tree}/tests"),
        ("--rootdir=/work/shop", "--rootdir={tree}"),
        ("-c/work/shop/pytest.ini", "-c{tree}/pytest.ini"),
        ('{"root": "/work/shop", "files": ["/work/shop/a.py"]}', '{"root": "{tree}", "files": ["{tree}/a.py"]}'),
        ("/work/shop-env/bin", "/work/shop-env/bin"),
        ("/work/shop.old", "/work/shop.old"),
        ("/work/shop2", "/work/shop2"),
        ("/copy/work/shop/tests", "/copy/work/shop/tests"),
    ],
)
def test_only_the_project_is_moved(word: str, expected: str) -> None:
    assert _replace_root(word, "/work/shop", TREE) == expected.replace("{tree}", str(TREE))


def test_the_environment_of_the_worker_is_read_only(tmp_path: Path) -> None:
    """Also if its path begins with that of the project, or lies in the project, which is not sent with it."""
    for root in (sys.prefix[:-1], str(Path(sys.prefix).parent)):
        tree = tmp_path / "tree"
        tree.mkdir(exist_ok=True)
        plan = FencePlan(tool="bubblewrap", read_only=(sys.prefix,), writable=(root,))
        fence = _build_fence(plan, root, tree)
        assert str(Path(sys.prefix).resolve()) in fence.read_only
        assert fence.writable == (str(tree),)
    opened = FencePlan(tool="bubblewrap", read_only=(), writable=(root, sys.prefix))
    fence = _build_fence(opened, str(tmp_path / "other"), tree)
    assert sys.prefix not in fence.read_only


def test_another_interpreter_judges_or_says_why_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Modules of the working folder are not imported there."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "json.py").write_text("raise SystemExit('the wrong module')")
    job = pack(Job(project="none", base="none", changes="", order=SessionOrder()))
    assert _judge_elsewhere(Path(sys.executable), str(tmp_path), job, 1, 1).missing == ("none", "none")
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho no such module >&2\nexit 1\n")
    broken.chmod(0o755)
    with pytest.raises(BuildError, match="the environment that was built cannot judge: no such module"):
        _judge_elsewhere(broken, str(tmp_path), job, 1, 1)
