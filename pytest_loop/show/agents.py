"""The agents that are installed here, as lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pytest_loop.core.model.clients import Client

_REPORTS = (
    ("reports_tokens", "tokens"),
    ("reports_cost", "cost"),
    ("takes_schema", "JSON by schema"),
    ("goes_on", "goes on in its conversation"),
)


def agent_lines(clients: Iterable[Client]) -> Iterator[str]:
    """One line for each client: its version, and what it can do; then those that are missing, and ours."""
    clients = list(clients)
    here = [one for one in clients if one.path]
    width = max((len(one.name) for one in here), default=0)
    for one in here:
        yield f"{one.name:<{width}}  {_version(one)}: {', '.join(_abilities(one))}"
    missing = ", ".join(one.name for one in clients if not one.path)
    if missing:
        yield f"not installed: {missing}"
    yield "always here: builtin, which needs no model and mends the Python files of a project"


def _version(client: Client) -> str:
    if client.version is None:
        return f"version unknown (checked with {client.checked})"
    if client.version == client.checked:
        return client.version
    return f"{client.version} (checked with {client.checked})"


def _abilities(client: Client) -> list[str]:
    return [words for name, words in _REPORTS if getattr(client, name)] or ["reports nothing"]
