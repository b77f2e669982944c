"""What was found, as it is handed over: edits as texts and diffs, and several rounds as one result."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from pytest_loop.repair.failure import Failure
from pytest_loop.repair.found import Found, Plausible
from pytest_loop.repair.order import Patch, Result, Suspicious

_LINES = 50
_PATCHES = 10


def result(found: Found, folder: Path, seconds: float, trouble: str = "") -> Result:
    """What one round has found."""
    patches = tuple(_patch(one, folder) for one in found.plausible[:_PATCHES])
    return Result(
        localised=tuple(
            Suspicious(path=_inside(Path(one.path), folder), line=one.line, score=round(one.score, 6))
            for one in found.suspects[:_LINES]
        ),
        patches=patches,
        steps=patches[:1],
        remaining=patches[0].remaining if patches else found.targets,
        failing=found.failing,
        passing=len(found.passing),
        held=tuple(found.held),
        tried=found.tried,
        died=found.died,
        known=found.known,
        seconds=round(seconds, 3),
        templates=dict(found.templates.most_common()),
        ended=found.ended,
        problem=trouble or next((f"{name}: {message}" for name, message in found.held.items()), ""),
    )


def problem(broken: Mapping[str, Failure], folder: Path) -> str:
    """What could not be imported, and why, in a line; nothing where all could."""
    for name, one in broken.items():
        inside = [(path, line) for path, line in one.frames if Path(path).is_relative_to(folder.resolve())]
        place = f" ({_inside(Path(inside[-1][0]), folder)}:{inside[-1][1]})" if inside else ""
        more = f", and {len(broken) - 1} more" if len(broken) > 1 else ""
        return f"{name} cannot be imported: {one.error}: {' '.join(one.message.split())}{place}{more}"
    return ""


def joined(rounds: Sequence[Result], seconds: float) -> Result:
    """Several rounds as one: what the first one has found, and the steps of all."""
    templates = sum((Counter(one.templates) for one in rounds), Counter[str]())
    last = rounds[-1]
    return rounds[0].model_copy(
        update={
            "steps": tuple(step for one in rounds for step in one.steps),
            "remaining": last.remaining,
            "tried": sum(one.tried for one in rounds),
            "died": sum(one.died for one in rounds),
            "known": sum(one.known for one in rounds),
            "seconds": round(seconds, 3),
            "templates": dict(templates.most_common()),
            "ended": last.ended,
            "problem": last.problem,
        }
    )


def _inside(path: Path, folder: Path) -> str:
    return path.relative_to(folder.resolve()).as_posix()


def _patch(one: Plausible, folder: Path) -> Patch:
    candidate = one.candidate
    path = _inside(candidate.source.path, folder)
    before, after = candidate.source.text, candidate.text
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), f"a/{path}", f"b/{path}"
    )
    return Patch(
        path=path,
        line=candidate.line,
        template=candidate.template,
        description=described(before, after),
        before=before,
        after=after,
        diff="".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines),
        fixed=one.fixed,
        remaining=one.remaining,
        tokens=candidate.tokens,
        score=round(candidate.score, 6),
        is_deletion=candidate.is_deletion,
    )


def described(before: str, after: str) -> str:
    """What an edit does, in a line: the lines that go and those that come."""
    old, new = before.splitlines(), after.splitlines()
    parts = []
    for tag, start, end, first, last in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        gone = " / ".join(line.strip() for line in old[start:end])
        come = " / ".join(line.strip() for line in new[first:last])
        if tag == "replace":
            parts.append(f"line {start + 1}: `{gone}` becomes `{come}`")
        elif tag == "delete":
            parts.append(f"line {start + 1}: without `{gone}`")
        elif tag == "insert":
            parts.append(f"line {start + 1}: new `{come}`")
    return "; ".join(parts)
