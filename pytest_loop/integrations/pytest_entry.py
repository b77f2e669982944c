"""Call a function with the settings of a project, as pytest reads them, and without importing the project."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from pytest_loop.settings.settings import Settings, read_settings

Function = Callable[[pytest.Config, Settings], int]


def call_with_settings(arguments: Sequence[str], function: Function) -> int:
    """Return the exit code of a function that is called as soon as pytest has read its configuration."""
    return int(pytest.main(["-p", "no:loop", *arguments], plugins=[_Entry(function)]))


@dataclass(frozen=True)
class _Entry:
    """Plugin that calls the function with uncaptured standard streams, and exits pytest with its result."""

    function: Function

    @pytest.hookimpl(tryfirst=True)
    def pytest_load_initial_conftests(self, early_config: pytest.Config) -> None:
        capture: Any = early_config.pluginmanager.getplugin("capturemanager")
        capture.suspend_global_capture(in_=True)
        settings = read_settings(early_config, early_config.known_args_namespace)
        raise SystemExit(self.function(early_config, settings))
