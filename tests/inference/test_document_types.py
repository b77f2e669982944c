"""The name of a document, by its template and the words of its task."""

from __future__ import annotations

import pytest

from pytest_loop.inference.document_types import DOCUMENT_TYPES, choose_document_name, find_document_path
from pytest_loop.rules.sources import list_templates


def test_every_template_has_a_type_that_accepts_its_own_names() -> None:
    assert sorted(DOCUMENT_TYPES) == list_templates()
    for document_type in DOCUMENT_TYPES.values():
        names = [document_type.default, *(name for _, name in document_type.names)]
        assert all(map(document_type.accepts, names))


@pytest.mark.parametrize(
    ("template", "task", "name"),
    [
        ("api-spec", "Write an OpenAPI 3.1 spec for courses", "openapi.yaml"),
        ("api-spec", "OpenAPI 3.1 spec + DDD notes + JSON examples", "openapi.yaml"),
        ("api-spec", "Write the OpenAPI spec as JSON", "openapi.json"),
        ("api-spec", "Write a JSON spec of the API", "openapi.json"),
        ("code", "Write a function that adds numbers", "main.py"),
        ("code", "Write a Go program that lists files", "main.go"),
        ("code", "Let it go on until it is done", "main.py"),
        ("code", "Write a parser in golang", "main.go"),
        ("code", "Write a TypeScript client", "main.ts"),
        ("code", "Write a shell script that backs up", "script.sh"),
        ("code", "Write a sorter in C++", "main.cpp"),
        ("docs", "Write docs for the backup tool", "artifact.md"),
        ("docs", "Write a README", "README.md"),
        ("docs", "Write the changelog of 1.0", "CHANGELOG.md"),
        ("config", "Write a config for the service", "config.yaml"),
        ("config", "write an nginx config", "nginx.conf"),
        ("config", "Write a TOML file with the settings", "config.toml"),
        ("config", "Write a Dockerfile", "Dockerfile"),
        ("", "Write a guide", "artifact.md"),
        ("", "Write an OpenAPI spec", "openapi.yaml"),
        ("", "List the errors as JSON", "artifact.json"),
        ("", "Write a README", "README.md"),
    ],
)
def test_words_of_a_task_name_the_document_within_its_type(template: str, task: str, name: str) -> None:
    assert choose_document_name(template, task) == name


@pytest.mark.parametrize(
    ("template", "name", "is_accepted"),
    [
        ("api-spec", "openapi.yml", True),
        ("api-spec", "notes.md", False),
        ("code", "main.zig", True),
        ("code", "notes.md", False),
        ("docs", "GUIDE.MD", True),
        ("docs", "guide.yaml", False),
        ("config", "Dockerfile", True),
        ("config", "config.md", False),
    ],
)
def test_template_accepts_formats_that_its_checks_can_read(template: str, name: str, is_accepted: bool) -> None:
    assert DOCUMENT_TYPES[template].accepts(name) is is_accepted


@pytest.mark.parametrize(
    ("task", "path"),
    [
        ("Write README.md", "README.md"),
        ("Improve the docs/guide.md until it is clear", "docs/guide.md"),
        ("Write an API spec to `docs/api.yaml`", "docs/api.yaml"),
        ("Save the settings as config.toml, please.", "config.toml"),
        ("Write a summary of notes.md", ""),
        ("Document the functions in ledger.py", ""),
        ("Write a guide", ""),
        ("Write version 3.1 of it", ""),
        ("write https://example.org/guide.md", ""),
    ],
)
def test_file_that_is_written_or_improved_is_found_in_a_task(task: str, path: str) -> None:
    assert find_document_path(task) == path
