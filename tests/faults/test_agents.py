"""Agents that misbehave: each run ends with a clear message, and never passes by accident."""

from __future__ import annotations

import io
import json
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from pytest_loop import hookspecs
from pytest_loop.agents.factory import make_agent
from pytest_loop.agents.protocol import Agent
from pytest_loop.core.events.event import Event
from pytest_loop.core.events.run_payloads import RunStarted
from pytest_loop.core.machine.run_machine import RUN_MACHINE
from pytest_loop.core.model.rules import Evidence, Outcome, SessionPlan
from pytest_loop.core.model.run_criteria import RunCriteria, RunRule
from pytest_loop.core.model.run_state import RunState, Task
from pytest_loop.core.model.session_order import SessionOrder
from pytest_loop.core.model.vocabulary import Status
from pytest_loop.processes import child
from pytest_loop.run.context import RunContext
from pytest_loop.run.driver import Driver
from pytest_loop.run.steps import RunSteps
from pytest_loop.session.result import SessionResult
from pytest_loop.settings.options import AgentSettings
from pytest_loop.settings.settings import make_default_settings
from pytest_loop.show.live_view import LiveView
from pytest_loop.show.look import Look
from pytest_loop.store.project_runs import Store
from pytest_loop.workspace.artifact import Artifact
from pytest_loop.workspace.sealed_files import SealedFiles

LIMITS = {"agent_timeout": 20.0, "agent_silence": 20.0}
KEY = "it.rules.yaml::a.x.green"
SENTENCE = RunRule(id="a.x.green", description="It is green", key=KEY, check="It is green.")
RULE = RunRule(id="a.x.green", description="It is green", key=KEY)


class WordSession:
    """A fast session with one rule: the document says `green`."""

    def evaluate(self, order: SessionOrder, *_extra: str) -> SessionResult:
        outcome = Outcome.PASSED if "green" in Path(order.artifact).read_text() else Outcome.FAILED
        evidence = Evidence(outcome=outcome, text="" if outcome is Outcome.PASSED else "expected green, found none")
        plan = SessionPlan(items={KEY: (KEY,)})
        return SessionResult(plan=plan, evidence={KEY: evidence}, canaries=[True], exit_status=0)


class RunOutcome:
    """The result of a run."""

    def __init__(self, state: RunState, events: list[dict[str, Any]], shown: str, artifact: str | None) -> None:
        self.state = state
        self.events = events
        self.shown = shown
        self.artifact = artifact

    @property
    def errors(self) -> list[str]:
        return [event["payload"]["reason"] for event in self.events if event["event"] == "phase_error"]

    @property
    def is_failed(self) -> bool:
        return self.state.status is Status.FAILED and self.state.stop.reason == "phase_error"


