"""Checks for texts and patterns that must or must not occur in the artifact."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Annotated, Any, ClassVar

from pydantic import ConfigDict, Field, model_validator

from pytest_loop.core.model.rules import Finding
from pytest_loop.rules import patterns
from pytest_loop.rules.checks.check import ContentCheck, Context, Count, TextList, format_value
from pytest_loop.rules.document import Document
from pytest_loop.rules.syntax import ContentError

MAX_PLACES = 5


class _Scope:
    """The text that a check searches: the whole artifact, or one section of it."""

    def __init__(self, document: Document, heading: str | None) -> None:
        self.document = document
        self.name = document.shown
        self.text = document.text
        self.start = 0
        self.is_section = heading is not None
        if heading is not None:
            section = document.markdown.find_section(heading)
            if section is None:
                raise ContentError(1, f"a section {heading!r}", "none")
            self.name = document.line(section.line)
            self.text, self.start = section.text, section.start

    @property
    def casefolded(self) -> str:
        return self.text.casefold() if self.is_section else self.document.casefolded

    def locate(self, offset: int) -> str:
        return self.document.locate(self.start + offset)


class _SearchCheck(ContentCheck):
    """Search for every text or pattern under the kind's key, whose name is that of the subclass's field."""

    section: str | None = Field(default=None, description="look only below this Markdown heading")
    ignore_case: bool = False

    key: ClassVar[str]
    noun: ClassVar[str]

    @abstractmethod
    def _search(self, scope: _Scope, term: str, limit: int) -> list[int]:
        """Return at most `limit` offsets of a term."""

    @abstractmethod
    def _judge(self, scope: _Scope, term: str) -> list[Finding]:
        """Return the problems with one term."""

    @property
    def _terms(self) -> list[str]:
        return getattr(self, self.key)  # type: ignore[no-any-return]

    def run(self, context: Context) -> Iterable[Finding]:
        scope = _Scope(context.document(), self.section)
        return [finding for term in self._terms for finding in self._judge(scope, term)]


class _TextSearch(_SearchCheck):
    def _search(self, scope: _Scope, term: str, limit: int) -> list[int]:
        text, term = (scope.casefolded, term.casefold()) if self.ignore_case else (scope.text, term)
        offsets: list[int] = []
        start = 0
        while len(offsets) < limit and (start := text.find(term, start)) >= 0:
            offsets.append(start)
            start += len(term)
        return offsets


class _PatternSearch(_SearchCheck):
    @model_validator(mode="after")
    def _validate_patterns(self) -> Any:
        for pattern in self._terms:
            patterns.validate_pattern(pattern)
        return self

    def _search(self, scope: _Scope, term: str, limit: int) -> list[int]:
        matches = patterns.find_matches(term, scope.text, limit=limit, ignore_case=self.ignore_case)
        return [match.start for match in matches]


class _Required(_SearchCheck):
    min_matches: Count = 1
    max_matches: Count | None = None

    def _judge(self, scope: _Scope, term: str) -> list[Finding]:
        most = self.max_matches
        offsets = self._search(scope, term, max(self.min_matches, 1) if most is None else most + 1)
        expected = f"{self.noun} {format_value(term)}"
        if len(offsets) < self.min_matches:
            found = f"{len(offsets)}" if offsets else "it nowhere"
            times = f" at least {self.min_matches} times" if self.min_matches > 1 else ""
            return [Finding(expected=f"{expected}{times}", found=found, where=scope.name)]
        if most is not None and len(offsets) > most:
            where = scope.locate(offsets[most])
            return [Finding(expected=f"{expected} at most {most} times", found="one more", where=where)]
        return []


class _Forbidden(_SearchCheck):
    def _judge(self, scope: _Scope, term: str) -> list[Finding]:
        expected = f"no {self.noun} {format_value(term)}"
        offsets = self._search(scope, term, MAX_PLACES)
        return [Finding(expected=expected, found="it", where=scope.locate(offset)) for offset in offsets]


class Contains(_TextSearch, _Required):
    """Every text stands in the artifact."""

    key: ClassVar[str] = "contains"
    noun: ClassVar[str] = "the text"

    contains: TextList


class Absent(_TextSearch, _Forbidden):
    """None of the texts stands in the artifact."""

    key: ClassVar[str] = "absent"
    noun: ClassVar[str] = "text"

    absent: TextList


class Matches(_PatternSearch, _Required):
    """Every regular expression matches in the artifact; `^` and `$` are the ends of lines."""

    key: ClassVar[str] = "matches"
    noun: ClassVar[str] = "a match of"

    matches: TextList


class NotMatches(_PatternSearch, _Forbidden):
    """None of the regular expressions matches in the artifact."""

    key: ClassVar[str] = "not_matches"
    noun: ClassVar[str] = "match of"

    not_matches: TextList


class Search(ContentCheck):
    """The form of other loop tools, `{type: content, search, expected}`: a pattern, or a text where it is not one."""

    model_config = ConfigDict(extra="allow")

    search: Annotated[str, Field(min_length=1)]
    negate: bool = False
    min_matches: Count = 1
    flags: str = ""

    def run(self, context: Context) -> Iterable[Finding]:
        is_text = patterns.find_pattern_error(self.search) is not None
        options: dict[str, Any] = {"ignore_case": "i" in self.flags.casefold()}
        kind: type[_SearchCheck] = Absent if is_text else NotMatches
        if not self.negate:
            kind = Contains if is_text else Matches
            options["min_matches"] = self.min_matches
        return kind.model_validate({kind.key: [self.search], **options}).run(context)
