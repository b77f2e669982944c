"""The built-in templates: weights, and what each rule refuses and accepts."""

from __future__ import annotations

import contextlib
import json
import re
import sys
from collections.abc import Iterator
from copy import deepcopy
from fractions import Fraction
from pathlib import Path
from typing import Any

import openapi_spec_validator  # noqa: F401 - imported once: pytester forgets what a test imports
import pytest
import yaml

from pytest_loop.core.judging.score import evaluate_criteria
from pytest_loop.core.model.rules import Evidence, Outcome, Phase, Severity, Verdict
from pytest_loop.errors import CheckError, NotJudgedError
from pytest_loop.rules.checks.check import Context, run_check
from pytest_loop.rules.document import Documents
from pytest_loop.rules.rule_files import LoadedRuleFile, load_rule_file
from pytest_loop.rules.sources import list_templates
from pytest_loop.rules.templates import api_spec

PASSED = Evidence(outcome=Outcome.PASSED)
FAILED = Evidence(outcome=Outcome.FAILED, text="no")
DROP = object()


def load_template(folder: Path, template: str, artifact: str = "artifact.yaml", extra: str = "") -> LoadedRuleFile:
    path = folder / "rule_file.rules.yaml"
    path.write_text(f"extends: {template}\nartifact: {artifact}\n{extra}", encoding="utf-8")
    return load_rule_file(path, folder)


def run_rule(folder: Path, template: str, rule: str, files: dict[str, str]) -> str | None:
    """Run one rule on the first file and return its findings as text; None if an agent has to judge it."""
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    rule_file = load_template(folder, template, next(iter(files)))
    loaded = next(loaded for loaded in rule_file.rules if loaded.rule.id == rule)
    try:
        return "; ".join(
            map(str, run_check(loaded.check, Context(folder, loaded.folder, rule_file.artifact, Documents(folder))))
        )
    except NotJudgedError:
        return None


def make_cases(file: str, table: dict[str, dict[str, Any]]) -> list[Any]:
    """Make a parameter set per case: the text of the usual file, or all files of the case."""
    return [
        pytest.param(rule, {file: value} if isinstance(value, str) else value, id=f"{rule.split('.')[-1]}: {name}")
        for rule, values in table.items()
        for name, value in values.items()
    ]


# What they weigh


def test_the_package_has_four_templates() -> None:
    assert list_templates() == ["api-spec", "code", "config", "docs"]


@pytest.mark.parametrize(
    ("template", "in_a", "in_b", "thresholds"),
    [
        ("api-spec", 7, 12, ("0.8", "0.9")),
        ("code", 7, 12, ("0.8", "0.9")),
        ("docs", 6, 10, ("0.75", "0.85")),
        ("config", 7, 11, ("0.8", "0.9")),
    ],
)
def test_a_template_has_its_weights_and_thresholds(
    tmp_path: Path, template: str, in_a: int, in_b: int, thresholds: tuple[str, str]
) -> None:
    criteria = load_template(tmp_path, template).criteria
    assert sum(rule.weight for rule in criteria.rules if rule.phase is Phase.A) == in_a
    assert sum(rule.weight for rule in criteria.rules) == in_b
    assert [criteria.thresholds[phase] for phase in Phase] == [Fraction(text) for text in thresholds]
    assert all(rule.weight == rule.severity.weight for rule in criteria.rules)
    assert all(rule.fix and "\n" not in rule.fix for rule in criteria.rules)


RULES = {
    "api-spec": """
        fail a.correctness.endpoints
        fail a.correctness.schemas
        fail a.completeness.examples
        warn a.completeness.errors
        warn b.style.naming
        warn b.completeness.pagination
        fail b.completeness.auth
        warn b.quality.descriptions
    """,
    "code": """
        fail a.correctness.compiles
        fail a.correctness.logic
        fail a.completeness.functions
        warn a.completeness.types
        warn b.quality.error-handling
        warn b.quality.logging
        warn b.style.conventions
        fail b.security.input-validation
    """,
    "docs": """
        fail a.correctness.accuracy
        fail a.completeness.sections
        warn a.completeness.examples
        warn a.quality.clarity
        warn b.quality.structure
        warn b.completeness.cross-refs
        warn b.style.consistency
        warn b.quality.audience
    """,
    "config": """
        fail a.correctness.syntax
        fail a.correctness.required
        warn a.completeness.env-vars
        fail a.security.no-secrets
        warn b.quality.defaults
        warn b.completeness.comments
        warn b.quality.portability
        warn b.security.permissions
    """,
}


@pytest.mark.parametrize("template", sorted(RULES))
def test_a_template_has_its_rules(tmp_path: Path, template: str) -> None:
    rules = load_template(tmp_path, template).criteria.rules
    rows = [word for rule in rules for word in (rule.severity.value, rule.id)]
    assert rows == RULES[template].split()


def score_template(folder: Path, template: str, phase: Phase, *failing: str) -> Any:
    criteria = load_template(folder, template).criteria
    return evaluate_criteria(
        criteria, phase, {rule.id: [FAILED if rule.id in failing else PASSED] for rule in criteria.rules}
    )


def test_an_api_without_error_responses_still_passes_phase_a(tmp_path: Path) -> None:
    result = score_template(tmp_path, "api-spec", Phase.A, "a.completeness.errors")
    assert (result.score, result.passed) == (Fraction(6, 7), True)
    assert [row.rule.id for row in result.select_results(Verdict.WARN)] == ["a.completeness.errors"]


def test_an_api_with_three_warnings_misses_phase_b_without_a_blocker(tmp_path: Path) -> None:
    warned = ("b.style.naming", "b.completeness.pagination", "b.quality.descriptions")
    result = score_template(tmp_path, "api-spec", Phase.B, *warned)
    assert (result.score, result.passed, result.blockers) == (Fraction(9, 12), False, ())


