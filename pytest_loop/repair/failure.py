"""Describe an exception: its message, its traceback, and names similar to one that was missing."""

from __future__ import annotations

import builtins
import pkgutil
import re
import sys
import traceback
from collections.abc import Iterable
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from pytest_loop.repair.suspicion import Line

_MAX_MESSAGE_LENGTH = 500
_MAX_TRACEBACK_DEPTH = 50
_MISSING_IMPORT = re.compile(r"cannot import name '(\w+)'")


class Failure(BaseModel):
    """An exception; `similar` has names similar to the `missing` one, best first."""

    model_config = ConfigDict(frozen=True)

    error: str = ""
    message: str = ""
    frames: tuple[Line, ...] = ()
    missing: str = ""
    similar: tuple[str, ...] = ()


def describe_failure(exception: BaseException) -> Failure:
    """Describe an exception."""
    steps = list(traceback.walk_tb(exception.__traceback__))[-_MAX_TRACEBACK_DEPTH:]
    missing, candidates = "", list[str]()
    with suppress(Exception):  # listing the names of a project's object may raise anything
        names = steps[-1][0].f_locals | steps[-1][0].f_globals if steps else {}
        missing, candidates = _find_missing_name(exception, names)
    return Failure(
        error=type(exception).__name__,
        message=_read_message(exception),
        frames=tuple((str(Path(frame.f_code.co_filename).resolve()), line) for frame, line in steps),
        missing=missing,
        similar=tuple(get_close_matches(missing, sorted(set(candidates)))) if missing else (),
    )


def _read_message(exception: BaseException) -> str:
    with suppress(Exception):  # the exception's own `__str__` may raise anything
        return str(exception)[:_MAX_MESSAGE_LENGTH]
    return ""


def _find_missing_name(exception: BaseException, names: Iterable[str]) -> tuple[str, list[str]]:
    """Return the name that was missing, and those that were available."""
    if isinstance(exception, NameError):
        return exception.name or "", [*names, *dir(builtins)]
    if isinstance(exception, AttributeError):
        return exception.name or "", dir(exception.obj)
    if isinstance(exception, ModuleNotFoundError):
        package, _, name = (exception.name or "").rpartition(".")
        return name, _list_modules(package)
    if isinstance(exception, ImportError) and (match := _MISSING_IMPORT.search(str(exception))):
        return match[1], dir(sys.modules.get(exception.name or ""))
    return "", []


def _list_modules(package: str) -> list[str]:
    if package:
        return [module.name for module in pkgutil.iter_modules(sys.modules[package].__path__)]
    return [*sys.stdlib_module_names, *(module.name for module in pkgutil.iter_modules())]
