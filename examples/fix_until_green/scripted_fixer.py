"""A scripted agent that fixes half of the ledger in its first iteration and the rest in the next."""

from __future__ import annotations

from pathlib import Path

from pytest_loop import AgentRequest

LEDGER = Path("ledger.py")
FIRST = (
    ("return Decimal(text[1:-1])", "return -amount(text[1:-1])"),
    ("return Decimal(text)", 'return Decimal(text.replace(",", ""))'),
    ("fromisoformat(day), text, ", "fromisoformat(day), text.strip(), "),
    ("] = one.amount", '] = sums.get(f"{one.day:%Y-%m}", Decimal(0)) + one.amount'),
)
SECOND = (
    ("return found\n", "return found[1:]\n"),
    ("return sums", "return dict(sorted(sums.items()))"),
    ("key=lambda one: one.amount", "key=lambda one: abs(one.amount)"),
    ("{one.amount:>10}", "{one.amount:>10.2f}"),
)


def work(request: AgentRequest) -> str:
    """Edit the ledger in place, and return a message for the log."""
    text = LEDGER.read_text(encoding="utf-8")
    for old, new in FIRST if request.iteration == 1 else SECOND:
        text = text.replace(old, new)
    LEDGER.write_text(text, encoding="utf-8")
    return "mended what the tests complained about"
