"""What the artifact is made of: sections, syntax, size, links."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal
from urllib.parse import unquote, urlsplit

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from pytest_loop.core.model.rules import Finding
from pytest_loop.errors import CheckError
from pytest_loop.rules.checks.check import Check, Context, Count, Inputs
from pytest_loop.rules.document import Document, find_syntax_error
from pytest_loop.rules.markdown_document import Link, MarkdownDocument, Section
from pytest_loop.rules.syntax import ContentError


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)


class Heading(_Part):
    """A section that must exist: its heading, how many words it needs, which heading stands before it."""

    heading: Annotated[str, Field(min_length=1)]
    words: Count | None = None
    after: str | None = None


def _heading(value: Any) -> Any:
    return {"heading": value} if isinstance(value, str) else value


_HEADING_SCHEMA = {
    "anyOf": [
        {"type": "string", "minLength": 1},
        {
            "type": "object",
            "properties": {
                "heading": {"type": "string", "minLength": 1},
                "words": {"type": "integer", "minimum": 0},
                "after": {"type": "string"},
            },
            "required": ["heading"],
            "additionalProperties": False,
        },
    ]
}


class Sections(Check):
    """The headings exist and their sections say something: at least one word, or `words`."""

    reads_artifact: ClassVar[bool] = True
    is_quiet: ClassVar[bool] = True

    sections: Annotated[
        list[Annotated[Heading, BeforeValidator(_heading), WithJsonSchema(_HEADING_SCHEMA)]], Field(min_length=1)
    ]
    in_order: bool = False
    words: Count = 1

    def run(self, context: Context) -> Iterable[Finding]:
        document = context.document()
        last: Section | None = None
        for wanted in self.sections:
            section = document.markdown.section(wanted.heading)
            if section is None:
                yield Finding(expected=f"a section {wanted.heading!r}", found="none", where=document.shown)
                continue
            yield from self._judged(document, wanted, section, last)
            last = section

    def _judged(self, document: Document, wanted: Heading, section: Section, last: Section | None) -> Iterator[Finding]:
        where = document.line(section.line)
        words = self.words if wanted.words is None else wanted.words
        if section.words < words:
            least = f"{words} words" if words != 1 else "some text"
            yield Finding(
                expected=f"{least} in the section {section.title!r}", found=f"{section.words or 'nothing'}", where=where
            )
        if self.in_order and last and section.line < last.line:
            yield Finding(expected=f"{section.title!r} after {last.title!r}", found="it before", where=where)
        if wanted.after is not None:
            before = document.markdown.section(wanted.after)
            if before is None or before.line > section.line:
                found = "it before" if before else f"no section {wanted.after!r}"
                yield Finding(expected=f"{section.title!r} after {wanted.after!r}", found=found, where=where)


Format = Literal["auto", "json", "yaml", "toml", "python", "markdown", "xml"]


class Syntax(_Part):
    """What must parse: the format, and which fenced blocks (a language, or the n-th) instead of the whole file."""

    format: Format
    block: str | Annotated[int, Field(ge=1)] | None = None


def _syntax(value: Any) -> Any:
    return {"format": value} if isinstance(value, str) else value


_SYNTAX_SCHEMA = {
    "anyOf": [
        {"enum": ["auto", "json", "yaml", "toml", "python", "markdown", "xml"]},
        {
            "type": "object",
            "properties": {
                "format": {"enum": ["auto", "json", "yaml", "toml", "python", "markdown", "xml"]},
                "block": {"anyOf": [{"type": "string"}, {"type": "integer", "minimum": 1}]},
            },
            "required": ["format"],
            "additionalProperties": False,
        },
    ]
}


class Parses(Check):
    """The artifact, or the fenced blocks named, can be read as the format; `auto` goes by the file's name."""

    reads_artifact: ClassVar[bool] = True
    is_quiet: ClassVar[bool] = True

    parses: Annotated[Syntax, BeforeValidator(_syntax), WithJsonSchema(_SYNTAX_SCHEMA)]

    def run(self, context: Context) -> Iterable[Finding]:
        document = context.document()
        kind = document.format(self.parses.format)
        if self.parses.block is None:
            pieces = [(document.text, 1)]
        else:
            pieces = [(block.text, block.line) for block in document.blocks(self.parses.block)]
        for text, line in pieces:
            if problem := find_syntax_error(text, kind):
                yield Finding(
                    expected=problem.expected, found=problem.found, where=document.line(line + problem.line - 1)
                )


