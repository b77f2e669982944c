"""Shards of a session, and the verdict that `pytest-loop merge` makes of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_loop.cli import merge
from tests.conftest import ONLY_XDIST

WriteRules = Callable[..., Path]
RULES = """
    artifact: doc.md
    rules:
      - {id: a.title, description: Title, check: {contains: Title}}
      - {id: a.noise, description: Mostly, repeat: 3, need: majority, check: {contains: Title}}
      - {id: a.end, description: End, severity: warn, check: {contains: The end}}
      - {id: a.tests, description: Tests, check: {tests: [test_one.py]}}
"""
TESTS = {
    "test_one.py": "def test_one():\n    pass\n\ndef test_two():\n    pass\n",
    "test_three.py": "import pytest\n\n@pytest.mark.loop_rule('a.marked')\ndef test_three():\n    pass\n",
    "test_four.py": "import pytest\n\n@pytest.mark.skip\ndef test_four():\n    pass\n\ndef test_five():\n    pass\n",
}
NO_CACHE = ("-p", "no:cacheprovider")


@pytest.fixture
def project(pytester: pytest.Pytester, write_rule_file: WriteRules) -> pytest.Pytester:
    write_rule_file(RULES)
    for name, text in {"doc.md": "# Title\n\nThe end\n", **TESTS}.items():
        (pytester.path / name).write_text(text)
    return pytester


def judge_shards(project: pytest.Pytester, total: int, *arguments: str) -> list[str]:
    for number in range(1, total + 1):
        project.runpytest(*NO_CACHE, "--loop-shard", f"{number}/{total}", *arguments)
    return [f"loop-shard-{number}-of-{total}.json" for number in range(1, total + 1)]


def find_score(lines: list[str]) -> list[str]:
    """Return the score section, without its frame."""
    start = next(index for index, line in enumerate(lines) if " loop score " in line)
    return [line for line in lines[start + 1 : -1] if not line.startswith(("FAILED ", "="))]


@pytest.mark.parametrize("is_broken", [False, True])
def test_merged_shards_have_the_verdict_of_the_whole_session(
    project: pytest.Pytester, capsys: pytest.CaptureFixture[str], is_broken: bool
) -> None:
    if is_broken:
        (project.path / "doc.md").write_text("# Titel\n")
        (project.path / "test_one.py").write_text("def test_one():\n    assert 0\n")
        (project.path / "test_four.py").write_text(TESTS["test_four.py"] + "    assert 0, 'five'\n")
    whole = project.runpytest(*NO_CACHE)
    files = judge_shards(project, 3)
    capsys.readouterr()
    assert merge.main(files) == whole.ret == int(is_broken)
    lines = capsys.readouterr().out.splitlines()
    assert find_score(lines) == find_score(whole.stdout.lines)
    assert [line for line in lines if "in shard" in line] == is_broken * [
        "failed in shard 2 of 3: test_four.py::test_five: AssertionError: five"
    ]


def test_shards_with_workers_are_merged_too(project: pytest.Pytester, capsys: pytest.CaptureFixture[str]) -> None:
    result = project.runpytest_subprocess("-n2", *ONLY_XDIST, "--loop-shard", "1/2", timeout=60)
    result.stdout.fnmatch_lines(["shard 1 of 2: 6 of 11 items, evidence in loop-shard-1-of-2.json", "next: *"])
    result = project.runpytest(*NO_CACHE, "--loop-shard", "2/2", "--loop-json", "second.json")
    result.stdout.fnmatch_lines(["collected 11 items / 6 deselected / 5 selected"])
    capsys.readouterr()
    assert merge.main(["second.json", "loop-shard-1-of-2.json"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "2 shards, 11 items: passed"


def test_a_shard_without_items_passes_and_no_items_at_all_do_not(
    project: pytest.Pytester, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = (*NO_CACHE, "test_three.py")
    assert project.runpytest(*arguments, "--loop-shard", "2/2").ret == pytest.ExitCode.OK
    assert project.runpytest(*arguments, "--loop-shard", "1/1", "-k", "nothing").ret == 5
    assert merge.main(["loop-shard-1-of-1.json"]) == 5
    capsys.readouterr()


def test_a_session_that_ends_early_leaves_no_old_evidence(project: pytest.Pytester) -> None:
    judge_shards(project, 1)
    (project.path / "conftest.py").write_text(
        "import pytest\n\ndef pytest_collection():\n    raise pytest.UsageError\n"
    )
    project.runpytest(*NO_CACHE, "--loop-shard", "1/1").stdout.fnmatch_lines(["no evidence was written: *"])
    assert not (project.path / "loop-shard-1-of-1.json").exists()


def test_missing_reports_fail(project: pytest.Pytester, capsys: pytest.CaptureFixture[str]) -> None:
    (project.path / "conftest.py").write_text(
        "import pytest\n\ndef pytest_runtest_setup(item):\n    pytest.exit('enough', returncode=0)\n"
    )
    files = judge_shards(project, 1)
    assert merge.main(files) == 1
    assert "no report in shard 1 of 1: " in capsys.readouterr().out


def test_a_baseline_rides_with_the_evidence(project: pytest.Pytester, capsys: pytest.CaptureFixture[str]) -> None:
    (project.path / "doc.md").write_text("nothing\n")
    files = judge_shards(project, 2)
    assert merge.main([*files, "--save-baseline", "saved.json"]) == 1
    files = judge_shards(project, 2, "--loop-baseline", "saved.json")
    assert merge.main(files) == 0
    assert "worse than the baseline: nothing" in capsys.readouterr().out
    result = project.runpytest("--loop-shard", "1/2", "--loop-save-baseline", "saved.json")
    result.stderr.fnmatch_lines(["*--loop-save-baseline needs all 2 shards: pytest-loop merge FILE... --save-*"])


def test_a_score_hook_has_to_be_named(
    project: pytest.Pytester, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (project.path / "conftest.py").write_text("def pytest_loop_score(rules, verdicts):\n    return 0.125\n")
    (project.path / "own_score.py").write_text("def pytest_loop_score(rules, verdicts):\n    return 0.125\n")
    files = judge_shards(project, 1)
    capsys.readouterr()
    assert merge.main(files) == 4
    assert "a hook pytest_loop_score of a plugin or a conftest file scores these rules" in capsys.readouterr().err
    monkeypatch.syspath_prepend(project.path)
    assert merge.main([*files, "-p", "own_score"]) == 1
    assert "0.125" in capsys.readouterr().out
    assert merge.main([*files, "-p", "no_module"]) == 4
    assert """ERROR: -p: Error importing plugin "no_module": No module named 'no_module'""" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "message"),
    [(None, "No such file or directory"), ("{}", "it is not the evidence of a shard")],
)
def test_a_file_that_cannot_be_used_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str | None, message: str
) -> None:
    path = tmp_path / "a.json"
    if text is not None:
        path.write_text(text)
    assert merge.main([str(path)]) == 4
    assert capsys.readouterr().err == f"ERROR: cannot use {path}: {message}; make it with pytest --loop-shard 1/3\n"


def test_problems_are_named_on_one_line_each(project: pytest.Pytester, capsys: pytest.CaptureFixture[str]) -> None:
    files = judge_shards(project, 3)
    data = json.loads(Path(files[1]).read_text())
    data["origin"]["Python"] = "3.9.1"
    Path(files[1]).write_text(json.dumps(data))
    capsys.readouterr()
    assert merge.main(files[:1]) == 1
    assert [line.partition(":")[2] for line in capsys.readouterr().err.splitlines()] == [
        " shard 2 of 3 is missing: name its file, or run pytest --loop-shard 2/3 again",
        " shard 3 of 3 is missing: name its file, or run pytest --loop-shard 3/3 again",
    ]
    assert merge.main(files) == 1
    assert "loop-shard-2-of-3.json does not belong to loop-shard-1-of-3.json: its Python is 3.9.1" in (
        capsys.readouterr().err
    )


@pytest.mark.parametrize("shard", ["0/3", "4/3", "2", "a/b"])
def test_a_shard_that_does_not_exist_is_a_usage_error(pytester: pytest.Pytester, shard: str) -> None:
    result = pytester.runpytest("--loop-shard", shard)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*expected a shard such as 2/5, found '{shard}'"])
