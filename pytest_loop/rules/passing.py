"""The report of an item that was run without pytest's own machinery, and passed: made, packed, and unpacked."""

from __future__ import annotations

from typing import Any

import pytest


def passed(item: pytest.Item, when: Any, started: float, ended: float, *keywords: str) -> pytest.TestReport:
    """The report of an item that was run without pytest's own machinery, and passed."""
    return pytest.TestReport(
        nodeid=item.nodeid,
        location=item.location,
        keywords=dict.fromkeys((item.name, *keywords), 1),
        outcome="passed",
        longrepr=None,
        when=when,
        duration=ended - started,
        start=started,
        stop=ended,
        user_properties=item.user_properties,
    )


def packed(report: pytest.TestReport) -> list[Any]:
    """Such a report as plain data: a few fields where pytest would send them all."""
    noted = getattr(report, "loop", None)
    times = (report.start, report.stop)
    return [report.nodeid, report.location, report.keywords, report.when, *times, report.user_properties, noted]


def unpacked(data: list[Any]) -> pytest.TestReport:
    """What was packed."""
    nodeid, location, keywords, when, started, ended, properties, noted = data
    report = pytest.TestReport(
        nodeid=nodeid,
        location=tuple(location),
        keywords=keywords,
        outcome="passed",
        longrepr=None,
        when=when,
        duration=ended - started,
        start=started,
        stop=ended,
        user_properties=[(name, value) for name, value in properties],
    )
    if noted is not None:
        report.loop = noted  # type: ignore[attr-defined]
    return report
