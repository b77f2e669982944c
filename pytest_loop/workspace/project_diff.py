"""The change between two file trees as Markdown: a list of files, and a diff of their lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from pytest_loop.core.text.lengths import clip_text
from pytest_loop.core.text.sanitizer import reveal_hidden
from pytest_loop.core.text.wording import format_count, limit_lines
from pytest_loop.workspace.file_tree import FileChanges, FileEntry, FileKind, FileTree, compare_trees
from pytest_loop.workspace.line_diff import Op, compute_hunks

MAX_LENGTH = 256 * 1024
MAX_LINE_LENGTH = 1000
MAX_NAMES = 200
NO_CHANGE = "Nothing has changed.\n"
_HEADER_LINES = 3
_SUMMARY = re.compile(r"# What has changed\n\nFiles: (.+)\. Lines: ([\d,]+) added, ([\d,]+) removed\.\n")
_LINE_NOUNS = ((2, "insertion"), (3, "deletion"))
_NO_NEWLINE = "\\ No newline at end of file"
_KINDS = {
    FileKind.FILE: "a file",
    FileKind.LINK: "a link",
    FileKind.CLOSED: "a folder that cannot be read",
    FileKind.OTHER: "neither file nor link",
}
# Returns the content of a path, or None if it is not available.
ReadContent = Callable[[str], bytes | None]


@dataclass(frozen=True)
class ProjectDiff:
    """The changed paths, the number of changed lines, and the text in Markdown; `diff` is only the unified diff."""

    changes: FileChanges
    lines_added: int
    lines_removed: int
    text: str
    diff: str = ""

    @property
    def paths(self) -> tuple[str, ...]:
        return self.changes.paths


@dataclass(frozen=True)
class _FileDiff:
    """The change of one file: `action` and `notes` for the list, lines and hunks for the diff."""

    path: str
    action: str
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
        return f"- {self.action} {_format_line(self.path)}" + (f" ({notes})" if notes else "")

    def render_lines(self) -> Iterator[str]:
        name = _format_line(self.path)
        yield "--- /dev/null" if self.action == "added" else f"--- a/{name}"
        yield "+++ /dev/null" if self.action == "removed" else f"+++ b/{name}"
        for hunk in self.hunks:
            first, last = hunk[0], hunk[-1]
            yield f"@@ -{_format_range(first[1], last[2])} +{_format_range(first[3], last[4])} @@"
            for tag, low, high, new_low, new_high in hunk:
                yield from _render_side(" " if tag == "equal" else "-", self.old[low:high])
                if tag != "equal":
                    yield from _render_side("+", self.new[new_low:new_high])


def compute_diff(
    before: FileTree, after: FileTree, read_old: ReadContent, read_new: ReadContent, limit: int = MAX_LENGTH
) -> ProjectDiff:
    """Compute the change between two trees; the diff has about `limit` characters at most."""
    changes = compare_trees(before, after)
    if not changes.paths:
        return ProjectDiff(changes, 0, 0, NO_CHANGE)
    diff = _Diff(limit, len(changes.paths))
    titles: list[str] = []
    added = removed = 0
    for path in changes.paths:
        file_diff = _compare_file(path, before.entries.get(path), after.entries.get(path), read_old, read_new)
        added, removed = added + file_diff.added, removed + file_diff.removed
        diff.add(file_diff)
        titles.append(file_diff.title)
    summary = _render_summary(changes, added, removed)
    text = "\n".join([summary, *limit_lines(titles, MAX_NAMES), "", *diff.render_block(), ""])
    return ProjectDiff(changes, added, removed, text, diff.text)


def extract_diff(text: str) -> str:
    """Return the unified diff in the Markdown of a change; empty if there is none."""
    block = re.search(r"^(`{3,})diff\n(.*?)^\1$", text, re.MULTILINE | re.DOTALL)
    return block[2] if block else ""


def parse_diffstat(text: str) -> str:
    """Return `1 file changed, 2 insertions, 2 deletions` for the Markdown of a change; empty for other texts."""
    if text == NO_CHANGE:
        return "no file changed"
    summary = _SUMMARY.match(text)
    if summary is None:
        return ""
    files = sum(int(count.replace(",", "")) for count in re.findall(r"\d[\d,]*(?= )", summary[1]))
    counts = [(files, "file"), *((int(summary[group].replace(",", "")), noun) for group, noun in _LINE_NOUNS)]
    changed, *lines = (format_count(count, noun) for count, noun in counts)
    return ", ".join([f"{changed} changed", *lines])


def render_document_diff(name: str, old: str, new: str, limit: int) -> str:
    """Render the change of one document."""
    old_lines, new_lines = (_split_lines(text.encode("utf-8", "replace")) for text in (old, new))
    diff = _Diff(limit, 1)
    diff.add(_compare_lines(_FileDiff(name, "modified" if old else "added"), old_lines, new_lines))
    return diff.text


class _Diff:
    """The diffs of files up to a limit; each file gets an equal share at most, or a quarter if there are over four."""

    def __init__(self, limit: int, files: int) -> None:
        self._room = limit
        self._room_per_file = limit // min(files, 4)
        self._lines: list[str] = []
        self._omitted_files = 0

    def add(self, file_diff: _FileDiff) -> None:
        if not file_diff.hunks:
            return
        lines = list(file_diff.render_lines()) if self._room > 0 else []
        shown = _take_fitting(lines, min(self._room, self._room_per_file))
        if len(shown) <= _HEADER_LINES:
            self._omitted_files += 1
            self._room = 0
            return
        if omitted := len(lines) - len(shown):
            shown.append(f"[... {omitted:,} more lines of this diff left out ...]")
        self._lines += shown
        self._room -= sum(len(line) + 1 for line in shown)

    @property
    def text(self) -> str:
        return "\n".join(self._lines)

    def render_block(self) -> list[str]:
        """Render the diff as a Markdown code block with a fence longer than any in it."""
        if not self._lines:
            return []
        fence = "`" * max(3, 1 + max(map(len, re.findall("`+", self.text)), default=0))
        note = f"The diffs of {self._omitted_files:,} more files are left out."
        return [f"{fence}diff", self.text, fence, *(["", note] if self._omitted_files else [])]


def _take_fitting(lines: list[str], room: int) -> list[str]:
    sizes = accumulate(len(line) + 1 for line in lines)
    return [line for line, size in zip(lines, sizes, strict=True) if size <= room]


def _render_summary(changes: FileChanges, added: int, removed: int) -> str:
    groups = [("added", changes.added), ("removed", changes.removed), ("modified", changes.modified)]
    counts = ", ".join(f"{len(paths):,} {action}" for action, paths in groups if paths)
    return f"# What has changed\n\nFiles: {counts}. Lines: {added:,} added, {removed:,} removed.\n"


def _compare_file(
    path: str, old: FileEntry | None, new: FileEntry | None, read_old: ReadContent, read_new: ReadContent
) -> _FileDiff:
    action = "added" if old is None else "removed" if new is None else "modified"
    file_diff = _FileDiff(path, action, _describe_kind(old, new))
    if old and new and old.digest == new.digest and old.kind is new.kind:
        return file_diff
    old_data, new_data = _read_content(path, old, read_old), _read_content(path, new, read_new)
    if old_data is None or new_data is None:
        return replace(file_diff, notes=(*file_diff.notes, "not shown"))
    if b"\0" in old_data or b"\0" in new_data:
        return replace(file_diff, notes=(*file_diff.notes, "binary"))
    return _compare_lines(file_diff, _split_lines(old_data), _split_lines(new_data))


def _describe_kind(old: FileEntry | None, new: FileEntry | None) -> tuple[str, ...]:
    """Describe a new kind of file, or a changed executable bit."""
    if new is None:
        return ()
    if new.kind is not (old.kind if old else FileKind.FILE):
        return (_KINDS[new.kind],)
    if new.is_executable is (old.is_executable if old else False):
        return ()
    return ("may now be run" if new.is_executable else "may no longer be run",)


def _read_content(path: str, entry: FileEntry | None, read: ReadContent) -> bytes | None:
    if entry is None:
        return b""
    data = read(path) if entry.digest else None
    return b"link to " + data if data is not None and entry.kind is FileKind.LINK else data


def _split_lines(data: bytes) -> list[str]:
    """Return the lines without their newlines; only a last line that has none in the file ends with one, as a mark."""
    *lines, last = data.decode("utf-8", "surrogateescape").split("\n")
    return [*lines, f"{last}\n"] if last else lines


def _compare_lines(file_diff: _FileDiff, old: list[str], new: list[str]) -> _FileDiff:
    hunks = list(compute_hunks(old, new)) if old or new else []
    edits = [op for hunk in hunks for op in hunk if op[0] != "equal"]
    added, removed = sum(op[4] - op[3] for op in edits), sum(op[2] - op[1] for op in edits)
    return replace(file_diff, added=added, removed=removed, old=old, new=new, hunks=hunks)


def _render_side(sign: str, lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        yield sign + _format_line(line.removesuffix("\n"))
        if line.endswith("\n"):
            yield _NO_NEWLINE


def _format_range(low: int, high: int) -> str:
    length = high - low
    if length == 1:
        return f"{low + 1}"
    return f"{low + 1 if length else low},{length}"


def _format_line(text: str) -> str:
    return clip_text(reveal_hidden(text), MAX_LINE_LENGTH)
