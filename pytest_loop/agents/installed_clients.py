"""Which clients are installed here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pytest_loop.agents.builtin_agent import BUILTIN
from pytest_loop.agents.presets import Preset, load_presets
from pytest_loop.core.model.clients import Client
from pytest_loop.core.model.run_state import Limits
from pytest_loop.processes import child

PATIENCE = 10.0
_VERSION = re.compile(r"\d+(?:\.\d+)+(?:[-+]\w+(?:\.\w+)*)?")


def find_clients(folder: Path | None = None, patience: float = PATIENCE) -> list[Client]:
    """Every preset, with its path and its version where it is installed; asking for a version takes bounded time."""
    known = load_presets()
    with ThreadPoolExecutor(len(known)) as pool:
        return list(pool.map(lambda name: _client(name, known[name], folder or Path.cwd(), patience), known))


def choose_default_agent(*, are_files_edited: bool) -> str:
    """Who is meant where no agent is named: the one client that is installed, or ours where there is none."""
    here = [name for name, preset in load_presets().items() if preset.find_program()]
    if len(here) == 1:
        return here[0]
    return BUILTIN if are_files_edited and not here else ""


def list_unobservable_limits(specs: Iterable[str], limits: Limits) -> Iterator[str]:
    """The limits that cannot be kept, because an agent never tells what it uses."""
    for spec in specs:
        preset = load_presets().get(spec.partition(":")[0])
        tells_cost, tells_tokens = (preset.cost, preset.tokens) if preset else (None, None)
        if preset is None and not spec.startswith("command:"):
            continue
        if limits.usd is not None and tells_cost is None:
            yield f"{spec} does not tell what it costs: the limit of {limits.usd:g} USD cannot be observed"
        if limits.tokens is not None and tells_tokens is None:
            yield f"{spec} does not tell its tokens: the limit of {limits.tokens:,} cannot be observed"


def _client(name: str, preset: Preset, folder: Path, patience: float) -> Client:
    path = preset.find_program()
    return Client(
        name=name,
        checked=preset.checked,
        path=path,
        version=_version([path, *preset.version], folder, patience) if path else None,
        reports_tokens=preset.tokens is not None,
        reports_cost=preset.cost is not None,
        takes_schema=preset.form is not None,
        goes_on=preset.resume is not None,
    )


def _version(words: list[str], folder: Path, patience: float) -> str | None:
    """The first number with a dot in what it says of itself."""
    try:
        done = child.run_command(child.Command(words, folder, patience))
    except child.CannotStartError:
        return None
    found = None if done.exit_code else _VERSION.search(done.stdout or done.stderr)
    return found[0] if found else None
