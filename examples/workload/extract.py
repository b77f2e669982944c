"""Read a receipt exactly as the prompt says, in place of a model."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

DATE = r"(\d{4}-\d\d-\d\d)"


def asked(prompt: str, word: str) -> list[str]:
    """Return what the prompt lists after a word: texts in backticks, or `anywhere`."""
    line = re.search(rf"^{word}:(.*)$", prompt, re.MULTILINE)
    found = re.findall(r"`([^`]+)`|(anywhere)", line[1] if line else "")
    return [text or other for text, other in found]


def date(prompt: str, text: str) -> str | None:
    for place in asked(prompt, "Look"):
        found = re.search(DATE if place == "anywhere" else rf"^{re.escape(place)}\s*{DATE}", text, re.MULTILINE)
        if found:
            return found[1]
    return None


def total(prompt: str, text: str) -> tuple[str | None, str | None]:
    for label in asked(prompt, "Labels"):
        found = re.search(rf"^{re.escape(label)}\b:?\s*([\d.,]+) ([A-Z]{{3}})$", text, re.MULTILINE | re.IGNORECASE)
        if found:
            return found[1].replace(",", ""), found[2]
    return None, None


def main() -> None:
    case, output = map(Path, sys.argv[1:3])
    prompt, text = (path.read_text(encoding="utf-8") for path in (Path("prompt.md"), case))
    amount, currency = total(prompt, text)
    read = {"vendor": text.splitlines()[0], "date": date(prompt, text), "total": amount, "currency": currency}
    found = {name: value for name, value in read.items() if value is not None}
    output.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
