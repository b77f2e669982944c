"""What only an agent can judge: questions, panels, and sentences that become checks."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from tests.conftest import WORKERS_IF_THOROUGH

Write = Callable[..., Path]
Loop = Callable[..., pytest.RunResult]


@pytest.fixture
def loop(pytester: pytest.Pytester) -> Loop:
    """A run over `it.rules.yaml` with the agents of a module."""

    def run(module: str, *args: str, agent: str = "python:agents:work") -> pytest.RunResult:
        (pytester.path / "agents.py").write_text(dedent(module))
        (pytester.path / ".gitignore").write_text("steps\ntimes\n")
        words = ("--loop-task", "Write it", "--loop-agent", agent, "--loop-rules", "it.rules.yaml", "--loop-yes")
        return pytester.runpytest_subprocess(*words, "-v", *args)

    return run


def list_payloads(pytester: pytest.Pytester, kind: str) -> list[dict[str, Any]]:
    lines = (pytester.path / ".loop/write-it/history.jsonl").read_text().splitlines()
    return [event["payload"] for line in lines if (event := json.loads(line))["event"] == kind]


PANEL = """
    artifact: doc.md
    rules:
      - id: a.quality.clear
        description: It is clear
        repeat: 5
        need: {}
        check: {{judge: "Is it clear?"}}
"""
VOTES = """
    import os
    def work(request):
        assert request.artifact.read_text() == "Hello" and "Hello" in request.prompt and request.schema
        with open("votes", "a") as file: file.write("x")
        vote = os.path.getsize("votes")
        return {"passed": vote != 2, "reason": f"vote {vote}", "evidence": "Hello"}
"""


def test_a_panel_of_judges_decides_in_workers_too(
    pytester: pytest.Pytester, write_rule_file: Write, loop: Loop
) -> None:
    write_rule_file(PANEL.format("majority"))
    (pytester.path / "doc.md").write_text("Hello")
    result = loop(VOTES, "--loop-artifact", "doc.md", "-n2")
    assert result.ret == 0, result.stdout.str() + result.stderr.str()
    assert 4 <= (pytester.path / "votes").stat().st_size <= 5
    (evaluation,) = list_payloads(pytester, "evaluation_done")
    assert evaluation["passed"] is True


def test_a_negative_judgement_is_a_failure_with_its_reason(
    pytester: pytest.Pytester, write_rule_file: Write, loop: Loop
) -> None:
    write_rule_file(PANEL.format("all"))
    (pytester.path / "doc.md").write_text("Hello")
    result = loop(VOTES, "--loop-artifact", "doc.md", "--loop-max-iterations", "1")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*found no: vote 2*", "stopped: iteration_limit *"])


@pytest.mark.thorough
@pytest.mark.measured
def test_a_failing_judge_is_retried_reported_and_never_passes(
    pytester: pytest.Pytester, write_rule_file: Write, loop: Loop
) -> None:
    write_rule_file(
        """
        artifact: doc.md
        rules:
          - {id: a.quality.clear, description: It is clear, check: {judge: "Is it clear?"}}
          - {id: a.quality.kind, description: It is kind, check: {judge: "Is it kind?"}}
        """
    )
    (pytester.path / "doc.md").write_text("Hello")
    module = """
        asked = 0
        def work(request):
            global asked
            if "Is it clear?" in request.prompt: return "I would rather not say"
            asked += 1
            return {"passed": True} if asked == 2 else {"passed": "perhaps"}
    """
    result = loop(module, "--loop-artifact", "doc.md", "--loop-max-iterations", "1")
    assert result.ret == 1
    assert result.parseoutcomes() == {"passed": 1, "errors": 1}
    result.stdout.fnmatch_lines(
        [
            "ERROR it.rules.yaml::a.quality.clear - the judge gave no answer to 'Is it clear[?]' in 3 tries: *found 'I would rather not say'",
        ]
    )
    (evaluation,) = list_payloads(pytester, "evaluation_done")
    assert evaluation["passed"] is False


SENTENCES = """
    artifact: doc.md
    rules:
      - {id: a.content.sea, description: About the sea, check: It is about the sea.}
      - {id: a.quality.calm, description: Calm, check: It is calm.}
      - {id: b.quality.end, description: It ends, check: It ends well.}
"""
SERIAL = """
    STEPS = []
    CHECKS = {
        "a.content.sea": [{"contains": "sea"}],
        "a.quality.calm": [{"judge": "Is it calm?"}, {"absent": "storm"}],
        "b.quality.end": ["It ends in good time."],
    }
    def work(request):
        STEPS.append(request.step)
        with open("../steps", "a") as file: print(request.step, request.artifact and request.artifact.name, file=file)
        if request.step == "PREPARE":
            assert request.artifact is None and "The sea" not in request.prompt
            wanted = [name for name in CHECKS if f"- {name} (" in request.prompt]
            return {"checks": [{"rule_id": name, "check": check} for name in wanted for check in CHECKS[name]]}
        if request.step == "JUDGE":
            return {"passed": "Is it calm?" in request.prompt or "It ends in good time." in request.prompt}
        return "The sea"
