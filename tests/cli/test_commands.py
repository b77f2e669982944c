"""The commands around runs: status, list, history, stop, resume, clean."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pytest_loop.store.project_runs import Store
from tests.cli.conftest import Command, HoldRuns, MakeRun

# -- status, list, history


def test_status_says_in_a_line_where_a_run_is_and_how_to_continue(command: Command, make_run: MakeRun) -> None:
    make_run(max_completed_phase_seconds=60)
    assert command("--loop-status").get_lines() == [
        "guide · running (paused) · iteration 2 of 4 · 1 of 2 pass · 0:03 of 1:00 · cost unknown, 10 tokens",
        "continue: pytest-loop resume --run guide",
    ]


def test_verbose_status_has_the_fields_of_the_run(command: Command, make_run: MakeRun) -> None:
    make_run(max_completed_phase_seconds=60)
    assert command("--loop-status", "-v").get_lines() == [
        "alias  status            iteration  phase  current_step  last_score  updated_at  seconds",
        "guide  running (paused)  2          A      CRITIQUE      0.75        2026-01-02  3/60",
        "breakers: stuck 0 of 5, same_error 0 of 3, thrashing 0 of 5, stagnation 0 of 2",
        "continue: pytest-loop resume --run guide",
    ]


def test_status_names_the_process_of_an_active_run_and_marks_a_crashed_one(
    command: Command, project: Path, make_run: MakeRun, hold_runs: HoldRuns
) -> None:
    make_run()
    pid = hold_runs("guide")
    lines = command("--loop-status=guide").get_lines()
    assert lines[0].startswith("guide · running · iteration 2 of 4 · ")
    assert lines[1].startswith("now: waiting for the next step or an answer, for ")
    assert lines[2] == "stop: pytest-loop stop --run guide"
    assert f"working: process {pid}" in command("--loop-status=guide", "-v").get_lines()[3]
    os.kill(pid, 9)
    time.sleep(0.1)
    assert command("--loop-status=guide").get_lines()[0].startswith("guide · running (crashed) · ")


def test_status_has_the_progress_of_workers(command: Command, make_run: MakeRun, hold_runs: HoldRuns) -> None:
    make_run(steps=7).write_progress("3/8 shards on 4 workers, 12 kB sent")
    hold_runs("guide")
    lines = command("--loop-status").get_lines()
    assert lines[1].startswith("now: pytest judges, for ")
    assert lines[1].endswith(" · 3/8 shards on 4 workers, 12 kB sent")


def test_status_of_a_finished_run_ends_with_its_result(command: Command, make_run: MakeRun) -> None:
    make_run(reason="iteration_limit")
    lines = command("--loop-status").get_lines()
    assert lines[0] == "guide · iteration 2 of 4"
    assert lines[1].startswith("stopped after 0:03 · iteration_limit: the maximum number of iterations is reached · ")
    assert lines[-2:] == [
        "continue: pytest-loop resume --run guide --max-iterations 8",
        "diff: pytest-loop diff · report: pytest-loop report",
    ]


def test_status_json_is_the_result(command: Command, make_run: MakeRun) -> None:
    make_run()
    result = command("--loop-status", "--loop-json", "-").get_json()
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
    assert {name: result[name] for name in expected} == expected
    assert result["usage"] == {"tokens": 10, "cost_usd": None, "seconds": 3.0}


def test_list_has_one_line_per_run_and_names_unreadable_runs(command: Command, make_run: MakeRun) -> None:
    make_run("poem", steps=1, updated="2026-01-03")
    make_run(reason="iteration_limit")
    broken = make_run("broken")
    broken.history.write_text("")
    broken.snapshot.write_text("{}")
    problem = (
        f"the run 'broken' cannot be read: {broken.snapshot} is damaged (run_id: Field required), and "
        f"{broken.history} is missing or empty; bring one of them back, or start anew with --loop-task"
    )
    assert command("--loop-list").get_lines() == [
        "run    status            iteration  score  changed",
        "guide  stopped           2 of 4     0.75   2026-01-02 00:00",
        "poem   running (paused)  1 of 4     0      2026-01-03 00:00",
        f"broken: {problem}",
    ]
    result = command("--loop-list", "--loop-json=-").get_json()
    assert [(run["task_alias"], run["status"]) for run in result] == [
        ("guide", "stopped"),
        ("poem", "running"),
        ("broken", None),
    ]


def test_history_tells_a_run_as_it_was_told_while_it_worked(command: Command, make_run: MakeRun) -> None:
    make_run(reason="iteration_limit")
    *lines, end = command("--loop-history").get_lines()
    assert lines == [
        "     changed nothing in 2.0 s · 10 tokens",
        "1/4  ✗ 1 of 2 pass",
        "     changed nothing",
        "2/4  ✗ 1 of 2 pass",
    ]
    assert end.startswith("stopped after 0:03 · iteration_limit: ")


def test_verbose_history_has_one_line_per_event(command: Command, make_run: MakeRun) -> None:
    make_run(steps=3)
    assert command("--loop-history", "-v").get_lines() == [
        "2026-01-02    1 A run_started",
        "2026-01-02    1 A plan_created        plan=Write it",
        "2026-01-02    1 A artifact_created    artifact_hash=abababab",
        "2026-01-02    1 A evaluation_done     score=0.5 passed=False artifact_hash=abababab",
    ]


def test_history_json_has_run_iterations_and_events(command: Command, make_run: MakeRun) -> None:
    make_run(steps=8)
    result = command("--loop-history=guide", "--loop-json", "-").get_json()
    assert sorted(result) == ["events", "iterations", "run"]
    assert result["run"]["task_alias"] == "guide"
    assert [
        {name: record[name] for name in ("iteration", "phase", "score", "passed")} for record in result["iterations"]
    ] == [
        {"iteration": 1, "phase": "A", "score": 0.5, "passed": False},
        {"iteration": 2, "phase": "A", "score": 0.75, "passed": False},
    ]
    assert [event["event"] for event in result["events"]][:2] == ["run_started", "plan_created"]


def test_status_history_and_list_report_damage(command: Command, make_run: MakeRun) -> None:
    files = make_run()
    files.history.write_bytes(files.history.read_bytes().replace(b'["Write it"]', b'["Rite it!"]'))
    damage = "line 3 of the history does not follow the line before it"
    assert f"damage: {damage}" in command("--loop-status").get_lines()
    assert f"damage: {damage}" in command("--loop-history").get_lines()
    assert command("--loop-list", "--loop-json", "-").get_json()[0]["damage"] == [damage]


def test_json_is_written_into_a_file(command: Command, project: Path, make_run: MakeRun) -> None:
    make_run()
    assert command("--loop-list", "--loop-json", "all.json").get_lines() == ["wrote all.json"]
    assert json.loads((project / "all.json").read_text())[0]["task_alias"] == "guide"
    text = command("--loop-list", "--loop-json", "none/all.json").refusal
    assert text == "--loop-json: cannot write none/all.json: No such file or directory"


def test_commands_in_a_project_without_runs_tell_how_to_start_one(command: Command, project: Path) -> None:
    root = project / ".loop"
    assert command("--loop-list").get_lines() == [f"there is no run in {root}"]
    assert command("--loop-list", "--loop-json", "-").get_json() == []
    for name in ("--loop-status", "--loop-history", "--loop-resume"):
        text = command(name).refusal
        assert text == f"there is no run in {root}: start one with --loop-task"
    text = command("--loop-stop").refusal
    assert text == "there is no active run to stop: pytest-loop list shows all runs"
    assert not root.exists()


# -- choosing a run

COMMANDS = [
    "--loop-status={}",
    "--loop-history={}",
    "--loop-resume={}",
    "--loop-clean={}",
    "--loop-stop --loop-alias={}",
]


@pytest.mark.parametrize("words", COMMANDS)
def test_unknown_or_invalid_alias_is_refused(command: Command, project: Path, make_run: MakeRun, words: str) -> None:
    make_run()
    expected = {
        "poem": f"there is no run 'poem' in {project / '.loop'}: the runs are guide",
        "../x": "expected a name of 3 to 64 lowercase letters, digits and hyphens for a run, found '../x'",
        "/etc": "expected a name of 3 to 64 lowercase letters, digits and hyphens for a run, found '/etc'",
    }
    for alias, message in expected.items():
        assert command(*words.format(alias).split()).refusal == message


@pytest.mark.parametrize("words", [words for words in COMMANDS if "clean" not in words])
def test_ambiguous_alias_prefix_is_refused(command: Command, make_run: MakeRun, words: str) -> None:
    make_run("write-a-guide")
    make_run("write-a-poem")
    text = command(*words.format("write-a").split()).refusal
    assert text == "'write-a' may be any of write-a-guide, write-a-poem: name one of them"


def test_command_without_alias_uses_the_current_run_else_the_latest(
    command: Command, project: Path, make_run: MakeRun
) -> None:
    old, new = make_run("old", updated="2026-01-02"), make_run("new", updated="2026-01-03")
    assert command("--loop-status").get_lines()[0].startswith("new ")
    store = Store(project)
    store.set_current_run(old.read()[0])
    assert command("--loop-status").get_lines()[0].startswith("old ")
    new.history.write_text("?")
    new.snapshot.unlink()
    store.pointer.unlink()
    assert command("--loop-status").get_lines()[0].startswith("old ")


def test_stale_pointer_to_a_finished_run_is_removed(command: Command, project: Path, make_run: MakeRun) -> None:
    over = make_run("over", reason="threshold_reached")
    make_run("later", updated="2026-01-03")
    store = Store(project)
    store.set_current_run(over.read()[0])
    assert command("--loop-status").get_lines()[0].startswith("later ")
    assert not store.pointer.exists()


def test_status_of_an_unreadable_run_is_refused(command: Command, make_run: MakeRun) -> None:
    files = make_run()
    files.history.write_text("")
    files.snapshot.unlink()
    assert command("--loop-status").refusal.startswith("the run 'guide' cannot be read: ")


# -- stop


def test_stop_of_an_idle_run_writes_the_stop(command: Command, project: Path, make_run: MakeRun) -> None:
    files = make_run()
    Store(project).set_current_run(files.read()[0])
    assert command("--loop-stop=going home").get_lines() == ["stopped guide (going home)"]
    state, history = files.read()
    assert (state.status.value, state.stop.reason, state.signals.stop_request) == (
        "stopped",
        "going home",
        "going home",
    )
    assert [event.event for event in history.events][-2:] == ["stop_requested", "stopped"]
    assert history.events[-1].payload.dump()["decision"]["action"] == "escalate"
    assert not Store(project).pointer.exists()
    again = command("--loop-stop", "--loop-alias", "guide").get_lines()
    assert again == ["guide is over already: stopped, going home"]
    assert command("--loop-status").get_lines()[1].startswith("stopped after 0:03 · user_stop (going home): ")


def test_stop_reason_text_cannot_make_a_run_a_success(command: Command, make_run: MakeRun) -> None:
    files = make_run()
    arguments = ("--loop-stop=threshold_reached", "--loop-alias=guide", "--loop-json=-")
    result = command(*arguments).get_json()
    assert (result["status"], result["stop"]) == ("stopped", {"passed": False, "reason": "user_stop"})
    assert not files.read()[0].stop.passed


def test_stop_with_several_active_runs_needs_an_alias(
    command: Command, project: Path, make_run: MakeRun, hold_runs: HoldRuns
) -> None:
    for alias in ("guide", "poem"):
        make_run(alias)
    hold_runs("guide", "poem")
    text = command("--loop-stop").refusal
    assert text == "several runs are active (guide, poem): name one with --loop-alias"
    assert command("--loop-stop", "--loop-alias=poem").get_lines() == ["asked poem to stop (user_stop)"]
    assert Store(project).get_run("poem").requests.read_stop_reason() == "user_stop"
    assert Store(project).get_run("guide").requests.read_stop_reason() is None


# -- clean


def test_clean_without_a_terminal_needs_loop_yes(command: Command, make_run: MakeRun) -> None:
    files = make_run()
    lines = command("--loop-clean=guide").get_lines(code=1)
    assert lines == ["nothing was deleted; --loop-yes deletes without asking"]
    assert files.exists
    assert command("--loop-clean=guide", "--loop-yes").get_lines() == ["deleted guide"]
    assert not files.folder.exists()


def test_clean_keeps_active_runs(command: Command, project: Path, make_run: MakeRun, hold_runs: HoldRuns) -> None:
    for alias in ("guide", "poem", "song"):
        make_run(alias)
    hold_runs("poem")
    stays = "poem is running and stays: stop it first with pytest-loop stop --run poem"
    assert command("--loop-clean=poem", "--loop-yes").get_lines(code=1) == [stays]
    result = command("--loop-clean=all", "--loop-yes", "--loop-json=-")
    assert result.get_json(code=1) == {"deleted": ["guide", "song"], "kept": ["poem"]}
    assert result.err.splitlines() == [stays, "deleted guide, song"]
    assert [run.alias for run in Store(project).list_runs()] == ["poem"]


def test_clean_without_runs_succeeds(command: Command, project: Path) -> None:
    assert command("--loop-clean=all").get_lines() == [f"there is no run in {project / '.loop'}"]


def test_clean_deletes_an_unreadable_run(command: Command, make_run: MakeRun) -> None:
    files = make_run()
    files.history.write_text("")
    files.snapshot.write_text("")
    assert command("--loop-clean=guide", "--loop-yes").get_lines() == ["deleted guide"]


def test_clean_at_a_terminal_asks_for_confirmation(make_run: MakeRun) -> None:
    files = make_run()
    assert _run_at_terminal(b"y\n", "--loop-clean=guide") == (0, "delete guide for good? [y/N] deleted guide\n")
    assert not files.exists


def _run_at_terminal(answer: bytes, *arguments: str) -> tuple[int, str]:
    """Return the exit code and the output of a command with an answer on its terminal."""
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
        pytest.param(b"y\ny\ny\n", pytest.ExitCode.OK, "", id="yes"),
        pytest.param(
            b"\n",
            pytest.ExitCode.INTERRUPTED,
            "interrupted: nothing was started",
            id="no",
            marks=pytest.mark.measured,
        ),
    ],
)
def test_draft_is_confirmed_run_at_terminal(project: Path, answer: bytes, code: int, last: str) -> None:
    (project / "good.md").write_text("# Guide\nNote\n")
    words = ["guide.rules.yaml", "--loop-task", "Write", "--loop-artifact=good.md", "--loop-alias=guide"]
    exit_code, out = _run_at_terminal(answer, *words)
    assert exit_code == code, out
    assert "confirm these success criteria? (e edits them) [y/N] " in out
    assert ("confirm max iterations = 4? (or another number) [y/N] " in out) == (code == 0)
    assert out.endswith(f"{last}\n")
    assert (project / ".loop" / "guide").exists() == (code == 0)


# -- resume, and active runs


def _spawn(project: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "pytest", *arguments]
    return subprocess.Popen(command, cwd=project, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _make_start_arguments(alias: str, *more: str) -> tuple[str, ...]:
    return ("guide.rules.yaml", "--loop-task", "Write", "--loop-alias", alias, "--loop-yes", *more)


def _wait_for(path: Path) -> None:
    until = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < until, f"{path} was not created"
        time.sleep(0.02)


def test_resume_of_a_finished_run_keeps_its_result(command: Command, make_run: MakeRun) -> None:
    make_run("good", reason="threshold_reached")
    make_run("bad", reason="iteration_limit")
    assert command("--loop-resume=good").get_lines() == [
        "good is over: completed, threshold_reached",
        "continue: pytest --loop-task ... (a new run; this one is completed)",
    ]
    assert command("--loop-resume=bad").get_lines(code=1) == [
        "bad is over: stopped, iteration_limit",
        "question: Is another round worth it, or is the rule that fails asking for the wrong thing?",
        "answer: pytest-loop answer TEXT --run bad",
        "continue: pytest-loop resume --run bad --max-iterations 8",
    ]
    result = command("--loop-resume=bad", "--loop-json=-")
    assert result.get_json(code=1)["stop"] == {"passed": False, "reason": "iteration_limit"}


@pytest.mark.parametrize(
    ("reason", "limit"),
    [
        ("threshold_reached", "--loop-max-iterations=9"),
        ("must_not", "--loop-max-iterations=9"),
        ("blocked", "--loop-max-iterations=9"),
        ("iteration_limit", "--loop-max-iterations=4"),
        ("iteration_limit", "--loop-max-iterations=3"),
        ("budget_exceeded", "--loop-max-iterations=9"),
        ("budget_exceeded", "--loop-limit=25 USD"),
    ],
)
def test_limit_that_did_not_stop_the_run_or_was_not_raised_does_not_reopen_it(
    command: Command, make_run: MakeRun, reason: str, limit: str
) -> None:
    files = make_run(reason=reason)
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
def test_raised_limit_reopens_the_run_that_it_stopped(
    command: Command, make_run: MakeRun, reason: str, limit: str, name: str
) -> None:
    """The agent does not exist, so that the run ends at its first request."""
    files = make_run(reason=reason, agents=("command:no-such-program",))
    assert command("--loop-resume=guide", limit).code != 0
    raised = [event for event in files.read_history().events if event.event == "limits_raised"]
    assert [list(event.payload.dump()) for event in raised] == [[name]]


def test_stop_ends_a_working_agent_at_once_and_leaves_other_runs_alone(project: Path) -> None:
    (project / "good.md").write_text("# Guide\nNote\n")
    sleeping = _spawn(project, *_make_start_arguments("sleeping", "--loop-agent=python:writers:sleeper"))
    _wait_for(project / "started")
    judging = _spawn(project, *_make_start_arguments("judging", "--loop-artifact=good.md"))
    stopping = _spawn(project, "--loop-stop=enough", "--loop-alias=sleeping")
    assert stopping.communicate() == ("asked sleeping to stop (enough)\n", "")
    started = time.monotonic()
    out, err = sleeping.communicate(timeout=30)
    assert time.monotonic() - started < 30
    assert (sleeping.returncode, err) == (1, "")
    assert " · user_stop (enough): " in out
    assert "  started: was new, and was removed" in out, "what it wrote beside the document"
    out, err = judging.communicate(timeout=60)
    assert (judging.returncode, err) == (0, ""), out
    store = Store(project)
    states = {run.alias: run.read()[0] for run in store.list_runs()}
    assert {alias: state.stop.reason for alias, state in states.items()} == {
        "sleeping": "enough",
        "judging": "threshold_reached",
    }
    assert states["sleeping"].signals.stop_request == "enough"
    assert sorted(path.name for path in store.root.iterdir()) == [".gitignore", "judging", "sleeping"]
    names = ["discarded", "files.json", "files.kept", "history.jsonl", "left-out.json", "run.json"]
    assert sorted(path.name for path in (store.root / "sleeping").iterdir()) == names


@pytest.mark.thorough
def test_fifth_active_run_is_refused_unless_forced(project: Path, make_run: MakeRun, hold_runs: HoldRuns) -> None:
    (project / "good.md").write_text("# Guide\nNote\n")
    names = [f"run-{number}" for number in range(1, 5)]
    for alias in names:
        make_run(alias)
    hold_runs(*names)
    fifth = _spawn(project, *_make_start_arguments("fifth", "--loop-artifact=good.md"))
    _, err = fifth.communicate()
    assert fifth.returncode == pytest.ExitCode.USAGE_ERROR
    lines = "".join(f"  {name} (iteration 2): Write\n" for name in names)
    assert f"4 runs are active already:\n{lines}stop one with: pytest-loop stop --run NAME" in err
    assert "use --loop-force" in err
    assert not (project / ".loop" / "fifth").exists()
    forced = _spawn(project, *_make_start_arguments("forced", "--loop-artifact=good.md", "--loop-force"))
    out, err = forced.communicate()
    assert (forced.returncode, err) == (0, ""), out


# -- show and diff


def test_show_begins_with_how_many_rules_pass(command: Command, make_run: MakeRun) -> None:
    make_run(reason="iteration_limit")
    assert command("--loop-show").get_lines()[0] == "guide: 1 of 2 pass"


def test_diff_says_if_nothing_was_changed(command: Command, make_run: MakeRun) -> None:
    make_run()
    assert command("--loop-diff=guide").get_lines() == ["nothing was changed"]
