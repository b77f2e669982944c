"""The engine's process: reads an order, searches, says how far it is and what it found, one JSON object a line."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from pytest_loop.repair import cage, report
from pytest_loop.repair.forks import Ended, Forks, Job
from pytest_loop.repair.importing import Importing, Unimportable
from pytest_loop.repair.order import Order, Progress, Result
from pytest_loop.repair.rounds import Round
from pytest_loop.repair.setting import Setting

_LEAST = 1.0  # seconds that are worth another round
_COLLECTING = 120.0


class Writer:
    """Lines to a file or a descriptor, each at once."""

    def __init__(self, target: str) -> None:
        if target.isdecimal():
            self.descriptor = int(target)
        else:
            self.descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        os.set_inheritable(self.descriptor, False)

    def write(self, value: Progress | Result) -> None:
        data = memoryview(value.model_dump_json().encode() + b"\n")
        while data:
            data = data[os.write(self.descriptor, data) :]


class Engine:
    """One order, round after round, until all is green or nothing helps any more.

    This process imports nothing of the project: each round does that in a fork, with the edits of the ones before.
    """

    def __init__(self, order: Order, writer: Writer) -> None:
        self._order = order
        self._writer = writer
        self._is_asked = False
        self._started = time.monotonic()

    def run(self) -> Result:
        """Search, and leave nothing behind, whatever becomes of those who wait for it."""
        cage.die_with_parent()
        for one in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(one, self._stop)
        sys.dont_write_bytecode = True
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        os.chdir(self._order.folder)
        sys.path.insert(0, str(self._order.folder))  # as `python -m pytest` does
        home = Path(tempfile.mkdtemp(prefix="pytest-loop-repair-")).resolve()
        os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = str(home / "hypothesis")  # which else is made in the project
        try:
            with Forks(home, 1, enter=lambda _: cage.die_with_parent()) as forks:
                found = report.joined(self._rounds(forks, home), self._seconds)
        finally:
            shutil.rmtree(home, ignore_errors=True)
        self._writer.write(found)
        return found

    @property
    def _seconds(self) -> float:
        return time.monotonic() - self._started

    def _stop(self, *_: object) -> None:
        self._is_asked = True

    def _rounds(self, forks: Forks, home: Path) -> list[Result]:
        """One round after another, as long as each has an edit that mends something and leaves something to mend."""
        found: list[Result] = []
        texts: dict[str, str] = {}
        while True:
            found.append(self._round(forks, home / f"round{len(found)}", texts, sum(one.tried for one in found)))
            if not (found[-1].steps and found[-1].remaining) or not self._is_worth_another(len(found)):
                return found
            step = found[-1].steps[0]
            texts[str((self._order.folder / step.path).resolve())] = step.after

    def _is_worth_another(self, rounds: int) -> bool:
        is_long_enough = self._order.seconds - self._seconds > _LEAST
        return rounds < self._order.steps and is_long_enough and not self._is_asked

    def _round(self, forks: Forks, home: Path, texts: dict[str, str], tried: int) -> Result:
        home.mkdir()
        ended = self._done(forks, Job(0, Round(self._setting(home, texts, tried)).run, _COLLECTING))
        for message in ended.messages:
            if "broken" in message:
                one = Importing(self._setting(home, texts, tried), Unimportable.model_validate(message))
                ended = self._done(forks, Job(0, one.run, self._order.seconds + _COLLECTING))
        return self._result(ended)

    def _setting(self, home: Path, texts: dict[str, str], tried: int) -> Setting:
        """What a round works with that starts now."""
        left = {
            "seconds": max(_LEAST, self._order.seconds - self._seconds),
            "candidates": max(1, self._order.candidates - tried),
        }
        return Setting(self._order.model_copy(update=left), home, texts, self._told(tried), (self._writer.descriptor,))

    def _done(self, forks: Forks, job: Job) -> Ended:
        """Let a fork do something; who asks us to end asks the fork."""
        forks.start(job)
        is_passed_on = False
        while not (over := list(forks.ended())):
            if self._is_asked and not is_passed_on:
                forks.interrupt()
                is_passed_on = True
        return over[0]

    def _told(self, tried: int) -> Callable[[Progress], None]:
        """Progress of a round as progress of all of them."""

        def tell(one: Progress) -> None:
            seconds = self._seconds
            total = tried + one.tried
            self._writer.write(
                one.model_copy(
                    update={"tried": total, "seconds": round(seconds, 3), "per_second": round(total / seconds, 1)}
                )
            )

        return tell

    def _result(self, one: Ended) -> Result:
        """What a round has said; where it said nothing, why not."""
        for message in one.messages:
            if "kind" in message:
                return Result.model_validate(message)
        if self._is_asked:
            return Result(ended="asked")
        if one.late:
            return Result(ended="no tests", problem=f"collecting the tests took longer than {_COLLECTING:g} s")
        return Result(ended="no tests", problem="the process ended while the tests were collected")


def main(arguments: Sequence[str] | None = None) -> int:
    """`ORDER RESULT`: a file with an order, and a file or the number of a descriptor for the lines."""
    asked = list(sys.argv[1:] if arguments is None else arguments)
    if len(asked) != 2:
        sys.stderr.write("usage: python -m pytest_loop.repair ORDER.json RESULT.jsonl|DESCRIPTOR\n")
        return 2
    order = Order.model_validate_json(Path(asked[0]).read_bytes())
    Engine(order, Writer(asked[1])).run()
    return 0
