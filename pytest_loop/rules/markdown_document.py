"""What a Markdown text consists of: sections, fenced blocks, links and anchors, each with its line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it.token import Token

_FRONT_MATTER = re.compile(r"\A---\n.*?\n(?:---|\.\.\.)(?:\n|\Z)", re.DOTALL)
_HTML_ANCHOR = re.compile(r"""<[^>]*\b(?:id|name)\s*=\s*["']([^"']+)["']""")
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Section:
    """A heading and everything below it up to the next heading of its level or above."""

    title: str
    level: int
    line: int
    text: str
    start: int

    @property
    def words(self) -> int:
        return len(_WORD.findall(self.text))


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, the line where the text begins, and whether the fence was closed."""

    language: str
    text: str
    line: int
    closed: bool


@dataclass(frozen=True)
class Link:
    """Where a link or an image points."""

    target: str
    line: int


class MarkdownDocument:
    """A parsed Markdown text; YAML front matter is not part of it."""

    def __init__(self, text: str) -> None:
        front = _FRONT_MATTER.match(text)
        self.text = "\n" * front[0].count("\n") + text[front.end() :] if front else text
        self.lines = self.text.split("\n")
        self._shift = (front.end() - front[0].count("\n")) if front else 0

    @cached_property
    def _tokens(self) -> list[Token]:
        from markdown_it import MarkdownIt  # only for the rules that look at Markdown

        return MarkdownIt("commonmark").enable("table").parse(self.text)

    def _inline(self) -> Iterator[tuple[Token, int, int]]:
        for token in self._tokens:
            if token.type == "inline" and token.map:
                for child in token.children or ():
                    yield child, token.map[0], token.map[1]

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        heads = []
        for at, token in enumerate(self._tokens):
            if token.type == "heading_open" and token.map:
                title = "".join(part.content for part in self._tokens[at + 1].children or ())
                heads.append((title.strip(), int(token.tag[1]), token.map[0], token.map[1]))
        return tuple(self._section(heads, at) for at in range(len(heads)))

    def _section(self, heads: list[tuple[str, int, int, int]], at: int) -> Section:
        title, level, line, body = heads[at]
        end = next((head[2] for head in heads[at + 1 :] if head[1] <= level), len(self.lines))
        text = "\n".join(self.lines[body:end])
        start = sum(len(row) + 1 for row in self.lines[:body]) + self._shift
        return Section(title, level, line + 1, text, start)

    def section(self, title: str) -> Section | None:
        """The first section with this heading, however it is written in capitals."""
        wanted = title.strip().lstrip("#").strip().casefold()
        return next((section for section in self.sections if section.title.casefold() == wanted), None)

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        return tuple(
            Block(
                language=(token.info.split() or [""])[0].casefold(),
                text=token.content,
                line=token.map[0] + 2,
                closed=self.lines[token.map[1] - 1].strip().startswith(token.markup)
                and token.map[1] - token.map[0] > 1,
            )
            for token in self._tokens
            if token.type == "fence" and token.map
        )

    @cached_property
    def links(self) -> tuple[Link, ...]:
        found = []
        for child, first, last in self._inline():
            target = child.attrGet("href") or child.attrGet("src")
            if isinstance(target, str):
                rows = range(first, last)
                found.append(Link(target, next((row for row in rows if target in self.lines[row]), first) + 1))
        return tuple(found)

    @cached_property
    def anchors(self) -> frozenset[str]:
        """What `#...` may point at: headings as they are usually rendered, and ids in HTML."""
        names: dict[str, int] = {}
        found = set()
        for section in self.sections:
            name = re.sub(r"[^\w\- ]", "", section.title.casefold()).replace(" ", "-")
            count = names.get(name, 0)
            names[name] = count + 1
            found.add(f"{name}-{count}" if count else name)
        html = [token.content for token in self._tokens if token.type == "html_block"]
        html += [child.content for child, _, _ in self._inline() if child.type == "html_inline"]
        return frozenset(found.union(*(_HTML_ANCHOR.findall(text) for text in html)))
