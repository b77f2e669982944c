"""The commands around runs: status, list, history, stop, resume, clean. None of them starts an iteration, but resume."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any, NamedTuple

import pytest

from pytest_loop.core.events.event import Event
from pytest_loop.core.machine.run_machine import RUN_MACHINE
from pytest_loop.core.model.run_state import RunState
from pytest_loop.store.project_runs import Store
from pytest_loop.store.run_files import RunFiles

ARTIFACT_HASH = "ab" * 32
STEPS: list[tuple[str, dict[str, Any]]] = [
    ("plan_created", {"plan": ["Write it"], "seconds": 1.0}),
    ("artifact_created", {"artifact_hash": ARTIFACT_HASH, "usage": {"tokens": 10}, "seconds": 2.0}),
    ("evaluation_done", {"artifact_hash": "abababab", "score": 0.5, "passed": False, "total": 2, "passing": 1}),
    ("critique_done", {"issues": []}),
    ("refinement_done", {"artifact_hash": ARTIFACT_HASH}),
    ("iteration_advanced", {}),
    ("plan_created", {"plan": ["Mend it"]}),
    ("evaluation_done", {"artifact_hash": "abababab", "score": 0.75, "passed": False, "total": 2, "passing": 1}),
]
GOOD: tuple[str, dict[str, Any]] = (
    "evaluation_done",
    {"artifact_hash": "abababab", "phase": "B", "score": 1.0, "passed": True, "total": 2, "passing": 2},
)
HOLDER = """
    import sys, time
    from pathlib import Path
    from pytest_loop.store.project_runs import Store

    for alias in sys.argv[1:]:
        Store(Path()).get_run(alias).acquire()
    print("held", flush=True)
    time.sleep(60)
"""
RULES = """
    rules:
      - id: a.content.title
        description: It has a title
        check: {contains: "# Guide"}
      - id: b.content.note
        description: It has a note
        check: {contains: "Note"}
"""
WRITERS = """
    import time
    from pathlib import Path


    def sleeper(request):
        Path("started").touch()
        time.sleep(60)
