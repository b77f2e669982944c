"""Prevent a green exit code if a plugin leaves rules out as unaffected: it cannot know which files rules read."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Any

import pytest

from pytest_loop.core.text.wording import list_names

_PLUGIN = "loop-left-out-rules"
_SELECTING_OPTIONS = ("keyword", "markexpr", "deselect")
_MAX_NAMES = 3
OUTPUT_KEY = "loop_left_out"


class LeftOutRules:
    """Report the rules that a plugin left out, and change the exit code from OK to "no tests collected"."""

    def __init__(self) -> None:
        self.names: dict[str, None] = {}

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, None, None]:
        """Change the exit code after every other plugin; a worker of xdist tells its controller."""
        getattr(session.config, "workeroutput", {})[OUTPUT_KEY] = list(self.names)
        yield
        if session.exitstatus == pytest.ExitCode.OK and not session.config.option.collectonly:
            session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        names = list_names(list(self.names), _MAX_NAMES)
        text = f"not judged, because a plugin or conftest.py left them out: {names}; run all rules without it"
        terminalreporter.write_line(text, red=True)


def note_ignored_file(path: Path, config: pytest.Config) -> None:
    """Note a rule file that is not collected, unless pytest itself or a conftest file ignores it."""
    plugins = config.pluginmanager.get_plugins()
    others = [plugin for plugin in plugins if not _belongs_to_project_or_pytest(plugin)]
    is_ignored_by_project_or_pytest = config.pluginmanager.subset_hook_caller("pytest_ignore_collect", others)
    if not is_ignored_by_project_or_pytest(collection_path=path, path=None, config=config):
        note_names([path.name], config)


def _belongs_to_project_or_pytest(plugin: object) -> bool:
    module = str(getattr(plugin, "__module__", None) or getattr(plugin, "__name__", ""))
    return module.partition(".")[0] in ("_pytest", "pytest") or module.rpartition(".")[2] == "conftest"


def note_deselected(before: Iterable[pytest.Item], after: Iterable[pytest.Item], config: pytest.Config) -> None:
    """Note the rules that plugins deselected; note none if the user selects with `-k`, `-m` or `--deselect`."""
    if any(getattr(config.option, name, None) for name in _SELECTING_OPTIONS):
        return
    selected = set(after)
    if names := [item.nodeid for item in before if item not in selected]:
        note_names(names, config)


def note_names(names: Iterable[str], config: pytest.Config) -> None:
    """Note rules, or files of rules, that are left out."""
    plugin = config.pluginmanager.getplugin(_PLUGIN)
    if plugin is None:
        plugin = LeftOutRules()
        config.pluginmanager.register(plugin, _PLUGIN)
    plugin.names |= dict.fromkeys(names)
