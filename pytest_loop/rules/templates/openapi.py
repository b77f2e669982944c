"""An OpenAPI document as operations, with references followed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from referencing import Registry, Resource, Specification
from referencing.exceptions import Unresolvable

from pytest_loop.rules.document import Document
from pytest_loop.rules.line_numbers import LineLookup, parse_with_lines
from pytest_loop.rules.syntax import DATA_FORMATS_BY_SUFFIX, ValuePath, parse, read_text, stringify_keys
from pytest_loop.rules.templates.artifact_reader import read_data

METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")
MAX_REFERENCES = 20
_REMOTE = ("http://", "https://", "//")
# The values of these keys are arbitrary data, except below `_PARENTS_OF_NAMES`, where keys are names.
_DATA_KEYS = frozenset(("example", "examples", "default", "const", "enum", "value"))
_PARENTS_OF_NAMES = frozenset(("properties", "responses", "schemas"))


class Node:
    """A value of the document; a reference is replaced by its target."""

    def __init__(self, value: Any, resolver: Any) -> None:
        for _ in range(MAX_REFERENCES):
            if not _is_reference(value):
                break
            try:
                resolved = resolver.lookup(value["$ref"])
            except (Unresolvable, TypeError, ValueError):  # the last two if the path leads through no mapping
                break
            value, resolver = resolved.contents, resolved.resolver
        self.value = value
        self._resolver = resolver

    def __bool__(self) -> bool:
        return bool(self.value) and self.dangling_reference is None

    @property
    def dangling_reference(self) -> str | None:
        """The reference if it has no target, else None; references to other hosts count as valid."""
        reference = self.value["$ref"] if _is_reference(self.value) else None
        return None if reference is None or reference.startswith(_REMOTE) else str(reference)

    @property
    def keys(self) -> set[str]:
        return set(self.value) if isinstance(self.value, dict) else set()

    def get(self, name: str) -> Node:
        return Node(self.value.get(name) if isinstance(self.value, dict) else None, self._resolver)

    @property
    def entries(self) -> dict[str, Node]:
        """The entries of a mapping without extensions (`x-...`)."""
        entries = self.value.items() if isinstance(self.value, dict) else ()
        return {name: Node(value, self._resolver) for name, value in entries if not name.startswith("x-")}

    @property
    def elements(self) -> list[Node]:
        return [Node(value, self._resolver) for value in self.value] if isinstance(self.value, list) else []


def _is_reference(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("$ref"), str)


@dataclass(frozen=True)
class Operation:
    """One method of one path."""

    path: str
    method: str
    node: Node
    path_item: Node
    spec: Spec

    @property
    def parameters(self) -> list[Node]:
        return [*self.path_item.get("parameters").elements, *self.node.get("parameters").elements]

    @property
    def body(self) -> Node:
        return self.node.get("requestBody")

    @property
    def responses(self) -> dict[str, Node]:
        return self.node.get("responses").entries

    @property
    def successes(self) -> dict[str, Node]:
        """The 2xx responses, or `default` if there is no 1xx, 2xx or 3xx response."""
        successes = {code: node for code, node in self.responses.items() if code.startswith("2")}
        redirects = any(code.startswith(("1", "3")) for code in self.responses)
        default = self.responses.get("default")
        return successes if successes or redirects or default is None else {"default": default}

    def describe(self, problem: str) -> str:
        location = self.spec.locate("paths", self.path, self.method)
        return f"{location}: {self.method.upper()} {self.path}: {problem}"


class Spec:
    """An OpenAPI document."""

    def __init__(self, document: Document, workspace: Path) -> None:
        self._document = document
        data = read_data(document)
        uri = document.path.as_uri()
        retrieve = partial(_retrieve_file, workspace.resolve())
        registry: Registry[Any] = Registry(retrieve=retrieve)  # type: ignore[call-arg]  # attrs hides the name
        self._resolver = registry.with_resource(uri, _make_resource(data)).resolver(base_uri=uri)
        self.root = Node(data, self._resolver)

    @cached_property
    def _find_line(self) -> LineLookup:
        return parse_with_lines(self._document.text, self._document.detect_format(None)).find_line

    def locate(self, *path: str | int) -> str:
        """Return `file:line` of a value."""
        return self._document.line(self._find_line(path))

    def list_operations(self) -> list[Operation]:
        """Return every operation below `paths`; raise `AssertionError` if there is none."""
        operations = [
            Operation(path, method, node, path_item, self)
            for path, path_item in self.root.get("paths").entries.items()
            for method, node in path_item.entries.items()
            if method in METHODS
        ]
        if not operations:
            raise AssertionError(f"{self.locate('paths')}: expected operations in `paths`, found none")
        return operations

    def find_dangling_references(self) -> Iterator[str]:
        """Yield a problem for each reference without a target."""
        for path, value in _find_references(self.root.value, ()):
            if reference := Node(value, self._resolver).dangling_reference:
                yield f"{self.locate(*path)}: expected a reference that leads somewhere, found {reference!r}"


def _find_references(value: Any, path: ValuePath) -> Iterator[tuple[ValuePath, Any]]:
    """Yield each reference below a value, with its path."""
    if _is_reference(value):
        yield path, value
    elif isinstance(value, dict):
        has_names = bool(path) and path[-1] in _PARENTS_OF_NAMES
        for name, child in value.items():
            if has_names or name not in _DATA_KEYS:
                yield from _find_references(child, (*path, name))
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from _find_references(child, (*path, index))


def _retrieve_file(workspace: Path, uri: str) -> Resource[Any]:
    """Load another file of the project for a reference; nothing is fetched from a network."""
    parts = urlsplit(uri)
    path = Path(url2pathname(parts.path)).resolve()
    if parts.scheme != "file" or not path.is_relative_to(workspace):
        raise LookupError(f"{uri} is not in the project")
    data = parse(read_text(path), DATA_FORMATS_BY_SUFFIX.get(path.suffix.lower(), "yaml"))
    return _make_resource(stringify_keys(data))


def _make_resource(contents: Any) -> Resource[Any]:
    return Specification.OPAQUE.create_resource(contents)
