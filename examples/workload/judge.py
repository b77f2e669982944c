"""Compare an output with the expected one, field by field."""

from __future__ import annotations

import json
import sys
from pathlib import Path


def main() -> None:
    found, expected = (json.loads(Path(name).read_text(encoding="utf-8")) for name in sys.argv[1:3])
    names = sorted({*found, *expected})
    wrong = [name for name in names if found.get(name) != expected.get(name)]
    critiques = [
        {"severity": "Blocking", "message": f"expected {expected.get(name)}, found {found.get(name)}", "location": name}
        for name in wrong
    ]
    print(json.dumps({"passed": not wrong, "score": 1 - len(wrong) / len(names), "critiques": critiques}))


if __name__ == "__main__":
    main()
