"""pytest's hooks, each delegated in a few lines; heavy modules are imported only for rules and runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from pytest_loop.settings import command_line
from pytest_loop.settings.session_settings import has_old_keys, read_session_settings

RULE_FILES = (".rules.yaml", ".rules.yml", ".rules.json", ".rules.toml")
MANIFESTS = ("loop.manifest.json", "loop.manifest.yaml", "loop.manifest.yml", "loop.manifest.toml")
SESSION_VARIABLE, WORKER_VARIABLE = "PYTEST_LOOP_SESSION", "PYTEST_LOOP_WORKER"


def pytest_addoption(parser: pytest.Parser) -> None:
    command_line.declare_options(parser)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    from pytest_loop import hookspecs

    pluginmanager.add_hookspecs(hookspecs)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config, parser: pytest.Parser) -> None:
    """Start a run before any conftest file is loaded: its process never imports the code under test."""
    values = early_config.known_args_namespace
    if not values.help:
        command_line.declare_old_keys(parser)
    if text := os.environ.pop(SESSION_VARIABLE, ""):
        from pytest_loop.session.judge import join_run

        join_run(early_config, text)
    elif os.environ.pop(WORKER_VARIABLE, "") and "PYTEST_XDIST_WORKER" in os.environ:
        from pytest_loop.session.interference import start_watch

        start_watch(early_config)
    elif command_line.takes_over(values):
        capture: Any = early_config.pluginmanager.getplugin("capturemanager")
        capture.suspend_global_capture(in_=True)
        if values.loop_gate:
            from pytest_loop.cli import stop_hook

            stop_hook.main(early_config, values)
        if values.loop_watch:
            from pytest_loop.cli import watch

            raise SystemExit(watch.main(early_config, values))
        from pytest_loop.cli import dispatch

        raise SystemExit(dispatch.main(early_config, values))
    elif problem := command_line.describe_unknown_flag(
        list(map(str, early_config.invocation_params.args)), is_run=False
    ):
        raise pytest.UsageError(problem)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", command_line.RULE_MARK)
    worker_input = getattr(config, "workerinput", {})
    order_path = worker_input.get("loop_order")
    settings = read_session_settings(config)
    has_judge = settings.judge or "loop_judge" in worker_input
    has_files = settings.baseline is not None or settings.shard is not None
    if has_files or has_judge or order_path or _belongs_to_run(config):
        from pytest_loop.session import judge

        if order_path:
            judge.load_order(config, Path(order_path))
        judge.get_session(config).start()


def _belongs_to_run(config: pytest.Config) -> bool:
    """Return whether a run started this session, without importing anything."""
    judge = sys.modules.get("pytest_loop.session.judge")
    return judge is not None and judge.ORDER_PATH in config.stash


def pytest_sessionstart(session: pytest.Session) -> None:
    """Print a hint for each option that has an old name or no effect."""
    config = session.config
    reporter: Any = config.pluginmanager.getplugin("terminalreporter")
    if reporter is None or hasattr(config, "workerinput") or _belongs_to_run(config):
        return
    if any(str(word).startswith("--loop") for word in config.invocation_params.args) or has_old_keys(config):
        from pytest_loop.settings.old_names import render_session_hints

        for line in render_session_hints(config):
            reporter.write_line(line)


def pytest_cmdline_main(config: pytest.Config) -> int | None:
    if not config.getoption("loop_schema"):
        return None
    from pytest_loop.cli import schema

    return schema.main()


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if file_path.name.endswith(RULE_FILES):
        from pytest_loop.rules.items import RuleFile

        return RuleFile.from_parent(parent, path=file_path)
    if file_path.name in MANIFESTS or _is_ordered_manifest(parent.config, file_path):
        from pytest_loop.workloads.items import ManifestFile

        return ManifestFile.from_parent(parent, path=file_path)
    return None


def _is_ordered_manifest(config: pytest.Config, path: Path) -> bool:
    """Return whether a run tunes the workload of this manifest, which may have any name."""
    if not _belongs_to_run(config):
        return False
    from pytest_loop.session.judge import get_session

    order = get_session(config).order
    return order is not None and bool(order.manifest) and path == config.rootpath / order.manifest


@pytest.hookimpl(wrapper=True)
def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> Generator[None, bool | None, bool | None]:
    is_ignored = yield
    if is_ignored and collection_path.name.endswith(RULE_FILES) and not _belongs_to_run(config):
        from pytest_loop.session.left_out_rules import note_ignored_file

        note_ignored_file(collection_path, config)
    return is_ignored


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None, None, None]:
    """After all plugins, deselect the rules of phase B in phase A, and order the others."""
    rules = [item for item in items if item.get_closest_marker("loop_rule") is not None]
    yield
    if rules and not _belongs_to_run(config):
        from pytest_loop.session.left_out_rules import note_deselected

        note_deselected(rules, items, config)
    if read_session_settings(config).phase != "B":
        late = [item for item in items if _is_phase_b(item)]
        config.hook.pytest_deselected(items=late)
        excluded = set(late)
        items[:] = [item for item in items if item not in excluded]
    is_worker = hasattr(config, "workerinput")
    if _belongs_to_run(config) or (is_worker and any(item.path.name.endswith(RULE_FILES) for item in items)):
        from pytest_loop.session.judge import get_session

        get_session(config).order_items(items)


def _is_phase_b(item: pytest.Item) -> bool:
    if item.get_closest_marker("loop_rule") is None:
        return False
    from pytest_loop.rules.binding import find_phase

    return find_phase(item) == "B"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    config = session.config
    has_rules = any(item.get_closest_marker("loop_rule") for item in session.items)
    if has_rules or _belongs_to_run(config) or config.option.loop_shard:
        from pytest_loop.session.judge import get_session

        get_session(config).make_plan(session)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    from pytest_loop.session.judge import get_session

    get_session(node.config).configure_worker(node)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    if names := getattr(node, "workeroutput", {}).get("loop_left_out"):
        from pytest_loop.session.left_out_rules import note_names

        note_names(names, node.config)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> None:
    """Run the collected items despite collection errors if each error is that of a rule file."""
    if session.testsfailed:
        from pytest_loop.rules.items import BAD_FILE_COUNT

        if session.stash.get(BAD_FILE_COUNT, 0) == session.testsfailed:
            session.config.option.continue_on_collection_errors = True


def _is_hidden(config: pytest.Config) -> bool:
    """Return whether a run started this session and does not show its output."""
    if not _belongs_to_run(config):
        return False
    from pytest_loop.session.judge import get_session

    order = get_session(config).order
    return order is None or not order.columns


@pytest.hookimpl(tryfirst=True)
def pytest_report_teststatus(report: pytest.TestReport, config: pytest.Config) -> Any:
    note = getattr(report, "loop", None)
    if note is None:
        return None
    if note["shown"] == "passed" and _is_hidden(config):
        return "passed", "", ""  # hidden output: printing letters costs time
    from pytest_loop.show.report_status import choose_report_status

    return choose_report_status(note, config.get_verbosity())
