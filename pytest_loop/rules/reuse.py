"""Reuse verdicts of the previous evaluation for rules with known and unchanged inputs."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_loop.core.model.rules import Evidence
from pytest_loop.rules.checks.check import Context, Inputs
from pytest_loop.rules.checks.registry import list_checks
from pytest_loop.rules.rule_files import LoadedRule

# Variables that differ between sessions and change no verdict.
_IGNORED_VARIABLES = ("PYTEST_", "PYTHON", "COV_", "COVERAGE_")


class VerdictCache:
    """Evidence by node id, each with a hash of everything that it depends on."""

    def __init__(self, evidence: Mapping[str, Any]) -> None:
        self._evidence = evidence
        self._file_hashes: dict[tuple[object, ...], str] = {}
        variables = sorted(
            (name, value) for name, value in os.environ.items() if not name.startswith(_IGNORED_VARIABLES)
        )
        self._environment = _hash(json.dumps(variables).encode())

    def find_evidence(self, nodeid: str, inputs: str) -> Evidence | None:
        """Return the evidence of an item if it was stored with the hash `inputs`, else None."""
        evidence = self._evidence.get(nodeid)
        return Evidence.model_validate(evidence) if evidence and inputs and evidence.get("inputs") == inputs else None

    def hash_inputs(self, loaded: LoadedRule, context: Context) -> str:
        """Return a hash of the rule and its inputs; return "" if inputs are unknown, or for fixtures or repeats."""
        if loaded.fixtures or loaded.rule.repeat > 1:
            return ""
        parts = [repr(loaded.raw), str(loaded.rule.must_not)]
        for check in list_checks(loaded.check):
            inputs: Inputs | None = check.depends_on(context) if hasattr(check, "depends_on") else None
            if inputs is None:
                return ""
            parts += [f"{path}={self._hash_file(path)}" for path in inputs.files]
            parts += [f"{path}={get_signature(path)}" for path in inputs.tools]
            if inputs.tools:
                parts.append(self._environment)
        return _hash("\n".join(parts).encode())

    def _hash_file(self, path: Path) -> str:
        key = (path, get_signature(path))
        if key not in self._file_hashes:
            try:
                self._file_hashes[key] = _hash(path.read_bytes())
            except OSError as error:
                self._file_hashes[key] = type(error).__name__
        return self._file_hashes[key]


def get_signature(path: Path | str) -> tuple[int, ...]:
    """Return the times, size and inode of a file; empty if it does not exist."""
    try:
        status = os.stat(path)  # noqa: PTH116 - a third of the time of Path.stat, and called for every rule
    except (OSError, ValueError):
        return ()
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]