"""
Make = Callable[..., RunFiles]
Command = Callable[..., "Said"]
Hold = Callable[..., int]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "guide.rules.yaml").write_text(dedent(RULES))
    (tmp_path / "writers.py").write_text(dedent(WRITERS))
    return tmp_path


@pytest.fixture
def make(project: Path) -> Make:
    """Write a run as it is after some of its steps, and after the end for a reason; nobody works on it."""

    def write(
        alias: str = "guide", steps: int = 8, reason: str = "", updated: str = "2026-01-02", **state: Any
    ) -> RunFiles:
        fields = {"run_id": f"{alias}-1", "task_alias": alias, "task": {"prompt": "Write"}}
        is_good = reason == "threshold_reached"
        first = RunState.model_validate({**fields, "phase": "B" if is_good else "A"})
        first = first.replace(**{"artifact": "guide.md", **state})
        events = [_event(first, "run_started", {"state": first.model_dump(mode="json")}, updated)]
        now = first
        told = [*STEPS[:2], GOOD] if is_good else STEPS[:steps]
        for kind, payload in [*told, *([("stopped", {"reason": reason})] if reason else [])]:
            events.append(_event(now, kind, payload, updated))
            now = RUN_MACHINE.apply(now, events[-1])
        files = Store(project).get_run(alias)
        files.acquire()
        files.append(events, now)
        files.write_artifact("# Guide\n")
        files.release()
        return files

    return write


def _event(state: RunState, kind: str, payload: dict[str, Any], updated: str) -> Event:
    return Event(
        ts=updated,
        run_id=state.run_id,
        iteration=state.iteration,
        phase=state.phase,
        step=state.current_step.value,
        event=kind,
        payload=payload,
    )


@pytest.fixture
def hold(project: Path) -> Iterator[Hold]:
    """A living process that works on runs; gives its pid."""
    started = []

    def begin(*aliases: str) -> int:
        command = [sys.executable, "-c", dedent(HOLDER), *aliases]
        started.append(subprocess.Popen(command, cwd=project, stdout=subprocess.PIPE))
        assert started[-1].stdout is not None
        started[-1].stdout.readline()
        return started[-1].pid

    yield begin
    for one in started:
        one.kill()
        one.communicate()


class Said(NamedTuple):
    """What a command came to."""

    code: int
    out: str
    err: str

    def lines(self, code: int = 0) -> list[str]:
        """What it told the person, where it had no complaint."""
        assert (self.code, self.err) == (code, ""), self
        return self.out.splitlines()

    def data(self, code: int = 0) -> Any:
        """What it told the machine."""
        assert self.code == code, self
        return json.loads(self.out)

    @property
    def refusal(self) -> str:
        assert (self.code, self.out) == (pytest.ExitCode.USAGE_ERROR, ""), self
        return self.err.strip().removeprefix("ERROR: ")


@pytest.fixture
def command(project: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    """Carry out a pytest command inside this process."""

    def carry_out(*arguments: str) -> Said:
        capsys.readouterr()
        try:
            code: Any = pytest.main(["-s", *arguments])
        except SystemExit as end:
            code = end.code
        return Said(int(code), *capsys.readouterr())

    return carry_out


# -- status, list, history


def test_status_has_its_columns_and_the_way_on(command: Command, make: Make) -> None:
    make(max_completed_phase_seconds=60)
    assert command("--loop-status").lines() == [
        "alias  status            iteration  phase  current_step  last_score  updated_at  seconds",
        "guide  running (paused)  2          A      CRITIQUE      0.75        2026-01-02  3/60",
        "breakers: stuck 0 of 5, same_error 0 of 3, thrashing 0 of 5, stagnation 0 of 2",
        "go on: pytest --loop-resume=guide",
    ]


def test_status_of_a_run_at_work_names_the_process_and_of_a_crashed_one_says_so(
    command: Command, project: Path, make: Make, hold: Hold
) -> None:
    make()
    pid = hold("guide")
    lines = command("--loop-status=guide").lines()
    assert lines[1].startswith("guide  running  2 ")
    assert lines[3] == f"working: process {pid}"
    os.kill(pid, 9)
    time.sleep(0.1)
    assert command("--loop-status=guide").lines()[1].startswith("guide  running (crashed)  2 ")


def test_status_of_a_run_that_is_over_ends_with_its_report(command: Command, make: Make) -> None:
    make(reason="iteration_limit")
    lines = command("--loop-status").lines()
    assert lines[1].startswith("guide  stopped  2 ")
    assert lines[3] == "stopped: iteration_limit after iteration 2 of 4, phase A"
    assert lines[-1] == "go on: pytest --loop-resume=guide --loop-max-iterations 8"


def test_status_for_machines_has_the_words_of_the_result(command: Command, make: Make) -> None:
    make()
    found = command("--loop-status", "--loop-json", "-").data()
    expected = {
        "schema_version": 1,
        "run_id": "guide-1",
        "task_alias": "guide",
        "status": "running",
        "condition": "paused",
        "damage": [],
        "iteration": 2,
        "max_iterations": 4,
        "phase": "A",
        "score": 0.75,
        "stop": {"passed": False, "reason": ""},
        "rules": {"total": 2, "passed": 1},
        "best": {"iteration": 2, "score": 0.75},
    }
    assert {name: found[name] for name in expected} == expected
    assert found["usage"] == {"tokens": 10, "cost_usd": None, "seconds": 3.0}


def test_list_has_one_line_for_each_run_and_names_what_cannot_be_read(command: Command, make: Make) -> None:
    make("poem", steps=1, updated="2026-01-03")
    make(reason="iteration_limit")
    broken = make("broken")
    broken.history.write_text("")
    broken.snapshot.write_text("{}")
    problem = (
        f"the run 'broken' cannot be read: {broken.snapshot} is damaged (run_id: Field required), and "
        f"{broken.history} is missing or empty; bring one of them back, or start anew with --loop-task"
    )
    assert command("--loop-list").lines() == [
        "alias  status            iteration  last_score  updated_at",
        "guide  stopped           2          0.75        2026-01-02",
        "poem   running (paused)  1          0           2026-01-03",
        f"broken: {problem}",
    ]
    found = command("--loop-list", "--loop-json=-").data()
    assert [(one["task_alias"], one["status"]) for one in found] == [
        ("guide", "stopped"),
        ("poem", "running"),
        ("broken", None),
    ]


def test_history_has_one_line_for_each_event(command: Command, make: Make) -> None:
    make(steps=3)
    assert command("--loop-history").lines() == [
        "2026-01-02    1 A run_started",
        "2026-01-02    1 A plan_created",
        "2026-01-02    1 A artifact_created    artifact_hash=abababab",
        "2026-01-02    1 A evaluation_done     score=0.5 passed=False artifact_hash=abababab",
    ]


def test_history_for_machines_has_run_iterations_and_events(command: Command, make: Make) -> None:
    make(steps=8)
    found = command("--loop-history=guide", "--loop-json", "-").data()
    assert sorted(found) == ["events", "iterations", "run"]
    assert found["run"]["task_alias"] == "guide"
    assert [{name: one[name] for name in ("iteration", "phase", "score", "passed")} for one in found["iterations"]] == [
        {"iteration": 1, "phase": "A", "score": 0.5, "passed": False},
        {"iteration": 2, "phase": "A", "score": 0.75, "passed": False},
    ]
    assert [one["event"] for one in found["events"]][:2] == ["run_started", "plan_created"]


def test_damage_is_told_by_every_command_that_reads(command: Command, make: Make) -> None:
    files = make()
    files.history.write_bytes(files.history.read_bytes().replace(b'["Write it"]', b'["Rite it!"]'))
    damage = "line 3 of the history does not follow the line before it"
    assert f"damage: {damage}" in command("--loop-status").lines()
    assert f"damage: {damage}" in command("--loop-history").lines()
    assert command("--loop-list", "--loop-json", "-").data()[0]["damage"] == [damage]


def test_result_for_machines_goes_into_a_file(command: Command, project: Path, make: Make) -> None:
    make()
    assert command("--loop-list", "--loop-json", "all.json").lines() == ["wrote all.json"]
    assert json.loads((project / "all.json").read_text())[0]["task_alias"] == "guide"
    text = command("--loop-list", "--loop-json", "none/all.json").refusal
    assert text == "--loop-json: cannot write none/all.json: No such file or directory"


def test_project_without_runs_is_told_how_to_start_one(command: Command, project: Path) -> None:
    root = project / ".loop"
    assert command("--loop-list").lines() == [f"there is no run in {root}"]
    assert command("--loop-list", "--loop-json", "-").data() == []
    for name in ("--loop-status", "--loop-history", "--loop-resume"):
        text = command(name).refusal
        assert text == f"there is no run in {root}: start one with --loop-task"
    text = command("--loop-stop").refusal
    assert text == "there is no active run to stop: --loop-list shows all of them"
    assert not root.exists()


# -- which run is meant

COMMANDS = [
    "--loop-status={}",
    "--loop-history={}",
    "--loop-resume={}",
    "--loop-clean={}",
    "--loop-stop --loop-alias={}",
]


@pytest.mark.parametrize("words", COMMANDS)
def test_run_that_is_unknown_or_no_name_is_refused(command: Command, project: Path, make: Make, words: str) -> None:
    make()
    expected = {
        "poem": f"there is no run 'poem' in {project / '.loop'}: known are guide",
        "../x": "expected a name of 3 to 64 lowercase letters, digits and hyphens for a run, found '../x'",
        "/etc": "expected a name of 3 to 64 lowercase letters, digits and hyphens for a run, found '/etc'",
    }
    for alias, message in expected.items():
        assert command(*words.format(alias).split()).refusal == message


@pytest.mark.parametrize("words", [one for one in COMMANDS if "clean" not in one])
def test_beginning_that_several_runs_share_is_refused(command: Command, make: Make, words: str) -> None:
    make("write-a-guide")
    make("write-a-poem")
    text = command(*words.format("write-a").split()).refusal
    assert text == "'write-a' may be any of write-a-guide, write-a-poem: name one of them"


def test_active_run_is_meant_where_none_is_named_and_else_the_latest(
    command: Command, project: Path, make: Make
) -> None:
    old, new = make("old", updated="2026-01-02"), make("new", updated="2026-01-03")
    assert "new " in command("--loop-status").lines()[1]
    store = Store(project)
    store.set_current_run(old.read()[0])
    assert "old " in command("--loop-status").lines()[1]
    new.history.write_text("?")
    new.snapshot.unlink()
    store.pointer.unlink()
    assert "old " in command("--loop-status").lines()[1]


def test_pointer_that_a_crash_left_at_a_finished_run_is_taken_away(command: Command, project: Path, make: Make) -> None:
    over = make("over", reason="threshold_reached")
    make("later", updated="2026-01-03")
    store = Store(project)
    store.set_current_run(over.read()[0])
    assert "later " in command("--loop-status").lines()[1]
    assert not store.pointer.exists()


def test_project_with_nothing_but_a_broken_run_says_so(command: Command, make: Make) -> None:
    files = make()
    files.history.write_text("")
    files.snapshot.unlink()
    assert command("--loop-status").refusal.startswith("the run 'guide' cannot be read: ")


# -- stop


def test_run_that_nobody_works_on_is_marked_as_stopped(command: Command, project: Path, make: Make) -> None:
    files = make()
    Store(project).set_current_run(files.read()[0])
    assert command("--loop-stop=going home").lines() == ["stopped guide (going home)"]
    state, history = files.read()
    assert (state.status.value, state.stop.reason, state.signals.stop_request) == ("stopped", "user_stop", "going home")
    assert [one.event for one in history.events][-2:] == ["stop_requested", "stopped"]
    assert history.events[-1].payload.dump()["decision"]["action"] == "escalate"
    assert not Store(project).pointer.exists()
    again = command("--loop-stop", "--loop-alias", "guide").lines()
    assert again == ["guide is over already: stopped, user_stop"]


def test_no_word_makes_a_stopped_run_a_success(command: Command, make: Make) -> None:
    files = make()
    arguments = ("--loop-stop=threshold_reached", "--loop-alias=guide", "--loop-json=-")
    found = command(*arguments).data()
    assert (found["status"], found["stop"]) == ("stopped", {"passed": False, "reason": "user_stop"})
    assert not files.read()[0].stop.passed


def test_which_of_several_runs_is_to_stop_is_not_guessed(
    command: Command, project: Path, make: Make, hold: Hold
) -> None:
    for alias in ("guide", "poem"):
        make(alias)
    hold("guide", "poem")
    text = command("--loop-stop").refusal
    assert text == "several runs are active (guide, poem): name one with --loop-alias"
    assert command("--loop-stop", "--loop-alias=poem").lines() == ["asked poem to stop (user_stop)"]
    assert Store(project).get_run("poem").read_stop_request() == "user_stop"
    assert Store(project).get_run("guide").read_stop_request() is None


# -- clean


def test_clean_asks_and_off_a_terminal_needs_a_yes(command: Command, make: Make) -> None:
    files = make()
    lines = command("--loop-clean=guide").lines(code=1)
    assert lines == ["nothing was deleted; --loop-yes deletes without asking"]
    assert files.exists
    assert command("--loop-clean=guide", "--loop-yes").lines() == ["deleted guide"]
    assert not files.folder.exists()


def test_clean_never_takes_a_run_at_work_and_all_takes_the_others(
    command: Command, project: Path, make: Make, hold: Hold
) -> None:
    for alias in ("guide", "poem", "song"):
        make(alias)
    hold("poem")
    stays = "poem is running and stays: stop it first with --loop-stop --loop-alias poem"
    assert command("--loop-clean=poem", "--loop-yes").lines(code=1) == [stays]
    result = command("--loop-clean=all", "--loop-yes", "--loop-json=-")
    assert result.data(code=1) == {"deleted": ["guide", "song"], "kept": ["poem"]}
    assert result.err.splitlines() == [stays, "deleted guide, song"]
    assert [one.alias for one in Store(project).list_runs()] == ["poem"]


def test_clean_of_nothing_is_done_at_once(command: Command, project: Path) -> None:
    assert command("--loop-clean=all").lines() == [f"there is no run in {project / '.loop'}"]


def test_clean_takes_a_run_that_cannot_be_read(command: Command, make: Make) -> None:
    files = make()
    files.history.write_text("")
    files.snapshot.write_text("")
    assert command("--loop-clean=guide", "--loop-yes").lines() == ["deleted guide"]


def test_clean_at_a_terminal_does_what_the_person_says(make: Make) -> None:
    files = make()
    assert _at_a_terminal(b"y\n", "--loop-clean=guide") == (0, "delete guide for good? [y/N] deleted guide\n")
    assert not files.exists


def _at_a_terminal(answer: bytes, *arguments: str) -> tuple[int, str]:
    """The exit code and the output of a command to which a person answers."""
    ours, theirs = pty.openpty()
    words = [sys.executable, "-m", "pytest", *arguments]
    with subprocess.Popen(words, stdin=theirs, stdout=subprocess.PIPE, text=True) as process:
        os.write(ours, answer)
        out, _ = process.communicate()
    os.close(ours)
    os.close(theirs)
    return process.returncode, out


# -- start


@pytest.mark.parametrize(
    ("answer", "code", "last"),
    [
        pytest.param(b"y\n", pytest.ExitCode.OK, "", id="yes"),
        pytest.param(
            b"\n",
            pytest.ExitCode.INTERRUPTED,
            "interrupted: nothing was started",
            id="no",
            marks=pytest.mark.measured,
        ),
    ],
)
def test_at_a_terminal_the_draft_is_confirmed(project: Path, answer: bytes, code: int, last: str) -> None:
    (project / "good.md").write_text("# Guide\nNote\n")
    words = ["guide.rules.yaml", "--loop-task", "Write", "--loop-artifact=good.md", "--loop-alias=guide"]
    found, out = _at_a_terminal(answer, *words)
    assert found == code, out
    assert "start? [y/N] " in out
    assert out.endswith(f"{last}\n")
    assert (project / ".loop" / "guide").exists() == (code == 0)


# -- resume, and runs at work


def _pytest(project: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "pytest", *arguments]
    return subprocess.Popen(command, cwd=project, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _start(alias: str, *more: str) -> tuple[str, ...]:
    return ("guide.rules.yaml", "--loop-task", "Write", "--loop-alias", alias, "--loop-yes", *more)


def _wait_for(path: Path) -> None:
    until = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < until, f"nobody made {path}"
        time.sleep(0.02)


def test_finished_run_says_so_and_how_to_go_on_and_is_green_only_if_it_was(command: Command, make: Make) -> None:
    make("good", reason="threshold_reached")
    make("bad", reason="iteration_limit")
    assert command("--loop-resume=good").lines() == [
        "good is over: completed, threshold_reached",
        "go on: pytest --loop-task ... (a new run; this one is completed)",
    ]
    assert command("--loop-resume=bad").lines(code=1) == [
        "bad is over: stopped, iteration_limit",
        "go on: pytest --loop-resume=bad --loop-max-iterations 8",
    ]
    result = command("--loop-resume=bad", "--loop-json=-")
    assert result.data(code=1)["stop"] == {"passed": False, "reason": "iteration_limit"}


@pytest.mark.parametrize(
    ("reason", "limit"),
    [
        ("threshold_reached", "--loop-max-iterations=9"),
        ("phase_error", "--loop-max-iterations=9"),
        ("user_stop", "--loop-max-iterations=9"),
        ("iteration_limit", "--loop-max-iterations=4"),
        ("iteration_limit", "--loop-max-iterations=3"),
        ("budget_exceeded", "--loop-max-iterations=9"),
        ("budget_exceeded", "--loop-budget=25"),
    ],
)
def test_only_a_limit_that_is_raised_opens_a_run_and_only_one_that_it_stopped(
    command: Command, make: Make, reason: str, limit: str
) -> None:
    files = make(reason=reason)
    before = files.history.read_bytes()
    result = command("--loop-resume=guide", limit)
    assert result.code == (0 if reason == "threshold_reached" else 1)
    assert result.out.startswith("guide is over: ")
    assert files.history.read_bytes() == before


@pytest.mark.parametrize(
    ("reason", "limit", "name"),
    [
        ("iteration_limit", "--loop-max-iterations=5", "max_iterations"),
        ("stagnation", "--loop-max-iterations=5", "max_iterations"),
        ("budget_exceeded", "--loop-budget=26", "usd"),
        ("budget_exceeded", "--loop-max-tokens=100", "tokens"),
        ("budget_exceeded", "--loop-max-seconds=100", "max_completed_phase_seconds"),
    ],
)
def test_raised_limit_opens_a_run_that_it_has_stopped(
    command: Command, make: Make, reason: str, limit: str, name: str
) -> None:
    """There is no such agent, so that the run gets no further than to ask it."""
    files = make(reason=reason, agents=("command:no-such-program",))
    assert command("--loop-resume=guide", limit).code != 0
    raised = [one for one in files.read_history().events if one.event == "limits_raised"]
    assert [list(one.payload.dump()) for one in raised] == [[name]]


def test_stop_from_another_terminal_ends_a_working_agent_at_once_and_another_run_goes_on(project: Path) -> None:
    """Two runs in one project: one is stopped, the other comes to its own end."""
    (project / "good.md").write_text("# Guide\nNote\n")
    sleeping = _pytest(project, *_start("sleeping", "--loop-agent=python:writers:sleeper"))
    _wait_for(project / "started")
    judging = _pytest(project, *_start("judging", "--loop-artifact=good.md"))
    stopping = _pytest(project, "--loop-stop=enough", "--loop-alias=sleeping")
    assert stopping.communicate() == ("asked sleeping to stop (enough)\n", "")
    started = time.monotonic()
    out, err = sleeping.communicate(timeout=30)
    assert time.monotonic() - started < 30
    assert (sleeping.returncode, err) == (1, "")
    assert "stopped: user_stop after iteration 1 of 4, phase A" in out
    out, err = judging.communicate(timeout=60)
    assert (judging.returncode, err) == (0, ""), out
    store = Store(project)
    states = {one.alias: one.read()[0] for one in store.list_runs()}
    assert {alias: state.stop.reason for alias, state in states.items()} == {
        "sleeping": "user_stop",
        "judging": "threshold_reached",
    }
    assert states["sleeping"].signals.stop_request == "enough"
    assert sorted(one.name for one in store.root.iterdir()) == ["judging", "sleeping"]
    assert sorted(one.name for one in (store.root / "sleeping").iterdir()) == ["history.jsonl", "run.json"]


def test_fifth_run_is_refused_with_the_four_and_force_allows_it(project: Path, make: Make, hold: Hold) -> None:
    (project / "good.md").write_text("# Guide\nNote\n")
    names = [f"run-{number}" for number in range(1, 5)]
    for alias in names:
        make(alias)
    hold(*names)
    fifth = _pytest(project, *_start("fifth", "--loop-artifact=good.md"))
    _, err = fifth.communicate()
    assert fifth.returncode == pytest.ExitCode.USAGE_ERROR
    assert "4 runs are active already:\n  run-1\n  run-2\n  run-3\n  run-4\nstop one with --loop-stop" in err
    assert "use --loop-force" in err
    assert not (project / ".loop" / "fifth").exists()
    forced = _pytest(project, *_start("forced", "--loop-artifact=good.md", "--loop-force"))
    out, err = forced.communicate()
    assert (forced.returncode, err) == (0, ""), out
