"""A client as an agent: what it is told, how often, and what is made of its answers. The clients are small scripts."""

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
    """A client that is a script of a few lines; it speaks the format of Codex unless the preset says another."""
    made: list[ClientAgent] = []

    def make(script: str, words: str = "", waits: tuple[float, ...] = (0.05, 0.05), **more: Any) -> ClientAgent:
        path = tmp_path / "client.py"
        path.write_text(dedent(HEAD) + dedent(script))
        preset = {"program": sys.executable, "checked": "1.0", "format": "codex", "tokens": "run"} | more
        preset["start"] = [str(path), *more.get("start", ())]
        if "resume" in more:
            preset["resume"] = [str(path), *more["resume"]]
        made.append(ClientAgent(Preset.model_validate(preset), words, "the client", waits))
        return made[-1]

    yield make
    for agent in made:
        agent.close()


def played(name: str, exit_code: int = 0) -> str:
    return f"sys.stdout.write(open({str(RECORDINGS / name)!r}, encoding='utf-8').read()); sys.exit({exit_code})"


def words(reply: AgentReply) -> list[str]:
    return json.loads(reply.text or "[]")  # type: ignore[no-any-return]


def test_it_may_edit_only_where_an_edit_is_asked_for(client: Client, ask: Ask) -> None:
    agent = client(
        "done(json.dumps([*sys.argv[1:], os.environ['MODE'], os.environ['QUIET']]))",
        arguments=["-x"],
        edit={"arguments": ["--auto"], "environment": {"MODE": "all"}},
        read_only={"arguments": ["--plan"], "environment": {"MODE": "chat"}},
        environment={"QUIET": "1"},
    )
    for step in ("PRODUCE", "REFINE"):
        assert words(agent.answer(ask(step), Watch())) == ["-x", "--auto", "all", "1"]
    for step in ("PLAN", "PREPARE", "JUDGE", "COMPOSE"):
        assert words(agent.answer(ask(step), Watch())) == ["-x", "--plan", "chat", "1"]


def test_a_variable_that_is_set_stays(client: Client, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUIET", "mine")
    assert client("done(os.environ['QUIET'])", environment={"QUIET": "1"}).answer(ask(), Watch()).text == "mine"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("", []),
        ("gpt-5", ["-m", "gpt-5"]),
        ("gpt-5 --profile 'very quick'", ["-m", "gpt-5", "--profile", "very quick"]),
        ("--profile quick", ["--profile", "quick"]),
    ],
)
def test_a_model_and_further_arguments(client: Client, ask: Ask, given: str, expected: list[str]) -> None:
    assert words(client(SHOW, given, model=["-m", "{model}"]).answer(ask(), Watch())) == expected


def test_arguments_that_do_not_end_say_so(client: Client) -> None:
    with pytest.raises(AgentUnavailableError, match='expected a model and arguments, found "gpt \'x" '):
        client(SHOW, "gpt 'x")


def test_the_folder_of_a_document_is_opened_to_who_edits_it(client: Client, ask: Ask, tmp_path: Path) -> None:
    agent = client(SHOW, artifact=["--add-dir", "{folder}", "{artifact}"])
    assert words(agent.answer(ask(), Watch())) == ["--add-dir", f"{tmp_path}/scratch", f"{tmp_path}/scratch/doc.md"]
    assert words(agent.answer(ask("JUDGE"), Watch())) == []
    assert words(agent.answer(AgentRequest("PRODUCE", "", tmp_path), Watch())) == []


def test_no_client_makes_a_repository_where_there_is_none(client: Client, ask: Ask, tmp_path: Path) -> None:
    agent = client(SHOW, outside_git=["--no-git"])
    assert words(agent.answer(ask(), Watch())) == ["--no-git"]
    (tmp_path / ".git").mkdir()
    (tmp_path / "inner").mkdir()
    assert words(agent.answer(AgentRequest("PRODUCE", "", tmp_path / "inner"), Watch())) == []


def test_the_prompt_is_on_standard_input_or_in_a_file(client: Client, ask: Ask) -> None:
    prompt = "Grüße\n" * 100_000
    assert client("done(sys.stdin.read())").answer(ask(prompt=prompt), Watch()).text == prompt
    agent = client(
        "done(open(sys.argv[1]).read() + repr(sys.stdin.read()))", prompt="file", arguments=["{prompt_file}"]
    )
    assert agent.answer(ask(prompt="do it"), Watch()).text == "do it''"


def test_a_schema_goes_by_file_or_by_word(client: Client, ask: Ask) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    agent = client("done(sys.argv[1])", form={"arguments": ["{schema}"]})
    assert agent.answer(ask("JUDGE", schema=schema), Watch()).data == schema
    agent = client("done(open(sys.argv[1]).read())", form={"arguments": ["{schema_file}"], "is_strict": True})
    assert agent.answer(ask("JUDGE", schema=schema), Watch()).data == {
        **schema,
        "required": ["a"],
        "additionalProperties": False,
    }


