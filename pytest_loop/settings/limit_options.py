"""The options that say when a run stops or asks: limits, breakers and escalations."""

from __future__ import annotations

from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from pytest_loop.core.model.run_setup import Limits


class LimitSettings(Group):
    """Limits"""

    max_iterations = value("stop after this many iterations", "N", parse_whole, "4")
    limit: Option[dict[str, float | str | None]] = Option(
        "stop when a limit is used up, such as '5 USD, 20 min, 200k tokens'; add 'estimates' to count estimated costs",
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
        "stop when agents have reported this many tokens",
        "N",
        parse_whole,
        default=None,
        old_key="loop_max_tokens",
        new_flag="--loop-limit '{value} tokens'",
    )
    max_seconds: Option[int | None] = Option(
        "stop when completed steps have taken this many seconds",
        "N",
        parse_whole,
        default=None,
        old_key="loop_max_seconds",
        new_flag="--loop-limit '{value} s'",
    )
    estimated_cost = Option(
        "count estimated costs against the limit, or only show them",
        "",
        one_of("show", "count"),
        default="show",
        has_flag=False,
        old_key="loop_estimated_cost",
        old_default="show",
    )

    def build_limits(self) -> Limits:
        """Return the limits of agents' costs and tokens for a run."""
        from pytest_loop.core.model.run_setup import Limits  # help must start without pydantic

        return Limits(usd=self.budget, tokens=self.max_tokens, counts_estimates=self.estimated_cost == "count")


class BreakerSettings(Group):
    """Breakers"""

    stop_when = bundle("when to stop a run without progress, such as 'stuck 5, same_error 3'; 0 means never")
    stuck = setting("the same rules failed this many iterations in a row", parse_count, "5", part="stop_when.stuck")
    same_error = setting(
        "every failure had the same message this many times in a row", parse_count, "3", part="stop_when.same_error"
    )
    thrashing = setting(
        "a file was rewritten this many times in one iteration, or edits were undone",
        parse_count,
        "5",
        part="stop_when.thrashing",
    )
    stagnation = setting(
        "this many iterations in a row gained less than `min_gain`", parse_count, "2", part="stop_when.stagnation"
    )
    min_gain = setting(
        "the smallest gain of score that counts as progress, for `stagnation`",
        parse_share,
        "0.02",
        part="stop_when.min_gain",
    )
    plateau = setting(
        "two changes in a row were below this share of the score, such as 0.02",
        parse_share,
        "0",
        part="stop_when.plateau",
    )
    diminishing = setting(
        "the same with a second share, tested after `plateau`, such as 0.05",
        parse_share,
        "0",
        part="stop_when.diminishing",
    )
    confidence = setting(
        "this share of the weight passes by evidence, whether or not the agent says that it is done",
        parse_share,
        "0",
        part="stop_when.confidence",
    )


class ControlSettings(Group):
    """Retries and escalations"""

    auto_retry_on_test_fail = setting(
        "rules fail after an agent's edit, so that you decide about every retry: yes or no",
        parse_yes_or_no,
        "yes",
        part="stop_when.rules_fail",
        parse_part=parse_no_or_yes,
    )
    auto_retry_on_review_reject = setting(
        "you reject an edit, so that you decide about every retry: yes or no",
        parse_yes_or_no,
        "yes",
        part="stop_when.review_rejects",
        parse_part=parse_no_or_yes,
    )
    escalation_includes_diff = setting(
        "show the change with the question of a stopped run: yes or no", parse_yes_or_no, "yes", part="feedback.diff"
    )
    feedback_max_length = setting(
        "maximum length of the advice in a decision to retry, in characters", parse_whole, "500", part="feedback.advice"
    )
