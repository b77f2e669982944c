"""Run the built-in repair engine on bugs in real-sized modules: how many it fixes within a minute each, and how.

A folder holds projects; each is a working project with tests and a `bugs.yaml` of rows
`{id, kind, changes: [[file, right text, wrong text], ...]}`. The benchmark copies a project, puts a bug in, checks that
tests fail, and starts the engine. *Same* counts fixes after which each changed file has the syntax tree of the working
project: fixed as its developers have it. Default: the bugs beside this script, `benchmarks/real_bugs`.
"""

from __future__ import annotations

import argparse
import ast
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from repair import PYTEST_ARGUMENTS, is_green, run_engine
from side_by_side import make_environment, make_pytest_command, render_table

BUGS = Path(__file__).resolve().parent / "real_bugs"
TARGET = 0.4


@dataclass(frozen=True)
class RealBug:
    """A bug of a project, as changes of its files: path, right text, wrong text."""

    folder: Path
    id: str
    kind: str
    changes: tuple[tuple[str, str, str], ...]

    def write(self, target: Path) -> None:
        """Copy the project and put the bug in."""
        ignored = shutil.ignore_patterns("bugs.yaml", "__pycache__", ".pytest_cache")
        shutil.copytree(self.folder, target, ignore=ignored)
        (target / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
        for path, right, wrong in self.changes:
            text = (target / path).read_text(encoding="utf-8")
            if text.count(right) != 1:
                raise SystemExit(f"{self.id}: expected {right!r} once in {path}, found it {text.count(right)} times")
            (target / path).write_text(text.replace(right, wrong), encoding="utf-8")

    def is_same(self, target: Path) -> bool:
        """Return whether the code is as in the working project, whatever its formatting."""
        return all(
            ast.dump(ast.parse((target / path).read_bytes())) == ast.dump(ast.parse((self.folder / path).read_bytes()))
            for path, _, _ in self.changes
        )


@dataclass(frozen=True)
class RealOutcome:
    """The result of the engine for one bug."""

    bug: RealBug
    result: dict[str, Any]
    is_same: bool

    @property
    def is_green(self) -> bool:
        return is_green(self.result)


def read_bugs(folder: Path) -> Iterator[RealBug]:
    """Yield the bugs of all projects of a folder."""
    for path in sorted(folder.glob("*/bugs.yaml")):
        for row in yaml.safe_load(path.read_text(encoding="utf-8")):
            changes = tuple((change[0], change[1], change[2]) for change in row["changes"])
            yield RealBug(path.parent, row["id"], row["kind"], changes)


def has_failing_test(folder: Path) -> bool:
    command = make_pytest_command("-p", "no:cacheprovider", "-q", "-x", "--tb=no", *PYTEST_ARGUMENTS)
    process = subprocess.run(command, cwd=folder, capture_output=True, env=make_environment(), timeout=120)
    return process.returncode == 1


def repair_bug(bug: RealBug, seconds: float) -> RealOutcome:
    """Put a bug in and run the engine."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve() / bug.folder.name
        bug.write(folder)
        if not has_failing_test(folder):
            raise SystemExit(f"{bug.id}: expected a failing test, found none")
        result = run_engine(folder, seconds, None, ["*.py"])
        for step in result["steps"]:
            (folder / step["path"]).write_text(step["after"], encoding="utf-8")
        return RealOutcome(bug, result, is_green(result) and bug.is_same(folder))


def render_outcome(outcome: RealOutcome) -> str:
    result = outcome.result
    status = "same" if outcome.is_same else "green" if outcome.is_green else "partly" if result["steps"] else "-"
    summary = ", then ".join(f"{step['template']}: {step['description']}" for step in result["steps"])
    name = f"{outcome.bug.folder.name}/{outcome.bug.id}"
    return (
        f"{name:30} {outcome.bug.kind:22} {status:6} {result['tried']:5} in {result['seconds']:5.1f} s  "
        f"{(summary or result['end_reason'])[:110]}"
    )


def render_summary(outcomes: list[RealOutcome]) -> str:
    green = [outcome for outcome in outcomes if outcome.is_green]
    tried = sum(outcome.result["tried"] for outcome in outcomes)
    seconds = sum(outcome.result["seconds"] for outcome in outcomes)
    same = sum(outcome.is_same for outcome in outcomes)
    rows = [
        ["bugs", str(len(outcomes))],
        ["green", f"{len(green)} ({len(green) / len(outcomes):.0%}, target {TARGET:.0%})"],
        ["  as their developers have it", str(same)],
        ["edits a second", f"{tried / seconds if seconds else 0:.0f}"],
        ["runs without any edit tried", str(sum(not outcome.result["tried"] for outcome in outcomes))],
    ]
    kinds = Counter(outcome.bug.kind for outcome in outcomes)
    fixed = Counter(outcome.bug.kind for outcome in green)
    rows += [[f"  {kind}", f"{fixed[kind]} of {number}"] for kind, number in sorted(kinds.items())]
    return render_table(["", ""], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bugs", nargs="?", type=Path, default=BUGS, help="a folder of projects with bugs.yaml")
    parser.add_argument("--only", default="", metavar="TEXT", help="bugs with this in `project/id` or kind")
    parser.add_argument("--limit", type=int, default=None, metavar="N")
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parser.parse_args()
    names = ((f"{bug.folder.name}/{bug.id} {bug.kind}", bug) for bug in read_bugs(options.bugs))
    bugs = [bug for name, bug in names if options.only in name][: options.limit]
    outcomes = []
    for bug in bugs:
        outcomes.append(repair_bug(bug, options.seconds))
        print(render_outcome(outcomes[-1]), flush=True)
    print(render_summary(outcomes))


if __name__ == "__main__":
    main()
