"""A terminal's screen: rows of characters, a cursor, and what can be done to them."""

from __future__ import annotations

from dataclasses import dataclass, field

# Rows further up have been scrolled away, where no program can reach them.
HEIGHT = 100
# A cursor that is sent away stops at the right edge.
WIDTH = 500
TAB = 8


@dataclass
class Screen:
    """A row is a text until something in it has to be changed; text that is concealed is not there."""

    rows: list[str | list[str]] = field(default_factory=lambda: [""])
    row: int = 0
    column: int = 0
    is_concealed: bool = False
    saved: tuple[int, int] = (0, 0)
    covered: int | None = None

    def __str__(self) -> str:
        return "\n".join(row if isinstance(row, str) else "".join(row) for row in self.rows)

    @property
    def is_at_fresh_row(self) -> bool:
        return not self.column and not self.is_concealed and not self.rows[self.row]

    @property
    def _top(self) -> int:
        return max(self.covered or 0, len(self.rows) - HEIGHT)

    @property
    def _cells(self) -> list[str]:
        row = self.rows[self.row]
        if isinstance(row, str):
            row = self.rows[self.row] = list(row)
        return row

    # -- writing and moving

    def put_row(self, text: str) -> None:
        """Text that no control character is in, into a fresh row."""
        self.rows[self.row] = text.expandtabs(TAB)
        self.column = len(self.rows[self.row])

    def put(self, text: str) -> None:
        cells, end = self._cells, self.column + len(text)
        cells.extend(" " * (self.column - len(cells)))
        cells[self.column : end] = " " * len(text) if self.is_concealed else text
        self.column = end

    def feed(self) -> None:
        self.row += 1
        self.column = 0
        if self.row == len(self.rows):
            self.rows.append("")

    def tab(self) -> None:
        self.column += TAB - self.column % TAB

    def move(self, row: int, column: int) -> None:
        self.row = min(max(self._top, row), len(self.rows) - 1)
        self.column = min(max(0, column), max(WIDTH, self.column))

    def move_by(self, rows: int, columns: int = 0) -> None:
        self.move(self.row + rows, self.column + columns)

    def move_to(self, row: int, column: int) -> None:
        self.move(self._top + row, column)

    def save(self) -> None:
        self.saved = (self.row, self.column)

    def restore(self) -> None:
        self.move(*self.saved)

    # -- erasing

    def erase_line(self, mode: int) -> None:
        """To its end, from its beginning (1), or all of it (2)."""
        cells = self._cells
        if mode == 1:
            cells[: self.column + 1] = " " * min(len(cells), self.column + 1)
        else:
            del cells[0 if mode == 2 else self.column :]

    def erase(self, mode: int) -> None:
        """To the end, from the beginning (1), or all of it."""
        if mode == 0:
            self.erase_line(0)
            del self.rows[self.row + 1 :]
        elif mode == 1:
            self.erase_line(1)
            top = self._top
            del self.rows[top : self.row]
            self.row = top
        else:
            del self.rows[self._top :]
            self.rows.append("")
            self.row = len(self.rows) - 1

    def erase_cells(self, count: int) -> None:
        cells, end = self._cells, self.column + count
        cells[self.column : end] = " " * len(cells[self.column : end])

    def delete_cells(self, count: int) -> None:
        del self._cells[self.column : self.column + count]

    def delete_rows(self, count: int) -> None:
        del self.rows[self.row : self.row + count]
        if self.row == len(self.rows):
            self.rows.append("")

    def reset(self) -> None:
        self.erase(2)
        self.column = 0
        self.is_concealed = False

    # -- a second screen, laid over the first and taken away again

    def cover(self) -> None:
        if self.covered is None:
            self.save()
            self.covered = len(self.rows)
            self.rows.append("")
            self.move(self.covered, 0)

    def uncover(self) -> None:
        if self.covered is not None:
            del self.rows[self.covered :]
            self.covered = None
            self.restore()
