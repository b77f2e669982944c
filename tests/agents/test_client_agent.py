"""Client agents: arguments, retries, conversations and replies. The clients are short scripts."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from pytest_loop.agents.client_agent import ClientAgent
from pytest_loop.agents.presets import Preset
from pytest_loop.agents.protocol import (
    AgentError,
    AgentReply,
    AgentRequest,
    AgentUnavailableError,
    RateLimitedError,
    StopRequestedError,
    Watch,
)
from pytest_loop.core.model.run_state import Usage

Ask = Callable[..., AgentRequest]
Client = Callable[..., ClientAgent]
RECORDINGS = Path(__file__).parent / "recordings"
HEAD = """
    import json, os, sys
    def done(text="ok", tokens=110, thread="t1"):
        print(json.dumps({"type": "thread.started", "thread_id": thread}))
        print(json.dumps({"type": "item.completed", "item": {"type": "agent_message", "text": text}}))
        print(json.dumps({"type": "turn.completed", "usage": {"input_tokens": tokens, "output_tokens": 0}}))
"""
SHOW = "done(json.dumps(sys.argv[1:]))"


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    """Return a factory of clients that are short scripts, by default with the output format of Codex."""
    agents: list[ClientAgent] = []

    def create(script: str, get_words: str = "", waits: tuple[float, ...] = (0.05, 0.05), **fields: Any) -> ClientAgent:
        path = tmp_path / "client.py"
        path.write_text(dedent(HEAD) + dedent(script))
        preset = {"program": sys.executable, "tested_version": "1.0", "format": "codex", "tokens": "run"} | fields
        preset["start"] = [str(path), *fields.get("start", ())]
        if "resume" in fields:
            preset["resume"] = [str(path), *fields["resume"]]
        agents.append(ClientAgent(Preset.model_validate(preset), get_words, "the client", waits))
        return agents[-1]

    yield create
    for agent in agents:
        agent.close()


def replay(name: str, exit_code: int = 0) -> str:
    return f"sys.stdout.write(open({str(RECORDINGS / name)!r}, encoding='utf-8').read()); sys.exit({exit_code})"


def get_words(reply: AgentReply) -> list[str]:
    return json.loads(reply.text or "[]")  # type: ignore[no-any-return]


def test_only_steps_that_write_files_may_edit(client: Client, ask: Ask) -> None:
    agent = client(
        "done(json.dumps([*sys.argv[1:], os.environ['MODE'], os.environ['QUIET']]))",
        arguments=["-x"],
        edit={"arguments": ["--auto"], "environment": {"MODE": "all"}},
        read_only={"arguments": ["--plan"], "environment": {"MODE": "chat"}},
        environment={"QUIET": "1"},
    )
    for step in ("PRODUCE", "REFINE"):
        assert get_words(agent.answer(ask(step), Watch())) == ["-x", "--auto", "all", "1"]
    for step in ("PLAN", "JUDGE", "COMPOSE"):
        assert get_words(agent.answer(ask(step), Watch())) == ["-x", "--plan", "chat", "1"]


def test_a_preset_does_not_overwrite_variables(client: Client, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUIET", "mine")
    assert client("done(os.environ['QUIET'])", environment={"QUIET": "1"}).answer(ask(), Watch()).text == "mine"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("", []),
        ("gpt-5", ["-m", "gpt-5"]),
        ("gpt-5 --profile 'very quick'", ["-m", "gpt-5", "--profile", "very quick"]),
        ("--profile quick", ["--profile", "quick"]),
    ],
)
def test_a_model_and_further_arguments(client: Client, ask: Ask, arguments: str, expected: list[str]) -> None:
    assert get_words(client(SHOW, arguments, model=["-m", "{model}"]).answer(ask(), Watch())) == expected


def test_unclosed_quotes_in_arguments_are_refused(client: Client) -> None:
    with pytest.raises(AgentUnavailableError, match='expected a model and arguments, found "gpt \'x" '):
        client(SHOW, "gpt 'x")


def test_the_folder_of_the_document_is_passed_to_edits(client: Client, ask: Ask, tmp_path: Path) -> None:
    agent = client(SHOW, artifact=["--add-dir", "{folder}", "{artifact}"])
    assert get_words(agent.answer(ask(), Watch())) == ["--add-dir", f"{tmp_path}/scratch", f"{tmp_path}/scratch/doc.md"]
    assert get_words(agent.answer(ask("JUDGE"), Watch())) == []
    assert get_words(agent.answer(AgentRequest("PRODUCE", "", tmp_path), Watch())) == []


def test_no_client_creates_a_git_repository(client: Client, ask: Ask, tmp_path: Path) -> None:
    agent = client(SHOW, outside_git=["--no-git"])
    assert get_words(agent.answer(ask(), Watch())) == ["--no-git"]
    (tmp_path / ".git").mkdir()
    (tmp_path / "inner").mkdir()
    assert get_words(agent.answer(AgentRequest("PRODUCE", "", tmp_path / "inner"), Watch())) == []


def test_the_prompt_is_on_standard_input_or_in_a_file(client: Client, ask: Ask) -> None:
    prompt = "Grüße\n" * 100_000
    assert client("done(sys.stdin.read())").answer(ask(prompt=prompt), Watch()).text == prompt
    agent = client(
        "done(open(sys.argv[1]).read() + repr(sys.stdin.read()))", prompt="file", arguments=["{prompt_file}"]
    )
    assert agent.answer(ask(prompt="do it"), Watch()).text == "do it''"


def test_a_schema_is_passed_as_a_file_or_as_an_argument(client: Client, ask: Ask) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    agent = client("done(sys.argv[1])", form={"arguments": ["{schema}"]})
    assert agent.answer(ask("JUDGE", schema=schema), Watch()).data == schema
    agent = client("done(open(sys.argv[1]).read())", form={"arguments": ["{schema_file}"], "is_strict": True})
    assert agent.answer(ask("JUDGE", schema=schema), Watch()).data == {
        **schema,
        "required": ["a"],
        "additionalProperties": False,
    }


def test_json_without_a_schema_is_text(client: Client, ask: Ask) -> None:
    assert client("done('{}')").answer(ask(), Watch()) == AgentReply(text="{}", usage=Usage(tokens=110))


def test_refine_continues_the_conversation_of_produce(client: Client, ask: Ask) -> None:
    script = "done(json.dumps(sys.argv[1:]), thread='t' + sys.argv[-1])"
    agent = client(script, start=["new"], resume=["again", "{session}"])
    assert get_words(agent.answer(ask("REFINE"), Watch())) == ["new"]
    assert get_words(agent.answer(ask("REFINE"), Watch())) == ["again", "tnew"]
    assert get_words(agent.answer(ask("JUDGE"), Watch())) == ["new"]
    assert get_words(agent.answer(ask("REFINE"), Watch())) == ["again", "ttnew"]
    assert get_words(agent.answer(ask("PRODUCE"), Watch())) == ["new"]


def test_a_failed_judge_request_keeps_the_conversation(client: Client, ask: Ask) -> None:
    agent = client(
        "'--plan' in sys.argv or done(json.dumps(sys.argv[1:]))",
        resume=["{session}"],
        read_only={"arguments": ["--plan"]},
    )
    agent.answer(ask(), Watch())
    with pytest.raises(AgentError, match="the client gave no answer of its model"):
        agent.answer(ask("JUDGE"), Watch())
    assert get_words(agent.answer(ask("REFINE"), Watch())) == ["t1"]


def test_a_rate_limit_keeps_the_conversation_and_its_usage(client: Client, ask: Ask, tmp_path: Path) -> None:
    script = f"""
        open("tries", "a").write("x")
        if os.path.getsize("tries") == 2: {replay("codex-429.stdout", 1)}
        done(json.dumps(sys.argv[1:]), 100 * os.path.getsize("tries"))
    """
    agent = client(script, tokens="session", resume=["{session}"])
    assert agent.answer(ask(), Watch()).usage.tokens == 100
    reply = agent.answer(ask("REFINE"), Watch())
    assert get_words(reply) == ["t1"]
    assert reply.usage.tokens == 200


def test_output_shows_text_and_tools_but_no_json(client: Client, ask: Ask) -> None:
    output: list[bytes] = []
    agent = client(
        replay("claude.stdout").replace("sys.exit", "sys.stdout.write('the end'); sys.exit"), format="claude"
    )
    agent.answer(ask(), Watch(on_output=output.append))
    assert output == [b"Edit: calc.py\n", b"Fixed.\n", b"the end\n"]


def test_each_folder_has_its_own_conversation(client: Client, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    agent = client("done(json.dumps(sys.argv[1:]), thread=os.getcwd())", resume=["{session}"])
    agent.answer(AgentRequest("PRODUCE", "", tmp_path), Watch())
    assert get_words(agent.answer(AgentRequest("REFINE", "", tmp_path / "other"), Watch())) == []
    assert get_words(agent.answer(AgentRequest("REFINE", "", tmp_path), Watch())) == [str(tmp_path)]


def test_a_session_name_is_chosen_and_its_files_are_kept(client: Client, ask: Ask) -> None:
    script = "open(sys.argv[1], 'a').write('x'); done(json.dumps(sys.argv[1:]), thread='')"
    agent = client(script, start=["{state}/{session}.md"], resume=["{state}/{session}.md", "--restore"])
    first = get_words(agent.answer(ask(), Watch()))
    assert get_words(agent.answer(ask("REFINE"), Watch())) == [*first, "--restore"]
    assert get_words(agent.answer(ask(), Watch())) != first
    agent.close()
    assert not Path(first[0]).parent.exists()


@pytest.mark.parametrize(
    ("second", "cost"),
    [("claude-resumed-whole.stdout", 0.02), ("claude-resumed-run.stdout", 0.02)],
    ids=["whole", "run"],
)
def test_the_cost_of_a_call_is_what_it_added(client: Client, ask: Ask, second: str, cost: float) -> None:
    fields = {"format": "claude", "cost": "session", "resume": ["again"]}
    agent = client(f"if len(sys.argv) == 1: {replay('claude.stdout')}\n{replay(second)}", **fields)
    assert agent.answer(ask(), Watch()).usage == Usage(tokens=1000, cost_usd=0.0125)
    usage = agent.answer(ask("REFINE"), Watch()).usage
    assert usage.tokens == 110
    assert usage.cost_usd == pytest.approx(cost)


def test_only_new_tokens_of_a_session_count(client: Client, ask: Ask) -> None:
    agent = client("done(tokens=100 * len(sys.argv) ** 2)", tokens="session", resume=["again"])
    assert [agent.answer(ask(step), Watch()).usage.tokens for step in ("PRODUCE", "REFINE")] == [100, 300]


def test_a_cost_of_zero_is_unknown(client: Client, ask: Ask) -> None:
    step = {"type": "step_finish", "part": {"tokens": {"input": 5}, "cost": 0}}
    agent = client(f"print(json.dumps({step!r}))", format="opencode", cost="run")
    assert agent.answer(ask(), Watch()).usage == Usage(tokens=5, cost_usd=None)


def test_usage_that_a_client_does_not_report_is_unknown(client: Client, ask: Ask) -> None:
    assert client("done()", tokens=None).answer(ask(), Watch()).usage == Usage()


def test_a_call_without_new_tokens_failed(client: Client, ask: Ask) -> None:
    script = f"if len(sys.argv) == 2: {replay('goose.stdout')}\n{replay('goose-401-resumed.stdout')}"
    agent = client(script, format="goose", tokens="session", start=["{session}"], resume=["{session}", "--resume"])
    assert agent.answer(ask(), Watch()).usage == Usage(tokens=220)
    with pytest.raises(AgentError, match="the client gave no answer of its model: Ran into this error: Authentication"):
        agent.answer(ask("REFINE"), Watch())


def test_a_report_of_the_work_is_not_the_document(client: Client, ask: Ask) -> None:
    agent = client("done('Applied edit')", is_report=True)
    assert agent.answer(ask(), Watch()).text is None
    assert agent.answer(ask("JUDGE"), Watch()).text == "Applied edit"


@pytest.mark.parametrize(
    ("script", "watch", "message"),
    [
        ("print('hello')", Watch(), "the client gave no answer of its model"),
        ("print('oh\\nno', file=sys.stderr); sys.exit(3)", Watch(), "the client ended with exit code 3: no"),
        ("done(); sys.exit(3)", Watch(), "the client ended with exit code 3"),
        ("os.kill(os.getpid(), 9)", Watch(), "the client ended with signal 9"),
        ("import time; time.sleep(60)", Watch(silence=0.5), "the client said nothing for 0.5 s"),
        ("import time; time.sleep(60)", Watch(timeout=0.5), "the client did not end within 0.5 s"),
    ],
    ids=["no event", "exit code", "exit code after an answer", "signal", "silence", "deadline"],
)
def test_a_failed_call_names_the_reason(client: Client, ask: Ask, script: str, watch: Watch, message: str) -> None:
    with pytest.raises(AgentError) as error:
        client(script).answer(ask(), watch)
    assert type(error.value) is AgentError
    assert str(error.value) == message


def test_a_silent_client_has_only_its_deadline(client: Client, ask: Ask) -> None:
    agent = client("import time; time.sleep(0.6); done()", is_silent=True)
    assert agent.answer(ask(), Watch(silence=0.2)).text == "ok"


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("print('error: no provider'); sys.exit(1)", "the client ended with exit code 1: error: no provider"),
        (
            "print('Error: low'); print('bye', file=sys.stderr); sys.exit(1)",
            "the client ended with exit code 1: Error: low",
        ),
    ],
)
def test_the_reason_of_a_failure_may_stand_on_standard_output(
    client: Client, ask: Ask, script: str, message: str
) -> None:
    with pytest.raises(AgentError) as error:
        client(script).answer(ask(), Watch())
    assert str(error.value) == message


def test_a_failed_call_reports_its_usage(client: Client, ask: Ask) -> None:
    with pytest.raises(AgentError) as error:
        client(replay("claude-turns.stdout", 1), format="claude", cost="run").answer(ask(), Watch())
    assert error.value.usage.tokens
    assert error.value.usage.cost_usd


def test_every_attempt_of_a_rate_limited_client_is_paid_for(client: Client, ask: Ask) -> None:
    with pytest.raises(RateLimitedError) as error:
        client(
            "done(tokens=7); print(json.dumps({'type': 'turn.failed', 'error': {'message': 'unexpected status 429'}}))"
        ).answer(ask(), Watch())
    assert error.value.usage == Usage(tokens=21)


def test_an_ended_client_is_paid_for(client: Client, ask: Ask) -> None:
    with pytest.raises(AgentError, match="did not end within") as error:
        client("import time; done(tokens=7); sys.stdout.flush(); time.sleep(60)").answer(ask(), Watch(timeout=1))
    assert error.value.usage == Usage(tokens=7)


@pytest.mark.parametrize("status", [401, 403])
def test_a_client_that_retries_a_refused_login_is_ended(client: Client, ask: Ask, status: int) -> None:
    script = f"""
    import time
    for attempt in range(1, 99):
        print(json.dumps({{"type": "system", "subtype": "api_retry", "attempt": attempt, "retry_delay_ms": 20,
            "error_status": {status}, "error": "authentication_failed"}}), flush=True)
        time.sleep(0.2)
    """
    started = time.monotonic()
    with pytest.raises(AgentUnavailableError) as error:
        client(script, format="claude").answer(ask(), Watch())
    assert str(error.value).startswith(f"the client was refused: status {status} (authentication_failed), attempt ")
    assert time.monotonic() - started < 10


def test_a_line_that_refuses_ends_the_client(client: Client, ask: Ask) -> None:
    script = "import time; print('Please open this URL in your browser', flush=True); time.sleep(60)"
    with pytest.raises(AgentUnavailableError, match="the client was refused: Please open this URL in your browser"):
        client(script, refusals=["open this URL in your browser"]).answer(ask(), Watch())


def test_arguments_of_the_user_cannot_open_steps_that_only_read(client: Client, ask: Ask) -> None:
    agent = client(
        SHOW, "-c mode=all", edit={"arguments": ["-c", "mode=edit"]}, read_only={"arguments": ["-c", "mode=read"]}
    )
    assert get_words(agent.answer(ask("PRODUCE"), Watch())) == ["-c", "mode=edit", "-c", "mode=all"]
    assert get_words(agent.answer(ask("PLAN"), Watch())) == ["-c", "mode=all", "-c", "mode=read"]


def test_a_refused_login_is_final_despite_edits(client: Client, ask: Ask) -> None:
    script = f"open(sys.argv[1], 'w').write('new'); {replay('opencode-401.stdout')}"
    with pytest.raises(AgentUnavailableError, match=r"the client was refused by its model's server \(status 401\): no"):
        client(script, format="opencode", artifact=["{artifact}"]).answer(ask(artifact="old"), Watch())


LIMITED = f"""
    open("tries", "a").write("x")
    if os.path.getsize("tries") < 3: {replay("opencode-429.stdout", 1)}
    {replay("opencode.stdout")}
