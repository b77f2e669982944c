"""Import the modules that evaluate rules before any code of the project, which could replace them."""

from __future__ import annotations

from importlib import import_module

_MODULES = (
    "pytest_loop.rules.binding",
    "pytest_loop.rules.markdown_document",
    "pytest_loop.rules.toml_lines",
    "pytest_loop.session.canary",
    "pytest_loop.session.channel",
    "pytest_loop.session.collection_scope",
    "pytest_loop.session.equality",
    "pytest_loop.session.interference",
    "pytest_loop.session.judge",
    "pytest_loop.session.ordering",
    "pytest_loop.session.reads",
    "pytest_loop.session.record",
    "pytest_loop.session.reports",
    "pytest_loop.session.run_signals",
    "pytest_loop.session.test_code",
    "pytest_loop.session.test_modules",
    "pytest_loop.show.report_status",
    "pytest_loop.show.score_section",
)


def load_judging_modules() -> None:
    """Import all modules that evaluate rules."""
    for name in _MODULES:
        import_module(name)
