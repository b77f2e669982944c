from __future__ import annotations

import pytest

from pytest_loop.agents import installed_clients
from pytest_loop.agents.builtin_agent import BUILTIN
from pytest_loop.core.model.run_state import Limits


@pytest.mark.parametrize(("installed", "default"), [((), ""), (("codex",), "codex"), (("codex", "claude"), "")])
def test_the_only_installed_client_is_the_default_agent(
    monkeypatch: pytest.MonkeyPatch, installed: tuple[str, ...], default: str
) -> None:
    class Stub:
        def __init__(self, path: str | None) -> None:
            self.find_program = lambda: path

    presets = {name: Stub("/bin/x" if name in installed else None) for name in ("codex", "claude", "goose")}
    monkeypatch.setattr(installed_clients, "load_presets", lambda: presets)
    assert installed_clients.choose_default_agent(are_files_edited=False) == default
    assert installed_clients.choose_default_agent(are_files_edited=True) == (default if installed else BUILTIN)


def test_limits_without_reported_usage_are_listed() -> None:
    lines = list(
        installed_clients.list_unobservable_limits(
            ["codex:gpt-5", "opencode", "python:a:b", "command:x"], Limits(usd=5, tokens=1000)
        )
    )
    assert lines == [
        "codex:gpt-5 does not tell what it costs: the limit of 5 USD cannot be observed",
        "command:x does not tell what it costs: the limit of 5 USD cannot be observed",
        "command:x does not tell its tokens: the limit of 1,000 cannot be observed",
    ]
    assert list(installed_clients.list_unobservable_limits(["codex"], Limits(usd=None))) == []
