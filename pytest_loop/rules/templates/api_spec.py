"""What the api-spec template asks of an OpenAPI document beyond its shape."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from pytest_loop.rules.templates import artifact_reader
from pytest_loop.rules.templates.openapi import Node, Operation, Spec

SENDS_BODY = ("post", "put", "patch", "query")
NO_ANSWER_BODY = ("head", "options", "trace")
NO_BODY_CODES = ("202", "204", "205")
BINARY = ("image/", "audio/", "video/", "application/octet-stream", "application/pdf", "application/zip")
LIST_NAMES = ("items", "data", "results", "records", "entries", "values", "content")
DEEPEST = 8

_PAGING = re.compile(
    r"(?i)page|cursor|offset|limit|^\W*(skip|top|take|after|before|marker)$|(starting|ending)_(after|before)"
)
_CONVENTIONS = {
    "kebab-case": re.compile(r"[a-z0-9]+(-[a-z0-9]+)*"),
    "snake_case": re.compile(r"[a-z0-9]+(_[a-z0-9]+)*"),
    "camelCase": re.compile(r"[a-z0-9]+([A-Z][a-zA-Z0-9]*)?"),
    "PascalCase": re.compile(r"[A-Z][a-zA-Z0-9]*"),
}


def _spec(artifact: Path, workspace: Path) -> Spec:
    return Spec(artifact_reader.read_document(artifact, workspace), workspace)


def check_schemas(artifact: Path, workspace: Path) -> None:
    """Bodies have schemas, and references lead somewhere."""
    spec = _spec(artifact, workspace)
    artifact_reader.fail_with(
        [problem for one in spec.operations() for problem in _without_schema(one)] + list(spec.dangling())
    )


def _without_schema(operation: Operation) -> Iterator[str]:
    body = operation.body
    if (operation.method in SENDS_BODY or body.value) and not _has_schema(body):
        yield operation.complain(f"expected a request body with a schema, found {_instead(body)}")
    codes = ", ".join(operation.responses)
    if not any(code == "default" or code[:1] in "123" for code in operation.responses):
        yield operation.complain(f"expected a successful response, found {codes or 'no response'}")
    for code, response in _with_body(operation).items():
        if not _has_schema(response):
            yield operation.complain(f"expected a schema for the {code} response, found {_instead(response)}")


def _instead(body: Node) -> str:
    parts = [body, *(media.child("schema") for media in _media(body).values())]
    return "a reference that leads nowhere" if any(part.dangling for part in parts) else "none"


def _with_body(operation: Operation) -> dict[str, Node]:
    """The successful responses that should carry something."""
    if operation.method in NO_ANSWER_BODY:
        return {}
    return {code: one for code, one in operation.successes.items() if not _is_empty(operation, code, one)}


def _is_empty(operation: Operation, code: str, response: Node) -> bool:
    """No body, on purpose: the code says so, or a header says where to look, or only errors of a change have one."""
    if code in NO_BODY_CODES or (code == "201" and _headers(response) & {"location", "content-location"}):
        return True
    changes = operation.method not in ("get", "query")
    return (
        changes
        and not _media(response)
        and not response.dangling
        and any(map(_has_schema, operation.responses.values()))
    )


def _headers(response: Node) -> set[str]:
    return {name.casefold() for name in response.child("headers").children()}


def _media(node: Node) -> dict[str, Node]:
    return node.child("content").children()


def _has_schema(body: Node) -> bool:
    """A schema in one of the media types; since OpenAPI 3.1 a file that is not text has none."""
    return any(
        kind.startswith(BINARY) or media.child("schema") or media.child("itemSchema")
        for kind, media in _media(body).items()
    )


def check_examples(artifact: Path, workspace: Path) -> None:
    """Every operation shows a body: what is sent, or what comes back when it succeeds."""
    operations = _spec(artifact, workspace).operations()
    artifact_reader.fail_with(
        one.complain("expected an example, found none") for one in operations if not _is_shown(one)
    )


def _is_shown(operation: Operation) -> bool:
    bodies = [operation.body, *_with_body(operation).values()]
    if not any(bodies):
        return True  # nothing is sent and nothing comes back
    media = [one for body in bodies for kind, one in _media(body).items() if not kind.startswith(BINARY)]
    if any(kind.startswith(BINARY) for body in bodies for kind in _media(body)) and not media:
        return True
    return any(_has_example(one) or _schema_shows(one.child("schema"), DEEPEST) for one in media)


def _has_example(media: Node) -> bool:
    """An example of its own, or named ones of which each leads to a value."""
    named = media.child("examples").children().values()
    values = ("value", "externalValue", "dataValue", "serializedValue")
    return "example" in _keys(media) or (bool(named) and all(set(values) & _keys(one) for one in named))


def _keys(node: Node) -> set[str]:
    return set(node.value) if isinstance(node.value, dict) else set()


def _schema_shows(schema: Node, depth: int) -> bool:
    """A schema shows a value by itself, by its elements or an alternative, or when all its parts do."""
    if depth == 0 or not schema:
        return False
    if _keys(schema) & {"example", "examples", "const", "enum", "default"}:
        return True
    ways = [schema.child("items"), *schema.child("oneOf").elements(), *schema.child("anyOf").elements()]
    if any(_schema_shows(one, depth - 1) for one in ways):
        return True
    parts = [*schema.child("properties").children().values(), *schema.child("allOf").elements()]
    return bool(parts) and all(_schema_shows(one, depth - 1) for one in parts)


def check_errors(artifact: Path, workspace: Path) -> None:
    """Operations say what happens when they cannot be carried out."""
    operations = _spec(artifact, workspace).operations()
    artifact_reader.fail_with(problem for one in operations for problem in _without_errors(one))


def _without_errors(operation: Operation) -> Iterator[str]:
    codes = {code.upper() for code in operation.responses}
    if "DEFAULT" in codes:
        return
    takes_input = bool(operation.body or operation.parameters)
    if takes_input and not codes & {"400", "422", "4XX"}:
        yield operation.complain(f"expected a 400 response, found {', '.join(sorted(codes)) or 'none'}")
    if "{" in operation.path and not codes & {"404", "4XX"}:
        yield operation.complain(f"expected a 404 response, found {', '.join(sorted(codes)) or 'none'}")
    if not codes & {"500", "5XX"}:
        yield operation.complain(f"expected a 500 response, found {', '.join(sorted(codes)) or 'none'}")


def check_naming(artifact: Path, workspace: Path) -> None:
    """Paths follow one convention, and parameters follow one; the two may differ."""
    segments: dict[str, Operation] = {}
    parameters: dict[str, Operation] = {}
    for operation in _spec(artifact, workspace).operations():
        for word in _words(re.sub(r"\{[^}]*\}", "/", operation.path)):
            segments.setdefault(word, operation)
        for word in _words(" ".join(_parameter_names(operation))):
            parameters.setdefault(word, operation)
    artifact_reader.fail_with([*_odd_ones(segments, "path segments"), *_odd_ones(parameters, "parameters")])


def _parameter_names(operation: Operation) -> list[str]:
    """Those in the path and the query; headers and cookies have conventions of their own."""
    declared = [one for one in operation.parameters if one.child("in").value in ("query", "path")]
    return re.findall(r"\{([^}]*)\}", operation.path) + [str(one.child("name").value) for one in declared]


def _words(text: str) -> list[str]:
    """The names in a text such as `/v1/course-items:import` or `page[size]`."""
    return [word.strip("_") for word in re.findall(r"[\w-]+", text) if word.strip("_")]


def _odd_ones(names: dict[str, Operation], noun: str) -> Iterator[str]:
    fitting = {title: [name for name in names if form.fullmatch(name)] for title, form in _CONVENTIONS.items()}
    title = max(fitting, key=lambda one: len(fitting[one]))
    for name, operation in names.items():
        if name not in fitting[title]:
            yield operation.complain(f"expected {title} as for most {noun}, found {name!r}")


def check_pagination(artifact: Path, workspace: Path) -> None:
    """A list is read page by page."""
    operations = _spec(artifact, workspace).operations()
    paths = {one.path for one in operations}
    lists = [one for one in operations if one.method == "get" and _is_list(one, paths)]
    text = "expected a parameter for pages (page, limit, offset or cursor), found none"
    artifact_reader.fail_with(one.complain(text) for one in lists if not any(map(_is_paging, one.parameters)))


def _is_list(operation: Operation, paths: set[str]) -> bool:
    """It answers with an array, alone or under a usual name, or its elements have paths of their own."""
    answers = [media.child("schema") for one in operation.successes.values() for media in _media(one).values()]
    if any(_is_array(one) for one in answers):
        return True
    if operation.path.rstrip("/").endswith("}"):
        return False
    element = re.compile(re.escape(operation.path.rstrip("/")) + r"/\{[^}]*\}/?")
    named = (*LIST_NAMES, operation.path.rstrip("/").rpartition("/")[2])
    held = any(_is_array(part) for one in answers for name, part in _properties(one).items() if name in named)
    return held or any(element.fullmatch(path) for path in paths)


def _is_array(schema: Node) -> bool:
    kind = schema.child("type").value
    return kind == "array" or (isinstance(kind, list) and "array" in kind)


def _properties(schema: Node) -> dict[str, Node]:
    parts = [schema, *schema.child("allOf").elements()]
    return {name: node for part in parts for name, node in part.child("properties").children().items()}


def _is_paging(parameter: Node) -> bool:
    """By its name, or by the name of a reference that cannot be followed."""
    name = parameter.child("name").value or parameter.value
    return bool(_PAGING.search(str(name)))


def check_auth(artifact: Path, workspace: Path) -> None:
    """Every operation says who may call it, by schemes that exist; an empty `security` says everybody."""
    spec = _spec(artifact, workspace)
    operations = spec.operations()
    artifact_reader.fail_with([problem for one in operations for problem in _unprotected(one, spec)])
    if not any(_security(one, spec).value for one in operations):
        raise AssertionError(
            f"{spec.at('security')}: expected an operation that asks for a security scheme, found none"
        )


def _security(operation: Operation, spec: Spec) -> Node:
    own = operation.node.child("security")
    return spec.root.child("security") if own.value is None else own


def _unprotected(operation: Operation, spec: Spec) -> Iterator[str]:
    security = _security(operation, spec)
    if security.value is None:
        yield operation.complain("expected `security` here or for the whole document, found none")
    known = spec.root.child("components").child("securitySchemes").children()
    for name in sorted({name for one in security.elements() for name in _keys(one)} - set(known)):
        yield operation.complain(f"expected one of the security schemes ({', '.join(known)}), found {name!r}")
