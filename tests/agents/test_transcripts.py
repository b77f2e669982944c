"""Readers of client output: shortened recordings of real output, with a different number in each field."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_loop.agents.presets import OutputFields, load_presets
from pytest_loop.agents.transcripts import READERS, ClientFailure, ClientReport, Transcript

RECORDINGS = Path(__file__).parent / "recordings"


def read_recording(name: str, exit_code: int = 0, *, is_complete: bool = True) -> ClientReport:
    """Read a recording of a client, with its report file if there is one."""
    report = RECORDINGS / f"{name}.report"
    transcript = Transcript(
        (RECORDINGS / f"{name}.stdout").read_text(encoding="utf-8"),
        report.read_text(encoding="utf-8") if report.exists() else "",
        exit_code,
        is_complete,
    )
    preset = load_presets()[name.partition("-")[0]]
    return preset.output.read(transcript) if preset.output else READERS[preset.format](transcript)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("codex", ClientReport("Fixed.", session="01a1e338-89e7-79f3-af38-b005f460e41d", tokens=220)),
        (
            "claude",
            ClientReport(
                "Fixed.", None, "51924789-a94f-4fc3-9e4f-fcacad865b8b", tokens=1000, cost_usd=0.0125, priced_tokens=1000
            ),
        ),
        ("gemini", ClientReport("Fixed.", session="0b21eb2b-735c-4376-bcad-6eaab302496e", tokens=220)),
        ("opencode", ClientReport("Fixed.", session="ses_e1cc0d980ffe", tokens=1025, cost_usd=0.025)),
        ("goose", ClientReport("Fixed.", tokens=220)),
        ("copilot", ClientReport("Fixed.", session="7d2c5e1a-2f6f-4b39-9f0e-0d5c1c4b8a11", tokens=220)),
        ("qwen", ClientReport("Fixed.", session="b7372f43-355b-45c0-a237-8ac6c9dc8003", tokens=220)),
        ("pi", ClientReport("Fixed.", tokens=220, cost_usd=0)),
        (
            "vibe",
            ClientReport("Fixed.", session="b27d3907-895b-6ce7-279b-ad84bb09c6bb", tokens=220, cost_usd=0.00024),
        ),
        ("cline", ClientReport("Fixed.", tokens=220, cost_usd=0)),
        (
            "grok",
            ClientReport(
                "Fixed.", None, "01a1ee8f-aecb-7233-a999-0e90af34010e", tokens=220, cost_usd=0, priced_tokens=220
            ),
        ),
        ("aider", ClientReport("Aider v0.86.2\nApplied edit to calc.py\n", tokens=230, cost_usd=0.004)),
    ],
)
def test_a_successful_transcript_is_read(name: str, expected: ClientReport) -> None:
    assert replace(read_recording(name), counts=None) == expected


@pytest.mark.parametrize(
    ("name", "counts"), [("codex", (200, 150, 20)), ("gemini", (200, 0, 20)), ("qwen", (200, 0, 20)), ("claude", None)]
)
def test_tokens_by_kind_are_read_where_no_cost_is_reported(name: str, counts: tuple[int, int, int] | None) -> None:
    assert read_recording(name).counts == counts


@pytest.mark.parametrize(
    ("name", "exit_code", "failure"),
    [
        (
            "codex-401",
            1,
            ClientFailure("unexpected status 401 Unauthorized: no, url: http://127.0.0.1/v1/responses", 401),
        ),
        ("codex-429", 1, ClientFailure("exceeded retry limit, last status: 429 Too Many Requests", 429)),
        ("claude-401", 1, ClientFailure("Failed to authenticate. API Error: 401 no", 401)),
        ("claude-429", 1, ClientFailure("API Error: Request rejected (429) · no", 429)),
        ("claude-turns", 1, ClientFailure("error_max_turns")),
        ("gemini-401", 145, ClientFailure('[API Error: {"error":{"message":"no","code":401}}]', 401)),
        ("gemini-401", 173, ClientFailure('[API Error: {"error":{"message":"no","code":401}}]', 429)),
        ("gemini-401", -17, ClientFailure('[API Error: {"error":{"message":"no","code":401}}]', 401)),
        ("gemini-401", -9, ClientFailure('[API Error: {"error":{"message":"no","code":401}}]')),
        ("gemini-401", 1, ClientFailure('[API Error: {"error":{"message":"no","code":401}}]')),
        ("opencode-401", 1, ClientFailure("no", 401)),
        ("opencode-429", 1, ClientFailure("no", 429, 2.0)),
        ("copilot-401", 1, ClientFailure("no", 401)),
        ("qwen-401", 0, ClientFailure("[API Error: 401 no]")),
        ("qwen-401-new", 1, ClientFailure("401 no")),
    ],
)
def test_a_failure_is_read_from_the_structure(name: str, exit_code: int, failure: ClientFailure) -> None:
    assert read_recording(name, exit_code).failure == failure


def test_an_exit_code_of_0_with_no_tokens_is_a_failure() -> None:
    failure = read_recording("goose-401").failure
    assert failure
    assert failure.message.startswith("Ran into this error: Authentication error")
    assert failure.status is None
    assert read_recording("aider-401").failure == ClientFailure()


def test_a_status_in_prose_is_ignored() -> None:
    assert read_recording("codex-says-429").failure == ClientFailure("the model said: unexpected status 429")


def test_structured_data_is_read() -> None:
    assert read_recording("claude-schema").data == {"passed": True}
    assert read_recording("qwen-schema").data == {"passed": True}


def test_the_exit_code_of_gemini_shows_a_missing_login() -> None:
    assert READERS["gemini"](Transcript("", exit_code=41)).failure == ClientFailure("", 401)


def test_a_sum_with_lost_parts_is_unknown() -> None:
    report = read_recording("opencode", is_complete=False)
    assert (report.tokens, report.cost_usd) == (None, None)
    assert report.text == "Fixed."
    assert report.failure is None


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize(
    "output",
    [
        "",
        "not JSON at all\n[1, 2]\n17\nnull\n" + "[" * 100_000,
        '{"type": null}\n{"type": 3}\n{"event": []}\n{"messages": 3, "metadata": []}',
        '{"type": "result", "usage": 3, "result": 17, "stats": [], "modelUsage": [1], "error": "x", "is_error": 1}',
        '{"type": "error", "error": "x"}\n{"type": "session.error", "data": "x"}\n{"type": "turn.failed", "error": 1}',
        '{"type": "item.completed"}\n{"type": "message", "message": {"content": [1, null]}}\n{"type": "step_finish"}',
        '{"type": "turn.completed", "usage": {"input_tokens": true, "output_tokens": "many"}}',
    ],
    ids=["nothing", "noise", "odd types", "odd result", "odd errors", "odd items", "odd numbers"],
)
def test_nonsense_output_is_read_without_errors(name: str, output: str) -> None:
    report = READERS[name](Transcript(output, report=output))
    assert report.tokens is None
    assert report.cost_usd is None


def test_every_preset_has_a_reader() -> None:
    formats = [preset.format for preset in load_presets().values() if preset.output is None]
    assert {"acp", *formats} == set(READERS)


def test_refused_login_of_pi_has_its_status() -> None:
    assert read_recording("pi-401").failure == ClientFailure("401 no", 401)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("vibe-401", "Invalid API key (from env var SCRIPTED_KEY). Please check your API key and try again."),
        ("cline-401", "no"),
        ("grok-401", 'Internal error: "Unauthorized (401) from http://127.0.0.1/v1/chat/completions: error: no"'),
    ],
)
def test_message_of_a_failed_call_is_read(name: str, message: str) -> None:
    assert read_recording(name, 1).failure == ClientFailure(message)


def test_output_without_an_answer_is_a_failure_and_a_status_is_read() -> None:
    fields = OutputFields.model_validate(
        {"text": {"at": ["answer"]}, "error": {"at": ["error.message"]}, "status": {"at": ["error.status"]}}
    )
    assert fields.read(Transcript("")).failure == ClientFailure("")
    failed = Transcript('{"answer": "x", "error": {"message": "slow down", "status": 429}}')
    assert fields.read(failed).failure == ClientFailure("slow down", 429)