@pytest.mark.parametrize("rule", [line.split()[1] for line in RULES["docs"].split("\n") if "warn" in line])
def test_docs_with_one_warning_pass_phase_b(tmp_path: Path, rule: str) -> None:
    result = score_template(tmp_path, "docs", Phase.B, rule)
    assert (result.score, result.passed) == (Fraction(9, 10), True)


def test_an_extending_file_overrides_fields_of_a_template_rule(tmp_path: Path) -> None:
    (tmp_path / "openapi.yaml").write_text("/courses\n", encoding="utf-8")
    extra = "rules: [{id: a.correctness.endpoints, severity: warn, check: {contains: /courses}}]"
    rule_file = load_template(tmp_path, "api-spec", "openapi.yaml", extra)
    first = rule_file.rules[0]
    assert first.rule.description == "The document has paths, and each has at least one operation"
    assert (first.rule.severity, first.rule.weight, len(rule_file.rules)) == (Severity.WARN, Fraction(1), 8)
    assert not run_check(first.check, Context(tmp_path, first.folder, rule_file.artifact, Documents(tmp_path)))


# What the rules of api-spec refuse

COURSES: dict[str, Any] = yaml.safe_load("""
openapi: 3.1.0
info: {title: Courses, version: 1.0.0}
security: [{bearer: []}]
paths:
  /courses:
    get:
      summary: List courses
      parameters:
        - {name: limit, in: query, schema: {type: integer}}
        - {name: page_token, in: query, schema: {type: string}}
      responses:
        "200":
          description: A page of courses
          content:
            application/json:
              schema: {type: array, items: {$ref: "#/components/schemas/Course"}}
              example: [{id: 1, title: Algebra}]
        "400": {$ref: "#/components/responses/Problem"}
        "500": {$ref: "#/components/responses/Problem"}
    post:
      description: Add a course
      requestBody:
        content:
          application/json:
            schema: {$ref: "#/components/schemas/Course"}
            example: {id: 1, title: Algebra}
      responses:
        "201":
          description: The course
          content: {application/json: {schema: {$ref: "#/components/schemas/Course"}}}
        "400": {$ref: "#/components/responses/Problem"}
        "500": {$ref: "#/components/responses/Problem"}
  /courses/{course_id}:
    parameters: [{name: course_id, in: path, required: true, schema: {type: integer}}]
    delete:
      summary: Remove a course
      responses:
        "204": {description: Gone}
        "400": {$ref: "#/components/responses/Problem"}
        "404": {$ref: "#/components/responses/Problem"}
        "500": {$ref: "#/components/responses/Problem"}
components:
  securitySchemes: {bearer: {type: http, scheme: bearer}}
  schemas:
    Course: {type: object, properties: {id: {type: integer}, title: {type: string}}}
    Problem: {type: object, properties: {detail: {type: string}}}
  responses:
    Problem:
      description: What went wrong
      content: {application/json: {schema: {$ref: "#/components/schemas/Problem"}, example: {detail: No}}}
""")
LIST = ("paths", "/courses", "get")
ADD = ("paths", "/courses", "post")
REMOVE = ("paths", "/courses/{course_id}", "delete")
LISTED = (*LIST, "responses", "200", "content", "application/json")
SENT = (*ADD, "requestBody", "content", "application/json")

Edit = tuple[tuple[Any, ...], Any]


def edit_spec(*edits: Edit) -> dict[str, Any]:
    spec = deepcopy(COURSES)
    for path, value in edits:
        place: Any = spec
        for step in path[:-1]:
            place = place[step] if isinstance(place, list) else place.setdefault(step, {})
        if value is DROP:
            del place[path[-1]]
        else:
            place[path[-1]] = value
    return spec


def make_api(*edits: Edit) -> dict[str, str]:
    return {"openapi.yaml": yaml.safe_dump(edit_spec(*edits), sort_keys=False)}


COURSE = {"type": "object", "properties": {"id": {"type": "integer"}}}
SHOWN_COURSE = {"type": "object", "properties": {"id": {"example": 1}, "level": {"enum": ["low", "high"]}}}
ITEMS = {"type": "object", "properties": {"items": {"type": "array", "items": COURSE}}}
ANSWER = {"200": {"description": "It", "content": {"application/json": {"schema": COURSE}}}}
READ = {"summary": "Read it", "responses": ANSWER}


