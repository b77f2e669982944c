"""Calibration with a user who fixes the manifest between attempts."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from pytest_loop.cli.calibration import Calibrator
from pytest_loop.errors import LoopError, ManifestError
from pytest_loop.run.console import Console
from pytest_loop.settings.options import StartSettings
from pytest_loop.settings.settings import make_default_settings
from pytest_loop.settings.workload_options import WorkloadSettings
from tests.cli.typing_console import Answer, TypingConsole

MANIFEST = {
    "workloadId": "copies",
    "artifactPaths": ["prompt.md"],
    "casePaths": ["*.txt"],
    "runCommand": "cp {case} {output}",
    "outputPath": "out/{case}",
    "evaluateCommand": "test -s {output}",
}
QUESTION = "fix loop.manifest.json or what it runs, then press Enter to try again (s stops): "


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "prompt.md").write_text("Copy it.\n")
    (tmp_path / "a.txt").write_text("a\n")
    return tmp_path


def write_manifest(folder: Path, **fields: Any) -> None:
    (folder / "loop.manifest.json").write_text(json.dumps(MANIFEST | fields))


def make_calibrator(folder: Path, *answers: Answer, console: Console | None = None, **start: Any) -> Calibrator:
    workload = WorkloadSettings(manifest="loop.manifest.json")
    settings = make_default_settings(folder, workload=workload, start=StartSettings(**start))
    return Calibrator(settings, console or TypingConsole(answers=list(answers)))


def read_output(calibrator: Calibrator) -> list[str]:
    assert isinstance(calibrator.console, TypingConsole)
    return calibrator.console.lines


def test_case_that_works_needs_no_question(folder: Path) -> None:
    write_manifest(folder)
    calibrator = make_calibrator(folder)
    experiment = calibrator.load()
    assert calibrator.calibrate(experiment) is experiment
    assert calibrator.calibration == ("a.txt", True, ())
    assert read_output(calibrator) == ["calibrating with a.txt ..."]


def test_user_fixes_the_manifest_between_attempts(folder: Path) -> None:
    write_manifest(folder, runCommand="false {case}")

    def fix() -> str:
        write_manifest(folder)
        return ""

    calibrator = make_calibrator(folder, fix)
    experiment = calibrator.load()
    fixed = calibrator.calibrate(experiment)
    assert fixed is not experiment
    assert fixed.workload.manifest.run_command == "cp {case} {output}"
    error = "runCommand: expected exit code 0 of `false {case}`, found exit code 1"
    assert calibrator.calibration == ("a.txt", True, (error,))
    assert read_output(calibrator) == [
        "calibrating with a.txt ...",
        f"calibration failed, try 1 of 3: {error}",
        QUESTION,
        "calibrating with a.txt ...",
    ]


@pytest.mark.parametrize(("answer", "attempts"), [("", 3), ("s", 1), ("No", 1), (None, 1)])
def test_calibration_ends_after_three_attempts_or_when_the_user_stops(
    folder: Path, answer: str | None, attempts: int
) -> None:
    write_manifest(folder, runCommand="false {case}")
    calibrator = make_calibrator(folder, *[answer] * 2)
    calibrator.calibrate(calibrator.load())
    assert calibrator.calibration is not None
    assert (calibrator.calibration.passed, calibrator.calibration.attempts) == (False, attempts)


def test_glob_without_files_is_a_failure_of_the_calibration(folder: Path) -> None:
    write_manifest(folder, casePaths=["cases/*.md"])
    message = "loop.manifest.json:1: expected files that match 'cases/*.md' for `casePaths`, found none"
    for calibrator in (
        make_calibrator(folder, console=Console(io.StringIO())),
        make_calibrator(folder, "s"),
        make_calibrator(folder, yes=True),
        make_calibrator(folder, "", ""),
    ):
        with pytest.raises(LoopError, match=re.escape(f"calibration failed: {message}")):
            calibrator.load()


def test_mistake_made_while_fixing_is_asked_about_again(folder: Path) -> None:
    write_manifest(folder, casePaths=["cases/*.md"])

    def break_manifest() -> str:
        (folder / "loop.manifest.json").write_text("{")
        return ""

    def fix() -> str:
        write_manifest(folder)
        return ""

    calibrator = make_calibrator(folder, break_manifest, fix)
    assert calibrator.load().workload_id == "copies"
    assert len(calibrator.errors) == 2


def test_mistake_in_the_manifest_ends_the_command_at_once(folder: Path) -> None:
    (folder / "loop.manifest.json").write_text("{")
    with pytest.raises(ManifestError, match=r"loop\.manifest\.json:1: "):
        make_calibrator(folder).load()


def test_nothing_is_tried_without_a_user(folder: Path) -> None:
    write_manifest(folder, runCommand="false {case}")
    calibrator = make_calibrator(folder, yes=True)
    calibrator.calibrate(calibrator.load())
    assert calibrator.calibration is None
