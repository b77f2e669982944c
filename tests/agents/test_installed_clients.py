from __future__ import annotations

from pathlib import Path

import pytest

from pytest_loop.agents import installed_clients
from pytest_loop.core.model.run_setup import Limits
from pytest_loop.core.model.vocabulary import BUILTIN


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
            ["codex:gpt-5", "opencode", "python:a:b", "command:x", "acp:kimi acp"], Limits(usd=5, tokens=1000)
        )
    )
    assert lines == [
        "codex:gpt-5 does not report its cost, so the limit of 5 USD cannot be enforced",
        "command:x does not report its cost, so the limit of 5 USD cannot be enforced",
        "command:x does not report its tokens, so the limit of 1,000 cannot be enforced",
        "acp:kimi acp does not report its cost, so the limit of 5 USD cannot be enforced",
        "acp:kimi acp does not report its tokens, so the limit of 1,000 cannot be enforced",
    ]
    assert list(installed_clients.list_unobservable_limits(["codex"], Limits(usd=None))) == []


@pytest.mark.parametrize(("output", "version"), [(" 1.34.0", "1.34.0"), ("goose version:v3.24.1", None)])
def test_another_program_of_the_same_name_is_no_client(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: str, version: str | None
) -> None:
    program = tmp_path / "goose"
    program.write_text(f"#!/bin/sh\necho '{output}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    [client] = [client for client in installed_clients.find_clients() if client.name == "goose"]
    assert client.version == version
    assert client.path == (str(program) if version else None)
