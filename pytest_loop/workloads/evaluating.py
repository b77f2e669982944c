"""What an evaluator's answer means for a case, and how an output differs from what was expected."""

from __future__ import annotations

import json
from collections.abc import Sequence
from difflib import unified_diff
from itertools import islice
from typing import Any, NamedTuple

from pytest_loop.core.workload.measurement import Remark
from pytest_loop.errors import CheckError
from pytest_loop.rules.checks.check import format_value

MOST_LINES = 40
_TAIL = 12


class Heard(NamedTuple):
    """What one evaluator says, or several together."""

    passed: bool
    score: float | None = None
    critiques: tuple[Remark, ...] = ()


def heard(command: str, exit_code: int, stdout: str, stderr: str = "") -> Heard:
    """An evaluator's answer: JSON with `passed` on its standard output, else its exit code.

    One that says `passed: true` and ends with another exit code than 0 has not passed the case. JSON of another form
    than agreed is an error of the evaluator (`CheckError`), not a failure of the case.
    """
    data = _json(stdout)
    said = None if data is None else _passed(command, data)
    score, critiques = (None, ()) if data is None else (_score(command, data), _remarks(data))
    passed = exit_code == 0 and said is not False
    if not passed and not critiques:
        critiques = (_plain(command, exit_code, said, stdout if data is None else "", stderr),)
    return Heard(passed, score, critiques)


def _json(text: str) -> dict[str, Any] | None:
    """The object that was printed: all of the text, or its last line below what an evaluator logs."""
    for part in (text, *text.strip().splitlines()[-1:]):
        try:
            data = json.loads(part)
        except (ValueError, RecursionError):
            continue
        if isinstance(data, dict):
            return data
    return None


def _passed(command: str, data: dict[str, Any]) -> bool | None:
    said = data.get("passed")
    if "passed" in data and not isinstance(said, bool):
        raise CheckError(f"expected true or false for `passed` from `{command}`, found {format_value(said)}")
    return said


def _score(command: str, data: dict[str, Any]) -> float | None:
    score = data.get("score")
    if score is None:
        return None
    if isinstance(score, bool) or not isinstance(score, (int, float)) or not 0 <= score <= 1:
        raise CheckError(f"expected a number from 0 to 1 for `score` from `{command}`, found {format_value(score)}")
    return float(score)


def _remarks(data: dict[str, Any]) -> tuple[Remark, ...]:
    """What is said in whatever form: words are not refused."""
    found = data.get("critiques") or []
    return tuple(_remark(one) for one in (found if isinstance(found, list) else [found]))


def _remark(one: Any) -> Remark:
    if not isinstance(one, dict):
        return Remark(message=one if isinstance(one, str) else format_value(one))
    said = {name: str(one[name]) for name in ("message", "severity", "location") if one.get(name) is not None}
    return Remark(**{"message": format_value(one), **said})


def _plain(command: str, exit_code: int, said: bool | None, stdout: str, stderr: str) -> Remark:
    last = "\n".join("\n".join((stdout, stderr)).strip().splitlines()[-_TAIL:])
    message = f"`{command}` says that it did not pass" if said is False else f"`{command}` ended with {exit_code}"
    return Remark(message=f"{message}\n{last}".strip())


def together(answers: Sequence[Heard]) -> Heard:
    """Several evaluators: all must agree, and all that they say counts."""
    scores = [one.score for one in answers if one.score is not None]
    critiques = tuple(remark for one in answers for remark in one.critiques)
    return Heard(all(one.passed for one in answers), min(scores, default=None), critiques)


def difference(output: bytes, expected: bytes, name: str) -> str:
    """How an output differs from what was expected, as a few lines of a diff; empty where it does not.

    Where both are JSON their data is compared, whatever the order of keys.
    """
    if output == expected:
        return ""
    texts = [data.decode("utf-8", "replace").replace("\r\n", "\n") for data in (expected, output)]
    data = [_data(text) for text in texts]
    if texts[0] == texts[1] or (None not in data and data[0] == data[1]):
        return ""
    lines = unified_diff(
        texts[0].splitlines(), texts[1].splitlines(), f"expected/{name}", f"output/{name}", "", "", 2, ""
    )
    kept = list(islice(lines, MOST_LINES + 1))
    return "\n".join([*kept[:MOST_LINES], "..."] if len(kept) > MOST_LINES else kept) or "only in the end of the file"


def _data(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
