"""What is kept of a case: its result, for as long as nothing that it depends on has changed."""

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
from pytest_loop.workloads import placeholders
from pytest_loop.workloads.cases import Case, Workload
from pytest_loop.workloads.manifest import command_words

VERSION = 1
# For each case that is known, before old ones are left out.
MOST_LINES = 4


class _Kept(Value):
    key: str
    output: str
    result: CaseResult


class Memory:
    """The results of earlier sessions, a line each in a file that may be deleted at any time; a case's last one counts.

    A file for each case would take longer than many a case does.
    """

    def __init__(self, folder: Path, workload: Workload) -> None:
        self._path = folder / f"{hashlib.sha256(os.fsencode(workload.source.path)).hexdigest()[:16]}.jsonl"
        self._root = str(workload.folder)
        self._kept = self._read()
        self._hashes: dict[tuple[object, ...], str] = {}
        manifest = workload.source.manifest
        commands = (manifest.build_command, manifest.run_command, manifest.evaluate_command, manifest.review_command)
        self._commands = [one for one in commands if one]
        self._repeats = [manifest.repeat, str(manifest.need)]
        words = {word for one in self._commands for word in command_words(one) if not placeholders.named(word)}
        self._named = [manifest.reviewer, *workload.artifacts, *sorted(words)]

    def key(self, case: Case) -> str:
        """A hash of all that a result depends on: commands and what they name, case, artifacts, expected file."""
        files = [case.id, case.expected, *self._named]
        parts = [
            VERSION,
            case.output,
            self._commands,
            self._repeats,
            [[name, self._content(name)] for name in files if name],
        ]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def known(self, case: Case, key: str) -> CaseResult | None:
        """The result that was kept under this key, if the output is still the one that was judged."""
        kept = self._kept.get(case.id)
        if kept is None or kept.key != key or kept.output != self._content(case.output):
            return None
        return kept.result.model_copy(update={"reused": True})

    def keep(self, case: Case, key: str, result: CaseResult) -> None:
        """Keep a result; that the infrastructure failed is not worth it."""
        if result.outcome is CaseOutcome.INFRASTRUCTURE:
            return
        kept = _Kept(key=key, output=self._content(case.output), result=result)
        self._kept[case.id] = kept
        with contextlib.suppress(OSError), self._path.open("ab", 0) as file:
            file.write(_line(kept))

    def _read(self) -> dict[str, _Kept]:
        """What was kept; what was written half, or by somebody else, was not."""
        try:
            lines = self._path.read_bytes().split(b"\n")
        except OSError:
            return {}
        kept: dict[str, _Kept] = {}
        for line in lines:
            with contextlib.suppress(ValidationError):
                one = _Kept.model_validate_json(line)
                kept[one.result.id] = one
        if len(lines) > MOST_LINES * (len(kept) + 1):
            self._tidy(kept)
        return kept

    def _tidy(self, kept: dict[str, _Kept]) -> None:
        """Leave out what does not count any more; what somebody else adds just now may be lost."""
        new = self._path.with_suffix(f".{os.getpid()}")
        with contextlib.suppress(OSError):
            new.write_bytes(b"".join(map(_line, kept.values())))
            new.replace(self._path)

    def _content(self, name: str) -> str:
        """A hash of a file; of a program that is installed, what changes when it does; empty where there is none."""
        path = os.path.join(self._root, name)
        stamp = get_signature(path)
        if not stamp:
            return str(get_signature(program)) if (program := _program(name)) else ""
        key = (name, stamp)
        if key not in self._hashes:
            try:
                with open(path, "rb", 0) as file:
                    self._hashes[key] = hashlib.sha256(file.read()).hexdigest()
            except OSError:
                self._hashes[key] = ""
        return self._hashes[key]


def _line(kept: _Kept) -> bytes:
    """The end of the line before comes first, so that one that was written half spoils no other."""
    return b"\n" + kept.model_dump_json(exclude_defaults=True).encode()


@cache
def _program(name: str) -> str | None:
    return None if os.sep in name else shutil.which(name)
