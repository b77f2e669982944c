"""The plugin for Claude Code and Codex: the files that its documentation names, and the skill that `install` writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
PLUGIN = ROOT / "plugins" / "pytest-loop"
SOURCES = ROOT / "pytest_loop" / "integrations" / "skill"


def read(path: Path) -> Any:
    return json.loads(path.read_text())


def test_marketplace_names_the_plugin_and_its_folder() -> None:
    [entry] = read(ROOT / ".claude-plugin" / "marketplace.json")["plugins"]
    assert (ROOT / entry["source"]).resolve() == PLUGIN
    assert entry["name"] == read(PLUGIN / ".claude-plugin" / "plugin.json")["name"]


def test_plugin_has_the_hook_and_the_server() -> None:
    [group] = read(PLUGIN / "hooks" / "hooks.json")["hooks"]["Stop"]
    assert "--loop-gate || echo '{}'" in group["hooks"][0]["command"]
    assert read(PLUGIN / ".mcp.json")["mcpServers"]["pytest-loop"]["args"] == ["-m", "pytest_loop", "mcp"]


def test_skill_is_the_one_that_install_writes() -> None:
    assert (PLUGIN / "skills" / "pytest-loop" / "SKILL.md").read_text() == (SOURCES / "SKILL.md").read_text()


def test_skill_has_a_name_and_says_when_to_use_it() -> None:
    _, head, text = (SOURCES / "SKILL.md").read_text().split("---\n", 2)
    fields = yaml.safe_load(head)
    assert fields["name"] == "pytest-loop"
    assert "Use it whenever" in fields["description"]
    assert len(text.splitlines()) < 40
