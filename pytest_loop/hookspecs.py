"""Every hook that pytest-loop calls; all are optional."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import BaseModel


def pytest_loop_checks() -> Mapping[str, type[BaseModel]]:  # type: ignore[empty-body]
    """Add kinds of checks to rule files.

    Called once for every rule file that is collected; the results of all plugins are joined.

    :returns: a mapping of the name of a kind to a pydantic model with a method `run(context)`. Where the model has a
        field of that name, it describes the whole check with its modifiers; otherwise it describes the value of the
        key. `run` gives nothing (or True) for a pass, `pytest_loop.Finding` values, a text or False for a failure,
        and raises `pytest_loop.CheckError` where the check cannot be carried out.
    """
