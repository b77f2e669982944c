"""The files of one run, written in this order: artifact, event, snapshot.

An event promises that its files exist, and `run.json` can be made again from the history. Every write is flushed to the
disk before the next one. Other files of the run are its inferred rules, a lock, the pending answer of an agent, the
progress on a cluster, and requests to stop or to pause.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from pytest_loop.core.events.event import Event
from pytest_loop.core.events.run_payloads import EditPayload, RunAdopted
from pytest_loop.core.model.rules import INFERRED_FILE
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.model.vocabulary import Kind
from pytest_loop.errors import BusyError, StateError
from pytest_loop.store import disk, foreign_runs, history, snapshot
from pytest_loop.store.append_only import AppendOnlyFile, RunLog
from pytest_loop.store.clock import read_clock
from pytest_loop.store.history import History
from pytest_loop.store.lock import Lock, Owner
from pytest_loop.store.pending_answer import PendingAnswer, PendingAnswerFile
from pytest_loop.store.requests import Requests
from pytest_loop.store.signature import Signer, Trust


class RunFiles:
    """One run: one writer, any number of readers."""

    def __init__(self, folder: Path, project: Path | None = None) -> None:
        self.folder = folder
        self.project = project or folder
        self.alias = folder.name
        self.snapshot = folder / "run.json"
        self.history = folder / "history.jsonl"
        self.artifact = folder / "artifact.md"
        self.rules = folder / INFERRED_FILE
        self.log = RunLog(folder / "run.log")
        self.worktree = folder / "tree"
        self.requests = Requests(folder)
        self._progress = folder / "progress"
        self._pending_answer = PendingAnswerFile(folder / ".answer.json")
        self._lock = Lock(folder / ".lock")
        self._history_file = AppendOnlyFile(self.history)
        self._signer = Signer(folder)
        self.trust = Trust.UNKNOWN
        self._encoder = snapshot.SnapshotEncoder(self._signer)
        self._last_hash = ""
        self._state: RunState | None = None
        self._is_history_complete = True
        self._is_snapshot_current = True
        self._artifact: tuple[Path, bytes] | None = None

    @property
    def exists(self) -> bool:
        """Whether a run left any of its files here."""
        return disk.path_exists(self.history) or disk.path_exists(self.snapshot)

    @property
    def last_change(self) -> float:
        """The time of the last event, as the disk has it; 0 without a history."""
        try:
            return self.history.stat().st_mtime
        except OSError:
            return 0.0

    # -- one writer at a time

    def acquire(self) -> None:
        """Become the only writer; raise `BusyError` if another process is."""
        disk.make_folder(self.folder)
        try:
            self._lock.acquire()
        except BusyError as error:
            raise BusyError(f"the run {self.alias!r} is being worked on: {error}") from None
        for temp_file in self.folder.glob(".*.tmp"):
            disk.remove_file(temp_file)

    def release(self) -> None:
        """Release the lock, so that another process can write."""
        self._history_file.close()
        self._lock.release()

    @property
    def owner(self) -> Owner:
        """The state of the process that works on the run."""
        return self._lock.find_owner()

    @property
    def is_busy(self) -> bool:
        return self.owner is Owner.ALIVE

    @property
    def pid(self) -> str:
        """The process that works on the run, as its lock names it."""
        return str(self._lock.read_note().get("pid", "unknown"))

    def count_attempts(self, evaluations: int) -> int:
        """Return how often in a row the run was resumed after a crash without a new evaluation."""
        note = self._lock.read_note()
        attempts = note.get("attempt") if note.get("evaluations") == evaluations else 0
        return attempts if isinstance(attempts, int) else 0

    def record_attempt(self, attempt: int, evaluations: int) -> None:
        """Record in the lock that the run was resumed after a crash."""
        self._lock.update_note(attempt=attempt, evaluations=evaluations)

    # -- writing

    def write_artifact(self, text: str, path: Path | None = None) -> str:
        """Write the artifact; return its hash."""
        path = path or self.artifact
        data = text.encode("utf-8", "replace")
        disk.make_folder(path.parent)
        disk.write_atomically(path, data)
        self._artifact = (path, data)
        return hashlib.sha256(data).hexdigest()

    def save_rules(self, text: str) -> bool:
        """Write the inferred rules, and return whether the file held them already."""
        data = text.encode("utf-8")
        is_unchanged = disk.read_file(self.rules) == data
        if not is_unchanged:
            disk.make_folder(self.folder)
            disk.write_atomically(self.rules, data)
        return is_unchanged

    def remove_rules(self) -> None:
        """Remove the inferred rules of a run that does not start, and its folder if it is empty."""
        disk.remove_file(self.rules)
        with suppress(OSError):
            self.folder.rmdir()
            self.folder.parent.rmdir()

    def write_answer(self, payload: EditPayload, text: str, path: Path) -> EditPayload:
        """Save an agent's answer as pending and write its artifact; return the payload with the artifact's hash."""
        data = text.encode("utf-8", "replace")
        payload = payload.model_copy(update={"artifact_hash": hashlib.sha256(data).hexdigest()})
        disk.make_folder(self.folder)
        kind = payload.kind.value if payload.kind else ""
        self._pending_answer.save(PendingAnswer(after=self._last_hash, event=kind, payload=payload, text=data.decode()))
        self.write_artifact(text, path)
        return payload

    def recover_answer(self, kind: Kind, path: Path, artifact_hash: str) -> EditPayload | None:
        """Write the artifact of a pending answer, and return the payload of its event.

        None means that the step has to be repeated: there is no pending answer, or the artifact was edited since
        (`artifact_hash` is the hash before the answer).
        """
        answer = self._pending_answer.load(self._last_hash)
        if answer is None or not isinstance(answer.payload, EditPayload) or answer.payload.kind is not kind:
            return None
        with disk.translate_errors("read", path):
            current_hash = disk.hash_file(path)
        if current_hash not in ("", artifact_hash, answer.payload.artifact_hash):
            return None
        self.write_artifact(answer.text, path)
        return answer.payload

    def append(self, events: Iterable[Event], state: RunState) -> None:
        """Append events to the history, then write the state that they lead to."""
        events = list(events)
        data, last_hash = history.encode_events(events, self._last_hash, self._signer)
        self._signer.register()
        interference = self._history_file.append(data)
        self._last_hash = last_hash
        if interference:
            self._rewrite_removed_files()
        self.write_snapshot(state)
        if any(isinstance(event.payload, EditPayload) for event in events):
            self._pending_answer.discard_outdated(self._last_hash)
        if state.signals.stop_request:
            self.requests.clear()
        if interference:
            raise StateError(
                f"{self.history} was {interference} while the run was going on; what this process knew is written "
                f"again: look who did that, then go on with pytest-loop resume --run {self.alias}"
            )

    def write_snapshot(self, state: RunState) -> None:
        disk.write_atomically(self.snapshot, self._encoder.encode(state, self._last_hash), durable=False)

    def _rewrite_removed_files(self) -> None:
        """Write the lock and the artifact again if they were deleted with the folder."""
        self._lock.renew()
        if self._artifact and not self._artifact[0].exists():
            disk.write_atomically(*self._artifact)

    # -- reading

    def read(self) -> tuple[RunState, History]:
        """Return the state from the history, or from the snapshot if the history is damaged or of another tool."""
        stored = snapshot.read_snapshot(self.snapshot, self._signer)  # first, because a writer writes it last
        events = self.read_history()
        # The step of a torn last line is repeated, like after a crash; missing lines are damage.
        if stored.last_hash and stored.last_hash not in events.hashes and not events.is_torn:
            events.add_damage(f"the history lacks events that {self.snapshot.name} was made from")
        folded = history.fold_events(events)
        state = folded or self._get_stored_state(stored)
        if state is None:
            raise StateError(
                f"the run {self.alias!r} cannot be read: {stored.problem}, and {self._describe_damage(events)}; "
                "bring one of them back, or start anew with --loop-task"
            )
        self._last_hash = events.last_hash
        self._is_history_complete = folded is not None
        self._is_snapshot_current = stored.last_hash == events.last_hash
        self._encoder = snapshot.SnapshotEncoder(self._signer, stored.raw)
        is_signed = history.is_signed(events) if folded else stored.is_signed
        untrusted = Trust.REWRITTEN if self._signer.is_known_run else Trust.UNKNOWN
        self.trust = Trust.SIGNED if is_signed else untrusted
        self._state = state.model_copy(update={**stored.extra_fields, "task_alias": self.alias})
        return self._state, events

    def _get_stored_state(self, stored: snapshot.Snapshot) -> RunState | None:
        if stored.state is None or not stored.is_foreign:
            return stored.state
        return foreign_runs.prepare_state(stored.state, self.rules, self.project)

    def _describe_damage(self, events: History) -> str:
        if events.damage:
            return events.damage[0]
        return f"{self.history} does not say how it began" if events.events else f"{self.history} is missing or empty"

    def read_history(self) -> History:
        return history.read_history(self.history, self._signer)

    def repair(self, events: History, *, is_adopted: bool = False) -> None:
        """Complete the files that were read, so that the run can continue: cut torn lines, add what is missing.

        `is_adopted` says that the run continues although it was not signed here.
        """
        if events.is_torn or events.lacks_newline:
            disk.truncate_file(self.history, events.length, b"\n" if events.lacks_newline else b"")
        if self._state is None:
            return
        with suppress(OSError):
            path = self.project / self._state.setup.artifact if self._state.setup.artifact else self.artifact
            data = disk.read_file(path)
            self._artifact = (path, data) if data is not None else None
        if self._state.setup.inferred_rules and not disk.path_exists(self.rules):
            self.save_rules(self._state.setup.inferred_rules)
        self._pending_answer.discard_outdated(self._last_hash)
        if is_adopted:
            self._state = self._state.replace(is_unsigned=True)
        if is_adopted or not self._is_history_complete:  # from here on the history leads to the state
            payload = RunAdopted(state=self._state, because=tuple(events.damage))
            self.append([Event.create(self._state, payload, read_clock())], self._state)
        elif not self._is_snapshot_current:
            self.write_snapshot(self._state)

    # -- progress of an evaluation on a cluster, for other processes

    def write_progress(self, text: str) -> None:
        """Write one line, or remove it if the text is empty."""
        if text:
            disk.write_atomically(self._progress, text.encode(), durable=False)
        else:
            disk.remove_file(self._progress)

    def read_progress(self) -> str:
        """Return the line; empty without one."""
        with suppress(OSError):
            return (disk.read_file(self._progress) or b"").decode("utf-8", "replace")
        return ""
