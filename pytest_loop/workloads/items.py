"""Manifests as pytest files, cases as pytest items."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from pytest_loop.core.model.rules import Evidence, Finding, Outcome
from pytest_loop.core.workload.measurement import CaseOutcome, CaseResult
from pytest_loop.errors import CheckError, ManifestError, NotJudgedError
from pytest_loop.rules import garbage
from pytest_loop.rules.items import ASK, BAD_FILES, ORDER, ManyItems, RuleFailed, explained
from pytest_loop.settings.options import WorkloadSettings
from pytest_loop.settings.session_settings import read_group
from pytest_loop.workloads.build import Once
from pytest_loop.workloads.cases import Case, Workload, workload
from pytest_loop.workloads.manifest import load
from pytest_loop.workloads.pipeline import Pipeline
from pytest_loop.workloads.remembering import Memory

PROPERTY = "loop.case"
_ONCE = pytest.StashKey[Once]()
_KEPT = "loop-cases"


class ManifestFile(ManyItems, pytest.File):
    """The manifest of a workload."""

    def collect(self) -> Iterable[pytest.Item]:
        with garbage.kept():
            return list(self._collected())

    def _collected(self) -> Iterator[pytest.Item]:
        root = self.config.rootpath if self.path.is_relative_to(self.config.rootpath) else self.path.parent
        try:
            found = workload(load(self.path, root), root)
        except ManifestError as error:
            self.session.stash[BAD_FILES] = self.session.stash.get(BAD_FILES, 0) + 1
            raise self.CollectError(str(error)) from None
        from pytest_loop.workloads.protocol import watch_cases

        watch_cases(self.config)
        bench = Bench(self.config, found)
        for case in found.cases:
            yield CaseItem.from_parent(self, name=case.id, case=case, bench=bench)


class Bench:
    """Where the cases of one manifest are run in this process: the pipeline, its build, and what is kept."""

    def __init__(self, config: pytest.Config, found: Workload) -> None:
        self.workload = found
        self.line = found.source.locate(("casePaths",))
        timeout = read_group(WorkloadSettings, config, config.option).case_timeout
        self._pipeline = Pipeline(found, timeout, config.stash.get(ASK, None))
        shared = getattr(config, "workerinput", {}).get("loop_exchange")
        self._once = config.stash.setdefault(_ONCE, Once(Path(shared) if shared else None))
        self._memory = _memory(config, found)

    def result(self, case: Case) -> tuple[CaseResult, str]:
        """What a case comes to, now or when everything was the same, and the key of all that it depends on."""
        try:
            if self.workload.source.manifest.build_command:
                self._once.done(str(self.workload.source.path), self._pipeline.build)
        except CheckError as error:
            return CaseResult(id=case.id, outcome=CaseOutcome.INFRASTRUCTURE, text=str(error)), ""
        if self._memory is None:
            return self._pipeline.voted(case), ""
        key = self._memory.key(case)
        known = self._memory.known(case, key)
        if known is None:
            known = self._pipeline.voted(case)
            self._memory.keep(case, key, known)
        return known, key


def _memory(config: pytest.Config, found: Workload) -> Memory | None:
    """What earlier sessions left; in a run nothing, for an agent could have written it."""
    cache = getattr(config, "cache", None)
    if cache is None or ORDER in config.stash or found.source.manifest.cache_strategy == "force":
        return None
    return Memory(cache.mkdir(_KEPT), found)


class CaseItem(pytest.Item):
    """One case. It is run while it is set up, so that pytest counts what is no failure of the case as an error."""

    parent: ManifestFile
    kept: Mapping[str, Any] = MappingProxyType({})

    def __init__(self, *, case: Case, bench: Bench, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.case = case
        self.bench = bench
        self.unjudged = ""
        self.result: CaseResult | None = None

    def passes(self) -> bool:
        """Run it, and say whether it passes; what it came to is kept for its setup."""
        try:
            self.result, inputs = self.bench.result(self.case)
        except NotJudgedError as reason:
            self.unjudged = str(reason)
            return False
        kept = {"inputs": inputs, "reused": self.result.reused, "seconds": self.result.seconds}
        self.kept = {name: value for name, value in kept.items() if value}
        self.user_properties.append((PROPERTY, self.result.model_dump_json(exclude_defaults=True)))
        return self.result.passed

    def setup(self) -> None:
        if self.result is None and not self.unjudged:
            self.passes()
        if self.unjudged:
            pytest.skip(self.unjudged)
        if self.result is not None and self.result.outcome is CaseOutcome.INFRASTRUCTURE:
            pytest.fail(self.result.text, pytrace=False)

    def runtest(self) -> None:
        if self.result is not None and not self.result.passed:
            raise RuleFailed(_evidence(self.result), told(self.result))

    @cached_property
    def location(self) -> tuple[str, int | None, str]:
        """The way to the file is the same for all its cases."""
        _, line, name = self.reportinfo()
        return self.parent.shown, line, name

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *args: Any, **kwargs: Any) -> Any:
        if isinstance(excinfo.value, RuleFailed):
            return explained(excinfo, excinfo.value, self.path, self.bench.line)
        return super().repr_failure(excinfo, *args, **kwargs)

    def reportinfo(self) -> tuple[os.PathLike[str] | str, int | None, str]:
        return self.path, self.bench.line - 1, self.name


def _evidence(result: CaseResult) -> Evidence:
    findings = tuple(
        Finding(
            expected="", found=f"{one.severity}: {one.message}" if one.severity else one.message, where=one.location
        )
        for one in result.critiques
    )
    first = findings[0].model_copy(update={"detail": result.difference})
    return Evidence(outcome=Outcome.FAILED, findings=(first, *findings[1:]))


def told(result: CaseResult) -> str:
    """A case that failed as a person reads it: what was said about it, and how it differs from what was expected."""
    lines = [str(one) for one in result.critiques]
    if result.score is not None:
        lines.append(f"score {result.score:g}")
    if result.difference:
        lines.append(result.difference)
    if result.reused:
        lines.append("kept from before: nothing that it depends on has changed (--cache-clear judges it again)")
    return "\n".join(lines)
