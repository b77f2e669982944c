"""An OpenAPI document as operations, with its references followed: what a JSON Schema cannot do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from referencing import Registry, Resource, Specification
from referencing.exceptions import Unresolvable

from pytest_loop.rules.document import Document
from pytest_loop.rules.line_numbers import LineLookup, build_line_lookup
from pytest_loop.rules.syntax import FORMATS, parse, read_text, stringify_keys
from pytest_loop.rules.templates import artifact_reader

METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")
LONGEST_CHAIN = 20
_ELSEWHERE = ("http://", "https://", "//")
# Below these keys stands data, which may look like anything; where names are free, they are names.
_LITERAL = frozenset(("example", "examples", "default", "const", "enum", "value"))
_NAMES_ARE_FREE = frozenset(("properties", "responses", "schemas"))


class Node:
    """A value of the document; where it is a reference, the value that this leads to."""

    def __init__(self, value: Any, resolver: Any) -> None:
        for _ in range(LONGEST_CHAIN):
            if not _is_reference(value):
                break
            try:
                found = resolver.lookup(value["$ref"])
            except (Unresolvable, TypeError, ValueError):  # the last two where the way leads through no mapping
                break
            value, resolver = found.contents, found.resolver
        self.value = value
        self._resolver = resolver

    def __bool__(self) -> bool:
        return bool(self.value) and self.dangling is None

    @property
    def dangling(self) -> str | None:
        """The reference that leads nowhere; one to another host cannot be followed here, and is believed."""
        reference = self.value["$ref"] if _is_reference(self.value) else None
        return None if reference is None or reference.startswith(_ELSEWHERE) else str(reference)

    def child(self, name: str) -> Node:
        return Node(self.value.get(name) if isinstance(self.value, dict) else None, self._resolver)

    def children(self) -> dict[str, Node]:
        """The entries of a mapping; extensions (`x-...`) are not part of it."""
        entries = self.value.items() if isinstance(self.value, dict) else ()
        return {name: Node(value, self._resolver) for name, value in entries if not name.startswith("x-")}

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
    item: Node
    spec: Spec

    @property
    def parameters(self) -> list[Node]:
        return [*self.item.child("parameters").elements(), *self.node.child("parameters").elements()]

    @property
    def body(self) -> Node:
        return self.node.child("requestBody")

    @property
    def responses(self) -> dict[str, Node]:
        return self.node.child("responses").children()

    @property
    def successes(self) -> dict[str, Node]:
        """The 2xx responses; `default` where there is none and no redirection."""
        found = {code: node for code, node in self.responses.items() if code.startswith("2")}
        redirects = any(code.startswith(("1", "3")) for code in self.responses)
        default = self.responses.get("default")
        return found if found or redirects or default is None else {"default": default}

    def complain(self, text: str) -> str:
        return f"{self.spec.at('paths', self.path, self.method)}: {self.method.upper()} {self.path}: {text}"


class Spec:
    """A whole document."""

    def __init__(self, source: Document, workspace: Path) -> None:
        self._source = source
        data = artifact_reader.read_data(source)
        uri = source.path.as_uri()
        registry: Registry[Any] = Registry(retrieve=_Retrieve(workspace))  # type: ignore[call-arg]
        registry = registry.with_resource(uri, _resource(data))
        self._resolver = registry.resolver(base_uri=uri)
        self.root = Node(data, self._resolver)

    @cached_property
    def _line(self) -> LineLookup:
        return build_line_lookup(self._source.text, self._source.format(None))

    def at(self, *path: str | int) -> str:
        return self._source.line(self._line(path))

    def operations(self) -> list[Operation]:
        """Every operation below `paths`; a document without one says nothing that could be judged."""
        found = [
            Operation(path, method, node, item, self)
            for path, item in self.root.child("paths").children().items()
            for method, node in item.children().items()
            if method in METHODS
        ]
        if not found:
            raise AssertionError(f"{self.at('paths')}: expected operations in `paths`, found none")
        return found

    def dangling(self) -> Iterator[str]:
        """The references of this document that lead nowhere, each with its line."""
        for path, value in _references(self.root.value, ()):
            if reference := Node(value, self._resolver).dangling:
                yield f"{self.at(*path)}: expected a reference that leads somewhere, found {reference!r}"


def _references(value: Any, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    if _is_reference(value):
        yield path, value
    elif isinstance(value, dict):
        free = bool(path) and path[-1] in _NAMES_ARE_FREE
        for name, child in value.items():
            if free or name not in _LITERAL:
                yield from _references(child, (*path, name))
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from _references(child, (*path, index))


class _Retrieve:
    """Other files of the project that a reference names; nothing is fetched from a network."""

    def __init__(self, workspace: Path) -> None:
        self._workspace = workspace.resolve()

    def __call__(self, uri: str) -> Resource[Any]:
        parts = urlsplit(uri)
        path = Path(url2pathname(parts.path)).resolve()
        if parts.scheme != "file" or not path.is_relative_to(self._workspace):
            raise LookupError(f"{uri} is not in the project")
        return _resource(stringify_keys(parse(read_text(path), FORMATS.get(path.suffix.lower(), "yaml"))))


def _resource(contents: Any) -> Resource[Any]:
    return Specification.OPAQUE.create_resource(contents)
