"""`pytest-loop mutate`: change the code in small ways, and name the changes that no test notices."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from pytest_loop.cli.command_parser import USAGE_ERROR, Parser
from pytest_loop.errors import LoopError
from pytest_loop.repair.mutation.mutation_request import (
    DEFAULT_SECONDS,
    MutationError,
    MutationRequest,
    MutationResult,
    measure_mutants,
)
from pytest_loop.rules.checks.data_checks import OPERATORS
from pytest_loop.rules.checks.mutation_check import parse_comparison

_NOTHING_TO_DO = 5  # pytest.ExitCode.NO_TESTS_COLLECTED


def main(words: Sequence[str]) -> int:
    """Run mutants, print those that survive, and return the exit code."""
    values = _make_parser().parse_args(words)
    folder = Path.cwd()
    for path in values.paths:
        if not (folder / path).exists():
            print(f"ERROR: {path} does not exist: name files or folders of code to mutate", file=sys.stderr)
            return USAGE_ERROR
    try:
        comparison = parse_comparison(values.score) if values.score else None
        request = MutationRequest(
            folder=folder, paths=tuple(values.paths), pytest_arguments=tuple(values.tests), seconds=values.limit
        )
        if not values.json:
            print(f"running mutants for at most {values.limit:g} s", flush=True)
        result = _measure_on_workers(request, values.cluster) if values.cluster else measure_mutants(request)
    except (LoopError, ValueError) as error:
        print(f"ERROR: {error}", file=sys.stderr)
        return _NOTHING_TO_DO if isinstance(error, MutationError) else USAGE_ERROR
    if values.json:
        print(result.model_dump_json(indent=2))
    else:
        for line in render_result(result):
            print(line)
    if comparison is None:
        return 0
    operator, threshold = comparison
    return 0 if OPERATORS[operator](result.score, threshold) else 1


def _measure_on_workers(request: MutationRequest, address: str) -> MutationResult:
    """Run a share of the mutants on each worker; raise `ClusterError` if that is impossible."""
    from pytest_loop.cluster.open_shares import open_shares

    with open_shares(request.folder, address, request.seconds, print) as run_shares:
        return measure_mutants(request, run_shares)


def render_result(result: MutationResult) -> Iterator[str]:
    """Render a line for each survivor, a summary, and the next step."""
    for survivor in result.survivors:
        yield f"{survivor.path}:{survivor.line}: {survivor.describe()}"
    yield result.summarise()
    if result.survivors:
        yield "next: write a test that fails with one of these changes, and run this command again"


def _parse_seconds(text: str) -> float:
    """Return a positive number of seconds; raise `ValueError` for anything else."""
    seconds = float(text)
    if not 0 < seconds < float("inf"):
        raise ValueError
    return seconds


_parse_seconds.__name__ = "seconds"  # argparse names the type in its message


def _make_parser() -> Parser:
    parser = Parser(
        prog="pytest-loop mutate",
        description="Change the code in small ways, one at a time, and name the changes that no test notices.",
        allow_abbrev=False,
    )
    parser.add_argument("paths", nargs="*", metavar="PATH", help="code to mutate (default: what the tests import)")
    parser.add_argument("--tests", nargs="+", default=[], metavar="PATH", help="tests to run (default: all)")
    parser.add_argument(
        "--limit",
        type=_parse_seconds,
        default=DEFAULT_SECONDS,
        metavar="SECONDS",
        help="at most this long (default: 60)",
    )
    parser.add_argument(
        "--cluster", default="", metavar="ADDRESS", help="run a share of the mutants on each worker of --loop-cluster"
    )
    parser.add_argument(
        "--score", default="", metavar="TEXT", help="exit with 1 unless the score compares, as '>= 0.8'"
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    return parser
