"""Make the pictures of the manual from real runs: `tox -e pictures`.

Chromium takes the screenshots of the report; the recording of the terminal is an SVG that this script writes itself.
"""

from __future__ import annotations

import html
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from mcp import ClientSession  # noqa: E402 - as the next ones

from tests.browser.chromium import VARIABLE, Page, start_chromium  # noqa: E402 - found by the line above
from tests.integrations.red_project import GREEN, make_red_project  # noqa: E402
from tests.integrations.test_action import Runner  # noqa: E402
from tests.integrations.test_mcp_server import call, hold_conversation  # noqa: E402

PICTURES = ROOT / "docs" / "pictures"
COMMAND = 'pytest --loop-task "fix until green" --loop-agent builtin --loop-yes'
COLUMNS = 110
# The colours of a dark terminal, by the numbers of the control sequences.
COLOURS = {
    "31": "#ff9a92",
    "32": "#7ee787",
    "33": "#f2cc60",
    "34": "#79c0ff",
    "36": "#76e3ea",
    "2": "#9da7b3",
    "90": "#9da7b3",
}
LINE_HEIGHT, CHARACTER_WIDTH, MARGIN = 19, 8.0, 16
SECONDS_PER_LINE = 0.35
# As much of an answer of the hook as a reader needs.
REASON_LINES = 9
# It works as soon as a file is there.
PATIENT_AGENT = """
import pathlib
import time

import scripted_fixer


def work(request):
    while not pathlib.Path(".loop/go").exists():
        time.sleep(0.1)
    return scripted_fixer.work(request)
"""


def main() -> None:
    """Run the example once, and write all pictures."""
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        project = Path(name) / "shop"
        shutil.copytree(ROOT / "examples/fix_me", project, ignore=shutil.ignore_patterns("__pycache__"))
        output = _run(project)
        recording = render_recording("A run that fixes a small project", [f"$ {COMMAND}", *output.splitlines()])
        (PICTURES / "terminal.svg").write_text(recording, encoding="utf-8")
        write_stop_hook_picture(Path(name) / "ledger")
        write_mcp_picture(Path(name) / "mcp")
        write_comment_picture(Path(name) / "action")
        write_limit_picture(Path(name) / "limit")
        with start_chromium(os.environ.get(VARIABLE, "chromium"), Path(name) / "profile") as page:
            _take_screenshots(page, project / "report.html")


def _run(project: Path) -> str:
    """Return what the example prints at a terminal with colours."""
    environment = {**os.environ, "COLUMNS": str(COLUMNS), "FORCE_COLOR": "1", "PY_COLORS": "1"}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    command = [*shlex.split(COMMAND), "--loop-report", "report.html", "--color=yes"]
    process = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=True)
    return re.sub(r"\nwrote report.html", "", process.stdout).rstrip()


def write_stop_hook_picture(project: Path) -> None:
    """Install into Codex in a red example, call the hook as Codex does, and show what the agent reads."""
    shutil.copytree(ROOT / "examples/fix_until_green", project, ignore=shutil.ignore_patterns("__pycache__"))
    tool, install = [sys.executable, "-m", "pytest_loop"], "install codex"
    installed = subprocess.run(
        [*tool, *install.split()], cwd=project, capture_output=True, text=True, check=True
    ).stdout.splitlines()[:-1]
    hooks = json.loads((project / ".codex" / "hooks.json").read_text(encoding="utf-8"))
    line = hooks["hooks"]["Stop"][0]["hooks"][0]["command"]
    answer = subprocess.run(
        ["/bin/sh", "-c", line], cwd=project, input='{"session_id": "1"}', capture_output=True, text=True, check=True
    )
    reason = json.loads(answer.stdout)["reason"].splitlines()[:REASON_LINES]
    lines = [f"$ pytest-loop {install}", *installed, "\x1b[2mWhen the agent wants to stop, the hook answers:\x1b[0m"]
    _write_recording("stop-hook", "The Stop hook keeps an agent from stopping", [*lines, *reason])


def write_mcp_picture(folder: Path) -> None:
    """Show two calls of the tool `evaluate`, with an edit between them."""
    folder.mkdir()
    project = make_red_project(folder)
    lines = ["\x1b[2mThe agent calls evaluate:\x1b[0m"]

    async def converse(session: ClientSession) -> None:
        [first] = await call(session, "evaluate")
        lines.extend([*json.dumps({**first, "critique": "..."}, indent=2).splitlines(), ""])
        (project / "src" / "calc.py").write_text(GREEN, encoding="utf-8")
        [second] = await call(session, "evaluate")
        lines.append("\x1b[2mIt edits src/calc.py, and calls evaluate again:\x1b[0m")
        lines.extend(json.dumps(second, indent=2).splitlines())

    hold_conversation(project, converse)
    _write_recording("mcp", "An agent asks the judge, edits, and asks again", lines)


