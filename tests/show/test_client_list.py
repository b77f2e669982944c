"""The lines about installed agents."""

from __future__ import annotations

from pytest_loop.core.model.clients import Client
from pytest_loop.show.client_list import render_client_lines

OURS = "built in: builtin, which needs no model and repairs Python code"


def test_each_installed_client_has_a_line_and_the_others_share_one() -> None:
    clients = [
        Client(
            name="codex",
            tested_version="0.163.0",
            path="/bin/codex",
            version="0.163.0",
            reports_tokens=True,
            can_resume=True,
        ),
        Client(
            name="claude",
            tested_version="2.1.325",
            path="/bin/claude",
            version="2.2.0",
            reports_cost=True,
            takes_schema=True,
        ),
        Client(name="goose", tested_version="1.34.0", path="/bin/goose"),
        Client(name="aider", tested_version="0.86.2"),
        Client(name="qwen", tested_version="0.24.4"),
    ]
    assert list(render_client_lines(clients)) == [
        "codex   0.163.0: tokens, resumes its conversation",
        "claude  2.2.0 (tested with 2.1.325): cost, JSON schema",
        "goose   version unknown (tested with 1.34.0): reports nothing",
        "not installed: aider, qwen",
        OURS,
    ]


def test_no_missing_line_if_all_clients_are_installed() -> None:
    assert list(
        render_client_lines(
            [Client(name="aider", tested_version="0.86.2", path="/a", version="0.86.2", reports_cost=True)]
        )
    ) == ["aider  0.86.2: cost", OURS]
    assert list(render_client_lines([])) == [OURS]
