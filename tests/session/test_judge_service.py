"""The judge service of a session, and the judge behind it."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Client
from pathlib import Path

import pytest

from pytest_loop.agents.agent_judge import AgentJudge
from pytest_loop.agents.answers import JudgeAnswer
from pytest_loop.agents.protocol import (
    AgentError,
    AgentReply,
    AgentRequest,
    AgentUnavailableError,
    StopRequestedError,
    Watch,
)
from pytest_loop.core.model.run_state import Usage
from pytest_loop.errors import CheckError
from pytest_loop.rules.checks.check import JudgeReply
from pytest_loop.session import judge_service
from pytest_loop.session.judge_service import JudgeService, ask_judge

Judging = Callable[[str, Path | None], JudgeAnswer]
Serve = Callable[[Judging], JudgeService]


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Return a function that starts a service with short delays between tries."""
    monkeypatch.setattr(judge_service, "BACKOFF", 0.05)
    services: list[JudgeService] = []

    def make(judge_question: Judging) -> JudgeService:
        services.append(JudgeService(judge_question))
        return services[-1]

    yield make
    for service in services:
        service.close()


def test_a_question_from_another_process_is_answered(serve: Serve, tmp_path: Path) -> None:
    questions: list[tuple[str, Path | None]] = []

    def judge_question(question: str, artifact: Path | None) -> JudgeAnswer:
        questions.append((question, artifact))
        return JudgeAnswer(passed=True, reason="Grüße", evidence="line 1")

    service = serve(judge_question)
    script = "import sys\nfrom pathlib import Path\nfrom pytest_loop.session.judge_service import ask_judge\nprint(ask_judge(sys.argv[1], sys.argv[2], 'so?', Path('/x')).reason)"
    done = subprocess.run([sys.executable, "-c", script, service.address, service.key], capture_output=True, check=True)
    assert done.stdout.decode() == "Grüße\n"
    assert ask_judge(service.address, service.key, "and so?", None) == JudgeReply(
        passed=True, reason="Grüße", evidence="line 1"
    )
    assert questions == [("so?", Path("/x")), ("and so?", None)]


def test_a_judge_that_fails_is_tried_again_after_a_growing_delay(serve: Serve) -> None:
    times: list[float] = []

    def judge_question(_question: str, _artifact: Path | None) -> JudgeAnswer:
        times.append(time.monotonic())
        if len(times) < 3:
            raise AgentError("rate limit")
        return JudgeAnswer(passed=False)

    service = serve(judge_question)
    assert ask_judge(service.address, service.key, "so?", None).passed is False
    assert times[1] - times[0] >= 0.05
    assert times[2] - times[1] >= 0.1


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (AgentError("it is tired"), "the judge gave no answer to 'so?' in 3 tries: it is tired"),
        (AgentUnavailableError("it is gone"), "the judge gave no answer to 'so?' in 1 try: it is gone"),
    ],
)
def test_a_judge_without_an_answer_is_an_error(serve: Serve, error: AgentError, message: str) -> None:
    def judge_question(_question: str, _artifact: Path | None) -> JudgeAnswer:
        raise error

    service = serve(judge_question)
    with pytest.raises(CheckError) as raised:
        ask_judge(service.address, service.key, "so?", None)
    assert str(raised.value) == message


def test_an_unexpected_error_of_the_judge_is_an_error(serve: Serve) -> None:
    def judge_question(_question: str, _artifact: Path | None) -> JudgeAnswer:
        raise OSError("disk full")

    service = serve(judge_question)
    with pytest.raises(CheckError, match=r"the judge cannot be reached to answer 'so\?' \(EOFError\)"):
        ask_judge(service.address, service.key, "so?", None)


def test_a_closed_service_cannot_be_reached(serve: Serve) -> None:
    service = serve(lambda _question, _artifact: JudgeAnswer(passed=True))
    service.close()
    service.close()
    with pytest.raises(CheckError, match="the judge cannot be reached"):
        ask_judge(service.address, service.key, "so?", None)


@pytest.mark.parametrize(
    "data",
    [
        b'{"key": "wrong", "question": "so?", "artifact": ""}',
        b'{"key": 5}',
        b"{}",
        b"[]",
        b"\x80\x04pickle",
        b"x" * 2_000_000,
    ],
)
def test_a_client_without_the_key_gets_no_answer_and_blocks_no_other(serve: Serve, data: bytes) -> None:
    service = serve(lambda _question, _artifact: JudgeAnswer(passed=True))
    with Client(json.loads(service.address)) as silent, Client(json.loads(service.address)) as stranger:
        with contextlib.suppress(BrokenPipeError):  # the service may close the connection early
            stranger.send_bytes(data)
        with pytest.raises((EOFError, OSError)):
            stranger.recv_bytes()
        assert ask_judge(service.address, service.key, "so?", None).passed
        assert not silent.closed