def test_json_that_nobody_asked_for_is_text(client: Client, ask: Ask) -> None:
    assert client("done('{}')").answer(ask(), Watch()) == AgentReply(text="{}", usage=Usage(tokens=110))


def test_a_conversation_goes_on_where_the_client_can(client: Client, ask: Ask) -> None:
    script = "done(json.dumps(sys.argv[1:]), thread='t' + sys.argv[-1])"
    agent = client(script, start=["new"], resume=["again", "{session}"])
    assert words(agent.answer(ask("REFINE"), Watch())) == ["new"]
    assert words(agent.answer(ask("REFINE"), Watch())) == ["again", "tnew"]
    assert words(agent.answer(ask("JUDGE"), Watch())) == ["new"]
    assert words(agent.answer(ask("REFINE"), Watch())) == ["again", "ttnew"]
    assert words(agent.answer(ask("PRODUCE"), Watch())) == ["new"]


def test_a_judge_that_fails_ends_no_conversation(client: Client, ask: Ask) -> None:
    agent = client(
        "'--plan' in sys.argv or done(json.dumps(sys.argv[1:]))",
        resume=["{session}"],
        read_only={"arguments": ["--plan"]},
    )
    agent.answer(ask(), Watch())
    with pytest.raises(AgentError, match="the client gave no answer of its model"):
        agent.answer(ask("JUDGE"), Watch())
    assert words(agent.answer(ask("REFINE"), Watch())) == ["t1"]


def test_a_conversation_goes_on_after_a_wait_and_its_count_too(client: Client, ask: Ask, tmp_path: Path) -> None:
    script = f"""
        open("tries", "a").write("x")
        if os.path.getsize("tries") == 2: {played("codex-429.stdout", 1)}
        done(json.dumps(sys.argv[1:]), 100 * os.path.getsize("tries"))
    """
    agent = client(script, tokens="session", resume=["{session}"])
    assert agent.answer(ask(), Watch()).usage.tokens == 100
    reply = agent.answer(ask("REFINE"), Watch())
    assert words(reply) == ["t1"]
    assert reply.usage.tokens == 200


def test_a_person_sees_words_and_tools_but_no_json(client: Client, ask: Ask) -> None:
    heard: list[bytes] = []
    agent = client(
        played("claude.stdout").replace("sys.exit", "sys.stdout.write('the end'); sys.exit"), format="claude"
    )
    agent.answer(ask(), Watch(on_output=heard.append))
    assert heard == [b"Edit: calc.py\n", b"Fixed.\n", b"the end\n"]


