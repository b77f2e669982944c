"""Projects are read within limits, without following links, whatever their files hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_loop.inference import project_files, sources
from pytest_loop.inference.command_candidate import SourceLine
from pytest_loop.inference.data_files import UnreadableFile, get_line, parse_data
from pytest_loop.inference.project_files import Project, read_project


def write_files(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def test_only_relevant_files_are_read(tmp_path: Path) -> None:
    write_files(
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
    project = read_project(tmp_path)
    assert sorted(project.texts) == [".github/workflows/ci.yml", "docs/UC-001.md", "pyproject.toml"]
    assert project.files - set(project.texts) == {"a/b/c/d/package.json", "src/app.py", "tests/fixtures/package.json"}
    assert project.data["pyproject.toml"] == {"tool": {"ruff": {}}}


def test_files_of_loops_are_no_part_of_the_project(tmp_path: Path) -> None:
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
    write_files(tmp_path, dict.fromkeys([*kept, *others, "shop.py"], "x = 1\n"))
    assert read_project(tmp_path).files == {*kept, "shop.py"}


def test_links_and_large_files_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").symlink_to("/etc/hostname")
    (tmp_path / "tox.ini").write_text("x" * (project_files.MAX_FILE_SIZE + 1))
    (tmp_path / "Makefile").mkdir()
    (tmp_path / "setup.cfg").symlink_to("missing")
    assert read_project(tmp_path).texts == {}


def test_an_unreadable_file_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def deny(*_: Any, **__: Any) -> str:
        raise PermissionError

    write_files(tmp_path, {"Makefile": "test:\n"})
    monkeypatch.setattr(Path, "read_text", deny)
    assert read_project(tmp_path).texts == {}


def test_files_beyond_the_limit_are_named_and_manifests_come_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = {f"data/d{folder}/{number}.json": "" for folder in range(9) for number in range(9)}
    write_files(tmp_path, {**data, "web/package.json": "{}", "pyproject.toml": "[tool.pytest.ini_options]"})
    monkeypatch.setattr(project_files, "MAX_FILES", 15)
    project = read_project(tmp_path)
    assert set(project.texts) == {"web/package.json", "pyproject.toml"}
    assert project.unseen == tuple(f"data/d{number}" for number in range(2, 9))
    assert project.problems == ("only 15 files were listed; left out: data/d2/, data/d3/, data/d4/ and 4 more",)


def test_manifests_beyond_a_limit_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(tmp_path, {f"{name}/package.json": "{}" for name in "abc"} | {"Makefile": "test:\n" * 9})
    monkeypatch.setattr(project_files, "MAX_TEXTS", 2)
    monkeypatch.setattr(project_files, "MAX_FILE_SIZE", 20)
    project = read_project(tmp_path)
    assert set(project.texts) == {"a/package.json"}
    assert project.problems == (
        "only 2 manifests and documents were read; left out: b/package.json, c/package.json",
        "files above 0 kB were not read: Makefile",
    )


def test_a_folder_that_cannot_be_listed_is_skipped(tmp_path: Path) -> None:
    assert read_project(tmp_path / "missing").files == frozenset()


def test_a_damaged_file_is_reported_and_the_rest_is_used() -> None:
    project = Project.from_texts(
        {"package.json": "{", "pyproject.toml": "[tool.ruff]\n", "Makefile": "test:\n\tpytest\n"}
    )
    assert len(project.problems) == 1
    assert project.problems[0].startswith("package.json cannot be read: Expecting property name")
    assert {package.command for package in sources.find_manifest_candidates(project)} >= {"ruff check .", "make test"}


def test_a_pattern_is_located_by_line() -> None:
    project = Project.from_texts({"tox.ini": "[tox]\n[testenv]\n"})
    assert project.locate("tox.ini", r"^\[testenv") == SourceLine("tox.ini", 2)
    assert str(project.locate("tox.ini", "nothing")) == "tox.ini:1"


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
def test_damaged_data_raises_unreadable_file(path: str, text: str) -> None:
    with pytest.raises(UnreadableFile, match=f"^{path} cannot be read: "):
        parse_data(path, text)


def test_other_data_is_an_empty_mapping() -> None:
    assert parse_data("Makefile", "test:") == {}
    assert parse_data("a.json", "[1]") == {}
    assert parse_data(".flake8", "[flake8]\nignore\n") == {"flake8": {"ignore": ""}}


def test_yaml_strings_have_their_lines() -> None:
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
def test_any_data_can_be_read_as_a_manifest(package: Any, other: Any) -> None:
    project = Project.from_texts({"package.json": json.dumps(package), "mise.toml": "", "pyproject.toml": ""})
    strange: dict[str, Any] = {"pyproject.toml": {"tool": other}, "mise.toml": {"tasks": other}}
    data = {**project.data, **strange}
    for candidate in sources.find_manifest_candidates(Project(project.files, project.texts, data)):
        assert candidate.command
