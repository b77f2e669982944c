"""A session that judges: its plan, its messages to the run, its score, and its exit code.

With xdist, the controller and each worker have one each: the controller's has no items, and a worker's sees only the
reports of that worker.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_loop.session.durations import SLOW_SECONDS, load_durations, save_durations
from pytest_loop.session.session_score import SessionScore
from pytest_loop.session.xdist import Controller, SharedFolder
from pytest_loop.settings.session_settings import SessionSettings, read_session_settings

if TYPE_CHECKING:
    from pytest_loop.core.model.rules import SessionPlan
    from pytest_loop.core.model.session_order import SessionOrder
    from pytest_loop.rules.checks.check import JudgeReply
    from pytest_loop.session.channel import Channel
    from pytest_loop.session.record import Recorder
    from pytest_loop.session.run_signals import RunSignals
    from pytest_loop.session.shard import ShardFile

_MAX_KEY_LENGTH = 64
_PLUGIN, _RECORDER = "loop-session", "loop-recorder"
# The variable that tells a worker of xdist that it belongs to a run.
WORKER_VARIABLE = "PYTEST_LOOP_WORKER"
ORDER_PATH: pytest.StashKey[Path] = pytest.StashKey()
_CHANNEL: pytest.StashKey[tuple[int, bytes]] = pytest.StashKey()


class JudgingSession:
    """The plugin of one process of a session. Heavy modules are imported once there is something to judge."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.plan: SessionPlan | None = None
        worker_input: dict[str, Any] = getattr(config, "workerinput", {})
        self.is_worker = bool(worker_input)
        self._folder = SharedFolder(Path(worker_input["loop_folder"]) if self.is_worker else None)
        self._controller: Controller | None = None
        self._shard_file: ShardFile | None = None
        self._judge_address: tuple[str, str] | None = (
            tuple(worker_input["loop_judge"]) if "loop_judge" in worker_input else None
        )
        self._close_judge: Callable[[], None] = lambda: None
        self.score = SessionScore(config, self.settings)

    @cached_property
    def settings(self) -> SessionSettings:
        return read_session_settings(self.config)

    @cached_property
    def order(self) -> SessionOrder | None:
        """The order of the run, if this session belongs to one."""
        if ORDER_PATH not in self.config.stash:
            return None
        from pytest_loop.rules.items import ORDER

        return self.config.stash.get(ORDER, None)

    @cached_property
    def channel(self) -> Channel | None:
        """The pipe to the run; None in workers and outside a run."""
        if self.order is None or self.is_worker:
            return None
        from pytest_loop.session.channel import Channel

        return Channel(*self.config.stash[_CHANNEL], self.order.columns)

    @cached_property
    def signals(self) -> RunSignals:
        from pytest_loop.session.run_signals import RunSignals

        return RunSignals(self.config, self.channel)

    @cached_property
    def recorder(self) -> Recorder:
        from pytest_loop.session.record import Recorder

        return Recorder(self.channel.send_evidence if self.channel else None, keeps_all=bool(self.settings.shard))

    def _start_recording(self) -> bool:
        """Record the reports from now on; return False if they are recorded already."""
        if self.config.pluginmanager.has_plugin(_RECORDER):
            return False
        self.config.pluginmanager.register(self.recorder, _RECORDER)
        return True

    # -- start

    def start(self) -> None:
        """Apply the order of the run, if there is one, and connect rules to the judge."""
        if self.order is not None:
            self._apply_order(self.order)
        elif self.settings.judge and not self.is_worker:
            from pytest_loop.session.judge_service import start_judge

            service = start_judge(self.config, self.settings)
            self._judge_address, self._close_judge = (service.address, service.key), service.close
        if self._judge_address is not None:
            from pytest_loop.rules.items import ASK_JUDGE
            from pytest_loop.session.judge_service import ask_judge

            ask: Callable[..., JudgeReply] = partial(ask_judge, *self._judge_address)
            self.config.stash[ASK_JUDGE] = ask
        if self.settings.shard is not None and not self.is_worker and self.order is None:
            from pytest_loop.session.shard import ShardFile

            self._shard_file = ShardFile(self.config, self.settings, self.settings.shard)
            self._start_recording()
        self.score.load_baseline()

    def _apply_order(self, order: SessionOrder) -> None:
        from pytest_loop.core.model.rules import INFERRED_FILE
        from pytest_loop.session.collection_scope import InferredRules

        self.config.option.loop_phase = order.phase.value
        arguments = map(str, self.config.invocation_params.args)
        if path := next((argument for argument in arguments if argument.endswith(INFERRED_FILE)), None):
            self.config.pluginmanager.register(InferredRules(Path(path)), "loop-inferred-rules")
        if order.can_stop_early and not self.config.option.maxfail:
            self.config.option.maxfail = 1
        if order.judge_address:
            self._judge_address = (order.judge_address, order.judge_key)
        if self.channel is not None:
            self.config.pluginmanager.register(self.channel, "loop-channel")
            self._start_recording()
        self.config.pluginmanager.register(self.signals, "loop-signals")

    def order_items(self, items: list[pytest.Item]) -> None:
        """Reorder the items in place."""
        from pytest_loop.session.ordering import PastResults, order_items, order_rule_items

        if self.order is None:
            items[:] = order_rule_items(items, PastResults(load_durations(self.config)))
        else:
            if selected := frozenset(self.order.selected):
                items[:] = [item for item in items if not selected.isdisjoint(_list_names(item))]
            past = PastResults(self.order.durations, frozenset(self.order.failed_before))
            items[:] = order_items(items, past, is_distributed=self.is_worker)

    def make_plan(self, session: pytest.Session) -> None:
        """Bind the collected items to rules, and watch their reports."""
        from pytest_loop.rules.binding import Binding
        from pytest_loop.rules.garbage_collection import freeze_rules
        from pytest_loop.rules.items import VERDICT_CACHE, VOTES
        from pytest_loop.rules.repeats import RepeatVotes
        from pytest_loop.rules.reuse import VerdictCache
        from pytest_loop.session.reports import Reports

        session.stash[VOTES] = RepeatVotes(self._folder.path if self.is_worker else None)
        if self.order is not None:
            session.stash[VERDICT_CACHE] = VerdictCache(self.order.cached_evidence)
        binding = Binding(session, binds_all_tests=self.order is not None)
        baseline = self.score.baseline
        failures = baseline.failures if baseline else frozenset()
        self.config.pluginmanager.register(Reports(binding, failures), "loop-reports")
        if self.order is not None and self.order.canary:
            replaced_tests = self._watch_for_interference(session, self.order.canary)
            binding.plan = binding.plan.model_copy(update={"replaced_tests": replaced_tests})
        if (shard := self.settings.shard or (self.order.shard if self.order else None)) is not None:
            from pytest_loop.session.shard import deselect_other_shards

            seconds = self.order.durations if self.order else {}
            binding.plan = deselect_other_shards(session, binding.plan, shard, seconds)
        if self.is_worker:
            self._folder.write_plan(binding.plan)
            return
        self.plan = binding.plan
        self._start_recording()
        if self.channel is not None:
            self.channel.send_plan(self.plan.model_dump_json())
        if not binding.has_tests:  # tests may examine objects with `gc`, which does not list frozen ones
            freeze_rules(is_last_session=self.channel is not None)

    def _watch_for_interference(self, session: pytest.Session, token: str) -> tuple[str, ...]:
        """Add canaries to the session, watch its test modules, and return the tests that are replaced already."""
        from pytest_loop.session.canary import Canary
        from pytest_loop.session.interference import WATCH
        from pytest_loop.session.test_code import find_replaced_tests, list_imports
        from pytest_loop.session.test_modules import find_test_modules

        root = self.config.rootpath
        modules = find_test_modules(session.items, root)
        replaced_tests = find_replaced_tests(session.items, modules, root)
        watch = self.config.stash[WATCH]
        watch.watch_tests(modules, list_imports(modules))
        canary = Canary(token, watch, self.signals.report_canary)
        self.config.pluginmanager.register(canary, "loop-canary")
        return tuple(sorted(replaced_tests))

    # -- xdist

    def configure_worker(self, node: Any) -> None:
        """Pass the order and the judge to a worker of xdist."""
        if self._controller is None:
            send_plan = self.channel.send_plan if self.channel is not None else None
            self._controller = Controller(self.config, self._folder, send_plan, self._load_workers_plan)
            seconds = self.order.durations if self.order is not None else load_durations(self.config)
            if any(duration >= SLOW_SECONDS for duration in seconds.values()):
                self._controller.limit_batches()
        self._controller.configure_worker(node)
        if self._judge_address is not None and self.order is None:
            node.workerinput["loop_judge"] = list(self._judge_address)
        if ORDER_PATH in self.config.stash:
            node.workerinput["loop_order"] = str(self.config.stash[ORDER_PATH])

    def _load_workers_plan(self, report: pytest.TestReport) -> None:
        """Load the plan of the workers; pass the report on if the recorder is created only now and has missed it."""
        self.plan = self._controller.load_plan() if self._controller is not None else None
        if self.plan is not None and self._start_recording():
            self.recorder.pytest_runtest_logreport(report)

    # -- end

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Score the reports, and let the criteria decide the exit code."""
        if self.is_worker:
            return
        if self._controller is not None:
            self._controller.forward_plan()
            self.plan = self.plan or self._controller.load_plan()
        if self.plan is not None and self._shard_file is not None and not self.config.option.collectonly:
            self._shard_file.write(session, self.plan, self.recorder.evidence, self.score.baseline)
        is_shard = self._shard_file is not None or (self.order is not None and self.order.shard is not None)
        if self.plan is None or is_shard or not self.recorder.has_evidence:
            return
        if self.order is None:
            save_durations(self.config, self.recorder.durations)
        self.score.compute(session, self.recorder, self.plan)

    def pytest_unconfigure(self) -> None:
        self._close_judge()
        if self._controller is not None:
            self._folder.delete()


def _list_names(item: pytest.Item) -> tuple[str, str]:
    return item.nodeid, item.nodeid.partition("::")[0]


def get_session(config: pytest.Config) -> JudgingSession:
    """Return the judging session of this process; the first call creates it."""
    session: JudgingSession | None = config.pluginmanager.getplugin(_PLUGIN)
    if session is None:
        session = JudgingSession(config)
        config.pluginmanager.register(session, _PLUGIN)
        config.pluginmanager.register(session.score, "loop-score")
    return session


def join_run(config: pytest.Config, text: str) -> None:
    """Make this session one of a run; `text` holds two pipes, for its messages and with their key, and its order."""
    from pytest_loop.session.interference import start_watch
    from pytest_loop.session.judging_modules import load_judging_modules

    load_judging_modules()
    if not gc.get_freeze_count():  # else the fork server has done it
        gc.freeze()  # scanning pytest and these modules for garbage costs 15 % of a large suite
    start_watch(config)
    if any(getattr(config.known_args_namespace, name, None) for name in ("numprocesses", "tx")):
        from pytest_loop.session.warm import xdist_workers

        xdist_workers.patch_execnet_to_isolate()
        os.environ[WORKER_VARIABLE] = "1"
    descriptor, key_end, path = text.split(" ", 2)
    config.stash[_CHANNEL] = int(descriptor), os.read(int(key_end), _MAX_KEY_LENGTH)
    os.close(int(key_end))
    load_order(config, Path(path))


def load_order(config: pytest.Config, path: Path) -> None:
    """Load the order of the run that this session belongs to."""
    from pytest_loop.core.model.session_order import SessionOrder
    from pytest_loop.rules.items import ORDER
    from pytest_loop.session.collection_scope import CollectionScope
    from pytest_loop.session.reads import record_reads

    order = config.stash[ORDER] = SessionOrder.model_validate_json(path.read_bytes())
    config.stash[ORDER_PATH] = path
    record_reads(config, lambda: get_session(config).channel, with_reach=order.records_reach)
    config.pluginmanager.register(CollectionScope(order.excluded, order.only), "loop-collection-scope")
