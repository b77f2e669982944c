"""Texts and patterns that must or must not stand in the artifact."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Annotated, Any, ClassVar

from pydantic import ConfigDict, Field, model_validator

from pytest_loop.core.model.rules import Finding
from pytest_loop.rules import patterns
from pytest_loop.rules.checks.check import Check, Context, Count, TextList, format_value
from pytest_loop.rules.document import Document
from pytest_loop.rules.syntax import ContentError


class _Part:
    """The text that a check looks at: the whole artifact, or one section of it."""

    def __init__(self, document: Document, section: str | None) -> None:
        self.document = document
        self.name = document.shown
        self.text = document.text
        self.start = 0
        self.whole = section is None
        if section is not None:
            found = document.markdown.section(section)
            if found is None:
                raise ContentError(1, f"a section {section!r}", "none")
            self.name = document.line(found.line)
            self.text, self.start = found.text, found.start

    @property
    def folded(self) -> str:
        return self.document.folded if self.whole else self.text.casefold()

    def at(self, offset: int) -> str:
        return self.document.at(self.start + offset)


class _Content(Check):
    reads_artifact: ClassVar[bool] = True
    is_quiet: ClassVar[bool] = True

    section: str | None = Field(default=None, description="look only below this Markdown heading")
    ignore_case: bool = False

    @abstractmethod
    def _wanted(self) -> list[str]:
        """The texts or patterns that the check names."""

    @abstractmethod
    def _places(self, part: _Part, text: str, limit: int) -> list[int]:
        """Where one of them stands, at most `limit` places."""

    @abstractmethod
    def _judged(self, part: _Part, text: str) -> list[Finding]:
        """What is wrong with one of them."""

    def run(self, context: Context) -> Iterable[Finding]:
        part = _Part(context.document(), self.section)
        return [finding for text in self._wanted() for finding in self._judged(part, text)]


class _Texts(_Content):
    """Plain texts: counted without patterns."""

    def _places(self, part: _Part, text: str, limit: int) -> list[int]:
        body, wanted = (part.folded, text.casefold()) if self.ignore_case else (part.text, text)
        places: list[int] = []
        at = 0
        while len(places) < limit and (at := body.find(wanted, at)) >= 0:
            places.append(at)
            at += len(wanted)
        return places


class _Patterns(_Content):
    """Regular expressions: matched within a deadline."""

    @model_validator(mode="after")
    def _compile(self) -> Any:
        for pattern in self._wanted():
            if problem := patterns.find_pattern_error(pattern):
                raise ValueError(f"expected a regular expression, found {problem}")
        return self

    def _places(self, part: _Part, text: str, limit: int) -> list[int]:
        found = patterns.find_matches(text, part.text, limit=limit, ignore_case=self.ignore_case)
        return [match.start for match in found]


class _Present(_Content):
    """Must stand there often enough, and not too often."""

    min_matches: Count = 1
    max_matches: Count | None = None

    def _judged(self, part: _Part, text: str) -> list[Finding]:
        most = self.max_matches
        places = self._places(part, text, max(self.min_matches, 1) if most is None else most + 1)
        if len(places) < self.min_matches:
            found = f"{len(places)}" if places else "it nowhere"
            times = f" at least {self.min_matches} times" if self.min_matches > 1 else ""
            return [Finding(expected=f"{self._noun} {format_value(text)}{times}", found=found, where=part.name)]
        if most is not None and len(places) > most:
            where = part.at(places[most])
            return [
                Finding(
                    expected=f"{self._noun} {format_value(text)} at most {most} times", found="one more", where=where
                )
            ]
        return []

    _noun: ClassVar[str] = "the text"


class _Absent(_Content):
    """Must not stand there at all; each place is named."""

    def _judged(self, part: _Part, text: str) -> list[Finding]:
        places = self._places(part, text, 5)
        return [
            Finding(expected=f"no {self._noun} {format_value(text)}", found="it", where=part.at(at)) for at in places
        ]

    _noun: ClassVar[str] = "text"


class Contains(_Texts, _Present):
    """Every text stands in the artifact."""

    contains: TextList

    def _wanted(self) -> list[str]:
        return self.contains


class Absent(_Texts, _Absent):
    """None of the texts stands in the artifact."""

    absent: TextList

    def _wanted(self) -> list[str]:
        return self.absent


class Matches(_Patterns, _Present):
    """Every regular expression matches in the artifact; `^` and `$` are the ends of lines."""

    matches: TextList
    _noun: ClassVar[str] = "a match of"

    def _wanted(self) -> list[str]:
        return self.matches


class NotMatches(_Patterns, _Absent):
    """None of the regular expressions matches in the artifact."""

    not_matches: TextList
    _noun: ClassVar[str] = "match of"

    def _wanted(self) -> list[str]:
        return self.not_matches


class Search(Check):
    """The form of other loop tools, `{type: content, search, expected}`: a pattern, or a text where it is not one."""

    model_config = ConfigDict(extra="allow")
    reads_artifact: ClassVar[bool] = True
    is_quiet: ClassVar[bool] = True

    search: Annotated[str, Field(min_length=1)]
    negate: bool = False
    min_matches: Count = 1
    flags: str = ""

    def run(self, context: Context) -> Iterable[Finding]:
        plain = patterns.find_pattern_error(self.search) is not None
        common: dict[str, Any] = {"ignore_case": "i" in self.flags.casefold()}
        if self.negate:
            check: Check = (
                Absent(absent=[self.search], **common) if plain else NotMatches(not_matches=[self.search], **common)
            )
        else:
            common["min_matches"] = self.min_matches
            check = Contains(contains=[self.search], **common) if plain else Matches(matches=[self.search], **common)
        return check.run(context)
