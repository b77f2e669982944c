"""The files that clients of agents read: one row per client with its hook, MCP server and skill."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pytest_loop.integrations.json_edit import Entry

SERVER = "pytest-loop"
GATE = "--loop-gate"
EXTRA_HINT = "the MCP server needs the extra: pip install 'pytest-agent-loop[mcp]'"
_SECONDS = 600
# Outside of a repository, the folder stays the same: the argument of `cd` is empty.
_GO_TO_TOP = 'cd "$(git rev-parse --show-toplevel)"'
# Codex's table of MCP servers is the only part of a client that is not JSON.
TABLE = f"[mcp_servers.{SERVER}]"


@dataclass(frozen=True)
class JsonPart:
    """An entry of a JSON file; `make` builds it from a shell line.

    With `is_gate`, this is the shell line of the Stop hook, else that of the MCP server. `has_comments`: the client
    allows comments in this file; in other files, they are an error.
    """

    path: str
    user_path: str
    make: Callable[[str], Entry]
    is_gate: bool = False
    has_comments: bool = False


@dataclass(frozen=True)
class TomlPart:
    """A table at the end of a TOML file."""

    path: str
    user_path: str


@dataclass(frozen=True)
class SkillPart:
    """The skill, a file that comes with the package."""

    path: str
    user_path: str


Part = JsonPart | TomlPart | SkillPart


@dataclass(frozen=True)
class ClientFiles:
    """The parts of one client, and what the user has to do after they are written."""

    parts: tuple[Part, ...]
    note: str


def _make_hook(event: str, units_per_second: int = 1) -> Callable[[str], Entry]:
    def make(line: str) -> Entry:
        hook = {"type": "command", "command": line, "timeout": _SECONDS * units_per_second}
        return Entry(("hooks", event), {"hooks": [hook]}, GATE)

    return make


def _make_cursor_hook(line: str) -> Entry:
    return Entry(("hooks", "stop"), {"command": line, "timeout": _SECONDS}, GATE)


def _make_copilot_hook(line: str) -> Entry:
    return Entry(("hooks", "Stop"), {"type": "command", "command": line, "timeout": _SECONDS}, GATE)


def _make_version(_line: str) -> Entry:
    return Entry(("version",), 1)


def _make_server(*keys: str) -> Callable[[str], Entry]:
    return lambda line: Entry((*keys, SERVER), {"command": "sh", "args": ["-c", line]})


def _make_opencode_server(line: str) -> Entry:
    return Entry(("mcp", SERVER), {"type": "local", "command": ["sh", "-c", line], "timeout": _SECONDS * 1000})


def _make_skill(folder: str) -> SkillPart:
    path = f"{folder}/skills/{SERVER}/SKILL.md"
    return SkillPart(path, path)


_AGENTS_SKILL = _make_skill(".agents")
CLIENTS = {
    "claude": ClientFiles(
        (
            JsonPart(".claude/settings.json", ".claude/settings.json", _make_hook("Stop"), is_gate=True),
            JsonPart(".mcp.json", ".claude.json", _make_server("mcpServers")),
            _make_skill(".claude"),
        ),
        "Claude Code asks once whether to use the MCP server of a project; "
        "without a terminal: claude -p --mcp-config .mcp.json",
    ),
    "codex": ClientFiles(
        (
            JsonPart(".codex/hooks.json", ".codex/hooks.json", _make_hook("Stop"), is_gate=True),
            TomlPart(".codex/config.toml", ".codex/config.toml"),
            _AGENTS_SKILL,
        ),
        "Codex reads the files of a project only if you trust it, and runs a hook only after you trust it with /hooks; "
        "without a terminal: codex exec --dangerously-bypass-hook-trust",
    ),
    "gemini": ClientFiles(
        (
            JsonPart(
                ".gemini/settings.json",
                ".gemini/settings.json",
                _make_hook("AfterAgent", 1000),
                is_gate=True,
                has_comments=True,
            ),
            JsonPart(".gemini/settings.json", ".gemini/settings.json", _make_server("mcpServers"), has_comments=True),
            _make_skill(".gemini"),
        ),
        "Gemini ignores the files of a project in a folder that is not trusted: use /permissions trust, or set "
        "GEMINI_CLI_TRUST_WORKSPACE=true (--skip-trust is not enough)",
    ),
    "opencode": ClientFiles(
        (
            JsonPart("opencode.json", ".config/opencode/opencode.json", _make_opencode_server, has_comments=True),
            _AGENTS_SKILL,
        ),
        "opencode has no Stop hook: nothing keeps it from stopping, so judge in your build too.",
    ),
    "cursor": ClientFiles(
        (
            JsonPart(".cursor/hooks.json", ".cursor/hooks.json", _make_version, is_gate=True),
            JsonPart(".cursor/hooks.json", ".cursor/hooks.json", _make_cursor_hook, is_gate=True),
            JsonPart(".cursor/mcp.json", ".cursor/mcp.json", _make_server("mcpServers")),
            _AGENTS_SKILL,
        ),
        "Cursor shows the hook under Settings, Hooks, and the server under Settings, MCP.",
    ),
    "vscode": ClientFiles(
        (
            JsonPart(f".github/hooks/{SERVER}.json", f".copilot/hooks/{SERVER}.json", _make_version, is_gate=True),
            JsonPart(f".github/hooks/{SERVER}.json", f".copilot/hooks/{SERVER}.json", _make_copilot_hook, is_gate=True),
            JsonPart(".vscode/mcp.json", ".config/Code/User/mcp.json", _make_server("servers"), has_comments=True),
            _AGENTS_SKILL,
        ),
        "VS Code asks once whether to start the server. Copilot, also its command-line client, runs the hook "
        "of a project only in a folder that you trust.",
    ),
}


def make_shell_line(words: str, root: Path, *, is_user: bool) -> str:
    """Return the shell line that runs a module of this environment in the project, from any folder of it.

    The client may start in a subfolder and without the environment. With `is_user`, the line serves all projects of a
    user: it runs in the repository of the current folder, with the active environment.
    """
    if is_user:
        return f"{_GO_TO_TOP} && python -m {words}"
    python, folder = Path(sys.executable), find_git_root(root)
    inside = python.relative_to(root) if python.is_relative_to(root) else python
    if folder is None:
        return f"{shlex.quote(str(python))} -m {words}"
    below = root.relative_to(folder).as_posix()
    return f"{_GO_TO_TOP}{'' if below == '.' else f'/{shlex.quote(below)}'} && {shlex.quote(str(inside))} -m {words}"


def find_git_root(folder: Path) -> Path | None:
    """Return the top folder of the repository that a folder is in; None outside of a repository."""
    try:
        result = subprocess.run(
            ["git", "rev-parse", "--show-toplevel"],  # noqa: S607 - the user's git
            cwd=folder,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return Path(result.stdout.strip())
