"""Read the change that a run has made, and add it to the end of the run."""

from __future__ import annotations

from typing import TypeVar

from pytest_loop.core.events.run_payloads import EditPayload, EndPayload
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.model.vocabulary import Target
from pytest_loop.core.text.lengths import clip_text
from pytest_loop.store import disk
from pytest_loop.store.run_files import RunFiles
from pytest_loop.workspace.project_diff import extract_diff, parse_diffstat

MAX_DIFF_LENGTH = 16 * 1024
End = TypeVar("End", bound=EndPayload)


def add_diff(payload: End, state: RunState, files: RunFiles) -> End:
    """Add the diff of the run to the escalation in the payload of its end, unless the user wants none."""
    decision = payload.decision
    if decision is None or decision.context is None or not state.setup.control.escalation_includes_diff:
        return payload
    diff = clip_text(read_change(state, files), MAX_DIFF_LENGTH)
    if not diff.strip():
        return payload
    context = decision.context.model_copy(update={"diff": diff})
    return payload.model_copy(update={"decision": decision.model_copy(update={"context": context})})


def read_diffstat(files: RunFiles) -> str:
    """Return how many files and lines of the project a run has changed; empty for a document."""
    return parse_diffstat((disk.read_file(files.artifact) or b"").decode("utf-8", "replace"))


def read_change(state: RunState, files: RunFiles) -> str:
    """Return the diff of a project since the run began, or the last diff of a document; empty if there is none."""
    if state.setup.target is Target.WORKSPACE:
        text = (disk.read_file(files.artifact) or b"").decode("utf-8", "replace")
        return extract_diff(text)
    payloads = (event.payload for event in reversed(files.read_history().events))
    return next((payload.diff for payload in payloads if isinstance(payload, EditPayload) and payload.diff), "")
