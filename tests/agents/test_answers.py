"""Structured answers of agents."""

from __future__ import annotations

import pytest

from pytest_loop.agents.answers import (
    JudgeAnswer,
    PlanAnswer,
    PrepareAnswer,
    parse_blocked_claim,
    split_exit_signal,
    strip_fence,
    validate_answer,
)
from pytest_loop.agents.protocol import AgentError, AgentReply

YES = '{"passed": true, "reason": "it says so"}'


@pytest.mark.parametrize(
    "text",
    [
        YES,
        f"\n  {YES}\n",
        f"```json\n{YES}\n```",
        f"Here it is:\n\n```\n{YES}\n```\nI hope it helps {{a smile}}.",
        f"I think {{so}} that {YES} is right.",
        f"{YES}\n\nAnd once more: {YES}",
        f"Not JSON: ```json\n{{broken\n```\nbut {YES}",
    ],
)
def test_the_json_object_is_found_among_other_text(text: str) -> None:
    assert validate_answer(AgentReply(text=text), JudgeAnswer) == JudgeAnswer(passed=True, reason="it says so")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "expected a JSON object, found ''"),
        ("Yes, it passes.", "expected a JSON object, found 'Yes, it passes.'"),
        ("true", "expected a JSON object, found 'true'"),
        ('{"passed": true', "expected a JSON object, found"),
        ('{"passed": true}}} {"passed": false}', "expected one JSON object, found 2 that differ"),
        (f"```json\n{YES}\n```\n```json\n{{}}\n```", "expected one JSON object, found 2 that differ"),
        ('{"passed": true, "passed": false}', "expected a JSON object, found"),
        ('{"passed": NaN}', "expected a JSON object, found"),
        (
            '{"passed": "yes"}',
            "expected JSON with passed, reason, evidence, found passed: Input should be a valid boolean",
        ),
        ('{"passed": 1}', "found passed: Input should be a valid boolean"),
        ('{"passed": null}', "found passed: Input should be a valid boolean"),
        ('{"reason": "x"}', "found passed: Field required"),
        ('{"passed": true, "reason": ["x"]}', "found reason: Input should be a valid string"),
        ("{" * 100_000, "expected a JSON object, found"),
        ('{"a":' * 100_000, "expected a JSON object, found"),
    ],
    ids=lambda value: value[:40],
)
def test_malformed_truncated_or_contradictory_json_is_refused(text: str, problem: str) -> None:
    with pytest.raises(AgentError) as error:
        validate_answer(AgentReply(text=text), JudgeAnswer)
    assert problem in str(error.value)
    assert len(str(error.value)) < 300


def test_data_of_a_reply_is_taken_as_it_is() -> None:
    assert validate_answer(AgentReply(text="chatter", data={"passed": False}), JudgeAnswer).passed is False
    with pytest.raises(AgentError, match="found the whole: Input should be a valid dictionary"):
        validate_answer(AgentReply(data=[1]), JudgeAnswer)
    with pytest.raises(AgentError, match="expected a JSON object, found ''"):
        validate_answer(AgentReply(), JudgeAnswer)


@pytest.mark.parametrize("steps", [[], ["one", "two"], ["x"] * 6, ["one", "two", " "], ["one", "two", 3], "one"])
def test_a_plan_has_three_to_five_steps(steps: object) -> None:
    with pytest.raises(AgentError, match="expected JSON with plan, found plan"):
        validate_answer(AgentReply(data={"plan": steps}), PlanAnswer)


def test_unknown_keys_of_plans_and_checks_are_accepted() -> None:
    assert validate_answer(AgentReply(data={"plan": ["a", " b ", "c"], "notes": []}), PlanAnswer).plan == [
        "a",
        "b",
        "c",
    ]
    answer = validate_answer(
        AgentReply(data={"checks": [{"rule_id": "a", "type": "content", "search": "x"}]}), PrepareAnswer
    )
    assert answer.checks[0].model_extra == {"type": "content", "search": "x"}
    with pytest.raises(AgentError, match=r"found checks.0.rule_id: Field required"):
        validate_answer(AgentReply(data={"checks": [{}]}), PrepareAnswer)


