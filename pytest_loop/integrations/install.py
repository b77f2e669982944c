"""The command `pytest-loop install CLIENT`: write what a client reads, show it, or remove it again."""

from __future__ import annotations

import difflib
import json
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from pytest_loop.cli.command_parser import USAGE_ERROR, Parser
from pytest_loop.core.text.toml import tomllib
from pytest_loop.errors import LoopError
from pytest_loop.integrations.client_files import (
    CLIENTS,
    EXTRA_HINT,
    GATE,
    SERVER,
    TABLE,
    JsonPart,
    Part,
    SkillPart,
    make_shell_line,
)
from pytest_loop.integrations.json_edit import (
    BrokenConfigurationError,
    load_json,
    remove_entry,
    require_plain_json,
    set_entry,
)

_LINE = re.compile(r"at line (\d+)")


def main(words: Sequence[str]) -> int:
    """Install into the client that the arguments name, and return the exit code."""
    parser = Parser(prog="pytest-loop install", description="Connect the judge to a coding agent.")
    parser.add_argument("client", choices=sorted(CLIENTS), help="your coding agent")
    parser.add_argument("--dry-run", action="store_true", help="show the changes, and write nothing")
    parser.add_argument("--remove", action="store_true", help="remove what was installed")
    parser.add_argument("--user", action="store_true", help="write into your home folder, for all projects")
    options = parser.parse_args(words)
    folder = Path.home() if options.user else Path.cwd()
    try:
        changes = Installation(folder, is_user=options.user).plan(options.client, is_removal=options.remove)
    except LoopError as error:
        print(f"ERROR: {error}; nothing was changed", file=sys.stderr)
        return USAGE_ERROR
    for path, (before, after) in changes.items():
        _print_change(path, before, after, is_dry_run=options.dry_run)
        if not options.dry_run:
            _write_or_remove(folder, path, after)
    if not changes:
        print(f"nothing to do: {options.client} {'has none of it' if options.remove else 'has it already'}")
    elif not options.remove:
        print(CLIENTS[options.client].note)
    if not options.remove and find_spec("mcp") is None:
        print(f"hint: {EXTRA_HINT}")
    return 0


@dataclass(frozen=True)
class Installation:
    """The files of clients in a project, or in the home folder of a user (`is_user`)."""

    folder: Path
    is_user: bool = False

    def plan(self, client: str, *, is_removal: bool) -> dict[str, tuple[str, str]]:
        """Return the texts before and after of every file that changes, by its path; an empty text means no file."""
        texts: dict[str, tuple[str, str]] = {}
        for part in CLIENTS[client].parts:
            if is_removal and isinstance(part, SkillPart) and self._is_shared(part, client):
                continue
            path = part.user_path if self.is_user else part.path
            before, text = texts[path] if path in texts else (self._read(path),) * 2
            texts[path] = (before, self._change_text(part, path, text, is_removal=is_removal))
        return {path: pair for path, pair in texts.items() if pair[0] != pair[1]}

    def _is_shared(self, skill: SkillPart, client: str) -> bool:
        """Return whether another client that reads the same skill is installed."""
        others = (row.parts for name, row in CLIENTS.items() if name != client and skill in row.parts)
        files = {part.user_path if self.is_user else part.path for parts in others for part in parts if part != skill}
        return any(SERVER in self._read(path) for path in files)

    def _change_text(self, part: Part, path: str, text: str, *, is_removal: bool) -> str:
        if isinstance(part, SkillPart):
            skill = files("pytest_loop.integrations").joinpath("skill/SKILL.md")
            return "" if is_removal else skill.read_text(encoding="utf-8")
        if isinstance(part, JsonPart):
            return self._change_json(part, path, text, is_removal=is_removal)
        table = "" if is_removal else self._make_table()
        return _replace_table(text, table, path)

    def _change_json(self, part: JsonPart, path: str, text: str, *, is_removal: bool) -> str:
        if not part.has_comments:
            require_plain_json(text, path)
        entry = part.make(self._make_gate_line() if part.is_gate else self._make_server_line())
        if is_removal and entry.keys == ("version",):
            return text  # the file needs its version until the file is removed
        text = (remove_entry if is_removal else set_entry)(text, entry, path)
        return "" if is_removal and text.strip() and load_json(text) == {"version": 1} else text

    def _make_gate_line(self) -> str:
        """Return the shell line of the Stop hook; it lets the agent stop if pytest cannot start."""
        return f"{make_shell_line(f'pytest {GATE}', self.folder, is_user=self.is_user)} || echo '{{}}'"

    def _make_server_line(self) -> str:
        return make_shell_line("pytest_loop mcp", self.folder, is_user=self.is_user)

    def _make_table(self) -> str:
        """Return Codex's table of the MCP server, with timeouts long enough for an evaluation."""
        line = json.dumps(self._make_server_line())
        return f'{TABLE}\ncommand = "sh"\nargs = ["-c", {line}]\nstartup_timeout_sec = 60\ntool_timeout_sec = 600\n'

    def _read(self, path: str) -> str:
        try:
            return (self.folder / path).read_bytes().decode("utf-8")
        except FileNotFoundError:
            return ""
        except (OSError, UnicodeDecodeError) as error:
            raise BrokenConfigurationError(f"cannot read {path}: {error}") from None


def _replace_table(text: str, table: str, path: str) -> str:
    """Replace our table in a TOML text, or append it if it is missing; an empty `table` removes it."""
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line = _LINE.search(str(error))
        raise BrokenConfigurationError(f"{path}:{line[1] if line else 1}: expected TOML, found {error}") from None
    lines = text.splitlines(keepends=True)
    if f"{TABLE}\n" not in lines:
        return f"{text}{_choose_gap(text)}{table}" if table else text
    start = lines.index(f"{TABLE}\n")
    end = next((number for number in range(start + 1, len(lines)) if lines[number].startswith("[")), len(lines))
    head, rest = "".join(lines[:start]), "".join(lines[end:])
    if not table:
        head = f"{head.rstrip()}\n" if head.strip() else ""
    middle = head + table
    return middle + (_choose_gap(middle) + rest if rest else "")


def _choose_gap(text: str) -> str:
    return "" if not text else "\n" if text.endswith("\n") else "\n\n"


def _print_change(path: str, before: str, after: str, *, is_dry_run: bool) -> None:
    action = "create" if not before else "remove" if not after else "change"
    if not is_dry_run:
        print(f"{action}d {path}")
        return
    print(f"would {action} {path}")
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), path, path, lineterm="")
    print("\n".join(f"    {line}" for line in lines))


def _write_or_remove(folder: Path, name: str, text: str) -> None:
    """Write a file, or remove it together with the folders that it leaves empty."""
    path = folder / name
    if text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("utf-8"))
        return
    path.unlink()
    for parent in path.parents[: name.count("/")]:
        if any(parent.iterdir()):
            break
        parent.rmdir()
