"""Which files are sealed follows from the rules of the draft and from its task."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_loop.cli.sealing import seal_files
from pytest_loop.core.model.rules import Proof, SessionPlan
from pytest_loop.core.model.vocabulary import Target
from pytest_loop.settings.options import AgentSettings
from pytest_loop.settings.settings import make_default_settings
from pytest_loop.store.project_runs import Store
from tests.run.parts import make_rules


def seal(root: Path, task: str = "fix until green", proof: Proof = Proof.EXECUTION, **fields: Any) -> Any:
    settings = make_default_settings(root, agents=AgentSettings(prompts="my/prompts"))
    values = {"target": Target.WORKSPACE, "plan": SessionPlan(items={"tests/test_a.py::test": ()}), **fields}
    draft: Any = SimpleNamespace(settings=settings, context=SimpleNamespace(task=SimpleNamespace(text=task)), **values)
    state: Any = SimpleNamespace(
        criteria=SimpleNamespace(rules=make_rules("a.x", proof=proof)), setup=SimpleNamespace(artifact="guide.md")
    )
    return seal_files(draft, state, Store(root).get_run("run"))


@pytest.mark.parametrize(
    ("fields", "path", "is_sealed"),
    [
        ({}, "tests/data.json", True),
        ({}, "tests/conftest.py", True),
        ({"task": "add the fixture to tests/conftest.py"}, "tests/conftest.py", False),
        ({"task": "update the guide, add tests/conftest.py", "target": Target.ARTIFACT}, "tests/conftest.py", True),
        ({}, "AGENTS.md", False),
        ({"proof": Proof.REVIEW}, "AGENTS.md", True),
        ({"proof": Proof.REVIEW}, "my/prompts/judge.md", True),
        ({}, ".npmrc", True),
        ({"proof": Proof.OBSERVATION}, ".npmrc", False),
        ({}, "config.mk", True),
        ({}, "shop.py", False),
    ],
)
def test_sealed_files(tmp_path: Path, fields: dict[str, Any], path: str, is_sealed: bool) -> None:
    (tmp_path / "Makefile").write_text("include config.mk\n")
    (tmp_path / "config.mk").touch()
    assert seal(tmp_path, **fields).sealed.matches(path) is is_sealed
