"""pytest's front door: wires, decides nothing, and imports what is heavy only when a rule asks for it."""

from __future__ import annotations

import shutil
import tempfile
import uuid
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_loop import options

if TYPE_CHECKING:
    from pytest_loop.core.model import Evaluation, Plan
    from pytest_loop.evaluate.baseline import Baseline
    from pytest_loop.evaluate.record import Recorder

RULE_FILES = (".rules.yaml", ".rules.yml", ".rules.json", ".rules.toml")
PLAN: pytest.StashKey[Plan] = pytest.StashKey()
EXCHANGE: pytest.StashKey[Path] = pytest.StashKey()
RECORDER: pytest.StashKey[Recorder] = pytest.StashKey()
BASELINE: pytest.StashKey[Baseline] = pytest.StashKey()
EVALUATIONS: pytest.StashKey[list[Evaluation]] = pytest.StashKey()
TROUBLE: pytest.StashKey[str] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    options.declare(parser)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    from pytest_loop import hookspecs

    pluginmanager.add_hookspecs(hookspecs)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", options.RULE_MARK)
    asked = options.options(config)
    if asked.baseline is not None:
        from pytest_loop.errors import SavedFileError
        from pytest_loop.evaluate import baseline

        try:
            config.stash[BASELINE] = baseline.load(asked.baseline)
        except SavedFileError as error:
            raise pytest.UsageError(str(error)) from None


def pytest_cmdline_main(config: pytest.Config) -> int | None:
    if not config.getoption("loop_schema"):
        return None
    import json

    from pytest_loop.rules.files import json_schema

    print(json.dumps(json_schema(), indent=2))
    return 0


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if not file_path.name.endswith(RULE_FILES):
        return None
    from pytest_loop.rules.collect import RuleFile

    return RuleFile.from_parent(parent, path=file_path)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the rules that are not active in the phase asked for."""
    if options.options(config).phase == "B":
        return
    later = [item for item in items if _phase(item) == "B"]
    config.hook.pytest_deselected(items=later)
    items[:] = [item for item in items if _phase(item) != "B"]


def _phase(item: pytest.Item) -> str:
    mark = item.get_closest_marker("loop_rule")
    name = str(mark.args[0]) if mark and mark.args else ""
    return str(mark.kwargs.get("phase") or ("B" if name.startswith("b.") else "A")) if mark else ""


def pytest_collection_finish(session: pytest.Session) -> None:
    """Where the items are: make the plan, and see to what their reports say."""
    if not any(item.get_closest_marker("loop_rule") for item in session.items):
        return
    from pytest_loop.rules.binding import Binding
    from pytest_loop.rules.collect import TALLY
    from pytest_loop.rules.reports import Reports
    from pytest_loop.rules.tally import Tally

    config = session.config
    exchange = _worker_exchange(config)
    session.stash[TALLY] = Tally(exchange)
    binding = Binding(session)
    known = config.stash[BASELINE].failures if BASELINE in config.stash else ()
    config.pluginmanager.register(Reports(binding, known), "loop-reports")
    if exchange is None:
        config.stash[PLAN] = binding.plan
        _recorder(config)
    else:
        _leave_plan(exchange, binding.plan)


def _worker_exchange(config: pytest.Config) -> Path | None:
    """The folder that this xdist worker shares with the others; None where there are no workers."""
    folder = getattr(config, "workerinput", {}).get("loop_exchange")
    return Path(folder) if folder else None


def _leave_plan(exchange: Path, plan: Plan) -> None:
    """Every worker makes the same plan; the first one leaves it for the controller, which has no items."""
    if not (exchange / "plan.json").exists():
        exchange.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = exchange / f"plan-{uuid.uuid4().hex}"
        draft.write_text(plan.model_dump_json(), encoding="utf-8")
        draft.replace(exchange / "plan.json")


def _recorder(config: pytest.Config) -> Recorder:
    if RECORDER not in config.stash:
        from pytest_loop.evaluate.record import Recorder

        config.stash[RECORDER] = Recorder()
        config.pluginmanager.register(config.stash[RECORDER], "loop-recorder")
    return config.stash[RECORDER]


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """xdist: the controller names a folder for what workers have to tell; it exists only once one does."""
    config: pytest.Config = node.config
    if EXCHANGE not in config.stash:
        config.stash[EXCHANGE] = Path(tempfile.gettempdir()) / f"pytest-loop-{uuid.uuid4().hex}"
        _recorder(config)
    node.workerinput["loop_exchange"] = str(config.stash[EXCHANGE])


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> None:
    """A bad rule file is an error of its own: the rest is judged all the same."""
    if session.testsfailed:
        from pytest_loop.rules.collect import BAD_FILES

        if session.stash.get(BAD_FILES, 0) == session.testsfailed:
            session.config.option.continue_on_collection_errors = True


@pytest.hookimpl(tryfirst=True)
def pytest_report_teststatus(report: pytest.TestReport, config: pytest.Config) -> Any:
    noted = getattr(report, "loop", None)
    if noted is None:
        return None
    from pytest_loop.show.status import status

    return status(noted, config.get_verbosity())


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Where the reports come together: score them, and let the criteria decide the exit code."""
    config = session.config
    plan = _plan(config)
    if plan is None or not _recorder(config).heard:
        return
    from pytest_loop.core.model import Phase

    asked = options.options(config)
    evaluations = _recorder(config).evaluations(plan, Phase(asked.phase))
    config.stash[EVALUATIONS] = evaluations
    _note_suite_score(config, evaluations)
    if asked.save_baseline is not None:
        _save_baseline(session, evaluations, asked.save_baseline)
    if session.exitstatus == pytest.ExitCode.OK and not _acceptable(config, evaluations):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _save_baseline(session: pytest.Session, evaluations: list[Evaluation], path: Path) -> None:
    from pytest_loop.errors import SavedFileError
    from pytest_loop.evaluate import baseline

    try:
        baseline.save(evaluations, path)
    except SavedFileError as error:
        session.config.stash[TROUBLE] = str(error)
        session.exitstatus = pytest.ExitCode.USAGE_ERROR


