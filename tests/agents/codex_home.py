"""A home folder for the real Codex, with a scripted model."""

from __future__ import annotations

import os
from pathlib import Path

import codex_cli_bin  # type: ignore[import-untyped]
import pytest

CONFIG = """
model = "scripted"
model_provider = "scripted"
check_for_update_on_startup = false

[model_providers.scripted]
name = "scripted"
base_url = "{url}/v1"
env_key = "SCRIPTED_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0

[analytics]
enabled = false

[otel]
exporter = "none"

[features]
enable_request_compression = false
plugins = false
unbounded_connection_retries = false
"""


def find_codex() -> Path:
    """Return the program from npm in the folder that `tox -e clients` names, else the one of the wheel."""
    program = Path(os.environ.get("PYTEST_LOOP_CLIENTS", "")) / "codex"
    return program.absolute() if program.is_file() else Path(codex_cli_bin.bundled_codex_path())


def make_codex_home(folder: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a home in this folder, and point the environment at it.

    Codex makes no links to its helpers in a home below the temporary folder, and an old bubblewrap needs them: so the
    temporary folder is another one.
    """
    home, temporary = folder / "home", folder / "temporary"
    home.mkdir()
    temporary.mkdir()
    (home / "config.toml").write_text(CONFIG.format(url=url))
    variables = {"CODEX_HOME": home, "HOME": home, "TMPDIR": temporary, "SCRIPTED_KEY": "dummy"}
    for name, value in variables.items():
        monkeypatch.setenv(name, str(value))
    return home
