"""The parts of a Markdown text with their lines: sections, fenced blocks, links and anchors."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from markdown_it.token import Token

_FRONT_MATTER = re.compile(r"\A---\n.*?\n(?:---|\.\.\.)(?:\n|\Z)", re.DOTALL)
_HTML_ANCHOR = re.compile(r"""<[^>]*\b(?:id|name)\s*=\s*["']([^"']+)["']""")
_WORD = re.compile(r"\w+")


class Section(NamedTuple):
    """A heading, and the text below it up to the next heading of its level or above; `start` is the text's offset."""

    title: str
    level: int
    line: int
    text: str
    start: int

    @property
    def word_count(self) -> int:
        return len(_WORD.findall(self.text))


class FencedBlock(NamedTuple):
    """A fenced block; `line` is the first line of its text."""

    language: str
    text: str
    line: int
    is_closed: bool


class Link(NamedTuple):
    """The target of a link or an image."""

    target: str
    line: int


class MarkdownDocument:
    """A parsed Markdown text; empty lines replace its YAML front matter, so that line numbers stay correct."""

    def __init__(self, text: str) -> None:
        front = _FRONT_MATTER.match(text)
        newlines = front[0].count("\n") if front else 0
        end = front.end() if front else 0
        self.text = "\n" * newlines + text[end:]
        self._removed_length = end - newlines
        self._lines = self.text.split("\n")

    @cached_property
    def tokens(self) -> list[Token]:
        from markdown_it import MarkdownIt  # slow to import, and only some rules read Markdown

        return MarkdownIt("commonmark").enable("table").parse(self.text)

    def _iterate_inline(self) -> Iterator[tuple[Token, range]]:
        """Yield each inline token with the lines of the paragraph around it."""
        for token in self.tokens:
            if token.type == "inline" and token.map:
                for child in token.children or ():
                    yield child, range(*token.map)

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        headings: list[tuple[str, int, int, int]] = []
        for index, token in enumerate(self.tokens):
            if token.type == "heading_open" and token.map:
                title = "".join(part.content for part in self.tokens[index + 1].children or ())
                headings.append((title.strip(), int(token.tag[1]), token.map[0], token.map[1]))
        sections = []
        for index, (title, level, line, body) in enumerate(headings):
            end = next((heading[2] for heading in headings[index + 1 :] if heading[1] <= level), len(self._lines))
            start = sum(len(row) + 1 for row in self._lines[:body]) + self._removed_length
            sections.append(Section(title, level, line + 1, "\n".join(self._lines[body:end]), start))
        return tuple(sections)

    def find_section(self, title: str) -> Section | None:
        """Return the first section with this heading; case does not matter."""
        folded_title = title.strip().lstrip("#").strip().casefold()
        return next((section for section in self.sections if section.title.casefold() == folded_title), None)

    @cached_property
    def blocks(self) -> tuple[FencedBlock, ...]:
        return tuple(
            FencedBlock(
                language=(token.info.split() or [""])[0].casefold(),
                text=token.content,
                line=token.map[0] + 2,
                is_closed=self._lines[token.map[1] - 1].strip().startswith(token.markup)
                and token.map[1] - token.map[0] > 1,
            )
            for token in self.tokens
            if token.type == "fence" and token.map
        )

    @cached_property
    def links(self) -> tuple[Link, ...]:
        links = []
        for token, rows in self._iterate_inline():
            target = token.attrGet("href") or token.attrGet("src")
            if isinstance(target, str):
                row = next((row for row in rows if target in self._lines[row]), rows.start)
                links.append(Link(target, row + 1))
        return tuple(links)

    @cached_property
    def anchors(self) -> frozenset[str]:
        """The possible targets of `#...`: headings as they are usually rendered, and ids in HTML."""
        counts: Counter[str] = Counter()
        anchors = set()
        for section in self.sections:
            name = re.sub(r"[^\w\- ]", "", section.title.casefold()).replace(" ", "-")
            anchors.add(f"{name}-{counts[name]}" if counts[name] else name)
            counts[name] += 1
        html = [token.content for token in self.tokens if token.type == "html_block"]
        html += [token.content for token, _ in self._iterate_inline() if token.type == "html_inline"]
        return frozenset(anchors.union(*(_HTML_ANCHOR.findall(text) for text in html)))
