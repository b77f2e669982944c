"""Compare 1,000 cases of a workload with 1,000 tests that run the same quick command."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from side_by_side import Candidate, make_parser, make_pytest_command, measure, render_comparison

TARGET = 1.5
CASES = 1_000
TEST = """\
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.parametrize("name", sorted(path.stem for path in HERE.glob("cases/*.txt")))
def test_case(name):
    output = HERE / "out" / name / "copy.txt"
    output.unlink(missing_ok=True)
    output.parent.mkdir(parents=True, exist_ok=True)
    command = ["cp", f"cases/{name}.txt", f"out/{name}/copy.txt"]
    subprocess.run(command, cwd=HERE, check=True, capture_output=True, timeout=600)
    assert output.read_bytes() == (HERE / "expected" / f"{name}.txt").read_bytes()
"""
MANIFEST = {
    "workloadId": "copies",
    "artifactPaths": ["prompt.md"],
    "casePaths": ["cases/*.txt"],
    "runCommand": "cp {case} {output}",
    "outputPath": "out/{case_stem}/copy.txt",
    "expectedPaths": ["expected/*.txt"],
}


def write_project(folder: Path, count: int) -> None:
    """Write the cases with their expected outputs, a manifest, and tests that do the same."""
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    (folder / "prompt.md").write_text("Copy it.\n", encoding="utf-8")
    for name in ("cases", "expected"):
        (folder / name).mkdir()
        for number in range(count):
            (folder / name / f"{number:05}.txt").write_text(f"receipt {number}\n", encoding="utf-8")
    (folder / "loop.manifest.json").write_text(json.dumps(MANIFEST), encoding="utf-8")
    (folder / "test_cases.py").write_text(TEST, encoding="utf-8")


def main() -> None:
    parser = make_parser(__doc__, rounds=15)
    parser.add_argument("--cases", type=int, default=CASES, metavar="N", help=f"how many cases (default: {CASES})")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_project(folder, options.cases)
        candidates = [
            Candidate(kind, folder, make_pytest_command("-n0", "--cache-clear", file), f"{options.cases} passed")
            for kind, file in (("cases", "loop.manifest.json"), ("tests", "test_cases.py"))
        ]
        costs = measure(candidates, options.rounds)
    print(f"{options.cases} cases, {options.rounds} rounds\n")
    print(render_comparison(costs, "cases", "tests", TARGET))


if __name__ == "__main__":
    main()
