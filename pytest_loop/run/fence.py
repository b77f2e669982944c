"""The fence of a run: whether there is one, and what its agents and sessions may only read."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import pytest

from pytest_loop.core.model.evaluation import Seal
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.model.vocabulary import Target
from pytest_loop.processes.fence import Fence, FenceTool, Probe, probe_tools
from pytest_loop.settings.settings import Settings
from pytest_loop.store.signature import find_state_folder
from pytest_loop.workspace.fenced_paths import (
    list_cache_folders,
    list_environment_paths,
    list_git_paths,
    select_read_only_paths,
)
from pytest_loop.workspace.sealed_files import SealedFiles

_ONLY_DETECTED = "edits of sealed files are only detected, not prevented"


@dataclass(frozen=True)
class RunFence:
    """Paths that a run's processes may only read; without a `tool` there is no fence, and `problem` explains why.

    `sealed` paths are relative to the workspace; `unfenced_count` is the number of other sealed files. `fixed`
    paths lie outside of the project or belong to its environment. `runs_folder` holds all runs. `opened`
    paths stay writable in any case.
    """

    tool: FenceTool | None = None
    problem: str = ""
    sealed: tuple[str, ...] = ()
    unfenced_count: int = 0
    fixed: tuple[str, ...] = ()
    runs_folder: str = ""
    opened: tuple[str, ...] = ()

    @lru_cache(maxsize=16)  # noqa: B019 - holds few values, and is asked for every question to an agent
    def build(self, workspace: Path, *, is_state_open: bool = False) -> Fence | None:
        """Return the fence for processes in a folder; with `is_state_open`, they may write into the folder of runs."""
        if self.tool is None:
            return None
        workspace = workspace.resolve()
        sealed = [str(workspace / path) for path in self.sealed]
        state = () if is_state_open else (self.runs_folder,)
        read_only = [path for path in (*sealed, *self.fixed, *state) if path and not _is_below(path, self.opened)]
        if not self.tool.has_mounts:
            read_only = [path for path in read_only if _can_be_split_off(path, workspace)]
        caches = (cache for path in sealed if Path(path).is_dir() for cache in list_cache_folders(Path(path)))
        hidden = os.path.realpath(find_state_folder())
        return Fence(self.tool, tuple(read_only), (str(workspace), *self.opened, *caches), hidden)

    @property
    def sealing_tool(self) -> str:
        """The name of the tool that keeps sealed files read-only; empty if none does."""
        return self.tool.value if self.tool is not None and self.tool.has_mounts else ""

    def render_draft(self, *, is_verbose: bool) -> Iterator[str]:
        """Render the line of the draft, if there is something to say."""
        if self.warning:
            yield self.warning
        elif is_verbose and self.details:
            yield f"fence: {self.details}"

    @property
    def warning(self) -> str:
        """The warning of draft and ending; empty with a fence, or with `--loop-fence=off`."""
        if self.problem:
            return f"not fenced: {self.problem}; {_ONLY_DETECTED}"
        if self.tool is not None and not self.sealing_tool:
            outside = "what lies outside of the project, your home and the temporary folder"
            return f"partly fenced: {self.tool.value} protects only {outside}; {_ONLY_DETECTED}"
        return ""

    @property
    def details(self) -> str:
        """The tool and the number of read-only paths, for `-v`."""
        if not self.sealing_tool:
            return ""
        more = f", {self.unfenced_count} more sealed files are only detected" if self.unfenced_count else ""
        return f"{self.sealing_tool}: {len(self.sealed)} sealed files or folders are read-only{more}"


def _is_below(path: str, folders: Iterable[str]) -> bool:
    return any(Path(path).is_relative_to(folder) for folder in folders)


def _can_be_split_off(path: str, workspace: Path) -> bool:
    """Return whether a folder neither contains nor is in the workspace, the home or the temporary folder."""
    writable = (str(workspace), os.path.realpath(Path.home()), os.path.realpath(tempfile.gettempdir()))
    holds_writable = any(_is_below(folder, [path]) for folder in writable)
    return Path(path).is_dir() and not _is_below(path, writable) and not holds_writable


def choose_tool(settings: Settings) -> Probe:
    """Return the tool for `--loop-fence`, or why there is none; raise `UsageError` if a fence is required."""
    mode = settings.workspace.fence
    if mode == "off":
        return Probe(None)
    probe = probe_tools()
    if mode == "on" and (probe.tool is None or not probe.tool.has_mounts):
        reason = probe.problem or f"only {FenceTool.LANDLOCK.value} works here, and cannot keep sealed files read-only"
        raise pytest.UsageError(f"--loop-fence=on: {reason} (install bubblewrap, or use --loop-fence=auto)")
    return probe


def resolve_writable_paths(settings: Settings) -> tuple[str, ...]:
    """Return the paths of `--loop-fence-allow`; raise `UsageError` for one that does not exist."""
    paths = []
    for name in settings.workspace.fence_allow:
        path = settings.folder / Path(name).expanduser()
        if not path.exists():
            raise pytest.UsageError(f"--loop-fence-allow: expected an existing file or folder, found {name!r}")
        paths.append(os.path.realpath(path))
    return tuple(paths)


def plan_fence(settings: Settings, runs_folder: Path, project: SealedFiles, state: RunState) -> RunFence:
    """Return the fence of a run; take the paths that sessions write from the seal in its state.

    If a goal of a project is a command, such as a linter, leave sealed sources writable: the command may ask for edits
    that change no verdict.
    """
    tool, problem = choose_tool(settings)
    seal = state.setup.seal or Seal()
    opened, written = (*resolve_writable_paths(settings), *seal.opened), seal.written
    if tool is None:
        return RunFence(None, problem, opened=opened)
    has_command = any(rule.is_command for rule in state.criteria.goals)
    are_sources_open = has_command and state.setup.target is Target.WORKSPACE
    outside = [path for path in written or () if Path(path).is_absolute()]
    root = settings.root.resolve()
    sealed = select_read_only_paths(project, written, are_sources_open=are_sources_open)
    return RunFence(
        tool,
        sealed=sealed.paths,
        unfenced_count=sealed.omitted_count,
        fixed=(*list_environment_paths(root), *list_git_paths(root)),
        runs_folder=os.path.realpath(runs_folder),
        opened=(*opened, *(path.rstrip("/") for path in outside)),
    )