def write_comment_picture(folder: Path) -> None:
    """Run the action in a red example, and show the comment that it writes."""
    folder.mkdir()
    runner = Runner(folder)
    if runner.run(task="fix until green", agent="python:scripted_fixer:work"):
        raise SystemExit("the action failed")
    _, *lines = runner.read("comment.md").replace("**", "").splitlines()
    _write_recording("comment", "The comment of the action", lines)


def write_limit_picture(project: Path) -> None:
    """Change a limit of a run while its agent works, and show where the run stands then."""
    shutil.copytree(ROOT / "examples/fix_until_green", project, ignore=shutil.ignore_patterns("__pycache__"))
    (project / "patient.py").write_text(PATIENT_AGENT, encoding="utf-8")
    words = ["fix until green", "--loop-agent", "python:patient:work", "--loop-alias", "ledger", "--loop-yes"]
    words += ["--loop-limit", "10 min"]
    run = subprocess.Popen([sys.executable, "-m", "pytest", "--loop-task", *words], cwd=project, stdout=subprocess.PIPE)
    while not (project / ".loop" / "ledger" / "run.json").exists():
        time.sleep(0.1)
    lines = []
    for command in ('limit "20 minutes" --run ledger', "status --run ledger"):
        if command.startswith("status"):
            (project / ".loop" / "go").touch()
            run.communicate()
        words = [sys.executable, "-m", "pytest_loop", *shlex.split(command)]
        result = subprocess.run(words, cwd=project, capture_output=True, text=True, check=True)
        lines += [f"$ pytest-loop {command}", *result.stdout.splitlines()]
    _write_recording("limit", "A limit is raised while a run works", lines)


def _write_recording(name: str, title: str, lines: Sequence[str]) -> None:
    rows = [row for line in lines for row in textwrap.wrap(line, COLUMNS, subsequent_indent="  ") or [""]]
    recording = render_recording(title, rows)
    (PICTURES / f"{name}.svg").write_text(recording, encoding="utf-8")


def _take_screenshots(page: Page, report: Path) -> None:
    for name, width, height, scheme in (
        ("report-light", 1200, 860, "light"),
        ("report-dark", 1200, 860, "dark"),
        ("report-phone", 390, 844, "light"),
    ):
        page.set_size(width, height)
        page.set_color_scheme(scheme)
        page.open(report)
        page.take_screenshot(PICTURES / f"{name}.png", beyond=False)


def render_recording(title: str, lines: Sequence[str]) -> str:
    """Render the lines of a terminal as an SVG in which they appear one after another."""
    lines = [re.sub(r"^\$", "\x1b[2m$\x1b[0m", line) for line in lines]
    columns = max(len(re.sub(r"\x1b\[[\d;]*m", "", line)) for line in lines)
    width, height = columns * CHARACTER_WIDTH + 2 * MARGIN, len(lines) * LINE_HEIGHT + 2 * MARGIN
    rows = "\n".join(_render_line(line, number) for number, line in enumerate(lines))
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height}" width="{width:g}" role="img">
<title>{html.escape(title)}</title>
<style>
text {{ font: 13px ui-monospace, Menlo, Consolas, monospace; fill: #e6edf3; white-space: pre; }}
text {{ opacity: 0; animation: show 1ms forwards; }}
@keyframes show {{ to {{ opacity: 1; }} }}
@media (prefers-reduced-motion: reduce) {{ text {{ animation-delay: 0s !important; }} }}
</style>
<rect width="100%" height="100%" rx="8" fill="#0d1117"/>
{rows}
</svg>
"""


def _render_line(line: str, number: int) -> str:
    y = MARGIN + (number + 0.75) * LINE_HEIGHT
    delay = 0 if number == 0 else 0.8 + number * SECONDS_PER_LINE
    return (
        f'<text x="{MARGIN}" y="{y:g}" style="animation-delay: {delay:g}s" xml:space="preserve">{_colour(line)}</text>'
    )


def _colour(line: str) -> str:
    """Return a line with its colours as elements."""
    parts, style = [], ""
    for piece in re.split(r"(\x1b\[[\d;]*m)", line):
        if match := re.fullmatch(r"\x1b\[([\d;]*)m", piece):
            colours = [COLOURS[code] for code in match[1].split(";") if code in COLOURS]
            style = colours[-1] if colours else "" if match[1] in ("", "0") else style
        elif piece:
            text = html.escape(piece)
            parts.append(f'<tspan fill="{style}">{text}</tspan>' if style else text)
    return "".join(parts)


if __name__ == "__main__":
    main()
