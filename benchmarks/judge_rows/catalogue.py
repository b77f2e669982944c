"""All rows but those that are made from bugs."""

from __future__ import annotations

from collections import Counter

from judge_rows import configuration, edits, goals, honest, processes, product, runners, state

ROWS = [
    *edits.ROWS,
    *configuration.ROWS,
    *processes.ROWS,
    *product.ROWS,
    *goals.ROWS,
    *runners.ROWS,
    *state.ROWS,
    *honest.ROWS,
]
_REPEATED = [name for name, count in Counter(row.id for row in ROWS).items() if count > 1]
if _REPEATED:
    raise ValueError(f"expected a name for each row, found twice: {', '.join(_REPEATED)}")
