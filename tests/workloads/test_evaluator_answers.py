from __future__ import annotations

import json

import pytest

from pytest_loop.core.workload.measurement import Remark
from pytest_loop.errors import CheckError
from pytest_loop.workloads.evaluator_answers import (
    MAX_LINES,
    EvaluatorAnswer,
    combine_answers,
    compare_output,
    parse_answer,
)

SHORT = Remark(message="too short", severity="Minor", location="summary")
CRITIQUES = [{"message": "too short", "severity": "Minor", "location": "summary"}]


@pytest.mark.parametrize(
    ("exit_code", "stdout", "expected"),
    [
        (0, "", EvaluatorAnswer(True)),
        (0, "all fine", EvaluatorAnswer(True)),
        (0, '{"passed": true}', EvaluatorAnswer(True)),
        (0, '{"passed": true, "score": 1, "critiques": []}', EvaluatorAnswer(True, 1.0)),
        (0, json.dumps({"passed": True, "critiques": CRITIQUES}), EvaluatorAnswer(True, None, (SHORT,))),
        (0, json.dumps({"passed": False, "score": 0.25, "critiques": CRITIQUES}), EvaluatorAnswer(False, 0.25, (SHORT,))),
        (0, 'loading ...\n{"passed": false, "critiques": ["bad"]}\n', EvaluatorAnswer(False, None, (Remark(message="bad"),))),
        (0, '{"passed": false}', EvaluatorAnswer(False, None, (Remark(message="`judge` says that it did not pass"),))),
        (0, '{"score": 0.5}', EvaluatorAnswer(True, 0.5)),
        (0, "[1, 2]", EvaluatorAnswer(True)),
        (1, "", EvaluatorAnswer(False, None, (Remark(message="`judge` ended with 1"),))),
        (1, "total is wrong", EvaluatorAnswer(False, None, (Remark(message="`judge` ended with 1\ntotal is wrong"),))),
        (1, '{"passed": true}', EvaluatorAnswer(False, None, (Remark(message="`judge` ended with 1"),))),
        (2, '{"critiques": {"message": 5}}', EvaluatorAnswer(False, None, (Remark(message="5"),))),
        (2, '{"critiques": [{"location": 7}, 8]}', EvaluatorAnswer(False, None, (Remark(message="{'location': 7}", location="7"), Remark(message="8")))),
    ],
)  # fmt: skip
def test_answer_is_read_from_json_or_from_the_exit_code(exit_code: int, stdout: str, expected: EvaluatorAnswer) -> None:
    assert parse_answer("judge", exit_code, stdout) == expected


@pytest.mark.parametrize(
    ("stdout", "message"),
    [
        ('{"passed": "yes"}', "expected true or false for `passed` from `judge`, found 'yes'"),
        ('{"passed": null}', "expected true or false for `passed` from `judge`, found null"),
        ('{"passed": true, "score": 7}', "expected a number from 0 to 1 for `score` from `judge`, found 7"),
        ('{"passed": true, "score": true}', "expected a number from 0 to 1 for `score` from `judge`, found true"),
        ('{"passed": true, "score": NaN}', "expected a number from 0 to 1 for `score` from `judge`, found nan"),
    ],
)
def test_answer_of_another_form_is_an_error_of_the_evaluator(stdout: str, message: str) -> None:
    with pytest.raises(CheckError) as caught:
        parse_answer("judge", 0, stdout)
    assert str(caught.value) == message


def test_end_of_the_output_becomes_a_remark() -> None:
    (remark,) = parse_answer("judge", 3, "", "\n".join(map(str, range(100)))).critiques
    assert remark.message.splitlines()[0] == "`judge` ended with 3"
    assert remark.message.splitlines()[-1] == "99"
    assert len(remark.message.splitlines()) == 13


def test_all_evaluators_must_pass_and_all_remarks_are_kept() -> None:
    first, second = (
        EvaluatorAnswer(True, 0.9, (Remark(message="a"),)),
        EvaluatorAnswer(False, 0.5, (Remark(message="b"),)),
    )
    assert combine_answers([first, second]) == EvaluatorAnswer(False, 0.5, (Remark(message="a"), Remark(message="b")))
    assert combine_answers([first, EvaluatorAnswer(True)]) == EvaluatorAnswer(True, 0.9, (Remark(message="a"),))


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (b"same", b"same"),
        (b"a\r\nb\r\n", b"a\nb\n"),
        (b'{"a": 1, "b": [2]}', b'{"b": [2],\n "a": 1.0}\n'),
    ],
)
def test_line_ends_and_key_order_are_ignored(output: bytes, expected: bytes) -> None:
    assert compare_output(output, expected, "a.json") == ""


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (b"3\n", b"3.00\n"),
        (b'{"a": 1}', b'{"a": true}'),
        (b"[0, 1]", b"[0, 1, 2]"),
        (b"[0, 1]", b'{"a": 0}'),
        (b'{"a": {"b": [1]}}', b'{"a": {"b": [2]}}'),
        (b'{"a": 1}', b'{"b": 1}'),
    ],
)
def test_other_values_are_a_difference(output: bytes, expected: bytes) -> None:
    assert compare_output(output, expected, "a.txt")


def test_difference_is_rendered_as_a_diff() -> None:
    lines = compare_output(b"one\ntwo\n", b"one\n2\n", "a.txt").splitlines()
    assert lines == ["--- expected/a.txt", "+++ output/a.txt", "@@ -1,2 +1,2 @@", " one", "-2", "+two"]
    assert compare_output(b"x", b"x\n", "a.txt") == "only in the end of the file"
    assert compare_output(b"null", b"nothing", "a.txt")


def test_long_difference_is_cut() -> None:
    lines = compare_output(b"a\n" * 100, b"b\n" * 100, "a.txt").splitlines()
    assert len(lines) == MAX_LINES + 1
    assert lines[-1] == "..."