@pytest.mark.parametrize(
    ("rule", "files"),
    make_cases(
        "openapi.yaml",
        {
            "a.correctness.endpoints": {
                "no paths": make_api((("paths",), DROP)),
                "empty paths": make_api((("paths",), {})),
                "a path without operations": make_api((("paths", "/users"), {"parameters": []})),
                "a path without a slash": make_api((("paths", "users"), {"get": READ})),
                "Swagger 2": make_api((("openapi",), DROP), (("swagger",), "2.0")),
                "no title": make_api((("info", "title"), DROP)),
                "a response without a description": make_api(((*REMOVE, "responses", "204"), {})),
                "a parameter without a place": make_api(((*LIST, "parameters"), [{"name": "limit"}])),
            },
            "a.correctness.schemas": {
                "no YAML": "openapi: [\n",
                "a schema that is itself": make_api(
                    (("components", "schemas", "Course"), {"$ref": "#/components/schemas/Course"})
                ),
                "post without a body": make_api(((*ADD, "requestBody"), DROP)),
                "a body without a schema": make_api(((*SENT, "schema"), DROP)),
                "a schema that says nothing": make_api(((*SENT, "schema"), {})),
                "an answer without a schema": make_api(((*LISTED, "schema"), DROP)),
                "an answer without content": make_api(((*LIST, "responses", "200", "content"), DROP)),
                "a change that describes nothing": make_api(((*ADD, "responses"), {"201": {"description": "Made"}})),
                "no answer": make_api(((*REMOVE, "responses"), {})),
                "only errors": make_api(((*REMOVE, "responses", "204"), DROP)),
                "a schema that is not there": make_api(((*SENT, "schema", "$ref"), "#/nowhere")),
                "a property that is not there": make_api(
                    (("components", "schemas", "Course", "properties", "level"), {"$ref": "#/components/schemas/Level"})
                ),
                "a file that is not there": make_api(((*SENT, "schema", "$ref"), "./schemas.yaml#/Course")),
                "an operation is missing altogether": make_api((("paths",), {})),
            },
            "a.completeness.examples": {
                "none in the answer": make_api(((*LISTED, "example"), DROP)),
                "none in what is sent": make_api(((*SENT, "example"), DROP)),
                "a reference to nothing": make_api(
                    ((*LISTED, "example"), DROP),
                    ((*LISTED, "examples"), {"one": {"$ref": "#/components/examples/Missing"}}),
                ),
                "no value": make_api(((*SENT, "example"), DROP), ((*SENT, "examples"), {"one": {}})),
                "no operation": make_api((("paths",), {})),
            },
            "a.completeness.errors": {
                "no 400": make_api(((*LIST, "responses", "400"), DROP)),
                "no 404": make_api(((*REMOVE, "responses", "404"), DROP)),
                "no 500": make_api(((*ADD, "responses", "500"), DROP)),
            },
            "b.style.naming": {
                "paths in two ways": make_api(
                    (("paths", "/courseNotes"), {"get": READ}), (("paths", "/old-notes"), {"get": READ})
                ),
                "parameters in two ways": make_api(
                    ((*ADD, "parameters"), [{"name": "dryRun", "in": "query", "schema": {"type": "boolean"}}])
                ),
            },
            "b.completeness.pagination": {
                "an array": make_api(((*LIST, "parameters"), DROP)),
                "elements with paths of their own": make_api(
                    ((*LIST, "parameters"), [{"name": "created_after", "in": "query"}]), ((*LISTED, "schema"), COURSE)
                ),
                "an array inside": make_api(((*LIST, "parameters"), []), ((*LISTED, "schema"), ITEMS)),
            },
            "b.completeness.auth": {
                "no schemes": make_api((("components", "securitySchemes"), DROP)),
                "no components": make_api((("components",), DROP)),
                "a scheme without a type": make_api((("components", "securitySchemes", "key"), {"in": "header"})),
                "no security": make_api((("security",), DROP)),
                "a scheme nobody described": make_api(((*ADD, "security"), [{"oauth": []}])),
                "everything open": make_api((("security",), [])),
            },
            "b.quality.descriptions": {
                "none": make_api(((*LIST, "summary"), DROP)),
                "only spaces": make_api(((*LIST, "summary"), "  ")),
                "nothing after the key": make_api(((*LIST, "summary"), None)),
            },
        },
    ),
)
def test_api_spec_refuses(tmp_path: Path, rule: str, files: dict[str, str]) -> None:
    assert run_rule(tmp_path, "api-spec", rule, files)


def make_files(name: str, *edits: Edit, **others: str) -> dict[str, str]:
    spec = edit_spec(*edits)
    text = json.dumps(spec) if name.endswith(".json") else yaml.safe_dump(spec, sort_keys=False)
    return {name: text, **{key.replace("_", "."): content for key, content in others.items()}}


def unquote_codes(spec: dict[str, str]) -> dict[str, str]:
    """Write status codes without quotes, which makes them numbers in YAML."""
    return {name: re.sub(r"'(\d{3})'", r"\1", text) for name, text in spec.items()}


@pytest.mark.parametrize("rule", RULES["api-spec"].split()[1::2])
@pytest.mark.parametrize(
    "files",
    [
        pytest.param(make_api(), id="YAML"),
        pytest.param(make_files("openapi.json"), id="JSON"),
        pytest.param(make_api((("openapi",), "3.0.3")), id="OpenAPI 3.0"),
        pytest.param(unquote_codes(make_api()), id="codes without quotes"),
    ],
)
def test_every_rule_of_api_spec_passes_a_sound_document(tmp_path: Path, rule: str, files: dict[str, str]) -> None:
    assert run_rule(tmp_path, "api-spec", rule, files) == ""


PAGE = {"name": "page", "in": "query", "schema": {"type": "integer"}}
SHARED_BODY = {"content": {"application/json": {"schema": COURSE, "example": {"id": 1}}}}


