from __future__ import annotations

import pytest

from pytest_loop.agents import installed_clients
from pytest_loop.agents.builtin_agent import BUILTIN
from pytest_loop.core.model.run_state import Limits


@pytest.mark.parametrize(("here", "found"), [((), ""), (("codex",), "codex"), (("codex", "claude"), "")])
def test_who_names_nobody_gets_the_only_one(monkeypatch: pytest.MonkeyPatch, here: tuple[str, ...], found: str) -> None:
    class Stub:
        def __init__(self, path: str | None) -> None:
            self.find_program = lambda: path

    known = {name: Stub("/bin/x" if name in here else None) for name in ("codex", "claude", "goose")}
    monkeypatch.setattr(installed_clients, "load_presets", lambda: known)
    assert installed_clients.choose_default_agent(are_files_edited=False) == found
    assert installed_clients.choose_default_agent(are_files_edited=True) == (found if here else BUILTIN)


def test_limits_that_nobody_can_observe_are_said() -> None:
    said = list(
        installed_clients.list_unobservable_limits(
            ["codex:gpt-5", "opencode", "python:a:b", "command:x"], Limits(usd=5, tokens=1000)
        )
    )
    assert said == [
        "codex:gpt-5 does not tell what it costs: the limit of 5 USD cannot be observed",
        "command:x does not tell what it costs: the limit of 5 USD cannot be observed",
        "command:x does not tell its tokens: the limit of 1,000 cannot be observed",
    ]
    assert list(installed_clients.list_unobservable_limits(["codex"], Limits(usd=None))) == []
