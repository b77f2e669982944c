"""A fence of the kernel's (Landlock, Linux 5.13): a process, and all it starts, may write below some folders only."""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Iterable
from pathlib import Path

_CREATE, _ADD_RULE, _RESTRICT = 444, 445, 446
_VERSION, _BENEATH, _NO_NEW_PRIVILEGES = 1, 1, 38
_SIGNALS = 1 << 1
# What may be handled, by the version that knows it: writing, removing and making things; moving; truncating.
_ACCESS = ((1, 1 << 1 | 0b1_1111_1111 << 4), (2, 1 << 13), (3, 1 << 14))
_SIGNALS_VERSION = 6
_LIBC = ctypes.CDLL(None, use_errno=True)


def version() -> int:
    """Which version the kernel has; 0 where it has none, or does not use it."""
    return max(0, _call(_CREATE, None, 0, _VERSION)) if sys.platform.startswith("linux") else 0


def fence(folders: Iterable[Path]) -> bool:
    """Put it up, for good; whether there is one now. Where it can, it keeps signals inside as well."""
    known = version()
    access = sum(bits for since, bits in _ACCESS if since <= known)
    has_signals = known >= _SIGNALS_VERSION
    attributes = struct.pack("=QQQ", access, 0, _SIGNALS) if has_signals else struct.pack("=Q", access)
    rules = _call(_CREATE, attributes, len(attributes), 0) if known else -1
    if rules < 0:
        return False
    try:
        for folder in folders:
            _allow(rules, access, folder)
        _LIBC.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        return _call(_RESTRICT, rules, 0) == 0
    finally:
        os.close(rules)


def _allow(rules: int, access: int, folder: Path) -> None:
    place = os.open(folder, os.O_PATH | os.O_CLOEXEC)
    try:
        _call(_ADD_RULE, rules, _BENEATH, struct.pack("=Qi", access, place), 0)
    finally:
        os.close(place)


def _call(number: int, *words: int | bytes | None) -> int:
    values = (ctypes.c_long(one) if isinstance(one, int) else one for one in words)
    found: int = _LIBC.syscall(ctypes.c_long(number), *values)
    return found
