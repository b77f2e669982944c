"""What to mend next: at most five issues from an evaluation, the most important first, in few words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction

from pytest_loop.core.judging.tampering import REPORTED_KINDS
from pytest_loop.core.model.evaluation import Assessment, Critique, Issue, Novelty, RuleResult, SealFinding
from pytest_loop.core.model.rules import Severity, Verdict
from pytest_loop.core.model.run_criteria import RunCriteria, RunRule
from pytest_loop.core.model.run_state import Attempt, Review
from pytest_loop.core.model.vocabulary import Opinion
from pytest_loop.core.text.excerpt import find_calls, trim_excerpt
from pytest_loop.core.text.lengths import estimate_tokens, fit_tokens, shorten
from pytest_loop.core.text.signature import compute_fingerprint

MOST_ISSUES = 5
MOST_TOKENS = 2_000
# The words around the texts of one issue, and the line that closes the critique.
_FRAME = 30
_LONGEST_LINE = 60
_OTHERS_SHOWN = 3
_RANK = {Severity.FAIL: 3, Severity.WARN: 2, Severity.INFO: 1}


def build_critique(
    criteria: RunCriteria,
    now: Assessment,
    attempts: Sequence[Attempt] = (),
    tokens: int = MOST_TOKENS,
    review: Review | None = None,
) -> Critique:
    """The issues of an evaluation: rules with one cause are one issue; warnings only where nothing blocks."""
    rules = criteria.by_id
    wrong = _wrong(now, rules)
    wrong.sort(key=lambda one: _importance(rules[one.id]))
    groups = _groups(wrong, _cause)
    if len(groups) > MOST_ISSUES:  # rather a guess too many than a cause that is not named
        groups = _groups(wrong, _likely_cause)
    groups.sort(key=lambda group: (_importance(rules[group[0].id]), -len(group)))
    first = (*_tampering(now.findings), *_reviewed(review))
    chosen = groups[: MOST_ISSUES - len(first)]
    issues = (*first, *(_issue(group, rules[group[0].id], now, attempts) for group in chosen))
    return Critique(issues=issues, left_out=len(wrong) - sum(map(len, chosen)), tokens=tokens)


def _tampering(findings: Sequence[SealFinding]) -> Iterator[Issue]:
    """What was done to the judge comes first: no score counts until it is undone."""
    found = [f"{one.path or one.rule}: {one.detail}" for one in findings if one.kind not in REPORTED_KINDS]
    if found:
        yield Issue(
            rule_id="the judge itself",
            problem=shorten("; ".join(found[:_OTHERS_SHOWN]), 800) + _more(len(found) - _OTHERS_SHOWN),
            fix_instruction="Change the code that is judged. What judges it stays as it is, and what was changed there "
            "has been put back.",
            expected_effect="the next evaluation counts",
        )


def _reviewed(review: Review | None) -> Iterator[Issue]:
    """What a person wants who was asked whether it is done."""
    if review and review.status is Opinion.REJECT:
        yield Issue(
            rule_id="the review",
            problem=shorten(review.feedback, 800) or "a person does not accept it, and did not say why",
            fix_instruction="Do what the review asks for, and keep every rule passing.",
            expected_effect="the review approves",
        )


def _more(count: int) -> str:
    return f" (and {count} more)" if count > 0 else ""


def _wrong(now: Assessment, rules: dict[str, RunRule]) -> list[RuleResult]:
    known = [one for one in now.rule_results if one.id in rules and not rules[one.id].holdout]
    blocking = [one for one in known if one.verdict is Verdict.FAIL and rules[one.id].is_blocking]
    return blocking or [one for one in known if one.verdict is Verdict.WARN]


def _importance(rule: RunRule) -> tuple[bool, Fraction]:
    """The forbidden first, then severity times weight."""
    return not rule.must_not, -_RANK[rule.severity] * rule.weight


def _groups(results: Iterable[RuleResult], cause: Callable[[RuleResult], object]) -> list[list[RuleResult]]:
    groups: dict[object, list[RuleResult]] = {}
    for one in results:
        groups.setdefault(cause(one), []).append(one)
    return list(groups.values())


def _cause(one: RuleResult) -> object:
    """Failures that say the same have one cause; two assertions that say the same only if they are one assertion."""
    if not one.findings:
        return one.signature if one.details else one.id
    said = compute_fingerprint("; ".join(f"{finding.expected} {finding.found}" for finding in one.findings))
    return (said, one.findings[0].where) if _is_assertion(one) else said


def _likely_cause(one: RuleResult) -> object:
    """Assertions after the same calls have one cause more often than not, whatever the values were."""
    return (find_calls(one.findings[0].detail) if _is_assertion(one) else None) or _cause(one)


def _is_assertion(one: RuleResult) -> bool:
    return bool(one.findings) and one.findings[0].found.startswith(("assert", "AssertionError"))


def _issue(group: list[RuleResult], rule: RunRule, now: Assessment, attempts: Sequence[Attempt]) -> Issue:
    first, *others = group
    finding = first.findings[0] if first.findings else None
    more = len(first.findings) - 1 + first.more
    times = _times(first, attempts)
    return Issue(
        rule_id=first.id,
        problem=shorten(str(finding or first.details), 800) + _more(more),
        fix_instruction=shorten(rule.fix or _aim(rule), 400),
        expected_effect="it passes" + (f", and {len(others)} more with it" if others else ""),
        severity=rule.severity,
        where=finding.where if finding else "",
        expected=finding.expected if finding else "",
        found=finding.found if finding else "",
        lines=_lines(first),
        also=tuple(one.id for one in others[:_OTHERS_SHOWN]),
        others=len(others),
        novelty=Novelty.REGRESSION if first.id in now.regressions else Novelty.REPEATED if times > 1 else Novelty.NEW,
        times=times,
    )


def _aim(rule: RunRule) -> str:
    if rule.description == rule.id and not rule.must_not:  # a test without a mark: its name is all that it says
        return "Make it pass"
    return f"{'This must not be so' if rule.must_not else 'Make this true'}: {rule.description}"


def _lines(one: RuleResult) -> str:
    """The few lines that explain it; where there are none, what else was found."""
    detail = trim_excerpt(one.findings[0].detail, one.findings[0].found) if one.findings else ""
    return detail or "\n".join(str(finding) for finding in one.findings[1:])


def _times(one: RuleResult, attempts: Sequence[Attempt]) -> int:
    """In how many iterations in a row the rule has said the same."""
    known = attempts[-1].failing.get(one.id) if attempts else None
    return attempts[-1].iteration - known.since + 1 if known else 1


def render_critique(what: Critique) -> str:
    """The critique as a prompt or a person reads it, within its tokens whatever it holds."""
    suspects = _suspects(what)
    most = max(1, (what.tokens - _FRAME - estimate_tokens(suspects)) // max(1, len(what.issues)))
    blocks = [_block(number, issue, most) for number, issue in enumerate(what.issues, 1)]
    if suspects:
        blocks.append(suspects)
    if what.left_out:
        blocks.append(f"{what.left_out} more rules fail; mend these first.")
    return fit_tokens("\n\n".join(blocks), what.tokens)


def _suspects(what: Critique) -> str:
    if not what.suspects:
        return ""
    head = "Suspicious lines, because failing tests run them and passing ones seldom do:"
    return "\n".join([head, *(f"   {fit_tokens(line, _LONGEST_LINE)}" for line in what.suspects)])


def _block(number: int, issue: Issue, most: int) -> str:
    head = [
        f"{number}. {fit_tokens(shorten(issue.rule_id), most // 8)} ({issue.severity.value}, {_novelty(issue)})",
        f"   {fit_tokens(shorten(issue.problem, 2_000), most * 3 // 8)}",
    ]
    if issue.others:
        names = fit_tokens(", ".join(shorten(name, 60) for name in issue.also), most // 6)
        more = f" and {issue.others - len(issue.also)} more" if issue.others > len(issue.also) else ""
        head.append(f"   the same cause fails {names}{more}")
    fix = f"   fix: {fit_tokens(shorten(issue.fix_instruction, 2_000), most // 6)}"
    return "\n".join([*head, *_quoted(issue.lines, most - estimate_tokens("\n".join([*head, fix]))), fix])


def _quoted(text: str, room: int) -> list[str]:
    """As many of the last lines as there is room for: what explains a failure stands at the end."""
    kept: list[str] = []
    for line in reversed(text.splitlines()):
        kept.append(f"   | {fit_tokens(line, _LONGEST_LINE)}")
        room -= estimate_tokens(kept[-1]) + 1
        if room < 0:
            return kept[-2::-1]
    return kept[::-1]


def _novelty(issue: Issue) -> str:
    return f"{issue.novelty.value} {issue.times} times" if issue.novelty is Novelty.REPEATED else issue.novelty.value
