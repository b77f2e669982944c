"""The search: run the tests as they are, localise, and hunt for edits that turn failing ones green and break none."""

from __future__ import annotations

import gc
import sys
from pathlib import Path

from pytest_loop.repair.baseline import Known, baseline
from pytest_loop.repair.bench import Bench
from pytest_loop.repair.candidates import Candidate, candidates
from pytest_loop.repair.definitions import with_definitions
from pytest_loop.repair.evidence import exceptions, hints
from pytest_loop.repair.found import Found, Plausible
from pytest_loop.repair.hunt import Hunt
from pytest_loop.repair.overlay import resolved
from pytest_loop.repair.probe import probe
from pytest_loop.repair.setting import Setting
from pytest_loop.repair.source import Source
from pytest_loop.repair.suspicion import ranking
from pytest_loop.repair.swap import Loaded
from pytest_loop.repair.trial import Trial

_BASELINE = 0.4


class Search:
    """One search in a bench of tests."""

    def __init__(self, setting: Setting, bench: Bench) -> None:
        self._setting = setting
        self._order = setting.order
        self._bench = bench
        self._scope = setting.scope(item.path for item in bench.items)
        self._forks = setting.forks()
        self.found = Found()
        self._hunt = Hunt(setting, self._forks, self.found)
        self._tests: dict[int, Known] = {}
        self._targets: list[int] = []
        self._guards: list[int] = []
        self._is_held_back = False

    @property
    def seconds(self) -> float:
        return self._hunt.seconds

    def run(self) -> Found:
        with self._forks:
            self.found.ended = self._run()
        self.found.plausible.sort(key=Plausible.order)
        return self.found

    def _run(self) -> str:
        if not self._bench.items:
            return "no tests"
        self._learn()
        if not self._targets:
            return "held back" if self._is_held_back else "nothing fails"
        if not self.found.suspects:
            return "nothing to edit"
        if self._order.localise_only:
            return "localised"
        sources = self._sources()
        chosen = self._candidates(sources)
        trial = Trial(self._bench, probe(self._scope), Loaded(sources), self._tests, self._targets, self._guards)
        gc.collect()
        gc.freeze()  # so that no collection of a fork touches, and thereby copies, what all of them share
        trial.share(self._forks)
        return self._hunt.run(chosen, trial)

    def _learn(self) -> None:
        """Run the tests as they are, those that are known to fail first."""
        names = [item.nodeid for item in self._bench.items]
        wanted = set(self._order.failing).intersection(names) or set(names)
        places = sorted(range(len(names)), key=lambda at: names[at] not in wanted)
        tests = baseline(self._bench, self._forks, self._scope, places, self._order.seconds * _BASELINE)
        failing = [at for at in tests if not tests[at].spectrum.passed and not tests[at].is_held]
        targets = [at for at in failing if names[at] in wanted]
        self._tests = tests
        self._targets = sorted(targets, key=lambda at: (tests[at].fuel, tests[at].seconds > 1, at))
        self._guards = [at for at in tests if tests[at].spectrum.passed]
        self.found.failing = self._bench.names(failing)
        self.found.passing = self._bench.names(self._guards)
        self.found.targets = self._bench.names(targets)
        self.found.held = {names[at]: one.failure.message for at, one in tests.items() if one.is_held}
        self._is_held_back = not wanted.isdisjoint(self.found.held)
        self._localise([*targets, *self._guards])

    def _localise(self, places: list[int]) -> None:
        spectra = [self._tests[at].spectrum for at in places]
        changed = [
            (str((self._order.folder / path).resolve()), line)
            for path, lines in self._order.changed.items()
            for line in lines
        ]
        paths = {path for one in spectra for path, _ in one.lines}
        ages = {path: Path(path).stat().st_mtime for path in paths}
        self.found.suspects = ranking(spectra, changed, ages)

    def _sources(self) -> list[Source]:
        """The files that failing tests execute, and those that are imported and may be edited."""
        names = (resolved(getattr(one, "__file__", None)) for one in list(sys.modules.values()))
        imported = sorted(path for name in names if (path := self._scope.file(name)) is not None)
        return self._setting.sources([*(Path(one.path) for one in self.found.suspects), *imported])

    def _candidates(self, sources: list[Source]) -> list[Candidate]:
        scores = with_definitions(sources, {(one.path, one.line): one.score for one in self.found.suspects})
        failures = [self._tests[at].failure for at in self._targets]
        items = [self._bench.items[at] for at in self._targets]
        known = hints(failures, (one.nodeid for one in items), (one.path for one in items))
        return candidates(sources, scores, known, exceptions(failures), self._order.seed)
