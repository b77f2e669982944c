"""Render annotations on failing lines for GitHub Actions: a few, for as many causes as possible."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path

from pytest_loop.core.judging.critique import build_critique
from pytest_loop.core.model.evaluation import Evaluation, Issue, RuleResult
from pytest_loop.core.model.rules import CriteriaScore, Finding, Verdict
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.text.lengths import shorten

MAX_ANNOTATIONS = 10
MAX_TITLE_LENGTH = 120
MAX_MESSAGE_LENGTH = 500
_LOCATION = re.compile(r"(.+?):(\d+)(?::\d+)?")


def is_on_github(environment: Mapping[str, str]) -> bool:
    """Return whether this process runs in GitHub Actions."""
    return environment.get("GITHUB_ACTIONS") == "true"


def find_folder_in_checkout(root: Path, environment: Mapping[str, str]) -> str:
    """Return the project's folder in the checkout, to which the paths of annotations are relative."""
    top = environment.get("GITHUB_WORKSPACE")
    return root.relative_to(top).as_posix() if top and root.is_relative_to(top) else "."


def format_mute_command(nonce: str) -> str:
    """Return the command after which GitHub ignores commands that tests and agents print."""
    return f"::stop-commands::{nonce}"


def format_unmute_command(nonce: str) -> str:
    """Return the command that ends the muting with the same nonce, which tests and agents do not know."""
    return f"::{nonce}::"


def render_annotations(state: RunState, folder: str = ".") -> Iterator[str]:
    """Render annotations of the last evaluation: blocking rules first, in the critique's order, each place once."""
    evaluation = state.evaluation
    if evaluation is None:
        return
    issues = {issue.rule_id: issue for issue in build_critique(state.criteria, evaluation).issues}
    blocking = frozenset(complaint.id for complaint in evaluation.failed)
    places: dict[str, RuleResult] = {}
    for result in _sort_results(evaluation, blocking, tuple(issues)):
        where = result.findings[0].where if result.findings else ""
        places.setdefault(_format_place(where, folder) or result.id, result)
    for place, result in islice(places.items(), MAX_ANNOTATIONS):
        message = _format_message(result, issues.get(result.id))
        level = "error" if result.id in blocking else "warning"
        yield _format_annotation(level, "" if place == result.id else place, result.id, message)


def render_score_annotations(scores: Iterable[CriteriaScore], folder: str) -> Iterator[str]:
    """Render annotations of a session outside a run: rules that block or warn, blocking ones first."""
    results = [result for score in scores for result in score.results]
    shown = [result for result in results if result.is_blocking or result.verdict is Verdict.WARN]
    for result in sorted(shown, key=lambda result: not result.is_blocking)[:MAX_ANNOTATIONS]:
        finding = next((finding for piece in result.evidence for finding in piece.findings), None)
        message = _format_finding(finding) if finding else shorten(result.details, MAX_MESSAGE_LENGTH)
        place = _format_place(finding.where, folder) if finding else ""
        yield _format_annotation("error" if result.is_blocking else "warning", place, result.rule.id, message)


def _format_annotation(level: str, place: str, name: str, message: str) -> str:
    title = f"title={_escape_property(shorten(name, MAX_TITLE_LENGTH))}"
    return f"::{level} {','.join(filter(None, (place, title)))}::{_escape(message)}"


def _sort_results(
    evaluation: Evaluation, blocking: frozenset[str], critique_order: tuple[str, ...]
) -> list[RuleResult]:
    """Sort unmet rules: blocking ones first, then by their order in the critique."""
    ranks = {name: rank for rank, name in enumerate(critique_order)}
    unmet = [result for result in evaluation.rule_results if result.id in evaluation.unmet]
    return sorted(unmet, key=lambda result: (result.id not in blocking, ranks.get(result.id, len(ranks))))


def _format_place(where: str, folder: str) -> str:
    if not where:
        return ""
    match = _LOCATION.fullmatch(where)
    path = (Path(folder) / (match[1] if match else where)).as_posix()
    return f"file={_escape_property(path)}" + (f",line={match[2]}" if match else "")


def _format_message(result: RuleResult, issue: Issue | None) -> str:
    first = result.findings[0] if result.findings else None
    text = _format_finding(first) if first else shorten(result.details, MAX_MESSAGE_LENGTH)
    others = f" ({issue.others} more fail for the same cause)" if issue and issue.others else ""
    return (text or "it fails") + others


def _format_finding(finding: Finding) -> str:
    return shorten(str(Finding(expected=finding.expected, found=finding.found)), MAX_MESSAGE_LENGTH)


def _escape(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape_property(text: str) -> str:
    return _escape(text).replace(":", "%3A").replace(",", "%2C")
