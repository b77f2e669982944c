from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_loop.errors import LoopError, ManifestError
from pytest_loop.workloads.cases import Case, CaseRoles, Workload, assign_roles, match_cases, pair_expected_files

OpenWorkload = Callable[..., Workload]


def find_problem(open_workload: OpenWorkload, files: dict[str, str] | None = None, **fields: Any) -> str:
    with pytest.raises(ManifestError) as caught:
        open_workload(files, **fields)
    return str(caught.value).partition(": ")[2]


def test_cases_are_sorted_without_duplicates(open_workload: OpenWorkload) -> None:
    workload = open_workload(casePaths=["cases/b.txt", "cases/*.txt", "cases/a.txt"])
    assert workload.cases == (
        Case("cases/a.txt", "out/cases/a.txt", "expected/a.txt"),
        Case("cases/b.txt", "out/cases/b.txt", "expected/b.txt"),
    )
    assert workload.editable_files == ("prompt.md",)


def test_folders_and_hidden_files_are_not_cases(open_workload: OpenWorkload) -> None:
    extra = {"cases/.hidden": "x", "cases/more/c.txt": "x"}
    assert [case.id for case in open_workload(extra, casePaths=["cases/*"]).cases] == ["cases/a.txt", "cases/b.txt"]
    assert [
        case.id for case in open_workload(extra, casePaths=["cases/.h*"], expectedPaths=["expected/a.txt"]).cases
    ] == ["cases/.hidden"]


def test_output_path_may_use_every_placeholder_of_a_case(open_workload: OpenWorkload) -> None:
    workload = open_workload(outputPath="out/{case_dir}/{case_stem}/{case_name}.json")
    assert workload.cases[0].output == "out/cases/a/a.txt.json"
    assert workload.cases[0].placeholder_values == {
        "case": "cases/a.txt",
        "case_name": "a.txt",
        "case_stem": "a",
        "case_dir": "cases",
        "output": "out/cases/a/a.txt.json",
        "expected": "expected/a.txt",
    }


def test_workload_works_without_expected_files(open_workload: OpenWorkload) -> None:
    workload = open_workload(expectedPaths=None, evaluateCommand="true")
    assert [case.expected for case in workload.cases] == ["", ""]


@pytest.mark.parametrize(
    ("cases", "expected", "pairs"),
    [
        (["c/a.txt", "c/b.txt"], [], {}),
        (["c/a.txt", "c/b.txt"], ["e/a.json", "e/b.json"], {"c/a.txt": "e/a.json", "c/b.txt": "e/b.json"}),
        (["c/b.txt"], ["e/a.json", "e/b.json"], {"c/b.txt": "e/b.json"}),
        (["c/1.txt", "c/2.txt"], ["e/x.json", "e/y.json"], {"c/1.txt": "e/x.json", "c/2.txt": "e/y.json"}),
        (["c/1/in.txt", "c/2/in.txt"], ["c/1/out", "c/2/out"], {"c/1/in.txt": "c/1/out", "c/2/in.txt": "c/2/out"}),
        (["c/a.txt", "c/b.txt"], ["e/a.json"], None),
        (["c/1/in.txt", "c/2/in.txt"], ["e/in.json"], None),
    ],
)
def test_expected_files_are_paired_by_stem_or_in_order(
    cases: list[str], expected: list[str], pairs: dict[str, str] | None
) -> None:
    assert pair_expected_files(cases, expected) == pairs


def test_case_without_an_expected_file_is_an_error(open_workload: OpenWorkload) -> None:
    expected = "expected a file for each of 3 cases in `expectedPaths`, by its stem or as many in order"
    message = find_problem(open_workload, {"cases/c.txt": "x"})
    assert message == f"{expected}, found 2, and none for cases/c.txt"


