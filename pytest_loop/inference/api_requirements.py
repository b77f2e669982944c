"""Find what the words of a task demand of an API specification: its version, endpoints and entities."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pytest_loop.inference.document_requirements import (
    MAX_NAMES,
    Requirement,
    find_subject,
    make_remark,
    stem_word,
)
from pytest_loop.inference.tool_purposes import split_names

_VERSION = re.compile(r"\bopen\s?api\s+v?(?P<version>3(?:\.\d)?)", re.IGNORECASE)
_METHOD = "GET|PUT|POST|DELETE|OPTIONS|HEAD|PATCH|TRACE"
_SEGMENT = r"/[\w{}.~-]+"
_ENDPOINT = re.compile(
    rf"(?:\b(?P<methods>(?:{_METHOD})(?:(?:\s*[,/|]\s*|\s+and\s+)(?:{_METHOD}))*)\s+)?"
    rf"(?<![\w.:/~}}])(?P<path>{_SEGMENT}(?:{_SEGMENT})*)"
)
_PLURAL = r"[a-z]{3,40}s"
_ENTITIES = re.compile(
    rf"\b(?:for|of|about|managing)\s+(?:the\s+|our\s+)?(?P<names>{_PLURAL}(?:(?:\s*,\s*(?:and\s+)?|\s+and\s+){_PLURAL})*)\b"
    r"(?=$|[,.;:+(\n]|\s+(?:with|that|which|in|using|so|until|including|where|for|api|endpoints?|resources?)\b)",
    re.IGNORECASE,
)
_NO_ENTITIES = split_names(
    "examples errors tests docs notes schemas endpoints paths responses status address descriptions apis"
)


def find_version(text: str) -> Iterator[Requirement]:
    """Find the version: `OpenAPI 3.1`."""
    if match := _VERSION.search(text):
        pattern = f"^{re.escape(match['version'])}"
        check = {"json_schema": {"required": ["openapi"], "properties": {"openapi": {"pattern": pattern}}}}
        yield Requirement("version", f"It is OpenAPI {match['version']}", check, match[0])


def find_endpoints(text: str) -> Iterator[Requirement]:
    """Find paths with their methods: `GET /courses and DELETE /courses/{id}`."""
    endpoints: dict[str, list[str]] = {}
    for match in list(_ENDPOINT.finditer(text))[:MAX_NAMES]:
        methods = re.findall(_METHOD, match["methods"] or "")
        endpoints.setdefault(match["path"].rstrip("."), []).extend(method.lower() for method in methods)
    if not endpoints:
        return
    schema = {path: {"required": methods} if methods else {} for path, methods in endpoints.items()}
    paths = {"type": "object", "required": list(endpoints), "properties": schema}
    check = {"json_schema": {"type": "object", "required": ["paths"], "properties": {"paths": paths}}}
    names = [f"{' '.join(methods).upper()} {path}".strip() for path, methods in endpoints.items()]
    yield Requirement("endpoints", f"It describes {', '.join(names)}", check, ", ".join(names))


def find_entities(text: str) -> Iterator[Requirement]:
    """Find plural words for which the API needs paths: `for courses and lessons`; without any, find the subject."""
    match = _ENTITIES.search(text)
    names = re.findall(rf"{_PLURAL}\b", match["names"].lower()) if match else []
    names = [name for name in names if name not in _NO_ENTITIES]
    if not names:
        yield from find_subject(text)
        return
    check = {"matches": [_match_path(name) for name in names], "ignore_case": True}
    yield Requirement("entities", f"It has paths for {', '.join(names)}", check, ", ".join(names))


def _match_path(name: str) -> str:
    """Return a pattern for a path with this word as a key, in YAML or JSON."""
    part = r"[^\s\"':]*"
    return rf"{make_remark(f'a path for {name}')}(?:^|[\s{{,\"'])/{part}{stem_word(name)}{part}[\"']?\s*:"
