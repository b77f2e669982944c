"""Connect the xdist controller with its workers: send them settings, and receive what they collected."""

from __future__ import annotations

import shutil
import tempfile
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pytest_loop.core.model.rules import SessionPlan

_PLAN = "plan.json"
# The most items that a worker gets at once if some are slow: two slow ones must not share a batch.
_SMALL_BATCH = 2


class SharedFolder:
    """A folder that all processes of a session share; it exists once a worker has written to it."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or Path(tempfile.gettempdir()) / f"pytest-loop-{uuid.uuid4().hex}"

    def write_plan(self, plan: SessionPlan) -> None:
        """Write the plan unless another worker, whose plan is the same, has done so."""
        if not (self.path / _PLAN).exists():
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            draft = self.path / f"plan-{uuid.uuid4().hex}"
            draft.write_text(plan.model_dump_json(), encoding="utf-8")
            draft.replace(self.path / _PLAN)

    def read_plan(self) -> str | None:
        """Return the plan as JSON, or None before a worker has written it."""
        try:
            return (self.path / _PLAN).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None

    def delete(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)


class Controller:
    """The plugin of the xdist controller, which has no items and gets the reports of all workers.

    The plan has the rules and items that workers collected; `send_plan` passes it to a run. `on_first_report` is called
    with the first report. Nothing heavy is imported before that: most sessions with workers have no rules.
    """

    def __init__(
        self,
        config: pytest.Config,
        folder: SharedFolder,
        send_plan: Callable[[str], None] | None,
        on_first_report: Callable[[pytest.TestReport], None],
    ) -> None:
        self.config = config
        self.folder = folder
        self._send_plan = send_plan
        self._on_first_report: Callable[[pytest.TestReport], None] | None = on_first_report
        config.pluginmanager.register(self, "loop-controller")

    def configure_worker(self, node: Any) -> None:
        node.workerinput["loop_folder"] = str(self.folder.path)

    def limit_batches(self) -> None:
        """Hand out few items at a time, unless `--maxschedchunk` was given."""
        if getattr(self.config.option, "maxschedchunk", 0) is None:
            self.config.option.maxschedchunk = _SMALL_BATCH

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self) -> None:
        self.forward_plan()

    def forward_plan(self) -> None:
        """Send the plan to the run once, without parsing it: workers wait for their first items meanwhile."""
        if self._send_plan is not None and (plan := self.folder.read_plan()):
            self._send_plan(plan)
            self._send_plan = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Load the plan with the first report: all workers are busy then."""
        if self._on_first_report is not None:
            on_first_report, self._on_first_report = self._on_first_report, None
            on_first_report(report)

    def load_plan(self) -> SessionPlan | None:
        """Return the workers' plan, or None if they have no rules."""
        text = self.folder.read_plan()
        if text is None:
            return None
        from pytest_loop.core.model.rules import SessionPlan

        return SessionPlan.model_validate_json(text)
