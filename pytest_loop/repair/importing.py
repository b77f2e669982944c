"""Modules that cannot be imported: edits of the lines on the way to the exception, each tried by collecting anew."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from pydantic import BaseModel, ConfigDict

from pytest_loop.repair import report
from pytest_loop.repair.bench import Bench, Brief, words
from pytest_loop.repair.candidates import Candidate, candidates
from pytest_loop.repair.definitions import with_definitions
from pytest_loop.repair.evidence import exceptions, hints
from pytest_loop.repair.failure import Failure
from pytest_loop.repair.forks import Ended, Job, Say
from pytest_loop.repair.found import Found, Plausible, Try
from pytest_loop.repair.hunt import Hunt
from pytest_loop.repair.overlay import lay
from pytest_loop.repair.probe import probe
from pytest_loop.repair.scope import Scope
from pytest_loop.repair.setting import Setting
from pytest_loop.repair.suspicion import Line, Suspect

_FUEL = 300_000
_SECONDS, _MORE_SECONDS = 15.0, 5.0
_CALLER = 0.5


class Unimportable(BaseModel):
    """What is known when tests were collected in vain: why, what was collected all the same, and what of it passes."""

    model_config = ConfigDict(frozen=True)

    broken: dict[str, Failure]
    collected: tuple[str, ...] = ()
    passing: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()


def is_repairable(failure: Failure, scope: Scope) -> bool:
    """Whether code that may be edited raised the exception, and could be read at all."""
    return not failure.error.endswith(("SyntaxError", "IndentationError", "TabError")) and bool(_lines(failure, scope))


def _lines(failure: Failure, scope: Scope) -> list[Line]:
    """The lines that may be edited on the way to the exception, the last one first."""
    return [(str(path), line) for name, line in reversed(failure.frames) if (path := scope.file(name)) is not None]


class Importing:
    """A round of its own kind: no test can run before the code can be imported."""

    def __init__(self, setting: Setting, known: Unimportable) -> None:
        self._setting = setting
        self._known = known
        self._scope = setting.scope(known.files)

    def run(self, say: Say) -> None:
        """In a fork: search, and say what was found."""
        self._setting.listen()
        order, names = self._setting.order, tuple(self._known.broken)
        found = Found(failing=names, passing=self._known.passing, targets=names, suspects=self._suspects())
        with self._setting.forks() as forks:
            hunt = Hunt(self._setting, forks, found)
            trial = _Trial(order.words, self._setting.texts, self._known, self._scope)
            found.ended = "localised" if order.localise_only else hunt.run(self._candidates(found), trial)
        found.plausible.sort(key=Plausible.order)
        problem = "" if found.plausible else report.problem(self._known.broken, order.folder)
        say(report.result(found, order.folder, hunt.seconds, problem).model_dump(mode="json"))

    def _suspects(self) -> list[Suspect]:
        scores: dict[Line, float] = {}
        for failure in self._known.broken.values():
            for depth, line in enumerate(_lines(failure, self._scope)):
                scores[line] = max(scores.get(line, 0.0), _CALLER**depth)
        return [Suspect(*line, scores[line]) for line in sorted(scores, key=lambda one: (-scores[one], one))]

    def _candidates(self, found: Found) -> list[Candidate]:
        sources = self._setting.sources(Path(one.path) for one in found.suspects)
        scores = with_definitions(sources, {(one.path, one.line): one.score for one in found.suspects})
        failures = list(self._known.broken.values())
        return candidates(sources, scores, hints(failures, (), ()), exceptions(failures), self._setting.order.seed)


@dataclass(frozen=True)
class _Trial:
    """Collects with an edit, and runs the tests that are there only now, then those that passed before."""

    words: Sequence[str]
    texts: Mapping[str, str]
    known: Unimportable
    scope: Scope
    most: int = 1  # a process imports a module once

    def job(self, key: int, tries: Sequence[Try]) -> Job:
        one = tries[0].candidate

        def work(say: Say) -> None:
            lay({**self.texts, str(one.source.path): one.text})
            bench = Bench(lambda bench: self._judge(bench, say))
            pytest.main(words(self.words, Path(tempfile.gettempdir())), plugins=[bench, Brief()])

        return Job(key, work, _SECONDS)

    def _judge(self, bench: Bench, say: Say) -> None:
        say({"broken": list(bench.broken)})
        bench.watch(probe(self.scope), lambda: os._exit(0), is_recording=False)
        names = [item.nodeid for item in bench.items]
        new = [at for at, name in enumerate(names) if name not in self.known.collected]
        for at in (*new, *(at for at, name in enumerate(names) if name in self.known.passing)):
            say({"name": names[at], "passed": False, "within": _MORE_SECONDS})
            say({"name": names[at], "passed": bench.run(at, None, _FUEL).passed})

    def plausible(self, one: Try, ended: Ended) -> Plausible | None:
        """What a trial came to, where more can be imported, and nothing broke."""
        broken = next((message["broken"] for message in ended.messages if "broken" in message), None)
        passed = {message["name"]: message["passed"] for message in ended.messages if "name" in message}
        if broken is None or not set(broken) < set(self.known.broken):
            return None
        if not ended.finished or not all(passed.get(name) for name in self.known.passing):
            return None
        everything = {**{name: name not in broken for name in self.known.broken}, **passed}
        new = {name: is_well for name, is_well in everything.items() if name not in self.known.passing}
        fixed = tuple(name for name, is_well in new.items() if is_well)
        return Plausible(one.candidate, one.rank, fixed, tuple(name for name, is_well in new.items() if not is_well))
