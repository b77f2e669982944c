"""The analysis by a composer (an agent that proposes edits): a root cause and three options, and its validation."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Annotated, Any, NamedTuple

from pydantic import BeforeValidator, Field, StringConstraints, ValidationError

from pytest_loop.core.model.rules import Value
from pytest_loop.core.text.lengths import shorten

OPTION_COUNT = 3
MIN_MECHANISM_WORDS = 4
_HEADING = re.compile(r"^(#{1,6})[ \t]+(.*?)[ \t#]*$", re.MULTILINE)

StrippedText = Annotated[str, StringConstraints(strip_whitespace=True)]
NonEmptyText = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class OptionConfidence(str, Enum):
    """The composer's confidence in an option."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


def _parse_confidence(value: Any) -> Any:
    """Accept abbreviations and capitals too."""
    text = str(value).strip().lower()
    return next((level for level in OptionConfidence if text and level.value.startswith(text)), value)


class EditOption(Value):
    """One way to fix the root cause: replace the text `current` by `proposed`, which improves or breaks cases."""

    name: NonEmptyText
    mechanism: StrippedText = ""
    file: NonEmptyText
    section: StrippedText = ""
    current: str = ""
    proposed: str = ""
    improves: tuple[str, ...] = ()
    regresses: tuple[str, ...] = ()
    risk: StrippedText = ""
    confidence: Annotated[OptionConfidence, BeforeValidator(_parse_confidence)] = OptionConfidence.MEDIUM

    @property
    def edit(self) -> tuple[str, str, str]:
        return self.file, self.current, self.proposed

    @property
    def place(self) -> str:
        """The file, with its section if there is one."""
        return f"{self.file}, {self.section}" if self.section else self.file


class Claim(Value):
    """The composer's hypothesis; a plain sentence is its theory."""

    theory: NonEmptyText
    observation: StrippedText = ""
    mechanism: StrippedText = ""
    prediction: tuple[str, ...] = ()


def _parse_claim(value: Any) -> Any:
    return {"theory": value} if isinstance(value, str) else value


class Analysis(Value):
    """The answer of a composer; it recommends the first option."""

    root_cause: NonEmptyText
    hypothesis: Annotated[Claim, BeforeValidator(_parse_claim)]
    options: Annotated[tuple[EditOption, ...], Field(min_length=OPTION_COUNT, max_length=OPTION_COUNT)]


class TriedEdit(Value):
    """An edit of an earlier iteration, and the cases that failed at that time."""

    edit: tuple[str, str, str]
    failing: frozenset[str]


class AnalysisContext(Value):
    """The facts for checking an answer: editable files, visible cases, failing cases and earlier edits."""

    files: dict[str, str]
    cases: frozenset[str]
    failing: frozenset[str] = frozenset()
    tried: tuple[TriedEdit, ...] = ()


class AnswerReview(NamedTuple):
    """An accepted analysis, or the reasons to reject the answer."""

    analysis: Analysis | None
    reasons: tuple[str, ...] = ()


def review_answer(data: Any, context: AnalysisContext) -> AnswerReview:
    """Parse the answer of a composer and check it for flaws."""
    try:
        analysis = Analysis.model_validate(data)
    except ValidationError as error:
        return AnswerReview(None, tuple(map(_describe_error, error.errors(include_url=False))))
    reasons = tuple(_find_flaws(analysis, context))
    return AnswerReview(None if reasons else analysis, reasons)


def _describe_error(error: Any) -> str:
    where = ".".join(map(str, error["loc"])) or "the answer"
    if error["loc"] == ("options",) and error["type"] in ("too_short", "too_long"):
        return f"expected exactly {OPTION_COUNT} options, found {error['ctx']['actual_length']}"
    value = "none" if error["type"] == "missing" else shorten(repr(error["input"]), 60)
    return f"{where}: {shorten(error['msg'])}, found {value}"


def _find_flaws(analysis: Analysis, context: AnalysisContext) -> Iterator[str]:
    edits = [option.edit for option in analysis.options]
    for number, option in enumerate(analysis.options, 1):
        name = f"option {number} ({shorten(option.name, 60)})"
        for flaw in _find_option_flaws(option, context):
            yield f"{name}: {flaw}"
        if option.edit in edits[: number - 1]:
            yield f"{name}: expected an edit of its own, found one from above"
    for case in analysis.hypothesis.prediction:
        if case not in context.cases:
            yield f"hypothesis: expected cases of this workload in its prediction, found {case!r}"


def _find_option_flaws(option: EditOption, context: AnalysisContext) -> Iterator[str]:
    if _is_vague(option):
        yield f"expected a mechanism (why the edit changes what comes out), found {shorten(option.mechanism, 60)!r}"
    if not option.improves:
        yield "expected the cases that it improves, found none"
    for case in (*option.improves, *option.regresses):
        if case not in context.cases:
            yield f"expected cases of this workload, found {case!r}"
    if not option.risk:
        yield "expected a risk, found none"
    if problem := _find_edit_problem(option, context.files):
        yield problem
    elif TriedEdit(edit=option.edit, failing=context.failing) in context.tried:
        yield "expected an edit that was not tried when the same cases failed, found one that was"


def _is_vague(option: EditOption) -> bool:
    """Return whether the mechanism is short, or only repeats the name or the proposed text."""
    mechanism = option.mechanism.casefold()
    repetitions = (option.name.casefold(), option.proposed.strip().casefold())
    return len(mechanism.split()) < MIN_MECHANISM_WORDS or mechanism in repetitions


def _find_edit_problem(option: EditOption, files: Mapping[str, str]) -> str | None:
    if option.file not in files:
        return f"expected one of {', '.join(sorted(files))} as the file, found {option.file!r}"
    if option.current == option.proposed:
        return "expected a proposed text that differs from the current one, found the same"
    count = len(_find_positions(files[option.file], option))
    if count != 1:
        times = f"it {count} times" if count else "none"
        return f"expected the current text once in {option.file}, found {times}: {shorten(option.current, 60)!r}"
    return None


def apply_edit(text: str, option: EditOption) -> str:
    """Apply the edit of an accepted option to its file."""
    (position,) = _find_positions(text, option)
    return text[:position] + option.proposed + text[position + len(option.current) :]


def _find_positions(text: str, option: EditOption) -> list[int]:
    """Return the positions of the text to replace: anywhere if it is unique, or else in the section of the option.

    An option without such a text adds to the end of its section.
    """
    start, end = _find_section(text, option.section)
    if not option.current:
        return [end]
    positions = [match.start() for match in re.finditer(re.escape(option.current), text)]
    if len(positions) == 1:
        return positions
    return [position for position in positions if start <= position <= end - len(option.current)]


def _find_section(text: str, name: str) -> tuple[int, int]:
    """Return the range from a heading to the next one of its level or above; without such a heading, the whole text."""
    headings = list(_HEADING.finditer(text))
    title = name.strip("# ").casefold()
    for number, heading in enumerate(headings, 1):
        if title and heading[2].casefold() == title:
            ends = (other.start() for other in headings[number:] if len(other[1]) <= len(heading[1]))
            return heading.start(), next(ends, len(text))
    return 0, len(text)