@pytest.mark.parametrize(
    ("rule", "files"),
    make_cases(
        "openapi.yaml",
        {
            "a.correctness.endpoints": {
                "an extension": make_api((("paths", "x-origin"), "made by hand")),
                "a path in another file": make_files(
                    "openapi.yaml",
                    (("paths", "/users"), {"$ref": "users.yaml"}),
                    users_yaml=yaml.safe_dump({"get": READ}),
                ),
            },
            "a.correctness.schemas": {
                "shared bodies and answers": make_api(
                    ((*ADD, "requestBody"), {"$ref": "#/components/requestBodies/Course"}),
                    (("components", "requestBodies"), {"Course": SHARED_BODY}),
                    ((*ADD, "responses", "201"), {"$ref": "#/components/responses/Course"}),
                    (("components", "responses", "Course"), SHARED_BODY),
                ),
                "a change that describes only its errors": make_api(
                    ((*REMOVE, "responses", "204"), DROP), ((*REMOVE, "responses", "200"), {"description": "Gone"})
                ),
                "created, and where": make_api(
                    (
                        (*ADD, "responses", "201"),
                        {"description": "Made", "headers": {"Location": {"schema": {"type": "string"}}}},
                    )
                ),
                "a file that is not text": make_api(
                    ((*ADD, "requestBody", "content"), {"application/octet-stream": {}})
                ),
                "a redirection": make_api(((*LIST, "responses"), {"302": {"description": "Elsewhere"}})),
                "head": make_api((("paths", "/courses", "head"), {"responses": {"200": {"description": "Yes"}}})),
                "a schema of another host": make_api(((*SENT, "schema", "$ref"), "https://example.org/course.json")),
                "a reference in an example": make_api(((*SENT, "example"), {"$ref": "#/not/a/reference"})),
                "in another file": make_files(
                    "openapi.yaml",
                    ((*SENT, "schema", "$ref"), "./parts.yaml#/Course"),
                    parts_yaml="Course: {properties: {level: {$ref: '#/Level'}}}\nLevel: {type: string}\n",
                ),
            },
            "a.completeness.examples": {
                "shared": make_api(
                    ((*LISTED, "example"), DROP),
                    ((*LISTED, "examples"), {"one": {"$ref": "#/components/examples/One"}}),
                    (("components", "examples"), {"One": {"value": [{"id": 1}]}}),
                ),
                "of a schema": make_api(
                    ((*SENT, "example"), DROP), (("components", "schemas", "Course", "example"), {"id": 1})
                ),
                "of a schema in 3.1": make_api(
                    ((*LISTED, "example"), DROP), ((*LISTED, "schema", "examples"), [[{"id": 1}]])
                ),
                "of all properties": make_api(
                    ((*LISTED, "example"), DROP), ((*LISTED, "schema", "items"), SHOWN_COURSE)
                ),
                "a picture": make_api(((*LIST, "responses", "200", "content"), {"image/png": {}})),
                "only in the answer": make_api(((*SENT, "example"), DROP), ((*ADD, "responses", "201"), SHARED_BODY)),
            },
            "a.completeness.errors": {
                "default": make_api(((*REMOVE, "responses"), {"204": {}, "default": {}})),
                "classes of codes": make_api(((*REMOVE, "responses"), {"204": {}, "4XX": {}, "5XX": {}})),
                "422": make_api(((*ADD, "responses", "400"), DROP), ((*ADD, "responses", "422"), {})),
                "no input": make_api((("paths", "/health"), {"get": {"responses": {"200": {}, "500": {}}}})),
            },
            "b.style.naming": {
                "paths unlike parameters": make_api((("paths", "/v1/course-notes/{note_id}/print.pdf"), {"get": READ})),
                "headers and brackets": make_api(
                    (
                        (*LIST, "parameters"),
                        [{"name": "X-Trace-ID", "in": "header"}, {"name": "page[size]", "in": "query"}],
                    )
                ),
            },
            "b.completeness.pagination": {
                "shared": make_api(
                    ((*LIST, "parameters"), [{"$ref": "#/components/parameters/P"}]),
                    (("components", "parameters"), {"P": PAGE}),
                ),
                "of the path": make_api(((*LIST, "parameters"), DROP), (("paths", "/courses", "parameters"), [PAGE])),
                "of another host": make_api(((*LIST, "parameters"), [{"$ref": "https://example.org/params#/Cursor"}])),
                "one of a list": make_api((("paths", "/courses/{course_id}", "get"), READ)),
                "not a list": make_api((("paths", "/health"), {"get": READ})),
            },
            "b.completeness.auth": {
                "for each operation": make_api(
                    (("security",), DROP),
                    ((*LIST, "security"), []),
                    ((*ADD, "security"), [{"bearer": []}]),
                    ((*REMOVE, "security"), [{"bearer": []}]),
                ),
                "optional": make_api(((*LIST, "security"), [{}, {"bearer": []}])),
            },
            "b.quality.descriptions": {
                "only a description": make_api(((*LIST, "summary"), ""), ((*LIST, "description"), "List courses")),
            },
        },
    ),
)
def test_api_spec_accepts(tmp_path: Path, rule: str, files: dict[str, str]) -> None:
    assert run_rule(tmp_path, "api-spec", rule, files) == ""


def test_api_spec_names_operation_and_line(tmp_path: Path) -> None:
    files = make_api(((*REMOVE, "responses", "404"), DROP))
    line = files["openapi.yaml"].split("\n").index("    delete:") + 1
    expected = f"openapi.yaml:{line}: DELETE /courses/{{course_id}}: expected a 404 response, found 204, 400, 500"
    assert (run_rule(tmp_path, "api-spec", "a.completeness.errors", files) or "").endswith(expected)


def test_api_spec_names_the_line_of_an_invalid_value(tmp_path: Path) -> None:
    files = make_api(((*REMOVE, "summary"), 5))
    line = files["openapi.yaml"].split("\n").index("      summary: 5") + 1
    finding = f"openapi.yaml:{line}: expected OpenAPI, found 5 is not of type 'string'"
    assert run_rule(tmp_path, "api-spec", "a.correctness.endpoints", files) == finding


def test_without_the_validator_only_paths_and_operations_are_required(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "openapi_spec_validator", None)
    assert run_rule(tmp_path, "api-spec", "a.correctness.endpoints", make_api((("info",), DROP))) == ""
    assert run_rule(tmp_path, "api-spec", "a.correctness.endpoints", make_api((("paths",), {})))


def test_a_version_that_the_validator_does_not_know_is_accepted(tmp_path: Path) -> None:
    files = make_api((("openapi",), "3.99.0"), (("info",), DROP))
    assert run_rule(tmp_path, "api-spec", "a.correctness.endpoints", files) == ""


def test_at_most_ten_problems_are_listed(tmp_path: Path) -> None:
    edits: list[Edit] = [(("paths", f"/p{index}"), {"get": {"responses": {}}}) for index in range(12)]
    findings = run_rule(tmp_path, "api-spec", "a.completeness.errors", make_api(*edits)) or ""
    assert findings.count("expected a 500 response") == 10
    assert findings.endswith("and 2 more")


def walk_paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value of the document."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, child in inner:
        yield (*path, step)
        yield from walk_paths(child, (*path, step))


