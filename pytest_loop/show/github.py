"""Annotations on failing lines for GitHub Actions: a few, of as many causes as there are, and no others."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path

from pytest_loop.core.judging.critique import build_critique
from pytest_loop.core.model.evaluation import Assessment, Issue, RuleResult
from pytest_loop.core.model.rules import Finding
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.text.lengths import shorten

MOST = 10
LONGEST_TITLE = 120
LONGEST_MESSAGE = 500
_WHERE = re.compile(r"(.+?):(\d+)(?::\d+)?")


def is_on_github(environment: Mapping[str, str]) -> bool:
    """Whether somebody reads the annotations."""
    return environment.get("GITHUB_ACTIONS") == "true"


def folder_in_checkout(root: Path, environment: Mapping[str, str]) -> str:
    """Where the project lies in the checkout: paths of annotations begin at the top of that."""
    top = environment.get("GITHUB_WORKSPACE")
    return root.relative_to(top).as_posix() if top and root.is_relative_to(top) else "."


def muted(nonce: str) -> str:
    """From this line on GitHub obeys nothing in the log, whatever tests and agents print."""
    return f"::stop-commands::{nonce}"


def unmuted(nonce: str) -> str:
    """Until this line, which nobody can print who does not know the word."""
    return f"::{nonce}::"


def annotation_lines(state: RunState, folder: str = ".") -> Iterator[str]:
    """The last evaluation as annotations: one of each cause first, then others, each place once."""
    one = state.evaluation
    if one is None:
        return
    issues = {issue.rule_id: issue for issue in build_critique(state.criteria, one).issues}
    blocking = frozenset(complaint.id for complaint in one.failed)
    places: dict[str, RuleResult] = {}
    for result in _ordered(one, blocking, tuple(issues)):
        where = result.findings[0].where if result.findings else ""
        places.setdefault(_place(where, folder) or result.id, result)
    for place, result in islice(places.items(), MOST):
        level = "error" if result.id in blocking else "warning"
        title = f"title={_property(shorten(result.id, LONGEST_TITLE))}"
        properties = title if place == result.id else f"{place},{title}"
        yield f"::{level} {properties}::{_data(_message(result, issues.get(result.id)))}"


def _ordered(one: Assessment, blocking: frozenset[str], first: tuple[str, ...]) -> list[RuleResult]:
    """What failed or warned: what blocks first, and of that what the critique names."""
    ranks = {name: rank for rank, name in enumerate(first)}
    unmet = [result for result in one.rule_results if result.id in one.unmet]
    return sorted(unmet, key=lambda result: (result.id not in blocking, ranks.get(result.id, len(ranks))))


def _place(where: str, folder: str) -> str:
    if not where:
        return ""
    found = _WHERE.fullmatch(where)
    path = (Path(folder) / (found[1] if found else where)).as_posix()
    return f"file={_property(path)}" + (f",line={found[2]}" if found else "")


def _message(result: RuleResult, issue: Issue | None) -> str:
    first = result.findings[0] if result.findings else None
    text = str(Finding(expected=first.expected, found=first.found)) if first else result.details
    others = f" ({issue.others} more fail for the same cause)" if issue and issue.others else ""
    return shorten(text or "it fails", LONGEST_MESSAGE) + others


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
