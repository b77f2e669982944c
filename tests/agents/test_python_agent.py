"""`python:module:callable`: a function in a process that lives as long as the run."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pytest_loop.agents import python_agent
from pytest_loop.agents.protocol import (
    AgentError,
    AgentReply,
    AgentRequest,
    AgentUnavailableError,
    StopRequestedError,
    Watch,
)
from pytest_loop.agents.python_agent import PythonAgent
from pytest_loop.core.model.evaluation import Issue
from pytest_loop.core.model.run_state import Blocked, Usage
from pytest_loop.processes.fence import Fence, FenceTool, probe_tools
from tests.fences import needs_fence

Ask = Callable[..., AgentRequest]
Function = Callable[..., PythonAgent]
SCHEMA = {"type": "object"}


def test_a_function_answers_with_text_a_reply_a_mapping_or_nothing(function: Function, ask: Ask) -> None:
    agent = function(
        """
        from pytest_loop import AgentReply
        ANSWERS = {
            "text": "hello",
            "reply": AgentReply(text="x", usage={"tokens": 5}, exit_signal=True, blocked={"rule": "a.b", "reason": "no"}),
            "mapping": {"text": "y", "usage": {"cost_usd": 0.5}},
            "nothing": None,
        }
        def work(request): return ANSWERS[request.prompt]
        """
    )
    assert agent.answer(ask(prompt="text"), Watch()) == AgentReply(text="hello")
    assert agent.answer(ask(prompt="reply"), Watch()) == AgentReply(
        text="x", usage=Usage(tokens=5), exit_signal=True, blocked=Blocked(rule="a.b", reason="no")
    )
    assert agent.answer(ask(prompt="mapping"), Watch()) == AgentReply(text="y", usage=Usage(cost_usd=0.5))
    assert agent.answer(ask(prompt="nothing"), Watch()) == AgentReply()


def test_with_a_schema_a_mapping_is_the_data(function: Function, ask: Ask) -> None:
    agent = function("def work(request): return {'plan': ['one'], 'text': 'two'}")
    assert agent.answer(ask(schema=SCHEMA), Watch()).data == {"plan": ["one"], "text": "two"}
    with pytest.raises(AgentError, match=r"expected text, an AgentReply or None, found dict \(plan: Extra inputs"):
        agent.answer(ask(), Watch())


def test_a_function_gets_the_whole_request(function: Function, ask: Ask, tmp_path: Path) -> None:
    agent = function(
        """
        import dataclasses, os
        def work(request):
            try: request.step = "x"
            except dataclasses.FrozenInstanceError: frozen = True
            issue, = request.critique
            return repr((request.step, request.prompt, request.workspace == __import__("pathlib").Path.cwd(),
                request.artifact.name, request.iteration, request.phase, issue.rule_id, request.schema, frozen))
        """
    )
    issue = Issue(rule_id="a.b.c", problem="p", fix_instruction="f")
    reply = agent.answer(ask("REFINE", "x\ny\udcff", critique=(issue,), iteration=2, phase="B", schema=SCHEMA), Watch())
    assert reply.text == repr(
        ("REFINE", "x\ny\udcff", True, "doc.md", 2, "B", "a.b.c", SCHEMA, True),
    )


def test_a_function_may_edit_in_place(function: Function, ask: Ask) -> None:
    request = ask(artifact="old")
    assert function("def work(request): request.artifact.write_text('new')").answer(request, Watch()) == AgentReply()
    assert request.artifact
    assert request.artifact.read_text() == "new"


def test_preparing_runs_beside_producing_in_a_process_of_its_own(function: Function, ask: Ask) -> None:
    agent = function(
        """
        import os, time
        from pathlib import Path
        def work(request):
            Path(request.step).touch()
            deadline = time.monotonic() + 30
            while not all(Path(step).exists() for step in ("PRODUCE", "PREPARE")):
                assert time.monotonic() < deadline, "the other step did not begin"
                time.sleep(0.01)
            return str(os.getpid())
        """
    )
    with ThreadPoolExecutor(2) as pool:
        replies = list(pool.map(lambda step: agent.answer(ask(step), Watch()), ("PRODUCE", "PREPARE")))
    assert replies[0].text != replies[1].text
    assert agent.answer(ask("REFINE"), Watch()).text == replies[0].text


def test_globals_are_kept_and_prints_are_passed_on(function: Function, ask: Ask) -> None:
    agent = function(
        """
        import sys
        print("imported")
        asked = []
        class Agent:
            def work(self, request):
                asked.append(request.prompt)
                print("thinking", file=sys.stderr)
                sys.stdout.write("no end of line")
                return f"{len(asked)}"
        agent = Agent()
        """,
        "agent.work",
    )
    output: list[bytes] = []
    assert [agent.answer(ask(), Watch(on_output=output.append)).text for _ in range(3)] == ["1", "2", "3"]
    text = b"".join(output).decode()
    assert text.count("imported\n") == 1
    assert text.count("thinking\n") == 3
    assert text.count("no end of line") == 3


def test_standard_input_is_empty_and_the_answer_pipe_is_its_own(function: Function, ask: Ask) -> None:
    agent = function(
        """
        import os, subprocess, sys
        def work(request):
            left = [name for name in os.environ if name.startswith("PYTEST_LOOP_") and name != "PYTEST_LOOP_CALL"]
            open_in_child = subprocess.run(["sh", "-c", "ls /proc/self/fd | wc -l"], capture_output=True, text=True)
            return f"{sys.stdin.read()!r} {left} {int(open_in_child.stdout) <= 4}"
        """
    )
    assert agent.answer(ask(), Watch()).text == "'' [] True"


def test_modules_of_the_project_do_not_replace_the_standard_library(
    function: Function, ask: Ask, tmp_path: Path
) -> None:
    for name in ("json", "base64", "typing"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(5)")
    assert function("def work(request): return 'fine'").answer(ask(), Watch()).text == "fine"


@pytest.mark.measured
def test_an_exception_is_an_error_and_the_process_lives_on(function: Function, ask: Ask) -> None:
    agent = function(
        """
        from pytest_loop.agents.protocol import AgentError
        count = 0
        def work(request):
            global count
            count += 1
            if count == 1: raise KeyError("x")
            if count == 2: raise AgentError("too tired")
            if count == 3: raise ValueError
            if count == 4: return 5
            if count == 5: return {"data": {1, 2}, "text": object()}
            if count == 6: return {"usage": 5, "text": "half a character: \\ud800", "exit_signal": "perhaps"}
            return f"{count} \\ud800"
        """
    )
    errors = []
    for _ in range(6):
        with pytest.raises(AgentError) as error:
            agent.answer(ask(), Watch())
        assert not isinstance(error.value, AgentUnavailableError)
        errors.append(str(error.value).removeprefix("python:my_agents:work: "))
    assert errors[:4] == [
        "KeyError: 'x'",
        "too tired",
        "ValueError: ",
        "expected text, an AgentReply or None, found int (all of it: Input should be a valid dictionary or instance of AgentReply)",
    ]
    assert errors[4].startswith("expected text, an AgentReply or None, found dict (text: ")
    assert "exit_signal" in errors[5]
    assert agent.answer(ask(), Watch()).text == "7 ?"


@pytest.mark.parametrize(
    ("end", "how"),
    [("os._exit(3)", "exit code 3"), ("raise SystemExit(0)", "exit code 0"), ("os.kill(os.getpid(), 9)", "signal 9")],
)
def test_a_process_that_ended_is_started_again(function: Function, ask: Ask, end: str, how: str) -> None:
    agent = function(
        f"""
        import os
        count = 0
        def work(request):
            global count
            count += 1
            if request.prompt == "end": {end}
            return f"{{count}}"
        """
    )
    assert agent.answer(ask(), Watch()).text == "1"
    with pytest.raises(AgentError, match=f"python:my_agents:work ended with {how} while it was working"):
        agent.answer(ask(prompt="end"), Watch())
    assert agent.answer(ask(), Watch()).text == "1"


SLOW = """
    import os, subprocess, time
    def work(request):
        if request.prompt == "pid": return f"{os.getpid()} {subprocess.Popen(['sleep', '60'], start_new_session=True).pid}"
        while request.prompt == "chatter": print("x" * 1000, flush=True)
        time.sleep(60)