OPENAPI_CHECKS = (
    "check_shape",
    "check_schemas",
    "check_examples",
    "check_errors",
    "check_naming",
    "check_pagination",
    "check_auth",
)
BAD_REFERENCE = {"$ref": "http://[:"}
ODD_VALUES: tuple[Any, ...] = (None, [], {}, "word", 3, [None], BAD_REFERENCE)


def mark_odd_value(function: str, odd: Any) -> Any:
    """Check the shape with two odd values only, because its validator takes seconds for each."""
    is_slow = function == "check_shape" and odd not in (None, BAD_REFERENCE)
    return pytest.param(function, odd, id=f"{function}-{odd}", marks=pytest.mark.thorough if is_slow else ())


@pytest.mark.parametrize(
    ("function", "odd"), [mark_odd_value(function, odd) for function in OPENAPI_CHECKS for odd in ODD_VALUES]
)
def test_malformed_openapi_documents_do_not_crash_the_checks(tmp_path: Path, function: str, odd: Any) -> None:
    for number, path in enumerate(walk_paths(COURSES)):
        artifact = tmp_path / f"{number}.json"
        artifact.write_text(json.dumps(edit_spec((path, odd))), encoding="utf-8")
        with contextlib.suppress(AssertionError):
            getattr(api_spec, function)(artifact, tmp_path)


# What the rules of code refuse


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("notes.md", "notes.md is Markdown, and this check reads code: name a file such as main.py"),
        ("main.zig", "there is no check for the syntax of main.zig: say how in a rule file with `extends: code`"),
        ("main.go", "gofmt is not installed here, and checks the syntax of .go files: install it, or say how"),
    ],
)
def test_code_that_cannot_be_checked_here_is_an_error_of_the_set_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, message: str
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CheckError, match=re.escape(message)):
        run_rule(tmp_path, "code", "a.correctness.compiles", {name: "x\n"})


@pytest.mark.parametrize(
    ("rule", "files"),
    make_cases(
        "app.py",
        {
            "a.correctness.compiles": {
                "a missing colon": "def f()\n    pass\n",
                "shell": {"script.sh": "if true; then\n  echo\n"},
            },
            "a.completeness.functions": {
                "nothing public": "print('hello')\n",
                "only private names": "def _f(): return 1\n",
                "a stub": "def f(): ...\n",
                "only words": 'def f():\n    """Later."""\n',
                "a method to come": "class A:\n    def f(self): raise NotImplementedError('later')\n",
                "a promise in __all__": "__all__ = ['f', 'g']\ndef f(): return 1\n",
                "no Python": "def f(:\n",
                "a name that cannot be": "def f(): return 1\nnonlocal a\n",
            },
            "a.completeness.types": {
                "a parameter": "def f(a, b: int) -> int: return b\n",
                "the result": "def f(a: int): return a\n",
                "a method": "class A:\n    def __init__(self, *args, **more): self.args = args\n",
                "below a condition": "try:\n    import x\nexcept ImportError:\n    def f(a) -> None: print(a)\n",
            },
            "b.quality.error-handling": {
                "a bare except": "try:\n    go()\nexcept:\n    print('oh')\n",
                "errors dropped": "for a in b:\n    try:\n        go()\n    except Exception:\n        continue\n",
                "errors dropped among others": "try:\n    go()\nexcept (OSError, Exception):\n    pass\n",
                "errors suppressed": "from contextlib import suppress\nwith suppress(Exception):\n    go()\n",
            },
            "b.style.conventions": {
                "a function in camelCase": "def readAll(): return 1\n",
                "a method in camelCase": "class Reader:\n    def readAll(self): return 1\n",
                "a class in lower case": "class order_line: pass\n",
            },
            "b.security.input-validation": {
                "eval": "def f(text): return eval(text)\n",
                "a shell": "import subprocess\ndef f(a): subprocess.run('ls ' + a, shell=True)\n",
                "os.system": "import os\ndef f(a): os.system(f'ls {a}')\n",
                "yaml.load": "import yaml\ndef f(a): return yaml.load(a)\n",
                "SQL": "def f(db, name): db.execute(f\"SELECT * FROM t WHERE name = '{name}'\")\n",
                "SQL in parts": "def f(db, a): db.execute('DELETE FROM t WHERE id = ' + a + ';')\n",
            },
        },
    ),
)
def test_code_refuses(tmp_path: Path, rule: str, files: dict[str, str]) -> None:
    assert run_rule(tmp_path, "code", rule, files)


@pytest.mark.parametrize(
    ("rule", "files"),
    make_cases(
        "app.py",
        {
            "a.correctness.compiles": {
                "Python": "def f() -> None:\n    pass\n",
                "data": {"app.yaml": "a: 1\n"},
                "shell": {"script.sh": "if true; then\n  echo\nfi\n"},
            },
            "a.completeness.functions": {
                "a class": "class A:\n    def f(self): return 1\n",
                "names from elsewhere": "from os import path\n__all__ = ['path', 'X']\nX = 1\n",
                "names made when asked for": "__all__ = ['x']\ndef __getattr__(name): return name\n",
                "abstract": "import abc\nclass A:\n    @abc.abstractmethod\n    def f(self): ...\n",
                "a protocol": "from typing import Protocol\nclass A(Protocol):\n    def f(self) -> int: ...\n",
                "a base": "class A:\n    def f(self): raise NotImplementedError\nclass B(A): f = print\n",
                "nothing to do on purpose": "class Null:\n    def close(self): pass\n",
                "a stub file": {"app.pyi": "def f() -> int: ...\n"},
                "overloads": "import typing\n@typing.overload\ndef f(a: int) -> int: ...\ndef f(a): return a\n",
            },
            "a.completeness.types": {
                "a constructor": "class A:\n    def __init__(self, a: int): self.a = a\n",
                "no self": "class A:\n    @staticmethod\n    def f(*b: int, **c: str) -> None: print(b, c)\n",
                "private": "def _f(a): return a\ndef f() -> int:\n    def g(a): return a\n    return g(1)\n",
            },
            "b.style.conventions": {
                "usual": "class OrderLine:\n    def read_all(self): return 1\ndef _x2(): return 1\n",
                "names of a base": "class V(NodeVisitor):\n    def visit_Name(self, node): return node\n",
            },
        },
    ),
)
def test_code_accepts(tmp_path: Path, rule: str, files: dict[str, str]) -> None:
    assert run_rule(tmp_path, "code", rule, files) == ""


