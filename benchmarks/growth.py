"""Measure how time and peak memory per rule grow from 1,000 to 100,000 rules."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

from content_rules import write_artifact, write_rules
from side_by_side import Candidate, Cost, Costs, format_spread, make_parser, make_pytest_command, measure, render_table

TARGET = 1.15
SIZES = (1_000, 10_000, 100_000)
LARGEST_FILE = 10_000  # a rule file may have 8 MB

# The figures per rule, and how to compute them from a cost.
FIGURES: Sequence[tuple[str, Callable[[Cost], float]]] = (
    ("wall ms", lambda cost: cost.wall * 1000),
    ("CPU ms", lambda cost: cost.cpu * 1000),
    ("peak kB", lambda cost: cost.peak * 1024),
)


def make_candidate(folder: Path, size: int) -> Candidate:
    """Write `size` rules in files of at most 10,000; return the session that judges them."""
    folder.mkdir()
    write_artifact(folder)
    for number, start in enumerate(range(0, size, LARGEST_FILE)):
        write_rules(folder / f"part-{number:02}.rules.yaml", min(LARGEST_FILE, size - start))
    return Candidate(f"{size:,}", folder, make_pytest_command("-n0", "-p", "no:cacheprovider"), f"{size} passed")


def render_growth(costs: Costs, sizes: Sequence[int], base: int | None) -> str:
    """Render a row per size with ratios to the smallest size; subtract the session of `base` rules, if any."""
    rows = [
        [f"{size:,}", *(cell for _, figure in FIGURES for cell in _render_cells(costs, size, sizes[0], base, figure))]
        for size in sizes
    ]
    return render_table(["rules", *(word for name, _ in FIGURES for word in (name, "ratio"))], rows)


def _render_cells(
    costs: Costs, size: int, first: int, base: int | None, figure: Callable[[Cost], float]
) -> tuple[str, str]:
    values, base_values = _compute_per_rule(costs, size, base, figure), _compute_per_rule(costs, first, base, figure)
    ratios = [value / base_value for value, base_value in zip(values, base_values, strict=True)]
    return f"{median(values):.2f}", format_spread(ratios)


def _compute_per_rule(costs: Costs, size: int, base: int | None, figure: Callable[[Cost], float]) -> list[float]:
    totals = [figure(cost) for cost in costs[f"{size:,}"]]
    if base is None:
        return [value / size for value in totals]
    fixed = [figure(cost) for cost in costs[f"{base:,}"]]
    return [(value - other) / (size - base) for value, other in zip(totals, fixed, strict=True)]


def main() -> None:
    parser = make_parser(__doc__, rounds=3)
    parser.add_argument(
        "--sizes", type=int, nargs="+", default=SIZES, metavar="N", help="numbers of rules (default: all three)"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        candidates = [make_candidate(Path(name) / str(size), size) for size in (1, *options.sizes)]
        costs = measure(candidates, options.rounds)
    base = f"{options.sizes[0]:,} rules"
    print(f"Growth, {options.rounds} rounds; each figure per rule, with its ratio to {base} (quartiles)")
    print("\nraw: the whole session divided by its rules, so that the fixed cost of a session favours many rules")
    print(render_growth(costs, options.sizes, None))
    print(
        "\nmarginal: the session less one of a single rule (interpreter, pytest, imports), divided by the other rules"
    )
    print(render_growth(costs, options.sizes, 1))
    print(f"target: a marginal ratio of at most {TARGET}")


if __name__ == "__main__":
    main()