"""


def test_sentences_become_checks_or_are_judged_and_replay_repeats_it(
    pytester: pytest.Pytester, write_rule_file: Write, loop: Loop
) -> None:
    write_rule_file(SENTENCES)
    result = loop(SERIAL, "--loop-record", "run.jsonl")
    assert result.ret == 0, result.stdout.str() + result.stderr.str()
    log = pytester.path.parent / "steps"  # outside of the project, which is judged without it
    steps = log.read_text().splitlines()
    assert sorted(steps[:2]) == ["PREPARE None", "PRODUCE doc.md"]
    assert steps[2:].count("PREPARE None") == 1
    assert set(steps[2:]) == {"PREPARE None", "JUDGE doc.md"}
    first, second = list_payloads(pytester, "checks_prepared")
    assert [check["rule_id"] for check in first["checks"]] == ["a.content.sea", "a.quality.calm"]
    assert [check["rule_id"] for check in second["checks"]] == ["b.quality.end"]

    (pytester.path / "doc.md").unlink()
    replayed = loop("work = None", "-n2", "--loop-alias", "again", agent="replay:run.jsonl")
    assert replayed.ret == 0, replayed.stdout.str() + replayed.stderr.str()
    assert log.read_text().splitlines() == steps


SIDE_BY_SIDE = """
    import json, os, sys, time
    started = time.time()
    step = os.environ["LOOP_STEP"]
    prompt = sys.stdin.read()
    time.sleep(1)
    with open("times", "a") as file: print(json.dumps([step, started, time.time(), os.environ["LOOP_ARTIFACT"]]), file=file)
    print("The sea" if step == "PRODUCE" else '{"checks": [{"rule_id": "a.content.sea", "check": {"contains": "sea"}}]}')
"""


@pytest.mark.thorough
def test_checks_are_prepared_in_parallel_with_the_document(
    pytester: pytest.Pytester, write_rule_file: Write, loop: Loop
) -> None:
    write_rule_file("artifact: doc.md\nrules: [{id: a.content.sea, description: Sea, check: It is about the sea.}]")
    (pytester.path / "writer.py").write_text(dedent(SIDE_BY_SIDE))
    result = loop("", agent=f"command:{shlex.quote(sys.executable)} writer.py")
    assert result.ret == 0, result.stdout.str() + result.stderr.str()
    rows = [json.loads(line) for line in (pytester.path / "times").read_text().splitlines()]
    times_by_step = {step: (started, ended, artifact) for step, started, ended, artifact in rows}
    assert times_by_step["PRODUCE"][0] < times_by_step["PREPARE"][1]
    assert times_by_step["PREPARE"][0] < times_by_step["PRODUCE"][1]
    assert times_by_step["PREPARE"][2] == ""
    assert times_by_step["PRODUCE"][2].endswith("doc.md")


JUDGES = """
    import os
    def work(request):
        with open("asked", "a") as file: print(os.getpid(), file=file)
        return {"passed": "kind" not in request.prompt, "reason": "I say so"}
"""


@WORKERS_IF_THOROUGH
def test_a_plain_session_asks_its_judge(
    pytester: pytest.Pytester, write_rule_file: Write, workers: tuple[str, ...]
) -> None:
    write_rule_file(
        """
        artifact: doc.md
        rules:
          - {id: a.quality.clear, description: Clear, check: {judge: "Is it clear?"}}
          - {id: a.quality.calm, description: Calm, check: It is calm.}
          - {id: a.quality.kind, description: Kind, severity: warn, check: {judge: "Is it kind?"}}
        """
    )
    (pytester.path / "doc.md").write_text("Hello")
    (pytester.path / "agents.py").write_text(dedent(JUDGES))
    result = pytester.runpytest_subprocess("--loop-judge", "python:agents:work", *workers)
    assert result.parseoutcomes() == {"passed": 2, "warned": 1}
    result.stdout.fnmatch_lines(["it  FAIL  0.8 (4 of 5) < 0.9 *", "*Is it kind?*found no: I say so*"])
    assert len(set((pytester.path / "asked").read_text().split())) == 1
    assert pytester.runpytest_subprocess(*workers).parseoutcomes() == {"assumed": 1, "errors": 1, "warned": 1}


LEAKING_JUDGE = """
    import os
    def work(request):
        with open("prompt", "w") as file: file.write(request.prompt)
        return {"passed": False, "reason": "the key is " + os.environ["SERVICE_TOKEN"]}
"""


def test_the_judge_of_a_plain_session_neither_receives_nor_reveals_secrets(
    pytester: pytest.Pytester, write_rule_file: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVICE_TOKEN", "s3cr3t-value")
    write_rule_file(
        "artifact: doc.md\nrules: [{id: a.quality.clear, description: Clear, check: {judge: Is it clear?}}]"
    )
    (pytester.path / "doc.md").write_text("Send s3cr3t-value along")
    (pytester.path / "agents.py").write_text(dedent(LEAKING_JUDGE))
    result = pytester.runpytest_subprocess("--loop-judge", "python:agents:work")
    result.stdout.fnmatch_lines(["*found no: the key is [[]SERVICE_TOKEN]*"])
    assert "s3cr3t-value" not in result.stdout.str() + result.stderr.str()
    assert "Send [SERVICE_TOKEN] along" in (pytester.path / "prompt").read_text()


def test_an_unknown_judge_is_a_usage_error(pytester: pytest.Pytester, write_rule_file: Write) -> None:
    write_rule_file(PANEL.format("all"))
    result = pytester.runpytest_subprocess("--loop-judge", "oracle")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --loop-judge: expected command:WORDS, * found 'oracle'"])
