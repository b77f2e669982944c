"""Every block of the manual works: files load, commands exist, and consoles print what the pages show."""

from __future__ import annotations

import json
import os
import re
import runpy
import shlex
import subprocess
import sys
from configparser import ConfigParser
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from pytest_loop.cli.console_script import ROWS, build_pytest_arguments
from pytest_loop.rules.rule_files import load_rule_file
from pytest_loop.settings.options import OPTIONS
from tests.pytest_caller import PytestCaller

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(path for path in DOCS.rglob("*.md") if "decisions" not in path.parts)
STORIES = [DOCS / "quickstart.md", *sorted((DOCS / "tutorials").glob("*.md"))]
# Pages whose blocks have tests of their own.
OTHER_STORIES = ("integrations.md", "ways-in.md", "workloads.md")
MAX_WORDS = 1_200
MAX_LINE = 140
_BLOCK = re.compile(r"(?:^`([^`\n]+)`:\n\n)?^(```+)(\w+)\n(.*?)^\2$", re.DOTALL | re.MULTILINE)
_FLAGS = {flag for option in OPTIONS for flag in (option.flag, *option.other_flags) if flag}


class Block(NamedTuple):
    """One block of a page; `path` is the file that it stands for."""

    path: str
    language: str
    text: str


def find_blocks(page: Path) -> list[Block]:
    return [Block(path, language, text) for path, _, language, text in _BLOCK.findall(page.read_text(encoding="utf-8"))]


def list_blocks(*languages: str) -> list[Any]:
    return [
        pytest.param(block, id=f"{page.stem}-{number}")
        for page in PAGES
        for number, block in enumerate(find_blocks(page))
        if block.language in languages
    ]


@pytest.mark.parametrize("page", STORIES, ids=lambda page: page.stem)
def test_story_prints_what_the_page_shows(tmp_path: Path, caller: PytestCaller, page: Path) -> None:
    for block in find_blocks(page):
        if block.path:
            path = tmp_path / block.path
            path.parent.mkdir(exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
        elif block.language == "console":
            for part in block.text.split("$ ")[1:]:
                command, _, expected = part.partition("\n")
                output = call(caller, shlex.split(command), tmp_path)
                assert find_missing(expected.splitlines(), output.splitlines()) is None, f"{command}\n{output}"


def call(caller: PytestCaller, words: list[str], folder: Path) -> str:
    if words[0] == "pytest-loop" and any(row.name == words[1] and row.function for row in ROWS):
        command = [sys.executable, "-m", "pytest_loop", *words[1:]]
        result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        return result.stdout + result.stderr
    arguments = words[1:] if words[0] == "pytest" else build_pytest_arguments(words[1:])
    process = caller.call(*arguments, folder=folder, variables={"PATH": os.environ["PATH"]})
    return process.stdout + process.stderr


def find_missing(expected: list[str], output: list[str]) -> str | None:
    """Return the first expected line that the output lacks in this order; `...` stands for anything."""
    lines = iter(output)
    for pattern in expected:
        glob = re.sub(r"([\[?])", r"[\1]", pattern.strip()).replace("...", "*")
        if glob != "*" and not any(fnmatchcase(line.strip(), glob) for line in lines):
            return pattern
    return None


@pytest.mark.parametrize("block", list_blocks("sh"))
def test_commands_and_options_exist(block: Block) -> None:
    for line in block.text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words and words[0] == "pytest-loop":
            row = next(row for row in ROWS if row.name == words[1])
            assert row.function or build_pytest_arguments(words[1:])
        unknown = {word.partition("=")[0] for word in words if word.startswith("--loop-")} - _FLAGS
        assert unknown == set()


@pytest.mark.parametrize("block", list_blocks("yaml"))
def test_yaml_is_valid(tmp_path: Path, block: Block) -> None:
    if re.search("^rules:", block.text, re.MULTILINE):
        (tmp_path / "it.rules.yaml").write_text(block.text, encoding="utf-8")
        assert load_rule_file(tmp_path / "it.rules.yaml", tmp_path).rules
    else:
        assert yaml.safe_load(block.text)


@pytest.mark.parametrize("block", list_blocks("python"))
def test_python_is_valid(block: Block) -> None:
    compile(block.text, block.path or "block", "exec")


@pytest.mark.parametrize("block", list_blocks("json", "toml", "ini"))
def test_data_is_valid(block: Block) -> None:
    if block.language == "json":
        assert json.loads(block.text)
    elif block.language == "toml":
        assert tomllib.loads(block.text)
    else:
        parser = ConfigParser()
        parser.read_string(block.text)
        keys = {option.key for option in OPTIONS if option.ini is not None}
        assert set(parser["pytest"]) - keys == set()


def test_every_block_has_a_test() -> None:
    known = {"sh", "yaml", "python", "json", "toml", "ini", "console", "mermaid", "text", "markdown", "diff"}
    assert {block.language for page in PAGES for block in find_blocks(page)} - known == set()
    consoles = {page for page in PAGES if any(block.language == "console" for block in find_blocks(page))}
    assert {page.name for page in consoles - set(STORIES)} - set(OTHER_STORIES) == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_pages_are_short(page: Path) -> None:
    lines = _BLOCK.sub("", page.read_text(encoding="utf-8")).splitlines()
    prose = [line for line in lines if not line.startswith(("|", "    "))]
    assert len(" ".join(prose).split()) <= MAX_WORDS
    assert [line for line in prose if len(line) > MAX_LINE] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_links_lead_somewhere(page: Path) -> None:
    text = _BLOCK.sub("", page.read_text(encoding="utf-8"))
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"https?://[\w.-]+(/\S*)?$", target):
            continue
        name, _, anchor = target.partition("#")
        path = (page.parent / name).resolve() if name else page
        assert path.exists(), target
        if anchor and path.suffix == ".md":
            assert anchor in list_anchors(path), target


def list_anchors(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def test_generated_pages_are_those_of_the_code() -> None:
    render_pages = runpy.run_path(str(DOCS / "write_reference.py"))["render_pages"]
    for name, text in render_pages().items():
        assert (DOCS / name).read_text(encoding="utf-8") == text, "run python docs/write_reference.py"


def test_script_of_the_pictures_finds_what_it_needs() -> None:
    names = runpy.run_path(str(DOCS / "make_pictures.py"))
    assert "&lt;b&gt;" in names["render_recording"]("A run", ["$ pytest", "\x1b[31m<b>\x1b[0m"])
