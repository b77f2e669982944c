"""A network of hosts for each test that asks for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.network import Network, find_obstacle


@pytest.fixture
def network(tmp_path: Path) -> Iterator[Network]:
    if obstacle := find_obstacle():
        pytest.skip(obstacle)
    network = Network(tmp_path / "network")
    yield network
    network.close()
