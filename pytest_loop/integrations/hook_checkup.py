"""Find Stop hooks that are installed and do nothing: not trusted by their client, or without their interpreter."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_loop.core.text.toml import tomllib
from pytest_loop.integrations.client_files import CLIENTS, GATE, JsonPart, find_git_root
from pytest_loop.integrations.json_edit import load_json

_IDLE = "it does nothing, because"
# These clients look for the files of a project only in the folder where they are started.
_READS_ONLY_HERE = ("claude", "gemini")


@dataclass(frozen=True)
class Place:
    """A folder with the hook file of a client, and the home, folder and environment in which the client starts."""

    folder: Path
    hook: Path
    home: Path
    start: Path
    environment: Mapping[str, str]

    @property
    def is_user(self) -> bool:
        return self.folder == self.home

    def is_inside(self, folders: Iterator[str]) -> bool:
        return any(self.folder.is_relative_to(folder) for folder in folders)


def render_hook_lines(start: Path, environment: Mapping[str, str]) -> Iterator[str]:
    """Render one line for each Stop hook that is installed: in a folder, at the top of its repository, or at home."""
    home = Path(environment.get("HOME") or Path.home())
    folders = dict.fromkeys((start, find_git_root(start) or start, home))
    for name, client in CLIENTS.items():
        part = next((part for part in client.parts if isinstance(part, JsonPart) and part.is_gate), None)
        if part is None:
            continue
        for folder in folders:
            hook = folder / (part.user_path if folder == home else part.path)
            line = next(_find_gate_lines(_read(load_json, hook)), "")
            if line:
                problem = _find_problem(name, line, Place(folder, hook, home, start, environment))
                yield f"Stop hook of {name}{' for all projects' if folder == home else ''}: {problem or 'in place'}"


def _find_problem(name: str, line: str, place: Place) -> str:
    program = shlex.split(line.rpartition(" && ")[2])[0]
    command = program if "/" not in program else place.folder / program
    if shutil.which(command, path=place.environment.get("PATH")) is None:
        return f"{_IDLE} {program} is missing: pytest-loop install {name}{' --user' if place.is_user else ''}"
    if place.is_user:
        return _find_codex_hook_problem(place) if name == "codex" else ""
    if name in _READS_ONLY_HERE and place.folder != place.start:
        return f"{_IDLE} {name} reads it only in {place.folder}: start {name} there, or use pytest-loop install --user"
    return _TRUST_CHECKS[name](place) if name in _TRUST_CHECKS else ""


def _find_codex_problem(place: Place) -> str:
    projects = _read_codex_config(place).get("projects", {})
    roots = {str(place.folder), str(find_git_root(place.folder) or place.folder)}
    if not any(projects.get(root, {}).get("trust_level") == "trusted" for root in roots):
        return f"{_IDLE} Codex does not trust this project: start codex here once"
    return _find_codex_hook_problem(place)


def _find_codex_hook_problem(place: Place) -> str:
    state = _read_codex_config(place).get("hooks", {}).get("state", {})
    if not any(key.startswith(f"{place.hook}:") for key in state):
        return f"{_IDLE} Codex does not trust the hook: use /hooks, or codex exec --dangerously-bypass-hook-trust"
    return ""


def _read_codex_config(place: Place) -> dict[str, Any]:
    home = Path(place.environment.get("CODEX_HOME") or place.home / ".codex")
    return _read(tomllib.loads, home / "config.toml")


def _find_gemini_problem(place: Place) -> str:
    settings = _read(load_json, place.home / ".gemini" / "settings.json")
    is_off = settings.get("security", {}).get("folderTrust", {}).get("enabled") is False
    rows = _read(load_json, place.home / ".gemini" / "trustedFolders.json").items()
    folders = (
        str(Path(path).parent if trust == "TRUST_PARENT" else path) for path, trust in rows if "DO_NOT" not in trust
    )
    if is_off or place.environment.get("GEMINI_CLI_TRUST_WORKSPACE") == "true" or place.is_inside(folders):
        return ""
    return f"{_IDLE} Gemini does not trust this folder: use /permissions trust, or set GEMINI_CLI_TRUST_WORKSPACE=true"


def _find_copilot_problem(place: Place) -> str:
    config = _read(load_json, place.home / ".copilot" / "config.json")
    if place.is_inside(iter(config.get("trustedFolders", config.get("trusted_folders", [])))):
        return ""
    return "in place, but the command-line client of Copilot does not trust this folder: start copilot here once"


_TRUST_CHECKS: dict[str, Callable[[Place], str]] = {
    "codex": _find_codex_problem,
    "gemini": _find_gemini_problem,
    "vscode": _find_copilot_problem,
}


def _read(load: Callable[[str], Any], path: Path) -> dict[str, Any]:
    """Return the table in a file, empty if it is missing or broken."""
    try:
        data = load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


def _find_gate_lines(value: Any) -> Iterator[str]:
    """Yield the shell lines of our Stop hook (`--loop-gate`), wherever they stand in a configuration."""
    if isinstance(value, str) and GATE in value:
        yield value
    elif isinstance(value, (dict, list)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _find_gate_lines(item)
