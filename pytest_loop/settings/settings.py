"""The settings of one invocation, read from the command line first, then from the ini file."""

from __future__ import annotations

import argparse
import glob
import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pytest_loop.settings.limit_options import BreakerSettings, ControlSettings, LimitSettings
from pytest_loop.settings.options import (
    GROUPS,
    AgentSettings,
    CommandSettings,
    JudgingSettings,
    OutputSettings,
    StartSettings,
    WorkspaceSettings,
)
from pytest_loop.settings.session_settings import is_given, read_group
from pytest_loop.settings.values import is_set
from pytest_loop.settings.workload_options import WorkloadSettings


@dataclass(frozen=True)
class Settings:
    """The settings of the command line and the ini file, and the folder where pytest was called.

    `flags` are the flags on the command line, `paths` its positional arguments, `folder` the folder of the call.
    """

    judging: JudgingSettings
    start: StartSettings
    agents: AgentSettings
    workspace: WorkspaceSettings
    limits: LimitSettings
    breakers: BreakerSettings
    control: ControlSettings
    workload: WorkloadSettings
    output: OutputSettings
    commands: CommandSettings
    root: Path
    folder: Path
    flags: frozenset[str] = frozenset()
    arguments: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    test_paths: tuple[str, ...] = ()
    ini_path: Path | None = None
    verbosity: int = 0
    color: str = "auto"

    @property
    def command(self) -> str | None:
        """The command around runs, or None; a report or debrief is a command unless a run starts or resumes."""
        names = [
            name
            for name, option in CommandSettings.get_options().items()
            if option.takes_over and name != "resume" and is_set(self.commands.values[name])
        ]
        is_run = bool(self.start.task or self.workload.manifest) or self.commands.resume is not None
        if not is_run:
            names += ["report"] if self.flags & {"--loop-report", "--loop-report-open"} else []
            names += ["debrief"] if self.workload.debrief else []
        if len(names) > 1:
            raise pytest.UsageError(f"expected one command, found {' and '.join(f'--loop-{name}' for name in names)}")
        return names[0] if names else None

    @property
    def location_arguments(self) -> tuple[str, ...]:
        """Arguments that fix pytest's configuration: an ini file that appears later is ignored."""
        return ("--rootdir", str(self.root), "-c", str(self.ini_path or os.devnull))

    @property
    def suite_paths(self) -> tuple[str, ...]:
        """The paths of the whole test suite: the configured ones that exist, or the root of the project."""
        return tuple(path for path in self.test_paths if (self.root / path).exists()) or (str(self.root),)

    @property
    def prompts(self) -> Path | None:
        """The folder with the user's prompts."""
        return self.root / self.agents.prompts if self.agents.prompts else None


def make_default_settings(root: Path, **values: Any) -> Settings:
    """Return settings without a command line; `values` replace whole groups."""
    groups: dict[str, Any] = {name: group() for name, group in GROUPS.items()}
    return Settings(**{**groups, "root": root, "folder": root, **values})


def read_settings(config: pytest.Config, values: argparse.Namespace) -> Settings:
    """Read all settings; raise `UsageError` for a value that cannot be used."""
    groups: dict[str, Any] = {name: read_group(group, config, values) for name, group in GROUPS.items()}
    limits = groups["limits"]
    groups["limits"] = _merge_limits(limits, values)
    limit_flags = {f"--loop-{name.replace('_', '-')}" for name in limits.limit} if values.loop_limit else set()
    settings = Settings(
        **groups,
        root=find_root(config, values),
        folder=Path(config.invocation_params.dir),
        flags=frozenset(
            option.flag
            for group in GROUPS.values()
            for option in group.get_options().values()
            if option.flag and is_given(option, values)
        )
        | limit_flags,
        arguments=tuple(map(str, config.invocation_params.args)),
        paths=tuple(values.file_or_dir),
        test_paths=find_test_paths(config),
        ini_path=config.inipath,
        verbosity=values.verbose,
        color=values.color,
    )
    if settings.output.report_open and not settings.output.report:
        raise pytest.UsageError("--loop-report-open: say where the report is to be written with --loop-report PATH")
    if "--loop-answer" in settings.flags and settings.commands.resume is None:
        raise pytest.UsageError("--loop-answer: expected --loop-resume[=ALIAS] with it, which names the run")
    return settings


def _merge_limits(limits: LimitSettings, values: argparse.Namespace) -> LimitSettings:
    """Return the limits with the parts of `limit` as values; a separate flag overrides a part from the ini file."""
    options = LimitSettings.get_options()
    is_flag = values.loop_limit is not None
    parts = {
        name: amount
        for name, amount in limits.limit.items()
        if is_flag or not options[name].flag or not is_given(options[name], values)
    }
    return LimitSettings(**limits.values | parts)


def find_root(config: pytest.Config, values: argparse.Namespace) -> Path:
    """Return pytest's rootdir, or the folder of the call where neither an ini file nor `--rootdir` names one.

    pytest looks for a rootdir in the values of options that it does not know yet: `--loop-artifact docs/x.md` moves it.
    """
    is_named = config.inipath is not None or values.rootdir is not None
    return config.rootpath if is_named else Path(config.invocation_params.dir)


def find_test_paths(config: pytest.Config) -> tuple[str, ...]:
    """Return the configured test paths that exist; like pytest, ignore all others."""
    root, folder = config.rootpath, Path(config.invocation_params.dir)
    # As pytest does it: `Path.glob` refuses absolute patterns.
    find = partial(glob.glob, root_dir=root, recursive=True)
    names = [name for pattern in config.getini("testpaths") for name in sorted(find(pattern))]
    return tuple(names if folder == root else (str(root / name) for name in names))
