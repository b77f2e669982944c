"""Make the result of a search: describe edits as texts and diffs, and merge several rounds."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path

from pytest_loop.repair.failure import Failure
from pytest_loop.repair.repair_request import Patch, RepairResult, SuspiciousLine
from pytest_loop.repair.search_state import PlausibleEdit, SearchState

_MAX_LINES = 50
_MAX_PATCHES = 10


def make_result(state: SearchState, folder: Path, seconds: float, problem: str = "") -> RepairResult:
    """Make the result of one round; `problem` says why modules could not be imported."""
    patches = tuple(_make_patch(edit, folder) for edit in state.plausible_edits[:_MAX_PATCHES])
    return RepairResult(
        localised=tuple(
            SuspiciousLine(
                path=_get_relative_path(Path(suspect.path), folder), line=suspect.line, score=round(suspect.score, 6)
            )
            for suspect in state.suspects[:_MAX_LINES]
        ),
        patches=patches,
        steps=patches[:1],
        remaining=patches[0].remaining if patches else state.targets,
        failing=state.failing,
        passing=len(state.passing),
        restricted_tests=tuple(state.restricted_tests),
        tried=state.tried_count,
        crash_count=state.crash_count,
        seconds=round(seconds, 3),
        end_reason=state.end_reason,
        problem=problem or next((f"{name}: {message}" for name, message in state.restricted_tests.items()), ""),
    )


def describe_import_problem(failures: Mapping[str, Failure], folder: Path) -> str:
    """Describe in one line what could not be imported and why; empty if everything could."""
    if not failures:
        return ""
    name, failure = next(iter(failures.items()))
    inside = [(path, line) for path, line in failure.frames if Path(path).is_relative_to(folder.resolve())]
    place = f" ({_get_relative_path(Path(inside[-1][0]), folder)}:{inside[-1][1]})" if inside else ""
    more = f", and {len(failures) - 1} more" if len(failures) > 1 else ""
    return f"{name} cannot be imported: {failure.error}: {' '.join(failure.message.split())}{place}{more}"


def merge_results(rounds: Sequence[RepairResult], seconds: float, tried: int = 0) -> RepairResult:
    """Merge rounds into one result: suspects and patches of the first round, steps of all, the ending of the last.

    `tried` counts the edits tried in other rounds.
    """
    last = rounds[-1]
    return rounds[0].model_copy(
        update={
            "steps": tuple(step for result in rounds for step in result.steps),
            "remaining": last.remaining,
            "tried": tried + sum(result.tried for result in rounds),
            "crash_count": sum(result.crash_count for result in rounds),
            "seconds": round(seconds, 3),
            "end_reason": last.end_reason,
            "problem": last.problem,
        }
    )


def _get_relative_path(path: Path, folder: Path) -> str:
    return path.relative_to(folder.resolve()).as_posix()


def _make_patch(edit: PlausibleEdit, folder: Path) -> Patch:
    candidate = edit.candidate
    path = _get_relative_path(candidate.source.path, folder)
    before, after = candidate.source.text, candidate.text
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), f"a/{path}", f"b/{path}"
    )
    return Patch(
        path=path,
        line=candidate.line,
        template=candidate.template,
        description=describe_edit(before, after),
        before=before,
        after=after,
        diff="".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines),
        fixed=edit.fixed,
        remaining=edit.remaining,
        rank=edit.sort_key,
    )


def describe_edit(before: str, after: str) -> str:
    """Describe an edit in one line: the removed and the added lines."""
    old, new = before.splitlines(), after.splitlines()
    parts = []
    for tag, start, end, first, last in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        removed = " / ".join(line.strip() for line in old[start:end])
        added = " / ".join(line.strip() for line in new[first:last])
        if tag == "replace":
            parts.append(f"line {start + 1}: `{removed}` becomes `{added}`")
        elif tag == "delete":
            parts.append(f"line {start + 1}: without `{removed}`")
        elif tag == "insert":
            parts.append(f"line {start + 1}: new `{added}`")
    return "; ".join(parts)
