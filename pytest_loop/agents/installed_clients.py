"""Find the installed clients, their versions and their abilities."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pytest_loop.agents.presets import Preset, load_presets
from pytest_loop.core.model.clients import Client
from pytest_loop.core.model.run_setup import Limits
from pytest_loop.core.model.vocabulary import BUILTIN
from pytest_loop.processes import child

VERSION_TIMEOUT = 10.0
_VERSION = re.compile(r"\d+(?:\.\d+)+(?:[-+]\w+(?:\.\w+)*)?")


def find_clients(folder: Path | None = None, timeout: float = VERSION_TIMEOUT) -> list[Client]:
    """Return every preset as a client, with its path and version if it is installed; ask for versions in `folder`."""
    presets = load_presets()
    programs = {name: program for name, preset in presets.items() if (program := preset.find_program())}
    with ThreadPoolExecutor(len(programs) or 1) as pool:  # a client may take seconds to answer
        outputs = pool.map(
            lambda name: _read_version_output([programs[name], *presets[name].version], folder or Path.cwd(), timeout),
            programs,
        )
        version_outputs = dict(zip(programs, outputs, strict=True))
    return [
        _describe_client(name, preset, programs.get(name), version_outputs.get(name, ""))
        for name, preset in presets.items()
    ]


def choose_default_agent(*, are_files_edited: bool) -> str:
    """Return the agent to use without `--loop-agent`: the only client, or `builtin` if there is none.

    `builtin` can only edit the files of a project (`are_files_edited`). Return an empty text if neither applies.
    """
    names = _list_installed()
    if len(names) == 1:
        return names[0]
    return BUILTIN if are_files_edited and not names else ""


def explain_missing_agent() -> str:
    """Return why there is no agent without `--loop-agent`, and how to name one."""
    if names := _list_installed():
        return f"several agents are installed ({', '.join(names)}): name one, for example with --loop-agent {names[0]}"
    return "no agent is installed that can do this: name one with --loop-agent (pytest-loop agents lists all)"


def _list_installed() -> list[str]:
    return [name for name, preset in load_presets().items() if preset.find_program()]


def list_unobservable_limits(specs: Iterable[str], limits: Limits) -> Iterator[str]:
    """Describe each limit set by the user that cannot be enforced, because an agent does not report its usage."""
    usd = limits.usd if limits.usd != Limits().usd else None
    for spec in specs:
        preset = load_presets().get(spec.partition(":")[0])
        if preset is None and not spec.startswith(("command:", "acp:")):
            continue
        if usd is not None and not (preset and preset.cost):
            yield f"{spec} does not report its cost, so the limit of {usd:g} USD cannot be enforced"
        if limits.tokens is not None and not (preset and preset.tokens):
            yield f"{spec} does not report its tokens, so the limit of {limits.tokens:,} cannot be enforced"


def _describe_client(name: str, preset: Preset, path: str | None, output: str) -> Client:
    if not re.search(preset.shows, output):  # another program of the same name
        path = None
    match = _VERSION.search(output) if path else None
    version = match[0] if match else None
    return Client(
        name=name,
        tested_version=preset.tested_version,
        path=path,
        version=version,
        reports_tokens=preset.tokens is not None,
        reports_cost=preset.cost is not None,
        takes_schema=preset.form is not None,
        can_resume=preset.resume is not None,
    )


def _read_version_output(words: list[str], folder: Path, timeout: float) -> str:
    try:
        result = child.run_command(child.Command(words, folder, timeout))
    except child.CannotStartError:
        return ""
    return "" if result.exit_code else result.stdout or result.stderr