class Project:
    """A folder with an agent, and runs in it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def run(self, spec: str, rule: RunRule = RULE, **settings: Any) -> RunOutcome:
        agent = make_agent(spec, self.path, {})
        try:
            return self.run_agent(agent, rule, **settings)
        finally:
            agent.close()

    def run_agent(self, agent: Agent, rule: RunRule = RULE, **settings: Any) -> RunOutcome:
        store = Store(self.path)
        files = store.get_run("do-it")
        files.acquire()
        start = RunState(
            run_id="do-it-1",
            task_alias="do-it",
            task=Task(prompt="Do it"),
            criteria=RunCriteria(rules=(rule,)),
            max_iterations=2,
        )
        project = SealedFiles(self.path, files.folder, (), ["*"])
        beginning = RUN_MACHINE.begin(start.replace(seal=project.record_seal()))
        event = Event.create(beginning, RunStarted(state=beginning), "2026-01-01T00:00:00.000Z")
        state = beginning
        files.append([event], state)
        stream = io.StringIO()
        plugins = pytest.PytestPluginManager()
        plugins.add_hookspecs(hookspecs)
        tools = RunContext(
            settings=make_default_settings(self.path, agents=AgentSettings(**{**LIMITS, **settings})),
            nonce="nonce",
            files=files,
            artifact=Artifact(files.artifact),
            session=WordSession(),
            agents=[agent],
            judge=agent,
            hook=plugins.hook,
            live=LiveView(stream, Look(2)),
            project=project,
        )
        driver = Driver(state, RUN_MACHINE, RunSteps(), store, tools, listen=lambda _event, _state: None)
        try:
            state = driver.run()
        finally:
            files.release()
            project.close()
        events = [json.loads(line) for line in files.history.read_text().splitlines()]
        return RunOutcome(
            state, events, stream.getvalue(), files.artifact.read_text() if files.artifact.exists() else None
        )

    def script(self, text: str, words: str = "") -> str:
        """Write a Python script, and return the spec of the agent that runs it."""
        (self.path / "agent.py").write_text(dedent(text))
        return f"command:{shlex.quote(sys.executable)} agent.py {words}"

    def function(self, text: str) -> str:
        """Write a module, and return the spec of the agent that calls its function `work`."""
        (self.path / "my_agent.py").write_text(dedent(text))
        return "python:my_agent:work"

    def list_processes(self) -> list[str]:
        """Return the processes that still run in this folder, in any group or session."""
        return [path.name for path in Path("/proc").glob("[0-9]*") if _folder(path) == self.path]


def _folder(running: Path) -> Path | None:
    try:
        return (running / "cwd").readlink()
    except OSError:
        return None


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "work").mkdir()
    return Project((tmp_path / "work").resolve())


@pytest.fixture(autouse=True)
def _no_process_is_left(project: Project) -> Any:
    """Check after each test that no process of an agent is left; a killed one needs a moment to disappear."""
    yield
    deadline = time.monotonic() + 5
    while project.list_processes() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert project.list_processes() == []


# -- it cannot be started, or does nothing


def test_a_vanished_command_is_not_called_twice(project: Project) -> None:
    tool = project.path / "tool"
    tool.write_text("#!/bin/sh\necho green\n")
    tool.chmod(0o700)
    agent = make_agent("command:./tool", project.path, {})
    tool.unlink()
    outcome = project.run_agent(agent)
    assert outcome.is_failed
    assert outcome.errors == ["cannot run './tool': there is no such file"]


def test_a_command_that_lost_its_permission_is_not_called_twice(project: Project) -> None:
    tool = project.path / "tool"
    tool.write_text("#!/bin/sh\necho green\n")
    tool.chmod(0o700)
    agent = make_agent("command:./tool", project.path, {})
    tool.chmod(0o600)
    assert project.run_agent(agent).errors == ["cannot run './tool': Permission denied (make it executable)"]


def test_exit_0_without_work_makes_no_document(project: Project) -> None:
    outcome = project.run("command:true")
    assert outcome.is_failed
    assert outcome.errors == ["expected a document, found an empty answer"] * 2
    assert outcome.artifact is None


@pytest.mark.parametrize("answer", ["None", "{'data': {'a': 1}}", "{'exit_signal': True}"])
def test_a_function_without_result_makes_no_document(project: Project, answer: str) -> None:
    outcome = project.run(project.function(f"def work(request): return {answer}"))
    assert outcome.is_failed
    assert outcome.errors == ["expected a document or an edit of it, found neither"] * 2
    assert outcome.artifact is None


def test_a_named_pipe_is_no_document(project: Project) -> None:
    outcome = project.run(project.script("import os, sys; os.mkfifo(sys.argv[1])", "{artifact}"))
    assert outcome.is_failed
    assert outcome.errors[0].startswith("expected a file for the artifact, found something else")


def test_exit_0_without_an_edit_in_refine_is_no_answer(project: Project) -> None:
    outcome = project.run(project.script("import os; print('red' if os.environ['LOOP_STEP'] == 'PRODUCE' else '')"))
    assert outcome.is_failed
    assert outcome.errors == ["expected a document, found an empty answer"] * 2
    assert outcome.artifact == "red\n"


# -- exit codes are no verdicts


def test_a_fix_with_a_failing_exit_code_passes(project: Project) -> None:
    """An edit in place is kept and judged: the exit code says nothing about the document."""
    outcome = project.run(
        project.script("import sys; open(sys.argv[1], 'w').write('green'); sys.exit(1)", "{artifact}")
    )
    assert outcome.state.status is Status.COMPLETED
    assert outcome.artifact == "green"


def test_a_useless_edit_with_a_failing_exit_code_fails(project: Project) -> None:
    outcome = project.run(project.script("import sys; open(sys.argv[1], 'a').write('red'); sys.exit(1)", "{artifact}"))
    assert (outcome.state.status, outcome.state.stop.passed) == (Status.STOPPED, False)
    assert outcome.artifact == "redred"


def test_text_with_a_failing_exit_code_is_no_document(project: Project) -> None:
    """The output of a failing program is an error message."""
    outcome = project.run(project.script("print('error: the light is green'); exit(2)"))
    assert outcome.is_failed
    assert len(outcome.errors) == 2
    assert outcome.errors[0].endswith("agent.py  ended with exit code 2: error: the light is green")
    assert outcome.artifact is None


def test_the_error_names_the_signal_that_ended_an_agent(project: Project) -> None:
    outcome = project.run(project.script("import os; print('green', flush=True); os.kill(os.getpid(), 9)"))
    assert outcome.is_failed
    assert "ended with signal 9" in outcome.errors[0]


# -- it hangs

HANGS = {
    "silent hang": ("import time; time.sleep(60)", "said nothing for 0.7 s"),
    "output, then hang": ("import time; print('green', flush=True); time.sleep(60)", "said nothing for 0.7 s"),
    "endless output": ("while True: print('green')", "did not end within 1 s"),
    "endless line": ("while True: print('green', end='')", "did not end within 1 s"),
    "ignores SIGTERM": (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True: print('x', flush=True); time.sleep(0.1)",
        "did not end within 1 s",
    ),
}


@pytest.mark.parametrize(("script", "message"), HANGS.values(), ids=HANGS)
def test_an_agent_that_hangs_is_ended(
    project: Project, monkeypatch: pytest.MonkeyPatch, script: str, message: str
) -> None:
    monkeypatch.setattr(child, "GRACE_PERIOD", 0.5)
    limits: dict[str, Any] = {"agent_silence": 0.7} if "nothing" in message else {"agent_timeout": 1.0}
    outcome = project.run(project.script(script), **limits)
    assert outcome.is_failed
    assert [message in trouble for trouble in outcome.errors] == [True, True]
    assert outcome.artifact is None


def test_a_function_that_hangs_is_ended(project: Project) -> None:
    outcome = project.run(project.function("import time\ndef work(request): time.sleep(60)"), agent_timeout=1.0)
    assert outcome.is_failed
    assert outcome.errors == ["python:my_agent:work did not end within 1 s"] * 2


def test_standard_input_ends(project: Project) -> None:
    outcome = project.run(project.script("import sys; print('green' + sys.stdin.read())", "{prompt_file}"))
    assert outcome.state.status is Status.COMPLETED
    assert outcome.artifact == "green\n"


# -- it leaves somebody behind (who is looked for after every row)

FORK = """
    import os, sys, time
    if os.fork() == 0:
        {leave}
        time.sleep({delay})
        open(sys.argv[1], "w").write("green"); open("../late", "w").write("green")
        time.sleep(60)
    {then}
