from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.browser.chromium import VARIABLE, Page, start_chromium

collect_ignore = [] if os.environ.get(VARIABLE) else ["test_report.py"]


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """One browser for all tests; `PYTEST_LOOP_CHROMIUM` names the program."""
    with start_chromium(os.environ[VARIABLE], tmp_path_factory.mktemp("profile")) as page:
        yield page
