"""Two slow rules among many cheap ones: `-n 2` against `-n0`, in the order that the plugin gives them."""

from __future__ import annotations

import tempfile
from pathlib import Path
from statistics import median

from side_by_side import Candidate, arguments, measure, pytest_command, ratios, spread, table

TARGET = 1.8
SECONDS = 3
CHEAP = 100


def write(folder: Path) -> None:
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    (folder / "artifact.md").write_text("ready\n", encoding="utf-8")
    lines = ["criteria: mixed", "artifact: artifact.md", "rules:"]
    for number in range(2):
        lines += [f"  - {{id: a.slow.{number}, description: It is slow, check: {{command: sleep {SECONDS}}}}}"]
    for number in range(CHEAP):
        lines += [f"  - {{id: a.cheap.{number:03}, description: It is cheap, check: {{contains: ready}}}}"]
    (folder / "mixed.rules.yaml").write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    asked = arguments(__doc__, rounds=15).parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder)
        proof = f"{CHEAP + 2} passed"
        candidates = [
            Candidate(words, folder, pytest_command(words, "-p", "no:cacheprovider"), proof) for words in ("-n0", "-n2")
        ]
        costs = measure(candidates, asked.rounds)
    rows = [[one.name, f"{median(cost.wall for cost in costs[one.name]):.2f}"] for one in candidates]
    rows.append(["times faster (quartiles)", spread(ratios(costs, "-n0", "-n2", lambda cost: cost.wall))])
    print(f"2 rules of {SECONDS} s and {CHEAP} cheap ones, {asked.rounds} rounds")
    print(table(["", "wall s"], rows))
    print(f"target: at least {TARGET} times faster")


if __name__ == "__main__":
    main()
