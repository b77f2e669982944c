"""The parser of every command of `pytest-loop`."""

from __future__ import annotations

import argparse
from typing import NoReturn

# pytest.ExitCode.USAGE_ERROR, without the import of pytest.
USAGE_ERROR = 4


class Parser(argparse.ArgumentParser):
    """A parser that ends with the exit code of pytest for bad usage."""

    def error(self, message: str) -> NoReturn:
        self.exit(USAGE_ERROR, f"{self.format_usage()}ERROR: {message}\n")
