"""Run single items in a session of their own: those that failed, and new tests."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from pathlib import Path

from pytest_loop.core.model.session_order import SessionOrder
from pytest_loop.session.result import SessionResult
from pytest_loop.session.runner import Session, SessionError, SessionStoppedError


def fail_all_again(session: Session, order: SessionOrder, root: Path, nodeids: Iterable[str]) -> bool:
    """Return whether each of these items fails once more in a session of their own; no items always do."""
    selected = tuple(nodeids)
    if not selected:
        return True
    result = repeat_items(session, order, root, selected)
    return result is not None and set(result.failed_items).issuperset(selected)


def pass_all_now(session: Session, order: SessionOrder, root: Path, nodeids: Iterable[str]) -> bool:
    """Return whether these items, or those of these files, pass in a session of their own, which ends at a failure."""
    selected = tuple(nodeids)
    if not selected:
        return False
    result = repeat_items(session, order.model_copy(update={"can_stop_early": True}), root, selected)
    if result is None or result.has_failures or result.problems:
        return False
    names = {name for nodeid in result.evidence for name in (nodeid, nodeid.partition("::")[0])}
    return names.issuperset(selected)


def repeat_items(session: Session, order: SessionOrder, root: Path, selected: tuple[str, ...]) -> SessionResult | None:
    """Return the result of a session with these items alone; None if it could not be carried out."""
    files = dict.fromkeys(str(root / nodeid.partition("::")[0]) for nodeid in selected)
    fields = {"selected": selected, "only": tuple(files), "canary": secrets.token_hex(8)}
    try:
        return session.evaluate(order.model_copy(update=fields))
    except SessionStoppedError:
        raise
    except SessionError:
        return None
