"""Print the JSON Schema of rule files."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pytest_loop.rules.rule_files import build_json_schema


def main(_words: Sequence[str] = ()) -> int:
    """Print the schema, and return the exit code."""
    print(json.dumps(build_json_schema(), indent=2))
    return 0
