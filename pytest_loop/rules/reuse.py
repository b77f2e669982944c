"""A rule whose inputs are the same as before keeps its verdict; which inputs it has must be certain."""

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

_OURS = ("PYTEST_", "PYTHON", "COV_", "COVERAGE_")


class Reuse:
    """The verdicts of the evaluation before, by item, each with a hash of everything that it depends on."""

    def __init__(self, known: Mapping[str, Any]) -> None:
        self._known = known
        self._hashes: dict[tuple[object, ...], str] = {}
        kept = sorted((name, value) for name, value in os.environ.items() if not name.startswith(_OURS))
        self._environment = _hash(json.dumps(kept).encode())

    def known(self, nodeid: str, inputs: str) -> Evidence | None:
        """What was found when the inputs were the same."""
        known = self._known.get(nodeid)
        return Evidence.model_validate(known) if known and inputs and known.get("inputs") == inputs else None

    def inputs(self, judged: LoadedRule, context: Context) -> str:
        """A hash of what the rule says and of what it looks at; empty where that is not known."""
        if judged.fixtures or judged.rule.repeat > 1:
            return ""
        parts = [repr(judged.raw), str(judged.rule.must_not)]
        for one in list_checks(judged.check):
            found: Inputs | None = one.depends_on(context) if hasattr(one, "depends_on") else None
            if found is None:
                return ""
            parts += [f"{path}={self._file(path)}" for path in found.files]
            parts += [f"{path}={signature(path)}" for path in found.tools]
            if found.tools:
                parts.append(self._environment)
        return _hash("\n".join(parts).encode())

    def _file(self, path: Path) -> str:
        key = (path, signature(path))
        if key not in self._hashes:
            try:
                self._hashes[key] = _hash(path.read_bytes())
            except OSError as error:
                self._hashes[key] = type(error).__name__
        return self._hashes[key]


def signature(path: Path | str) -> tuple[int, ...]:
    """What changes when a file does; empty where there is none."""
    try:
        found = os.stat(path)  # noqa: PTH116 - a third of the time of Path.stat, and asked for every rule
    except (OSError, ValueError):
        return ()
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]
