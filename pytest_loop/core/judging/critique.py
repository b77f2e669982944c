"""The critique of an evaluation: at most five issues to fix next, the most important first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction

from pytest_loop.core.judging.tampering import FORBIDDEN, LEFT_OUT, REPORTED_KINDS
from pytest_loop.core.model.attempt import Attempt
from pytest_loop.core.model.evaluation import Critique, Evaluation, Issue, Novelty, RuleResult, SealFinding
from pytest_loop.core.model.rules import Severity, Verdict
from pytest_loop.core.model.run_criteria import RunCriteria, RunRule
from pytest_loop.core.model.run_state import Review
from pytest_loop.core.model.vocabulary import ReviewStatus
from pytest_loop.core.text.excerpt import find_calls, trim_excerpt
from pytest_loop.core.text.lengths import estimate_tokens, fit_tokens, shorten
from pytest_loop.core.text.signature import compute_fingerprint

MAX_ISSUES = 5
MAX_TOKENS = 2_000
# Tokens of the words around the texts of an issue, and of the line that closes the critique.
_FRAME_TOKENS = 30
_MAX_LINE_TOKENS = 60
_MAX_OTHERS = 3
_RANK = {Severity.FAIL: 3, Severity.WARN: 2, Severity.INFO: 1}


def build_critique(
    criteria: RunCriteria,
    evaluation: Evaluation,
    attempts: Sequence[Attempt] = (),
    tokens: int = MAX_TOKENS,
    review: Review | None = None,
) -> Critique:
    """Choose the issues of an evaluation: rules with one cause are one issue; warnings only if nothing blocks.

    `tokens` limits the length of the critique in a prompt.
    """
    rules = criteria.by_id
    unmet = sorted(_find_unmet(evaluation, rules), key=lambda result: _rank_importance(rules[result.id]))
    groups = group_by_cause(unmet, MAX_ISSUES)
    groups.sort(key=lambda group: (_rank_importance(rules[group[0].id]), -len(group)))
    first = (*_report_tampering(evaluation.findings), *_report_review(review))
    last = tuple(_report_side_effects(evaluation.findings))
    chosen = groups[: MAX_ISSUES - len(first) - len(last)]
    issues = (*first, *(_build_issue(group, rules[group[0].id], evaluation, attempts) for group in chosen), *last)
    return Critique(issues=issues, left_out=len(unmet) - sum(map(len, chosen)), tokens=tokens)


def _report_tampering(findings: Sequence[SealFinding]) -> Iterator[Issue]:
    """Report findings that make the evaluation void."""
    signs = [finding for finding in findings if finding.kind not in (*REPORTED_KINDS, FORBIDDEN, LEFT_OUT)]
    fix = "Change the code that is judged. What judges it stays as it is, and what was changed there has been put back."
    yield from _report_findings(signs, "the judge itself", fix, "the next evaluation counts", Severity.FAIL)


def _report_side_effects(findings: Sequence[SealFinding]) -> Iterator[Issue]:
    """Report files that were left out of the evaluation, and edits that were put back: neither blocks."""
    files = [finding for finding in findings if finding.kind == LEFT_OUT]
    fix = "Put what the product needs where git does not ignore it, outside of the folders of tools."
    yield from _report_findings(files, "files that are not part of the change", fix, "the evaluation sees it")
    edits = [finding for finding in findings if finding.kind == FORBIDDEN]
    fix = "Change only the files that may be changed, and write notes into a temporary folder."
    yield from _report_findings(edits, "other files", fix, "nothing has to be put back")


def _report_findings(
    findings: Sequence[SealFinding], name: str, fix: str, effect: str, severity: Severity = Severity.INFO
) -> Iterator[Issue]:
    """Combine findings into one issue, if there are any."""
    if findings:
        texts = [f"{finding.path or finding.rule}: {finding.detail}" for finding in findings]
        problem = shorten("; ".join(texts[:_MAX_OTHERS]), 800) + _format_more(len(texts) - _MAX_OTHERS)
        yield Issue(rule_id=name, problem=problem, fix_instruction=fix, expected_effect=effect, severity=severity)


def _report_review(review: Review | None) -> Iterator[Issue]:
    if review and review.status is ReviewStatus.REJECT:
        yield Issue(
            rule_id="the review",
            problem=shorten(review.feedback, 800) or "a person does not accept it, and did not say why",
            fix_instruction="Do what the review asks for, and keep every rule passing.",
            expected_effect="the review approves",
        )


def _format_more(count: int) -> str:
    return f" (and {count} more)" if count > 0 else ""


def _find_unmet(evaluation: Evaluation, rules: dict[str, RunRule]) -> list[RuleResult]:
    """Return the blocking failures that agents may see, or the warnings if there are none; leave out held-out rules."""
    visible = [result for result in evaluation.rule_results if result.id in rules and not rules[result.id].held_out]
    blocking = [result for result in visible if result.verdict is Verdict.FAIL and rules[result.id].is_blocking]
    return blocking or [result for result in visible if result.verdict is Verdict.WARN]


def _rank_importance(rule: RunRule) -> tuple[bool, Fraction]:
    """Return a sort key: must-not rules first, then by severity times weight."""
    weight = rule.severity.weight if rule.guard else rule.weight
    return not rule.must_not, -_RANK[rule.severity] * weight


def group_by_cause(results: Sequence[RuleResult], limit: int) -> list[list[RuleResult]]:
    """Group results with equal messages; with more than `limit` groups, also results whose causes are probably equal.

    Grouping too much is better than omitting a cause.
    """
    groups = _group_results(results, _identify_cause)
    return groups if len(groups) <= limit else _group_results(results, _guess_cause)


def _group_results(
    results: Iterable[RuleResult], identify_cause: Callable[[RuleResult], object]
) -> list[list[RuleResult]]:
    groups: dict[object, list[RuleResult]] = {}
    for result in results:
        groups.setdefault(identify_cause(result), []).append(result)
    return list(groups.values())


def _identify_cause(result: RuleResult) -> object:
    """Return a key that results with equal messages share; assertions share it only at the same location."""
    if not result.findings:
        return result.signature if result.details else result.id
    message = compute_fingerprint("; ".join(f"{finding.expected} {finding.found}" for finding in result.findings))
    return (message, result.findings[0].where) if _is_assertion(result) else message


def _guess_cause(result: RuleResult) -> object:
    """Return a key that assertions after the same calls share; otherwise, the key of `_identify_cause`."""
    return (find_calls(result.findings[0].detail) if _is_assertion(result) else None) or _identify_cause(result)


def _is_assertion(result: RuleResult) -> bool:
    return bool(result.findings) and result.findings[0].found.startswith(("assert", "AssertionError"))


def _build_issue(group: list[RuleResult], rule: RunRule, evaluation: Evaluation, attempts: Sequence[Attempt]) -> Issue:
    first, *others = group
    finding = first.findings[0] if first.findings else None
    times = _count_repeats(first, attempts)
    novelty = Novelty.REPEATED if times > 1 else Novelty.NEW
    return Issue(
        rule_id=first.id,
        problem=shorten(str(finding or first.details), 800) + _format_more(len(first.findings) - 1 + first.more),
        fix_instruction=shorten(rule.fix or _describe_aim(rule), 400),
        expected_effect="it passes" + (f", and {len(others)} more with it" if others else ""),
        severity=rule.severity,
        where=finding.where if finding else "",
        expected=finding.expected if finding else "",
        found=finding.found if finding else "",
        lines=_choose_lines(first),
        also=tuple(result.id for result in others[:_MAX_OTHERS]),
        others=len(others),
        novelty=Novelty.REGRESSION if first.id in evaluation.regressions else novelty,
        times=times,
    )


def _describe_aim(rule: RunRule) -> str:
    if rule.guard:
        return "Make it pass again: it passed before the first edit, and must keep passing"
    if rule.description == rule.id and not rule.must_not:  # a test without a mark has only its name
        return "Make it pass"
    return f"{'This must not be so' if rule.must_not else 'Make this true'}: {rule.description}"


def _choose_lines(result: RuleResult) -> str:
    """Return the lines that explain the first finding, or else the other findings."""
    detail = trim_excerpt(result.findings[0].detail, result.findings[0].found) if result.findings else ""
    return detail or "\n".join(str(finding) for finding in result.findings[1:])


def _count_repeats(result: RuleResult, attempts: Sequence[Attempt]) -> int:
    """Count the iterations in a row in which the rule failed with the same message."""
    failure = attempts[-1].failing.get(result.id) if attempts else None
    return attempts[-1].iteration - failure.since + 1 if failure else 1


def render_critique(critique: Critique) -> str:
    """Render a critique for a prompt or a person within its token budget."""
    suspects = _render_suspects(critique)
    room = critique.tokens - _FRAME_TOKENS - estimate_tokens(suspects)
    limit = max(1, room // max(1, len(critique.issues)))
    blocks = [_render_issue(number, issue, limit) for number, issue in enumerate(critique.issues, 1)]
    if suspects:
        blocks.append(suspects)
    if critique.left_out:
        blocks.append(f"{critique.left_out} more rules fail; fix these first.")
    return fit_tokens("\n\n".join(blocks), critique.tokens)


def _render_suspects(critique: Critique) -> str:
    if not critique.suspects:
        return ""
    head = "Suspicious lines, because failing tests run them and passing ones rarely do:"
    return "\n".join([head, *(f"   {fit_tokens(line, _MAX_LINE_TOKENS)}" for line in critique.suspects)])


def _render_issue(number: int, issue: Issue, limit: int) -> str:
    name = fit_tokens(shorten(issue.rule_id), limit // 8)
    head = [
        f"{number}. {name} ({issue.severity.value}, {_format_novelty(issue)})",
        f"   {fit_tokens(shorten(issue.problem, 2_000), limit * 3 // 8)}",
    ]
    if issue.others:
        names = fit_tokens(", ".join(shorten(name, 60) for name in issue.also), limit // 6)
        more = f" and {issue.others - len(issue.also)} more" if issue.others > len(issue.also) else ""
        head.append(f"   the same cause fails {names}{more}")
    fix = f"   fix: {fit_tokens(shorten(issue.fix_instruction, 2_000), limit // 6)}"
    return "\n".join([*head, *_quote_end(issue.lines, limit - estimate_tokens("\n".join([*head, fix]))), fix])


def _quote_end(text: str, room: int) -> list[str]:
    """Quote as many of the last lines as fit: the end explains a failure best."""
    quoted: list[str] = []
    for line in reversed(text.splitlines()):
        quoted.append(f"   | {fit_tokens(line, _MAX_LINE_TOKENS)}")
        room -= estimate_tokens(quoted[-1]) + 1
        if room < 0:
            return quoted[-2::-1]
    return quoted[::-1]


def _format_novelty(issue: Issue) -> str:
    return f"{issue.novelty.value} {issue.times} times" if issue.novelty is Novelty.REPEATED else issue.novelty.value
