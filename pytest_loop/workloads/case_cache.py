"""Cache the results of cases for as long as everything that they depend on is unchanged."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from functools import cache
from pathlib import Path

from pydantic import ValidationError

from pytest_loop.core.model.rules import Value
from pytest_loop.core.workload.measurement import CaseOutcome, CaseResult
from pytest_loop.rules.reuse import get_signature
from pytest_loop.workloads.cases import Case, Workload
from pytest_loop.workloads.manifest import find_placeholders, split_manifest_command

VERSION = 1
# A file with more lines is compacted.
MAX_LINES_PER_CASE = 4


class _Entry(Value):
    key: str
    output: str
    result: CaseResult


class CaseCache:
    """Results of earlier sessions in one file, one per line; the last line of a case counts.

    The file may be deleted at any time. A file per case would cost more time than many cases take.
    """

    def __init__(self, folder: Path, workload: Workload) -> None:
        self._path = folder / f"{hashlib.sha256(os.fsencode(workload.source.path)).hexdigest()[:16]}.jsonl"
        self._root = str(workload.folder)
        self._entries = self._read_entries()
        self._file_hashes: dict[tuple[object, ...], str] = {}
        manifest = workload.manifest
        words = {word for command in manifest.commands for word in split_manifest_command(command)}
        files = sorted(word for word in words if not find_placeholders(word))
        self._commands = manifest.commands
        self._repeats = [manifest.repeat, str(manifest.need)]
        self._shared_files = [manifest.reviewer, *workload.editable_files, *files]

    def compute_key(self, case: Case) -> str:
        """Return a hash of everything that the result depends on: commands, settings, and all files they name."""
        files = filter(None, (case.id, case.expected, *self._shared_files))
        hashes = [[name, self._compute_signature(name)] for name in files]
        parts = [VERSION, case.output, self._commands, self._repeats, hashes]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def find_result(self, case: Case, key: str) -> CaseResult | None:
        """Return the result stored for a key; return None without one, or if the output has changed since."""
        entry = self._entries.get(case.id)
        if entry is None or entry.key != key or entry.output != self._compute_signature(case.output):
            return None
        return entry.result.model_copy(update={"reused": True})

    def store_result(self, case: Case, key: str, result: CaseResult) -> None:
        """Store a result, unless it is an infrastructure error."""
        if result.outcome is CaseOutcome.INFRASTRUCTURE:
            return
        entry = _Entry(key=key, output=self._compute_signature(case.output), result=result)
        self._entries[case.id] = entry
        with contextlib.suppress(OSError), self._path.open("ab", 0) as file:
            file.write(_format_line(entry))

    def _read_entries(self) -> dict[str, _Entry]:
        """Read the last entry of each case; skip invalid lines, and compact a file with too many lines."""
        try:
            lines = self._path.read_bytes().split(b"\n")
        except OSError:
            return {}
        entries: dict[str, _Entry] = {}
        for line in lines:
            with contextlib.suppress(ValidationError):
                entry = _Entry.model_validate_json(line)
                entries[entry.result.id] = entry
        if len(lines) > MAX_LINES_PER_CASE * (len(entries) + 1):
            self._compact(entries)
        return entries

    def _compact(self, entries: dict[str, _Entry]) -> None:
        """Write only the last line of each case; lines that another process adds meanwhile may be lost."""
        temporary = self._path.with_suffix(f".{os.getpid()}")
        with contextlib.suppress(OSError):
            temporary.write_bytes(b"".join(map(_format_line, entries.values())))
            temporary.replace(self._path)

    def _compute_signature(self, name: str) -> str:
        """Return the hash of a workload file, or the signature of an installed program, or an empty text."""
        path = os.path.join(self._root, name)
        stamp = get_signature(path)
        if not stamp:
            return str(get_signature(program)) if (program := _find_program(name)) else ""
        key = (name, stamp)
        if key not in self._file_hashes:
            try:
                with open(path, "rb", 0) as file:
                    self._file_hashes[key] = hashlib.sha256(file.read()).hexdigest()
            except OSError:
                self._file_hashes[key] = ""
        return self._file_hashes[key]


def _format_line(entry: _Entry) -> bytes:
    """Return a line that begins with a line end, so that an incomplete line before it spoils no other."""
    return b"\n" + entry.model_dump_json(exclude_defaults=True).encode()


@cache
def _find_program(name: str) -> str | None:
    return None if os.sep in name else shutil.which(name)
