"""pytest's front door: wires, decides nothing, and imports what is heavy only when a rule or a run asks for it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from pytest_loop.settings import command_line
from pytest_loop.settings.session_settings import read_session_settings

RULE_FILES = (".rules.yaml", ".rules.yml", ".rules.json", ".rules.toml")
MANIFESTS = ("loop.manifest.json", "loop.manifest.yaml", "loop.manifest.yml", "loop.manifest.toml")
ORDERED = "PYTEST_LOOP_SESSION"


def pytest_addoption(parser: pytest.Parser) -> None:
    command_line.declare_options(parser)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    from pytest_loop import hookspecs

    pluginmanager.add_hookspecs(hookspecs)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """A run takes over before any conftest file is loaded: this process never imports the code under test."""
    if ordered := os.environ.pop(ORDERED, ""):
        from pytest_loop.session.judge import summoned

        summoned(early_config, ordered)
    elif command_line.takes_over(early_config.known_args_namespace):
        values = early_config.known_args_namespace
        capture: Any = early_config.pluginmanager.getplugin("capturemanager")
        capture.suspend_global_capture(in_=True)
        if values.loop_gate:
            from pytest_loop.cli import stop_hook

            stop_hook.main(early_config, values)
        if values.loop_watch:
            from pytest_loop.cli import watch

            raise SystemExit(watch.main(early_config, values))
        from pytest_loop.cli import start

        raise SystemExit(start.main(early_config, values))


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", command_line.RULE_MARK)
    config.add_cleanup(_wake)  # the first one that is added comes last
    worker = getattr(config, "workerinput", {})
    left = worker.get("loop_order")
    asked = read_session_settings(config)
    if asked.baseline is not None or asked.judge or left or "loop_judge" in worker or _belongs_to_a_run(config):
        from pytest_loop.session import judge

        if left:
            judge.obey(config, Path(left))
        session = judge.judging(config)
        session.join()
        _ = session.baseline


def _wake() -> None:
    import sys

    if found := sys.modules.get("pytest_loop.rules.garbage"):
        found.wake()


def _belongs_to_a_run(config: pytest.Config) -> bool:
    """Asked without importing anything: an order is only there where `obey` was."""
    import sys

    found = sys.modules.get("pytest_loop.session.judge")
    return found is not None and found.ORDER_PATH in config.stash


def pytest_cmdline_main(config: pytest.Config) -> int | None:
    if not config.getoption("loop_schema"):
        return None
    import json

    from pytest_loop.rules.rule_files import build_json_schema

    print(json.dumps(build_json_schema(), indent=2))
    return 0


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if file_path.name.endswith(RULE_FILES):
        from pytest_loop.rules.items import RuleFile

        return RuleFile.from_parent(parent, path=file_path)
    if file_path.name in MANIFESTS or _is_ordered(parent.config, file_path):
        from pytest_loop.workloads.items import ManifestFile

        return ManifestFile.from_parent(parent, path=file_path)
    return None


def _is_ordered(config: pytest.Config, path: Path) -> bool:
    """Whether a run tunes the workload of this manifest, whatever its name."""
    if not _belongs_to_a_run(config):
        return False
    from pytest_loop.session.judge import judging

    order = judging(config).order
    return order is not None and bool(order.manifest) and path == config.rootpath / order.manifest


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the rules that are not active in the phase asked for, and put the others in order."""
    if read_session_settings(config).phase != "B":
        config.hook.pytest_deselected(items=[item for item in items if _phase(item) == "B"])
        items[:] = [item for item in items if _phase(item) != "B"]
    is_spread = hasattr(config, "workerinput")
    if _belongs_to_a_run(config) or (is_spread and any(item.path.name.endswith(RULE_FILES) for item in items)):
        from pytest_loop.session.judge import judging

        judging(config).arrange(items)


def _phase(item: pytest.Item) -> str:
    mark = item.get_closest_marker("loop_rule")
    name = str(mark.args[0]) if mark and mark.args else ""
    return str(mark.kwargs.get("phase") or ("B" if name.startswith("b.") else "A")) if mark else ""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    if _belongs_to_a_run(session.config) or any(item.get_closest_marker("loop_rule") for item in session.items):
        from pytest_loop.session.judge import judging

        judging(session.config).begin(session)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    from pytest_loop.session.judge import judging

    judging(node.config).introduce(node)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> None:
    """A bad rule file is an error of its own: the rest is judged all the same."""
    if session.testsfailed:
        from pytest_loop.rules.items import BAD_FILES

        if session.stash.get(BAD_FILES, 0) == session.testsfailed:
            session.config.option.continue_on_collection_errors = True


@pytest.hookimpl(tryfirst=True)
def pytest_report_teststatus(report: pytest.TestReport, config: pytest.Config) -> Any:
    noted = getattr(report, "loop", None)
    if noted is None:
        return None
    if noted["shown"] == "passed" and _belongs_to_a_run(config):
        return "passed", "", ""  # nobody watches the letters of such a session
    from pytest_loop.show.status import status

    return status(noted, config.get_verbosity())
