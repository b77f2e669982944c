"""Repeat single items of a session: those that failed, to see whether they fail again."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from pytest_loop.core.model.session_order import SessionOrder
from pytest_loop.session.result import SessionResult
from pytest_loop.session.runner import Session, SessionError


class KnownResult(NamedTuple):
    """The result of a session for files with this hash."""

    digest: str
    result: SessionResult


def fail_all_again(session: Session, order: SessionOrder, root: Path, nodeids: Iterable[str]) -> bool:
    """Return whether each of these items fails once more in a session of their own; no items always do."""
    selected = tuple(nodeids)
    if not selected:
        return True
    files = dict.fromkeys(str(root / nodeid.partition("::")[0]) for nodeid in selected)
    try:
        fields = {"selected": selected, "only": tuple(files), "canary": secrets.token_hex(8)}
        result = session.evaluate(order.model_copy(update=fields))
    except SessionError:
        return False
    return set(result.failed_items).issuperset(selected)
