"""The report of an item that was run without pytest's own machinery, and passed: made, packed, and unpacked."""

from __future__ import annotations

from typing import Any

import pytest


def passed(item: pytest.Item, when: Any, started: float, ended: float, *keywords: str) -> pytest.TestReport:
    """The report of such an item."""
    names = dict.fromkeys((item.name, *keywords), 1)
    return _made(item.nodeid, item.location, names, when, started, ended, item.user_properties)


def packed(report: pytest.TestReport) -> list[Any]:
    """Such a report as plain data: a few fields where pytest would send them all."""
    fields = (report.nodeid, report.location, report.keywords, report.when, report.start, report.stop)
    return [*fields, report.user_properties, getattr(report, "loop", None)]


def unpacked(data: list[Any]) -> pytest.TestReport:
    """What was packed."""
    nodeid, location, keywords, when, started, ended, pairs, noted = data
    report = _made(nodeid, tuple(location), keywords, when, started, ended, [(name, value) for name, value in pairs])
    if noted is not None:
        report.loop = noted  # type: ignore[attr-defined]
    return report


def _made(
    nodeid: str, location: Any, keywords: Any, when: Any, started: float, ended: float, properties: Any
) -> pytest.TestReport:
    return pytest.TestReport(
        nodeid=nodeid,
        location=location,
        keywords=keywords,
        outcome="passed",
        longrepr=None,
        when=when,
        duration=ended - started,
        start=started,
        stop=ended,
        user_properties=properties,
    )
