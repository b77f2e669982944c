from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from pytest_loop.errors import ManifestError
from pytest_loop.plugin import MANIFESTS
from pytest_loop.workloads import manifest as module
from pytest_loop.workloads.manifest import MANIFEST_NAMES, Manifest, build_json_schema, load_manifest

LEAST: dict[str, Any] = {
    "workloadId": "invoices",
    "artifactPaths": ["prompt.md"],
    "casePaths": ["cases/*.txt"],
    "runCommand": "extract {case} {output}",
    "outputPath": "out/{case_stem}.json",
    "evaluateCommand": "judge {output}",
}
MOST: dict[str, Any] = LEAST | {
    "expectedPaths": ["expected/*.json"],
    "reviewCommand": "review {output} {expected} {case} {case_name} {case_stem} {case_dir}",
    "agents": {"composer": {"promptFile": "composer.md"}, "reviewer": {"promptFile": "reviewer.md"}},
    "domainDocs": ["docs/*.md"],
    "maxIterations": 3,
    "buildCommand": "make",
    "cacheStrategy": "force",
    "holdout": ["cases/secret-*.txt"],
    "repeat": 5,
    "need": 0.8,
    "mode": "exploration",
    "focus": ["cases/a.txt"],
    "guard": ["cases/b.txt"],
    "caseTimeout": 60.0,
    "onPlateau": "stop",
    "onRegression": "accept",
    "decide": "recommended",
}
YAML = """\
workloadId: invoices
artifactPaths: [prompt.md]
casePaths: [cases/*.txt]
runCommand: extract {case} {output}
outputPath: out/{case_stem}.json
evaluateCommand: judge {output}
"""
TOML = """\
workloadId = "invoices"
artifactPaths = ["prompt.md"]
casePaths = ["cases/*.txt"]
runCommand = "extract {case} {output}"
outputPath = "out/{case_stem}.json"
evaluateCommand = "judge {output}"
"""
KNOWN = (
    "agents, artifactPaths, buildCommand, cacheStrategy, casePaths, caseTimeout, decide, domainDocs, evaluateCommand, "
    "expectedPaths, focus, guard, holdout, maxIterations, mode, need, onPlateau, onRegression, outputPath, repeat, "
    "reviewCommand, runCommand, workloadId"
)


def read_manifest(folder: Path, data: dict[str, Any] | str, name: str = "loop.manifest.json") -> Manifest:
    path = folder / name
    path.write_text(data if isinstance(data, str) else json.dumps(data, indent=1), encoding="utf-8")
    return load_manifest(path, folder).manifest


def list_problems(folder: Path, data: dict[str, Any] | str, name: str = "loop.manifest.json") -> list[str]:
    with pytest.raises(ManifestError) as caught:
        read_manifest(folder, data, name)
    return str(caught.value).splitlines()


@pytest.mark.parametrize(
    ("name", "text"),
    list(zip(MANIFEST_NAMES, [json.dumps(LEAST), YAML, YAML, TOML], strict=True)),
    ids=lambda text: text[:20],
)
def test_every_format_loads_the_same_manifest(tmp_path: Path, name: str, text: str) -> None:
    assert read_manifest(tmp_path, text, name) == Manifest.model_validate(LEAST)


def test_omitted_fields_have_defaults(tmp_path: Path) -> None:
    manifest = read_manifest(tmp_path, LEAST)
    assert (manifest.max_iterations, manifest.cache_strategy) == (10, "smart")
    assert (manifest.expected_paths, manifest.domain_docs, manifest.holdout) == ([], [], [])
    assert (manifest.review_command, manifest.build_command, manifest.reviewer) == ("", "", "")


def test_every_field_can_be_set(tmp_path: Path) -> None:
    assert read_manifest(tmp_path, MOST).model_dump(by_alias=True) == MOST


