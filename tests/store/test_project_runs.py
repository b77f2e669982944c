"""All runs of a project: names, limit, pointer and removal."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pytest_loop.core.events.event import Event
from pytest_loop.core.events.run_payloads import Stopped
from pytest_loop.core.machine.run_machine import RUN_MACHINE
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.model.vocabulary import Status
from pytest_loop.errors import BusyError, StateError
from pytest_loop.store.clock import read_clock
from pytest_loop.store.project_runs import MAX_ACTIVE_RUNS, Store, find_default_folder, make_alias
from pytest_loop.store.run_files import RunFiles

MakeEvent = Callable[..., Event]


@pytest.fixture
def begin(store: Store, event: MakeEvent) -> Callable[[str], RunState]:
    """Write the first event of a run, and release it."""

    def start_run(alias: str) -> RunState:
        state = RunState.model_validate(
            {"run_id": f"{alias}-1", "task_alias": alias, "task": {"prompt": alias}, "updated_at": alias}
        )
        files = store.get_run(alias)
        files.acquire()
        files.append([event("run_started", state=state.model_dump(mode="json"))], state)
        files.release()
        return state

    return start_run


Begin = Callable[[str], RunState]


def end(state: RunState) -> RunState:
    return state.replace(status=Status.STOPPED, updated_at="later")


@pytest.mark.parametrize(
    ("task", "name"),
    [
        ("Write a guide", "write-a-guide"),
        ("Fix: ../../etc/passwd!", "fix-etc-passwd"),
        ("all", "task-all"),
        ("x", "task-x"),
        ("Напиши руководство", "task"),
        ("word " * 40, "word-word-word-word-word-word-word-word"),
    ],
)
def test_alias_is_made_from_the_words_of_a_task(task: str, name: str) -> None:
    assert make_alias(task) == name
    assert Store(Path()).get_run(make_alias(task)).alias == name


@pytest.mark.parametrize(
    "alias", ["../x", "/etc", "a/b", "..", "UPPER", "with space", "a\0b", "x" * 65, "-x-", "ab", ""]
)
def test_invalid_alias_is_refused_everywhere(store: Store, alias: str) -> None:
    for use in (store.get_run, store.find_run, store.get_existing_run):
        with pytest.raises(StateError, match="expected a name of 3 to 64 lowercase letters, digits and hyphens"):
            use(alias)


def test_all_is_not_a_valid_alias(store: Store) -> None:
    with pytest.raises(StateError, match="for a run other than 'all', found 'all'"):
        store.get_run("all")


def test_unknown_run_is_an_error_with_the_existing_ones(store: Store, begin: Begin) -> None:
    with pytest.raises(StateError, match=r"there is no run 'guide' in .*/\.loop: there are no runs"):
        store.find_run("guide")
    begin("poem")
    with pytest.raises(StateError, match=r"there is no run 'guide' in .*: the runs are poem"):
        store.get_existing_run("guide")


def test_unambiguous_beginning_of_an_alias_is_enough(store: Store, begin: Begin) -> None:
    begin("write-a-guide")
    begin("write-a-poem")
    begin("write")
    assert store.find_run("write-a-g").alias == "write-a-guide"
    assert store.find_run("write").alias == "write"
    with pytest.raises(StateError, match="'write-a' may be any of write-a-guide, write-a-poem: name one of them"):
        store.find_run("write-a")
    with pytest.raises(StateError, match="there is no run 'write-a-g'"):
        store.get_existing_run("write-a-g")


def test_used_alias_gets_a_number(store: Store, begin: Begin) -> None:
    assert store.make_unique_alias("guide") == "guide"
    begin("guide")
    begin("guide-2")
    assert store.make_unique_alias("guide") == "guide-3"
    begin("x" * 64)
    assert store.make_unique_alias("x" * 64) == "x" * 60 + "-2"


def test_other_folders_are_not_runs(store: Store, begin: Begin) -> None:
    begin("guide")
    (store.root / "notes").mkdir()
    (store.root / "Bad Name").mkdir()
    (store.root / "Bad Name" / "run.json").write_text("{}")
    assert [run.alias for run in store.list_runs()] == ["guide"]


def test_project_of_ai_factory_uses_its_folder(tmp_path: Path) -> None:
    assert find_default_folder(tmp_path) == ".loop"
    (tmp_path / ".ai-factory").mkdir()
    assert Store(tmp_path).root == tmp_path / ".ai-factory" / "evolution"
    assert Store(tmp_path, "runs").root == tmp_path / "runs"


def test_fifth_run_is_refused_with_the_names_of_the_four_and_force_allows_one_more(store: Store, begin: Begin) -> None:
    names = [f"run-{number}" for number in range(1, MAX_ACTIVE_RUNS + 3)]
    active = [store.get_run(name) for name in names[:4]]
    for files in active:
        begin(files.alias)
        store.acquire_run(files, is_new=False)
    with pytest.raises(StateError) as caught:
        store.acquire_run(store.get_run(names[4]), is_new=True)
    assert str(caught.value) == (
        "4 runs are active already:\n"
        + "".join(f"  {name} (iteration 1): {name}\n" for name in names[:4])
        + "stop one with: pytest-loop stop --run NAME, or use --loop-force for one more"
    )
    fifth = store.get_run(names[4])
    store.acquire_run(fifth, is_new=True, force=True)
    fifth.release()
    begin(names[4])
    store.acquire_run(fifth, is_new=False, force=True)
    with pytest.raises(
        StateError, match=r"5 runs are active already:(.|\n)*stop one with: pytest-loop stop --run NAME$"
    ):
        store.acquire_run(store.get_run(names[5]), is_new=True, force=True)
    for files in (*active, fifth):
        files.release()
    assert store.list_busy_runs() == []


def test_alias_that_another_run_got_meanwhile_is_refused(store: Store, begin: Begin) -> None:
    begin("guide")
    with pytest.raises(StateError, match="another run was given the name 'guide' just now: use --loop-alias"):
        store.acquire_run(store.get_run("guide"), is_new=True)
    assert store.list_busy_runs() == []


def test_pointer_names_the_active_run_and_is_deleted_with_it(store: Store, begin: Begin) -> None:
    state = begin("guide")
    store.set_current_run(state)
    data = json.loads(store.pointer.read_bytes())
    assert data == {"active_run_id": "guide-1", "task_alias": "guide", "status": "running", "updated_at": "guide"}
    current = store.find_current_run()
    assert current is not None
    assert current.alias == "guide"
    store.update_current_run(end(begin("poem")))
    assert store.pointer.exists()
    store.update_current_run(end(state))
    assert sorted(run.name for run in store.root.iterdir()) == ["guide", "poem"]


def test_pointer_moves_to_another_active_run(store: Store, begin: Begin) -> None:
    states = [begin(alias) for alias in ("aaa", "bbb", "ccc")]
    working = [store.get_run(alias) for alias in ("aaa", "bbb")]
    for files in working:
        files.acquire()
    store.set_current_run(states[2])
    store.update_current_run(end(states[2]))
    current = store.find_current_run()
    assert current is not None
    assert current.alias == "bbb"
    for files in working:
        files.release()


def test_pointer_has_the_time_of_the_last_event_of_its_run_only(store: Store, begin: Begin) -> None:
    guide, poem = begin("guide"), begin("poem")
    store.set_current_run(guide)
    store.update_current_run(poem.replace(updated_at="noon"))
    assert _read_pointer(store) == ("guide", "guide")
    store.update_current_run(guide.replace(updated_at="evening"))
    assert _read_pointer(store) == ("guide", "evening")


def test_deleted_pointer_comes_back_with_the_next_event(store: Store, begin: Begin) -> None:
    store.update_current_run(begin("guide"))
    assert _read_pointer(store) == ("guide", "guide")


def _read_pointer(store: Store) -> tuple[str, str]:
    data = json.loads(store.pointer.read_bytes())
    return data["task_alias"], data["updated_at"]


def test_pointer_does_not_move_to_a_run_that_has_just_ended(store: Store, begin: Begin) -> None:
    first, second = begin("aaa"), begin("bbb")
    files = store.get_run("bbb")
    files.acquire()
    files.read()
    _end_run(files, second)
    store.set_current_run(first)
    store.update_current_run(end(first))
    assert not store.pointer.exists()
    files.release()


def test_no_pointer_remains_if_five_runs_end_at_once(store: Store, begin: Begin) -> None:
    states = [begin(f"run-{number}") for number in range(5)]
    barrier = threading.Barrier(5)

    def finish(state: RunState) -> None:
        files = store.get_run(state.task_alias)
        files.acquire()
        files.read()
        store.set_current_run(state)
        barrier.wait()
        store.update_current_run(_end_run(files, state))
        files.release()

    for _ in range(3):
        with ThreadPoolExecutor(5) as pool:
            list(pool.map(finish, states))
        assert not store.pointer.exists()


def _end_run(files: RunFiles, state: RunState) -> RunState:
    event = Event.create(state, Stopped(reason="user_stop"), "later")
    ended = RUN_MACHINE.apply(state, event)
    files.append([event], ended)
    return ended


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"task_alias": "../x"}', '{"task_alias": "all"}', '{"task_alias": 3}']
)
def test_damaged_pointer_names_no_run(store: Store, begin: Begin, text: str) -> None:
    begin("guide")
    store.pointer.write_text(text)
    assert store.find_current_run() is None


def test_pointer_at_a_missing_run_names_no_run(store: Store, begin: Begin) -> None:
    store.set_current_run(begin("guide").model_copy(update={"task_alias": "poem"}))
    assert store.find_current_run() is None


def test_run_is_deleted_with_its_pointer(store: Store, begin: Begin) -> None:
    store.set_current_run(begin("guide"))
    store.remove_run(store.get_run("guide"))
    assert list(store.root.iterdir()) == []


def test_busy_run_is_never_deleted(store: Store, begin: Begin) -> None:
    begin("guide")
    working = store.get_run("guide")
    working.acquire()
    with pytest.raises(BusyError, match="the run 'guide' is being worked on"):
        store.remove_run(RunFiles(working.folder))
    working.release()
    assert store.get_existing_run("guide").read()[0].task_alias == "guide"


def test_link_in_place_of_a_folder_is_not_a_run_and_is_never_followed(
    store: Store, begin: Begin, tmp_path: Path
) -> None:
    begin("guide")
    target = tmp_path / "elsewhere"
    (store.root / "guide").rename(target)
    (store.root / "guide").symlink_to(target)
    before = sorted(target.iterdir())
    store.pointer.write_text('{"task_alias": "guide"}')
    assert (store.list_runs(), store.find_current_run()) == ([], None)
    for use in (store.get_run, store.find_run, store.get_existing_run):
        with pytest.raises(StateError, match=r"expected a folder for the run 'guide', found a symbolic link: remove"):
            use("guide")
    assert sorted(target.iterdir()) == before


def test_file_in_place_of_the_folder_is_an_error(store: Store) -> None:
    store.root.write_text("")
    assert store.list_runs() == []
    with pytest.raises(StateError, match=r"cannot make .*/\.loop: File exists; move the file that is in the way"):
        store.acquire_run(store.get_run("guide"), is_new=True)


def test_time_is_written_in_utc_with_milliseconds() -> None:
    assert len(read_clock()) == len("2026-01-01T00:00:00.000Z")
    assert read_clock().endswith("Z")


@pytest.mark.parametrize(("folder", "expected"), [("", True), ("runs", False)])
def test_git_ignores_runs_in_their_own_folder(tmp_path: Path, folder: str, expected: bool) -> None:
    store = Store(tmp_path, folder)
    for alias in ("guide", "poem"):
        files = store.get_run(alias)
        store.acquire_run(files, is_new=True)
        files.release()
    path = store.root / ".gitignore"
    assert path.exists() == expected
    assert not expected or path.read_text() == "*\n!/shape/\n!/shape/**\n"
