"""Compare evaluations on one worker with several: tests that wait, tests that compute, and a large project's start."""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pytest_loop.cluster.cluster_session import ClusterSession
from pytest_loop.cluster.job import Job, Project
from pytest_loop.cluster.sender import Sender
from pytest_loop.cluster.tree import claim_tree, load_files, read_piece, store_pieces, update_tree
from pytest_loop.core.model.session_order import SessionOrder
from pytest_loop.session.runner import SubprocessSession
from pytest_loop.workspace.sealed_files import SealedFiles

ORDER = SessionOrder(canary="a1b2c3d4")
WAIT = "import time\n\ndef test_{number}():\n    time.sleep({seconds})\n"
COMPUTE = """\
import time

def test_{number}():
    end = time.process_time() + {seconds}
    while time.process_time() < end:
        pass
"""


@contextmanager
def open_project(
    test: str, tests: int, seconds: float, data: int = 0
) -> Iterator[tuple[SubprocessSession, SealedFiles]]:
    """Make a project with one test in each file, and files of data."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name).resolve() / "project"
        (root / "tests").mkdir(parents=True)
        (root / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
        for number in range(tests):
            path = root / "tests" / f"test_{number}.py"
            path.write_text(test.format(number=number, seconds=seconds), encoding="utf-8")
        for number in range(data):
            path = root / "data" / f"{number // 100}" / f"{number}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{number}\n", encoding="utf-8")
        place = ("-q", "-p", "no:cacheprovider", "--rootdir", str(root), "-c", str(root / "pytest.ini"))
        project = SealedFiles(root, root / ".loop" / "run", ["/tests/"])
        project.record_start()
        yield SubprocessSession(place, root, 3600.0, os.environ, lambda _data: None), project
        project.close()


def measure_evaluation(local: SubprocessSession, project: SealedFiles, workers: int) -> float:
    """Return the seconds of the second evaluation on this many workers: they have the files, and run already."""
    session = ClusterSession(local, project, f"local:{workers}", print)
    try:
        for number in range(2):
            (project.root / "edited.txt").write_text(f"{workers} {number}\n", encoding="utf-8")
            started = time.monotonic()
            result = session.evaluate(ORDER)
            assert result.plan is not None
            assert not result.failed_items
            assert len(result.evidence) == len(result.plan.items)
        return time.monotonic() - started
    finally:
        session.close()


def compare_workers(name: str, test: str, tests: int, seconds: float, workers: int, target: float) -> None:
    with open_project(test, tests, seconds) as (local, project):
        several, one = (measure_evaluation(local, project, count) for count in (workers, 1))
    print(
        f"{tests} tests that {name} {seconds:g} s: 1 worker {one:.1f} s, {workers} workers {several:.1f} s, "
        f"{one / several:.1f} times faster (target {target:g})"
    )


def measure_large_project(files: int, tests: int) -> None:
    """Print what the second evaluation sends, and how long it takes until its session could start."""
    with open_project(WAIT, tests, 0.0, files - tests) as (local, project):
        sender = Sender(local, project)
        for number in range(2):
            (project.root / "edited.txt").write_text(f"{number}\n", encoding="utf-8")
            started = time.monotonic()
            job = sender.make_job(ORDER)
            sent = len(job.model_dump_json())
            store_pieces({digest: text.encode("latin-1") for digest, text in job.new.items()})
            while missing := _prepare(job):
                contents = sender.read_pieces(missing)
                sent += sum(map(len, contents.values()))
                store_pieces(contents)
            seconds = time.monotonic() - started
            which = "second" if number else "first"
            print(f"{files:,} files, {which} evaluation: {sent:,} bytes sent, ready to start after {seconds:.2f} s")


def _prepare(job: Job) -> tuple[str, ...]:
    """Do what a worker does before its session; return the pieces that it lacks."""
    text, files = read_piece(job.project), load_files(job)
    if text is None or files is None:
        return job.project, job.base
    project = Project.model_validate_json(text)
    with claim_tree(project.root) as tree:
        return update_tree(tree, files, frozenset(project.sealed))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0, metavar="S", help="how long a test takes (default: 2)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tempfile.tempdir = os.environ["TMPDIR"] = folder  # for the trees of workers, too
        measure_large_project(50_000, 3_000)
        compare_workers("compute", COMPUTE, 16, options.seconds, 2, 1.7)
        compare_workers("wait", WAIT, 64, options.seconds, 8, 6.0)


if __name__ == "__main__":
    main()
