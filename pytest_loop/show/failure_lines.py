"""Render failing rules in one line each: the place, the rule or test, and a short message."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

from pytest_loop.core.judging.critique import group_by_cause
from pytest_loop.core.model.evaluation import RuleResult
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.model.vocabulary import Target
from pytest_loop.core.text.lengths import shorten
from pytest_loop.show.look import Look

INDENT = 7
_MESSAGE_INDENT = INDENT + 2
MAX_LINES = 10
# With more causes than this, tests with probably the same cause share a line.
_MAX_CAUSES = 6
_MAX_MESSAGE = 800
# Columns after a name for two spaces, the start of a message, and the number of similar rules. A terminal without room
# for them shows long messages below the names.
_REST = 31


class FailureGroup(NamedTuple):
    """One cause: the name of its first rule, the message, and the number of other rules with the same cause."""

    name: str
    message: str
    others: int = 0

    def render_tail(self) -> str:
        return f" (and {self.others} similar)" if self.others else ""


def render_failures(state: RunState, names: Iterable[str], look: Look) -> Iterator[str]:
    """Render the named rules that do not pass, grouped by cause."""
    evaluation, chosen = state.evaluation, set(names)
    results = [result for result in evaluation.rule_results if result.id in chosen] if evaluation else []
    groups = group_by_cause(results, _MAX_CAUSES)
    failures = [_describe_group(state, group) for group in groups[:MAX_LINES]]
    limit = max(20, look.width - INDENT - _REST)
    width = max((len(failure.name) for failure in failures), default=0)
    is_narrow = look.wraps and width > limit
    for failure in failures:
        yield from (
            _render_stacked(failure, look) if is_narrow else _render_in_columns(failure, look, limit, min(limit, width))
        )
    if len(groups) > MAX_LINES:
        rest = sum(map(len, groups[MAX_LINES:]))
        yield " " * INDENT + f"… {rest:,} more {'fails' if rest == 1 else 'fail'}: pytest-loop show"


def render_unmet_rules(state: RunState) -> Iterator[str]:
    """Render every rule of the last evaluation that does not pass, with its whole message."""
    evaluation = state.evaluation
    if evaluation is None:
        yield f"{state.task_alias}: nothing was judged"
        return
    results = {result.id: result for result in evaluation.rule_results}
    yield f"{state.task_alias}: {evaluation.passing} of {evaluation.total} pass"
    for complaint in (*evaluation.failed, *evaluation.warnings, *evaluation.errors):
        findings = results[complaint.id].findings if complaint.id in results else ()
        messages = [str(finding) for finding in findings] or [complaint.message]
        yield f"  {complaint.id} ({complaint.severity.value})"
        yield from (f"    {shorten(message, _MAX_MESSAGE)}" for message in messages if message)


def _render_in_columns(failure: FailureGroup, look: Look, limit: int, width: int) -> Iterator[str]:
    """Render a failure in two columns."""
    head = " " * INDENT + shorten(failure.name, limit).ljust(width) + "  "
    tail = failure.render_tail()
    room = max(12, look.width - len(head) - len(tail))
    yield (head + shorten(failure.message, room) + look.paint(tail, "dim")).rstrip()


def _render_stacked(failure: FailureGroup, look: Look) -> Iterator[str]:
    """Render a failure on one line if it fits, and otherwise its message below its name."""
    tail = failure.render_tail()
    line = f"{failure.name}  {shorten(failure.message, _MAX_MESSAGE)}".rstrip()
    if INDENT + len(line) + len(tail) <= look.width:
        yield " " * INDENT + line + look.paint(tail, "dim")
        return
    yield " " * INDENT + look.fit(failure.name, INDENT)
    yield " " * _MESSAGE_INDENT + look.fit(failure.message, _MESSAGE_INDENT + len(tail)) + look.paint(tail, "dim")


def _describe_group(state: RunState, group: Sequence[RuleResult]) -> FailureGroup:
    result = group[0]
    finding = result.findings[0] if result.findings else None
    if _is_plain_test(state, result.id):  # the place comes first, as in pytest's summary
        path, _, test = result.id.partition("::")
        name = f"{finding.where if finding and finding.where else path} {test}"
        message = finding.found if finding else result.details
    else:
        name, message = result.id, str(finding) if finding else result.details
    before = " (passed before)" if state.evaluation and result.id in state.evaluation.regressions else ""
    first_line = message.strip().partition("\n")[0].partition(" + where ")[0]
    if state.setup.target is Target.ARTIFACT:  # the draft shows the whole path
        first_line = first_line.replace(state.setup.artifact, PurePosixPath(state.setup.artifact).name)
    return FailureGroup(f"{name}{before}", first_line.removeprefix("AssertionError: "), len(group) - 1)


def _is_plain_test(state: RunState, rule_id: str) -> bool:
    rule = state.criteria.by_id.get(rule_id)
    return rule is not None and rule.is_test and "::" in rule_id
