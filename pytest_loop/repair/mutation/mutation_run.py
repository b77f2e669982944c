"""Run the tests against mutants in forks: each mutant with the tests that execute its lines."""

from __future__ import annotations

import ast
import gc
import os
import random
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

import pytest

from pytest_loop.repair.baseline_run import BaselineResult, run_baseline
from pytest_loop.repair.candidates import DuplicateFilter
from pytest_loop.repair.code_swap import LoadedCode
from pytest_loop.repair.collected_tests import BriefReports, CollectedTests, build_arguments
from pytest_loop.repair.editable_files import EditableFiles
from pytest_loop.repair.fork_pool import ForkPool, Job, Send
from pytest_loop.repair.mutation.mutants import Mutant, make_mutants
from pytest_loop.repair.mutation.mutation_request import MutationRequest, MutationResult, Survivor
from pytest_loop.repair.python_source import PythonSource
from pytest_loop.repair.repair_report import describe_import_problem
from pytest_loop.repair.sandbox import enter_project
from pytest_loop.repair.source_overlay import resolve_source
from pytest_loop.repair.tracer import make_tracer
from pytest_loop.repair.trial import compute_fuel, compute_timeout

_BASELINE_SHARE = 0.5
_START_SECONDS = 2.0


class MutationRun:
    """Try mutants against collected tests, in a fixed random order, so that the mutants tried in time are a sample."""

    def __init__(self, request: MutationRequest, tests: CollectedTests, pool: ForkPool) -> None:
        self._request = request
        self._tests = tests
        self._pool = pool
        self._started = time.monotonic()
        self._files = EditableFiles(request.folder, request.paths, (item.path for item in tests.items))
        self._baseline: Mapping[int, BaselineResult] = {}
        self._killed = 0
        self._duplicate_count = 0
        self._survivors: list[Survivor] = []

    def run(self) -> MutationResult:
        """Run the tests without mutants, then each mutant against the tests that reach it."""
        share = self._request.seconds * _BASELINE_SHARE
        self._baseline = run_baseline(self._tests, self._pool, self._files, range(len(self._tests.items)), share)
        self._baseline = {index: result for index, result in self._baseline.items() if result.spectrum.passed}
        sources = [source for path in self._list_files() if (source := PythonSource.read(path, {})) is not None]
        mutants = [mutant for source in sources for mutant in make_mutants(source)]
        random.Random(0).shuffle(mutants)  # noqa: S311 - order only, not a secret
        loaded = LoadedCode(sources)
        gc.collect()
        gc.freeze()  # a collection in a fork would copy the memory that all forks share
        self._try_mutants(mutants, loaded)
        return MutationResult(
            mutants=len(mutants) - self._duplicate_count,
            tried=self._killed + len(self._survivors),
            killed=self._killed,
            survivors=tuple(sorted(self._survivors, key=Survivor.get_key)),
            tests=len(self._baseline),
            seconds=round(time.monotonic() - self._started, 3),
            problem=self._find_problem(mutants),
        )

    def _find_problem(self, mutants: Sequence[Mutant]) -> str:
        if not self._baseline:
            return describe_import_problem(self._tests.import_failures, self._request.folder) or "no test passes"
        return "" if mutants else "no function to mutate was found"

    def _list_files(self) -> list[Path]:
        """List the named files, or those that the tests import."""
        if not self._request.paths:
            names = {resolve_source(getattr(module, "__file__", None)) for module in list(sys.modules.values())}
        else:
            roots = [self._request.folder / path for path in self._request.paths]
            names = {
                str(path.resolve()) for root in roots for path in (root.rglob("*.py") if root.is_dir() else [root])
            }
        return [path for name in sorted(names) if (path := self._files.find_file(name)) is not None]

    def _try_mutants(self, mutants: Sequence[Mutant], loaded: LoadedCode) -> None:
        deadline = self._started + self._request.seconds
        running: dict[int, tuple[Mutant, int]] = {}
        number, total = self._request.share
        queue = islice(self._find_unique(mutants), number - 1, None, total)
        following = next(queue, None)
        while running or (following and time.monotonic() < deadline):
            while following and self._pool.has_room and time.monotonic() < deadline:
                key, mutant, tree = following
                indexes = self._find_tests(mutant)
                if indexes:
                    running[key] = mutant, len(indexes)
                    self._pool.start(self._make_job(key, mutant, tree, indexes, loaded))
                else:
                    self._add_survivor(mutant, 0)
                following = next(queue, None)
            for result in self._pool.collect_results():
                mutant, count = running.pop(result.key)
                if any("survived" in message for message in result.messages):
                    self._add_survivor(mutant, count)
                else:
                    self._killed += 1

    def _find_unique(self, mutants: Sequence[Mutant]) -> Iterator[tuple[int, Mutant, ast.stmt | ast.Module]]:
        """Yield the mutants that parse and differ from earlier ones, with their trees; count the others."""
        duplicates = DuplicateFilter()
        for key, mutant in enumerate(mutants):
            tree = duplicates.parse_if_new(mutant.candidate)
            if tree is None:
                self._duplicate_count += 1
            else:
                yield key, mutant, tree

    def _find_tests(self, mutant: Mutant) -> list[int]:
        """Return the indexes of the tests that reach a mutant, quick ones first."""
        reaching = [
            index for index, result in self._baseline.items() if not mutant.lines.isdisjoint(result.spectrum.lines)
        ]
        return sorted(reaching, key=lambda index: self._baseline[index].fuel)

    def _add_survivor(self, mutant: Mutant, tests: int) -> None:
        path = mutant.candidate.source.path.relative_to(self._request.folder.resolve()).as_posix()
        self._survivors.append(Survivor(path=path, line=mutant.candidate.line, change=mutant.change, tests=tests))

    def _make_job(
        self, key: int, mutant: Mutant, tree: ast.stmt | ast.Module, indexes: Sequence[int], loaded: LoadedCode
    ) -> Job:
        candidate = mutant.candidate
        loaded.prepare_unit(candidate.unit)

        def work(send: Send) -> None:
            loaded.swap_code(candidate.unit, tree, candidate.text)
            self._tests.trace_with(make_tracer(self._files), lambda: os._exit(0), is_recording=False)
            for index, following in zip(indexes, [*indexes[1:], None], strict=True):
                send({"within": compute_timeout(self._baseline[index])})
                if not self._tests.run_test(index, following, compute_fuel(self._baseline[index])).passed:
                    return
            send({"survived": True})

        return Job(key, work, _START_SECONDS)


def run_mutants(request: MutationRequest) -> MutationResult:
    """Collect the tests and run the mutants in this process and its forks."""
    results: list[MutationResult] = []

    def work(tests: CollectedTests) -> None:
        with ForkPool(temp_folder, request.workers or min(4, os.cpu_count() or 1)) as pool:
            results.append(MutationRun(request, tests, pool).run())

    tests = CollectedTests(work)
    with enter_project(request.folder) as temp_folder:
        code = pytest.main(build_arguments(request.pytest_arguments, temp_folder), plugins=[tests, BriefReports()])
    if results:
        return results[0]
    problem = describe_import_problem(tests.import_failures, request.folder)
    return MutationResult(problem=problem or f"pytest ended with exit code {int(code)}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the mutants of a request file, and write the result file."""
    request_file, result_file = sys.argv[1:] if arguments is None else arguments
    request = MutationRequest.model_validate_json(Path(request_file).read_bytes())
    Path(result_file).write_text(run_mutants(request).model_dump_json(), encoding="utf-8")
    return 0
