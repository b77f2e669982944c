from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # so that tests find `basket`, whatever the import mode


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "basket_total: tests of what a basket costs")


@pytest.fixture
def euro_shop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BASKET_CURRENCY", "EUR")
