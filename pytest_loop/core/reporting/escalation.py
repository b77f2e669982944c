"""The questions of a stopped run to a person: what was tried, the pattern in it, and possible answers."""

from __future__ import annotations

import re
from typing import NamedTuple

from pytest_loop.core.machine.breakers import has_undone_edit
from pytest_loop.core.machine.stop_reasons import find_row
from pytest_loop.core.model.attempt import Attempt
from pytest_loop.core.model.escalation import Alternative
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.model.vocabulary import Reason
from pytest_loop.core.text.lengths import shorten
from pytest_loop.core.text.score_text import format_score

_MAX_TEXT_LENGTH = 200
_MAX_VALUE_LENGTH = 80
# pytest's own assertions, those of unittest, and what runners of other languages print.
_COMPARISONS = (
    re.compile(r"(?:^|: )assert (?P<found>\S.*?) == (?P<expected>\S.*)$", re.MULTILINE),
    re.compile(r"(?:^|: )AssertionError: (?P<found>\S.*?) != (?P<expected>\S.*)$", re.MULTILINE),
    re.compile(
        r"^\s*Expected:[ \t]*(?P<expected>\S.*)\n\s*(?:Received|Actual|Found|Got):[ \t]*(?P<found>\S.*)$",
        re.MULTILINE | re.IGNORECASE,
    ),
)


class Contrast(NamedTuple):
    """Two values that a failing test compares: one of them is wrong."""

    expected: str
    found: str


def render_attempt(attempt: Attempt, *, has_message: bool = False) -> str:
    """Render an attempt as one line: its score, the numbers of fixed and broken rules, and rules that do not pass.

    Use `has_message` only for people: it adds the first failure's message, test output that no prompt may contain.
    """
    verdict = "void" if attempt.void else "pass" if attempt.passed else "fail"
    parts = [f"iteration {attempt.iteration}, phase {attempt.phase.value}: {format_score(attempt.score)} {verdict}"]
    if attempt.unchanged:
        parts.append("nothing was changed")
    if attempt.fixed or attempt.broken:
        parts.append(f"{attempt.fixed} fixed, {attempt.broken} broken")
    if attempt.unmet:
        names = ", ".join(shorten(name, 80) for name in attempt.open[:3])
        parts.append(f"open: {names}" + (f" and {attempt.unmet - 3} more" if attempt.unmet > 3 else ""))
    if has_message and attempt.message:
        parts.append(attempt.message)
    return "; ".join(parts)


def describe_pattern(state: RunState) -> str:
    """Describe what the attempts have in common."""
    attempts = state.progress.attempts
    if state.evaluation and state.evaluation.is_waiting_for_setup:
        return "set-up: what is left cannot be judged here, and no edit changes that"
    if state.is_rejected:
        return "rejected: every rule passes, and the review asks for something else"
    thrashing = state.setup.breakers.thrashing
    if attempts and attempts[-1].rewritten and 0 < thrashing <= attempts[-1].rewrites:
        return f"rewriting: {attempts[-1].rewritten} was written {attempts[-1].rewrites} times in one iteration"
    if len(attempts) < 2:
        return "one attempt only" if attempts else "nothing was judged"
    last = attempts[-1]
    if last.unchanged:
        return "no change: the last edit changed nothing"
    if last.failing and last.same_since < last.iteration:
        since = [failing.since for failing in last.failing.values()]
        how = "with the same message" if max(since) <= last.same_since else "in different ways"
        return f"same failure: the same rules fail for {last.iteration - last.same_since + 1} iterations, {how}"
    if has_undone_edit(state):
        return "oscillation: edits undo each other"
    if last.fixed and last.broken:
        return "moving failure: what is fixed breaks something else"
    if last.broken:
        return "moving failure: edits break what passed before"
    return "partial gain: some rules were fixed, others are left" if last.unmet else "nothing fails any more"


