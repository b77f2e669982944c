"""Why a test failed, or a module could not be imported: the exception, the way to it, and names that come close."""

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

_LONGEST = 500
_DEEPEST = 50
_IMPORTED = re.compile(r"cannot import name '(\w+)'")


class Failure(BaseModel):
    """An exception; `close` are names that look like the one that was not there, best first."""

    model_config = ConfigDict(frozen=True)

    error: str = ""
    message: str = ""
    frames: tuple[Line, ...] = ()
    missing: str = ""
    close: tuple[str, ...] = ()


def failure(exception: BaseException) -> Failure:
    """What an exception tells."""
    steps = list(traceback.walk_tb(exception.__traceback__))[-_DEEPEST:]
    missing, known = "", list[str]()
    with suppress(Exception):  # whatever an object of the project does when it is asked for its names
        missing, known = _missing(exception, steps[-1][0].f_locals | steps[-1][0].f_globals if steps else {})
    return Failure(
        error=type(exception).__name__,
        message=_text(exception),
        frames=tuple((str(Path(frame.f_code.co_filename).resolve()), line) for frame, line in steps),
        missing=missing,
        close=tuple(get_close_matches(missing, sorted(set(known)))) if missing else (),
    )


def _text(exception: BaseException) -> str:
    with suppress(Exception):  # as above
        return str(exception)[:_LONGEST]
    return ""


def _missing(exception: BaseException, names: Iterable[str]) -> tuple[str, list[str]]:
    """The name that was not there, and those that were."""
    if isinstance(exception, NameError):
        return exception.name or "", [*names, *dir(builtins)]
    if isinstance(exception, AttributeError):
        return exception.name or "", dir(exception.obj)
    if isinstance(exception, ModuleNotFoundError):
        package, _, name = (exception.name or "").rpartition(".")
        return name, _modules(package)
    if isinstance(exception, ImportError) and (found := _IMPORTED.search(str(exception))):
        return found[1], dir(sys.modules.get(exception.name or ""))
    return "", []


def _modules(package: str) -> list[str]:
    if package:
        return [one.name for one in pkgutil.iter_modules(sys.modules[package].__path__)]
    return [*sys.stdlib_module_names, *(one.name for one in pkgutil.iter_modules())]
