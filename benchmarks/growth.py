"""How time and peak memory per rule grow from 1,000 to 100,000 rules."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

from content_rules import write_artifact, write_rules
from side_by_side import Candidate, Cost, Costs, arguments, measure, pytest_command, spread, table

TARGET = 1.15
SIZES = (1_000, 10_000, 100_000)
LARGEST_FILE = 10_000  # a rule file may have 8 MB

# What is shown per rule, and how much of what was measured it is.
FIGURES: Sequence[tuple[str, Callable[[Cost], float]]] = (
    ("wall ms", lambda cost: cost.wall * 1000),
    ("CPU ms", lambda cost: cost.cpu * 1000),
    ("peak kB", lambda cost: cost.peak * 1024),
)


def session(folder: Path, size: int) -> Candidate:
    """A folder with `size` rules in files of at most 10,000, and the session that judges them."""
    folder.mkdir()
    write_artifact(folder)
    for number, start in enumerate(range(0, size, LARGEST_FILE)):
        write_rules(folder / f"part-{number:02}.rules.yaml", min(LARGEST_FILE, size - start))
    return Candidate(f"{size:,}", folder, pytest_command("-n0", "-p", "no:cacheprovider"), f"{size} passed")


def growth(costs: Costs, sizes: Sequence[int], base: int | None) -> str:
    """A row per size, each figure with its ratio to the smallest size; less the session of `base` rules, if any."""
    rows = [
        [f"{size:,}", *(cell for _, figure in FIGURES for cell in _cells(costs, size, sizes[0], base, figure))]
        for size in sizes
    ]
    return table(["rules", *(word for name, _ in FIGURES for word in (name, "ratio"))], rows)


def _cells(costs: Costs, size: int, first: int, base: int | None, figure: Callable[[Cost], float]) -> tuple[str, str]:
    here, there = _per_rule(costs, size, base, figure), _per_rule(costs, first, base, figure)
    return f"{median(here):.2f}", spread([a / b for a, b in zip(here, there, strict=True)])


def _per_rule(costs: Costs, size: int, base: int | None, figure: Callable[[Cost], float]) -> list[float]:
    whole = [figure(cost) for cost in costs[f"{size:,}"]]
    if base is None:
        return [value / size for value in whole]
    fixed = [figure(cost) for cost in costs[f"{base:,}"]]
    return [(value - other) / (size - base) for value, other in zip(whole, fixed, strict=True)]


def main() -> None:
    parser = arguments(__doc__, rounds=3)
    parser.add_argument(
        "--sizes", type=int, nargs="+", default=SIZES, metavar="N", help="numbers of rules (default: all three)"
    )
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        candidates = [session(Path(name) / str(size), size) for size in (1, *asked.sizes)]
        costs = measure(candidates, asked.rounds)
    print(
        f"Growth, {asked.rounds} rounds; each figure per rule, with its ratio to {asked.sizes[0]:,} rules (quartiles)"
    )
    print("\nraw: the whole session divided by its rules, so that the fixed cost of a session favours many rules")
    print(growth(costs, asked.sizes, None))
    print(
        "\nmarginal: the session less one of a single rule (interpreter, pytest, imports), divided by the other rules"
    )
    print(growth(costs, asked.sizes, 1))
    print(f"target: a marginal ratio of at most {TARGET}")


if __name__ == "__main__":
    main()
