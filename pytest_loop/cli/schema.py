"""Print the JSON Schema of rule files."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence

from pytest_loop.cli.command_parser import Parser
from pytest_loop.rules.rule_files import build_json_schema


def main(words: Sequence[str] = ()) -> int:
    """Print the schema, and return the exit code."""
    parser = Parser(prog="pytest-loop schema", description="Print the JSON Schema of rule files, for your editor.")
    parser.add_argument("--run", default="", help=argparse.SUPPRESS)  # every command takes --run
    parser.parse_args(list(words))
    print(json.dumps(build_json_schema(), indent=2))
    return 0
