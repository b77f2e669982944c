"""The words of a task tell which type of document it asks for."""

from __future__ import annotations

import pytest

from pytest_loop.inference.task_types import detect_task_type, is_edit_of_existing


@pytest.mark.parametrize(
    ("task", "template", "words"),
    [
        ("OpenAPI 3.1 spec + DDD notes + JSON examples", "api-spec", "OpenAPI 3.1 spec"),
        ("Write an OpenAPI 3.1 spec for courses", "api-spec", "OpenAPI 3.1 spec"),
        ("Write openapi.yaml for orders", "api-spec", "openapi.yaml"),
        ("Write a spec of the courses API", "api-spec", "spec"),
        ("design an API spec with /courses and /lessons", "api-spec", "API spec"),
        ("extend the OpenAPI document", "api-spec", "OpenAPI document"),
        ("Write docs for the backup tool", "docs", "docs"),
        ("Write a README", "docs", "README"),
        ("README for the shop", "docs", "README"),
        ("extend the README", "docs", "README"),
        ("create docs/guide.md", "docs", "docs/guide.md"),
        ("API documentation for the shop", "docs", "API documentation"),
        ("Write a migration guide", "docs", "migration guide"),
        ("Please write a user guide to backups in at most 300 words", "docs", "user guide"),
        ("Draft the release notes for 2.0", "docs", "release notes"),
        ("Write docs and examples", "docs", "docs"),
        ("Make a nice guide", "docs", "nice guide"),
        ("I need a README, please", "docs", "README"),
        ("We want docs", "docs", "docs"),
        ("write an nginx config", "config", "nginx config"),
        ("nginx config", "config", "nginx config"),
        ("generate a docker-compose file for redis", "config", "docker-compose file"),
        ("write a Dockerfile", "config", "Dockerfile"),
        ("Write a GitHub Actions workflow", "config", "GitHub Actions workflow"),
        ("create settings.toml", "config", "settings.toml"),
    ],
)
def test_document_that_a_task_asks_for_has_a_type(task: str, template: str, words: str) -> None:
    found = detect_task_type(task)
    assert found is not None
    assert (found.template, found.words, found.is_certain) == (template, words, True)


@pytest.mark.parametrize(
    ("task", "template"),
    [
        ("write a Python script that renames photos", "code"),
        ("implement a parser for OpenAPI specs", "code"),
        ("write a config loader", "code"),
        ("write a function `slugify`", "code"),
        ("document the public functions", "docs"),
    ],
)
def test_type_is_not_certain_if_the_project_may_be_meant(task: str, template: str) -> None:
    found = detect_task_type(task)
    assert found is not None
    assert (found.template, found.is_certain) == (template, False)


@pytest.mark.parametrize(
    "task",
    [
        "",
        "make it better",
        "make docs",
        "make the README better",
        "I want it to be fast",
        "fix until green",
        "loop until coverage > 80%",
        "fix the failing tests in docs/",
        "fix the README",
        "parse the config",
        "the config is broken",
        "update the config",
        "improve the configuration loader",
        "Update the docs",
        "add docstrings",
        "add a section to the README",
        "add a search function to the shop",
        "write tests for config.py",
        "translate the README",
        "Write a spec",
        "Write a README and an nginx config",
        "Write a README and fix the tests",
        "update CHANGELOG.md and README.md",
    ],
)
def test_other_tasks_have_no_type(task: str) -> None:
    assert detect_task_type(task) is None


def test_change_is_of_something_that_exists() -> None:
    assert is_edit_of_existing("extend the README")
    assert not is_edit_of_existing("write a README")
    assert not is_edit_of_existing("")