def test_stem_of_several_cases_pairs_none_of_them(open_workload: OpenWorkload) -> None:
    message = find_problem(open_workload, {"cases/x/a.txt": "x"}, casePaths=["cases/**/*.txt"])
    assert message.endswith("found 2, and stems that stand for several")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"casePaths": ["none/*"]}, "expected files that match 'none/*' for `casePaths`, found none"),
        ({"artifactPaths": ["nothing.md"]}, "expected files that match 'nothing.md' for `artifactPaths`, found none"),
        ({"domainDocs": ["docs/*"]}, "expected files that match 'docs/*' for `domainDocs`, found none"),
        ({"agents": {"composer": {"promptFile": "c.md"}}}, "expected files that match 'c.md' for `promptFile`, found none"),
        ({"casePaths": ["/abs/*"]}, "expected a path or a glob from the manifest's folder for `casePaths`, found '/abs/*'"),
        ({"holdout": ["x"]}, "expected cases that match 'x' for `holdout`, found none"),
        ({"outputPath": "out/one.txt"}, "expected an output of its own for each case in `outputPath`, found out/one.txt for cases/a.txt and cases/b.txt"),
        ({"outputPath": "{case}"}, "expected a new file for the output of cases/a.txt in `outputPath`, found cases/a.txt, which the workload reads"),
        ({"outputPath": "x/../prompt.md"}, "expected a new file for the output of cases/a.txt in `outputPath`, found prompt.md, which the workload reads"),
        ({"outputPath": "../{case}"}, "expected a path inside the project in `outputPath`, found ../cases/a.txt"),
    ],
)  # fmt: skip
def test_missing_files_and_clashing_outputs_are_one_line(
    open_workload: OpenWorkload, fields: dict[str, Any], message: str
) -> None:
    assert find_problem(open_workload, **fields) == message


def test_problem_names_the_line_of_its_glob(open_workload: OpenWorkload, folder: Path) -> None:
    with pytest.raises(ManifestError) as caught:
        open_workload(casePaths=["cases/*.txt", "none/*"])
    rows = (folder / "loop.manifest.json").read_text().splitlines()
    line = next(number for number, row in enumerate(rows, 1) if "none/*" in row)
    assert str(caught.value).startswith(f"loop.manifest.json:{line}: ")


def test_holdout_cases_are_marked(open_workload: OpenWorkload) -> None:
    workload = open_workload(holdout=["cases/b*"])
    assert [(case.id, case.is_held_out) for case in workload.cases] == [("cases/a.txt", False), ("cases/b.txt", True)]
    assert workload.held_out_cases == {"cases/b.txt"}


IDS = ("cases/a.txt", "cases/b.txt", "cases/c.txt")


@pytest.mark.parametrize(
    ("pattern", "cases"), [("cases/a.txt", IDS[:1]), ("b.txt", IDS[1:2]), ("cases/[ab]*", IDS[:2]), ("x", ())]
)
def test_case_matches_by_id_by_name_or_by_glob(pattern: str, cases: tuple[str, ...]) -> None:
    assert match_cases(IDS, pattern) == cases


def test_patterns_assign_roles_to_cases() -> None:
    assert assign_roles(IDS) == CaseRoles(IDS)
    assert assign_roles(IDS, excluded=["a.txt"], focus=["b.txt"], guards=["c.txt"]) == CaseRoles(
        IDS[1:], ("cases/b.txt",), ("cases/c.txt",), ("cases/a.txt",)
    )
    assert assign_roles(IDS, only=["c.txt", "a.txt"]).selected == (IDS[0], IDS[2])


@pytest.mark.parametrize(
    ("patterns", "message"),
    [
        ({"only": ["x"]}, "expected a case to run, found none that is called 'x' among 3"),
        ({"focus": ["x"]}, "expected a case to focus on, found none that is called 'x' among 3"),
        ({"guards": ["a.txt"], "excluded": ["a.txt"]}, "expected a case as a guard, found none that is called 'a.txt' among 2"),
        ({"excluded": ["x"]}, "expected a case to exclude, found none that is called 'x' among 3"),
        ({"excluded": ["*"]}, "expected cases to run, found that all 3 are left out"),
    ],
)  # fmt: skip
def test_pattern_without_cases_is_an_error(patterns: dict[str, list[str]], message: str) -> None:
    with pytest.raises(LoopError, match="^" + message.replace("'", ".")):
        assign_roles(IDS, **patterns)