@pytest.mark.parametrize(
    ("rule", "files"),
    make_cases(
        "app.py",
        {
            "b.quality.error-handling": {
                "a named error": "try:\n    go()\nexcept KeyError:\n    pass\n",
                "tidied up and raised": "try:\n    go()\nexcept:\n    undo()\n    raise\n",
                "logged": "try:\n    go()\nexcept Exception:\n    log.exception('no')\n",
                "another language": {"main.go": "package main\n"},
            },
            "b.security.input-validation": {
                "fixed texts": "import os\neval('1 + 1')\nos.system('ls')\nmodel.eval()\n",
                "no shell": "import subprocess\ndef f(a): subprocess.run(['ls', a], check=True)\n",
                "safe YAML": "import yaml\ndef f(a): return yaml.load(a, Loader=yaml.SafeLoader)\n",
                "parameters": "def f(db, a, marks): db.execute(f'SELECT 1 WHERE x IN ({marks})', a)\n",
                "a constant": "def f(db): db.execute(f'SELECT * FROM {TABLE}')\n",
                "a statement from elsewhere": "def f(db, statement): db.execute(statement)\n",
                "not SQL": "def f(jobs, a): jobs.execute(a + 1)\n",
                "another language": {"main.go": "package main\n"},
            },
            "a.correctness.logic": {
                "a sentence": "def f(): return 1\n",
            },
            "b.quality.logging": {
                "a sentence": "def f(): return 1\n",
            },
            "a.completeness.functions": {
                "another language": {"main.go": "package main\n"},
            },
            "a.completeness.types": {
                "another language": {"main.go": "package main\n"},
            },
            "b.style.conventions": {
                "another language": {"main.go": "package main\n"},
            },
        },
    ),
)
def test_code_leaves_to_an_agent(tmp_path: Path, rule: str, files: dict[str, str]) -> None:
    assert run_rule(tmp_path, "code", rule, files) is None


@pytest.mark.parametrize(
    "rule", [rule for rule in RULES["code"].split()[1::2] if rule.split(".")[2] not in ("logic", "logging")]
)
def test_a_missing_code_file_passes_no_rule(tmp_path: Path, rule: str) -> None:
    rule_file = load_template(tmp_path, "code", "missing.go")
    loaded = next(loaded for loaded in rule_file.rules if loaded.rule.id == rule)
    assert "missing.go:1: expected a file, found none" in str(
        [
            str(finding)
            for finding in _collect_findings(
                loaded.check, Context(tmp_path, tmp_path, rule_file.artifact, Documents(tmp_path))
            )
        ]
    )


def _collect_findings(check: Any, context: Context) -> tuple[Any, ...]:
    try:
        return run_check(check, context)
    except Exception as error:
        return (error,)


def test_code_names_file_and_line(tmp_path: Path) -> None:
    files = {"app.py": "class A:\n    def f(self, a, b): return a\n"}
    findings = run_rule(tmp_path, "code", "a.completeness.types", files) or ""
    assert "app.py:2: A.f: expected annotations for a, b and the result, found none" in findings


# What the rules of docs refuse

GUIDE = """
# Courses

Courses keeps a list of courses, and this guide is for those who run it. See [usage](#usage).

## Usage

Start the server and ask it:

```yaml
port: 8080
```

```python
>>> 1 + 1
2
```

### Options

- `--port` takes a number
- `--host` takes a name
  * nested bullets may differ

1. First
2. Second
"""


@pytest.mark.parametrize(
    ("rule", "files"),
    make_cases(
        "guide.md",
        {
            "a.completeness.sections": {
                "no usage": "# Courses\n\nA list of courses.\n",
                "an empty section": GUIDE + "\n## Installation\n\n## License\n\nMIT\n",
                "a section to come": GUIDE + "\n## Installation\n\n*TODO*\n",
                "empty usage": "# Courses\n\nWords.\n\n## Usage\n",
                "no heading": "Words.\n",
            },
            "a.completeness.examples": {
                "none": "# Courses\n\nWords.\n",
                "broken JSON": '```json\n{"a": ...}\n```\n',
                "broken YAML": "```yaml\na: [1\n```\n",
                "broken Python": "```python\ndef f(\n```\n",
                "a session without spaces": "```python\n>>>f()\n```\n",
                "a broken session": "```pycon\n>>> f(\n1\n```\n",
                "an empty one": "```json\n```\n",
                "one without an end": "```console\n$ ls\n",
            },
            "a.quality.clarity": {
                "a placeholder": "# Courses\n\nTODO: write this\n",
                "filler": "# Courses\n\nLorem ipsum dolor sit amet.\n",
            },
            "b.quality.structure": {
                "a level skipped": "# Courses\n\n### Options\n",
                "a deep start": "### Options\n",
                "no heading": "Words.\n",
            },
            "b.completeness.cross-refs": {
                "a dead anchor": "# Courses\n\n[usage](#use)\n",
                "a dead link": "[more](more.md)\n",
            },
            "b.style.consistency": {
                "two kinds of bullets": "- a\n- b\n\nWords.\n\n* c\n* d\n",
                "two kinds of headings": "Courses\n=======\n\n## Usage\n",
            },
        },
    ),
)
def test_docs_refuse(tmp_path: Path, rule: str, files: dict[str, str]) -> None:
    assert run_rule(tmp_path, "docs", rule, files)


