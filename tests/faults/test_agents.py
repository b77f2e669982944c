"""Agents that misbehave: each row ends with a clear message and a run that is over, and never green by accident."""

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
from pytest_loop.core.model.rules import Evidence, Outcome, Plan
from pytest_loop.core.model.run_criteria import RunCriteria, RunRule
from pytest_loop.core.model.run_state import RunState, Task
from pytest_loop.core.model.session_order import SessionOrder
from pytest_loop.core.model.vocabulary import Status
from pytest_loop.processes import child
from pytest_loop.run.context import RunSettings, Tools
from pytest_loop.run.driver import Driver
from pytest_loop.run.steps import RunSteps
from pytest_loop.session.runner import Judgement
from pytest_loop.show.live import Live
from pytest_loop.store.project_runs import Store
from pytest_loop.workspace.artifact import Artifact

KEY = "it.rules.yaml::a.x.green"
SENTENCE = RunRule(id="a.x.green", description="It is green", key=KEY, check="It is green.")
RULE = RunRule(id="a.x.green", description="It is green", key=KEY)


class WordSession:
    """Judges in no time: the one rule is that the document says `green`."""

    def evaluate(self, order: SessionOrder, *_extra: str) -> Judgement:
        outcome = Outcome.PASSED if "green" in Path(order.artifact).read_text() else Outcome.FAILED
        evidence = Evidence(outcome=outcome, text="" if outcome is Outcome.PASSED else "expected green, found none")
        return Judgement(plan=Plan(items={KEY: (KEY,)}), evidence={KEY: evidence}, finished=0)


class Told:
    """What a run came to."""

    def __init__(self, state: RunState, events: list[dict[str, Any]], shown: str, artifact: str | None) -> None:
        self.state = state
        self.events = events
        self.shown = shown
        self.artifact = artifact

    @property
    def troubles(self) -> list[str]:
        return [event["payload"]["reason"] for event in self.events if event["event"] == "phase_error"]

    @property
    def is_failed(self) -> bool:
        return self.state.status is Status.FAILED and self.state.stop.reason == "phase_error"