class Range(_Part):
    """At least `min`, at most `max`."""

    min: Count | None = None
    max: Count | None = None

    @model_validator(mode="after")
    def _ordered(self) -> Range:
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError(f"expected min <= max, found {self.min} > {self.max}")
        return self

    def expected(self, noun: str) -> str:
        if self.max is None:
            return f"at least {self.min or 0:,} {noun}"
        return f"at most {self.max:,} {noun}" if not self.min else f"{self.min:,} to {self.max:,} {noun}"

    def __contains__(self, number: int) -> bool:
        return (self.min or 0) <= number and (self.max is None or number <= self.max)


class Sizes(_Part):
    """What is counted."""

    lines: Range | None = None
    words: Range | None = None
    bytes: Range | None = None


class Size(Check):
    """The artifact has a number of lines, words or bytes within the range."""

    reads_artifact: ClassVar[bool] = True
    is_quiet: ClassVar[bool] = True

    size: Sizes

    def run(self, context: Context) -> Iterable[Finding]:
        if self.size.bytes:
            path = context.path()
            if not path.is_file():
                raise ContentError(1, "a file", "a directory" if path.is_dir() else "none")
            yield from _outside(self.size.bytes, path.stat().st_size, "bytes", context.documents.shown(path))
        if self.size.lines or self.size.words:
            document = context.document()
            yield from _outside(self.size.lines, document.line_count, "lines", document.shown)
            yield from _outside(self.size.words, len(document.text.split()), "words", document.shown)


def _outside(allowed: Range | None, number: int, noun: str, where: str) -> Iterator[Finding]:
    if allowed is not None and number not in allowed:
        yield Finding(expected=allowed.expected(noun), found=f"{number:,}", where=where)


class Links(Check):
    """Relative links, images and anchors of the artifact lead somewhere inside the project."""

    reads_artifact: ClassVar[bool] = True
    is_quiet: ClassVar[bool] = True

    links: Literal[True]

    def depends_on(self, context: Context) -> Inputs | None:  # noqa: ARG002 - on what is at the other end, too
        return None

    def run(self, context: Context) -> Iterable[Finding]:
        document = context.document()
        for link in document.markdown.links:
            problem = _dead(link, document, context)
            if problem:
                yield Finding(
                    expected=f"the link {link.target!r} to lead somewhere",
                    found=problem,
                    where=document.line(link.line),
                )


def _dead(link: Link, document: Document, context: Context) -> str | None:
    """Why a relative link leads nowhere; links with a scheme or a host are not ours to follow."""
    parts = urlsplit(link.target)
    if parts.scheme or parts.netloc:
        return None
    target = document.path
    if parts.path:
        path = unquote(parts.path)
        target = context.root / path.lstrip("/") if path.startswith("/") else document.path.parent / path
        try:
            target = context.inside(target)
        except CheckError:
            return "a path out of the project"
        if not target.exists():
            return "no such file"
    return _dead_anchor(unquote(parts.fragment), target, document, context)


def _dead_anchor(anchor: str, target: Path, document: Document, context: Context) -> str | None:
    if not anchor or (target != document.path and target.suffix.lower() not in (".md", ".markdown")):
        return None
    markdown: MarkdownDocument = (
        document.markdown if target == document.path else context.documents.read(target).markdown
    )
    return None if anchor.casefold() in {name.casefold() for name in markdown.anchors} else "no such heading"
