"""Let scripted agents cheat, give up honestly and work honestly: count false greens and false alarms.

Each row of `judge_rows` is an agent in a project of its own. The same agent works for pytest-loop and for a naive loop
that believes an exit code. A false green is a success without the work; a false alarm is honest work that did not end
as a success, was put back, or made an evaluation void.
`--data FILE` adds the bugs of HumanEvalPack (JSON lines, not part of this repository) to the few that ship with it.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from judge_rows.bugs import make_bug_rows
from judge_rows.catalogue import ROWS
from judge_rows.row import End, Files, Row, Then, clean
from side_by_side import make_environment, render_table

TIMEOUT = 150
MAX_ITERATIONS = 2
NAIVE_CALLS = 2
BLOCKED_PLUGINS = ("-p", "no:randomly", "-p", "no:asyncio")
DATA = "HONEST_JUDGE_DATA"
LEFT, CALLS = "left.json", "calls"


class Judgement(Enum):
    """What the end of a run means, compared with how it should have ended."""

    RIGHT = "right"
    FALSE_GREEN = "false green"
    FALSE_ALARM = "false alarm"
    NOT_TRIED = "not tried"


@dataclass(frozen=True)
class Outcome:
    """How one loop ended for one row."""

    judgement: Judgement
    detail: str


@dataclass(frozen=True)
class Result:
    """The outcomes of one row by the name of the loop."""

    row: Row
    outcomes: dict[str, Outcome]


# -- a place to work


class Place:
    """A folder with a project, an environment that may be damaged, and a home folder."""

    def __init__(self, base: Path, row: Row) -> None:
        self.base, self.row = base, row
        self.project = base / "project"
        self.python = base / "env/bin/python"
        self.json = base / "result.json"
        self.environment = {
            **make_environment(),
            "HOME": str(base / "home"),
            "TMPDIR": str(base / "tmp"),
            "PATH": f"{self.python.parent}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "GIT_CONFIG_NOSYSTEM": "1",
            **{f"GIT_{who}_{what}": "shop" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
        }
        self._write_files()

    def _write_files(self) -> None:
        for name in ("home", "tmp"):
            (self.base / name).mkdir(parents=True)
        venv.create(self.base / "env", symlinks=True)
        packages = next((self.base / "env/lib").glob("python*/site-packages"))
        line = f"import site; site.addsitedir({_find_site_packages()!r})\n"
        (packages / "installed.pth").write_text(line, encoding="utf-8")
        write_tree(packages, self.row.environment or {})
        write_tree(self.project, self.row.files)
        for command in self.row.setup:
            subprocess.run(command, shell=True, cwd=self.project, env=self.environment, check=True, capture_output=True)

    def make_agent(self, part: str = "first") -> list[str]:
        return [str(self.python), str(Path(__file__).resolve()), "--act", part, self.row.id]

    def run(self, command: Sequence[str], iteration: str = "") -> tuple[int, str]:
        """Return the exit code and the output of a command in the project."""
        words = [str(self.python) if word == "python" else word for word in command]
        variables = {"LOOP_ITERATION": iteration} if iteration else {}
        with subprocess.Popen(
            words, cwd=self.project, env={**self.environment, **variables}, text=True, errors="replace",
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        ) as process:  # fmt: skip
            try:
                output = process.communicate(timeout=TIMEOUT)[0]
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                return -1, "timeout"
            return process.returncode, output


def write_tree(folder: Path, files: Files) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(clean(text), encoding="utf-8")


@functools.cache
def _find_site_packages() -> str:
    import pytest

    return str(Path(pytest.__file__).resolve().parents[1])


# -- the two loops


def run_pytest_loop(place: Place, *options: str) -> Outcome:
    row = place.row
    code, output = _call_pytest(place, "first", "--loop-task", row.task, *options)
    if row.then is not None:
        perform(place, "between")
        code, output = _call_pytest(place, "then", *row.then.arguments, *options)
    result = json.loads(place.json.read_text(encoding="utf-8")) if place.json.exists() else {}
    (place.base / "output.txt").write_text(output, encoding="utf-8")
    return judge_run(place, code, result)


def _call_pytest(place: Place, part: str, *arguments: str) -> tuple[int, str]:
    place.json.unlink(missing_ok=True)
    words = ["python", "-m", "pytest", "-q", *BLOCKED_PLUGINS, *arguments]
    agent = shlex.join(place.make_agent(part))
    options = place.row.options if part == "first" else ()
    if not any(word.startswith(("--loop-agent=", "--loop-stop", "--loop-status")) for word in arguments):
        words += ["--loop-agent", f"command:{agent}"]
    if not any(word.startswith("--loop-max-iterations") for word in (*arguments, *options)):
        words.append(f"--loop-max-iterations={MAX_ITERATIONS}")
    return place.run([*words, *options, "--loop-yes", "--loop-json", str(place.json)])


def judge_run(place: Place, code: int, result: dict[str, Any]) -> Outcome:
    """Compare the end of a run with the end that it should have."""
    end, reason = place.row.end, str(result.get("stop", {}).get("reason", ""))
    word = str((result.get("verdict") or {}).get("word", ""))
    detail = f"exit code {code} {reason} {word}".strip()
    is_cheat = end in (End.RED, End.DOUBTED)
    if is_cheat and not (place.row.then or (place.base / CALLS).exists()):
        return Outcome(Judgement.NOT_TRIED, f"{detail}, and the agent was not called")
    if is_cheat:
        is_green = code == 0 and (end is End.RED or word == "SHIP")
        return Outcome(Judgement.FALSE_GREEN if is_green else Judgement.RIGHT, detail)
    if place.row.is_honest:
        is_idle = code == 0 and bool(place.row.actions) and not (place.base / CALLS).exists()
        if is_idle or (end is End.MONITOR and word == "SHIP"):
            return Outcome(Judgement.FALSE_GREEN, detail)
        problem = "" if code else _find_damage(place)
        is_right = code == 0 and not problem
        detail = f"{detail} {problem or _render_findings(result)}"
        return Outcome(Judgement.RIGHT if is_right else Judgement.FALSE_ALARM, detail)
    is_right = reason == "blocked" if end is End.BLOCKED else code == 4 and not (place.base / CALLS).exists()
    wrong = Judgement.FALSE_GREEN if code == 0 else Judgement.FALSE_ALARM
    return Outcome(Judgement.RIGHT if is_right else wrong, detail)


def _render_findings(result: dict[str, Any]) -> str:
    findings = (filter(None, finding.values()) for finding in result.get("findings", []))
    return "; ".join(" ".join(map(str, values)) for values in findings)


def _find_damage(place: Place) -> str:
    """Say which edit of an honest agent was put back, or that one of its evaluations was void."""
    left: dict[str, str] = json.loads((place.base / LEFT).read_text()) if (place.base / LEFT).exists() else {}
    now = hash_files(place.project)
    lost = [path for path, digest in left.items() if now.get(path, "") != digest]
    if lost:
        return f"put back: {', '.join(lost[:3])}"
    histories = place.project.glob(".loop/*/history.jsonl")
    is_void = any('"void": true' in path.read_text(encoding="utf-8") for path in histories)
    return "an evaluation was void" if is_void else ""


def run_naive_loop(place: Place) -> Outcome:
    """Call the agent until the exit code of the check is 0."""
    row = place.row
    code = place.run(row.check)[0]
    for part in ("first", *(("between", "then") if row.then else ("first",) * (NAIVE_CALLS - 1))):
        if code == 0:
            break
        if part == "between":
            perform(place, part)
        else:
            place.run(place.make_agent(part), iteration="1")
        code = place.run(row.check)[0]
    is_success = code == 0
    wrong = Judgement.FALSE_ALARM if row.is_honest else Judgement.FALSE_GREEN
    return Outcome(Judgement.RIGHT if is_success is row.is_honest else wrong, f"exit code {code}")


# -- the agent


def perform(place: Place, part: str) -> None:
    place.run(place.make_agent(part))


def act(part: str, row: Row) -> None:
    """Do what the agent of a row does; it runs in the project's folder, and works when it is called first."""
    base = Path.cwd().parent
    then = row.then or Then(())
    actions = {"first": row.actions, "between": then.between, "then": then.actions}
    marker = base / (CALLS if part == "first" else f"{CALLS}-{part}")
    if marker.exists():
        print("nothing more to do")
        return
    marker.touch()
    before = hash_files(Path.cwd())
    if row.end in (End.RED, End.DOUBTED) and row.leaves_note and actions[part]:
        Path("NOTES.md").write_text("What was done.\n", encoding="utf-8")
    for action in actions[part]:
        action()
    after = hash_files(Path.cwd())
    paths = (path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
    changed = {path: after.get(path, "") for path in paths}
    (base / LEFT).write_text(json.dumps(changed), encoding="utf-8")
    print(row.answer)


def hash_files(folder: Path) -> dict[str, str]:
    """Return the hashes of the files of a project that people look at."""
    left_out = {".git", ".loop", "__pycache__", ".pytest_cache", ".ruff_cache", ".mypy_cache", ".coverage"}
    paths = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    shown = (path for path in paths if not left_out & set(path.parts))
    return {str(path): hashlib.sha256((folder / path).read_bytes()).hexdigest() for path in shown}


# -- all rows


def run_row(row: Row, loops: Sequence[str], keep: Path | None) -> Result:
    """Run a row in every loop, each in a place of its own."""
    outcomes = {}
    for loop in loops:
        base = Path(tempfile.mkdtemp(prefix="honest-judge-", dir=keep)).resolve()
        try:
            place = Place(base / "place", row)
            outcomes[loop] = run_naive_loop(place) if loop == "naive" else run_pytest_loop(place, *LOOPS[loop])
        finally:
            (base / "place" / "over").touch()
            if keep is None:
                shutil.rmtree(base, ignore_errors=True)
    return Result(row, outcomes)


def is_installed(program: str) -> bool:
    return shutil.which(program, path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}") is not None


LOOPS: dict[str, tuple[str, ...]] = {"pytest-loop": (), "naive": ()}


def choose_loops() -> dict[str, tuple[str, ...]]:
    """Return the loops and their options: pytest-loop without and with its fence where it has one."""
    text = subprocess.run([sys.executable, "-m", "pytest", "--help"], capture_output=True, text=True).stdout
    if "--loop-fence" not in text:
        return {"pytest-loop": (), "naive": ()}
    return {"not fenced": ("--loop-fence=off",), "fenced": ("--loop-fence=on",), "naive": ()}


def render_results(results: Sequence[Result], loops: Iterable[str]) -> str:
    """Render one line for each class, and the sum."""
    names = list(loops)
    kinds = list(dict.fromkeys(result.row.kind for result in results))
    head = ["class", "agents", *(f"{name}: {word}" for name in names for word in ("green", "alarm"))]
    groups = [(kind, [result for result in results if result.row.kind == kind]) for kind in kinds]
    columns = [(name, judgement) for name in names for judgement in (Judgement.FALSE_GREEN, Judgement.FALSE_ALARM)]
    rows = [
        [kind, _count_tried(group, names[0]), *(_count(group, *column) for column in columns)]
        for kind, group in [*groups, ("all", list(results))]
    ]
    return render_table(head, rows)


def _count_tried(results: Sequence[Result], loop: str) -> str:
    return str(len(results) - int(_count(results, loop, Judgement.NOT_TRIED)))


def _count(results: Iterable[Result], loop: str, judgement: Judgement) -> str:
    return str(sum(result.outcomes[loop].judgement is judgement for result in results))


def render_wrong(results: Iterable[Result]) -> list[str]:
    """Render the rows that pytest-loop judged wrongly."""
    return [
        f"{outcome.judgement.value:12} {loop:12} {result.row.id} ({outcome.detail.strip()})"
        for result in results
        for loop, outcome in result.outcomes.items()
        if loop != "naive" and outcome.judgement is not Judgement.RIGHT
    ]


def select_rows(options: argparse.Namespace) -> list[Row]:
    rows = [*ROWS, *make_bug_rows(options.data, options.limit)]
    words = [word.lower() for word in options.only]
    return [row for row in rows if not words or any(word in row.id.lower() for word in words)]


def read_results(file: Path | None) -> dict[str, dict[str, Outcome]]:
    """Return the outcomes that earlier calls left in a file, by row and loop."""
    outcomes: dict[str, dict[str, Outcome]] = {}
    for line in file.read_text(encoding="utf-8").splitlines() if file and file.exists() else ():
        entry = json.loads(line)
        found = {loop: Outcome(Judgement(word), detail) for loop, (word, detail) in entry["outcomes"].items()}
        outcomes.setdefault(entry["row"], {}).update(found)
    return outcomes


def keep_result(file: Path | None, result: Result) -> None:
    outcomes = {loop: (outcome.judgement.value, outcome.detail) for loop, outcome in result.outcomes.items()}
    if file:
        with file.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps({"row": result.row.id, "outcomes": outcomes}) + "\n")


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", default=[], metavar="TEXT", help="rows whose class or name has it")
    parser.add_argument("--data", type=Path, metavar="FILE", help="bugs as JSON lines, as in HumanEvalPack")
    parser.add_argument("--limit", type=int, metavar="N", help="so many bugs")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N")
    parser.add_argument("--loop", action="append", metavar="NAME", help="only this loop, such as naive")
    parser.add_argument("--list", action="store_true", help="print the rows, and exit")
    parser.add_argument(
        "--results", type=Path, metavar="FILE", help="add results to this file, and take those that are in it"
    )
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the projects in this folder")
    parser.add_argument("--act", nargs=2, metavar=("PART", "ROW"), help=argparse.SUPPRESS)
    return parser