# Each field made wrong in turn: the line of the field, and one clear sentence.
WRONG: list[tuple[str, Any, str]] = [
    ("workloadId", 5, "expected text for `workloadId`, found 5"),
    ("workloadId", "", "expected a text that is not empty for `workloadId`, found ''"),
    ("artifactPaths", [], "expected at least one entry for `artifactPaths`, found []"),
    ("artifactPaths", "prompt.md", "expected a list for `artifactPaths`, found 'prompt.md'"),
    ("casePaths", [], "expected at least one entry for `casePaths`, found []"),
    ("casePaths", None, "expected a list for `casePaths`, found null"),
    ("runCommand", ["run"], "expected text for `runCommand`, found ['run']"),
    ("runCommand", "  ", "expected a command, found an empty text"),
    ("runCommand", "run '{case}", "expected a command, found \"run '{case}\" (no closing quotation)"),
    ("runCommand", "run {case} > {output}", "expected a plain command, found the shell operator '>': put it into a script, or say sh -c '...'"),
    ("runCommand", "run {cse}", "expected {case}, {case_name}, {case_stem}, {case_dir}, {output}, {expected} in `runCommand`, found {cse} (for the braces themselves write {{cse}})"),
    ("runCommand", "run {expected}", "expected `expectedPaths` for {expected} in `runCommand`, found none"),
    ("outputPath", 1, "expected text for `outputPath`, found 1"),
    ("outputPath", "{output}.json", "expected {case}, {case_name}, {case_stem}, {case_dir} in `outputPath`, found {output}"),
    ("evaluateCommand", False, "expected text for `evaluateCommand`, found false"),
    ("evaluateCommand", "judge {expected}", "expected `expectedPaths` for {expected} in `evaluateCommand`, found none"),
    ("expectedPaths", "a", "expected a list for `expectedPaths`, found 'a'"),
    ("reviewCommand", 1, "expected text for `reviewCommand`, found 1"),
    ("agents", "claude", "expected a mapping for `agents`, found 'claude'"),
    ("domainDocs", {}, "expected a list for `domainDocs`, found {}"),
    ("maxIterations", 0, "expected a number >= 1 for `maxIterations`, found 0"),
    ("maxIterations", "3", "expected a whole number for `maxIterations`, found '3'"),
    ("maxIterations", 2.5, "expected a whole number for `maxIterations`, found 2.5"),
    ("maxIterations", True, "expected a whole number for `maxIterations`, found true"),
    ("buildCommand", 1, "expected text for `buildCommand`, found 1"),
    ("buildCommand", "make {case}", "expected no placeholder in `buildCommand`, found {case}"),
    ("cacheStrategy", "clever", "expected 'force' or 'smart' for `cacheStrategy`, found 'clever'"),
    ("holdout", "a", "expected a list for `holdout`, found 'a'"),
    ("repeat", 0, "expected a number >= 1 for `repeat`, found 0"),
    ("repeat", "5", "expected a whole number for `repeat`, found '5'"),
    ("need", 0, "expected majority, all, any, a count or a share for `need`, found 0"),
    ("need", "most", "expected majority, all, any, a count or a share for `need`, found 'most'"),
    ("mode", "fast", "expected 'precision', 'exploration', 'convergence' or 'custom' for `mode`, found 'fast'"),
    ("caseTimeout", 0, "expected a number > 0 for `caseTimeout`, found 0"),
    ("extra", 1, f"expected one of {KNOWN}, found the unknown key `extra`"),
    ("evaluatecommand", "x", "expected `evaluateCommand`, found the unknown key `evaluatecommand`"),
]  # fmt: skip


@pytest.mark.parametrize(("field", "value", "message"), WRONG)
def test_each_wrong_field_is_one_line(tmp_path: Path, field: str, value: Any, message: str) -> None:
    data = LEAST | {field: value}
    rows = json.dumps(data, indent=1).splitlines()
    line = next(number for number, row in enumerate(rows, 1) if row.startswith(f' "{field}":'))
    assert list_problems(tmp_path, data) == [f"loop.manifest.json:{line}: {message}"]


@pytest.mark.parametrize("field", ["workloadId", "artifactPaths", "casePaths", "runCommand", "outputPath"])
def test_missing_required_key_is_named(tmp_path: Path, field: str) -> None:
    data = {name: value for name, value in LEAST.items() if name != field}
    assert list_problems(tmp_path, data) == [f"loop.manifest.json:1: expected the key `{field}`, found none"]


