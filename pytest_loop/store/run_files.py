"""The files of one run: artifact first, event second, snapshot last.

An event promises that its files exist, and `run.json` can be made again from the history. Every write is flushed to the
disk before the next one begins. Beside the four files there are, for a while, a lock, a request to stop or to pause,
and the answer of an agent on its way into artifact and history.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from pytest_loop.core.events.event import Event
from pytest_loop.core.events.run_payloads import EditPayload, RunAdopted
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.model.vocabulary import Kind, Reason
from pytest_loop.errors import BusyError, StateError
from pytest_loop.store import disk, foreign_runs, history, snapshot
from pytest_loop.store.append_only import AppendOnlyFile
from pytest_loop.store.clock import read_clock
from pytest_loop.store.history import History
from pytest_loop.store.lock import Lock, Owner
from pytest_loop.store.pending_answer import PendingAnswer, PendingAnswerFile
from pytest_loop.store.run_log import RunLog


class RunFiles:
    """One run: one writer, any number of readers."""

    def __init__(self, folder: Path, project: Path | None = None) -> None:
        self.folder = folder
        self.project = project or folder
        self.alias = folder.name
        self.snapshot = folder / "run.json"
        self.history = folder / "history.jsonl"
        self.artifact = folder / "artifact.md"
        self.rules = folder / "inferred.rules.yaml"
        self.log = RunLog(folder / "run.log")
        self.worktree = folder / "tree"
        self._stop = folder / "stop.request"
        self._pause = folder / "pause.request"
        self._answer = PendingAnswerFile(folder / ".answer.json")
        self._lock = Lock(folder / ".lock")
        self._tail = AppendOnlyFile(self.history)
        self._text = snapshot.SnapshotEncoder()
        self._last = ""
        self._state: RunState | None = None
        self._is_founded = True
        self._is_shown = True
        self._artifact: tuple[Path, bytes] | None = None

    @property
    def exists(self) -> bool:
        """Whether anything of a run is here, whatever state it is in."""
        return disk.path_exists(self.history) or disk.path_exists(self.snapshot)

    # -- one writer at a time

    def acquire(self) -> None:
        """Become the only writer; `BusyError` where another process is."""
        disk.make_folder(self.folder)
        try:
            self._lock.acquire()
        except BusyError as error:
            raise BusyError(f"the run {self.alias!r} is being worked on: {error}") from None
        for draft in self.folder.glob(".*.tmp"):
            disk.remove_file(draft)

    def release(self) -> None:
        """Let others work on it."""
        self._tail.close()
        self._lock.release()

    @property
    def owner(self) -> Owner:
        """Who works on it: somebody who lives, somebody who died at it, or nobody."""
        return self._lock.find_owner()

    @property
    def is_busy(self) -> bool:
        return self.owner is Owner.ALIVE

    @property
    def pid(self) -> str:
        """The process that works on it, as it wrote itself down."""
        return str(self._lock.read_note().get("pid", "unknown"))

    def count_attempts(self, evaluations: int) -> int:
        """How often in a row it was taken up after a crash without a new evaluation, as who died at it has noted."""
        note = self._lock.read_note()
        found = note.get("attempt") if note.get("evaluations") == evaluations else 0
        return found if isinstance(found, int) else 0

    def record_attempt(self, attempt: int, evaluations: int) -> None:
        """Note that the owner has taken it up after a crash."""
        self._lock.update_note(attempt=attempt, evaluations=evaluations)

    # -- writing

    def write_artifact(self, text: str, path: Path | None = None) -> str:
        """Write the artifact; gives its hash."""
        where = path or self.artifact
        data = text.encode("utf-8", "replace")
        disk.make_folder(where.parent)
        disk.write_atomically(where, data)
        self._artifact = (where, data)
        return hashlib.sha256(data).hexdigest()

    def save_rules(self, text: str) -> bool:
        """Write the rules that were inferred, unless they stand there; says whether they did."""
        data = text.encode("utf-8")
        is_there = disk.read_file(self.rules) == data
        if not is_there:
            disk.make_folder(self.folder)
            disk.write_atomically(self.rules, data)
        return is_there

    def remove_rules(self) -> None:
        """The run does not begin: what was inferred for it goes, and the folder with it if nothing else is there."""
        disk.remove_file(self.rules)
        with suppress(OSError):
            self.folder.rmdir()
            self.folder.parent.rmdir()

    def write_answer(self, payload: EditPayload, text: str, path: Path) -> EditPayload:
        """Write an agent's answer; returns the payload of its event, with the hash of the artifact."""
        data = text.encode("utf-8", "replace")
        payload = payload.model_copy(update={"artifact_hash": hashlib.sha256(data).hexdigest()})
        disk.make_folder(self.folder)
        self._answer.save(PendingAnswer.create(self._last, payload, data.decode()))
        self.write_artifact(text, path)
        return payload

    def recover_answer(self, kind: Kind, path: Path, before: str) -> EditPayload | None:
        """The payload of an answer whose event a crash has prevented; its artifact is in place then.

        None where nothing was kept for this moment, or where the artifact (`before`: its hash as the run knows it) was
        edited since: then the step has to be done again.
        """
        answer = self._answer.load(self._last)
        payload = answer.payload if answer else None
        if answer is None or not isinstance(payload, EditPayload) or payload.kind is not kind:
            return None
        with disk.translate_errors("read", path):
            current = disk.hash_file(path)
        if current not in ("", before, payload.artifact_hash):
            return None
        self.write_artifact(answer.text, path)
        return payload

    def append(self, events: Iterable[Event], state: RunState) -> None:
        """Add events, and then the state that they lead to."""
        found = list(events)
        data, last = history.encode_events(found, self._last)
        trouble = self._tail.append(data)
        self._last = last
        if trouble:
            self._restore()
        self.write_snapshot(state)
        if self._answer.is_told_by(found):
            self._answer.discard_outdated(self._last)
        if state.signals.stop_request:
            self.clear_requests()
        if trouble:
            raise StateError(
                f"{self.history} was {trouble} while the run was going on; what this process knew is written again: "
                f"look who did that, then go on with pytest --loop-resume={self.alias}"
            )

    def write_snapshot(self, state: RunState) -> None:
        disk.write_atomically(self.snapshot, self._text.encode(state, self._last), durable=False)

    def _restore(self) -> None:
        """Somebody took the folder away, perhaps with the lock and the artifact in it."""
        self._lock.renew()
        if self._artifact and not self._artifact[0].exists():
            disk.write_atomically(*self._artifact)

    # -- reading

    def read(self) -> tuple[RunState, History]:
        """The state: the fold of the history; the snapshot where the history is another tool's or is damaged."""
        held = snapshot.read_snapshot(self.snapshot)  # first, because a writer writes it last
        found = self.read_history()
        if held.last_hash and held.last_hash not in found.hashes:
            found.add_damage(f"the history lacks events that {self.snapshot.name} was made from")
        folded = history.fold_events(found)
        state = folded or self._held(held)
        if state is None:
            raise StateError(
                f"the run {self.alias!r} cannot be read: {held.problem}, and {self._useless(found)}; "
                "bring one of them back, or start anew with --loop-task"
            )
        self._last = found.last_hash
        self._is_founded = folded is not None
        self._is_shown = held.last_hash == found.last_hash
        self._text = snapshot.SnapshotEncoder(held.raw)
        self._state = state.model_copy(update={**held.extra_fields, "task_alias": self.alias})
        return self._state, found

    def _held(self, held: snapshot.Snapshot) -> RunState | None:
        if held.state is None or not held.is_foreign:
            return held.state
        return foreign_runs.prepare_state(held.state, self.folder, self.project)

    def _useless(self, found: History) -> str:
        if found.damage:
            return found.damage[0]
        return f"{self.history} does not say how it began" if found.events else f"{self.history} is missing or empty"

    def read_history(self) -> History:
        return history.read_history(self.history)

    def repair(self, found: History) -> None:
        """Make the files that were read such that the run can go on from them: nothing torn, and nothing missing."""
        if found.is_torn or found.lacks_newline:
            disk.truncate_file(self.history, found.length, b"\n" if found.lacks_newline else b"")
        if self._state is None:
            return
        with suppress(OSError):
            data = disk.read_file(self.artifact)
            self._artifact = (self.artifact, data) if data is not None else None
        rules = self.folder / foreign_runs.RULE_FILE
        if str(rules) in self._state.setup.arguments and not rules.exists():
            disk.write_atomically(rules, foreign_runs.render_rule_file(self._state))
        self._answer.discard_outdated(self._last)
        if not self._is_founded:
            self.append([_make_adoption(self._state, found)], self._state)
        elif not self._is_shown:
            self.write_snapshot(self._state)

    # -- a word from another terminal

    def request_stop(self, reason: str) -> None:
        disk.write_atomically(self._stop, reason.encode("utf-8", "replace"))

    def read_stop_request(self) -> str | None:
        with suppress(OSError):
            words = disk.read_file(self._stop)
            return None if words is None else words.decode("utf-8", "replace") or Reason.USER_STOP.value
        return None

    def request_pause(self) -> None:
        disk.write_atomically(self._pause, b"")

    @property
    def is_pause_requested(self) -> bool:
        return disk.path_exists(self._pause)

    @property
    def can_continue(self) -> bool:
        """Whether nobody has asked for an end, or for a pause."""
        return not self.is_pause_requested and self.read_stop_request() is None

    def clear_requests(self) -> None:
        """The request was heard."""
        disk.remove_file(self._stop)
        disk.remove_file(self._pause)


def _make_adoption(state: RunState, history: History) -> Event:
    """Return the event from which on the history leads to the state, whatever damage is before it."""
    return Event.create(state, RunAdopted(state=state, because=tuple(history.damage)), read_clock())
