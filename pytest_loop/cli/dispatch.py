"""Read the settings, then execute a command about runs or drive a run: the entry of every call but a session."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import pytest

from pytest_loop.errors import LoopError
from pytest_loop.run.console import Console
from pytest_loop.settings.command_line import describe_unknown_flag
from pytest_loop.settings.old_names import list_hints
from pytest_loop.settings.settings import read_settings
from pytest_loop.show.look import choose_look
from pytest_loop.store.project_runs import Store


def main(config: pytest.Config, values: argparse.Namespace) -> int:
    """Execute what the flags ask for, and return the exit code; raises `UsageError` for bad input.

    Import modules only where they are needed: this halves the start time of a command.
    """
    if config.pluginmanager.has_plugin("loop"):
        raise pytest.UsageError(
            "the plugin pytest-loop (a test repeater) is active and makes sessions run nothing: use -p no:loop"
        )
    if problem := describe_unknown_flag([str(argument) for argument in config.invocation_params.args]):
        raise pytest.UsageError(problem)
    if values.loop_shard:
        raise pytest.UsageError("--loop-shard divides one session, and a run needs all items: leave it out")
    _extend_path()
    try:
        settings = read_settings(config, values)
        stream = sys.stderr if settings.output.json == "-" else sys.stdout
        console = Console(stream, choose_look(stream, os.environ, settings.verbosity, settings.color))
        if settings.verbosity >= 0:
            console.print_lines(list_hints(config, values))
        store = Store(settings.root, settings.start.dir)
        if settings.command:
            from pytest_loop.cli.commands import Commands

            return Commands(settings, store, console).execute(settings.command)
        from pytest_loop.cli.start import start

        return start(settings, config.hook, store, console)
    except LoopError as error:
        raise pytest.UsageError(str(error)) from None


def _extend_path() -> None:
    """Put the tools of this Python environment first on `PATH`, as activating it would."""
    folder = str(Path(sys.executable).parent)
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    if folder not in folders:
        os.environ["PATH"] = os.pathsep.join((folder, *folders))