def _plan(config: pytest.Config) -> Plan | None:
    if PLAN in config.stash:
        return config.stash[PLAN]
    left = config.stash[EXCHANGE] / "plan.json" if EXCHANGE in config.stash else None
    if left is None or not left.exists():
        return None
    from pytest_loop.core.model import Plan

    return Plan.model_validate_json(left.read_bytes())


def _acceptable(config: pytest.Config, evaluations: list[Evaluation]) -> bool:
    worse = _worse(config, evaluations)
    return all(one.passed for one in evaluations) if worse is None else not worse


def _worse(config: pytest.Config, evaluations: list[Evaluation]) -> list[str] | None:
    if BASELINE not in config.stash:
        return None
    from pytest_loop.evaluate import baseline

    return baseline.worse(evaluations, config.stash[BASELINE])


def _note_suite_score(config: pytest.Config, evaluations: list[Evaluation]) -> None:
    """The suite's score in JUnit XML; the plugin that writes it has no other public way in than its own method."""
    for plugin in config.pluginmanager.get_plugins():
        add = getattr(plugin, "add_global_property", None)
        if add is not None:
            for one in evaluations:
                name = "loop.score" if len(evaluations) == 1 else f"loop.score.{one.criteria}"
                add(name, f"{float(one.score):.4g}")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> Generator[None, None, None]:
    """The score closes the run: it comes after pytest's own summary."""
    yield
    evaluations = config.stash.get(EVALUATIONS, None)
    if not evaluations:
        return
    from pytest_loop.show.terminal import score_lines

    terminalreporter.write_sep("=", "loop score")
    for line in score_lines(evaluations, _worse(config, evaluations)):
        terminalreporter.write_line(line.text, **({line.colour: True} if line.colour else {}))
    if TROUBLE in config.stash:
        terminalreporter.write_line(f"ERROR: {config.stash[TROUBLE]}", red=True)


def pytest_unconfigure(config: pytest.Config) -> None:
    if EXCHANGE in config.stash:
        shutil.rmtree(config.stash[EXCHANGE], ignore_errors=True)