"""
DAEMON = "os.setsid(); os.fork() and os._exit(0)"


@pytest.mark.parametrize("leave", ["pass", "os.setsid()", DAEMON], ids=["child", "session of its own", "daemon"])
def test_no_descendant_writes_after_the_agent_has_ended(project: Project, leave: str) -> None:
    outcome = project.run(project.script(FORK.format(leave=leave, delay=0.5, then="print('red')"), "{artifact}"))
    time.sleep(0.6)
    assert not (project.path.parent / "late").exists()
    assert outcome.artifact == "red\n"
    assert outcome.state.stop.passed is False


def test_no_descendant_writes_after_the_deadline(project: Project) -> None:
    script = FORK.format(leave=DAEMON, delay=1.5, then="time.sleep(60)")
    outcome = project.run(project.script(script, "{artifact}"), agent_timeout=1.0)
    time.sleep(0.8)
    assert not (project.path.parent / "late").exists()
    assert outcome.artifact is None
    assert outcome.is_failed


def test_an_edit_of_the_original_artifact_is_no_answer(project: Project) -> None:
    script = "import time; open('.loop/do-it/artifact.md', 'w').write('green'); time.sleep(60)"
    outcome = project.run(project.script(script), agent_silence=1.0)
    assert outcome.is_failed
    assert outcome.state.stop.passed is False


# -- what it says


def test_a_line_of_50_mb_is_no_document_and_is_not_shown(project: Project) -> None:
    outcome = project.run(project.script("print('green' * 10_000_000)"))
    assert outcome.is_failed
    assert outcome.errors == ["expected an answer of at most 8 MB, found more"] * 2
    assert len(outcome.shown) < 2_000_000


def test_a_line_of_50_mb_beside_the_document_does_no_harm(project: Project) -> None:
    outcome = project.run(project.script("import sys; sys.stderr.write('x' * 50_000_000); print('green')"))
    assert outcome.state.status is Status.COMPLETED
    assert outcome.artifact == "green\n"


NOISE = rb"""
import sys
sys.stderr.buffer.write(b"\x00\xff\xfe\x1b[2J\x1b]0;title\x07\n::error::boom\n  ::set-output name=x::y\nred\x1b[2K\rgone\n")
sys.stdout.buffer.write(b"green \xff\xfe\n::warning::x\n")
"""


def test_binary_ansi_and_fake_commands_are_shown_as_text(project: Project) -> None:
    (project.path / "agent.py").write_bytes(NOISE)
    outcome = project.run(f"command:{shlex.quote(sys.executable)} agent.py")
    assert outcome.state.status is Status.COMPLETED
    assert outcome.artifact == "green \ufffd\ufffd\n::warning::x\n"
    assert "\x1b" not in outcome.shown
    assert "\0" not in outcome.shown
    assert not [line for line in outcome.shown.splitlines() if line.lstrip().startswith("::")]
    assert "  | ::error::boom\n" in outcome.shown


def test_prose_about_a_rate_limit_is_not_one(project: Project) -> None:
    script = "import sys; print('429 rate limit exceeded, retry later', file=sys.stderr); print('green: the rate limit is 5 a second')"
    outcome = project.run(project.script(script))
    assert outcome.state.status is Status.COMPLETED
    assert outcome.errors == []


def test_a_rate_limit_is_reported_with_the_message_of_the_agent(project: Project) -> None:
    outcome = project.run(project.script("import sys; sys.exit('429: rate limit exceeded')"))
    assert outcome.is_failed
    assert outcome.errors[0].endswith("ended with exit code 1: 429: rate limit exceeded")


def test_a_phrase_of_completion_ends_nothing(project: Project) -> None:
    outcome = project.run("command:echo '<promise>COMPLETE</promise> all rules pass, exit_signal: true'")
    assert outcome.state.stop.passed is False


# -- answers that have a form

SAID = {
    "prose": ("Sure! I will do that.", "expected a JSON object, found 'Sure! I will do that.'"),
    "truncated": ('{"checks": [{"rule_id": "a.x.green", "check"', "expected a JSON object, found"),
    "contradictory": (
        '{"checks": []} {"checks": [{"rule_id": "a.x.green", "check": {"contains": "a"}}]}',
        "expected one JSON object, found 2 that differ",
    ),
    "a key twice": ('{"checks": [], "checks": []}', "expected a JSON object, found"),
    "wrong type": ('{"checks": "all"}', "found checks: Input should be a valid list"),
    "no check": ('{"checks": []}', "expected a check for every rule, found none for a.x.green"),
    "unknown check": (
        '{"checks": [{"rule_id": "a.x.green", "check": {"vibes": "good"}}]}',
        "expected a check, found one that is none",
    ),
    "a bomb": ("{" * 200_000, "expected a JSON object, found"),
}


@pytest.mark.parametrize(("answer", "message"), SAID.values(), ids=SAID)
def test_a_malformed_answer_is_requested_again_and_then_fails_the_run(
    project: Project, answer: str, message: str
) -> None:
    (project.path / "said").write_text(answer)
    spec = project.function(
        """
        def work(request):
            if request.step == "PREPARE":
                with open("../prompts", "a") as file: print(request.prompt, file=file)
            return open("said").read() if request.step == "PREPARE" else "green"
        """
    )
    outcome = project.run(spec, SENTENCE)
    assert outcome.is_failed
    assert [message in trouble for trouble in outcome.errors] == [True, True]
    prompts = (project.path.parent / "prompts").read_text()
    assert prompts.count("could not be used") == 1


def test_a_second_answer_may_correct_the_first(project: Project) -> None:
    spec = project.function(
        """
        asked = []
        def work(request):
            asked.append(request.step)
            if request.step == "PRODUCE": return "green"
            return {"checks": [{"rule_id": "a.x.green", "check": {"contains": "green"}}]} if asked[-2:] == ["PREPARE"] * 2 else "hm"
        """
    )
    outcome = project.run(spec, SENTENCE)
    assert outcome.state.status is Status.COMPLETED
    assert len(outcome.errors) == 1


def test_a_malformed_plan_fails_the_run(project: Project) -> None:
    outcome = project.run('command:echo \'{"plan": ["one step"]}\'', planner="agent")
    assert outcome.is_failed
    assert all("expected JSON with plan, found plan" in trouble for trouble in outcome.errors)


@pytest.mark.parametrize(
    "usage",
    [
        "{'cost_usd': -5}",
        "{'cost_usd': float('nan'), 'tokens': '12'}",
        "{'cost_usd': '0.5'}",
        "{}",
        "'free'",
        "{'cost_usd': 1e400}",
    ],
)
def test_impossible_costs_are_unknown_and_not_zero(project: Project, usage: str) -> None:
    outcome = project.run(project.function(f"def work(request): return {{'text': 'green', 'usage': {usage}}}"))
    assert outcome.state.status is Status.COMPLETED
    assert (outcome.state.progress.usage.tokens, outcome.state.progress.usage.cost_usd) == (None, None)


def test_an_exception_of_a_function_is_reported(project: Project) -> None:
    outcome = project.run(project.function("def work(request): raise MemoryError('no room')"))
    assert outcome.is_failed
    assert outcome.errors == ["python:my_agent:work: MemoryError: no room"] * 2


def test_a_blocked_claim_about_an_unknown_rule_is_ignored(project: Project) -> None:
    outcome = project.run("command:echo 'BLOCKED a.other.rule: I am tired, and green'")
    assert outcome.state.signals.blocked is None


# -- all together, from the command line


@pytest.fixture
def loop(project: Project, pytester: pytest.Pytester) -> Callable[..., pytest.RunResult]:
    def run(agent: str, *args: str) -> pytest.RunResult:
        (pytester.path / "it.rules.yaml").write_text(
            "artifact: doc.md\nrules: [{id: a.x.green, description: It is green, check: {contains: green}}]\n"
        )
        words = ("--loop-task", "Do it", "--loop-agent", agent, "--loop-rules", "it.rules.yaml", "--loop-yes")
        return pytester.runpytest_subprocess("-o", "loop_agent_silence=30", *words, *args)

    return run


def test_a_hanging_agent_fails_the_run_with_exit_code_1(loop: Callable[..., pytest.RunResult]) -> None:
    result = loop("command:sleep 60", "--loop-agent-timeout", "1")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            "     writing failed, and is tried again: command:sleep 60 did not end within 1 s",
            "failed after * · phase_error: *",
            "writing failed: command:sleep 60 did not end within 1 s",
        ]
    )
    assert "Traceback" not in result.stdout.str() + result.stderr.str()


SLOW = """
    import os, subprocess, time
    subprocess.Popen(["sleep", "60"], start_new_session=True)
    open(f"started-{os.environ['LOOP_STEP']}", "w")
    time.sleep(60)
