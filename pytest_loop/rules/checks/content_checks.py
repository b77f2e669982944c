"""Checks for texts and patterns that must or must not occur in the artifact."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar

from pydantic import ConfigDict, Field, model_validator

from pytest_loop.core.model.rules import Finding
from pytest_loop.rules import patterns
from pytest_loop.rules.checks.check import ContentCheck, Context, Count, Text, TextList, format_value
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
        """Return `file:line` of an offset in the text of the scope."""
        return self.document.locate(self.start + offset)


class _SearchCheck(ContentCheck):
    """Search for the terms, texts or patterns, in the field `field_name`; `noun` names a term in messages."""

    section: str | None = Field(default=None, description="look only below this Markdown heading")
    ignore_case: bool = False

    field_name: ClassVar[str]
    noun: ClassVar[str]
    has_patterns: ClassVar[bool] = False

    @model_validator(mode="after")
    def _validate_patterns(self) -> Any:
        if self.has_patterns:
            for pattern in self._terms:
                patterns.validate_pattern(pattern)
        return self

    @property
    def _terms(self) -> list[str]:
        terms: list[str] = getattr(self, self.field_name)
        return terms

    def _find_label(self, term: str) -> str:
        return patterns.find_label(term) if self.has_patterns else ""

    @abstractmethod
    def _find_problems(self, scope: _Scope, term: str) -> list[Finding]:
        """Return the problems with one term."""

    def run(self, context: Context) -> Iterable[Finding]:
        scope = _Scope(context.document(), self.section)
        return [finding for term in self._terms for finding in self._find_problems(scope, term)]

    def _search(self, scope: _Scope, term: str, limit: int) -> list[int]:
        """Return at most `limit` offsets of a term."""
        if self.has_patterns:
            matches = patterns.find_matches(term, scope.text, limit=limit, ignore_case=self.ignore_case)
            return [match.start for match in matches]
        text, term = (scope.casefolded, term.casefold()) if self.ignore_case else (scope.text, term)
        offsets: list[int] = []
        start = 0
        while len(offsets) < limit and (start := text.find(term, start)) >= 0:
            offsets.append(start)
            start += len(term)
        return offsets

    def _report_matches(self, scope: _Scope, term: str) -> list[Finding]:
        """Return a finding for each of the first `MAX_PLACES` matches of a term."""
        label = self._find_label(term)
        noun = self.noun.removeprefix("the ").removeprefix("a ")
        expected, found = ("no match", label) if label else (f"no {noun} {format_value(term)}", "it")
        offsets = self._search(scope, term, MAX_PLACES)
        return [Finding(expected=expected, found=found, where=scope.locate(offset)) for offset in offsets]


class RequiredTerms(_SearchCheck):
    """Every term occurs, in a number of places within a range."""

    min_matches: Count = 1
    max_matches: Count | None = None

    def list_matches(self, context: Context) -> list[Finding]:
        """Return a finding for each match of the terms: `not` reports them."""
        scope = _Scope(context.document(), self.section)
        return [finding for term in self._terms for finding in self._report_matches(scope, term)]

    def _find_problems(self, scope: _Scope, term: str) -> list[Finding]:
        limit = self.max_matches
        offsets = self._search(scope, term, max(self.min_matches, 1) if limit is None else limit + 1)
        expected = self._find_label(term) or f"{self.noun} {format_value(term)}"
        if len(offsets) < self.min_matches:
            found = f"{len(offsets)}" if offsets else "it nowhere"
            times = f" at least {self.min_matches} times" if self.min_matches > 1 else ""
            return [Finding(expected=f"{expected}{times}", found=found, where=scope.name)]
        if limit is not None and len(offsets) > limit:
            where = scope.locate(offsets[limit])
            return [Finding(expected=f"{expected} at most {limit} times", found="one more", where=where)]
        return []


class _ForbiddenTerms(_SearchCheck):
    def _find_problems(self, scope: _Scope, term: str) -> list[Finding]:
        return self._report_matches(scope, term)


class Contains(RequiredTerms):
    """Every text stands in the artifact."""

    field_name: ClassVar[str] = "contains"
    noun: ClassVar[str] = "the text"

    contains: TextList


class Absent(_ForbiddenTerms):
    """None of the texts stands in the artifact."""

    field_name: ClassVar[str] = "absent"
    noun: ClassVar[str] = "text"

    absent: TextList


class Matches(RequiredTerms):
    """Every regular expression matches in the artifact; `^` and `$` are the ends of lines."""

    field_name: ClassVar[str] = "matches"
    noun: ClassVar[str] = "a match of"
    has_patterns: ClassVar[bool] = True

    matches: TextList


class NotMatches(_ForbiddenTerms):
    """None of the regular expressions matches in the artifact."""

    field_name: ClassVar[str] = "not_matches"
    noun: ClassVar[str] = "match of"
    has_patterns: ClassVar[bool] = True

    not_matches: TextList


class Search(ContentCheck):
    """The form of other loop tools, `{type: content, search, expected}`: a pattern, or a text where it is not one."""

    model_config = ConfigDict(extra="allow")

    search: Text
    negate: bool = False
    min_matches: Count = 1
    flags: str = ""

    def run(self, context: Context) -> Iterable[Finding]:
        is_text = patterns.find_pattern_error(self.search) is not None
        options: dict[str, Any] = {"ignore_case": "i" in self.flags.casefold()}
        model: type[_SearchCheck] = Absent if is_text else NotMatches
        if not self.negate:
            model = Contains if is_text else Matches
            options["min_matches"] = self.min_matches
        return model.model_validate({model.field_name: [self.search], **options}).run(context)
