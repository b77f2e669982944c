"""Save the verdicts of a session as a baseline, and find the rules that are worse than in it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pydantic import ValidationError

from pytest_loop.core.model.rules import CriteriaScore, Value, Verdict
from pytest_loop.errors import SavedFileError

_RANK = {Verdict.PASS: 0, Verdict.NA: 1, Verdict.WARN: 2, Verdict.FAIL: 3, Verdict.ERROR: 3}


class Baseline(Value):
    """The saved verdict of every rule (`source::id`)."""

    schema_version: int = 1
    verdicts: dict[str, Verdict]

    @property
    def failures(self) -> frozenset[str]:
        return frozenset(key for key, verdict in self.verdicts.items() if verdict in (Verdict.FAIL, Verdict.WARN))

    def find_regressions(self, scores: Iterable[CriteriaScore]) -> list[str]:
        """Return the rules (`source::id`) whose verdict is worse than the saved one.

        Compare a rule without a saved verdict with PASS; NA is never worse.
        """
        return [
            key
            for key, verdict in _collect_verdicts(scores).items()
            if _RANK[verdict] > max(_RANK[self.verdicts.get(key, Verdict.PASS)], _RANK[Verdict.NA])
        ]


def load_baseline(path: Path) -> Baseline:
    """Load a baseline, or raise `SavedFileError`."""
    try:
        return Baseline.model_validate_json(path.read_bytes())
    except OSError as error:
        reason = error.strerror or str(error)
    except ValidationError:
        reason = "it is not a saved evaluation"
    raise SavedFileError(f"--loop-baseline: cannot use {path}: {reason}; make one with --loop-save-baseline {path}")


def save_baseline(scores: Iterable[CriteriaScore], path: Path) -> None:
    """Save the verdicts of this session, or raise `SavedFileError`."""
    baseline = Baseline(verdicts=_collect_verdicts(scores))
    try:
        path.write_text(baseline.model_dump_json(indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise SavedFileError(f"--loop-save-baseline: cannot write {path}: {error.strerror or error}") from None


def _collect_verdicts(scores: Iterable[CriteriaScore]) -> dict[str, Verdict]:
    return {f"{score.source}::{result.rule.id}": result.verdict for score in scores for result in score.results}
