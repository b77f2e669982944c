"""Tell the run about canaries (hidden tests that must fail) and interference; workers of xdist tell the controller."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_loop.session.channel import Channel
from pytest_loop.session.interference import WATCH

_CANARIES, _INTERFERENCE = "loop_canaries", "loop_interference"


class RunSignals:
    """The plugin of each process of a session in a run; `channel` is None in workers."""

    def __init__(self, config: pytest.Config, channel: Channel | None) -> None:
        self._config = config
        self._channel = channel
        self._output: dict[str, Any] = getattr(config, "workeroutput", {})

    def report_canary(self, has_failed: bool) -> None:
        """Send the canary's outcome to the run; a worker passes it to the controller when it ends."""
        if self._channel is not None:
            self._channel.send(canary=has_failed)
        else:
            self._output.setdefault(_CANARIES, []).append(has_failed)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        interference = sorted(self._config.stash[WATCH].interference) if WATCH in self._config.stash else []
        if self._channel is not None:
            self._channel.send(interference=interference)
        else:
            self._output[_INTERFERENCE] = interference

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        output: dict[str, Any] = getattr(node, "workeroutput", {})
        for has_failed in output.get(_CANARIES, ()):
            self.report_canary(has_failed)
        if self._channel is not None:
            self._channel.send(interference=output.get(_INTERFERENCE, ()))
