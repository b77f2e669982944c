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
        self._root = str(workload.folder)
        self._there = _names(folder)
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
        name = self._file(case)
        if name not in self._there:
            return None
        try:
            kept = _Kept.model_validate_json((self._folder / name).read_bytes())
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
        name = self._file(case)
        with contextlib.suppress(OSError), open(os.path.join(self._folder, name), "wb", 0) as file:
            file.write(kept.model_dump_json(exclude_defaults=True).encode())
            self._there.add(name)

    def _file(self, case: Case) -> str:
        return f"{self._name}-{hashlib.sha256(case.id.encode()).hexdigest()[:16]}.json"

    def _content(self, name: str) -> str:
        """A hash of a file; of a program that is installed, what changes when it does; empty where there is none."""
        path = os.path.join(self._root, name)
        stamp = signature(path)
        if not stamp:
            return str(signature(program)) if (program := _program(name)) else ""
        key = (name, stamp)
        if key not in self._hashes:
            try:
                with open(path, "rb", 0) as file:
                    self._hashes[key] = hashlib.sha256(file.read()).hexdigest()
            except OSError:
                self._hashes[key] = ""
        return self._hashes[key]


def _names(folder: Path) -> set[str]:
    try:
        return set(os.listdir(folder))
    except OSError:
        return set()


@cache
def _program(name: str) -> str | None:
    return None if os.sep in name else shutil.which(name)
