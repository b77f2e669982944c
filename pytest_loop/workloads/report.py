"""The report of one iteration of an experiment: what fails and how, why, and what could be done about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from pytest_loop.core.text.lengths import shorten
from pytest_loop.core.workload.analysis import Analysis
from pytest_loop.core.workload.measurement import CaseOutcome, CaseResult, Measurement
from pytest_loop.workloads.experiment_history import ExperimentHistory
from pytest_loop.workloads.writing import code, names, plain, table

_WORDS = {CaseOutcome.PASSED: "Passing", CaseOutcome.FAILED: "Failing", CaseOutcome.INFRASTRUCTURE: "Not measured"}


def report(found: ExperimentHistory, iteration: int) -> Iterator[tuple[str, list[str]]]:
    """The seven sections, each with its lines; an iteration that nobody analysed has none."""
    analysis, now = found.analyses.get(iteration), _measured(found, iteration)
    if analysis is None or now is None:
        return
    before = next((one for one in reversed(found.measurements) if one.iteration < now.iteration), None)
    yield "Summary", [f"- {now}", f"- Root cause: {plain(analysis.root_cause)}"]
    yield "Failure modes", list(_modes(now))
    yield "Root causes", list(_causes(analysis, now))
    yield "Fix options", list(_options(analysis))
    yield "Regression risks", list(_risks(analysis))
    yield "Case by case", list(_cases(now, before))
    yield "Reasoning trail", list(_trail(found, iteration))


def _measured(found: ExperimentHistory, iteration: int) -> Measurement | None:
    """The first iteration looks at the baseline; one after a skipped one, at what was there before."""
    return next((one for one in reversed(found.measurements) if one.iteration <= iteration), None)


def _modes(now: Measurement) -> Iterator[str]:
    """Failures that are about the same place, the most frequent first."""
    said = [(_mode(remark.location), remark, one.id) for one in now.results for remark in one.critiques]
    failing = [(mode, remark, case) for mode, remark, case in said if case in now.failing]
    rows = []
    for mode, count in Counter(mode for mode, _, _ in failing).most_common():
        ours = [(remark, case) for other, remark, case in failing if other == mode]
        cases = list(dict.fromkeys(case for _, case in ours))
        example = ours[0][0]
        frequency = f"{len(cases)}/{len(now.results)}" + (f" ({count} remarks)" if count > len(cases) else "")
        rows.append(
            [plain(mode), plain(example.severity or "unknown"), frequency, plain(example.message), names(cases)]
        )
    yield from table(["Category", "Severity", "Frequency", "Example", "Cases"], rows)


def _mode(location: str) -> str:
    """Where it is, without the lines and the indices in which cases differ."""
    return shorten("".join("#" if letter.isdigit() else letter for letter in location), 60) or "anywhere"


def _causes(analysis: Analysis, now: Measurement) -> Iterator[str]:
    first = analysis.options[0]
    yield f"- Diagnosis: {plain(analysis.root_cause)}"
    seen = analysis.hypothesis.observation
    yield f"- Evidence: {plain(seen) if seen else f'failing are {names(sorted(now.failing))}'}"
    yield f"- Confidence: {first.confidence.value}"


def _options(analysis: Analysis) -> Iterator[str]:
    for number, option in enumerate(analysis.options, 1):
        place = f"{option.file}, {option.section}" if option.section else option.file
        yield f"{number}. {plain(option.name)}" + (" (recommended)" if number == 1 else "")
        yield f"    - Mechanism: {plain(option.mechanism)}"
        yield f"    - Target: {plain(place)}, {code(option.current)} becomes {code(option.proposed)}"
        yield f"    - Impact: {len(option.improves) - len(option.regresses):+d}, improves {names(option.improves)}"
        yield f"    - Risk: {plain(option.risk or 'unknown')}"


def _risks(analysis: Analysis) -> Iterator[str]:
    for number, option in enumerate(analysis.options, 1):
        if option.regresses:
            yield f"- Option {number} may break {names(option.regresses)}; the next measurement shows whether it does."


def _cases(now: Measurement, before: Measurement | None) -> Iterator[str]:
    """Those that do not pass, and those that did not before; the others are counted."""
    known = {one.id: one for one in before.results} if before else {}
    told = [one for one in now.results if not (one.passed and (one.id not in known or known[one.id].passed))]
    rows = [
        [plain(one.id), _status(one, known.get(one.id)), _previous(known.get(one.id))]
        for one in sorted(told, key=lambda one: (one.passed, one.id))
    ]
    yield from table(["Case", "Status", "Before"], rows)
    others = len(now.results) - len(told)
    if others:
        yield from (("",) if rows else ())
        yield f"{others} others pass{' as before' if before else ''}."


def _status(one: CaseResult, before: CaseResult | None) -> str:
    is_regressed = one.outcome is CaseOutcome.FAILED and before is not None and before.passed
    return "Regressed" if is_regressed else _WORDS[one.outcome]


def _previous(before: CaseResult | None) -> str:
    return "New" if before is None else _WORDS[before.outcome]


def _trail(found: ExperimentHistory, iteration: int) -> Iterable[str]:
    for number, said in found.hypotheses.items():
        if number <= iteration:
            truth = found.judgements[number].truth.value if number in found.judgements else "untested"
            yield f"- Iteration {number}: {plain(said.theory)} ({truth.replace('_', ' ')})"
