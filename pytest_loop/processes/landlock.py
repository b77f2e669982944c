"""Restrict where a process and its children may write, with Landlock (Linux 5.13 and later)."""

from __future__ import annotations

import ctypes
import os
import stat
import struct
import sys
from collections.abc import Iterable
from pathlib import Path

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION_FLAG, _PATH_BENEATH, _NO_NEW_PRIVILEGES = 1, 1, 38
_SCOPE_SIGNALS = 1 << 1
# Access rights by the Landlock version that introduced them: write, remove and create; move; truncate.
_ACCESS = ((1, 1 << 1 | 0b1_1111_1111 << 4), (2, 1 << 13), (3, 1 << 14))
# The rights among them that a file can have: write and truncate.
_FILE_ACCESS = 1 << 1 | 1 << 14
_SIGNALS_VERSION = 6
_LIBC = ctypes.CDLL(None, use_errno=True)


def detect_version() -> int:
    """Return the kernel's Landlock version, or 0 if there is none."""
    return max(0, _call(_CREATE_RULESET, None, 0, _VERSION_FLAG)) if sys.platform.startswith("linux") else 0


def restrict_writes(paths: Iterable[Path]) -> bool:
    """Allow writing to these files and below these folders only, irrevocably; return success.

    Where the kernel supports it, signals to processes outside are blocked too.
    """
    version = detect_version()
    access = sum(bits for since, bits in _ACCESS if since <= version)
    has_signals = version >= _SIGNALS_VERSION
    attributes = struct.pack("=QQQ", access, 0, _SCOPE_SIGNALS) if has_signals else struct.pack("=Q", access)
    ruleset = _call(_CREATE_RULESET, attributes, len(attributes), 0) if version else -1
    if ruleset < 0:
        return False
    try:
        for path in paths:
            _allow(ruleset, access, path)
        _LIBC.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        return _call(_RESTRICT_SELF, ruleset, 0) == 0
    finally:
        os.close(ruleset)


def _allow(ruleset: int, access: int, path: Path) -> None:
    descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            access &= _FILE_ACCESS
        _call(_ADD_RULE, ruleset, _PATH_BENEATH, struct.pack("=Qi", access, descriptor), 0)
    finally:
        os.close(descriptor)


def _call(number: int, *arguments: int | bytes | None) -> int:
    values = (ctypes.c_long(value) if isinstance(value, int) else value for value in arguments)
    result: int = _LIBC.syscall(ctypes.c_long(number), *values)
    return result
