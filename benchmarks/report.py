"""A report of 2,000 rules and 50 iterations in a real browser, against one of 20 rules and 5 iterations."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from side_by_side import arguments, table

sys.path.insert(0, str(Path(__file__).parents[1]))

from pytest_loop.show.html.report_page import render_report
from tests.browser.chromium import VARIABLE, Page, start_chromium
from tests.show.runs import RunStory, build_large_run

TARGET_SECONDS = 2.0
TARGET_MEGABYTES = 8.0
SIZES = ((20, 5), (2_000, 50))
# From the beginning of the navigation to the second frame after everything is loaded: then it can be seen.
SEEN = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now()))))"


def main() -> None:
    options = arguments(__doc__, rounds=5).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{rules}.html" for rules, _ in SIZES]
        made = [_written(path, build_large_run(*size)) for path, size in zip(paths, SIZES, strict=True)]
        opened = _opened(paths, options.rounds, Path(folder) / "profile")
    rows = [
        [f"{rules:,} x {count}", f"{seconds:.2f} s", f"{size:.2f} MB", f"{median(times):.2f} s", f"{min(times):.2f} s"]
        for (rules, count), (seconds, size), times in zip(SIZES, made, opened, strict=True)
    ]
    print(table(["rules x iterations", "made in", "size", "seen after", "best"], rows))
    print(f"target: seen after less than {TARGET_SECONDS:g} s, less than {TARGET_MEGABYTES:g} MB")


def _written(path: Path, told: RunStory) -> tuple[float, float]:
    """How long it took to make, and its size in megabytes."""
    started = time.perf_counter()
    data = render_report(told.state, told.events).encode("utf-8", "replace")
    seconds = time.perf_counter() - started
    path.write_bytes(data)
    return seconds, len(data) / 1e6


def _opened(paths: list[Path], rounds: int, profile: Path) -> list[list[float]]:
    """How long each took to be seen, in interleaved rounds; the first is not counted."""
    found: list[list[float]] = [[] for _ in paths]
    with start_chromium(os.environ.get(VARIABLE, "chromium"), profile) as page:
        page.set_size(1100, 800)
        for number in range(rounds + 1):
            for path, times in zip(paths, found, strict=True):
                seconds = _seen(page, path)
                times += [seconds] if number else []
    return found


def _seen(page: Page, path: Path) -> float:
    page.open(path)
    return float(page.run(SEEN)) / 1000


if __name__ == "__main__":
    main()