def test_conversations_about_two_folders_are_two(client: Client, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    agent = client("done(json.dumps(sys.argv[1:]), thread=os.getcwd())", resume=["{session}"])
    agent.answer(AgentRequest("PRODUCE", "", tmp_path), Watch())
    assert words(agent.answer(AgentRequest("REFINE", "", tmp_path / "other"), Watch())) == []
    assert words(agent.answer(AgentRequest("REFINE", "", tmp_path), Watch())) == [str(tmp_path)]


def test_where_the_client_asks_for_a_name_we_choose_one_and_keep_its_files(client: Client, ask: Ask) -> None:
    script = "open(sys.argv[1], 'a').write('x'); done(json.dumps(sys.argv[1:]), thread='')"
    agent = client(script, start=["{state}/{session}.md"], resume=["{state}/{session}.md", "--restore"])
    first = words(agent.answer(ask(), Watch()))
    assert words(agent.answer(ask("REFINE"), Watch())) == [*first, "--restore"]
    assert words(agent.answer(ask(), Watch())) != first
    agent.close()
    assert not Path(first[0]).parent.exists()


@pytest.mark.parametrize(
    ("second", "cost"),
    [("claude-resumed-whole.stdout", 0.02), ("claude-resumed-run.stdout", 0.02)],
    ids=["whole", "run"],
)
def test_the_cost_of_a_run_is_what_it_added(client: Client, ask: Ask, second: str, cost: float) -> None:
    more = {"format": "claude", "cost": "session", "resume": ["again"]}
    agent = client(f"if len(sys.argv) == 1: {played('claude.stdout')}\n{played(second)}", **more)
    assert agent.answer(ask(), Watch()).usage == Usage(tokens=1000, cost_usd=0.0125)
    usage = agent.answer(ask("REFINE"), Watch()).usage
    assert usage.tokens == 110
    assert usage.cost_usd == pytest.approx(cost)


def test_of_tokens_of_a_whole_conversation_only_the_new_ones_count(client: Client, ask: Ask) -> None:
    agent = client("done(tokens=100 * len(sys.argv) ** 2)", tokens="session", resume=["again"])
    assert [agent.answer(ask(step), Watch()).usage.tokens for step in ("PRODUCE", "REFINE")] == [100, 300]


def test_a_cost_of_nothing_is_unknown(client: Client, ask: Ask) -> None:
    step = {"type": "step_finish", "part": {"tokens": {"input": 5}, "cost": 0}}
    agent = client(f"print(json.dumps({step!r}))", format="opencode", cost="run")
    assert agent.answer(ask(), Watch()).usage == Usage(tokens=5, cost_usd=None)


def test_what_a_client_does_not_count_is_unknown(client: Client, ask: Ask) -> None:
    assert client("done()", tokens=None).answer(ask(), Watch()).usage == Usage()


def test_no_new_tokens_in_a_conversation_mean_that_no_model_answered(client: Client, ask: Ask) -> None:
    script = f"if len(sys.argv) == 2: {played('goose.stdout')}\n{played('goose-401-resumed.stdout')}"
    agent = client(script, format="goose", tokens="session", start=["{session}"], resume=["{session}", "--resume"])
    assert agent.answer(ask(), Watch()).usage == Usage(tokens=220)
    with pytest.raises(AgentError, match="the client gave no answer of its model: Ran into this error: Authentication"):
        agent.answer(ask("REFINE"), Watch())


def test_a_report_of_its_work_is_no_document(client: Client, ask: Ask) -> None:
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
def test_what_is_no_answer_says_why(client: Client, ask: Ask, script: str, watch: Watch, message: str) -> None:
    with pytest.raises(AgentError) as error:
        client(script).answer(ask(), watch)
    assert type(error.value) is AgentError
    assert str(error.value) == message


def test_a_client_that_is_silent_by_nature_has_its_deadline_only(client: Client, ask: Ask) -> None:
    agent = client("import time; time.sleep(0.6); done()", is_silent=True)
    assert agent.answer(ask(), Watch(silence=0.2)).text == "ok"


def test_what_was_edited_before_it_failed_is_judged_all_the_same(client: Client, ask: Ask) -> None:
    heard: list[bytes] = []
    agent = client("open(sys.argv[1], 'w').write('new'); sys.exit(1)", artifact=["{artifact}"])
    assert agent.answer(ask(artifact="old"), Watch(on_output=heard.append)) == AgentReply()
    assert heard == [b"the client ended with exit code 1; what it edited is judged all the same\n"]


def test_a_refused_login_is_final_whatever_was_edited(client: Client, ask: Ask) -> None:
    script = f"open(sys.argv[1], 'w').write('new'); {played('opencode-401.stdout')}"
    with pytest.raises(AgentUnavailableError, match=r"the client was refused by its model's server \(status 401\): no"):
        client(script, format="opencode", artifact=["{artifact}"]).answer(ask(artifact="old"), Watch())


LIMITED = f"""
    open("tries", "a").write("x")
    if os.path.getsize("tries") < 3: {played("opencode-429.stdout", 1)}
    {played("opencode.stdout")}
"""


def test_a_wait_that_the_server_names_is_kept(client: Client, ask: Ask, tmp_path: Path) -> None:
    heard: list[bytes] = []
    with pytest.raises(RateLimitedError, match=r"the client has to wait \(status 429\): no") as error:
        client(LIMITED, format="opencode").answer(ask(), Watch(timeout=1.9, on_output=heard.append))
    assert error.value.seconds == 2.0
    assert (tmp_path / "tries").read_text() == "x"
    assert not any(b"trying again" in one for one in heard)


def test_a_client_that_has_to_wait_is_called_again_and_no_iteration_is_lost(client: Client, ask: Ask) -> None:
    script = LIMITED.replace("opencode-429", "claude-429").replace("opencode", "claude")
    assert client(script, format="claude").answer(ask(), Watch()).text == "Fixed."


def test_it_is_not_called_again_without_end(client: Client, ask: Ask) -> None:
    with pytest.raises(RateLimitedError) as error:
        client(played("claude-429.stdout", 1), format="claude").answer(ask(), Watch())
    assert error.value.seconds is None


def test_somebody_may_ask_for_the_end_while_it_waits(client: Client, ask: Ask) -> None:
    heard: list[bytes] = []
    begun = time.monotonic()
    agent = client(played("claude-429.stdout", 1), format="claude", waits=(60.0,))
    watch = Watch(
        on_output=heard.append, should_continue=lambda: not any(b"trying again in 60 s" in one for one in heard)
    )
    with pytest.raises(StopRequestedError, match="the client was stopped on request"):
        agent.answer(ask(), watch)
    assert time.monotonic() - begun < 30


def test_a_client_that_is_not_there_says_so(ask: Ask) -> None:
    agent = ClientAgent(Preset(program="no-such-client", checked="1", format="codex"))
    assert agent.name == "no-such-client"
    assert agent.find_problem() == "cannot run 'no-such-client': no such command is installed here"
    with pytest.raises(AgentUnavailableError, match="cannot run 'no-such-client'"):
        agent.answer(ask(), Watch())
