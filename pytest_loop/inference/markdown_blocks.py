"""Parse Markdown into blocks, each with its line and the headings above it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache, lru_cache
from itertools import takewhile
from typing import TYPE_CHECKING

from pytest_loop.inference.shell_script import MAX_LINE_LENGTH

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_FRONT_MATTER = re.compile(r"\A---\n.*?\n(?:---|\.\.\.)(?=\n|\Z)", re.DOTALL)
CHECKBOX = re.compile(r"\[[ xX]\]\s+")
_ANY_HEADING = re.compile("")


class BlockKind(Enum):
    """The kind of a block."""

    TEXT = "text"
    ITEM = "item"
    ROW = "row"
    CODE = "code"


@dataclass(frozen=True)
class MarkdownBlock:
    """A paragraph, the first paragraph of a list item, a table row, or closed fenced code in a language."""

    kind: BlockKind
    line: int
    text: str
    headings: tuple[str, ...] = ()
    language: str = ""
    cells: tuple[str, ...] = ()


@cache
def _get_parser() -> MarkdownIt:
    from markdown_it import MarkdownIt  # imported on use: most sessions read no Markdown

    return MarkdownIt("commonmark").enable("table").disable("inline")


@lru_cache(maxsize=16)
def parse_blocks(text: str) -> tuple[MarkdownBlock, ...]:
    """Return the blocks of a text in its order; front matter and fences that are never closed are skipped."""
    text = _FRONT_MATTER.sub(lambda match: "\n" * match[0].count("\n"), text)
    lines = [line[:MAX_LINE_LENGTH] for line in re.split(r"\r\n?|\n", text)]
    tokens = _get_parser().parse("\n".join(lines))
    headings: dict[int, str] = {}
    blocks: list[MarkdownBlock] = []
    for index, token in enumerate(tokens):
        previous = tokens[index - 1]
        if token.type == "inline" and previous.type == "heading_open":
            level = int(previous.tag[1])
            headings = {above: title for above, title in headings.items() if above < level}
            headings[level] = token.content
        elif token.map and not _is_unclosed(token, lines):
            blocks += _build_block(tokens, index, token.map[0] + 1, tuple(headings.values()))
    return tuple(blocks)


def _is_unclosed(token: Token, lines: Sequence[str]) -> bool:
    return bool(token.type == "fence" and token.map and not lines[token.map[1] - 1].rstrip().endswith(token.markup))


def _build_block(tokens: Sequence[Token], index: int, line: int, headings: tuple[str, ...]) -> Iterator[MarkdownBlock]:
    token = tokens[index]
    if token.type == "fence":
        language = (token.info.split() or [""])[0].lower()
        yield MarkdownBlock(BlockKind.CODE, line + 1, token.content.removesuffix("\n"), headings, language)
    elif token.type == "tr_open":
        following = (tokens[place] for place in range(index, len(tokens)))
        row = takewhile(lambda part: part.type != "tr_close", following)
        cells = tuple(part.content for part in row if part.type == "inline")
        yield MarkdownBlock(BlockKind.ROW, line, " | ".join(cells), headings, cells=cells)
    elif token.type == "inline" and tokens[index - 1].type == "paragraph_open":
        is_item = tokens[index - 2].type == "list_item_open"
        yield MarkdownBlock(BlockKind.ITEM if is_item else BlockKind.TEXT, line, token.content, headings)
    elif token.type == "html_block":
        yield MarkdownBlock(BlockKind.TEXT, line, token.content, headings)


def find_list_items(text: str, heading: re.Pattern[str] = _ANY_HEADING) -> Iterator[MarkdownBlock]:
    """Yield the list items below a heading that matches, each on one line and without its checkbox."""
    for block in parse_blocks(text):
        if block.kind is BlockKind.ITEM and any(heading.search(title) for title in block.headings or ("",)):
            item = CHECKBOX.sub("", " ".join(block.text.split("\n")), count=1)
            yield MarkdownBlock(BlockKind.ITEM, block.line, item, block.headings)


def find_table_rows(text: str) -> Iterator[tuple[str, ...]]:
    """Yield the cells of the rows of all tables."""
    return (block.cells for block in parse_blocks(text) if block.kind is BlockKind.ROW)
