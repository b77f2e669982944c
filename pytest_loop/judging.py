"""A session that judges: its plan, what it tells a run, its score, and the exit code that follows.

Under xdist it lives in the controller, which has no items, and in each worker, which has no reports of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_loop.court import answer, opened
from pytest_loop.exchange import Exchange
from pytest_loop.options import Options, options
from pytest_loop.serving import load

if TYPE_CHECKING:
    from pytest_loop.core.model import Evaluation, Plan
    from pytest_loop.core.order import Order
    from pytest_loop.evaluate.baseline import Baseline
    from pytest_loop.evaluate.channel import Channel
    from pytest_loop.evaluate.record import Recorder
    from pytest_loop.rules.checks.base import Answer

NAME = "loop-judging"
FEW = 2
CANARY = "loop_canary"
ORDER_PATH: pytest.StashKey[Path] = pytest.StashKey()
CHANNEL: pytest.StashKey[int] = pytest.StashKey()


class Judging:
    """One per process of a session; what is heavy is imported when there is something to judge."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.plan: Plan | None = None
        self.evaluations: list[Evaluation] = []
        self.trouble = ""
        self._was_told = False
        self._ran_nothing = False
        worker: dict[str, Any] = getattr(config, "workerinput", {})
        self.is_worker = bool(worker)
        self.exchange = Exchange(Path(worker["loop_exchange"]) if self.is_worker else None)
        self.is_spread = self.is_worker
        self._seat: tuple[str, str] | None = tuple(worker["loop_judge"]) if "loop_judge" in worker else None
        self._dismiss: Callable[[], None] = lambda: None

    @cached_property
    def asked(self) -> Options:
        return options(self.config)

    @cached_property
    def baseline(self) -> Baseline | None:
        """What the session is compared with; one that cannot be used is a usage error."""
        if self.asked.baseline is None:
            return None
        from pytest_loop.errors import SavedFileError
        from pytest_loop.evaluate import baseline

        try:
            return baseline.load(self.asked.baseline)
        except SavedFileError as error:
            raise pytest.UsageError(str(error)) from None

    @cached_property
    def order(self) -> Order | None:
        """What the run said, if this session belongs to one."""
        if ORDER_PATH not in self.config.stash:
            return None
        from pytest_loop.rules.collect import ORDER

        return self.config.stash.get(ORDER, None)

    @cached_property
    def channel(self) -> Channel | None:
        """The way to the run: only where reports come together."""
        if self.order is None or self.is_worker:
            return None
        from pytest_loop.evaluate.channel import Channel

        made = Channel(self.config.stash[CHANNEL])
        self.config.pluginmanager.register(made, "loop-channel")
        return made

    @cached_property
    def recorder(self) -> Recorder:
        from pytest_loop.evaluate.record import Recorder

        made = Recorder(self.channel.tell_evidence if self.channel else None)
        self.config.pluginmanager.register(made, "loop-recorder")
        return made

    # -- the beginning

    def join(self) -> None:
        """Judge what the run ordered, if there is one, and give questions to its judge, or to the session's own."""
        if self.order is None:
            if self.asked.judge and not self.is_worker:
                court = opened(self.config, self.asked)
                self._seat, self._dismiss = (court.address, court.key), court.close
        else:
            self.config.option.loop_phase = self.order.phase.value
            self._let_in()
            if self.order.stop_early and not self.config.option.maxfail:
                self.config.option.maxfail = 1
            if self.order.judge:
                self._seat = (self.order.judge, self.order.judge_key)
            if self.channel is not None:
                _ = self.recorder
        if self._seat is not None:
            from pytest_loop.rules.collect import ASK

            ask: Callable[..., Answer] = partial(answer, *self._seat)
            self.config.stash[ASK] = ask

    def _let_in(self) -> None:
        """Rules that the run keeps are among the arguments, and pytest drops them where their folder is one too."""
        from pytest_loop.rules.kept import KeptRules
        from pytest_loop.rules.sources import INFERRED

        words = map(str, self.config.invocation_params.args)
        if found := next((word for word in words if word.endswith(INFERRED)), None):
            self.config.pluginmanager.register(KeptRules(Path(found)), "loop-kept-rules")

    def arrange(self, items: list[pytest.Item]) -> None:
        """What decides first; among workers, slow rules beside cheap ones."""
        from pytest_loop.leaving import known_seconds
        from pytest_loop.rules.ordering import Past, arranged, rules_arranged

        if self.order is not None:
            past = Past(self.order.seconds, frozenset(self.order.failed))
            items[:], is_uneven = arranged(items, past, is_spread=self.is_worker)
        else:
            items[:], is_uneven = rules_arranged(items, Past(known_seconds(self.config)))
        if is_uneven and self.is_worker:
            self.exchange.say_uneven()

    def begin(self, session: pytest.Session) -> None:
        """Where the items are: make the plan, and see to what their reports say."""
        from pytest_loop.rules import garbage
        from pytest_loop.rules.binding import Binding
        from pytest_loop.rules.collect import REUSE, TALLY
        from pytest_loop.rules.listening import is_alone, is_unwatched
        from pytest_loop.rules.protocol import SlimLoop, SlimProtocol, is_quiet
        from pytest_loop.rules.reports import Reports
        from pytest_loop.rules.reuse import Reuse
        from pytest_loop.rules.tally import Tally

        session.stash[TALLY] = Tally(self.exchange.path if self.is_worker else None)
        self._ran_nothing = all(map(is_quiet, session.items))
        if self.order is not None:
            session.stash[REUSE] = Reuse(self.order.known)
        with garbage.kept():
            binding = Binding(session, all_tests=self.order is not None)
        known = self.baseline.failures if self.baseline else ()
        self.config.pluginmanager.register(Reports(binding, known), "loop-reports")
        if not known and is_alone(self.config):
            slim = SlimProtocol(self.config)
            self.config.pluginmanager.register(slim, "loop-protocol")
            if is_unwatched(self.config):
                self.config.pluginmanager.register(SlimLoop(slim), "loop-rounds")
        if self.order is not None and self.order.canary:
            from pytest_loop.evaluate.canary import Canary

            self.config.pluginmanager.register(Canary(self.order.canary, self._heard_canary), "loop-canary")
        if self.is_worker:
            self.exchange.leave(binding.plan)
        else:
            self.plan = binding.plan
            _ = self.recorder
            if self.channel is not None:
                self.channel.tell_plan(self.plan.model_dump_json())

    def _heard_canary(self, has_failed: bool) -> None:
        """What became of the item that must fail; a worker tells the controller when it leaves."""
        if self.is_worker:
            self.config.workeroutput.setdefault(CANARY, []).append(has_failed)  # type: ignore[attr-defined]
        elif self.channel is not None:
            self.channel.tell(canary=has_failed)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """A worker has left; one that died has left no word."""
        for has_failed in getattr(node, "workeroutput", {}).get(CANARY, ()):
            self._heard_canary(has_failed)

    def introduce(self, node: Any) -> None:
        """To a worker of xdist: name the folder for what workers have to tell; it exists only once one does."""
        if not self.is_spread:
            from pytest_loop.rules.carrying import Delivery

            self.is_spread = True
            self.config.pluginmanager.register(Delivery(self.config), "loop-delivery")
            self.config.pluginmanager.register(_AtFirstReport(self._read_plan), "loop-first-report")
        node.workerinput["loop_exchange"] = str(self.exchange.path)
        node.workerinput["loop_heard"] = self._heard_here
        if self._seat is not None and self.order is None:
            node.workerinput["loop_judge"] = list(self._seat)
        if ORDER_PATH in self.config.stash:
            node.workerinput["loop_order"] = str(self.config.stash[ORDER_PATH])

    @cached_property
    def _heard_here(self) -> bool:
        """Whether anybody here wants to know more of an item that passed than that it did, or at once."""
        from pytest_loop.rules.carrying import can_deliver
        from pytest_loop.rules.listening import is_each_named, is_end_heard

        return is_each_named(self.config) or is_end_heard(self.config) or not can_deliver(self.config)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self) -> None:
        """The first worker that has collected has left the plan, and a run wants to know it early."""
        if self.exchange.is_uneven:
            self._share_finely()
        self._pass_on()

    def _pass_on(self) -> None:
        """Tell the run what workers are going to judge; as it stands, for they wait for their first items."""
        if self.channel is not None and not self._was_told and (plan := self.exchange.left()):
            self._was_told = True
            self.channel.tell_plan(plan)

    def _read_plan(self, first: pytest.TestReport | None = None) -> None:
        """What the workers judge, if they judge: they made it when they had collected. `first` is what they report."""
        if self.plan is None and (plan := self.exchange.left()):
            from pytest_loop.core.model import Plan

            self.plan = Plan.model_validate_json(plan)
            is_late = "recorder" not in vars(self)
            if is_late and first is not None:
                self.recorder.pytest_runtest_logreport(first)

    def _share_finely(self) -> None:
        """Where slow rules stand among cheap ones, a worker gets no more than it needs, unless the person said more."""
        scheduler = getattr(self.config.pluginmanager.getplugin("dsession"), "sched", None)
        if getattr(scheduler, "maxschedchunk", 0) is None:
            scheduler.maxschedchunk = FEW  # type: ignore[union-attr]

    # -- the end

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Where the reports come together: score them, and let the criteria decide the exit code."""
        if self.is_worker:
            return
        if self.is_spread:
            self._pass_on()
            self._read_plan()
        if self.plan is None or not self.recorder.heard:
            return
        from pytest_loop.core.model import Phase
        from pytest_loop.core.scoring import rescored
        from pytest_loop.leaving import note_seconds, note_suite_score
        from pytest_loop.rules import garbage

        with garbage.kept():
            found = self.recorder.evaluations(self.plan, Phase(self.asked.phase))
        self.evaluations = [rescored(one, self.config.hook.pytest_loop_score) for one in found]
        note_suite_score(self.config, self.evaluations)
        if self.order is None:
            note_seconds(self.config, self.recorder.seconds())
        self._save(session)
        if session.exitstatus == pytest.ExitCode.OK and not self._is_acceptable:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @property
    def _is_acceptable(self) -> bool:
        worse = self._worse()
        return all(one.passed for one in self.evaluations) if worse is None else not worse

    def _worse(self) -> list[str] | None:
        if self.baseline is None:
            return None
        from pytest_loop.evaluate.baseline import worse

        return worse(self.evaluations, self.baseline)

    def _save(self, session: pytest.Session) -> None:
        if self.asked.save_baseline is None:
            return
        from pytest_loop.errors import SavedFileError
        from pytest_loop.evaluate import baseline

        try:
            baseline.save(self.evaluations, self.asked.save_baseline)
        except SavedFileError as error:
            self.trouble = str(error)
            session.exitstatus = pytest.ExitCode.USAGE_ERROR

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: Any) -> Generator[None, None, None]:
        """The score closes the session: it comes after pytest's own summary."""
        yield
        if not self.evaluations:
            return
        from pytest_loop.show.terminal import score_lines

        terminalreporter.write_sep("=", "loop score")
        for line in score_lines(self.evaluations, self._worse()):
            terminalreporter.write_line(line.text, **({line.colour: True} if line.colour else {}))
        if self.trouble:
            terminalreporter.write_line(f"ERROR: {self.trouble}", red=True)

    def pytest_unconfigure(self) -> None:
        if self._ran_nothing:
            from pytest_loop.rules import garbage

            garbage.rest()
        self._dismiss()
        if self.is_spread and not self.is_worker:
            self.exchange.clear()


class _AtFirstReport:
    """Does something when the first report is there: all workers are busy, so that none of them waits for it."""

    def __init__(self, do: Callable[[pytest.TestReport], None]) -> None:
        self._todo = [do]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if self._todo:
            self._todo.pop()(report)


def judging(config: pytest.Config) -> Judging:
    """The one of this process."""
    found = config.pluginmanager.getplugin(NAME)
    if found is None:
        found = Judging(config)
        config.pluginmanager.register(found, NAME)
    return found  # type: ignore[no-any-return]


def summoned(config: pytest.Config, word: str) -> None:
    """A run has started this session, and hears it through an open file."""
    load()
    channel, _, path = word.partition(" ")
    config.stash[CHANNEL] = int(channel)
    obey(config, Path(path))


def obey(config: pytest.Config, path: Path) -> None:
    """This session belongs to a run, which left word of what to judge."""
    from pytest_loop.core.order import Order
    from pytest_loop.rules.collect import ORDER

    config.stash[ORDER] = Order.model_validate_json(path.read_bytes())
    config.stash[ORDER_PATH] = path