@pytest.mark.parametrize(
    ("text", "document"),
    [
        ("# T\n\ntext\n", "# T\n\ntext\n"),
        ("```\n# T\n```", "# T\n"),
        ("\n```yaml\na: 1\n\n```\n\n", "a: 1\n\n"),
        ("~~~~ md\n```\nx\n```\n~~~~", "```\nx\n```\n"),
        ("```markdown\n# T\n```python\nx\n```\nend\n```", "# T\n```python\nx\n```\nend\n"),
        ("```python\nx\n```\ntext\n```python\ny\n```\n", "```python\nx\n```\ntext\n```python\ny\n```\n"),
        ("```markdown\nx\n```\ntext\n```python\ny\n```", "```markdown\nx\n```\ntext\n```python\ny\n```"),
        ("```\nnever closed", "```\nnever closed"),
        ("```x\n``", "```x\n``"),
        ("```", "```"),
        ("", ""),
        ("``` a ` b\nx\n```", "``` a ` b\nx\n```"),
    ],
)
def test_a_fence_around_the_whole_document_is_removed(text: str, document: str) -> None:
    assert strip_fence(text) == document


def test_only_a_whole_answer_claims_that_a_rule_is_blocked() -> None:
    assert parse_blocked_claim("BLOCKED a.b.c: it contradicts a.b.d\n") == ("a.b.c", "it contradicts a.b.d")
    assert parse_blocked_claim("BLOCKED test_x.py::test_y[1]: wrong\nvalue") == ("test_x.py::test_y[1]", "wrong\nvalue")
    assert parse_blocked_claim("# Doc\nBLOCKED a.b: no") is None
    assert parse_blocked_claim("BLOCKED a.b:") is None
    assert parse_blocked_claim("BLOCKED a.b: " + "x" * 4000) is None


BLOCK = """---LOOP_STATUS---
EXIT_SIGNAL: false
CRITERIA: {"tests pass": false, "lint clean": true}
STUCK_COUNT: 0
NEXT: Fix failing tests
---END_STATUS---
"""
COMPLETE = """<loop-complete>
All success criteria satisfied:
- tests pass: yes
</loop-complete>

"""
BOX = """\u256d\u2500 SHIP \u2500\u256e
\u2502 Verified: execution output \u2502
\u2570\u2500\u2500\u256f
"""


@pytest.mark.parametrize(
    ("text", "signal"),
    [
        (BLOCK, False),
        (BLOCK.replace("false\n", "true\n", 1), True),
        (f"I fixed it.\n\n{BLOCK}\nThat is all.", False),
        ("EXIT_SIGNAL: true", True),
        ("done\nEXIT_SIGNAL:false\n", False),
        ("exit_signal: True", True),
        ("**EXIT_SIGNAL:** false", False),
        ("`EXIT_SIGNAL: true`", True),
        (COMPLETE, True),
        ("<loop-complete>", True),
        (f"{COMPLETE}{BLOCK}", False),
        ("EXIT_SIGNAL: false\n...\nEXIT_SIGNAL: true", True),
        ("I have not set EXIT_SIGNAL: true yet", None),
        ("EXIT_SIGNAL: maybe", None),
        ("the tag <loop-complete> is missing", None),
        ("I fixed it.", None),
        ("", None),
    ],
)
def test_exit_signal_is_read_from_the_words_of_an_agent(text: str, signal: bool | None) -> None:
    assert split_exit_signal(text, is_document=False)[1] is signal


@pytest.mark.parametrize(
    ("answer", "document", "signal"),
    [
        (f"# Guide\n\n{BLOCK}", "# Guide\n\n", False),
        (f"# Guide\n{BLOCK}\n{COMPLETE}", "# Guide\n", False),
        (f"# Guide\n{COMPLETE}", "# Guide\n", True),
        (f"# Guide\n{COMPLETE.rstrip()}\n{BOX}", "# Guide\n", True),
        ("# Guide\nEXIT_SIGNAL: true\n", "# Guide\n", True),
        (f"# How loops end\n\n{BLOCK}\nThis is the block.\n", f"# How loops end\n\n{BLOCK}\nThis is the block.\n", None),
        (f"# How loops end\n\n{BLOCK}\nThis is the block.\nEXIT_SIGNAL: true", f"# How loops end\n\n{BLOCK}\nThis is the block.\n", True),
        ("# Guide\n", "# Guide\n", None),
    ],
)  # fmt: skip
def test_only_words_after_the_end_of_a_document_are_a_signal(answer: str, document: str, signal: bool | None) -> None:
    assert split_exit_signal(answer, is_document=True) == (document, signal)


def test_claim_is_found_beside_a_status_block() -> None:
    text, _ = split_exit_signal(f"BLOCKED a.b.c: it contradicts a.b.d\n\n{BLOCK}", is_document=False)
    assert parse_blocked_claim(text) == ("a.b.c", "it contradicts a.b.d")


def test_long_answer_is_searched_quickly() -> None:
    text = "---LOOP_STATUS---\n<loop-complete>\n" * 200_000
    assert split_exit_signal(f"{text}EXIT_SIGNAL: false", is_document=False)[1] is False