@pytest.mark.parametrize(
    ("rule", "files"),
    make_cases(
        "guide.md",
        {
            "a.completeness.sections": {
                "usage": GUIDE,
                "quick start": "# Courses\n\nWords.\n\n## Quick start\n\nWords.\n",
            },
            "a.completeness.examples": {
                "several languages": GUIDE,
                "several YAML documents": "```yaml\n---\na: 1\n---\nb: 2\n```\n",
                "a part of a function": "```python\n    await go()\n    return 1\n```\n",
                "a language nobody here knows": "```console\n$ ls (\n```\n",
            },
            "b.quality.structure": {
                "down by one, up by more": GUIDE + "\n## License\n\nMIT\n",
                "a title in the front matter": "---\ntitle: Courses\n---\n\n## Usage\n",
            },
            "b.completeness.cross-refs": {
                "anchors and hosts": GUIDE + "\n[home](https://example.org)\n",
            },
        },
    ),
)
def test_docs_accept(tmp_path: Path, rule: str, files: dict[str, str]) -> None:
    assert run_rule(tmp_path, "docs", rule, files) == ""


@pytest.mark.parametrize(
    ("rule", "files"),
    make_cases(
        "guide.md",
        {
            "a.correctness.accuracy": {
                "a sentence": GUIDE,
            },
            "a.quality.clarity": {
                "no placeholder": GUIDE + "\nThe todo list holds TODO items.\n",
            },
            "b.style.consistency": {
                "one style": GUIDE,
                "underlined titles": "Courses\n=======\n\nUsage\n-----\n\n### Options\n",
            },
            "b.quality.audience": {
                "a sentence": GUIDE,
            },
        },
    ),
)
def test_docs_leave_to_an_agent(tmp_path: Path, rule: str, files: dict[str, str]) -> None:
    assert run_rule(tmp_path, "docs", rule, files) is None


def test_docs_name_the_line_inside_an_example(tmp_path: Path) -> None:
    files = {"guide.md": "# A\n\n```yaml\na: 1\n---\nb: c: d\n```\n"}
    assert "guide.md:6: expected YAML" in (run_rule(tmp_path, "docs", "a.completeness.examples", files) or "")


# What the rules of config refuse


@pytest.mark.parametrize(
    ("rule", "files"),
    make_cases(
        "service.yaml",
        {
            "a.correctness.syntax": {
                "YAML": "a: [1\n",
                "TOML": {"service.toml": "a = \n"},
                "JSON": {"service.json": '{"a": 1,}'},
                "XML": {"service.xml": "<a><b></a>"},
                "INI": {"service.ini": "a = 1\n"},
                "an open block": {"nginx.conf": "server {\n  listen 80;\n"},
                "a block that ends twice": {"nginx.conf": "server { }\n}\n"},
            },
            "a.correctness.required": {
                "nothing": "# nothing\n",
                "an empty mapping": {"service.json": "{}"},
                "a word": "word\n",
                "a placeholder": {"service.toml": 'host = "TODO"\n'},
                "only comments": {"nginx.conf": "# later\n"},
            },
            "a.completeness.env-vars": {
                "YAML": "host: ${DB_HOST}\n",
                "TOML": {"service.toml": 'host = "$DB_HOST"\n'},
                "JSON": {"service.json": '{"host": "env:DB_HOST"}'},
                "a comment on another": "# DB_PORT: its port\nport: ${DB_PORT}\n\nhost: ${DB_HOST}\n",
            },
            "b.quality.defaults": {
                "debug": "server:\n  debug: true\n",
                "no verification": {"service.json": '{"verify_ssl": false}'},
                "insecure": {"service.toml": "insecureSkipVerify = true\n"},
            },
            "b.completeness.comments": {
                "none in YAML": "timeout: 37\n",
                "none in TOML": {"service.toml": "timeout = 37\n"},
            },
            "b.quality.portability": {
                "a Mac": "path: /Users/jane/data\n",
                "Linux": {"service.toml": 'path = "/home/jane/data"\n'},
                "Windows": {"service.json": '{"path": "C:\\\\Users\\\\jane"}'},
            },
            "b.security.permissions": {
                "a mode": "mode: 0777\n",
                "a mode in words": "run: chmod -R 777 /srv\n",
                "a mode in TOML": {"service.toml": "socket_mode = 0o777\n"},
                "privileged": {"service.json": '{"privileged": true}'},
                "root": "user: root\n",
                "capabilities": "cap_add:\n  - SYS_ADMIN\n",
                "the host's network": "network_mode: host\n",
                "Docker": "volumes: ['/var/run/docker.sock:/var/run/docker.sock']\n",
                "a workflow": "permissions: write-all\n",
                "every action": {"policy.json": '{"Action": "*"}'},
            },
        },
    ),
)
def test_config_refuses(tmp_path: Path, rule: str, files: dict[str, str]) -> None:
    assert run_rule(tmp_path, "config", rule, files)