def test_questions_are_answered_concurrently(serve: Serve) -> None:
    both = threading.Barrier(2, timeout=20)

    def judge_question(_question: str, _artifact: Path | None) -> JudgeAnswer:
        both.wait()
        return JudgeAnswer(passed=True)

    service = serve(judge_question)
    threads = [threading.Thread(target=ask_judge, args=(service.address, service.key, "so?", None)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert not both.broken


def test_a_temporary_folder_may_have_a_long_name(serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = """
import sys, tempfile, pathlib
tempfile.tempdir = sys.argv[1]
pathlib.Path(sys.argv[1]).mkdir()
from pytest_loop.session.judge_service import JudgeAnswer, JudgeService, ask_judge
service = JudgeService(lambda question, artifact: JudgeAnswer(passed=True, reason=question))
print(ask_judge(service.address, service.key, "so?", None).reason)
service.close()
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / ("x" * 120))], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("so?\n", "")


def test_a_service_without_free_descriptors_answers_later() -> None:
    script = """
import json, resource, sys, time
from pytest_loop.session.judge_service import JudgeAnswer, JudgeService
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
service = JudgeService(lambda question, artifact: JudgeAnswer(passed=True, reason="at last"))
files = []
for _ in range(3):
    try:
        while True: files.append(open("/dev/null"))
    except OSError: time.sleep(0.05)
print(json.dumps([service.address, service.key]), flush=True)
sys.stdin.readline()
files.clear()
sys.stdin.readline()
"""
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdin
        assert child.stdout
        address, key = json.loads(child.stdout.readline())
        answers: list[JudgeReply] = []
        thread = threading.Thread(target=lambda: answers.append(ask_judge(address, key, "so?", None)))
        thread.start()
        time.sleep(0.3)
        child.stdin.write("free them\n")
        child.stdin.flush()
        thread.join(20)
        child.stdin.write("end\n")
        child.stdin.flush()
    assert [answer.reason for answer in answers] == ["at last"]


class ScriptedAgent:
    """An agent that gives prepared replies and keeps the requests."""

    name = "spoken"

    def __init__(self, *answers: AgentReply) -> None:
        self.answers = list(answers)
        self.requests: list[AgentRequest] = []

    def answer(self, request: AgentRequest, watch: Watch) -> AgentReply:
        self.requests.append(request)
        if not watch.should_continue():
            raise StopRequestedError("stopped")
        if request.artifact:
            request.artifact.write_text("the judge was here")
        return self.answers.pop(0)

    def close(self) -> None:
        """Do nothing."""


YES = AgentReply(text='{"passed": true, "reason": "r"}', usage=Usage(tokens=5))


def test_a_judge_sees_a_copy_of_the_document(tmp_path: Path) -> None:
    path = tmp_path / "guide.md"
    path.write_text("# Guide")
    agent = ScriptedAgent(YES)
    judge = AgentJudge(agent, tmp_path, "nonce", iteration=3, phase="B")
    assert judge.answer("Is it good?", path) == JudgeAnswer(passed=True, reason="r")
    request = agent.requests[0]
    assert (request.step, request.iteration, request.phase, request.workspace) == ("JUDGE", 3, "B", tmp_path)
    assert "<<<data nonce\n# Guide\nnonce data>>>" in request.prompt
    assert request.artifact
    assert request.artifact.name == "guide.md"
    assert path.read_text() == "# Guide"
    assert request.schema
    assert judge.usage == Usage(tokens=5)
    assert judge.was_asked


def test_a_prompt_can_be_replaced(tmp_path: Path) -> None:
    agent = ScriptedAgent(YES)
    AgentJudge(agent, tmp_path, "nonce", make_prompt=lambda request: f"{request.step}?").answer("Is it good?", None)
    assert agent.requests[0].prompt == "JUDGE?"


def test_a_question_without_a_document_is_about_the_project(tmp_path: Path) -> None:
    agent = ScriptedAgent(YES, YES)
    judge = AgentJudge(agent, tmp_path, "nonce")
    judge.answer("Is it good?", None)
    judge.answer("Is it bad?", None)
    assert agent.requests[0].artifact is None
    assert "## Document" not in agent.requests[0].prompt
    assert agent.requests[0].key != agent.requests[1].key
    assert judge.usage == Usage(tokens=10)


def test_a_missing_document_fails_without_a_request(tmp_path: Path) -> None:
    judge = AgentJudge(ScriptedAgent(), tmp_path, "nonce")
    assert judge.answer("Is it good?", tmp_path / "none").passed is False
    (tmp_path / "large").write_bytes(b"x" * (8 * 1024**2 + 1))
    with pytest.raises(AgentError, match=r"expected at most 8 MB to judge, found more: .*/large"):
        judge.answer("Is it good?", tmp_path / "large")


def test_the_problem_of_an_answer_is_in_the_next_prompt_only(tmp_path: Path) -> None:
    agent = ScriptedAgent(AgentReply(text="yes"), YES, YES)
    judge = AgentJudge(agent, tmp_path, "nonce")
    with pytest.raises(AgentError, match="expected a JSON object, found 'yes'"):
        judge.answer("Is it good?", None)
    judge.answer("Is it good?", None)
    judge.answer("Is it good?", None)
    has_problem = ["expected a JSON object, found 'yes'" in request.prompt for request in agent.requests]
    assert has_problem == [False, True, False]


def test_a_judge_stops_when_its_service_is_closed(serve: Serve, tmp_path: Path) -> None:
    judge = AgentJudge(ScriptedAgent(YES), tmp_path, "nonce")
    service = JudgeService(judge.answer, judge.cancel)
    service.close()
    with pytest.raises(StopRequestedError):
        judge.answer("Is it good?", None)
