"""Presets, installed clients and strict schemas."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from pytest_loop.agents.answers import JudgeAnswer, PlanAnswer, PrepareAnswer
from pytest_loop.agents.installed_clients import find_clients
from pytest_loop.agents.presets import PLACEHOLDER, Preset, fill_placeholders, load_presets
from pytest_loop.agents.strict_schema import make_strict

NAMES = list(load_presets())


def test_presets_json_has_the_known_clients_and_keys() -> None:
    assert NAMES[:8] == ["codex", "claude", "gemini", "opencode", "goose", "aider", "copilot", "qwen"]
    text = (Path(__file__).parents[2] / "pytest_loop/agents/presets.json").read_text(encoding="utf-8")
    keys = set(re.findall(r'^    "(\w+)":', text, re.MULTILINE))
    assert keys <= set(Preset.model_fields)


@pytest.mark.parametrize("name", NAMES)
def test_every_placeholder_of_a_preset_is_filled(name: str) -> None:
    preset = load_presets()[name]
    values = dict.fromkeys(
        (
            "model",
            "session",
            "schema",
            "schema_file",
            "prompt_file",
            "report_file",
            "report_folder",
            "artifact",
            "folder",
            "state",
            "workspace",
        ),
        "x",
    )
    words = (
        *preset.start,
        *(preset.resume or ()),
        *preset.arguments,
        *preset.edit.arguments,
        *preset.read_only.arguments,
        *preset.model,
        *preset.artifact,
        *preset.outside_git,
        *(preset.form.arguments if preset.form else ()),
    )
    assert not [word for word in fill_placeholders(words, values) if PLACEHOLDER.search(word)]
    assert any("{prompt_file}" in word for word in words) is (preset.prompt == "file")
    assert preset.read_only != preset.edit or preset.format == "acp"


def test_a_placeholder_without_a_value_stays() -> None:
    assert fill_placeholders(("{model}", "{other}", "a{session}b"), {"session": "s"}) == ["{model}", "{other}", "asb"]


def test_a_program_may_be_bundled_with_a_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bundle_of_one.py").write_text("def where(): return '/somewhere/client'")
    monkeypatch.syspath_prepend(tmp_path)

    def find_program(bundled: str) -> str | None:
        return Preset(program="no-such-client", bundled=bundled, tested_version="1", format="codex").find_program()

    assert find_program("bundle_of_one:where") == "/somewhere/client"
    assert find_program("bundle_of_one:nowhere") is None
    assert find_program("bundle_of_none:where") is None
    assert find_program("") is None


def test_installed_clients_have_versions_within_the_timeout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, script in {
        "claude": "echo 'Claude Code 2.1.325-beta.1.'",
        "gemini": "exec sleep 60",
        "goose": "echo 1.34.0; exit 1",
        "qwen": "echo what",
        "aider": "echo aider 0.86.2 >&2",
    }.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "copilot").write_text("#!/no/such/program\n")
    (tmp_path / "copilot").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    started = time.monotonic()
    clients = {client.name: client for client in find_clients(tmp_path, 1.5)}
    assert time.monotonic() - started < 30
    assert list(clients) == NAMES
    versions = {name: clients[name].version for name in ("claude", "gemini", "goose", "qwen", "aider", "copilot")}
    assert versions == {
        "claude": "2.1.325-beta.1",
        "gemini": None,
        "goose": None,
        "qwen": None,
        "aider": "0.86.2",
        "copilot": None,
    }
    assert clients["gemini"].path == str(tmp_path / "gemini")
    assert clients["opencode"].path is None
    claude, goose = clients["claude"], clients["goose"]
    assert (claude.reports_tokens, claude.reports_cost, claude.takes_schema, claude.can_resume) == (
        True,
        True,
        True,
        True,
    )
    assert (goose.reports_tokens, goose.reports_cost, goose.takes_schema, goose.can_resume) == (
        True,
        False,
        False,
        True,
    )


def test_a_strict_schema_requires_every_key_and_allows_no_other() -> None:
    schema = make_strict(JudgeAnswer.model_json_schema())
    assert schema
    assert schema["required"] == ["passed", "reason", "evidence"]
    assert schema["additionalProperties"] is False
    assert schema["properties"]["passed"] == {"type": "boolean"}
    plan = make_strict(PlanAnswer.model_json_schema())
    assert plan
    assert plan["properties"]["plan"] == {"type": "array", "items": {"type": "string"}, "minItems": 3, "maxItems": 5}


def test_nested_schemas_are_made_strict() -> None:
    inner = {"type": "object", "properties": {"a": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None}}}
    schema = make_strict({"type": "object", "properties": {"b": {"$ref": "#/$defs/I"}}, "$defs": {"I": inner}})
    assert schema
    assert schema["$defs"]["I"] == {
        "type": "object",
        "properties": {"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
        "required": ["a"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    "schema",
    [
        PrepareAnswer.model_json_schema(),
        {},
        {"type": "object"},
        {"type": "array"},
        {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": True},
        {"type": "object", "properties": {"a": {"type": "array", "items": {}}}},
    ],
)
def test_an_open_schema_cannot_be_made_strict(schema: dict[str, object]) -> None:
    assert make_strict(schema) is None