"""


@pytest.mark.thorough
@pytest.mark.measured
def test_an_interrupt_ends_parallel_agents_and_resume_ends_leftovers(
    project: Project,
) -> None:
    (project.path / "it.rules.yaml").write_text(
        "rules: [{id: a.x.sea, description: Sea, check: It is about the sea.}]\n"
    )
    # Inside a fence no agent outlives its run.
    pytest_words = [sys.executable, "-m", "pytest", "--loop-fence=off", "--loop-agent"]
    start = [project.script(SLOW).strip(), "--loop-task", "Do it", "--loop-rules", "it.rules.yaml", "--loop-yes"]
    marks = [project.path / "started-PRODUCE", project.path / "started-PREPARE"]

    with subprocess.Popen([*pytest_words, *start], cwd=project.path, stdout=subprocess.PIPE) as run:
        _wait_for(lambda: all(mark.exists() for mark in marks))
        run.send_signal(signal.SIGINT)
        assert run.wait(60) == pytest.ExitCode.INTERRUPTED
    _wait_for(lambda: not project.list_processes())

    for mark in marks:
        mark.unlink(missing_ok=True)
    with subprocess.Popen([*pytest_words[:-1], "--loop-resume"], cwd=project.path, stdout=subprocess.PIPE) as run:
        _wait_for(lambda: all(mark.exists() for mark in marks))
        run.kill()
    assert project.list_processes()
    done = subprocess.run(
        [*pytest_words, "command:false", "--loop-resume"],
        cwd=project.path,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout


def _wait_for(claim: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not claim() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert claim()
