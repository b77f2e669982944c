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

from pytest_loop.core.measuring import CaseOutcome, CaseResult
from pytest_loop.core.model import Value
from pytest_loop.rules.reuse import signature
from pytest_loop.workloads import placeholders
from pytest_loop.workloads.cases import Case, Workload
from pytest_loop.workloads.manifest import command_words

VERSION = 1


class _Kept(Value):
    key: str
    output: str
    result: CaseResult


class Memory:
    """The results of earlier sessions, a file for each case, in a folder that may be emptied at any time."""

    def __init__(self, folder: Path, workload: Workload) -> None:
        self._folder = folder
        self._workload = workload
        self._name = hashlib.sha256(os.fsencode(workload.source.path)).hexdigest()[:16]
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
        try:
            kept = _Kept.model_validate_json(self._place(case).read_bytes())
        except (OSError, ValidationError):
            return None
        if kept.key != key or kept.output != self._content(case.output):
            return None
        return kept.result.model_copy(update={"reused": True})

    def keep(self, case: Case, key: str, result: CaseResult) -> None:
        """Keep a result; that the infrastructure failed is not worth it. What is written half is not read again."""
        if result.outcome is CaseOutcome.INFRASTRUCTURE:
            return
        kept = _Kept(key=key, output=self._content(case.output), result=result)
        with contextlib.suppress(OSError):
            self._place(case).write_text(kept.model_dump_json(exclude_defaults=True), encoding="utf-8")

    def _place(self, case: Case) -> Path:
        name = hashlib.sha256(case.id.encode()).hexdigest()[:16]
        return self._folder / f"{self._name}-{name}.json"

    def _content(self, name: str) -> str:
        """A hash of a file; of a program that is installed, what changes when it does; empty where there is none."""
        path = self._workload.folder / name
        stamp = signature(path)
        if not stamp:
            return str(signature(Path(program))) if (program := _program(name)) else ""
        key = (name, stamp)
        if key not in self._hashes:
            try:
                self._hashes[key] = hashlib.sha256(path.read_bytes()).hexdigest()
            except OSError:
                self._hashes[key] = ""
        return self._hashes[key]


@cache
def _program(name: str) -> str | None:
    return None if os.sep in name else shutil.which(name)
