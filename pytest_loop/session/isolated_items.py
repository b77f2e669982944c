"""Run a few items in a session of their own: those that failed, and new tests."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from pathlib import Path

from pytest_loop.core.model.session_order import SessionOrder
from pytest_loop.session.result import SessionResult
from pytest_loop.session.runner import Session, SessionError, SessionStoppedError


def confirm_failures(session: Session, order: SessionOrder, root: Path, nodeids: Iterable[str]) -> bool:
    """Run failed items again, alone; return whether all of them fail again; True for no items."""
    selected = tuple(nodeids)
    if not selected:
        return True
    result = run_items_alone(session, order, root, selected)
    return result is not None and set(result.failed_items).issuperset(selected)


def run_items_alone(
    session: Session, order: SessionOrder, root: Path, selected: tuple[str, ...]
) -> SessionResult | None:
    """Run a session with these items alone; return None if it could not be carried out."""
    files = dict.fromkeys(str(root / nodeid.partition("::")[0]) for nodeid in selected)
    fields = {"selected": selected, "only": tuple(files), "canary": secrets.token_hex(8)}
    try:
        return session.evaluate(order.model_copy(update=fields))
    except SessionStoppedError:
        raise
    except SessionError:
        return None
