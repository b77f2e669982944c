"""One round: the project, as it was edited so far, is imported, collected and searched in a fork of its own."""

from __future__ import annotations

import signal
from dataclasses import replace

import pytest

from pytest_loop.repair import report
from pytest_loop.repair.bench import Bench, Brief, words
from pytest_loop.repair.forks import Say
from pytest_loop.repair.found import Found
from pytest_loop.repair.importing import Unimportable, is_repairable
from pytest_loop.repair.order import Result
from pytest_loop.repair.overlay import lay
from pytest_loop.repair.search import Search
from pytest_loop.repair.setting import Setting

_SLACK = 30.0  # seconds; a search ends by itself, and what hangs behind that is our own mistake


class Round:
    """Says a result, or what stands in the way of importing the project."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._result: Result | None = None
        self._found = Found()

    def run(self, say: Say) -> None:
        """In a fork: collect, search, and say what was found; asked to end, it tells what it has found by then."""
        for one in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(one, signal.SIG_DFL)
        order = self._setting.order
        lay(self._setting.texts)
        bench = Bench(lambda bench: self._search(bench, say))
        code = pytest.main(words(order.words, self._setting.home), plugins=[bench, Brief()])
        if self._is_unimportable(bench):
            say(self._unimportable(bench).model_dump(mode="json"))
            return
        problem = report.problem(bench.broken, order.folder)
        if self._result is None:
            self._result = Result(ended="no tests", problem=problem or f"pytest ended with exit code {int(code)}")
        say(self._result.model_copy(update={"problem": problem or self._result.problem}).model_dump(mode="json"))

    def _search(self, bench: Bench, say: Say) -> None:
        """Search; where nothing can be done before more of the code can be imported, only run what can run."""
        order = self._setting.order
        say({"within": order.seconds + _SLACK})
        self._setting.listen()
        if self._is_unimportable(bench):
            order = order.model_copy(update={"localise_only": True, "failing": ()})
        search = Search(replace(self._setting, order=order), bench)
        self._found = search.run()
        self._result = report.result(self._found, order.folder, search.seconds)

    def _is_unimportable(self, bench: Bench) -> bool:
        """Whether what is wanted was not collected, and an edit of the code could help that."""
        wanted, known = set(self._setting.order.failing), {item.nodeid for item in bench.items}
        if wanted and wanted <= known:
            return False
        scope = self._setting.scope(item.path for item in bench.items)
        return any(is_repairable(one, scope) for one in bench.broken.values())

    def _unimportable(self, bench: Bench) -> Unimportable:
        return Unimportable(
            broken=bench.broken,
            collected=tuple(item.nodeid for item in bench.items),
            passing=self._found.passing,
            files=tuple(dict.fromkeys(item.path for item in bench.items)),
        )