@pytest.mark.parametrize(
    "instead",
    [
        {"expectedPaths": ["expected/*"]},
        {"reviewCommand": "review {output}"},
        {"agents": {"reviewer": {"promptFile": "reviewer.md"}}},
    ],
)
def test_evaluate_command_is_required_unless_something_else_judges(tmp_path: Path, instead: dict[str, Any]) -> None:
    data = {name: value for name, value in LEAST.items() if name != "evaluateCommand"}
    assert read_manifest(tmp_path, data | instead).evaluate_command == ""
    (message,) = list_problems(tmp_path, data)
    others = "(or `expectedPaths`, `reviewCommand` or a reviewer's `promptFile` instead)"
    assert message == f"loop.manifest.json:1: expected the key `evaluateCommand` {others}, found none"


def test_wrong_nested_key_is_named_with_its_line(tmp_path: Path) -> None:
    text = YAML + "agents:\n  composer:\n    promptfile: x.md\n  judge: {}\n"
    assert list_problems(tmp_path, text, "loop.manifest.yaml") == [
        "loop.manifest.yaml:9: expected `promptFile`, found the unknown key `promptfile`",
        "loop.manifest.yaml:10: expected one of composer, reviewer, found the unknown key `judge`",
    ]


def test_wrong_list_entry_is_named_with_its_line(tmp_path: Path) -> None:
    text = TOML.replace('casePaths = ["cases/*.txt"]', 'casePaths = [\n  "cases/*.txt",\n  5,\n]')
    assert list_problems(tmp_path, text, "loop.manifest.toml") == ["loop.manifest.toml:5: expected text, found 5"]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("loop.manifest.yaml", "", "loop.manifest.yaml:1: expected a mapping with `workloadId`, found an empty file"),
        ("loop.manifest.json", "[1]", "loop.manifest.json:1: expected a mapping with `workloadId`, found [1]"),
        ("loop.manifest.json", "{\n", "loop.manifest.json:2: expected JSON, found an error: expecting property name enclosed in double quotes in column 1"),
        ("loop.manifest.yaml", f"{YAML}workloadId: again\n", "loop.manifest.yaml:7: expected each key once, found 'workloadId' twice"),
        ("loop.manifest.ini", "", "loop.manifest.ini:1: expected a .json, .yaml, .yml or .toml file, found 'loop.manifest.ini'"),
    ],
)  # fmt: skip
def test_file_that_is_not_a_manifest_is_explained(tmp_path: Path, name: str, text: str, message: str) -> None:
    assert list_problems(tmp_path, text, name) == [message]


def test_file_outside_of_the_project_is_named_by_its_full_path(tmp_path: Path) -> None:
    path = tmp_path / "loop.manifest.json"
    path.write_text("[]")
    with pytest.raises(ManifestError, match=f"^{path}:1: "):
        load_manifest(path, tmp_path / "project")


@pytest.mark.parametrize(("field", "value"), [row[:2] for row in WRONG])
def test_schema_for_editors_refuses_what_the_loader_refuses(field: str, value: Any) -> None:
    """Check the schema; only the loader checks the text of commands and paths."""
    if isinstance(value, str) and field.endswith(("Command", "outputPath")):
        jsonschema.validate(LEAST | {field: value}, build_json_schema())
    else:
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(LEAST | {field: value}, build_json_schema())


def test_schema_for_editors_accepts_what_the_loader_accepts() -> None:
    for data in (LEAST, MOST):
        jsonschema.validate(data, build_json_schema())
    bare = {name: value for name, value in LEAST.items() if name != "evaluateCommand"}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(bare, build_json_schema())


def test_schema_has_exactly_the_fields_of_a_manifest() -> None:
    schema = build_json_schema()
    assert schema["additionalProperties"] is False
    assert sorted(schema["properties"]) == sorted(MOST)
    assert schema["required"] == ["workloadId", "artifactPaths", "casePaths", "runCommand", "outputPath"]


def test_schema_in_the_package_matches_the_models() -> None:
    shipped = json.loads((Path(module.__file__).parent / "manifest.schema.json").read_text())
    assert shipped == build_json_schema()


def test_manifest_in_the_documentation_loads_and_every_field_is_explained(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "docs/workloads.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"^```yaml\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert read_manifest(tmp_path, shown, "loop.manifest.yaml").workload_id == "receipts"
    explained = re.findall(r"^\| `(\w+)[`.]", text, re.MULTILINE)
    assert set(MOST) <= set(explained)


def test_plugin_knows_every_name_of_a_manifest() -> None:
    assert set(MANIFESTS) == set(MANIFEST_NAMES)
