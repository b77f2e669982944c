"""The real Codex, called by its preset, with a scripted model on loopback."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pytest_loop.agents.answers import JudgeAnswer, PrepareAnswer, validate_answer
from pytest_loop.agents.client_agent import ClientAgent
from pytest_loop.agents.presets import load_presets
from pytest_loop.agents.protocol import AgentError, AgentRequest, AgentUnavailableError, RateLimitedError, Watch
from pytest_loop.core.model.run_state import Usage
from tests.agents.codex_home import find_codex, make_codex_home
from tests.agents.model_server import ModelServer, Turn

Codex = Callable[..., ClientAgent]


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture
def codex(server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Codex]:
    """Return a factory of Codex agents with a separate home and a scripted model."""
    make_codex_home(tmp_path, server.url, monkeypatch)
    preset = load_presets()["codex"].model_copy(update={"program": str(find_codex())})
    agents: list[ClientAgent] = []

    def create(*script: Turn, waits: tuple[float, ...] = (0.05,)) -> ClientAgent:
        server.script = list(script)
        agents.append(ClientAgent(preset, name="codex", retry_delays=waits))
        return agents[-1]

    yield create
    for agent in agents:
        agent.close()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "calc.py").write_text("def add(a, b):\n    return a - b\n")
    return folder


def make_shell_turn(command: str) -> Turn:
    return Turn(tools=(("exec_command", {"cmd": command}),))


def test_codex_leaves_the_configuration_of_the_user_as_it_is(codex: Codex, project: Path, tmp_path: Path) -> None:
    before = (tmp_path / "home" / "config.toml").read_text()
    codex(Turn("Done.")).answer(AgentRequest("PRODUCE", "mend it", project), Watch())
    assert (tmp_path / "home" / "config.toml").read_text() == before


def test_codex_edits_a_file_of_the_workspace(codex: Codex, server: ModelServer, project: Path) -> None:
    agent = codex(make_shell_turn("sed -i 's/a - b/a + b/' calc.py"), Turn("Mended."))
    reply = agent.answer(AgentRequest("PRODUCE", "Grüße: mend it", project), Watch())
    assert (project / "calc.py").read_text() == "def add(a, b):\n    return a + b\n"
    assert reply.text == "Mended."
    assert reply.usage == Usage(tokens=220, cost_usd=None)
    assert reply.exit_signal is None
    assert "Grüße: mend it" in json.dumps(server.requests[0].body["input"], ensure_ascii=False)


def test_refine_continues_the_conversation_and_counts_new_tokens(
    codex: Codex, server: ModelServer, project: Path
) -> None:
    agent = codex(
        make_shell_turn("sed -i 's/a - b/a * b/' calc.py"),
        Turn("First."),
        make_shell_turn("sed -i 's/a [*] b/a + b/' calc.py"),
        Turn("Second."),
    )
    first = agent.answer(AgentRequest("PRODUCE", "mend it", project), Watch())
    assert "a * b" in (project / "calc.py").read_text()
    second = agent.answer(AgentRequest("REFINE", "that was wrong", project, iteration=2), Watch())
    assert "a + b" in (project / "calc.py").read_text()
    assert [first.text, second.text] == ["First.", "Second."]
    assert [first.usage.tokens, second.usage.tokens] == [220, 220]
    text = json.dumps(server.requests[-1].body["input"])
    assert "mend it" in text
    assert "that was wrong" in text


def test_codex_writes_a_document_outside_the_workspace(codex: Codex, project: Path, tmp_path: Path) -> None:
    document = tmp_path / "scratch" / "doc.md"
    document.parent.mkdir()
    agent = codex(make_shell_turn(f"echo '# Title' > {document}"), Turn("Written."))
    agent.answer(AgentRequest("PRODUCE", "write it", project, document), Watch())
    assert document.read_text() == "# Title\n"


def test_a_judge_cannot_edit_and_answers_with_the_schema(codex: Codex, server: ModelServer, project: Path) -> None:
    agent = codex(make_shell_turn("rm calc.py"), Turn('{"passed": true, "reason": "yes", "evidence": "all"}'))
    schema = JudgeAnswer.model_json_schema()
    reply = agent.answer(AgentRequest("JUDGE", "is it good?", project, schema=schema), Watch())
    assert (project / "calc.py").exists()
    assert validate_answer(reply, JudgeAnswer).passed
    assert reply.data == {"passed": True, "reason": "yes", "evidence": "all"}
    form = server.requests[0].body["text"]["format"]
    assert form["strict"]
    assert form["schema"]["required"] == ["passed", "reason", "evidence"]


def test_an_open_schema_is_only_in_the_prompt(codex: Codex, server: ModelServer, project: Path) -> None:
    agent = codex(Turn('{"checks": []}'))
    request = AgentRequest("PREPARE", "make checks", project, schema=PrepareAnswer.model_json_schema())
    assert validate_answer(agent.answer(request, Watch()), PrepareAnswer).checks == []
    assert "format" not in server.requests[0].body.get("text", {})


def test_a_refused_login_is_not_retried(codex: Codex, server: ModelServer, project: Path) -> None:
    with pytest.raises(
        AgentUnavailableError, match=r"codex was refused by its model's server \(status 401\): unexpected"
    ):
        codex(Turn(status=401)).answer(AgentRequest("PRODUCE", "mend it", project), Watch())
    assert len(server.requests) == 1


def test_a_rate_limited_request_is_retried(codex: Codex, server: ModelServer, project: Path) -> None:
    waits: list[str] = []
    agent = codex(Turn(status=429), Turn("Here I am."))
    reply = agent.answer(AgentRequest("PRODUCE", "mend it", project), Watch(on_wait=waits.append))
    assert reply.text == "Here I am."
    assert len(server.requests) == 2
    sentence = "codex has to wait (status 429): exceeded retry limit, last status: 429 Too Many Requests; trying again in 0.05 s"
    assert waits == [sentence]


def test_retries_of_a_rate_limit_are_limited(codex: Codex, project: Path) -> None:
    with pytest.raises(RateLimitedError) as error:
        codex(Turn(status=429)).answer(AgentRequest("PRODUCE", "mend it", project), Watch())
    assert error.value.seconds is None


def test_a_server_error_is_an_agent_error(codex: Codex, project: Path) -> None:
    with pytest.raises(AgentError, match="codex ended with exit code 1: ") as error:
        codex(Turn(status=500)).answer(AgentRequest("PRODUCE", "mend it", project), Watch())
    assert type(error.value) is AgentError


def test_a_hanging_model_ends_at_the_deadline(codex: Codex, project: Path) -> None:
    with pytest.raises(AgentError, match=r"codex did not end within 1\.5 s"):
        codex(Turn(hangs=True)).answer(AgentRequest("PRODUCE", "mend it", project), Watch(timeout=1.5))


def test_a_failed_conversation_is_not_continued(codex: Codex, server: ModelServer, project: Path) -> None:
    agent = codex(Turn("First."), Turn(status=500), Turn("Anew."))
    agent.answer(AgentRequest("PRODUCE", "the old prompt", project), Watch())
    with pytest.raises(AgentError):
        agent.answer(AgentRequest("REFINE", "go on", project), Watch())
    reply = agent.answer(AgentRequest("REFINE", "go on", project), Watch())
    assert reply.text == "Anew."
    assert reply.usage.tokens == 110
    assert "the old prompt" not in json.dumps(server.requests[-1].body["input"])


def test_a_run_passes_at_the_second_attempt(
    codex: Codex, server: ModelServer, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    codex(Turn("A guide without its title.\n"), Turn("# Backups\n\nA guide.\n"))
    monkeypatch.setenv("PATH", f"{find_codex().parent}:{os.environ['PATH']}")
    (pytester.path / "guide.rules.yaml").write_text(
        "rules:\n  - {id: a.content.title, description: It has a title, check: {contains: '# Backups'}}\n"
    )
    words = ("--loop-task", "Write a guide", "--loop-agent", "codex", "--loop-rules", "guide.rules.yaml", "--loop-yes")
    result = pytester.runpytest_subprocess(*words, "--loop-json", "result.json")
    assert result.ret == 0, result.stdout.str() + result.stderr.str()
    result = json.loads((pytester.path / "result.json").read_text())
    assert result["iteration"] == 2
    assert result["usage"]["tokens"] == 220
    assert result["usage"]["cost_usd"] is None
    text = json.dumps(server.requests[-1].body["input"])
    assert "A guide without its title." in text
    assert "PRODUCE of iteration 1" in text
    assert "REFINE of iteration" in text
