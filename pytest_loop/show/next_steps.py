"""Suggest the next step for a finished document, by its type."""

from __future__ import annotations

from pathlib import PurePosixPath

from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.model.vocabulary import Target

_STEPS = {
    "api": 'build what it describes: pytest --loop-task "implement {path}"',
    "docs": "link it from the page where its readers begin, and check its commands once by hand",
    "config": "try it with the program that reads it, and not in production first",
    "code": 'test it in your project: pytest --loop-task "write tests for {path}"',
}
_SUFFIXES = {
    "docs": (".md", ".markdown"),
    "config": (".yaml", ".yml", ".json", ".toml", ".ini", ".cfg", ".conf", ".xml", ""),
}


def suggest_next_step(state: RunState, path: str = "") -> str:
    """Return advice for the document of a successful run; `path` is its copy, if any; empty for other runs."""
    if state.setup.target is not Target.ARTIFACT or not state.stop.passed:
        return ""
    document_type = _classify(PurePosixPath(state.setup.artifact))
    return _STEPS[document_type].format(path=path or state.setup.artifact)


def _classify(path: PurePosixPath) -> str:
    if path.stem.lower() in ("openapi", "swagger"):
        return "api"
    return next((name for name, suffixes in _SUFFIXES.items() if path.suffix.lower() in suffixes), "code")