@pytest.mark.parametrize(
    ("rule", "files"),
    make_cases(
        "service.yaml",
        {
            "a.correctness.syntax": {
                "YAML": "a: 1\n",
                "TOML": {"service.toml": "a = 1\n"},
                "JSON": {"service.json": '{"a": 1}'},
                "XML": {"service.xml": "<a><b/></a>"},
                "INI": {"service.ini": "[a]\nb = 1%\n"},
                "blocks": {"nginx.conf": 'server {\n  # {\n  return 200 "}";\n}\n'},
            },
            "a.correctness.required": {
                "a format without a parser": {"nginx.conf": "server { listen 80; }\n"},
                "YAML": "200: yes\nvolumes: {data: null} # TODO: more\n",
                "a list": "- hosts: all\n",
            },
            "a.completeness.env-vars": {
                "a default": "host: ${DB_HOST:-localhost}\n",
                "a message": "host: ${DB_HOST:?where the database is}\n",
                "a comment beside": "host: ${DB_HOST}  # where the database is\n",
                "a comment above": "# where the database is\nhost: ${DB_HOST}\n",
                "a comment elsewhere": "# DB_HOST: where it is\na: 1\nhost: ${DB_HOST}\n",
                "not variables": "a: $$DB_HOST\nb: ${{ secrets.X }}\nc: $HOME\n# ${OLD}\n",
                "explained beside the file": {
                    "service.json": '{"host": "${DB_HOST}"}',
                    ".env.example": "# where it is\nDB_HOST=db\n",
                },
            },
            "b.security.permissions": {
                "narrow": "# privileged: true\nmode: 0640\nport: 7770\nuser: app\n",
                "a workflow": "permissions: {contents: read}\nprivileged: false\n",
            },
        },
    ),
)
def test_config_accepts(tmp_path: Path, rule: str, files: dict[str, str]) -> None:
    assert run_rule(tmp_path, "config", rule, files) == ""


@pytest.mark.parametrize(
    ("rule", "files"),
    make_cases(
        "service.yaml",
        {
            "b.quality.defaults": {
                "a sentence": "debug: ${DEBUG:-false}\n# debug: true\n",
            },
            "b.completeness.comments": {
                "a comment": "timeout: 37 # seconds; the proxy ends at 40\n",
                "JSON": {"service.json": '{"timeout": 37}'},
            },
            "b.quality.portability": {
                "the home of a container": "path: /home/app/data\n# not /Users/jane\n",
            },
        },
    ),
)
def test_config_leaves_to_an_agent(tmp_path: Path, rule: str, files: dict[str, str]) -> None:
    assert run_rule(tmp_path, "config", rule, files) is None


# Written in two pieces, so that no scanner takes this file for a leak.
SECRETS = [
    "password: hunter2",
    'password = "hunter2"',
    '{"user": "app", "password": "hunter2"}',
    "  - DB_PASSWORD=hunter2",
    "dbPassword: 'p#ss word'",
    "SMTP_PASS: abc123",
    "api_key: 9f8a7b6c5d",
    "clientSecret: 9f8a7b6c5d",
    "auth_token: 9f8a7b6c5d",
    "key: AKIA" + "ABCDEFGHIJKLMNOP",
    "pem: |\n  -----BEGIN RSA " + "PRIVATE KEY-----",
    "pem: '-----BEGIN " + "PRIVATE KEY-----'",
    "git: ghp_" + "a1" * 18,
    "git: github_pat_" + "a1" * 11,
    "git: glpat-" + "a1" * 10,
    "chat: xoxb-" + "123456789012-abc",
    "chat: https://hooks.slack.com/services/" + "T01/B01/abc",
    "map: AIza" + "a1-_b" * 7,
    "pay: sk_live_" + "a1" * 8,
    "llm: sk-" + "ant-" + "a1" * 20,
    "npm: npm_" + "a1" * 18,
    "jwt: eyJ" + "hbGciOiJIUzI1.eyJ" + "zdWIiOiIxMjM0.abcdef",
    "url: postgres://app:hunter2@db/app",
    "url: postgres://${DB_USER}:hunter2@db/app",
    "# key: AKIA" + "ABCDEFGHIJKLMNOP",
]
NO_SECRETS = [
    "password: ${DB_PASSWORD}",
    "password: ${DB_PASSWORD:-}",
    "password: $DB_PASSWORD",
    "password: env:DB_PASSWORD",
    "password: <your password>",
    'password = "changeme"',
    'password = "CHANGE_ME"',
    'password: "{{ vault_password }}"',
    "password: !vault |",
    "password: vault:secret/db#password",
    "password: ENC[AES256_GCM,data:abc]",
    'password: ""',
    "password:",
    "password: null",
    "password: # from the vault",
    "password:\n  min_length: 12",
    "password: {minLength: 12}",
    "password_file: /run/secrets/db",
    "private_key: ./certs/server.key",
    "existingSecret: my-database",
    "secretName: my-database",
    "max_tokens: 4096",
    "token_url: https://example.org/token",
    'pad_token: "<pad>"',
    "# password: what the user types",
    "key: AKIA" + "IOSFODNN7EXAMPLE",
    "token: ${{ secrets.GITHUB_TOKEN }}",
    "url: postgres://${DB_USER:-app}:${DB_PASSWORD:-x}@db/app",
    "url: http://localhost:8080/@scope/name",
    "image: registry:5000/app@sha256:0123456789abcdef",
    "git: git@github.com:owner/name.git",
]


@pytest.mark.parametrize("text", SECRETS)
def test_config_refuses_a_secret_without_showing_it(tmp_path: Path, text: str) -> None:
    findings = run_rule(tmp_path, "config", "a.security.no-secrets", {"service.yaml": f"a: 1\n{text}\n"})
    assert findings
    assert findings.startswith(("service.yaml:2:", "service.yaml:3:"))
    assert "hunter2" not in findings


@pytest.mark.parametrize("text", NO_SECRETS)
def test_config_accepts_values_that_are_not_secrets(tmp_path: Path, text: str) -> None:
    assert run_rule(tmp_path, "config", "a.security.no-secrets", {"service.yaml": f"{text}\n"}) == ""


def test_a_long_line_is_searched_in_time(tmp_path: Path) -> None:
    text = json.dumps({"blob": "aB3-" * 250_000})
    assert run_rule(tmp_path, "config", "a.security.no-secrets", {"service.json": text}) == ""
    assert run_rule(tmp_path, "config", "b.security.permissions", {"service.json": text}) == ""