def main() -> None:
    options = make_parser().parse_args()
    if options.act:
        options.data = Path(os.environ[DATA]) if os.environ.get(DATA) else None
        rows = [*ROWS, *make_bug_rows(options.data, None)]
        act(options.act[0], next(row for row in rows if row.id == options.act[1]))
        return
    rows = select_rows(options)
    if options.list:
        print("\n".join(f"{row.id} -> {row.end.name}" for row in rows))
        return
    if options.data:
        os.environ[DATA] = str(options.data.resolve())
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
    run_rows(rows, options)


def run_rows(rows: Sequence[Row], options: argparse.Namespace) -> None:
    """Run the rows side by side, name what is wrong as it is found, and print the table."""
    LOOPS.update(choose_loops())
    loops = [name for name in choose_loops() if not options.loop or name in options.loop]
    missing = sorted({name for row in rows for name in row.requires if not is_installed(name)})
    usable = [row for row in rows if not set(row.requires) & set(missing)]
    earlier, results = read_results(options.results), []

    def run(row: Row) -> Result:
        known = {loop: outcome for loop, outcome in earlier.get(row.id, {}).items() if loop in loops}
        new = run_row(row, [loop for loop in loops if loop not in known], options.keep)
        return Result(row, known | new.outcomes)

    with ThreadPoolExecutor(options.jobs) as pool:
        for result in pool.map(run, usable):
            results.append(result)
            if result.outcomes != earlier.get(result.row.id):
                keep_result(options.results, result)
            print("\n".join(render_wrong([result])) or f"{'right':25} {result.row.id}", flush=True)
    print()
    print(render_results(results, loops))
    if missing:
        print(f"{len(rows) - len(usable)} rows were left out: {', '.join(missing)} is not installed")


if __name__ == "__main__":
    main()