"""


@pytest.mark.parametrize(
    ("prompt", "watch", "message"),
    [
        ("sleep", Watch(timeout=0.5), "did not end within 0.5 s"),
        ("chatter", Watch(timeout=0.5), "did not end within 0.5 s"),
        ("sleep", Watch(silence=0.5), "said nothing for 0.5 s"),
    ],
    ids=["deadline", "endless output", "silence"],
)
def test_a_deadline_ends_the_process_and_its_children(
    function: Function, ask: Ask, prompt: str, watch: Watch, message: str
) -> None:
    agent = function(SLOW)
    pids = (agent.answer(ask(prompt="pid"), Watch()).text or "").split()
    with pytest.raises(AgentError, match=message):
        agent.answer(ask(prompt=prompt), watch)
    assert not any(_is_alive(int(pid)) for pid in pids)


def test_a_stop_request_ends_the_function(function: Function, ask: Ask) -> None:
    deadline = time.monotonic() + 1
    with pytest.raises(StopRequestedError, match="was stopped on request"):
        function(SLOW).answer(ask(), Watch(should_continue=lambda: time.monotonic() < deadline))


def test_closing_waits_briefly_for_the_process(function: Function, ask: Ask, tmp_path: Path) -> None:
    module = "import atexit, pathlib, time\natexit.register(lambda: pathlib.Path('bye').touch())\natexit.register(time.sleep, {})\ndef work(r): return 'x'"
    agent = function(module.format(0.1))
    agent.answer(ask(), Watch())
    agent.close()
    assert (tmp_path / "bye").exists()
    (tmp_path / "bye").unlink()
    agent = function(module.format(60))
    agent.answer(ask(), Watch())
    started = time.monotonic()
    agent.close()
    assert time.monotonic() - started < 30
    assert not (tmp_path / "bye").exists()
    agent.close()


def test_closing_does_not_wait_for_an_answer(function: Function, ask: Ask) -> None:
    agent = function(SLOW)
    failed: list[BaseException] = []

    def answer() -> None:
        try:
            agent.answer(ask(), Watch(timeout=60))
        except (AgentError, OSError, ValueError) as error:
            failed.append(error)

    thread = threading.Thread(target=answer)
    thread.start()
    time.sleep(0.5)
    agent.close()
    thread.join(10)
    assert failed


def test_a_daemon_that_holds_the_pipes_does_not_block(function: Function, ask: Ask) -> None:
    agent = function(
        """
        import os, time
        def work(request):
            if os.fork() == 0:
                os.setsid()
                time.sleep(60)
            os._exit(0)
        """
    )
    started = time.monotonic()
    with pytest.raises(AgentError, match="ended with exit code 0 while it was working"):
        agent.answer(ask(), Watch())
    assert time.monotonic() - started < 30


@pytest.mark.parametrize(
    "say",
    ["b'no json\\n'", "b'[]\\n'", 'b\'{"reply": {"text": 5}}\\n\''],
)
def test_foreign_data_in_the_answer_pipe_is_refused(function: Function, ask: Ask, say: str) -> None:
    agent = function(
        f"""
        import os, stat, time
        def work(request):
            for number in range(3, 30):
                try:
                    if stat.S_ISFIFO(os.fstat(number).st_mode): os.write(number, {say})
                except OSError: continue
            time.sleep(60)
        """
    )
    with pytest.raises(AgentError, match="gave an answer that cannot be read"):
        agent.answer(ask(), Watch(timeout=20))


def test_a_too_large_answer_is_refused(function: Function, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(python_agent, "_MAX_LINE_BYTES", 1_000_000)
    with pytest.raises(AgentError, match="expected an answer of at most 8 MB, found more"):
        function("def work(request): return 'x' * 2_000_000").answer(ask(), Watch())


@pytest.mark.parametrize(
    ("module", "message"),
    [
        ("def other(request): pass", "my_agents has no callable work"),
        ("work = 5", "my_agents has no callable work"),
        ("def work(:", "cannot import my_agents: SyntaxError: invalid syntax (my_agents.py, line 1)"),
        ("raise AttributeError('odd')\ndef work(): ...", "cannot import my_agents: AttributeError: odd"),
        (
            "from nowhere import work",
            "cannot import my_agents: No module named 'nowhere' (modules are found from the root of the project)",
        ),
    ],
)
def test_a_missing_function_is_unavailable(function: Function, ask: Ask, module: str, message: str) -> None:
    with pytest.raises(AgentUnavailableError) as error:
        function(module).answer(ask(), Watch())
    assert str(error.value) == f"python:my_agents:work: {message}"


@pytest.mark.parametrize("module", ["def other(request): pass", "def work(:"])
def test_a_missing_function_is_noticed_before_the_first_request(function: Function, module: str) -> None:
    with pytest.raises(AgentUnavailableError, match="python:my_agents:work: "):
        function(module)


@pytest.mark.parametrize(
    "module",
    ["from os.path import *", "globals()['work'] = print", "def __getattr__(name): ...", "class work: ..."],
)
def test_a_module_that_may_have_the_function_is_imported_with_the_first_request(
    function: Function, module: str
) -> None:
    assert function(module).name == "python:my_agents:work"


@pytest.mark.parametrize("reference", ["sys:exit", "os.path:join"])
def test_a_module_without_a_source_of_its_own_is_imported_with_the_first_request(
    reference: str, tmp_path: Path
) -> None:
    assert PythonAgent(reference, tmp_path).name == f"python:{reference}"


def test_a_missing_workspace_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(AgentUnavailableError, match=r"cannot start Python in .*/none: No such file or directory"):
        PythonAgent("json:loads", tmp_path).answer(AgentRequest("PLAN", "", tmp_path / "none"), Watch())


@pytest.mark.parametrize("reference", ["", "module", "module:", ":function"])
def test_a_reference_has_a_module_and_a_callable(reference: str, tmp_path: Path) -> None:
    with pytest.raises(AgentUnavailableError, match=f"expected python:module:callable, found 'python:{reference}'"):
        PythonAgent(reference, tmp_path)


def _is_alive(pid: int) -> bool:
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return False
            os.kill(pid, 0)
        except OSError:
            return False
        time.sleep(0.05)
    return True


@needs_fence
def test_a_fence_keeps_its_files_read_only_and_ends_what_it_started(
    function: Function, ask: Ask, tmp_path: Path
) -> None:
    agent = function(
        """
        import subprocess
        from pathlib import Path
        def work(request):
            if request.prompt == "cheat":
                Path("sealed.txt").write_text("cheat")
            script = "while :; do date +%N > tick; done"
            subprocess.Popen(["setsid", "sh", "-c", script])
            while not Path("tick").exists() or not Path("tick").read_text():
                pass
        """
    )
    sealed, tick = tmp_path / "sealed.txt", tmp_path / "tick"
    sealed.write_text("sealed")
    watch = Watch(fence=Fence(probe_tools().tool or FenceTool.UNSHARE, (str(sealed.resolve()),)))
    with pytest.raises(AgentError, match=r"OSError: \[Errno 30\] Read-only file system: 'sealed.txt'"):
        agent.answer(ask(prompt="cheat"), watch)
    agent.answer(ask(), watch)
    agent.close()
    last = tick.read_text()
    time.sleep(0.1)
    assert (tick.read_text(), sealed.read_text()) == (last, "sealed")
