"""Render the list of agent clients, installed and missing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pytest_loop.core.model.clients import Client

_ABILITIES = (
    ("reports_tokens", "tokens"),
    ("reports_cost", "cost"),
    ("takes_schema", "JSON schema"),
    ("can_resume", "resumes its conversation"),
)


def render_client_lines(clients: Iterable[Client]) -> Iterator[str]:
    """Render version and abilities of each installed client, then the missing ones and the built-in agent."""
    clients = list(clients)
    installed = [client for client in clients if client.path]
    width = max((len(client.name) for client in installed), default=0)
    for client in installed:
        abilities = [ability for field, ability in _ABILITIES if getattr(client, field)] or ["reports nothing"]
        yield f"{client.name:<{width}}  {_format_version(client)}: {', '.join(abilities)}"
    if missing := ", ".join(client.name for client in clients if not client.path):
        yield f"not installed: {missing}"
    yield "built in: builtin, which needs no model and repairs Python code"


def _format_version(client: Client) -> str:
    if client.version is None:
        return f"version unknown (tested with {client.tested_version})"
    if client.version == client.tested_version:
        return client.version
    return f"{client.version} (tested with {client.tested_version})"
