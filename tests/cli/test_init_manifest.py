"""`pytest-loop init manifest`: flags, answers at a terminal, and the first case that is tried."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from pytest_loop.cli.console_script import main
from pytest_loop.cli.init_manifest import ManifestDialogue
from pytest_loop.workloads.cases import load_workload
from pytest_loop.workloads.new_manifest import NewManifest
from tests.cli.typing_console import Answer, TypingConsole

FLAGS = [
    "--artifact-paths=prompt.md",
    "--case-paths=cases/*.txt",
    "--run-command=cp {case} {output}",
    "--output-path=out/{case_stem}.txt",
]
EVALUATE = "--evaluate-command=test -s {output}"
QUESTIONS = ["workload", "prompt.md", "cases/*.txt", "none", "cp {case} {output}", "", "test -s {output}"]
Init = Callable[..., int]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cases").mkdir()
    (tmp_path / "prompt.md").write_text("Copy it.\n")
    (tmp_path / "cases" / "a.txt").write_text("a\n")
    return tmp_path


def load_values(folder: Path) -> dict[str, object]:
    values = yaml.safe_load((folder / "loop.manifest.yaml").read_text())
    assert isinstance(values, dict)
    return values


def test_flags_write_a_manifest_that_runs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "manifest", *FLAGS, EVALUATE, "--max-iterations=3"]) == 0
    assert load_values(folder) == {
        "workloadId": folder.name,
        "artifactPaths": ["prompt.md"],
        "casePaths": ["cases/*.txt"],
        "runCommand": "cp {case} {output}",
        "outputPath": "out/{case_stem}.txt",
        "evaluateCommand": "test -s {output}",
        "maxIterations": 3,
    }
    assert (folder / "out" / "a.txt").exists()
    assert capsys.readouterr().out.splitlines()[-3:] == [
        "wrote loop.manifest.yaml",
        "judge every case: pytest loop.manifest.yaml",
        "tune it:          pytest --loop-manifest loop.manifest.yaml --loop-agent NAME",
    ]


def test_manifest_in_another_folder_has_paths_from_there(folder: Path) -> None:
    (folder / "tuning").mkdir()
    (folder / "cases").rename(folder / "tuning" / "cases")
    (folder / "prompt.md").rename(folder / "tuning" / "prompt.md")
    assert main(["init", "manifest", "tuning/loop.manifest.json", *FLAGS, EVALUATE]) == 0
    assert load_workload(folder / "tuning" / "loop.manifest.json", folder).cases[0].id == "cases/a.txt"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            [EVALUATE],
            "expected --artifact-paths, --case-paths, --run-command, --output-path, found none (at a terminal",
        ),
        ([*FLAGS, "--case-paths=none/*"], "--case-paths: expected files that match 'none/*', found none in "),
        ([*FLAGS, "--max-iterations=0"], "--max-iterations: expected a number >= 1"),
        (["manifest.txt", *FLAGS], "expected a path that ends with .yaml, .yml, .json, found 'manifest.txt'"),
        (["nowhere/loop.manifest.yaml", *FLAGS], "there is no folder nowhere: a manifest lies beside"),
        (["prompt.yaml", *FLAGS], "prompt.yaml exists: edit it, remove it, or name another file"),
        (["--no-such-flag"], "unrecognized arguments: --no-such-flag"),
    ],
)
def test_bad_input_writes_nothing_and_says_what_to_do(
    folder: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    (folder / "prompt.yaml").touch()
    try:
        code = main(["init", "manifest", *words])
    except SystemExit as end:
        code = int(end.code or 0)
    error = capsys.readouterr().err
    assert (code, message in error) == (4, True), error
    assert not (folder / "loop.manifest.yaml").exists()


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--run-command=cp nothing {output}", "runCommand: expected exit code 0 of `cp nothing {output}`, found exit"),
        ("--evaluate-command=no-such-program", "evaluateCommand: cannot run 'no-such-program'"),
        ("--evaluate-command=cmp {output} {expected}", "expected `expectedPaths` for {expected}"),
    ],
)
def test_manifest_that_does_not_run_is_not_written(
    folder: Path, capsys: pytest.CaptureFixture[str], flag: str, message: str
) -> None:
    assert main(["init", "manifest", *FLAGS, EVALUATE, flag]) == 1
    out = capsys.readouterr().out
    assert message in out
    assert out.endswith("nothing was written\n")
    assert not (folder / "loop.manifest.yaml").exists()


def test_first_case_is_not_run_on_request(folder: Path) -> None:
    words = ["init", "manifest", *FLAGS[:2], "--run-command=no-such-program", FLAGS[3], EVALUATE]
    assert main([*words, "--no-try"]) == 0
    assert load_values(folder)["runCommand"] == "no-such-program"


def write_manifest(folder: Path, *answers: Answer) -> tuple[bool, list[str]]:
    """Return whether a manifest was written with these answers, and what was shown."""
    console = TypingConsole(answers=list(answers))
    is_written = ManifestDialogue(NewManifest(Path("loop.manifest.yaml")), console).write()
    assert console.answers == []
    return is_written, console.lines


def test_answers_write_a_manifest_that_runs(folder: Path) -> None:
    (folder / "notes.md").touch()
    advanced = ["y", "", "", "", "notes.md", "4"]
    is_written, lines = write_manifest(folder, *QUESTIONS, *advanced, "")
    assert is_written
    assert load_values(folder) == {
        "workloadId": "workload",
        "artifactPaths": ["prompt.md"],
        "casePaths": ["cases/*.txt"],
        "runCommand": "cp {case} {output}",
        "outputPath": "out/{case_stem}.txt",
        "evaluateCommand": "test -s {output}",
        "domainDocs": ["notes.md"],
        "maxIterations": 4,
    }
    assert "What is the workload called? [" + folder.name + "] " in lines
    assert "Calibration with cases/a.txt: the pipeline works" in lines


def test_values_that_cannot_be_used_are_asked_for_again(folder: Path) -> None:
    first, *others = QUESTIONS
    is_written, lines = write_manifest(folder, first, "nothing.md", *others, "", "y")
    assert is_written
    assert f"  expected files that match 'nothing.md', found none in {folder}" in lines


def test_fields_of_a_case_that_does_not_work_are_asked_for_again(folder: Path) -> None:
    broken = [answer.replace("cp {case}", "cp nothing") for answer in QUESTIONS]
    is_written, lines = write_manifest(folder, *broken, "", "cp {case} {output}", "y")
    assert is_written
    assert load_values(folder)["runCommand"] == "cp {case} {output}"
    assert sum(line.startswith("runCommand: expected exit code 0 of") for line in lines) == 1


@pytest.mark.parametrize(("answer", "is_kept"), [("y", True), ("", False)])
def test_user_decides_about_a_manifest_that_does_not_work(folder: Path, answer: str, is_kept: bool) -> None:
    broken = [answer.replace("cp {case}", "cp nothing") for answer in QUESTIONS]
    is_written, lines = write_manifest(folder, *broken, "", "", "", answer)
    assert (is_written, (folder / "loop.manifest.yaml").exists()) == (is_kept, is_kept)
    assert "It does not work yet. Write loop.manifest.yaml all the same? [y/N] " in lines


def test_description_of_a_good_output_makes_an_agent_the_judge(folder: Path) -> None:
    *others, _evaluate = QUESTIONS
    is_written, lines = write_manifest(folder, *others, "none", "It is a copy.", "", "")
    assert is_written
    assert load_values(folder)["agents"] == {"reviewer": {"promptFile": "reviewer.md"}}
    assert lines[-1].endswith("--loop-agent NAME --loop-judge NAME")


def test_end_of_the_input_writes_nothing(folder: Path) -> None:
    with pytest.raises(EOFError):
        write_manifest(folder, "workload", None)
    assert not (folder / "loop.manifest.yaml").exists()


def test_user_may_decline_a_manifest_that_works(folder: Path) -> None:
    is_written, lines = write_manifest(folder, *QUESTIONS, "", "n")
    assert (is_written, lines[-1]) == (False, "nothing was written")
