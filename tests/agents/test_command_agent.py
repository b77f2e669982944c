"""`command:WORDS`: prompts, answers and errors of a program."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_loop.agents.command_agent import CommandAgent
from pytest_loop.agents.protocol import (
    MAX_ANSWER_BYTES,
    AgentError,
    AgentReply,
    AgentRequest,
    AgentUnavailableError,
    StopRequestedError,
    Watch,
)
from pytest_loop.core.model.run_state import Usage
from pytest_loop.processes.fence import make_supervisor_fence

Ask = Callable[..., AgentRequest]
Program = Callable[..., CommandAgent]
ECHO = "import sys; print(sys.stdin.read(), end='')"


def test_the_prompt_is_on_standard_input_and_the_answer_on_standard_output(program: Program, ask: Ask) -> None:
    reply = program(ECHO).answer(ask(prompt="Grüße\n" * 100_000), Watch())
    assert reply == AgentReply(text="Grüße\n" * 100_000)
    assert reply.usage == Usage(tokens=None, cost_usd=None)


def test_the_prompt_is_in_a_file_if_the_command_names_one(program: Program, ask: Ask) -> None:
    script = "import sys; print(open(sys.argv[1]).read() + repr(sys.stdin.read()))"
    assert program(script, "{prompt_file}").answer(ask(), Watch()).text == "do it''\n"


def test_the_answer_is_in_a_file_if_the_command_names_one(program: Program, ask: Ask) -> None:
    script = "import sys; print('chatter'); open(sys.argv[1][2:], 'w').write('the answer')"
    assert program(script, "-o{output_file}").answer(ask(), Watch()).text == "the answer"


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("", "expected an answer in {output_file}, found none"),
        ("import os, sys; os.mkfifo(sys.argv[1])", "expected an answer in {output_file}, found none"),
        (f"import sys; open(sys.argv[1], 'w').truncate({MAX_ANSWER_BYTES + 1})", "of at most 8 MB, found more"),
    ],
    ids=["none", "a pipe", "too large"],
)
def test_a_missing_or_too_large_answer_file_is_an_error(program: Program, ask: Ask, script: str, problem: str) -> None:
    with pytest.raises(AgentError) as error:
        program(script, "{output_file}").answer(ask(), Watch())
    assert problem in str(error.value)


def test_a_truncated_answer_is_refused(program: Program, ask: Ask) -> None:
    script = "import sys; sys.stdout.write('x' * {})"
    assert len(program(script.format(MAX_ANSWER_BYTES)).answer(ask(), Watch()).text or "") == MAX_ANSWER_BYTES
    with pytest.raises(AgentError, match="expected an answer of at most 8 MB, found more"):
        program(script.format(MAX_ANSWER_BYTES + 1)).answer(ask(), Watch())


def test_every_placeholder_is_filled_once_and_other_braces_stay(program: Program, ask: Ask, tmp_path: Path) -> None:
    agent = program(
        "import sys; print('|'.join(sys.argv[1:]))", "{artifact} w={workspace} {step}-{iteration} {x} '{ }'"
    )
    reply = agent.answer(ask("REFINE", iteration=3), Watch())
    assert reply.text == f"{tmp_path}/scratch/doc.md|w={tmp_path}|REFINE-3|{{x}}|{{ }}\n"
    odd = AgentRequest("PLAN", "", tmp_path, tmp_path / "{step}.md")
    assert (agent.answer(odd, Watch()).text or "").startswith(f"{tmp_path}/{{step}}.md|")


def test_without_an_artifact_its_placeholder_is_empty(program: Program, tmp_path: Path) -> None:
    agent = program("import os, sys; print(sys.argv[1:], repr(os.environ['LOOP_ARTIFACT']))", "{artifact}")
    assert agent.answer(AgentRequest("PREPARE", "", tmp_path), Watch()).text == "[''] ''\n"


def test_variables_describe_the_request(program: Program, ask: Ask, tmp_path: Path) -> None:
    script = """
        import os
        print(*(os.environ["LOOP_" + name] for name in ("STEP", "ITERATION", "PHASE", "ARTIFACT", "WORKSPACE")))
        print(os.getcwd())
    """
    reply = program(script).answer(ask("REFINE", iteration=2, phase="B"), Watch())
    assert reply.text == f"REFINE 2 B {tmp_path}/scratch/doc.md {tmp_path}\n{tmp_path}\n"


def test_the_variable_of_the_working_folder_names_the_workspace(
    program: Program, ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PWD", "/elsewhere")
    assert program("import os; print(os.environ['PWD'])").answer(ask(), Watch()).text == f"{tmp_path}\n"


def test_there_is_no_shell(ask: Ask, tmp_path: Path) -> None:
    assert CommandAgent("echo $HOME '*' a;b | cat", tmp_path).answer(ask(), Watch()).text == "$HOME * a;b | cat\n"


def test_the_artifact_may_be_edited_in_place(program: Program, ask: Ask) -> None:
    request = ask(artifact="old\n")
    reply = program("import sys; open(sys.argv[1], 'a').write('new')", "{artifact}").answer(request, Watch())
    assert reply == AgentReply(text="")
    assert request.artifact
    assert request.artifact.read_text() == "old\nnew"


@pytest.mark.parametrize(
    ("script", "watch", "message"),
    [
        ("print('a document'); exit(3)", Watch(), "the agent ended with exit code 3: a document"),
        (
            "import sys; print('out'); print('first\\n\\x1b[31mlast', file=sys.stderr); exit(1)",
            Watch(),
            "the agent ended with exit code 1: last",
        ),
        ("import os; os.kill(os.getpid(), 9)", Watch(), "the agent ended with signal 9"),
        ("import time; time.sleep(60)", Watch(silence=0.5), "the agent said nothing for 0.5 s"),
        ("while True: print('x')", Watch(timeout=1), "the agent did not end within 1 s"),
    ],
    ids=["exit code", "last words", "kills itself", "silence", "endless"],
)
def test_a_failed_command_names_the_reason(program: Program, ask: Ask, script: str, watch: Watch, message: str) -> None:
    with pytest.raises(AgentError) as error:
        program(script).answer(ask(), watch)
    assert type(error.value) is AgentError
    assert str(error.value) == message


def test_a_stop_request_ends_the_command(program: Program, ask: Ask) -> None:
    deadline = time.monotonic() + 0.3
    with pytest.raises(StopRequestedError, match="the agent was stopped on request"):
        program("import time; time.sleep(60)").answer(ask(), Watch(should_continue=lambda: time.monotonic() < deadline))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "expected a command after `command:`, found nothing"),
        ("say 'hello", 'expected a command, found "say \'hello" (No closing quotation)'),
    ],
)
def test_words_without_a_command_are_refused(tmp_path: Path, words: str, message: str) -> None:
    with pytest.raises(AgentUnavailableError) as error:
        CommandAgent(words, tmp_path)
    assert str(error.value) == message


def test_a_missing_command_is_unavailable(ask: Ask, tmp_path: Path) -> None:
    with pytest.raises(AgentUnavailableError) as error:
        CommandAgent("{workspace}/tool x", tmp_path)
    assert str(error.value) == f"cannot run '{tmp_path}/tool': there is no such file"
    (tmp_path / "tool").touch(0o755)
    agent = CommandAgent("{workspace}/tool x", tmp_path)
    (tmp_path / "tool").unlink()
    with pytest.raises(AgentUnavailableError, match="there is no such file"):
        agent.answer(ask(), Watch())
    agent.close()


def test_a_lone_surrogate_in_a_prompt_is_replaced(program: Program, ask: Ask) -> None:
    assert program(ECHO).answer(ask(prompt="a\udcffb"), Watch()).text == "a?b"


DAEMON = """
import os, sys, time
pid_file = sys.argv[1]
if os.fork():
    while not os.path.lexists(pid_file):
        time.sleep(0.01)
    sys.exit()
os.setsid()
if os.fork():
    os._exit(0)
null = os.open(os.devnull, os.O_RDWR)
for number in range(3):
    os.dup2(null, number)
code = "import os, sys, time; os.symlink(str(os.getpid()), sys.argv[1]); time.sleep(60)"
os.execve(sys.executable, [sys.executable, "-I", "-c", code, pid_file], {})
"""


@pytest.mark.skipif(make_supervisor_fence() is None, reason="the system does not show children of processes")
def test_a_process_that_left_its_group_and_its_environment_ends_with_the_agent(
    program: Program, ask: Ask, tmp_path: Path
) -> None:
    pid_file = tmp_path / "pid"
    program(DAEMON, str(pid_file)).answer(ask(), Watch())
    assert not Path("/proc", pid_file.readlink()).exists()
