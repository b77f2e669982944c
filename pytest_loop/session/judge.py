"""A session that judges: its plan, what it tells a run, its score, and the exit code that follows.

Under xdist it lives in the controller, which has no items, and in each worker, which has no reports of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_loop.session.exchange import Exchange
from pytest_loop.session.judge_service import answer, opened
from pytest_loop.session.warm.preload import load
from pytest_loop.session.xdist import Spreading
from pytest_loop.settings.session_settings import SessionSettings, read_session_settings

if TYPE_CHECKING:
    from pytest_loop.core.model.rules import Evaluation, Plan
    from pytest_loop.core.model.session_order import SessionOrder
    from pytest_loop.rules.checks.check import Answer
    from pytest_loop.session.baseline import Baseline
    from pytest_loop.session.channel import Channel
    from pytest_loop.session.record import Recorder

NAME = "loop-judging"
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
        self._ran_nothing = False
        worker: dict[str, Any] = getattr(config, "workerinput", {})
        self.is_worker = bool(worker)
        self.exchange = Exchange(Path(worker["loop_exchange"]) if self.is_worker else None)
        self.spreading: Spreading | None = None
        self._seat: tuple[str, str] | None = tuple(worker["loop_judge"]) if "loop_judge" in worker else None
        self._dismiss: Callable[[], None] = lambda: None

    @cached_property
    def asked(self) -> SessionSettings:
        return read_session_settings(self.config)

    @cached_property
    def baseline(self) -> Baseline | None:
        """What the session is compared with; one that cannot be used is a usage error."""
        if self.asked.baseline is None:
            return None
        from pytest_loop.errors import SavedFileError
        from pytest_loop.session import baseline

        try:
            return baseline.load(self.asked.baseline)
        except SavedFileError as error:
            raise pytest.UsageError(str(error)) from None

    @cached_property
    def order(self) -> SessionOrder | None:
        """What the run said, if this session belongs to one."""
        if ORDER_PATH not in self.config.stash:
            return None
        from pytest_loop.rules.items import ORDER

        return self.config.stash.get(ORDER, None)

    @cached_property
    def channel(self) -> Channel | None:
        """The way to the run: only where reports come together."""
        if self.order is None or self.is_worker:
            return None
        from pytest_loop.session.channel import Channel

        made = Channel(self.config.stash[CHANNEL])
        self.config.pluginmanager.register(made, "loop-channel")
        return made

    @cached_property
    def recorder(self) -> Recorder:
        from pytest_loop.session.record import Recorder

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
            if self.order.can_stop_early and not self.config.option.maxfail:
                self.config.option.maxfail = 1
            if self.order.judge_address:
                self._seat = (self.order.judge_address, self.order.judge_key)
            if self.channel is not None:
                _ = self.recorder
        if self._seat is not None:
            from pytest_loop.rules.items import ASK

            ask: Callable[..., Answer] = partial(answer, *self._seat)
            self.config.stash[ASK] = ask

    def _let_in(self) -> None:
        """Rules that the run keeps are among the arguments, and pytest drops them where their folder is one too."""
        from pytest_loop.rules.sources import INFERRED_FILE
        from pytest_loop.session.kept_rules import KeptRules

        words = map(str, self.config.invocation_params.args)
        if found := next((word for word in words if word.endswith(INFERRED_FILE)), None):
            self.config.pluginmanager.register(KeptRules(Path(found)), "loop-kept-rules")

    def arrange(self, items: list[pytest.Item]) -> None:
        """What decides first; among workers, slow rules beside cheap ones."""
        from pytest_loop.session.durations import known_seconds
        from pytest_loop.session.ordering import Past, arranged, rules_arranged

        if self.order is not None:
            past = Past(self.order.durations, frozenset(self.order.failed_before))
            items[:], is_uneven = arranged(items, past, is_spread=self.is_worker)
        else:
            items[:], is_uneven = rules_arranged(items, Past(known_seconds(self.config)))
        if is_uneven and self.is_worker:
            self.exchange.say_uneven()

    def begin(self, session: pytest.Session) -> None:
        """Where the items are: make the plan, and see to what their reports say."""
        from pytest_loop.rules import garbage
        from pytest_loop.rules.binding import Binding
        from pytest_loop.rules.items import REUSE, TALLY
        from pytest_loop.rules.listening import is_alone, is_unwatched
        from pytest_loop.rules.protocol import SlimLoop, SlimProtocol, is_quiet
        from pytest_loop.rules.repeats import Tally
        from pytest_loop.rules.reuse import Reuse
        from pytest_loop.session.reports import Reports

        session.stash[TALLY] = Tally(self.exchange.path if self.is_worker else None)
        self._ran_nothing = all(map(is_quiet, session.items))
        if self.order is not None:
            session.stash[REUSE] = Reuse(self.order.cached_evidence)
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
            from pytest_loop.session.canary import Canary

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
        """To a worker of xdist: what it has to know."""
        if self.spreading is None:
            tell = self.channel.tell_plan if self.channel is not None else None
            self.spreading = Spreading(self.config, self.exchange, tell, self._hear_workers)
        self.spreading.introduce(node)
        if self._seat is not None and self.order is None:
            node.workerinput["loop_judge"] = list(self._seat)
        if ORDER_PATH in self.config.stash:
            node.workerinput["loop_order"] = str(self.config.stash[ORDER_PATH])

    def _hear_workers(self, first: pytest.TestReport) -> None:
        """The first report is there; who begins to listen now would miss it."""
        self.plan = self.spreading.plan() if self.spreading is not None else None
        if self.plan is not None and "recorder" not in vars(self):
            self.recorder.pytest_runtest_logreport(first)

    # -- the end

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Where the reports come together: score them, and let the criteria decide the exit code."""
        if self.is_worker:
            return
        if self.spreading is not None:
            self.spreading.pass_on()
            self.plan = self.plan or self.spreading.plan()
        if self.plan is None or not self.recorder.heard:
            return
        from pytest_loop.core.judging.score import apply_custom_score
        from pytest_loop.core.model.rules import Phase
        from pytest_loop.rules import garbage
        from pytest_loop.session.durations import note_seconds, note_suite_score

        with garbage.kept():
            found = self.recorder.evaluations(self.plan, Phase(self.asked.phase))
        self.evaluations = [apply_custom_score(one, self.config.hook.pytest_loop_score) for one in found]
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
        from pytest_loop.session.baseline import worse

        return worse(self.evaluations, self.baseline)

    def _save(self, session: pytest.Session) -> None:
        if self.asked.save_baseline is None:
            return
        from pytest_loop.errors import SavedFileError
        from pytest_loop.session import baseline

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
        if self.spreading is not None:
            self.exchange.clear()


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
    if any(getattr(config.known_args_namespace, name, None) for name in ("numprocesses", "tx")):
        from pytest_loop.session.warm import xdist_workers

        xdist_workers.shield()
    channel, _, path = word.partition(" ")
    config.stash[CHANNEL] = int(channel)
    obey(config, Path(path))


def obey(config: pytest.Config, path: Path) -> None:
    """This session belongs to a run, which left word of what to judge."""
    from pytest_loop.core.model.session_order import SessionOrder
    from pytest_loop.rules.items import ORDER

    config.stash[ORDER] = SessionOrder.model_validate_json(path.read_bytes())
    config.stash[ORDER_PATH] = path
