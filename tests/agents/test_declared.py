from __future__ import annotations

from pathlib import Path

import pytest

from pytest_loop.agents import installed_clients
from pytest_loop.agents.builtin_agent import NAME as BUILTIN
from pytest_loop.agents.declared import declared
from pytest_loop.agents.protocol import AgentUnavailableError
from pytest_loop.core.model.run_state import Limits


def test_names_stand_for_what_they_are_declared_as(tmp_path: Path) -> None:
    assert declared(tmp_path) == {}
    (tmp_path / "pyproject.toml").write_text('[tool.pytest-loop.agents.mine]\nspec = "command:cat"\n')
    assert declared(tmp_path) == {"mine": "command:cat"}
    (tmp_path / "pyproject.toml").write_text("[tool.pytest-loop]\nagents = 5\n")
    assert declared(tmp_path) == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[tool.pytest-loop.agents]\nmine = 5\n",
            r'expected spec = "..." in \[tool.pytest-loop.agents.mine\], found 5',
        ),
        ("[tool.pytest-loop.agents.mine]\nspec = 5\n", "expected spec = "),
        ("[tool", "cannot read the agents in "),
    ],
)
def test_what_cannot_be_understood_is_said(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(AgentUnavailableError, match=message):
        declared(tmp_path)


@pytest.mark.parametrize(("here", "found"), [((), ""), (("codex",), "codex"), (("codex", "claude"), "")])
def test_who_names_nobody_gets_the_only_one(monkeypatch: pytest.MonkeyPatch, here: tuple[str, ...], found: str) -> None:
    class Stub:
        def __init__(self, path: str | None) -> None:
            self.where = lambda: path

    known = {name: Stub("/bin/x" if name in here else None) for name in ("codex", "claude", "goose")}
    monkeypatch.setattr(installed_clients, "presets", lambda: known)
    assert installed_clients.nobody_named(are_files_edited=False) == found
    assert installed_clients.nobody_named(are_files_edited=True) == (found if here else BUILTIN)


def test_limits_that_nobody_can_observe_are_said() -> None:
    said = list(
        installed_clients.unobserved(["codex:gpt-5", "opencode", "python:a:b", "command:x"], Limits(usd=5, tokens=1000))
    )
    assert said == [
        "codex:gpt-5 does not tell what it costs: the limit of 5 USD cannot be observed",
        "command:x does not tell what it costs: the limit of 5 USD cannot be observed",
        "command:x does not tell its tokens: the limit of 1,000 cannot be observed",
    ]
    assert list(installed_clients.unobserved(["codex"], Limits(usd=None))) == []
