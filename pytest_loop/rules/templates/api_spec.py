"""Functions of the api-spec template, for an OpenAPI document."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from jsonschema.exceptions import best_match

from pytest_loop.rules.checks.data_checks import summarize_violation
from pytest_loop.rules.templates.artifact_reader import fail_with, read_document
from pytest_loop.rules.templates.openapi import Node, Operation, Spec

METHODS_WITH_BODY = ("post", "put", "patch", "query")
METHODS_WITHOUT_RESPONSE_BODY = ("head", "options", "trace")
CODES_WITHOUT_BODY = ("202", "204", "205")
BINARY_TYPES = ("image/", "audio/", "video/", "application/octet-stream", "application/pdf", "application/zip")
LIST_NAMES = ("items", "data", "results", "records", "entries", "values", "content")
MAX_DEPTH = 8

_PAGING = re.compile(
    r"(?i)page|cursor|offset|limit|^\W*(skip|top|take|after|before|marker)$|(starting|ending)_(after|before)"
)
_CONVENTIONS = {
    "kebab-case": re.compile(r"[a-z0-9]+(-[a-z0-9]+)*"),
    "snake_case": re.compile(r"[a-z0-9]+(_[a-z0-9]+)*"),
    "camelCase": re.compile(r"[a-z0-9]+([A-Z][a-zA-Z0-9]*)?"),
    "PascalCase": re.compile(r"[A-Z][a-zA-Z0-9]*"),
}


def _read_spec(artifact: Path, workspace: Path) -> Spec:
    return Spec(read_document(artifact, workspace), workspace)


def check_shape(artifact: Path, workspace: Path) -> None:
    """Fail unless the document is valid OpenAPI; pass without a validator for its version."""
    spec = _read_spec(artifact, workspace)
    try:
        validators = import_module("openapi_spec_validator")
    except ImportError:
        return
    version = re.match(r"3\.(\d+)", str(spec.root.get("openapi").value))
    validator = getattr(validators, f"OpenAPIV3{version[1]}SpecValidator", None) if version else None
    if validator is None:  # a wrong version is a finding of the JSON Schema beside this check
        return
    data = json.loads(json.dumps(spec.root.value, default=str))  # dates of YAML become texts
    # The public `schema_validator` reads the document alone: the complete validation would fetch references.
    violations = [best_match([violation]) for violation in validator.schema_validator.iter_errors(data)]
    fail_with(
        f"{spec.locate(*violation.absolute_path)}: expected OpenAPI, found {summarize_violation(violation)}"
        for violation in violations
        if violation is not None
    )


def check_schemas(artifact: Path, workspace: Path) -> None:
    """Fail unless bodies have schemas and references have targets."""
    spec = _read_spec(artifact, workspace)
    missing = [problem for operation in spec.list_operations() for problem in _find_missing_schemas(operation)]
    fail_with([*missing, *spec.find_dangling_references()])


def _find_missing_schemas(operation: Operation) -> Iterator[str]:
    """Yield a problem for each request or response body without a schema."""
    body = operation.body
    if (operation.method in METHODS_WITH_BODY or body.value) and not _has_schema(body):
        yield operation.describe(f"expected a request body with a schema, found {_describe_missing(body)}")
    if not any(code == "default" or code[:1] in "123" for code in operation.responses):
        codes = ", ".join(operation.responses) or "no response"
        yield operation.describe(f"expected a successful response, found {codes}")
    for code, response in _get_responses_with_body(operation).items():
        if not _has_schema(response):
            found = _describe_missing(response)
            yield operation.describe(f"expected a schema for the {code} response, found {found}")


def _describe_missing(body: Node) -> str:
    nodes = [body, *(media.get("schema") for media in _get_media(body).values())]
    return "a reference that leads nowhere" if any(node.dangling_reference for node in nodes) else "none"


def _get_responses_with_body(operation: Operation) -> dict[str, Node]:
    if operation.method in METHODS_WITHOUT_RESPONSE_BODY:
        return {}
    return {
        code: node for code, node in operation.successes.items() if not _is_bodiless_by_design(operation, code, node)
    }


def _is_bodiless_by_design(operation: Operation, code: str, response: Node) -> bool:
    """Return whether a response needs no body: by its code or headers, or if only others of a change have one."""
    headers = {name.casefold() for name in response.get("headers").entries}
    if code in CODES_WITHOUT_BODY or (code == "201" and headers & {"location", "content-location"}):
        return True
    is_change = operation.method not in ("get", "query")
    has_content = bool(_get_media(response)) or response.dangling_reference is not None
    return is_change and not has_content and any(map(_has_schema, operation.responses.values()))


def _get_media(node: Node) -> dict[str, Node]:
    return node.get("content").entries


def _has_schema(body: Node) -> bool:
    """Return whether any media type of a body has a schema, or is binary: OpenAPI 3.1 needs no schema for these."""
    return any(
        name.startswith(BINARY_TYPES) or media.get("schema") or media.get("itemSchema")
        for name, media in _get_media(body).items()
    )


def check_examples(artifact: Path, workspace: Path) -> None:
    """Fail unless each operation has an example of a request or of a successful response."""
    operations = _read_spec(artifact, workspace).list_operations()
    fail_with(
        operation.describe("expected an example, found none") for operation in operations if not _has_example(operation)
    )


def _has_example(operation: Operation) -> bool:
    bodies = [operation.body, *_get_responses_with_body(operation).values()]
    media_types = [item for body in bodies for item in _get_media(body).items()]
    textual = [media for name, media in media_types if not name.startswith(BINARY_TYPES)]
    if not any(bodies) or (media_types and not textual):
        return True  # there is no body, or only binary ones
    return any(_media_has_example(media) or _schema_has_example(media.get("schema"), MAX_DEPTH) for media in textual)


def _media_has_example(media: Node) -> bool:
    """Return whether a media type has an example, or named ones that all have a value."""
    examples = media.get("examples").entries.values()
    values = {"value", "externalValue", "dataValue", "serializedValue"}
    return "example" in media.keys or (bool(examples) and all(values & example.keys for example in examples))


def _schema_has_example(schema: Node, depth: int) -> bool:
    """Return whether a schema has an example: itself, in its elements or an alternative, or in all its parts."""
    if depth == 0 or not schema:
        return False
    if schema.keys & {"example", "examples", "const", "enum", "default"}:
        return True
    alternatives = [schema.get("items"), *schema.get("oneOf").elements, *schema.get("anyOf").elements]
    if any(_schema_has_example(alternative, depth - 1) for alternative in alternatives):
        return True
    parts = [*schema.get("properties").entries.values(), *schema.get("allOf").elements]
    return bool(parts) and all(_schema_has_example(part, depth - 1) for part in parts)


def check_errors(artifact: Path, workspace: Path) -> None:
    """Fail unless operations declare their error responses."""
    operations = _read_spec(artifact, workspace).list_operations()
    fail_with(
        operation.describe(f"expected a {code} response, found {', '.join(sorted(codes)) or 'none'}")
        for operation in operations
        if "DEFAULT" not in (codes := {code.upper() for code in operation.responses})
        for code, alternatives in _get_expected_errors(operation).items()
        if not codes & {code, *alternatives}
    )


def _get_expected_errors(operation: Operation) -> dict[str, tuple[str, ...]]:
    """Return the error codes that an operation needs, each with the codes that may replace it."""
    errors: dict[str, tuple[str, ...]] = {}
    if operation.body or operation.parameters:
        errors["400"] = ("422", "4XX")
    if "{" in operation.path:
        errors["404"] = ("4XX",)
    return {**errors, "500": ("5XX",)}


def check_naming(artifact: Path, workspace: Path) -> None:
    """Fail unless paths follow one naming convention, and parameters one; the two may differ."""
    segments: dict[str, Operation] = {}
    parameters: dict[str, Operation] = {}
    for operation in _read_spec(artifact, workspace).list_operations():
        for word in _split_words(re.sub(r"\{[^}]*\}", "/", operation.path)):
            segments.setdefault(word, operation)
        for word in _split_words(" ".join(_list_parameter_names(operation))):
            parameters.setdefault(word, operation)
    fail_with([*_find_odd_names(segments, "path segments"), *_find_odd_names(parameters, "parameters")])


def _list_parameter_names(operation: Operation) -> list[str]:
    """Return the names in path and query; headers and cookies have conventions of their own."""
    declared = [node for node in operation.parameters if node.get("in").value in ("query", "path")]
    return re.findall(r"\{([^}]*)\}", operation.path) + [str(node.get("name").value) for node in declared]


def _split_words(text: str) -> list[str]:
    """Return the names in a text such as `/v1/course-items:import` or `page[size]`."""
    return [word.strip("_") for word in re.findall(r"[\w-]+", text) if word.strip("_")]


def _find_odd_names(names: dict[str, Operation], noun: str) -> Iterator[str]:
    """Yield a problem for each name that does not follow the most common convention."""
    matches = {title: [name for name in names if form.fullmatch(name)] for title, form in _CONVENTIONS.items()}
    convention = max(matches, key=lambda title: len(matches[title]))
    for name, operation in names.items():
        if name not in matches[convention]:
            yield operation.describe(f"expected {convention} as for most {noun}, found {name!r}")


def check_pagination(artifact: Path, workspace: Path) -> None:
    """Fail unless operations that return a list take parameters for pages."""
    operations = _read_spec(artifact, workspace).list_operations()
    paths = {operation.path for operation in operations}
    problem = "expected a parameter for pages (page, limit, offset or cursor), found none"
    fail_with(
        operation.describe(problem)
        for operation in operations
        if operation.method == "get"
        and _returns_list(operation, paths)
        and not any(map(_is_paging, operation.parameters))
    )


def _returns_list(operation: Operation, paths: set[str]) -> bool:
    """Return whether a response is or has an array of elements, or a path such as `/courses/{id}` names an element."""
    bodies = operation.successes.values()
    schemas = [media.get("schema") for body in bodies for media in _get_media(body).values()]
    if any(_is_array(schema) for schema in schemas):
        return True
    path = operation.path.rstrip("/")
    if path.endswith("}"):
        return False
    names = (*LIST_NAMES, path.rpartition("/")[2])
    properties = [item for schema in schemas for item in _get_properties(schema).items()]
    element = re.compile(re.escape(path) + r"/\{[^}]*\}/?")
    return any(name in names and _is_array(node) for name, node in properties) or any(map(element.fullmatch, paths))


def _is_array(schema: Node) -> bool:
    kind = schema.get("type").value
    return kind == "array" or (isinstance(kind, list) and "array" in kind)


def _get_properties(schema: Node) -> dict[str, Node]:
    parts = [schema, *schema.get("allOf").elements]
    return {name: node for part in parts for name, node in part.get("properties").entries.items()}


def _is_paging(parameter: Node) -> bool:
    """Return whether a parameter is about pages, by its name or, if unresolved, by its reference."""
    return bool(_PAGING.search(str(parameter.get("name").value or parameter.value)))


def check_auth(artifact: Path, workspace: Path) -> None:
    """Fail unless operations name declared security schemes, or an empty `security`, and one needs a scheme."""
    spec = _read_spec(artifact, workspace)
    operations = spec.list_operations()
    fail_with([problem for operation in operations for problem in _find_security_problems(operation, spec)])
    if not any(_get_security(operation, spec).value for operation in operations):
        location = spec.locate("security")
        raise AssertionError(f"{location}: expected an operation that asks for a security scheme, found none")


def _get_security(operation: Operation, spec: Spec) -> Node:
    security = operation.node.get("security")
    return spec.root.get("security") if security.value is None else security


def _find_security_problems(operation: Operation, spec: Spec) -> Iterator[str]:
    security = _get_security(operation, spec)
    if security.value is None:
        yield operation.describe("expected `security` here or for the whole document, found none")
    schemes = spec.root.get("components").get("securitySchemes").entries
    for name in sorted({name for element in security.elements for name in element.keys} - set(schemes)):
        yield operation.describe(f"expected one of the security schemes ({', '.join(schemes)}), found {name!r}")