"""


def test_the_wait_of_the_server_is_respected(client: Client, ask: Ask, tmp_path: Path) -> None:
    output: list[bytes] = []
    with pytest.raises(RateLimitedError, match=r"the client has to wait \(status 429\): no") as error:
        client(LIMITED, format="opencode").answer(ask(), Watch(timeout=1.9, on_output=output.append))
    assert error.value.seconds == 2.0
    assert (tmp_path / "tries").read_text() == "x"
    assert not any(b"trying again" in line for line in output)


def test_a_rate_limited_client_is_called_again(client: Client, ask: Ask) -> None:
    script = LIMITED.replace("opencode-429", "claude-429").replace("opencode", "claude")
    assert client(script, format="claude").answer(ask(), Watch()).text == "Fixed."


def test_retries_are_limited(client: Client, ask: Ask) -> None:
    with pytest.raises(RateLimitedError) as error:
        client(replay("claude-429.stdout", 1), format="claude").answer(ask(), Watch())
    assert error.value.seconds is None


def test_a_stop_request_ends_the_wait(client: Client, ask: Ask) -> None:
    waits: list[str] = []
    started = time.monotonic()
    agent = client(replay("claude-429.stdout", 1), format="claude", waits=(60.0,))
    watch = Watch(
        on_wait=waits.append, should_continue=lambda: not any("trying again in 60 s" in line for line in waits)
    )
    with pytest.raises(StopRequestedError, match="the client was stopped on request"):
        agent.answer(ask(), watch)
    assert time.monotonic() - started < 30


def test_a_client_that_is_not_installed_is_unavailable(ask: Ask, tmp_path: Path) -> None:
    program = tmp_path / "client"
    preset = Preset(program=str(program), tested_version="1", format="codex")
    message = f"cannot run '{program}': no such command is installed here (pytest-loop agents lists all)"
    with pytest.raises(AgentUnavailableError) as error:
        ClientAgent(preset)
    assert str(error.value) == message
    program.touch(0o755)
    agent = ClientAgent(preset)
    assert agent.name == str(program)
    program.unlink()
    with pytest.raises(AgentUnavailableError, match=r"cannot run '.*/client': there is no such file"):
        agent.answer(ask(), Watch())


def test_client_may_edit_if_it_writes_tests_and_not_if_it_makes_checks(client: Client, ask: Ask) -> None:
    agent = client(SHOW, edit={"arguments": ["--edit"]}, read_only={"arguments": ["--plan"]})
    assert get_words(agent.answer(ask("PREPARE"), Watch())) == ["--edit"]
    assert "--plan" in get_words(agent.answer(ask("PREPARE", schema={"type": "object"}), Watch()))


def test_cost_of_a_named_model_is_estimated_for_each_call(client: Client, ask: Ask) -> None:
    script = """
    tokens = 2_000_000 if "--resume" in sys.argv else 1_000_000
    done(tokens=tokens)
    """
    agent = client(script, "gpt-5", tokens="session", resume=["--resume", "{session}"], model=["-m", "{model}"])
    first = agent.answer(ask("PRODUCE"), Watch()).usage
    second = agent.answer(ask("REFINE"), Watch()).usage
    assert first.cost_usd is None
    assert first.estimated_usd
    assert second.estimated_usd == pytest.approx(first.estimated_usd)
    assert first.estimated_by.startswith("genai-prices ")
    assert client("done()").answer(ask(), Watch()).usage.estimated_usd is None
