"""The check of the set-up."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from pytest_loop.integrations import doctor, install
from pytest_loop.integrations.hook_checkup import render_hook_lines
from tests.integrations.red_project import make_red_project

EXAMPLES = Path(__file__).parents[2] / "examples" / "hooks"


def test_every_part_of_the_set_up_has_a_line(tmp_path: Path) -> None:
    lines = list(doctor.render_checkup(tmp_path))
    assert [line.partition(":")[0] for line in lines[:4]] == ["versions", "fence", "warm sessions", "git"]
    assert lines[3] == "git: the project is not in a git work tree"


def test_missing_git_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "git: not installed: no checkpoints in git, and no candidates" in doctor.render_checkup(tmp_path)


def test_command_prints_the_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor.main(["--run", "it"]) == 0
    assert capsys.readouterr().out.startswith("versions: pytest-agent-loop ")


TRUST_COPILOT = "the command-line client of Copilot does not trust this folder: start copilot here once"
TRUST_GEMINI = "use /permissions trust, or set GEMINI_CLI_TRUST_WORKSPACE=true"


def test_hooks_that_do_nothing_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, home = tmp_path / "project", tmp_path / "home"
    folder.mkdir()
    monkeypatch.chdir(folder)
    for client in ("claude", "codex", "gemini", "vscode"):
        assert install.main([client]) == 0
    environment = {"HOME": str(home), "PATH": "/bin"}
    assert list(render_hook_lines(folder, environment)) == [
        "Stop hook of claude: in place",
        "Stop hook of codex: it does nothing, because Codex does not trust this project: start codex here once",
        "Stop hook of gemini: it does nothing, because Gemini does not trust this folder: " + TRUST_GEMINI,
        "Stop hook of vscode: in place, but " + TRUST_COPILOT,
    ]
    trust = {
        ".codex/config.toml": f'[projects."{folder}"]\ntrust_level = "trusted"\n',
        ".gemini/trustedFolders.json": json.dumps({str(folder): "TRUST_PARENT"}),
        ".copilot/config.json": "// mine\n" + json.dumps({"trustedFolders": [str(tmp_path)]}),
    }
    for path, text in trust.items():
        (home / path).parent.mkdir(parents=True)
        (home / path).write_text(text)
    lines = list(render_hook_lines(folder, environment))
    assert lines[1].startswith("Stop hook of codex: it does nothing, because Codex does not trust the hook: use /hooks")
    assert lines[2:] == ["Stop hook of gemini: in place", "Stop hook of vscode: in place"]
    with (home / ".codex/config.toml").open("a") as file:
        file.write(f'[hooks.state."{folder}/.codex/hooks.json:stop:0:0"]\ntrusted_hash = "sha256:0"\n')
    assert list(render_hook_lines(folder, environment))[1] == "Stop hook of codex: in place"


def test_hooks_are_found_from_a_subfolder_and_at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make_red_project(tmp_path)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for words in (["claude"], ["claude", "--user"], ["codex", "--user"]):
        assert install.main(words) == 0
    environment = {"HOME": str(tmp_path / "home"), "PATH": str(Path(sys.executable).parent)}
    claude, claude_at_home, codex_at_home = render_hook_lines(folder / "src", environment)
    assert claude.startswith(f"Stop hook of claude: it does nothing, because claude reads it only in {folder}: start ")
    assert claude_at_home == "Stop hook of claude for all projects: in place"
    assert codex_at_home.startswith(
        "Stop hook of codex for all projects: it does nothing, because Codex does not trust"
    )


@pytest.mark.parametrize(
    ("line", "program"),
    [
        ("cd x && .venv/bin/python -m pytest --loop-gate || echo '{}'", ".venv/bin/python"),
        (json.loads((EXAMPLES / "claude.json").read_text())["hooks"]["Stop"][0]["hooks"][0]["command"], "pytest"),
    ],
)
def test_hook_without_its_program_is_named(line: str, program: str, tmp_path: Path) -> None:
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "settings.json").write_text(
        json.dumps({"hooks": {"Stop": [{"hooks": [{"command": line}]}]}})
    )
    [found] = render_hook_lines(tmp_path, {"PATH": str(tmp_path), "HOME": str(tmp_path / "home")})
    assert found == (f"Stop hook of claude: it does nothing, because {program} is missing: pytest-loop install claude")
