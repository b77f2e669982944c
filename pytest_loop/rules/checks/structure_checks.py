"""Checks of the artifact's structure: sections, syntax, size, links."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import unquote, urlsplit

from pydantic import BeforeValidator, Field, model_validator

from pytest_loop.core.model.rules import Finding
from pytest_loop.errors import CheckError
from pytest_loop.rules.checks.check import ContentCheck, Context, Count, Inputs, StrictModel, Text
from pytest_loop.rules.document import Document, find_syntax_error
from pytest_loop.rules.markdown_document import Section
from pytest_loop.rules.syntax import ContentError


class Heading(StrictModel):
    """A section that must exist: its heading, how many words it needs, which heading stands before it."""

    heading: Text
    words: Count | None = None
    after: str | None = None


def _wrap_heading(value: Any) -> Any:
    return {"heading": value} if isinstance(value, str) else value


class Sections(ContentCheck):
    """The headings exist and their sections say something: at least one word, or `words`."""

    sections: Annotated[
        list[Annotated[Heading, BeforeValidator(_wrap_heading, json_schema_input_type=Text | Heading)]],
        Field(min_length=1),
    ]
    in_order: bool = False
    words: Count = 1

    def run(self, context: Context) -> Iterable[Finding]:
        document = context.document()
        previous: Section | None = None
        for heading in self.sections:
            section = document.markdown.find_section(heading.heading)
            if section is None:
                yield Finding(expected=f"a section {heading.heading!r}", found="none", where=document.shown)
                continue
            for expected, found in self._find_problems(document, heading, section, previous):
                yield Finding(expected=expected, found=found, where=document.line(section.line))
            previous = section

    def _find_problems(
        self, document: Document, heading: Heading, section: Section, previous: Section | None
    ) -> Iterator[tuple[str, str]]:
        words = self.words if heading.words is None else heading.words
        if section.word_count < words:
            least = f"{words} words" if words != 1 else "some text"
            yield f"{least} in the section {section.title!r}", f"{section.word_count or 'nothing'}"
        if self.in_order and previous and section.line < previous.line:
            yield f"{section.title!r} after {previous.title!r}", "it before"
        if heading.after is not None:
            before = document.markdown.find_section(heading.after)
            if before is None or before.line > section.line:
                found = "it before" if before else f"no section {heading.after!r}"
                yield f"{section.title!r} after {heading.after!r}", found


Format = Literal["auto", "json", "yaml", "toml", "python", "markdown", "xml"]


class Syntax(StrictModel):
    """A format, and the fenced blocks (a language, or the n-th) that must parse instead of the whole file."""

    format: Format
    block: str | Annotated[int, Field(ge=1)] | None = None


def _wrap_format(value: Any) -> Any:
    return {"format": value} if isinstance(value, str) else value


class Parses(ContentCheck):
    """The artifact, or the fenced blocks named, can be read as the format; `auto` goes by the file's name."""

    parses: Annotated[Syntax, BeforeValidator(_wrap_format, json_schema_input_type=Format | Syntax)]

    def run(self, context: Context) -> Iterable[Finding]:
        document = context.document()
        format_name = document.detect_format(self.parses.format)
        pieces = [(document.text, 1)]
        if self.parses.block is not None:
            pieces = [(block.text, block.line) for block in document.find_blocks(self.parses.block)]
        for text, line in pieces:
            if error := find_syntax_error(text, format_name):
                where = document.line(line + error.line - 1)
                yield Finding(expected=error.expected, found=error.found, where=where)


class Range(StrictModel):
    """At least `min`, at most `max`."""

    min: Count | None = None
    max: Count | None = None

    @model_validator(mode="after")
    def _validate_order(self) -> Range:
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError(f"expected min <= max, found {self.min} > {self.max}")
        return self

    def describe(self, noun: str) -> str:
        if self.max is None:
            return f"at least {self.min or 0:,} {noun}"
        return f"at most {self.max:,} {noun}" if not self.min else f"{self.min:,} to {self.max:,} {noun}"

    def __contains__(self, number: int) -> bool:
        return (self.min or 0) <= number and (self.max is None or number <= self.max)


class Sizes(StrictModel):
    """Ranges of what is counted."""

    lines: Range | None = None
    words: Range | None = None
    bytes: Range | None = None


class Size(ContentCheck):
    """The artifact has a number of lines, words or bytes within the range."""

    size: Sizes

    def run(self, context: Context) -> Iterable[Finding]:
        if self.size.bytes:
            path = context.resolve_artifact()
            if not path.is_file():
                raise ContentError(1, "a file", "a directory" if path.is_dir() else "none")
            shown = context.documents.display_path(path)
            yield from _check_range(self.size.bytes, path.stat().st_size, "bytes", shown)
        if self.size.lines or self.size.words:
            document = context.document()
            yield from _check_range(self.size.lines, len(document.text.splitlines()), "lines", document.shown)
            yield from _check_range(self.size.words, len(document.text.split()), "words", document.shown)


def _check_range(allowed: Range | None, number: int, noun: str, where: str) -> Iterator[Finding]:
    if allowed is not None and number not in allowed:
        yield Finding(expected=allowed.describe(noun), found=f"{number:,}", where=where)


class Links(ContentCheck):
    """Relative links, images and anchors of the artifact lead somewhere inside the project."""

    links: Literal[True]

    def depends_on(self, context: Context) -> Inputs | None:  # noqa: ARG002 - the targets are inputs too
        return None

    def run(self, context: Context) -> Iterable[Finding]:
        document = context.document()
        for link in document.markdown.links:
            if problem := _find_link_problem(link.target, document, context):
                expected = f"the link {link.target!r} to lead somewhere"
                yield Finding(expected=expected, found=problem, where=document.line(link.line))


def _find_link_problem(link: str, document: Document, context: Context) -> str | None:
    """Return why a relative link leads nowhere, or None; ignore links with a scheme or a host."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return None
    target = document.path
    if parts.path:
        path = unquote(parts.path)
        bases = [context.root] if path.startswith("/") else _list_bases(document, context)
        try:
            targets = [context.resolve_inside(base / path.lstrip("/")) for base in bases]
        except CheckError:
            return "a path out of the project"
        existing = [target for target in targets if target.exists()]
        if not existing:
            return "no such file"
        target = existing[0]
    return _find_anchor_problem(unquote(parts.fragment), target, document, context)


def _list_bases(document: Document, context: Context) -> list[Path]:
    """Return the folders that links may start from; add the root for the document of a run, which is copied there."""
    folder = document.path.parent
    is_hidden = context.documents.display_path(folder).startswith(".")
    return [folder, context.root] if is_hidden and folder != context.root else [folder]


def _find_anchor_problem(anchor: str, target: Path, document: Document, context: Context) -> str | None:
    if not anchor or (target != document.path and target.suffix.lower() not in (".md", ".markdown")):
        return None
    markdown = (document if target == document.path else context.documents.read(target)).markdown
    return None if anchor.casefold() in {name.casefold() for name in markdown.anchors} else "no such heading"
