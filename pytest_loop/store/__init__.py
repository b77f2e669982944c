"""What is remembered: four files for each run, one writer, and the only code that opens them."""

from pytest_loop.store.blocks import Blocks
from pytest_loop.store.disk import write_whole
from pytest_loop.store.history import ADOPTED, History
from pytest_loop.store.lock import Owner
from pytest_loop.store.names import default_root, moment, now, slug
from pytest_loop.store.project import MOST_AT_ONCE, Store
from pytest_loop.store.run_files import RunFiles

__all__ = [
    "ADOPTED",
    "MOST_AT_ONCE",
    "Blocks",
    "History",
    "Owner",
    "RunFiles",
    "Store",
    "default_root",
    "moment",
    "now",
    "slug",
    "write_whole",
]
