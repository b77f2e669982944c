"""`pytest-loop install`: the files of each client, merged, shown and removed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_loop.cli import console_script
from pytest_loop.integrations.client_files import CLIENTS, make_shell_line
from pytest_loop.integrations.install import main


def read_files(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".git" not in path.parts
    }


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return folder


@pytest.mark.parametrize("client", CLIENTS)
def test_what_is_installed_is_removed_again(client: str, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert console_script.main(["install", client]) == 0
    files = read_files(project)
    output = capsys.readouterr().out
    assert [f"created {path}" in output for path in files] == [True] * len(files)
    assert CLIENTS[client].note in output
    assert any("pytest_loop mcp" in text for text in files.values())
    assert main([client]) == 0
    assert capsys.readouterr().out == f"nothing to do: {client} has it already\n"
    assert read_files(project) == files
    assert main([client, "--remove"]) == 0
    assert list(project.iterdir()) == []
    capsys.readouterr()
    assert main([client, "--remove"]) == 0
    assert capsys.readouterr().out == f"nothing to do: {client} has none of it\n"


def test_skill_stays_until_its_last_client_is_removed(project: Path) -> None:
    main(["codex"])
    main(["cursor"])
    main(["codex", "--remove"])
    assert set(read_files(project)) == {".cursor/hooks.json", ".cursor/mcp.json", ".agents/skills/pytest-loop/SKILL.md"}
    main(["cursor", "--remove"])
    assert list(project.iterdir()) == []


def test_missing_extra_of_the_server_is_named(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    hint = "hint: the MCP server needs the extra: pip install 'pytest-agent-loop[mcp]'\n"
    main(["cursor"])
    assert hint not in capsys.readouterr().out
    monkeypatch.setitem(sys.modules, "mcp", None)
    main(["cursor"])
    assert capsys.readouterr().out == f"nothing to do: cursor has it already\n{hint}"
    main(["cursor", "--remove"])
    assert hint not in capsys.readouterr().out


@pytest.mark.parametrize("client", CLIENTS)
def test_dry_run_shows_and_writes_nothing(client: str, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([client, "--dry-run"]) == 0
    assert "would create" in capsys.readouterr().out
    assert read_files(project) == {}


def test_existing_configuration_keeps_its_order(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / ".codex").mkdir()
    hooks = '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "mine"}]}], "PreToolUse": []}}\n'
    (project / ".codex" / "hooks.json").write_text(hooks)
    config = 'model = "x"  # mine\n\n[mcp_servers.other]\ncommand = "o"\n'
    (project / ".codex" / "config.toml").write_text(config)
    before = read_files(project)
    main(["codex"])
    assert "changed .codex/hooks.json\nchanged .codex/config.toml\ncreated .agents" in capsys.readouterr().out
    data = json.loads((project / ".codex" / "hooks.json").read_text())["hooks"]
    assert list(data) == ["Stop", "PreToolUse"]
    assert len(data["Stop"]) == 2
    assert (project / ".codex" / "config.toml").read_text().startswith(config)
    main(["codex", "--remove"])
    assert read_files(project) == before


def test_outdated_table_is_replaced_in_its_place(project: Path) -> None:
    (project / ".codex").mkdir()
    path = project / ".codex" / "config.toml"
    path.write_text('a = 1\n\n[mcp_servers.pytest-loop]\ncommand = "old"\n\n[last]\nb = 2\n')
    main(["codex"])
    text = path.read_text()
    assert text.startswith('a = 1\n\n[mcp_servers.pytest-loop]\ncommand = "sh"\n')
    assert text.endswith("\n\n[last]\nb = 2\n")
    main(["codex", "--remove"])
    assert path.read_text() == "a = 1\n\n[last]\nb = 2\n"


@pytest.mark.parametrize(
    ("client", "path", "text", "message"),
    [
        ("claude", ".mcp.json", "{\n  nonsense\n}", ".mcp.json:2: expected JSON"),
        ("codex", ".codex/hooks.json", "{\n  // mine\n}", ".codex/hooks.json:2: expected JSON"),
        ("codex", ".codex/config.toml", "a = 1\nb =\n", ".codex/config.toml:2: expected TOML"),
        ("gemini", ".gemini/settings.json", "\udcff", "cannot read .gemini/settings.json"),
    ],
)
def test_broken_configuration_is_refused_and_nothing_is_written(
    client: str, path: str, text: str, message: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / path).parent.mkdir(exist_ok=True)
    (project / path).write_bytes(text.encode("utf-8", "surrogateescape"))
    assert main([client]) == 4
    error = capsys.readouterr().err
    assert error.startswith(f"ERROR: {message}")
    assert error.endswith("; nothing was changed\n")
    assert [name for name in project.rglob("*") if name.is_file()] == [project / path]


@pytest.mark.parametrize(
    ("client", "path"),
    [("gemini", ".gemini/settings.json"), ("opencode", "opencode.json"), ("vscode", ".vscode/mcp.json")],
)
def test_comments_stay_where_the_client_reads_them(client: str, path: str, project: Path) -> None:
    text = '{\n  // mine\n  "a": 1, // of a\n}\n'
    (project / path).parent.mkdir(exist_ok=True)
    (project / path).write_text(text)
    assert main([client]) == 0
    assert '"pytest-loop"' in (project / path).read_text()
    main([client, "--remove"])
    assert (project / path).read_text() == text


def test_home_folder_is_written_only_on_request(project: Path, tmp_path: Path) -> None:
    main(["claude"])
    assert read_files(tmp_path / "home") == {}
    main(["claude", "--user"])
    files = read_files(tmp_path / "home")
    assert set(files) == {
        ".claude.json",
        ".claude/settings.json",
        ".claude/skills/pytest-loop/SKILL.md",
    }
    assert str(project) not in "".join(files.values())
    hook = json.loads(files[".claude/settings.json"])["hooks"]["Stop"][0]["hooks"][0]["command"]
    assert hook == "cd \"$(git rev-parse --show-toplevel)\" && python -m pytest --loop-gate || echo '{}'"


def test_hook_works_from_a_subfolder_and_without_the_environment(project: Path) -> None:
    subprocess.run(["git", "init", "--quiet"], check=True)
    below = project / "packages" / "one"
    below.mkdir(parents=True)
    line = make_shell_line("pytest --version", below, is_user=False)
    assert line.startswith('cd "$(git rev-parse --show-toplevel)"/packages/one && ')
    assert sys.executable in line
    result = subprocess.run(
        ["sh", "-c", f"{line} && pwd"], env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True
    )
    assert result.stdout.splitlines()[-1] == str(below)


def test_interpreter_of_the_project_is_named_relative_to_it(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    subprocess.run(["git", "init", "--quiet"], check=True)
    monkeypatch.setattr(sys, "executable", str(project / ".venv" / "bin" / "python"))
    line = make_shell_line("pytest --loop-gate", project, is_user=False)
    assert line == 'cd "$(git rev-parse --show-toplevel)" && .venv/bin/python -m pytest --loop-gate'


def test_unknown_client_is_a_usage_error(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["emacs"])
    assert "invalid choice: 'emacs'" in capsys.readouterr().err
