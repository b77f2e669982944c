from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # tests import `basket` in any import mode


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "basket_total: tests of the price of a basket")


@pytest.fixture
def euro_shop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BASKET_CURRENCY", "EUR")
