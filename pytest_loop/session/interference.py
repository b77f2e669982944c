"""Find code under test that interferes with its session: it replaces functions, or inspects callers and objects.

An interference is a pair: the path of a file of the project (empty if unknown), and a sentence about that file. With
`CAUGHT_FAILURE`, the pair begins with the node id of a test instead. A product may have a good reason to interfere, so
compare with the session before the first edit.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from operator import is_
from pathlib import Path
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

import pytest

from pytest_loop.session.equality import contains_everything, equals_everything, list_classes
from pytest_loop.session.locations import Locations
from pytest_loop.session.test_modules import TestModule, is_test_support

Interference = tuple[str, str]
# Packages that run tests and report them.
_PYTEST = pytest.Item.__module__.partition(".")[0]
_MACHINERY = frozenset({"pytest", _PYTEST, "pluggy", "unittest", "pytest_loop", "xdist"})
# Modules that tests compare and read files with.
_LIBRARY = frozenset(
    {
        *("builtins", "cmath", "copy", "datetime", "decimal", "difflib", "filecmp", "fractions", "hashlib", "io"),
        *("json", "json.decoder", "json.encoder", "math", "operator", "os", "pathlib", "posixpath", "re", "subprocess"),
    }
)
# Modules with hooks that programs may replace.
_HOOKED = frozenset({"logging", "sys", "threading", "warnings"})
# Modules that turn a call into an outcome: they are compared after every test.
_OUTCOME_MODULES = frozenset({pytest.CallInfo.__module__, pytest.TestReport.__module__})
_LOOKS_AT_CALLERS = "it looks at its callers"
_SEARCHES_OBJECTS = "it searches all objects"
_LOOKS_AT_TESTS = "it looks at the code of tests"
EXECUTES_TEXT = "it executes text"
# The only sentence about a test instead of code under test.
CAUGHT_FAILURE = "an assertion failed in it, and was caught"
# Audit events, and the sentence for code of the project that raises them.
_EVENTS = {
    "sys._getframe": _LOOKS_AT_CALLERS,
    "sys._getframemodulename": _LOOKS_AT_CALLERS,
    "sys._current_frames": _LOOKS_AT_CALLERS,
    "sys._current_exceptions": _LOOKS_AT_CALLERS,
    "sys.monitoring.register_callback": _LOOKS_AT_CALLERS,
    "sys.settrace": _LOOKS_AT_CALLERS,
    "sys.setprofile": _LOOKS_AT_CALLERS,
    "gc.get_objects": _SEARCHES_OBJECTS,
    "gc.get_referrers": _SEARCHES_OBJECTS,
    "gc.get_referents": _SEARCHES_OBJECTS,
    "exec": EXECUTES_TEXT,
    "compile": EXECUTES_TEXT,
}
_ATTRIBUTE_EVENTS = {
    ("object.__setattr__", "__code__"): "it replaces the code of functions",
    **{("object.__getattr__", name): _LOOKS_AT_CALLERS for name in ("tb_frame", "gi_frame", "cr_frame", "ag_frame")},
}
# A plugin of pytest that replaces functions of pytest when a session starts.
_PATCHING_PLUGIN = str(Path(inspect.getfile(pytest.Item)).with_name("legacypath.py"))
# Modules that raise these events for their callers.
_FORWARDERS = frozenset({"inspect", "traceback", "runpy"})


WATCH: pytest.StashKey[InterferenceWatch] = pytest.StashKey()


class InterferenceWatch:
    """Watch one process of a session, from before the first code of the project on."""

    _is_busy = False  # shared by all watches, so that none records the checks of another

    def __init__(self, root: Path) -> None:
        self._root = root
        self._locations = Locations(root)
        self._namespaces = list_namespaces()
        self._outcome_code = [namespace for namespace in self._namespaces if namespace.module in _OUTCOME_MODULES]
        self._test_modules: list[TestModule] = []
        self._imported: frozenset[str] = frozenset()
        self._paths: dict[str, str | None] = {}
        self._folder = _get_working_folder()
        self._folder_changed_by = ""
        self.interference: set[Interference] = set()

    def start(self) -> None:
        """Observe audit events until the process ends: a hook cannot be removed."""
        sys.addaudithook(self._observe)

    def watch_tests(self, modules: Iterable[ModuleType], imported: Iterable[str]) -> None:
        """Remember what modules of tests define, and the full names of the modules that the tests imported."""
        self._test_modules = [TestModule(module) for module in modules]
        self._imported = frozenset(imported) - _HOOKED

    def check_outcome_code(self) -> None:
        """Look for replaced functions in the code that makes outcomes."""
        for namespace in self._outcome_code:
            self.interference.update(self._find_replaced(namespace))

    def check(self, *, is_end: bool) -> None:
        """Look for replaced functions of the packages that run tests.

        At the end of the session, check libraries, test modules and classes, too: until then, fixtures may replace
        functions of libraries.
        """
        for namespace in self._namespaces:
            is_library = namespace.module in _LIBRARY or namespace.module in self._imported
            if namespace.is_machinery or (is_end and is_library):
                self.interference.update(self._find_replaced(namespace))
        if is_end:
            self.interference.update(self._find_undiscerning_classes())
            if self._folder_changed_by and _get_working_folder() != self._folder:
                self.interference.add((self._folder_changed_by, "it changed the working folder"))
            for name in self._imported:
                self.interference.update(self._find_replaced_imports(name))
            changes = (name for module in self._test_modules for name in module.find_changes())
            self.interference.update(("", f"{name} was replaced") for name in changes)

    # -- replaced functions

    def _find_replaced(self, namespace: _Namespace) -> Iterator[Interference]:
        if namespace.is_unchanged():
            return
        for name, value in namespace.find_changes():
            path = self._locate(value)
            if _get_file(value) == _PATCHING_PLUGIN:
                continue
            if path is not None or namespace.is_machinery or _is_builtin(value):
                yield path or "", f"{namespace.name}.{name} was replaced"

    def _find_replaced_imports(self, name: str) -> Iterator[Interference]:
        """Yield the functions that the product has put into a library that tests import."""
        module = sys.modules.get(name)
        files = (getattr(sys.modules.get(part), "__file__", None) for part in (name, name.partition(".")[0]))
        if any(self._find_project_path(file or "<none>") is not None for file in files):
            return
        for key, value in list(getattr(module, "__dict__", {}).items()):
            path = self._locate(value) if callable(value) else None
            if path is not None and not is_test_support(self._root / path, self._root):
                yield path, f"{name}.{key} was replaced"

    def _locate(self, value: Any) -> str | None:
        """Return the file of the project that holds the code of a value, or None."""
        code = getattr(getattr(value, "__func__", getattr(value, "fget", value)), "__code__", None)
        if isinstance(code, CodeType):
            return self._find_project_path(code.co_filename)
        module = sys.modules.get(value.__module__ if isinstance(value, type) else type(value).__module__)
        return self._find_project_path(getattr(module, "__file__", None) or "<built-in>")

    def _find_project_path(self, filename: str) -> str | None:
        """Return the path of a file relative to the project, or None for other files."""
        if filename not in self._paths:
            path = self._root / filename
            is_inside = path.is_relative_to(self._root) and self._locations.is_in_project(str(path))
            is_text = filename.startswith("<")  # code that was made from text
            self._paths[filename] = path.relative_to(self._root).as_posix() if is_inside and not is_text else None
        return self._paths[filename]

    # -- objects that equal everything

    def _find_undiscerning_classes(self) -> Iterator[Interference]:
        """Yield the classes of the project whose objects equal, or contain, values that differ from each other."""
        for kind in list_classes():
            if (path := self._locate_method(kind, "__eq__")) is not None and equals_everything(kind):
                yield path, f"{kind.__name__} is equal to everything"
            if (path := self._locate_method(kind, "__contains__")) is not None and contains_everything(kind):
                yield path, f"{kind.__name__} contains everything"

    def _locate_method(self, kind: type, name: str) -> str | None:
        method = getattr(kind, name, None)
        return self._locate(method) if isinstance(method, FunctionType) else None

    # -- audit events

    def _observe(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "os.chdir":
            self._folder_changed_by = self._find_tested_code(sys._getframe(1)) or self._folder_changed_by
            return
        text = _EVENTS.get(event)
        if text is None and event.startswith("object.__"):
            is_test_code = arguments[1] == "__code__" and getattr(arguments[0], "__name__", "").startswith("test")
            text = _ATTRIBUTE_EVENTS.get((event, arguments[1]), _LOOKS_AT_TESTS if is_test_code else None)
        if text is None or self._is_busy:
            return
        InterferenceWatch._is_busy = True
        try:
            frame: FrameType | None = sys._getframe(1)
            while event in _EVENTS and frame is not None and frame.f_globals.get("__name__") in _FORWARDERS:
                frame = frame.f_back
            path = self._find_project_path(frame.f_code.co_filename) if frame is not None else None
            if path is not None:
                self.interference.add((path, text))
        finally:
            InterferenceWatch._is_busy = False

    def _find_tested_code(self, frame: FrameType | None) -> str:
        """Return the path of the innermost code of the project on the stack; empty if it is a test."""
        while frame is not None:
            if (path := self._find_project_path(frame.f_code.co_filename)) is not None:
                return "" if is_test_support(self._root / path, self._root) else path
            frame = frame.f_back
        return ""


def start_watch(config: pytest.Config) -> None:
    """Watch this process, once for all sessions in it."""
    watch = config.stash[WATCH] = InterferenceWatch(config.rootpath)
    watch.start()


class _Namespace:
    """A module or class, and the functions that it has now."""

    def __init__(self, module: str, name: str, values: Mapping[str, Any]) -> None:
        self.module, self.name = module, name
        self.is_machinery = module.partition(".")[0] in _MACHINERY
        self._values = values
        self._before = dict(values)

    def is_unchanged(self) -> bool:
        """Return whether all values are the same; it runs after every test, so it avoids a loop in Python."""
        return all(map(is_, map(self._values.get, self._before), self._before.values()))

    def find_changes(self) -> list[tuple[str, Any]]:
        """Return the names of replaced functions and their new values; None for a removed function."""
        get = self._values.get
        changed = [(key, value) for key, value in self._before.items() if get(key) is not value]
        return [(key, get(key)) for key, value in changed if _is_function(value)]


@cache
def list_namespaces() -> tuple[_Namespace, ...]:
    """Return the modules and classes that must stay as they are; a fork server lists them for all its sessions."""
    return tuple(_find_namespaces())


def _find_namespaces() -> Iterator[_Namespace]:
    for name, module in list(sys.modules.items()):
        package = name.partition(".")[0]
        if package not in _MACHINERY and package not in sys.stdlib_module_names:
            continue
        values = getattr(module, "__dict__", {})
        yield _Namespace(name, name, values)
        for kind in list(values.values()) if name in _LIBRARY or package in _MACHINERY else ():
            if isinstance(kind, type) and kind.__module__ == name:
                yield _Namespace(name, f"{name}.{kind.__name__}", kind.__dict__)


def _is_function(value: object) -> bool:
    return callable(value) or isinstance(value, (classmethod, staticmethod, property))


def _get_working_folder() -> str:
    try:
        return os.getcwd()  # noqa: PTH109 - a text is compared
    except FileNotFoundError:
        return ""


def _get_file(value: Any) -> str:
    return getattr(getattr(value, "__code__", None), "co_filename", "")


def _is_builtin(value: object) -> bool:
    """Return whether a value is None, or a function of the interpreter or its library."""
    name = getattr(value, "__module__", None) or "builtins"
    return value is None or (name.partition(".")[0] in sys.stdlib_module_names and not hasattr(value, "mock_calls"))
