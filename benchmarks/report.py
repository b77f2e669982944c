"""Compare a report of 2,000 rules and 50 iterations in a real browser with one of 20 rules and 5 iterations."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from side_by_side import make_parser, render_table

sys.path.insert(0, str(Path(__file__).parents[1]))

from pytest_loop.show.html.report_page import render_report
from tests.browser.chromium import VARIABLE, Page, start_chromium
from tests.show.runs import RunStory, build_large_run

TARGET_SECONDS = 2.0
TARGET_MEGABYTES = 8.0
SIZES = ((20, 5), (2_000, 50))
# The time from the start of the navigation to the second frame after loading, when the page is visible.
VIEW_SCRIPT = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now()))))"


def main() -> None:
    options = make_parser(__doc__, rounds=5).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{rules}.html" for rules, _ in SIZES]
        reports = [_write_report(path, build_large_run(*size)) for path, size in zip(paths, SIZES, strict=True)]
        view_times = _measure_views(paths, options.rounds, Path(folder) / "profile")
    rows = [
        [f"{rules:,} x {count}", f"{seconds:.2f} s", f"{size:.2f} MB", f"{median(times):.2f} s", f"{min(times):.2f} s"]
        for (rules, count), (seconds, size), times in zip(SIZES, reports, view_times, strict=True)
    ]
    print(render_table(["rules x iterations", "made in", "size", "seen after", "best"], rows))
    print(f"target: seen after less than {TARGET_SECONDS:g} s, less than {TARGET_MEGABYTES:g} MB")


def _write_report(path: Path, run: RunStory) -> tuple[float, float]:
    """Write a report; return the seconds to render it and its size in megabytes."""
    started = time.perf_counter()
    data = render_report(run.state, run.events).encode("utf-8", "replace")
    seconds = time.perf_counter() - started
    path.write_bytes(data)
    return seconds, len(data) / 1e6


def _measure_views(paths: list[Path], rounds: int, profile: Path) -> list[list[float]]:
    """Return the seconds until each report was visible, in interleaved rounds; the first is not counted."""
    view_times: list[list[float]] = [[] for _ in paths]
    with start_chromium(os.environ.get(VARIABLE, "chromium"), profile) as page:
        page.set_size(1100, 800)
        for number in range(rounds + 1):
            for path, times in zip(paths, view_times, strict=True):
                seconds = _measure_view(page, path)
                times += [seconds] if number else []
    return view_times


def _measure_view(page: Page, path: Path) -> float:
    page.open(path)
    return float(page.run(VIEW_SCRIPT)) / 1000


if __name__ == "__main__":
    main()
