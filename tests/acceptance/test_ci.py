"""Runs on GitHub: summary, annotations, and no secret in any file or output."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

SECRET = "sk-live-9f8e7d6c5b4a"
AGENT = """
    import base64, os

    def agent(request):
        token = os.environ["API_TOKEN"]
        print("my key is", token, base64.b64encode(f"x{token}".encode()).decode(), flush=True)
        print("::set-output name=x::" + token, flush=True)
        request.artifact.write_text(f"# Guide to {token}, {request.step}")
"""
TEST = """
    import os

    def test_leak():
        print("captured", os.environ["API_TOKEN"])
        assert "a" * 270 + os.environ["API_TOKEN"] == ""

    def test_refined():
        with open(os.environ["DOCUMENT"]) as file:
            assert "REFINE" in file.read(), "::error::no"
"""


@pytest.fixture
def run_on_github(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Callable[..., pytest.RunResult]:
    """Run a loop with the environment of GitHub Actions."""
    pytester.makepyfile(agents=AGENT, test_it=TEST)
    monkeypatch.setenv("API_TOKEN", SECRET)
    monkeypatch.setenv("DOCUMENT", "guide.md")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(pytester.path.parent))
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(pytester.path / "summary.md"))

    def run(*arguments: str) -> pytest.RunResult:
        start = ("--loop-task", "Write a guide", "--loop-agent", "python:agents:agent", "--loop-artifact", "guide.md")
        return pytester.runpytest_subprocess(*start, "--loop-yes", *arguments)

    return run


def read_files(folder: Path) -> dict[str, str]:
    return {str(path): path.read_text(errors="replace") for path in folder.rglob("*") if path.is_file()}


def test_summary_and_annotations_describe_the_run(
    pytester: pytest.Pytester, run_on_github: Callable[..., pytest.RunResult]
) -> None:
    result = run_on_github("--loop-max-iterations", "2")
    assert result.ret == 1
    lines = result.outlines
    place = f"file={pytester.path.name}/test_it.py,line=5"
    assert [line for line in lines if line.startswith("::error ")] == [
        line for line in lines if line.startswith(f"::error {place},title=test_it.py%3A%3Atest_leak::")
    ]
    muted = next(line for line in lines if line.startswith("::stop-commands::"))
    assert lines.index(f"::{muted.removeprefix('::stop-commands::')}::") > lines.index(muted)
    text = (pytester.path / "summary.md").read_text()
    assert "| 2 | A | 0.5 | fail | 1 of 2 | 1 | 0 |\n\n- iteration 2: fixed `test_it.py::test_refined`\n" in text
    assert "- continue: `pytest-loop resume --run write-a-guide --max-iterations 6`\n" in text


@pytest.mark.measured
def test_no_file_and_no_output_has_a_secret(
    pytester: pytest.Pytester, run_on_github: Callable[..., pytest.RunResult]
) -> None:
    outputs = ("--loop-json", "out.json", "--loop-record", "record.jsonl", "-vv")
    result = run_on_github("--loop-max-iterations", "2", *outputs)
    texts = read_files(pytester.path) | {"output": result.stdout.str() + result.stderr.str()}
    pieces = (SECRET, SECRET[:12], SECRET[-12:], "NrLWxpdmUtOWY4ZTdkNmM1YjRh")
    assert [name for name, text in texts.items() for piece in pieces if piece in text] == []
    assert "# Guide to [API_TOKEN], REFINE" in (pytester.path / "guide.md").read_text()
    result.stdout.fnmatch_lines(["*| my key is [[]API_TOKEN] eH[[]API_TOKEN]"])
