"""Run the commands of a workload for one case: produce its output, then evaluate it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeVar

from pytest_loop.core.judging.votes import count_needed_passes, decide_vote
from pytest_loop.core.workload.measurement import CaseOutcome, CaseResult, Remark
from pytest_loop.errors import CheckError, LoopError, NotJudgedError
from pytest_loop.processes import child
from pytest_loop.rules.checks.check import JudgeReply
from pytest_loop.rules.checks.command_checks import get_last_lines
from pytest_loop.rules.syntax import ContentError, read_text
from pytest_loop.workloads.cases import Case, Workload
from pytest_loop.workloads.evaluator_answers import EvaluatorAnswer, combine_answers, compare_output, parse_answer
from pytest_loop.workloads.manifest import Manifest, fill_placeholders, split_manifest_command

DEFAULT_TIMEOUT = 600.0
MAX_TRIES = 3
MAX_CALIBRATIONS = 3
_FIRST_PAUSE = 0.1
_MISSING_OUTPUT = "expected the output"
Result = TypeVar("Result")


class PermanentError(CheckError):
    """An infrastructure error that another try cannot fix."""


class Pipeline:
    """Run the commands of a workload; `ask` sends a question about an output to a judge, if there is one."""

    def __init__(
        self, workload: Workload, timeout: float = DEFAULT_TIMEOUT, ask: Callable[..., JudgeReply] | None = None
    ) -> None:
        self.workload = workload
        self.manifest = workload.manifest
        self.timeout = timeout
        self.ask = ask
        self._root = os.path.realpath(workload.root)

    def build(self) -> None:
        """Run the build command, once before the cases, or raise `CheckError`."""
        self._run_successfully(self.manifest.build_command)

    def evaluate_case(self, case: Case) -> CaseResult:
        """Repeat a case until the vote is decided, and return its result; stop at an infrastructure error."""
        total = self.manifest.repeat
        needed = count_needed_passes(str(self.manifest.need), total)
        results: list[CaseResult] = []
        passes = 0
        while decide_vote(passes, len(results) - passes, total, needed) is None:
            results.append(self.run_case(case))
            passes += results[-1].passed
            if results[-1].outcome is CaseOutcome.INFRASTRUCTURE:
                return results[-1]
        return results[0] if total == 1 else _combine_repeats(results, needed)

    def run_case(self, case: Case, tries: int = MAX_TRIES) -> CaseResult:
        """Run a case once; retry infrastructure errors, and return the last one as the outcome INFRASTRUCTURE."""
        started = time.monotonic()
        try:
            _retry(lambda: self._produce_output(case), tries)
            result = _retry(lambda: self._judge_output(case), tries)
        except NotJudgedError:
            raise
        except LoopError as error:
            result = CaseResult(id=case.id, outcome=CaseOutcome.INFRASTRUCTURE, text=str(error))
        return result.model_copy(update={"seconds": time.monotonic() - started})

    def _produce_output(self, case: Case) -> None:
        """Run the case; raise `CheckError` unless it writes its output."""
        output = self._clear_output(case)
        flags = ("--force",) if self.manifest.cache_strategy == "force" else ()
        result = self._run_successfully(self.manifest.run_command, case, flags)
        if not output.is_file():
            missing = f"{_MISSING_OUTPUT} {case.output} of `{self.manifest.run_command}`"
            raise CheckError(f"{missing}, found none{_format_output(result)}")

    def _clear_output(self, case: Case) -> Path:
        """Remove the output of an earlier run and return its path; refuse a path that links out of the project."""
        path = self.workload.folder / case.output
        if not Path(os.path.realpath(path.parent)).is_relative_to(self._root):
            expected = f"a place inside the project for the output {case.output}"
            raise PermanentError(f"expected {expected}, found a link out of it")
        try:
            path.unlink(missing_ok=True)
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise PermanentError(f"cannot make room for the output {case.output}: {error.strerror}") from None
        return path

    def _judge_output(self, case: Case) -> CaseResult:
        commands = list(filter(None, (self.manifest.evaluate_command, self.manifest.review_command)))
        difference = self._compare_output(case)
        if commands:
            answer = combine_answers([self._run_evaluator(command, case) for command in commands])
        elif self.ask is not None and self.manifest.reviewer:
            answer = self._ask_reviewer(case, self.ask)
        elif case.expected:
            critiques = (Remark(message=f"differs from {case.expected}"),) if difference else ()
            answer = EvaluatorAnswer(not difference, critiques=critiques)
        else:
            raise NotJudgedError("it needs a reviewer: name an agent with --loop-judge")
        return CaseResult(
            id=case.id,
            outcome=CaseOutcome.PASSED if answer.passed else CaseOutcome.FAILED,
            score=answer.score,
            critiques=answer.critiques,
            difference="" if answer.passed else difference,
        )

    def _run_evaluator(self, command: str, case: Case) -> EvaluatorAnswer:
        result = self._run_command(command, case)
        if result.exit_code < 0:
            raise CheckError(_describe_exit(command, result))
        if result.exit_code and self._lacks_script(command, result):
            raise PermanentError(_describe_exit(command, result))
        return parse_answer(command, result.exit_code, result.stdout, result.stderr)

    def _lacks_script(self, command: str, result: child.CommandResult) -> bool:
        """Return whether an interpreter reports that the script of a command does not exist."""
        script = next(iter(split_manifest_command(command)[1:2]), "")
        is_file_name = bool(Path(script).suffix) and not script.startswith("-") and "{" not in script
        return is_file_name and script in result.stderr and not (self.workload.folder / script).exists()

    def _ask_reviewer(self, case: Case, ask: Callable[..., JudgeReply]) -> EvaluatorAnswer:
        try:
            question = read_text(self.workload.folder / self.manifest.reviewer)
        except ContentError as error:
            raise PermanentError(f"{self.manifest.reviewer}:{error.line}: {error}") from None
        for name, value in case.placeholder_values.items():  # not str.format: a prompt may contain other braces
            question = question.replace(f"{{{name}}}", value)
        answer = ask(question, artifact=self.workload.folder / case.output)
        critiques = () if answer.passed else (Remark(message=answer.reason or "the reviewer says no"),)
        return EvaluatorAnswer(answer.passed, critiques=critiques)

    def _compare_output(self, case: Case) -> str:
        if not case.expected:
            return ""
        output, expected = (self.workload.folder / path for path in (case.output, case.expected))
        try:
            return compare_output(output.read_bytes(), expected.read_bytes(), case.id)
        except OSError as error:
            raise CheckError(f"cannot compare {case.output} with {case.expected}: {error.strerror}") from None

    def _run_successfully(
        self, command: str, case: Case | None = None, flags: tuple[str, ...] = ()
    ) -> child.CommandResult:
        result = self._run_command(command, case, flags)
        if result.exit_code:
            raise CheckError(_describe_exit(command, result))
        return result

    def _run_command(self, command: str, case: Case | None = None, flags: tuple[str, ...] = ()) -> child.CommandResult:
        """Run a command to its end, whatever its exit code; raise `CheckError` if it cannot start or takes too long."""
        words = split_manifest_command(command)
        if case is not None:
            words = tuple(fill_placeholders(word, case.placeholder_values) for word in words)
        try:
            result = child.run_command(child.Command([*words, *flags], self.workload.folder, self.timeout))
        except child.CannotStartError as error:
            raise PermanentError(f"{error}, in `{command}`") from None
        if result.ending is not child.Ending.COMPLETED:
            limit = f"expected `{command}` to end within {self.timeout:g} s"
            raise CheckError(f"{limit}, found it still running{_format_output(result)}")
        return result


def _combine_repeats(results: list[CaseResult], needed: int) -> CaseResult:
    """Return the first result that agrees with the vote, with the number of passes if the case fails."""
    passes = sum(result.passed for result in results)
    decisive = next((result for result in results if result.passed is (passes >= needed)), results[-1])
    count = Remark(message=f"{passes} of {len(results)} repeats pass, {needed} have to")
    critiques = decisive.critiques if decisive.passed else (*decisive.critiques, count)
    seconds = sum(result.seconds for result in results)
    return decisive.model_copy(update={"critiques": critiques, "seconds": seconds})


def _retry(step: Callable[[], Result], tries: int) -> Result:
    """Run a step until it succeeds, at most `tries` times, with growing pauses; raise permanent errors at once."""
    for number in range(1, tries):
        try:
            return step()
        except (PermanentError, NotJudgedError):
            raise
        except LoopError:
            time.sleep(_FIRST_PAUSE * 4 ** (number - 1))
    return step()


def _describe_exit(command: str, result: child.CommandResult) -> str:
    end = f"exit code {result.exit_code}" if result.exit_code >= 0 else f"an end by signal {-result.exit_code}"
    return f"expected exit code 0 of `{command}`, found {end}{_format_output(result)}"


def _format_output(result: child.CommandResult) -> str:
    lines = get_last_lines(result.output)
    return f"\n{lines}" if lines else ""


class Calibration(NamedTuple):
    """The result of a calibration: `passed` if the pipeline works, and the error of each failed attempt."""

    case: str
    passed: bool
    errors: tuple[str, ...] = ()

    @property
    def attempts(self) -> int:
        return len(self.errors) + self.passed


def calibrate(pipeline: Pipeline, case: Case, tries: int = MAX_CALIBRATIONS) -> Calibration:
    """Build and run one case, at most `tries` times, until no infrastructure error occurs; the case may fail."""
    errors: list[str] = []
    while len(errors) < tries:
        error = _try_pipeline(pipeline, case)
        if error is None:
            return Calibration(case.id, True, tuple(errors))
        errors.append(_format_field_name(pipeline.manifest, error) + error)
    return Calibration(case.id, False, tuple(errors))


def _format_field_name(manifest: Manifest, error: str) -> str:
    """Return `FIELD: ` for the field of the manifest whose command an error quotes; empty without one."""
    commands = {
        "buildCommand": manifest.build_command,
        "evaluateCommand": manifest.evaluate_command,
        "reviewCommand": manifest.review_command,
        "runCommand": manifest.run_command,
    }
    name = next((name for name, command in commands.items() if command and f"`{command}`" in error), "")
    if name == "runCommand" and error.startswith(_MISSING_OUTPUT):
        return "runCommand or outputPath: "
    return f"{name}: " if name else ""


def _try_pipeline(pipeline: Pipeline, case: Case) -> str | None:
    """Return the pipeline's error, or None; ignore a missing judge, because only a session has one."""
    try:
        if pipeline.manifest.build_command:
            pipeline.build()
        result = pipeline.run_case(case, tries=1)
    except NotJudgedError:
        return None
    except CheckError as error:
        return str(error)
    return result.text if result.outcome is CaseOutcome.INFRASTRUCTURE else None
