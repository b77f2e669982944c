from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_loop.errors import LoopError, ManifestError
from pytest_loop.workloads.cases import Case, CaseRoles, Workload, assign_roles, match_cases, pair_expected_files

Opened = Callable[..., Workload]


def problem(opened: Opened, files: dict[str, str] | None = None, **fields: Any) -> str:
    with pytest.raises(ManifestError) as caught:
        opened(files, **fields)
    return str(caught.value).partition(": ")[2]


def test_cases_are_sorted_and_each_is_there_once(opened: Opened) -> None:
    found = opened(casePaths=["cases/b.txt", "cases/*.txt", "cases/a.txt"])
    assert found.cases == (
        Case("cases/a.txt", "out/cases/a.txt", "expected/a.txt"),
        Case("cases/b.txt", "out/cases/b.txt", "expected/b.txt"),
    )
    assert found.artifacts == ("prompt.md",)


def test_folders_and_hidden_files_are_no_cases(opened: Opened) -> None:
    extra = {"cases/.hidden": "x", "cases/more/c.txt": "x"}
    assert [one.id for one in opened(extra, casePaths=["cases/*"]).cases] == ["cases/a.txt", "cases/b.txt"]
    assert [one.id for one in opened(extra, casePaths=["cases/.h*"], expectedPaths=["expected/a.txt"]).cases] == [
        "cases/.hidden"
    ]


def test_every_placeholder_of_a_case_can_stand_in_its_output(opened: Opened) -> None:
    found = opened(outputPath="out/{case_dir}/{case_stem}/{case_name}.json")
    assert found.cases[0].output == "out/cases/a/a.txt.json"
    assert found.cases[0].values == {
        "case": "cases/a.txt",
        "case_name": "a.txt",
        "case_stem": "a",
        "case_dir": "cases",
        "output": "out/cases/a/a.txt.json",
        "expected": "expected/a.txt",
    }


def test_a_workload_works_without_expected_files(opened: Opened) -> None:
    found = opened(expectedPaths=None, evaluateCommand="true")
    assert [one.expected for one in found.cases] == ["", ""]


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
def test_expected_files_are_paired_by_stem_else_in_order_else_not_at_all(
    cases: list[str], expected: list[str], pairs: dict[str, str] | None
) -> None:
    assert pair_expected_files(cases, expected) == pairs


def test_cases_without_a_partner_are_an_error(opened: Opened) -> None:
    wanted = "expected an expected file for each of 3 cases, by its stem or as many in order"
    said = problem(opened, {"cases/c.txt": "x"})
    assert said == f"{wanted}, found 2, and none for cases/c.txt"


def test_stems_that_stand_for_several_cases_do_not_pair_them(opened: Opened) -> None:
    said = problem(opened, {"cases/x/a.txt": "x"}, casePaths=["cases/**/*.txt"])
    assert said.endswith("found 2, and stems that stand for several")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"casePaths": ["none/*"]}, "expected files that match 'none/*' for `casePaths`, found none"),
        ({"artifactPaths": ["nothing.md"]}, "expected files that match 'nothing.md' for `artifactPaths`, found none"),
        ({"domainDocs": ["docs/*"]}, "expected files that match 'docs/*' for `domainDocs`, found none"),
        ({"agents": {"composer": {"promptFile": "c.md"}}}, "expected files that match 'c.md' for `promptFile`, found none"),
        ({"casePaths": ["/abs/*"]}, "expected a path or a glob from the manifest's folder for `casePaths`, found '/abs/*'"),
        ({"holdout": ["x"]}, "expected cases that match 'x' for `holdout`, found none"),
        ({"outputPath": "out/one.txt"}, "expected an output of its own for each case, found out/one.txt for cases/a.txt and cases/b.txt"),
        ({"outputPath": "{case}"}, "expected a new file for the output of cases/a.txt, found cases/a.txt, which the workload reads"),
        ({"outputPath": "x/../prompt.md"}, "expected a new file for the output of cases/a.txt, found prompt.md, which the workload reads"),
        ({"outputPath": "../{case}"}, "expected a path inside the project, found ../cases/a.txt"),
    ],
)  # fmt: skip
def test_what_is_not_there_or_would_mix_is_one_line(opened: Opened, fields: dict[str, Any], said: str) -> None:
    assert problem(opened, **fields) == said


def test_a_problem_names_the_line_of_its_glob(opened: Opened, folder: Path) -> None:
    with pytest.raises(ManifestError) as caught:
        opened(casePaths=["cases/*.txt", "none/*"])
    rows = (folder / "loop.manifest.json").read_text().splitlines()
    line = next(number for number, row in enumerate(rows, 1) if "none/*" in row)
    assert str(caught.value).startswith(f"loop.manifest.json:{line}: ")


def test_holdout_cases_are_run_and_known_as_such(opened: Opened) -> None:
    found = opened(holdout=["cases/b*"])
    assert [(one.id, one.is_holdout) for one in found.cases] == [("cases/a.txt", False), ("cases/b.txt", True)]
    assert found.hidden_cases == {"cases/b.txt"}


IDS = ("cases/a.txt", "cases/b.txt", "cases/c.txt")


@pytest.mark.parametrize(
    ("pattern", "found"), [("cases/a.txt", IDS[:1]), ("b.txt", IDS[1:2]), ("cases/[ab]*", IDS[:2]), ("x", ())]
)
def test_a_case_is_named_by_its_id_its_name_or_a_glob(pattern: str, found: tuple[str, ...]) -> None:
    assert match_cases(IDS, pattern) == found


def test_cases_play_the_parts_that_patterns_give_them() -> None:
    assert assign_roles(IDS) == CaseRoles(IDS)
    assert assign_roles(IDS, excluded=["a.txt"], focus=["b.txt"], guards=["c.txt"]) == CaseRoles(
        IDS[1:], ("cases/b.txt",), ("cases/c.txt",), ("cases/a.txt",)
    )
    assert assign_roles(IDS, only=["c.txt", "a.txt"]).run == (IDS[0], IDS[2])


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"only": ["x"]}, "expected a case to run, found none that is called 'x' among 3"),
        ({"focus": ["x"]}, "expected a case to focus on, found none that is called 'x' among 3"),
        ({"guards": ["a.txt"], "excluded": ["a.txt"]}, "expected a case as a guard, found none that is called 'a.txt' among 2"),
        ({"excluded": ["x"]}, "expected a case to exclude, found none that is called 'x' among 3"),
        ({"excluded": ["*"]}, "expected cases to run, found that all 3 are left out"),
    ],
)  # fmt: skip
def test_a_pattern_that_names_no_case_is_an_error(asked: dict[str, list[str]], said: str) -> None:
    with pytest.raises(LoopError, match="^" + said.replace("'", ".")):
        assign_roles(IDS, **asked)
