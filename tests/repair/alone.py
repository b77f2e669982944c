"""One process for what else has several: `round ORDER ANSWER`, or `trials ORDER ANSWER`.

A round searches as ever, but not in a fork of the engine's. Trials record all tests, look at some edits of `code_.py`,
all in this process, and try the last one to the end.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from pytest_loop.repair.baseline import known, record
from pytest_loop.repair.bench import Bench, Brief, words
from pytest_loop.repair.candidates import candidates
from pytest_loop.repair.found import Try
from pytest_loop.repair.importing import Importing, Unimportable
from pytest_loop.repair.order import Order
from pytest_loop.repair.probe import probe
from pytest_loop.repair.rounds import Round
from pytest_loop.repair.setting import Setting
from pytest_loop.repair.source import Source
from pytest_loop.repair.swap import Loaded
from pytest_loop.repair.trial import Trial

EDITS = ("number * 1", "number - 2", "number + 1")


def searched(setting: Setting) -> list[Mapping[str, object]]:
    """All that a round says; where the project cannot be imported, what the round says that is for that."""
    said: list[Mapping[str, object]] = []
    Round(setting).run(said.append)
    if "broken" in said[-1]:
        Importing(setting, Unimportable.model_validate(said[-1])).run(said.append)
    return said


def tried(setting: Setting) -> list[Mapping[str, object]]:
    """All that is said of the tests, by a look at all edits, and by a trial of the last one."""
    said: list[Mapping[str, object]] = []

    def work(bench: Bench) -> None:
        scope = setting.scope(item.path for item in bench.items)
        places = range(len(bench.items))
        record(bench, scope, places, time.monotonic() + 60, said.append)
        tests = {at: known(dict(message)) for at, message in zip(places, said, strict=True)}
        targets = [at for at in places if not tests[at].spectrum.passed]
        guards = [at for at in places if tests[at].spectrum.passed]
        path = setting.order.folder.resolve() / "code_.py"
        source = Source(path, path.read_text(encoding="utf-8"))
        every = {one.text: one for one in candidates([source], {(str(path), 5): 1.0})}
        chosen = [every[source.text.replace("number - 1", edit)] for edit in EDITS]
        tries = [Try(at, one, one.unit.parsed(one.pieces) or source.tree) for at, one in enumerate(chosen)]
        trial = Trial(bench, probe(scope), Loaded([source]), tests, targets, guards)
        trial.job(1, tries).work(said.append)
        said.append({"alone": True})
        trial.job(2, tries[-1:]).work(said.append)

    pytest.main(words(setting.order.words, setting.home), plugins=[Bench(work), Brief()])
    return said


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as home:
        order = Order.model_validate_json(Path(sys.argv[2]).read_bytes())
        sys.path.insert(0, str(order.folder))
        setting = Setting(order, Path(home).resolve(), {}, lambda one: None)
        found = searched(setting) if sys.argv[1] == "round" else tried(setting)
    Path(sys.argv[3]).write_text(json.dumps(found), encoding="utf-8")
