"""Parse the answers of evaluators, and compare an output with the expected one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from difflib import unified_diff
from itertools import islice
from typing import Any, NamedTuple

from pytest_loop.core.workload.measurement import Remark
from pytest_loop.errors import CheckError
from pytest_loop.rules.checks.check import format_value
from pytest_loop.rules.checks.command_checks import get_last_lines

MAX_LINES = 40


class EvaluatorAnswer(NamedTuple):
    """The answer of one evaluator, or of several combined."""

    passed: bool
    score: float | None = None
    critiques: tuple[Remark, ...] = ()


def parse_answer(command: str, exit_code: int, stdout: str, stderr: str = "") -> EvaluatorAnswer:
    """Parse the answer of an evaluator from its exit code and the JSON on its standard output, if there is any.

    The case passes with exit code 0, unless the JSON says `passed: false`. Raise `CheckError` for a `passed` or `score`
    of another type: this is an error of the evaluator, not a failure of the case.
    """
    data = _parse_json(stdout)
    verdict = _read_verdict(command, data or {})
    score = _read_score(command, data or {})
    critiques = _read_remarks(data or {})
    passed = exit_code == 0 and verdict is not False
    if not passed and not critiques:
        output = stderr if data is not None else f"{stdout}\n{stderr}"
        reason = "says that it did not pass" if verdict is False else f"ended with {exit_code}"
        critiques = (Remark(message=f"`{command}` {reason}\n{get_last_lines(output)}".strip()),)
    return EvaluatorAnswer(passed, score, critiques)


def _parse_json(text: str) -> dict[str, Any] | None:
    """Return the JSON object in the whole text, or in its last line below a log; return None without one."""
    for part in (text, *text.strip().splitlines()[-1:]):
        data = _try_json(part)
        if isinstance(data, dict):
            return data
    return None


def _try_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _read_verdict(command: str, data: dict[str, Any]) -> bool | None:
    verdict = data.get("passed")
    if "passed" in data and not isinstance(verdict, bool):
        raise CheckError(f"expected true or false for `passed` from `{command}`, found {format_value(verdict)}")
    return verdict


def _read_score(command: str, data: dict[str, Any]) -> float | None:
    score = data.get("score")
    if score is None:
        return None
    if isinstance(score, bool) or not isinstance(score, (int, float)) or not 0 <= score <= 1:
        raise CheckError(f"expected a number from 0 to 1 for `score` from `{command}`, found {format_value(score)}")
    return float(score)


def _read_remarks(data: dict[str, Any]) -> tuple[Remark, ...]:
    """Return the critiques as remarks; accept a list or one critique, objects or texts."""
    critiques = data.get("critiques") or []
    return tuple(map(_build_remark, critiques if isinstance(critiques, list) else [critiques]))


def _build_remark(critique: Any) -> Remark:
    if not isinstance(critique, dict):
        return Remark(message=critique if isinstance(critique, str) else format_value(critique))
    names = ("message", "severity", "location")
    fields = {name: str(critique[name]) for name in names if critique.get(name) is not None}
    return Remark(**{"message": format_value(critique), **fields})


def combine_answers(answers: Sequence[EvaluatorAnswer]) -> EvaluatorAnswer:
    """Combine several answers: all must pass, the lowest score counts, and all critiques stay."""
    scores = [answer.score for answer in answers if answer.score is not None]
    critiques = tuple(remark for answer in answers for remark in answer.critiques)
    return EvaluatorAnswer(all(answer.passed for answer in answers), min(scores, default=None), critiques)


def compare_output(output: bytes, expected: bytes, name: str) -> str:
    """Return a few lines of diff, or an empty text if the output is as expected.

    Compare JSON objects and lists as data, regardless of the order of keys; compare a single JSON value as text.
    """
    if output == expected:
        return ""
    texts = [data.decode("utf-8", "replace").replace("\r\n", "\n") for data in (expected, output)]
    expected_data, data = (_try_json(text) for text in texts)
    if texts[0] == texts[1] or (isinstance(expected_data, (dict, list)) and _is_same(expected_data, data)):
        return ""
    before, after = (text.splitlines() for text in texts)
    lines = unified_diff(before, after, f"expected/{name}", f"output/{name}", "", "", 2, "")
    shown = list(islice(lines, MAX_LINES + 1))
    return "\n".join([*shown[:MAX_LINES], *["..."] * (len(shown) > MAX_LINES)]) or "only in the end of the file"


def _is_same(expected: Any, actual: Any) -> bool:
    """Return whether two JSON values are equal; unlike in Python, true does not equal 1."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        return expected.keys() == actual.keys() and all(_is_same(expected[key], actual[key]) for key in expected)
    if isinstance(expected, list) and isinstance(actual, list):
        return len(expected) == len(actual) and all(map(_is_same, expected, actual))
    return isinstance(expected, bool) is isinstance(actual, bool) and bool(expected == actual)