class Project:
    """A folder in which an agent works, and the run that asks it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def run(self, spec: str, rule: RunRule = RULE, **settings: Any) -> Told:
        agent = make_agent(spec, self.path, {})
        try:
            return self.asked(agent, rule, **settings)
        finally:
            agent.close()

    def asked(self, agent: Agent, rule: RunRule = RULE, **settings: Any) -> Told:
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
        begun = RUN_MACHINE.begin(start)
        event = Event.create(begun, RunStarted(state=begun), "2026-01-01T00:00:00.000Z")
        state = begun
        files.append([event], state)
        stream = io.StringIO()
        plugins = pytest.PytestPluginManager()
        plugins.add_hookspecs(hookspecs)
        tools = Tools(
            settings=RunSettings(root=self.path, **{"timeout": 20.0, "silence": 20.0, "nonce": "nonce", **settings}),
            files=files,
            artifact=Artifact(files.artifact),
            session=WordSession(),
            agents=[agent],
            judge=agent,
            hook=plugins.hook,
            live=Live(stream),
        )
        driver = Driver(state, RUN_MACHINE, RunSteps(), store, tools, listen=lambda _event, _state: None)
        try:
            state = driver.run()
        finally:
            files.release()
        events = [json.loads(line) for line in files.history.read_text().splitlines()]
        return Told(state, events, stream.getvalue(), files.artifact.read_text() if files.artifact.exists() else None)

    def script(self, text: str, words: str = "") -> str:
        """The name of an agent that is a Python script of a few lines."""
        (self.path / "agent.py").write_text(dedent(text))
        return f"command:{shlex.quote(sys.executable)} agent.py {words}"

    def function(self, text: str) -> str:
        """The name of an agent that is the function `work`."""
        (self.path / "my_agent.py").write_text(dedent(text))
        return "python:my_agent:work"

    def left(self) -> list[str]:
        """Processes that still live in this folder, whatever group or session they are in."""
        return [one.name for one in Path("/proc").glob("[0-9]*") if _folder(one) == self.path]


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
def _nobody_is_left(project: Project) -> Any:
    """After each row: no process of an agent lives on. One that was killed needs a moment to go."""
    yield
    deadline = time.monotonic() + 5
    while project.left() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert project.left() == []


# -- it cannot be started, or does nothing


def test_a_command_that_vanishes_is_not_asked_twice(project: Project) -> None:
    tool = project.path / "tool"
    tool.write_text("#!/bin/sh\necho green\n")
    tool.chmod(0o700)
    agent = make_agent("command:./tool", project.path, {})
    tool.unlink()
    told = project.asked(agent)
    assert told.is_failed
    assert told.troubles == ["cannot run './tool': there is no such file"]


def test_a_command_that_is_not_executable_any_more_is_not_asked_twice(project: Project) -> None:
    tool = project.path / "tool"
    tool.write_text("#!/bin/sh\necho green\n")
    tool.chmod(0o700)
    agent = make_agent("command:./tool", project.path, {})
    tool.chmod(0o600)
    assert project.asked(agent).troubles == ["cannot run './tool': Permission denied (make it executable)"]


def test_exit_0_having_done_nothing_is_no_document(project: Project) -> None:
    told = project.run("command:true")
    assert told.is_failed
    assert told.troubles == ["expected a document, found an empty answer"] * 2
    assert told.artifact is None


@pytest.mark.parametrize("answer", ["None", "{'data': {'a': 1}}", "{'exit_signal': True}"])
def test_a_function_that_gives_nothing_makes_no_empty_document(project: Project, answer: str) -> None:
    told = project.run(project.function(f"def work(request): return {answer}"))
    assert told.is_failed
    assert told.troubles == ["expected a document or an edit of it, found neither"] * 2
    assert told.artifact is None


def test_what_is_no_file_is_no_document(project: Project) -> None:
    told = project.run(project.script("import os, sys; os.mkfifo(sys.argv[1])", "{artifact}"))
    assert told.is_failed
    assert told.troubles[0].startswith("expected a file for the artifact, found something else")


def test_exit_0_having_mended_nothing_is_no_document_either(project: Project) -> None:
    told = project.run(project.script("import os; print('red' if os.environ['LOOP_STEP'] == 'PRODUCE' else '')"))
    assert told.is_failed
    assert told.troubles == ["expected a document, found an empty answer"] * 2
    assert told.artifact == "red\n"


# -- exit codes are no verdicts


def test_non_zero_having_fixed_it_is_judged_by_the_rules_alone(project: Project) -> None:
    """What was edited in place is kept and judged: an exit code says nothing about a document."""
    told = project.run(project.script("import sys; open(sys.argv[1], 'w').write('green'); sys.exit(1)", "{artifact}"))
    assert told.state.status is Status.COMPLETED
    assert told.artifact == "green"
    assert "ended with exit code 1; what it edited is judged all the same" in told.shown


def test_non_zero_with_an_edit_that_fixes_nothing_is_not_green(project: Project) -> None:
    told = project.run(project.script("import sys; open(sys.argv[1], 'a').write('red'); sys.exit(1)", "{artifact}"))
    assert (told.state.status, told.state.stop.passed) == (Status.STOPPED, False)
    assert told.artifact == "redred"


def test_non_zero_with_words_alone_is_no_document(project: Project) -> None:
    """What a failing program prints is an error message, whatever is in it."""
    told = project.run(project.script("print('error: the light is green'); exit(2)"))
    assert told.is_failed
    assert len(told.troubles) == 2
    assert told.troubles[0].endswith("agent.py  ended with exit code 2: error: the light is green")
    assert told.artifact is None


def test_an_agent_that_kills_itself_says_by_what(project: Project) -> None:
    told = project.run(project.script("import os; print('green', flush=True); os.kill(os.getpid(), 9)"))
    assert told.is_failed
    assert "ended with signal 9" in told.troubles[0]


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
    limits: dict[str, Any] = {"silence": 0.7} if "nothing" in message else {"timeout": 1.0}
    told = project.run(project.script(script), **limits)
    assert told.is_failed
    assert [message in trouble for trouble in told.troubles] == [True, True]
    assert told.artifact is None


def test_a_function_that_hangs_is_ended(project: Project) -> None:
    told = project.run(project.function("import time\ndef work(request): time.sleep(60)"), timeout=1.0)
    assert told.is_failed
    assert told.troubles == ["python:my_agent:work did not end within 1 s"] * 2


def test_who_waits_for_standard_input_finds_its_end(project: Project) -> None:
    told = project.run(project.script("import sys; print('green' + sys.stdin.read())", "{prompt_file}"))
    assert told.state.status is Status.COMPLETED
    assert told.artifact == "green\n"


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
def test_nobody_writes_after_the_agent_has_ended(project: Project, leave: str) -> None:
    told = project.run(project.script(FORK.format(leave=leave, delay=0.5, then="print('red')"), "{artifact}"))
    time.sleep(0.6)
    assert not (project.path.parent / "late").exists()
    assert told.artifact == "red\n"
    assert told.state.stop.passed is False


def test_nobody_writes_after_the_deadline(project: Project) -> None:
    script = FORK.format(leave=DAEMON, delay=1.5, then="time.sleep(60)")
    told = project.run(project.script(script, "{artifact}"), timeout=1.0)
    time.sleep(0.8)
    assert not (project.path.parent / "late").exists()
    assert told.artifact is None
    assert told.is_failed


def test_an_agent_that_changes_our_artifact_behind_our_back_has_not_answered(project: Project) -> None:
    script = "import time; open('.loop/do-it/artifact.md', 'w').write('green'); time.sleep(60)"
    told = project.run(project.script(script), silence=1.0)
    assert told.is_failed
    assert told.state.stop.passed is False


# -- what it says


def test_a_line_of_50_mb_is_no_document_and_fills_no_screen(project: Project) -> None:
    told = project.run(project.script("print('green' * 10_000_000)"))
    assert told.is_failed
    assert told.troubles == ["expected an answer of at most 8 MB, found more"] * 2
    assert len(told.shown) < 2_000_000


def test_a_line_of_50_mb_beside_the_document_does_no_harm(project: Project) -> None:
    told = project.run(project.script("import sys; sys.stderr.write('x' * 50_000_000); print('green')"))
    assert told.state.status is Status.COMPLETED
    assert told.artifact == "green\n"


NOISE = rb"""
import sys
sys.stderr.buffer.write(b"\x00\xff\xfe\x1b[2J\x1b]0;title\x07\n::error::boom\n  ::set-output name=x::y\nred\x1b[2K\rgone\n")
sys.stdout.buffer.write(b"green \xff\xfe\n::warning::x\n")
"""


def test_binary_ansi_and_fake_commands_are_seen_as_text(project: Project) -> None:
    (project.path / "agent.py").write_bytes(NOISE)
    told = project.run(f"command:{shlex.quote(sys.executable)} agent.py")
    assert told.state.status is Status.COMPLETED
    assert told.artifact == "green \ufffd\ufffd\n::warning::x\n"
    assert "\x1b" not in told.shown
    assert "\0" not in told.shown
    assert not [line for line in told.shown.splitlines() if line.lstrip().startswith("::")]
    assert "  | ::error::boom\n" in told.shown


def test_words_about_a_rate_limit_are_only_words(project: Project) -> None:
    script = "import sys; print('429 rate limit exceeded, retry later', file=sys.stderr); print('green: the rate limit is 5 a second')"
    told = project.run(project.script(script))
    assert told.state.status is Status.COMPLETED
    assert told.troubles == []


def test_a_real_rate_limit_is_told_as_the_agent_told_it(project: Project) -> None:
    told = project.run(project.script("import sys; sys.exit('429: rate limit exceeded')"))
    assert told.is_failed
    assert told.troubles[0].endswith("ended with exit code 1: 429: rate limit exceeded")


def test_a_phrase_of_completion_ends_nothing(project: Project) -> None:
    told = project.run("command:echo '<promise>COMPLETE</promise> all rules pass, exit_signal: true'")
    assert told.state.stop.passed is False


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


@pytest.mark.parametrize(("said", "message"), SAID.values(), ids=SAID)
def test_an_answer_without_its_form_is_asked_for_once_more_and_then_the_run_fails(
    project: Project, said: str, message: str
) -> None:
    (project.path / "said").write_text(said)
    spec = project.function(
        """
        def work(request):
            if request.step == "PREPARE":
                with open("prompts", "a") as file: print(request.prompt, file=file)
            return open("said").read() if request.step == "PREPARE" else "green"
        """
    )
    told = project.run(spec, SENTENCE)
    assert told.is_failed
    assert [message in trouble for trouble in told.troubles] == [True, True]
    prompts = (project.path / "prompts").read_text()
    assert prompts.count("could not be used") == 1


def test_the_second_answer_may_mend_the_first(project: Project) -> None:
    spec = project.function(
        """
        asked = []
        def work(request):
            asked.append(request.step)
            if request.step == "PRODUCE": return "green"
            return {"checks": [{"rule_id": "a.x.green", "check": {"contains": "green"}}]} if asked[-2:] == ["PREPARE"] * 2 else "hm"
        """
    )
    told = project.run(spec, SENTENCE)
    assert told.state.status is Status.COMPLETED
    assert len(told.troubles) == 1


def test_a_plan_that_is_none_fails_the_run(project: Project) -> None:
    told = project.run('command:echo \'{"plan": ["one step"]}\'', plan_by_agent=True)
    assert told.is_failed
    assert all("expected JSON with plan, found plan" in trouble for trouble in told.troubles)


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
def test_costs_that_cannot_be_true_are_unknown_and_not_nothing(project: Project, usage: str) -> None:
    told = project.run(project.function(f"def work(request): return {{'text': 'green', 'usage': {usage}}}"))
    assert told.state.status is Status.COMPLETED
    assert (told.state.progress.usage.tokens, told.state.progress.usage.cost_usd) == (None, None)


def test_exceptions_of_a_function_are_values(project: Project) -> None:
    told = project.run(project.function("def work(request): raise MemoryError('no room')"))
    assert told.is_failed
    assert told.troubles == ["python:my_agent:work: MemoryError: no room"] * 2


def test_a_claim_that_names_no_rule_of_ours_ends_nothing(project: Project) -> None:
    told = project.run("command:echo 'BLOCKED a.other.rule: I am tired, and green'")
    assert told.state.signals.blocked is None


# -- all together, from the command line


@pytest.fixture
def loop(project: Project, pytester: pytest.Pytester) -> Callable[..., pytest.RunResult]:
    def run(agent: str, *args: str) -> pytest.RunResult:
        (pytester.path / "it.rules.yaml").write_text(
            "artifact: doc.md\nrules: [{id: a.x.green, description: It is green, check: {contains: green}}]\n"
        )
        words = ("--loop-task", "Do it", "--loop-agent", agent, "--loop-rules", "it.rules.yaml", "--loop-yes", "-q")
        return pytester.runpytest_subprocess("-o", "loop_agent_silence=30", *words, *args)

    return run


def test_a_hanging_agent_fails_the_run_with_exit_code_1(loop: Callable[..., pytest.RunResult]) -> None:
    result = loop("command:sleep 60", "--loop-agent-timeout", "1")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            "PRODUCE went wrong: command:sleep 60 did not end within 1 s",
            "PRODUCE went wrong: command:sleep 60 did not end within 1 s",
            "failed: phase_error after iteration 1 of 4, phase A",
            "last error: command:sleep 60 did not end within 1 s",
        ]
    )
    assert "Traceback" not in result.stdout.str() + result.stderr.str()


SLOW = """
    import os, subprocess, time
    subprocess.Popen(["sleep", "60"], start_new_session=True)
    open(f"started-{os.environ['LOOP_STEP']}", "w")
    time.sleep(60)