def ask_question(state: RunState, reason: Reason) -> str:
    """Return the question that a person has to answer."""
    evaluation, signals = state.evaluation, state.signals
    if reason is Reason.BLOCKED and signals.blocked:
        claim = f"Is the agent right that {signals.blocked.rule} cannot be met ({signals.blocked.reason})?"
        return shorten(claim, 2 * _MAX_TEXT_LENGTH)
    if reason is Reason.UNCONFIRMED and evaluation and evaluation.assumptions:
        names = ", ".join(_describe_rule(state, name) for name in evaluation.assumptions)
        return f"Is it so: {shorten(names, _MAX_TEXT_LENGTH)}?"
    if reason is Reason.UNCONFIRMED and state.has_empty_edit:
        return "The agent has changed no file: is the task done as it is?"
    if reason is Reason.UNCONFIRMED:
        return "The review is outstanding: is it done?"
    if signals.review and state.is_rejected:
        feedback = shorten(signals.review.feedback, _MAX_TEXT_LENGTH)
        return f"Is another round worth it for what the review asks ({feedback})?"
    if reason is Reason.MUST_NOT and evaluation and evaluation.must_not:
        return f"How did {_describe_rule(state, evaluation.must_not[0])} come about, and is it undone?"
    complaints = (
        (*evaluation.failed, *evaluation.blocking_errors, *evaluation.warnings, *evaluation.errors)
        if evaluation
        else ()
    )
    first = next(iter(complaints), None)
    if evaluation and evaluation.is_clean and first is None and signals.exit_signal is False:
        return "Every rule passes, and the agent says that it is not done: what is missing?"
    rule = shorten(first.id, _MAX_TEXT_LENGTH) if first else "the rule that fails"
    row = find_row(reason)
    if row.offers_choice and (contrast := _find_contrast(state)):
        expected, found = (shorten(text, _MAX_VALUE_LENGTH) for text in contrast)
        return f"{rule} expects {expected}, and found {found}: which of the two is right?"
    return row.question.replace("{rule}", rule)


def list_alternatives(state: RunState, reason: Reason) -> tuple[Alternative, ...]:
    """Return the possible answers to the question of a reason."""
    return list_value_alternatives(state) if find_row(reason).offers_choice else ()


def list_value_alternatives(state: RunState) -> tuple[Alternative, ...]:
    """Return two answers if the first failure compares two values: change the code, or change the expectation."""
    contrast = _find_contrast(state)
    if contrast is None or state.evaluation is None:
        return ()
    expected, found = (shorten(text, _MAX_VALUE_LENGTH) for text in contrast)
    name = state.evaluation.failed[0].id
    path = name.partition("::")[0] if state.criteria.by_id[name].is_test else ""
    return (
        Alternative(text=f"{expected} is right: change the code"),
        Alternative(
            text=f"{found} is right: change the expectation" + (f" in {path}" if path else ""),
            changes_judge=True,
            unseal=path,
        ),
    )


def _find_contrast(state: RunState) -> Contrast | None:
    """Return the values that the first failure compares."""
    evaluation = state.evaluation
    if evaluation is None or not evaluation.failed or evaluation.failed[0].id not in state.criteria.by_id:
        return None
    results = [result for result in evaluation.rule_results if result.id == evaluation.failed[0].id]
    texts = [text for result in results for text in (result.details, *(finding.detail for finding in result.findings))]
    return find_contrast("\n".join(texts))


def find_contrast(text: str) -> Contrast | None:
    """Return the first pair of values that a failure message compares, or None if it compares none."""
    matches = filter(None, (pattern.search(text) for pattern in _COMPARISONS))
    match = min(matches, key=lambda match: match.start(), default=None)
    return Contrast(match["expected"].strip(), match["found"].strip()) if match else None


def _describe_rule(state: RunState, name: str) -> str:
    rule = state.criteria.by_id.get(name)
    return f"{name} ({rule.description})" if rule and rule.description != name else name
