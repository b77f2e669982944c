"""The controller of xdist in a session that judges: introduces workers, and hears what they leave in the exchange."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pytest

from pytest_loop.rules.carrying import Delivery, can_deliver
from pytest_loop.rules.listening import is_each_named, is_end_heard
from pytest_loop.session.exchange import Exchange

if TYPE_CHECKING:
    from pytest_loop.core.model.rules import Plan

FEW = 2


class Spreading:
    """`tell` passes the plan on to a run as it stands; `begin` is called with the first report, if anything is judged.

    Until then nothing heavy is imported: most sessions with workers have no rules.
    """

    def __init__(
        self,
        config: pytest.Config,
        exchange: Exchange,
        tell: Callable[[str], None] | None,
        begin: Callable[[pytest.TestReport], None],
    ) -> None:
        self.config = config
        self.exchange = exchange
        self._tell = tell
        self._begin: Callable[[pytest.TestReport], None] | None = begin
        # Whoever is registered last hears a report first: the one that carries others, and then those.
        config.pluginmanager.register(Delivery(config), "loop-delivery")
        config.pluginmanager.register(self, "loop-spreading")

    def introduce(self, node: Any) -> None:
        """To a worker: name the folder for what workers have to tell; it exists only once one does."""
        node.workerinput["loop_exchange"] = str(self.exchange.path)
        node.workerinput["loop_heard"] = self._heard_here

    @cached_property
    def _heard_here(self) -> bool:
        """Whether anybody here wants to know more of an item that passed than that it did, or at once."""
        return is_each_named(self.config) or is_end_heard(self.config) or not can_deliver(self.config)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self) -> None:
        """The first worker that has collected has left the plan, and a run wants to know it early."""
        if self.exchange.is_uneven:
            self._share_finely()
        self.pass_on()

    def _share_finely(self) -> None:
        """Where slow rules stand among cheap ones, a worker gets no more than it needs, unless the person said more."""
        scheduler = getattr(self.config.pluginmanager.getplugin("dsession"), "sched", None)
        if getattr(scheduler, "maxschedchunk", 0) is None:
            scheduler.maxschedchunk = FEW  # type: ignore[union-attr]

    def pass_on(self) -> None:
        """Tell the run what workers are going to judge; without reading it, for they wait for their first items."""
        if self._tell is not None and (plan := self.exchange.left()):
            self._tell(plan)
            self._tell = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """With the first one all workers are busy, so that none of them waits for what is done here."""
        if self._begin is not None:
            begin, self._begin = self._begin, None
            begin(report)

    def plan(self) -> Plan | None:
        """What the workers judge, if they judge: they made it when they had collected."""
        left = self.exchange.left()
        if left is None:
            return None
        from pytest_loop.core.model.rules import Plan

        return Plan.model_validate_json(left)
