"""Compare a session of one trivial test with the plugin installed but unused, and without it."""

from __future__ import annotations

import tempfile
from pathlib import Path

from side_by_side import Candidate, make_parser, make_pytest_command, measure, render_comparison

TARGET = 1.02


def main() -> None:
    options = make_parser(__doc__, rounds=30).parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
        (folder / "test_trivial.py").write_text("def test_trivial():\n    pass\n", encoding="utf-8")
        candidates = [
            Candidate("installed, unused", folder, make_pytest_command(), "1 passed"),
            Candidate("-p no:agent_loop", folder, make_pytest_command("-p", "no:agent_loop"), "1 passed"),
        ]
        costs = measure(candidates, options.rounds)
    print(f"One trivial test with and without the plugin, {options.rounds} rounds")
    print(render_comparison(costs, "installed, unused", "-p no:agent_loop", TARGET, digits=3))


if __name__ == "__main__":
    main()
