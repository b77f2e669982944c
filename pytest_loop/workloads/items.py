"""Manifests as pytest files, cases as pytest items."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from pytest_loop.core.model.rules import Evidence, Finding, Outcome
from pytest_loop.core.workload.measurement import CaseOutcome, CaseResult
from pytest_loop.errors import CheckError, ManifestError, NotJudgedError
from pytest_loop.rules.items import ASK_JUDGE, ORDER, RuleFailed, raise_collect_error, render_failure
from pytest_loop.settings.session_settings import read_group
from pytest_loop.settings.workload_options import WorkloadSettings
from pytest_loop.workloads.build import BuildOnce
from pytest_loop.workloads.case_cache import CaseCache
from pytest_loop.workloads.cases import Case, Workload, load_workload
from pytest_loop.workloads.manifest import choose_setting
from pytest_loop.workloads.pipeline import Pipeline

PROPERTY = "loop.case"
_BUILDS = pytest.StashKey[BuildOnce]()
_CACHE_FOLDER = "loop-cases"


class ManifestFile(pytest.File):
    """The manifest of a workload."""

    def collect(self) -> Iterable[pytest.Item]:
        root = self.config.rootpath if self.path.is_relative_to(self.config.rootpath) else self.path.parent
        try:
            runner = CaseRunner(self.config, load_workload(self.path, root))
        except ManifestError as error:
            raise_collect_error(self, error)
        for case in runner.workload.cases:
            yield CaseItem.from_parent(self, name=case.id, case=case, runner=runner)


class CaseRunner:
    """Run the cases of one manifest in this process: build once, and reuse results that cannot have changed."""

    def __init__(self, config: pytest.Config, workload: Workload) -> None:
        self.workload = workload
        self.line = workload.source.find_line(("casePaths",))
        settings = read_group(WorkloadSettings, config, config.option)
        timeout = choose_setting("case_timeout", settings, workload.manifest)
        self._pipeline = Pipeline(workload, timeout, config.stash.get(ASK_JUDGE, None))
        folder = getattr(config, "workerinput", {}).get("loop_folder")
        self._builds = config.stash.setdefault(_BUILDS, BuildOnce(Path(folder) if folder else None))
        self._cache = _open_cache(config, workload)

    def run(self, case: Case) -> tuple[CaseResult, str]:
        """Return the result of a case and the hash of its inputs; "" as hash without a cache or a working build."""
        try:
            if self.workload.manifest.build_command:
                self._builds.run(str(self.workload.source.path), self._pipeline.build)
        except CheckError as error:
            return CaseResult(id=case.id, outcome=CaseOutcome.INFRASTRUCTURE, text=str(error)), ""
        if self._cache is None:
            return self._pipeline.evaluate_case(case), ""
        key = self._cache.compute_key(case)
        result = self._cache.find_result(case, key)
        if result is None:
            result = self._pipeline.evaluate_case(case)
            self._cache.store_result(case, key, result)
        return result, key


def _open_cache(config: pytest.Config, workload: Workload) -> CaseCache | None:
    """Return the cache of results; None if the manifest forbids it, or in a run, where an agent could write to it."""
    cache = getattr(config, "cache", None)
    if cache is None or ORDER in config.stash or workload.manifest.cache_strategy == "force":
        return None
    return CaseCache(cache.mkdir(_CACHE_FOLDER), workload)


class CaseItem(pytest.Item):
    """Run one case in setup, so that pytest reports an infrastructure failure as an error."""

    evidence_fields: Mapping[str, Any] = MappingProxyType({})

    @property
    def shard_group(self) -> str:
        return self.nodeid

    def __init__(self, *, case: Case, runner: CaseRunner, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.case = case
        self.runner = runner
        self.result: CaseResult | None = None

    def setup(self) -> None:
        try:
            self.result, inputs = self.runner.run(self.case)
        except NotJudgedError as reason:
            pytest.skip(str(reason))
        fields = {"inputs": inputs, "reused": self.result.reused, "seconds": self.result.seconds}
        self.evidence_fields = {name: value for name, value in fields.items() if value}
        self.user_properties.append((PROPERTY, self.result.model_dump_json(exclude_defaults=True)))
        if self.result.outcome is CaseOutcome.INFRASTRUCTURE:
            pytest.fail(self.result.text, pytrace=False)

    def runtest(self) -> None:
        if self.result is not None and not self.result.passed:
            raise RuleFailed(_make_evidence(self.result), render_case(self.result))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *args: Any, **kwargs: Any) -> Any:
        if isinstance(excinfo.value, RuleFailed):
            return render_failure(excinfo, excinfo.value, self.path, self.runner.line)
        return super().repr_failure(excinfo, *args, **kwargs)

    def reportinfo(self) -> tuple[os.PathLike[str] | str, int | None, str]:
        return self.path, self.runner.line - 1, self.name


def _make_evidence(result: CaseResult) -> Evidence:
    findings = tuple(
        Finding(
            expected="",
            found=f"{critique.severity}: {critique.message}" if critique.severity else critique.message,
            where=critique.location,
        )
        for critique in result.critiques
    )
    first = findings[0].model_copy(update={"detail": result.difference})
    return Evidence(outcome=Outcome.FAILED, findings=(first, *findings[1:]))


def render_case(result: CaseResult) -> str:
    """Return the critiques, the score and the diff of a failed case as lines for the terminal."""
    lines = [str(critique) for critique in result.critiques]
    if result.score is not None:
        lines.append(f"score {result.score:g}")
    if result.difference:
        lines.append(result.difference)
    if result.reused:
        lines.append("kept from before: nothing that it depends on has changed (--cache-clear judges it again)")
    return "\n".join(lines)
