"""The options that say when a run stops or asks: limits, breakers and escalations."""

from __future__ import annotations

from pytest_loop.settings.rows import Group, Option, bundle, setting, value
from pytest_loop.settings.values import (
    one_of,
    parse_amount,
    parse_count,
    parse_limits,
    parse_no_or_yes,
    parse_share,
    parse_whole,
    parse_yes_or_no,
)


class LimitSettings(Group):
    """Limits"""

    max_iterations = value("stop after so many evaluations", "N", parse_whole, "4")
    limit: Option[dict[str, float | str | None]] = Option(
        "stop when this much is used, such as '5 USD, 20 min, 200k tokens'; add 'estimates' to count estimated costs",
        "LIMITS",
        parse_limits,
        default={},
        ini="",
    )
    budget: Option[float | None] = Option(
        "stop when agents have reported this cost",
        "USD",
        parse_amount,
        default=None,
        old_key="loop_budget",
        old_default="25",
        new_flag="--loop-limit '{value} USD'",
    )
    max_tokens: Option[int | None] = Option(
        "stop when agents have reported so many tokens",
        "N",
        parse_whole,
        default=None,
        old_key="loop_max_tokens",
        new_flag="--loop-limit '{value} tokens'",
    )
    max_seconds: Option[int | None] = Option(
        "stop when completed steps have taken so long",
        "N",
        parse_whole,
        default=None,
        old_key="loop_max_seconds",
        new_flag="--loop-limit '{value} s'",
    )
    estimated_cost = Option(
        "count estimated costs against the budget, or only show them",
        "",
        one_of("show", "count"),
        default="show",
        has_flag=False,
        old_key="loop_estimated_cost",
        old_default="show",
    )


class BreakerSettings(Group):
    """Breakers"""

    stop_when = bundle("when a run without progress stops, such as 'stuck 5, same_error 3'; 0 is never")
    stuck = setting("the same rules failed so many iterations in a row", parse_count, "5", part="stop_when.stuck")
    same_error = setting(
        "every failure said the same so many times in a row", parse_count, "3", part="stop_when.same_error"
    )
    thrashing = setting(
        "a file was rewritten so often in one iteration, or edits were undone",
        parse_count,
        "5",
        part="stop_when.thrashing",
    )
    stagnation = setting("so many iterations gained too little", parse_count, "2", part="stop_when.stagnation")
    min_gain = setting(
        "the least gain of score that counts for `stagnation`", parse_share, "0.02", part="stop_when.min_gain"
    )
    plateau = setting(
        "two changes in a row were a smaller share of the score, such as 0.02",
        parse_share,
        "0",
        part="stop_when.plateau",
    )
    diminishing = setting(
        "the same, asked after `plateau`, such as 0.05", parse_share, "0", part="stop_when.diminishing"
    )
    confidence = setting(
        "this share of the weight passes beyond an opinion, whatever the agent says about being done",
        parse_share,
        "0",
        part="stop_when.confidence",
    )


class ControlSettings(Group):
    """Retries and escalations"""

    auto_retry_on_test_fail = setting(
        "rules fail after an agent's work, so that you decide about every retry: yes or no",
        parse_yes_or_no,
        "yes",
        part="stop_when.rules_fail",
        parse_part=parse_no_or_yes,
    )
    auto_retry_on_review_reject = setting(
        "you reject the work, so that you decide about every retry: yes or no",
        parse_yes_or_no,
        "yes",
        part="stop_when.review_rejects",
        parse_part=parse_no_or_yes,
    )
    escalation_includes_diff = setting(
        "add the change to the question of a stopped run: yes or no", parse_yes_or_no, "yes", part="feedback.diff"
    )
    feedback_max_length = setting(
        "how many characters of advice a decision to retry holds", parse_whole, "500", part="feedback.advice"
    )
