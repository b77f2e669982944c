"""Projects are looked at: bounded, without following links, and whatever their files hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_loop.inference import project_files, sources
from pytest_loop.inference.command_candidate import Source
from pytest_loop.inference.data_files import UnreadableFile, get_line, parse_data
from pytest_loop.inference.project_files import Project, read_project


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def test_only_files_that_say_something_are_read(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "pyproject.toml": "[tool.ruff]",
            "src/app.py": "x = 1",
            "node_modules/x/package.json": "{}",
            ".venv/pyproject.toml": "",
            "tests/fixtures/package.json": "{}",
            ".github/workflows/ci.yml": "jobs: {}",
            "docs/UC-001.md": "# x",
            "a/b/c/d/package.json": "{}",
        },
    )
    found = read_project(tmp_path)
    assert sorted(found.texts) == [".github/workflows/ci.yml", "docs/UC-001.md", "pyproject.toml"]
    assert found.files - set(found.texts) == {"a/b/c/d/package.json", "src/app.py", "tests/fixtures/package.json"}
    assert found.data["pyproject.toml"] == {"tool": {"ruff": {}}}


def test_what_loops_keep_is_no_part_of_the_project(tmp_path: Path) -> None:
    kept = [".loop/shape/SHAPE.md", ".ai-factory/RULES.md", ".ai-factory/skill-context/aif-loop/SKILL.md"]
    others = [
        ".loop/run.json",
        ".loop/shop/history.jsonl",
        ".loop/shop/artifact.md",
        ".loop/shape/draft.py",
        ".ai-factory/PLAN.md",
        ".ai-factory/evolution/test_current.py",
        ".ai-factory/skill-context/aif-fix/SKILL.md",
        ".ai-factory/skill-context/aif-loop/pyproject.toml",
    ]
    write(tmp_path, dict.fromkeys([*kept, *others, "shop.py"], "x = 1\n"))
    assert read_project(tmp_path).files == {*kept, "shop.py"}


def test_links_and_large_files_are_only_names(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").symlink_to("/etc/hostname")
    (tmp_path / "tox.ini").write_text("x" * (project_files.LARGEST + 1))
    (tmp_path / "Makefile").mkdir()
    assert read_project(tmp_path).texts == {}


def test_a_file_that_cannot_be_read_is_only_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(*_: Any, **__: Any) -> str:
        raise PermissionError

    write(tmp_path, {"Makefile": "test:\n"})
    monkeypatch.setattr(Path, "read_text", closed)
    assert read_project(tmp_path).texts == {}


def test_there_is_an_end_to_looking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {f"{number}.py": "" for number in range(9)})
    monkeypatch.setattr(project_files, "MOST_FILES", 5)
    assert len(read_project(tmp_path).files) == 5


def test_damage_is_named_and_the_rest_is_used() -> None:
    found = Project.from_texts(
        {"package.json": "{", "pyproject.toml": "[tool.ruff]\n", "Makefile": "test:\n\tpytest\n"}
    )
    assert len(found.problems) == 1
    assert found.problems[0].startswith("package.json cannot be read: Expecting property name")
    assert {one.command for one in sources.find_manifest_candidates(found)} >= {"ruff check .", "make test"}


def test_a_place_in_a_text() -> None:
    found = Project.from_texts({"tox.ini": "[tox]\n[testenv]\n"})
    assert found.locate("tox.ini", r"^\[testenv") == Source("tox.ini", 2)
    assert str(found.locate("tox.ini", "nothing")) == "tox.ini:1"


# -- data


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.toml", "x ="),
        ("a.json", "{"),
        ("a.yaml", "a: ["),
        ("a.yaml", "[" * 200_000),
        ("a.json", "[" * 200_000),
        ("a.yaml", "a: 2026-99-99"),
        ("a.ini", "x"),
        ("a.yaml", "a: &a {" + ", ".join(f"k{n}: 1" for n in range(10_001)) + "}\nb: {<<: *a}"),
    ],
)
def test_text_that_is_not_what_it_should_be(path: str, text: str) -> None:
    with pytest.raises(UnreadableFile, match=f"^{path} cannot be read: "):
        parse_data(path, text)


def test_what_is_no_data_is_an_empty_mapping() -> None:
    assert parse_data("Makefile", "test:") == {}
    assert parse_data("a.json", "[1]") == {}
    assert parse_data(".flake8", "[flake8]\nignore\n") == {"flake8": {"ignore": ""}}


def test_texts_of_yaml_know_their_lines() -> None:
    data: Any = parse_data("a.yaml", "a: b\nc: |\n  d\n  e\nf: !reference [x]\ng: >\n  h\n")
    assert [get_line(data["a"]), get_line(data["c"]), get_line(data["g"]), get_line("plain")] == [1, 3, 7, 1]
    assert data["f"] is None


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["scripts", "test", "lint", "tool", "mypy", "ruff",
        "lint", "select", "dependencies", "devDependencies", "packageManager", "pdm", "poe", "tasks", "hatch", "build-system"]), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@settings(deadline=None)
@given(_JSON, _JSON)
def test_no_manifest_is_so_strange_that_it_hurts(one: Any, other: Any) -> None:
    found = Project.from_texts({"package.json": json.dumps(one), "mise.toml": "", "pyproject.toml": ""})
    strange: dict[str, Any] = {"pyproject.toml": {"tool": other}, "mise.toml": {"tasks": other}}
    data = {**found.data, **strange}
    for candidate in sources.find_manifest_candidates(Project(found.files, found.texts, data)):
        assert candidate.command
