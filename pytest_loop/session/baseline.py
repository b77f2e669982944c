"""A saved evaluation, and what became worse since."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pydantic import ValidationError

from pytest_loop.core.model.rules import Evaluation, Value, Verdict
from pytest_loop.errors import SavedFileError

_RANK = {Verdict.PASS: 0, Verdict.NA: 1, Verdict.WARN: 2, Verdict.FAIL: 3}


class Baseline(Value):
    """The verdict of every rule (`source::id`) as it was."""

    schema_version: int = 1
    verdicts: dict[str, Verdict]

    @property
    def failures(self) -> frozenset[str]:
        return frozenset(key for key, verdict in self.verdicts.items() if verdict in (Verdict.FAIL, Verdict.WARN))


def load(path: Path) -> Baseline:
    """The baseline in a file; raises `SavedFileError` where there is none."""
    try:
        return Baseline.model_validate_json(path.read_bytes())
    except OSError as error:
        reason = error.strerror or str(error)
    except ValidationError:
        reason = "it is not a saved evaluation"
    raise SavedFileError(f"--loop-baseline: cannot use {path}: {reason}; make one with --loop-save-baseline {path}")


def save(evaluations: Iterable[Evaluation], path: Path) -> None:
    """Write the verdicts of this session."""
    verdicts = {f"{one.source}::{result.rule.id}": result.verdict for one in evaluations for result in one.results}
    try:
        path.write_text(Baseline(verdicts=verdicts).model_dump_json(indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise SavedFileError(f"--loop-save-baseline: cannot write {path}: {error.strerror or error}") from None


def worse(evaluations: Iterable[Evaluation], baseline: Baseline) -> list[str]:
    """The rules whose verdict is worse than it was; a rule that the baseline does not know must pass."""
    found = []
    for one in evaluations:
        for result in one.results:
            key = f"{one.source}::{result.rule.id}"
            before = baseline.verdicts.get(key, Verdict.PASS)
            if _RANK[result.verdict] > max(_RANK[before], _RANK[Verdict.NA]):
                found.append(key)
    return found
