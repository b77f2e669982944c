"""Runs a case: its command, and then whoever judges what came out."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pytest_loop.core.judging.votes import count_needed_passes, decide_vote
from pytest_loop.core.workload.measurement import CaseOutcome, CaseResult, Remark
from pytest_loop.errors import CheckError, LoopError, NotJudgedError
from pytest_loop.processes import child
from pytest_loop.rules.checks.check import Answer
from pytest_loop.rules.syntax import ContentError, read_text
from pytest_loop.workloads.cases import Case, Workload
from pytest_loop.workloads.evaluating import Heard, difference, heard, together
from pytest_loop.workloads.manifest import command_words
from pytest_loop.workloads.placeholders import filled

TIMEOUT = 600.0
TRIES = 3
CALIBRATIONS = 3
_PAUSE = 0.1
_TAIL = 12
Done = TypeVar("Done")


class Hopeless(CheckError):  # noqa: N818 - an error of the infrastructure that no other try can mend
    """A command that cannot even be started."""


class Pipeline:
    """The commands of a workload; `ask` puts a question about an output to a judge, where there is one."""

    def __init__(self, workload: Workload, timeout: float = TIMEOUT, ask: Callable[..., Answer] | None = None) -> None:
        self.workload = workload
        self.manifest = workload.source.manifest
        self.timeout = timeout
        self.ask = ask
        self._inside = os.path.join(os.path.realpath(workload.root), "")

    def build(self) -> None:
        """What has to happen once before the cases are run; raises `CheckError`."""
        done = self._completed(self.manifest.build_command)
        if done.exit_code:
            raise CheckError(_unexpected(self.manifest.build_command, done))

    def voted(self, case: Case) -> CaseResult:
        """What a case comes to; a noisy one is run until it is certain whether enough of its repeats pass."""
        total = self.manifest.repeat
        need = count_needed_passes(str(self.manifest.need), total)
        results: list[CaseResult] = []
        while (
            decide_vote(sum(one.passed for one in results), sum(not one.passed for one in results), total, need) is None
        ):
            results.append(self.result(case))
            if results[-1].outcome is CaseOutcome.INFRASTRUCTURE:
                return results[-1]
        return results[0] if total == 1 else _together(results, need)

    def result(self, case: Case, tries: int = TRIES) -> CaseResult:
        """What running a case once comes to; the infrastructure gets more tries, and its errors are told apart."""
        started = time.monotonic()
        try:
            _again(lambda: self._run(case), tries)
            found = _again(lambda: self._judged(case), tries)
        except NotJudgedError:
            raise
        except LoopError as error:
            found = CaseResult(id=case.id, outcome=CaseOutcome.INFRASTRUCTURE, text=str(error))
        return found.model_copy(update={"seconds": time.monotonic() - started})

    def _run(self, case: Case) -> None:
        output = self._output(case)
        more = ("--force",) if self.manifest.cache_strategy == "force" else ()
        done = self._completed(self.manifest.run_command, case, more)
        if done.exit_code:
            raise CheckError(_unexpected(self.manifest.run_command, done))
        if not output.is_file():
            wanted = f"the output {case.output} of `{self.manifest.run_command}`"
            raise CheckError(f"expected {wanted}, found none{_tail(done)}")

    def _output(self, case: Case) -> Path:
        """Where the output goes, and nothing is there: inside the project, also where a folder on the way is a link."""
        path = self.workload.folder / case.output
        if not os.path.join(os.path.realpath(path.parent), "").startswith(self._inside):
            raise Hopeless(f"expected a place inside the project for the output {case.output}, found a link out of it")
        try:
            path.unlink(missing_ok=True)
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise Hopeless(f"cannot make room for the output {case.output}: {error.strerror}") from None
        return path

    def _judged(self, case: Case) -> CaseResult:
        commands = [one for one in (self.manifest.evaluate_command, self.manifest.review_command) if one]
        differs = self._difference(case)
        if commands:
            said = together([self._heard(command, case) for command in commands])
        elif self.ask is not None and self.manifest.reviewer:
            said = self._reviewed(case, self.ask)
        elif case.expected:
            said = Heard(not differs, critiques=(Remark(message=f"differs from {case.expected}"),) if differs else ())
        else:
            raise NotJudgedError("nobody here can review it: name an agent with --loop-judge")
        outcome = CaseOutcome.PASSED if said.passed else CaseOutcome.FAILED
        shown = "" if said.passed else differs
        return CaseResult(id=case.id, outcome=outcome, score=said.score, critiques=said.critiques, difference=shown)

    def _heard(self, command: str, case: Case) -> Heard:
        done = self._completed(command, case)
        if done.exit_code < 0:
            raise CheckError(_unexpected(command, done))
        return heard(command, done.exit_code, done.stdout, done.stderr)

    def _reviewed(self, case: Case, ask: Callable[..., Answer]) -> Heard:
        try:
            question = read_text(self.workload.folder / self.manifest.reviewer)
        except ContentError as error:
            raise Hopeless(f"{self.manifest.reviewer}:{error.line}: {error}") from None
        answer = ask(filled_loosely(question, case), artifact=self.workload.folder / case.output)
        critiques = () if answer.passed else (Remark(message=answer.reason or "the reviewer says no"),)
        return Heard(answer.passed, critiques=critiques)

    def _difference(self, case: Case) -> str:
        if not case.expected:
            return ""
        output, expected = (self.workload.folder / path for path in (case.output, case.expected))
        try:
            return difference(output.read_bytes(), expected.read_bytes(), case.id)
        except OSError as error:
            raise CheckError(f"cannot compare {case.output} with {case.expected}: {error.strerror}") from None

    def _completed(self, command: str, case: Case | None = None, more: tuple[str, ...] = ()) -> child.CommandResult:
        words = command_words(command)
        if case is not None:
            words = tuple(filled(word, case.values) for word in words)
        try:
            done = child.run_command(child.Command([*words, *more], self.workload.folder, self.timeout))
        except child.CannotStartError as error:
            raise Hopeless(str(error)) from None
        if done.ending is not child.Ending.COMPLETED:
            raise CheckError(
                f"expected `{command}` to end within {self.timeout:g} s, found it still running{_tail(done)}"
            )
        return done


def _together(results: list[CaseResult], need: int) -> CaseResult:
    """Several repeats as one: what was said about the first that failed, and how often it passed."""
    passes = sum(one.passed for one in results)
    first = next((one for one in results if one.passed is (passes >= need)), results[-1])
    said = Remark(message=f"{passes} of {len(results)} repeats pass, {need} have to")
    critiques = first.critiques if first.passed else (*first.critiques, said)
    return first.model_copy(update={"critiques": critiques, "seconds": sum(one.seconds for one in results)})


def filled_loosely(text: str, case: Case) -> str:
    """A prompt with its placeholders replaced; other braces of a prompt are only braces."""
    for name, value in case.values.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def _again(step: Callable[[], Done], tries: int) -> Done:
    """Try a step again, a little later each time; what no other try can mend is not tried again."""
    for number in range(1, tries):
        try:
            return step()
        except (Hopeless, NotJudgedError):
            raise
        except LoopError:
            time.sleep(_PAUSE * 4 ** (number - 1))
    return step()


def _unexpected(command: str, done: child.CommandResult) -> str:
    found = f"exit code {done.exit_code}" if done.exit_code >= 0 else f"an end by signal {-done.exit_code}"
    return f"expected exit code 0 of `{command}`, found {found}{_tail(done)}"


def _tail(done: child.CommandResult) -> str:
    lines = done.output.strip().splitlines()[-_TAIL:]
    return "".join(f"\n{line}" for line in lines)


class Calibration(NamedTuple):
    """Whether the pipeline works at all: the case that it was tried with, and what went wrong each time."""

    case: str
    passed: bool
    errors: tuple[str, ...] = ()

    def payload(self) -> dict[str, Any]:
        return {
            "case": self.case,
            "passed": self.passed,
            "attempts": len(self.errors) + self.passed,
            "errors": list(self.errors),
        }


def calibrated(pipeline: Pipeline, case: Case) -> Calibration:
    """Build, and run one case: up to three times, each try once, and a case that is only wrong is good enough."""
    errors: list[str] = []
    while len(errors) < CALIBRATIONS:
        problem = _tried(pipeline, case)
        if problem is None:
            return Calibration(case.id, True, tuple(errors))
        errors.append(problem)
    return Calibration(case.id, False, tuple(errors))


def _tried(pipeline: Pipeline, case: Case) -> str | None:
    """What goes wrong with the pipeline; that nobody here can review is left to the session, which has a judge."""
    try:
        if pipeline.manifest.build_command:
            pipeline.build()
        found = pipeline.result(case, tries=1)
    except NotJudgedError:
        return None
    except CheckError as error:
        return str(error)
    return found.text if found.outcome is CaseOutcome.INFRASTRUCTURE else None
