"""The files of a run are read as they were written; lost ones are rebuilt or reported."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_loop.core.events.event import Event
from pytest_loop.core.events.run_payloads import ArtifactCreated
from pytest_loop.core.model.run_state import RunState, Usage
from pytest_loop.core.model.vocabulary import Kind
from pytest_loop.errors import BusyError, StateError
from pytest_loop.store.project_runs import Store
from pytest_loop.store.run_files import RunFiles
from pytest_loop.store.signature import Trust

MakeEvent = Callable[..., Event]
PRODUCED = Kind.ARTIFACT_CREATED


def _edit(files: RunFiles, **changes: Any) -> None:
    data = json.loads(files.snapshot.read_bytes()) | changes
    files.snapshot.write_text(json.dumps(data))


def _reopen(files: RunFiles) -> RunFiles:
    """Open the same run as another process would."""
    files.release()
    reopened = RunFiles(files.folder, files.project)
    reopened.acquire()
    return reopened


# -- the state


def test_state_is_the_fold_of_the_history_and_equals_run_json(files: RunFiles, planned: RunState) -> None:
    state, history = files.read()
    assert state == planned
    assert [event.event for event in history.events] == ["run_started", "plan_created", "coffee_made"]
    data = json.loads(files.snapshot.read_bytes())
    assert (data["schema_version"], data["current_step"], data["plan"]) == (1, "PRODUCE_PREPARE", ["one", "two"])


def test_history_wins_over_an_older_snapshot(files: RunFiles, started: RunState, event: MakeEvent) -> None:
    before = files.snapshot.read_bytes()
    files.append([event("plan_created", plan=["one"])], started)
    files.snapshot.write_bytes(before)
    assert files.read()[0].plan == ("one",)


def test_edits_of_run_json_are_ignored(files: RunFiles, planned: RunState) -> None:
    _edit(files, max_iterations=99, status="completed", stop={"passed": True, "reason": "threshold_reached"})
    assert files.read()[0] == planned


DAMAGED: dict[str, Callable[[Path], object]] = {
    "missing": lambda path: None,
    "empty": lambda path: path.write_text(""),
    "an empty object": lambda path: path.write_text("{}"),
    "a list": lambda path: path.write_text("[]"),
    "half of it": lambda path: path.write_text('{"run_id": "guide-1", "task'),
    "no text": lambda path: path.write_bytes(b"\xff\xfe\x00"),
    "wrong types": lambda path: path.write_text('{"schema_version": "one", "run_id": 7, "task": [], "iteration": "x"}'),
    "a number that is none": lambda path: path.write_text('{"run_id": "x", "task_alias": "x", "last_score": NaN}'),
    "endless nesting": lambda path: path.write_text('{"a":' * 100_000),
    "a folder": lambda path: path.mkdir(),
    "a pipe": lambda path: os.mkfifo(path),
    "a link to nothing": lambda path: path.symlink_to("nowhere"),
    "a link to another file": lambda path: path.symlink_to("history.jsonl"),
}


@pytest.mark.parametrize("damage", DAMAGED.values(), ids=DAMAGED.keys())
def test_damaged_run_json_is_rebuilt_from_the_history(
    files: RunFiles, planned: RunState, damage: Callable[[Path], object], event: MakeEvent
) -> None:
    files.snapshot.unlink()
    damage(files.snapshot)
    again = _reopen(files)
    state, history = again.read()
    assert (state, history.damage) == (planned, [])
    if files.snapshot.is_dir():
        with pytest.raises(StateError, match=r"cannot write .*: Is a directory; move that folder away"):
            again.write_snapshot(state)
    else:
        again.write_snapshot(state)
        assert json.loads(files.snapshot.read_bytes())["plan"] == ["one", "two"]
        assert not files.snapshot.is_symlink()
    again.release()


@pytest.mark.parametrize("damage", DAMAGED.values(), ids=DAMAGED.keys())
def test_loss_of_both_files_is_a_clear_message(
    files: RunFiles, planned: RunState, damage: Callable[[Path], object]
) -> None:
    files.snapshot.unlink()
    damage(files.snapshot)
    files.history.unlink()
    expected = (
        r"the run 'guide' cannot be read: .*run\.json.*, and .*/history\.jsonl is missing or empty; "
        "bring one of them back, or start anew with --loop-task"
    )
    with pytest.raises(StateError, match=expected):
        files.read()


def test_run_json_of_a_newer_version_is_refused(files: RunFiles, planned: RunState) -> None:
    _edit(files, schema_version=2)
    with pytest.raises(StateError, match=r"newer version \(schema 2, known is 1\): update pytest-agent-loop"):
        files.read()


def test_wrong_type_is_in_the_message(files: RunFiles, planned: RunState) -> None:
    _edit(files, iteration=0)
    files.history.write_text("?\n?\n")
    with pytest.raises(
        StateError, match=r"damaged \(iteration: Input should be greater.*\), and line 1 of the history"
    ):
        files.read()


@pytest.mark.parametrize("lost", ["all", "the end"])
def test_lost_history_is_reported_and_the_run_continues_from_run_json(
    files: RunFiles, planned: RunState, event: MakeEvent, lost: str
) -> None:
    lines = files.history.read_bytes().splitlines(keepends=True)
    files.history.write_bytes(b"" if lost == "all" else lines[0])
    again = _reopen(files)
    state, history = again.read()
    assert state == planned
    assert history.damage == ["the history lacks events that run.json was made from"]
    again.repair(history)
    again.append([event("coffee_made", cups=3)], state)
    again = _reopen(again)
    state, history = again.read()
    assert (state.plan, history.damage) == (("one", "two"), [])
    assert [event.event for event in history.events][-2:] == [Kind.RUN_ADOPTED.value, "coffee_made"]
    assert history.events[-2].payload.dump()["because"] == ["the history lacks events that run.json was made from"]
    again.release()


def test_repaired_history_leads_to_the_state_and_still_reports_damage(
    files: RunFiles, planned: RunState, event: MakeEvent
) -> None:
    lines = files.history.read_bytes().splitlines(keepends=True)
    files.history.write_bytes(lines[0] + b"???\n" + lines[2])
    again = _reopen(files)
    state, history = again.read()
    assert state == planned
    again.repair(history)
    _edit(again, max_iterations=99)
    state, history = again.read()
    assert state == planned
    assert history.damage[0] == "line 2 of the history cannot be read"
    again.release()


def test_missing_newline_is_added_before_the_next_event(files: RunFiles, planned: RunState, event: MakeEvent) -> None:
    files.history.write_bytes(files.history.read_bytes().rstrip(b"\n"))
    again = _reopen(files)
    state, history = again.read()
    again.repair(history)
    again.append([event("coffee_made", cups=3)], state)
    assert len(files.history.read_bytes().splitlines()) == 4
    assert again.read()[1].damage == []
    again.release()


def test_unknown_keys_of_run_json_survive_and_known_ones_are_overwritten(
    files: RunFiles, planned: RunState, event: MakeEvent
) -> None:
    task = {"prompt": "Write a poem", "mood": "merry"}
    _edit(files, note={"by": "another tool"}, task=task)
    again = _reopen(files)
    state, history = again.read()
    again.repair(history)
    again.append([event("coffee_made", cups=3)], state)
    data = json.loads(files.snapshot.read_bytes())
    assert data["note"] == {"by": "another tool"}
    assert data["task"] == {"prompt": "Write a guide", "ideal_result": "", "mood": "merry"}
    again.release()


def test_unpaired_surrogates_are_replaced(files: RunFiles, planned: RunState) -> None:
    files.write_snapshot(planned.model_copy(update={"error_reason": "half \ud800"}))
    assert json.loads(files.snapshot.read_bytes())["error_reason"] == "half ?"
    assert files.write_artifact("half \ud800") == hashlib.sha256(b"half ?").hexdigest()


# -- the answer of an agent on its way


def test_pending_answer_is_recovered_with_its_payload(files: RunFiles, planned: RunState) -> None:
    payload = files.write_answer(ArtifactCreated(exit_signal=True, usage=Usage(tokens=7)), "# Guide\n", files.artifact)
    assert payload.artifact_hash == hashlib.sha256(b"# Guide\n").hexdigest()
    files.artifact.unlink()
    again = _reopen(files)
    again.read()
    assert again.recover_answer(PRODUCED, files.artifact, "") == payload
    assert files.artifact.read_text() == "# Guide\n"
    again.release()


def test_pending_answer_is_deleted_once_its_event_is_recorded(
    files: RunFiles, planned: RunState, event: MakeEvent
) -> None:
    payload = files.write_answer(ArtifactCreated(), "# Guide\n", files.artifact)
    data = (files.folder / ".answer.json").read_bytes()
    files.append([event("artifact_created", **payload.dump())], planned)
    assert not (files.folder / ".answer.json").exists()
    (files.folder / ".answer.json").write_bytes(data)
    assert files.recover_answer(PRODUCED, files.artifact, "") is None


def test_pending_answer_survives_a_repair(files: RunFiles, planned: RunState) -> None:
    payload = files.write_answer(ArtifactCreated(), "# Guide\n", files.artifact)
    again = _reopen(files)
    again.repair(again.read()[1])
    assert again.recover_answer(PRODUCED, files.artifact, "") == payload
    again.release()


def test_outdated_snapshot_is_rewritten_by_a_repair(files: RunFiles, started: RunState, event: MakeEvent) -> None:
    before = files.snapshot.read_bytes()
    files.append([event("plan_created", plan=["one"])], started)
    files.snapshot.write_bytes(before)
    again = _reopen(files)
    again.repair(again.read()[1])
    assert json.loads(files.snapshot.read_bytes())["plan"] == ["one"]
    again.release()


def test_pending_answer_of_another_step_is_not_recovered(files: RunFiles, planned: RunState) -> None:
    files.write_answer(ArtifactCreated(), "# Guide\n", files.artifact)
    assert files.recover_answer(Kind.REFINEMENT_DONE, files.artifact, "") is None


def test_pending_answer_never_overwrites_an_edited_artifact(files: RunFiles, planned: RunState) -> None:
    files.write_answer(ArtifactCreated(), "# Guide\n", files.artifact)
    files.artifact.write_text("mine")
    assert files.recover_answer(PRODUCED, files.artifact, "") is None
    assert files.artifact.read_text() == "mine"


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"after": "", "event": "artifact_created", "payload": 3}'])
def test_damaged_pending_answer_is_ignored(files: RunFiles, text: str) -> None:
    (files.folder / ".answer.json").write_text(text)
    assert files.recover_answer(PRODUCED, files.artifact, "") is None


@pytest.mark.parametrize("has_artifact", [True, False])
def test_artifact_of_a_resumed_run_is_written_again_with_its_folder(
    files: RunFiles, planned: RunState, event: MakeEvent, has_artifact: bool
) -> None:
    if has_artifact:
        files.write_artifact("# Guide\n")
    again = _reopen(files)
    again.repair(again.read()[1])
    again.append([event("coffee_made")], planned)
    shutil.rmtree(files.folder)
    with pytest.raises(StateError, match="deleted or replaced"):
        again.append([event("coffee_made")], planned)
    assert files.artifact.exists() == has_artifact
    again.release()


def test_folder_of_an_artifact_outside_of_the_run_is_created(
    files: RunFiles, planned: RunState, tmp_path: Path
) -> None:
    files.write_answer(ArtifactCreated(), "# Guide\n", tmp_path / "docs" / "new" / "guide.md")
    assert (tmp_path / "docs" / "new" / "guide.md").read_text() == "# Guide\n"


# -- one writer


def test_run_has_one_writer_and_any_number_of_readers(files: RunFiles, planned: RunState) -> None:
    other = RunFiles(files.folder)
    assert other.is_busy
    assert other.read()[0] == planned
    with pytest.raises(BusyError, match=f"the run 'guide' is being worked on: process {os.getpid()} works there"):
        other.acquire()


def test_drafts_of_a_crash_are_removed(files: RunFiles, planned: RunState) -> None:
    (files.folder / ".run.json.tmp").write_text("{")
    _reopen(files).release()
    assert sorted(path.name for path in files.folder.iterdir()) == ["history.jsonl", "run.json"]


@pytest.mark.parametrize("action", ["deleted", "replaced", "deleted with everything"])
def test_deleted_history_is_written_again_and_ends_the_run(
    files: RunFiles, planned: RunState, event: MakeEvent, action: str
) -> None:
    files.write_artifact("# Guide\n")
    if action == "deleted with everything":
        shutil.rmtree(files.folder.parent)
    else:
        files.history.unlink()
    if action == "replaced":
        files.history.write_text("{}\n")
    expected = (
        r"history\.jsonl was deleted or replaced while the run was going on; what this process knew is written again: "
        "look who did that, then go on with pytest-loop resume --run guide"
    )
    with pytest.raises(StateError, match=expected):
        files.append([event("coffee_made", cups=3)], planned)
    again = _reopen(files)
    state, history = again.read()
    assert (state, history.damage, len(history.events)) == (planned, [], 4)
    assert files.artifact.read_text() == "# Guide\n"
    again.release()


def test_history_changed_by_another_process_ends_the_run(files: RunFiles, planned: RunState, event: MakeEvent) -> None:
    with files.history.open("ab") as file:
        file.write(b'{"event": "stopped"')
    with pytest.raises(StateError, match=r"history\.jsonl was changed while the run was going on"):
        files.append([event("coffee_made", cups=3)], planned)
    state, history = files.read()
    assert state == planned
    assert history.damage == ["line 4 of the history cannot be read"]
    assert history.events[-1].payload.dump() == {"cups": 3}


def test_pipe_in_place_of_a_history_is_an_error_and_does_not_block(
    files: RunFiles, planned: RunState, event: MakeEvent
) -> None:
    again = _reopen(files)
    files.history.unlink()
    os.mkfifo(files.history)
    with pytest.raises(StateError, match=r"cannot write .*: it is not a file"):
        again.append([event("coffee_made")], planned)
    again.release()


# -- a word from another terminal


def test_stop_request_stays_until_it_is_in_the_history(files: RunFiles, planned: RunState, event: MakeEvent) -> None:
    assert files.requests.read_stop_reason() is None
    RunFiles(files.folder).requests.ask_to_stop("going home")
    assert files.requests.read_stop_reason() == "going home"
    files.append([event("coffee_made")], planned)
    assert files.requests.read_stop_reason() == "going home"
    files.append([event("stop_requested")], planned.replace(stop_request="going home"))
    assert files.requests.read_stop_reason() is None


def test_pause_request_keeps_a_run_from_continuing_until_it_is_cleared(files: RunFiles, planned: RunState) -> None:
    assert files.requests.can_continue
    RunFiles(files.folder).requests.ask_to_pause()
    assert (files.requests.has_pause, files.requests.can_continue) == (True, False)
    files.requests.clear()
    assert files.requests.can_continue


def test_inferred_rules_are_saved_once_and_removed_with_an_empty_folder(tmp_path: Path) -> None:
    files = RunFiles(tmp_path / ".loop" / "guide")
    assert [files.save_rules("rules: []\n"), files.save_rules("rules: []\n")] == [False, True]
    files.remove_rules()
    assert list(tmp_path.iterdir()) == []


def test_attempts_after_a_crash_count_until_the_next_evaluation(files: RunFiles, planned: RunState) -> None:
    files.record_attempt(2, 7)
    other = RunFiles(files.folder)
    assert (other.count_attempts(7), other.count_attempts(8), other.pid) == (2, 0, str(os.getpid()))


def test_alias_of_a_run_is_the_name_of_its_folder(files: RunFiles, planned: RunState, store: Store) -> None:
    files.release()
    files.folder.rename(store.root / "manual")
    assert store.get_run("manual").read()[0].task_alias == "manual"


# -- signatures


def _find_trust(files: RunFiles) -> Trust:
    reader = RunFiles(files.folder, files.project)
    reader.read()
    return reader.trust


def _rewrite_history(files: RunFiles, old: str, new: str, **fields: Any) -> None:
    """Rewrite the history with a chain of hashes that fits."""
    last, lines = "", []
    for line in files.history.read_text().splitlines():
        text = json.dumps({**json.loads(line.replace(old, new)), "prev": last, **fields}, ensure_ascii=False)
        last = hashlib.sha256(text.encode()).hexdigest()[:16]
        lines.append(text + "\n")
    files.history.write_text("".join(lines))
    files.snapshot.unlink()


@pytest.mark.usefixtures("planned")
def test_run_that_is_written_here_is_signed(files: RunFiles) -> None:
    assert _find_trust(files) is Trust.SIGNED
    files.history.write_text("damaged\n" * 2)
    assert _find_trust(files) is Trust.SIGNED, "run.json is signed, too"


@pytest.mark.usefixtures("planned")
@pytest.mark.parametrize("fields", [{}, {"mac": ""}])
def test_rewritten_history_is_noticed(files: RunFiles, fields: dict[str, str]) -> None:
    _rewrite_history(files, "Write a guide", "Write nothing", **fields)
    assert not files.read_history().damage
    assert _find_trust(files) is Trust.REWRITTEN


@pytest.mark.usefixtures("planned")
def test_rewritten_snapshot_of_a_lost_history_is_noticed(files: RunFiles) -> None:
    files.history.unlink()
    _edit(files, max_iterations=99)
    assert _find_trust(files) is Trust.REWRITTEN


@pytest.mark.usefixtures("planned")
def test_run_of_another_machine_is_unknown_until_it_is_adopted(
    files: RunFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "other"))
    reader = _reopen(files)
    _, history = reader.read()
    assert reader.trust is Trust.UNKNOWN
    reader.repair(history, is_adopted=True)
    reader.release()
    assert _find_trust(files) is Trust.SIGNED
    assert RunFiles(files.folder).read()[0].setup.is_unsigned