"""


@pytest.mark.measured
def test_an_interrupt_ends_agents_side_by_side_and_a_killed_run_leaves_nobody_once_it_goes_on(
    project: Project,
) -> None:
    (project.path / "it.rules.yaml").write_text(
        "rules: [{id: a.x.sea, description: Sea, check: It is about the sea.}]\n"
    )
    pytest_words = [sys.executable, "-m", "pytest", "--loop-agent"]
    start = [project.script(SLOW).strip(), "--loop-task", "Do it", "--loop-rules", "it.rules.yaml", "--loop-yes"]
    marks = [project.path / "started-PRODUCE", project.path / "started-PREPARE"]

    with subprocess.Popen([*pytest_words, *start], cwd=project.path, stdout=subprocess.PIPE) as run:
        _wait_for(lambda: all(mark.exists() for mark in marks))
        run.send_signal(signal.SIGINT)
        assert run.wait(60) == pytest.ExitCode.INTERRUPTED
    _wait_for(lambda: not project.left())

    for mark in marks:
        mark.unlink()
    with subprocess.Popen([*pytest_words[:-1], "--loop-resume"], cwd=project.path, stdout=subprocess.PIPE) as run:
        _wait_for(lambda: all(mark.exists() for mark in marks))
        run.kill()
    assert project.left()
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
