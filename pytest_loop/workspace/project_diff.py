"""The change between two trees as a text that a person can read: what became of which file, line by line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from pytest_loop.core.text.lengths import clip_text
from pytest_loop.core.text.sanitizer import reveal_hidden
from pytest_loop.workspace.file_tree import FileChanges, FileEntry, FileKind, FileTree, compare_trees
from pytest_loop.workspace.line_diff import Op, compute_hunks

LIMIT = 256 * 1024
MAX_LINE_LENGTH = 1000
MAX_NAMES = 200
NO_CHANGE = "Nothing has changed.\n"
_HEADS = 3
_NO_END = "\\ No newline at end of file"
# Gives the content of a path; None where it is not known.
Content = Callable[[str], bytes | None]


@dataclass(frozen=True)
class ProjectDiff:
    """What changed, how many lines of it, and the text of it in Markdown; `diff` is the part that machines read."""

    changes: FileChanges
    lines_added: int
    lines_removed: int
    text: str
    diff: str = ""

    @property
    def paths(self) -> tuple[str, ...]:
        return self.changes.paths


@dataclass(frozen=True)
class _One:
    """The change of one path: a word and notes for the list, and what its part of the diff is made from."""

    path: str
    word: str
    notes: tuple[str, ...] = ()
    added: int = 0
    removed: int = 0
    old: Sequence[str] = ()
    new: Sequence[str] = ()
    hunks: Sequence[Sequence[Op]] = ()

    @property
    def title(self) -> str:
        counts = (f"+{self.added} -{self.removed}",) if self.added or self.removed else ()
        notes = ", ".join(counts + self.notes)
        return f"- {self.word} {_name(self.path)}" + (f" ({notes})" if notes else "")

    def body(self) -> Iterator[str]:
        name = _name(self.path)
        yield "--- /dev/null" if self.word == "added" else f"--- a/{name}"
        yield "+++ /dev/null" if self.word == "removed" else f"+++ b/{name}"
        for hunk in self.hunks:
            first, last = hunk[0], hunk[-1]
            yield f"@@ -{_range(first[1], last[2])} +{_range(first[3], last[4])} @@"
            for tag, low, high, new_low, new_high in hunk:
                yield from _signed(" " if tag == "equal" else "-", self.old[low:high])
                if tag != "equal":
                    yield from _signed("+", self.new[new_low:new_high])


def compute_diff(before: FileTree, after: FileTree, old: Content, new: Content, limit: int = LIMIT) -> ProjectDiff:
    """What changed between two trees; `limit` is about how many characters of diff are shown."""
    found = compare_trees(before, after)
    if not found.paths:
        return ProjectDiff(found, 0, 0, NO_CHANGE)
    diff = _Diff(limit, len(found.paths))
    titles: list[str] = []
    added = removed = 0
    for path in found.paths:
        one = _changed(path, before.entries.get(path), after.entries.get(path), old, new)
        added, removed = added + one.added, removed + one.removed
        diff.add(one)
        if len(titles) < MAX_NAMES:
            titles.append(one.title)
    if len(found.paths) > MAX_NAMES:
        titles.append(f"- and {len(found.paths) - MAX_NAMES:,} more")
    text = "\n".join([_summary(found, added, removed), *titles, "", *diff.lines(), ""])
    return ProjectDiff(found, added, removed, text, diff.text)


def render_document_diff(name: str, old: str, new: str, limit: int) -> str:
    """The change of one document."""
    sides = [text.encode("utf-8", "replace") for text in (old, new)]
    diff = _Diff(limit, 1)
    diff.add(_compared(_One(name, "modified" if old else "added"), *map(_lines, sides)))
    return diff.text


class _Diff:
    """The parts of a diff, as far as there is room for them; no file takes more than a quarter of many."""

    def __init__(self, limit: int, files: int) -> None:
        self._room = limit
        self._most = limit // min(files, 4)
        self._lines: list[str] = []
        self._left_out = 0

    def add(self, one: _One) -> None:
        if not one.hunks:
            return
        body = list(one.body()) if self._room > 0 else []
        shown = list(_fitting(body, min(self._room, self._most)))
        if len(shown) <= _HEADS:
            self._left_out += 1
            self._room = 0
            return
        if missing := len(body) - len(shown):
            shown.append(f"[... {missing:,} more lines of this diff left out ...]")
        self._lines += shown
        self._room -= sum(len(line) + 1 for line in shown)

    @property
    def text(self) -> str:
        return "\n".join(self._lines)

    def lines(self) -> list[str]:
        if not self._lines:
            return []
        text = self.text
        fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
        more = ["", f"The diffs of {self._left_out:,} more files are left out."] if self._left_out else []
        return [f"{fence}diff", text, fence, *more]


def _fitting(lines: list[str], room: int) -> Iterator[str]:
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            return
        yield line


def _summary(found: FileChanges, added: int, removed: int) -> str:
    kinds = [("added", found.added), ("removed", found.removed), ("modified", found.modified)]
    words = ", ".join(f"{len(paths):,} {word}" for word, paths in kinds if paths)
    return f"# What has changed\n\nFiles: {words}. Lines: {added:,} added, {removed:,} removed.\n"


def _changed(path: str, was: FileEntry | None, now: FileEntry | None, old: Content, new: Content) -> _One:
    one = _One(path, "added" if was is None else "removed" if now is None else "modified", _notes(was, now))
    if was and now and was.digest == now.digest and was.kind is now.kind:
        return one
    data, new_data = _content(path, was, old), _content(path, now, new)
    if data is None or new_data is None:
        return replace(one, notes=(*one.notes, "not shown"))
    if b"\0" in data or b"\0" in new_data:
        return replace(one, notes=(*one.notes, "binary"))
    return _compared(one, _lines(data), _lines(new_data))


def _notes(was: FileEntry | None, now: FileEntry | None) -> tuple[str, ...]:
    if now is None:
        return ()
    if now.kind is not (was.kind if was else FileKind.FILE):
        return (_KINDS[now.kind],)
    if now.is_executable is (was.is_executable if was else False):
        return ()
    return ("may now be run" if now.is_executable else "may no longer be run",)


_KINDS = {
    FileKind.FILE: "a file",
    FileKind.LINK: "a link",
    FileKind.CLOSED: "a folder that cannot be read",
    FileKind.OTHER: "neither file nor link",
}


def _content(path: str, entry: FileEntry | None, known: Content) -> bytes | None:
    if entry is None:
        return b""
    data = known(path) if entry.digest else None
    return b"link to " + data if data is not None and entry.kind is FileKind.LINK else data


def _lines(data: bytes) -> list[str]:
    """The lines, each with the sign of its end where it lacks one."""
    lines = data.decode("utf-8", "surrogateescape").split("\n")
    last = lines.pop()
    return [*lines, f"{last}\n"] if last else lines


def _compared(one: _One, old: list[str], new: list[str]) -> _One:
    found = list(compute_hunks(old, new)) if old or new else []
    changes = [op for hunk in found for op in hunk if op[0] != "equal"]
    added, removed = sum(op[4] - op[3] for op in changes), sum(op[2] - op[1] for op in changes)
    return replace(one, added=added, removed=removed, old=old, new=new, hunks=found)


def _signed(sign: str, lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        yield sign + clip_text(reveal_hidden(line.removesuffix("\n")), MAX_LINE_LENGTH)
        if line.endswith("\n"):
            yield _NO_END


def _range(low: int, high: int) -> str:
    length = high - low
    if length == 1:
        return f"{low + 1}"
    return f"{low + 1 if length else low},{length}"


def _name(path: str) -> str:
    return clip_text(reveal_hidden(path), MAX_LINE_LENGTH)
