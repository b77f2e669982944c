"""A session that judges one shard of its items, and writes the evidence to a file for `pytest-loop merge`."""

from __future__ import annotations

import hashlib
import os
import platform
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_loop.core.judging.shards import ShardEvidence, divide_items
from pytest_loop.core.model.rules import Evidence, SessionPlan
from pytest_loop.core.text.redactor import Redactor, redact_values
from pytest_loop.core.text.wording import format_count
from pytest_loop.errors import StateError
from pytest_loop.session.baseline import Baseline
from pytest_loop.settings.session_settings import SessionSettings
from pytest_loop.settings.values import Shard
from pytest_loop.store import disk
from pytest_loop.workspace.git import Git, GitError


class ShardFile:
    """The plugin that writes the evidence of a shard; a file of an earlier session is deleted at the start."""

    def __init__(self, config: pytest.Config, settings: SessionSettings, shard: Shard) -> None:
        if settings.save_baseline is not None:
            raise pytest.UsageError(
                f"--loop-save-baseline needs all {shard.total} shards: pytest-loop merge FILE... --save-baseline FILE"
            )
        self.config = config
        self.shard = shard
        name = config.option.loop_json or f"loop-shard-{shard.number}-of-{shard.total}.json"
        self.path = config.invocation_params.dir / name
        self._phase = settings.phase
        self._lines: list[str] = []
        try:
            with disk.translate_errors("write", self.path, "run this shard again"):
                self.path.unlink(missing_ok=True)
        except StateError as error:
            raise pytest.UsageError(str(error)) from None
        config.pluginmanager.register(self, "loop-shard")

    def write(
        self,
        session: pytest.Session,
        plan: SessionPlan,
        evidence: Mapping[str, Mapping[str, Any]],
        baseline: Baseline | None,
    ) -> None:
        """Write the evidence; change "no tests collected" to OK if another shard has items."""
        if session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and any(plan.shards):
            session.exitstatus = pytest.ExitCode.OK
        shard = ShardEvidence(
            shard=self.shard.number,
            origin={"phase": self._phase, **describe_origin(self.config.rootpath)},
            plan=plan,
            evidence={
                item: Evidence.model_validate(redact_values(dict(piece), Redactor(os.environ)))
                for item, piece in evidence.items()
            },
            exit_status=int(session.exitstatus),
            has_own_score=bool(self.config.hook.pytest_loop_score.get_hookimpls()),
            baseline=None if baseline is None else baseline.verdicts,
        )
        try:
            disk.write_atomically(self.path, shard.model_dump_json(exclude_defaults=True).encode() + b"\n")
        except StateError as error:
            self._lines = [f"ERROR: {error}"]
            session.exitstatus = pytest.ExitCode.USAGE_ERROR
            return
        total = format_count(sum(map(len, plan.shards)), "item")
        self._lines = [
            f"shard {shard.shard} of {shard.total}: {len(shard.items):,} of {total}, evidence in {self.path.name}",
            f"next: pytest-loop merge FILE..., with the files of all {format_count(shard.total, 'shard')}",
        ]

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if not self.config.option.collectonly:
            terminalreporter.write_sep("=", "loop shard")
            for line in self._lines or ["no evidence was written: the session ended before its items were known"]:
                terminalreporter.write_line(line)


def deselect_other_shards(
    session: pytest.Session, plan: SessionPlan, shard: tuple[int, int], seconds: Mapping[str, float]
) -> SessionPlan:
    """Deselect the items of all shards but one, and return the plan with the items of each shard."""
    number, total = shard
    groups: dict[str, list[str]] = {}
    for item in session.items:
        groups.setdefault(_name_group(item), []).append(item.nodeid)
    shards = divide_items(groups, total, seconds)
    selected = set(shards[number - 1])
    session.config.hook.pytest_deselected(items=[item for item in session.items if item.nodeid not in selected])
    session.items[:] = [item for item in session.items if item.nodeid in selected]
    return plan.model_copy(update={"shards": shards})


def _name_group(item: pytest.Item) -> str:
    """Name the items that must share a shard: an xdist group, repeats of a rule, a case, or the tests of a file."""
    if mark := item.get_closest_marker("xdist_group"):
        return f"group {mark.args[0] if mark.args else mark.kwargs.get('name', 'default')}"
    name: str = getattr(item, "shard_group", "") or item.nodeid.partition("::")[0]
    return name


def describe_origin(root: Path) -> dict[str, str]:
    """Describe what all shards must have in common: revision (empty without git), interpreter and system."""
    try:
        git = Git.locate(root)
        revision = git.query("rev-parse", "HEAD")
        if changes := git.run("diff", "HEAD", "--binary", "--no-ext-diff", "--no-textconv"):
            revision += f" with changes {hashlib.sha256(changes).hexdigest()[:12]}"
    except GitError:
        revision = ""
    return {"revision": revision, "Python": platform.python_version(), "platform": sys.platform}
