"""A manifest that is being written: suggestions, problems of values, and its file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from pytest_loop.errors import ManifestError
from pytest_loop.workloads.manifest import Manifest, load_manifest
from pytest_loop.workloads.new_manifest import FIELDS, NewManifest, list_named_fields

VALUES: dict[str, Any] = {
    "workloadId": "copies",
    "artifactPaths": ["prompt.md"],
    "casePaths": ["cases/*"],
    "runCommand": "cp {case} {output}",
    "outputPath": "out/{case_stem}.txt",
    "evaluateCommand": "test -s {output}",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("prompt.md", "cases/a.txt", "cases/b.txt", "expected/a.json", "expected/b.json", "run.py", "judge.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


def make_manifest(folder: Path, **values: Any) -> NewManifest:
    return NewManifest(folder / "loop.manifest.yaml", values)


def test_every_field_of_a_manifest_has_a_flag() -> None:
    names = {field.alias for field in Manifest.model_fields.values()}
    assert {row.name for row in FIELDS} - {"composerPrompt", "reviewerPrompt"} == names - {"agents"}
    assert [row.flag for row in FIELDS][:2] == ["--workload-id", "--artifact-paths"]
    assert all(row.description or row.name in ("cacheStrategy", "need") for row in FIELDS)


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        ("artifactPaths", "prompt.md"),
        ("casePaths", "cases/*"),
        ("expectedPaths", "expected/*"),
        ("runCommand", "python3 run.py {case} {output}"),
        ("outputPath", "out/{case_stem}.txt"),
        ("evaluateCommand", "python3 judge.py {output}"),
        ("maxIterations", "10"),
        ("domainDocs", ""),
    ],
)
def test_values_are_suggested_from_the_files_of_the_folder(folder: Path, name: str, suggestion: str) -> None:
    assert make_manifest(folder).suggest(name) == suggestion


def test_suggestions_follow_from_earlier_answers(folder: Path) -> None:
    manifest = make_manifest(folder, expectedPaths=["expected/*.json"])
    assert manifest.suggest("outputPath") == "out/{case_stem}.json"
    assert manifest.suggest("evaluateCommand") == "python3 judge.py {output} {expected}"


def test_empty_folder_suggests_a_name_and_an_output(tmp_path: Path) -> None:
    manifest = make_manifest(tmp_path)
    suggestions = {row.name: manifest.suggest(row.name) for row in FIELDS}
    assert {name: text for name, text in suggestions.items() if text} == {
        "workloadId": tmp_path.name,
        "outputPath": "out/{case_stem}.txt",
        "maxIterations": "10",
    }


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("runCommand", "cp {case} out", None),
        ("runCommand", "cp {file} out", "expected {case}, {case_name}, {case_stem}, {case_dir}, {output}, {expected}"),
        ("maxIterations", "many", "expected a whole number for `maxIterations`, found 'many'"),
        ("cacheStrategy", "never", "expected 'force' or 'smart'"),
        ("casePaths", ["cases/*", "inputs/*"], "expected files that match 'inputs/*', found none in "),
        ("reviewerPrompt", "review.md", None),
    ],
)
def test_problems_of_one_value_are_found_without_the_others(
    folder: Path, name: str, value: Any, problem: str | None
) -> None:
    problems = list(make_manifest(folder, **{name: value}).find_problems(name))
    assert [text.startswith(problem or "") for text in problems] == ([True] if problem else []), problems


@pytest.mark.parametrize("suffix", [".yaml", ".json"])
def test_rendered_manifest_can_be_loaded(folder: Path, suffix: str) -> None:
    path = folder / f"loop.manifest{suffix}"
    manifest = NewManifest(path, {**VALUES, "composerPrompt": "prompt.md", "domainDocs": []})
    path.write_text(manifest.render())
    data = (json.loads if suffix == ".json" else yaml.safe_load)(path.read_text())
    assert data == {**VALUES, "agents": {"composer": {"promptFile": "prompt.md"}}}
    assert load_manifest(path, folder).manifest.workload_id == "copies"


def test_workload_is_loaded_without_a_file(folder: Path) -> None:
    workload = make_manifest(folder, **VALUES).load()
    assert [case.id for case in workload.cases] == ["cases/a.txt", "cases/b.txt"]
    assert not (folder / "loop.manifest.yaml").exists()


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"evaluateCommand": None}, "evaluateCommand"),
        ({"evaluateCommand": "cmp {output} {expected}"}, "expectedPaths"),
        ({"outputPath": "out.txt"}, "outputPath"),
        ({"expectedPaths": ["expected/a.json"]}, "expectedPaths"),
        ({"runCommand": "cp {x}"}, "runCommand"),
    ],
)
def test_problem_of_a_workload_names_the_field_to_change(folder: Path, values: dict[str, Any], field: str) -> None:
    with pytest.raises(ManifestError) as error:
        make_manifest(folder, **{**VALUES, **values}).load()
    assert field in [row.name for row in list_named_fields([error.value.problems[0].text])]


def test_problem_without_a_field_is_about_all_required_ones() -> None:
    assert list_named_fields(["it is broken"]) == [row for row in FIELDS if row.is_required]


def test_description_of_a_good_output_becomes_the_prompt_of_a_reviewer(folder: Path) -> None:
    manifest = make_manifest(folder, **{**VALUES, "evaluateCommand": None})
    had_judge = manifest.has_judge
    manifest.write_reviewer("It has a total.")
    assert (had_judge, manifest.has_judge) == (False, True)
    assert manifest.load().manifest.reviewer == "reviewer.md"
    text = (folder / "reviewer.md").read_text()
    assert "{case}" in text
    assert "A good output: It has a total." in text
