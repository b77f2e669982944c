"""Check the set-up: versions, clients of agents and their Stop hooks, the fence, warm sessions and git."""

from __future__ import annotations

import argparse
import os
import platform
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from pytest_loop.agents.installed_clients import find_clients
from pytest_loop.cli.command_parser import Parser
from pytest_loop.cli.origin import find_version
from pytest_loop.integrations.hook_checkup import render_hook_lines
from pytest_loop.processes.fence import probe_tools
from pytest_loop.show.client_list import render_client_lines
from pytest_loop.workspace.checkpoints import Checkpoints

_DISTRIBUTION = "pytest-agent-loop"


def main(words: Sequence[str] = ()) -> int:
    """Print what works here and what does not, and return the exit code."""
    parser = Parser(prog="pytest-loop doctor", description="Check the set-up of this project.")
    parser.add_argument("--run", default="", help=argparse.SUPPRESS)  # every command takes --run
    parser.parse_args(list(words))
    for line in render_checkup(Path.cwd()):
        print(line)
    return 0


def render_checkup(folder: Path) -> Iterator[str]:
    """Render one line for each part of the set-up: what works, or what is missing and what to do."""
    versions = f"pytest {pytest.__version__}, Python {platform.python_version()}"
    yield f"versions: {_DISTRIBUTION} {find_version(_DISTRIBUTION)}, {versions}"
    fence = probe_tools()
    can_prevent_edits = fence.tool is not None and fence.tool.has_mounts
    name = fence.tool.value if fence.tool else "none"
    yield (
        f"fence: {name}"
        if can_prevent_edits
        else f"fence: {name}; edits of sealed files are detected, not prevented: install bubblewrap"
    )
    yield "warm sessions: yes" if hasattr(os, "fork") else "warm sessions: no, this system cannot fork"
    yield f"git: {_describe_git(folder)}"
    yield from render_hook_lines(folder, os.environ)
    yield from render_client_lines(find_clients(folder))


def _describe_git(folder: Path) -> str:
    if shutil.which("git") is None:
        return "not installed: no checkpoints in git, and no candidates"
    return Checkpoints(folder, "doctor").unavailable_reason or "work tree found, every iteration gets a checkpoint"
