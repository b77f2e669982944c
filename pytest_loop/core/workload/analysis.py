"""What a composer answers: a root cause and three ways to mend it; and why an answer is sent back."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Annotated, Any, NamedTuple

from pydantic import BeforeValidator, Field, StringConstraints, ValidationError

from pytest_loop.core.model.rules import Value
from pytest_loop.core.text.lengths import shorten

OPTIONS = 3
MOST_REFUSALS = 2
FEWEST_WORDS = 4
_HEADING = re.compile(r"^(#{1,6})[ \t]+(.*?)[ \t#]*$", re.MULTILINE)

StrippedText = Annotated[str, StringConstraints(strip_whitespace=True)]
NonEmptyText = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class Confidence(str, Enum):
    """How sure a composer is."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


def _confidence(value: Any) -> Any:
    """Also by its first letter, and in capitals."""
    text = str(value).strip().lower()
    return next((one for one in Confidence if text and one.value.startswith(text)), value)


class Option(Value):
    """One way to mend the root cause: why it works, the edit, and which cases it makes better or worse."""

    name: NonEmptyText
    mechanism: StrippedText = ""
    file: NonEmptyText
    section: StrippedText = ""
    current: str = ""
    proposed: str = ""
    improves: tuple[str, ...] = ()
    regresses: tuple[str, ...] = ()
    risk: StrippedText = ""
    confidence: Annotated[Confidence, BeforeValidator(_confidence)] = Confidence.MEDIUM

    @property
    def edit(self) -> tuple[str, str, str]:
        return self.file, self.current, self.proposed


class Claim(Value):
    """What a composer believes; a plain sentence is its theory."""

    theory: NonEmptyText
    observation: StrippedText = ""
    mechanism: StrippedText = ""
    prediction: tuple[str, ...] = ()


def _claim(value: Any) -> Any:
    return {"theory": value} if isinstance(value, str) else value


class Analysis(Value):
    """The answer of a composer: the first option is the one that it recommends."""

    root_cause: NonEmptyText
    hypothesis: Annotated[Claim, BeforeValidator(_claim)]
    options: Annotated[tuple[Option, ...], Field(min_length=OPTIONS, max_length=OPTIONS)]


class TriedEdit(Value):
    """An edit of an earlier iteration, and the cases that failed when it was made."""

    edit: tuple[str, str, str]
    failing: frozenset[str]


class AnalysisContext(Value):
    """What an analysis is about: the files that may be edited, the cases that a composer knows, and what was tried."""

    files: dict[str, str]
    cases: frozenset[str]
    failing: frozenset[str] = frozenset()
    tried: tuple[TriedEdit, ...] = ()


class AnswerReview(NamedTuple):
    """What becomes of an answer: an analysis, or reasons to send it back; `is_final` where it was sent back before."""

    analysis: Analysis | None
    reasons: tuple[str, ...] = ()
    is_final: bool = False


def review_answer(data: Any, ground: AnalysisContext, times: int = 1) -> AnswerReview:
    """Read an answer that is the `times`-th in its iteration; an answer with a flaw is sent back once."""
    try:
        analysis = Analysis.model_validate(data)
    except ValidationError as error:
        reasons = tuple(_reason(one) for one in error.errors(include_url=False))
    else:
        reasons = tuple(find_flaws(analysis, ground))
        if not reasons:
            return AnswerReview(analysis)
    return AnswerReview(None, reasons, times >= MOST_REFUSALS)


def _reason(one: Any) -> str:
    where = ".".join(map(str, one["loc"])) or "the answer"
    if one["loc"] == ("options",) and one["type"] in ("too_short", "too_long"):
        return f"expected exactly {OPTIONS} options, found {one['ctx']['actual_length']}"
    found = "none" if one["type"] == "missing" else shorten(repr(one["input"]), 60)
    return f"{where}: {shorten(one['msg'])}, found {found}"


def find_flaws(analysis: Analysis, ground: AnalysisContext) -> Iterator[str]:
    """Everything that keeps an analysis from being used."""
    edits = [option.edit for option in analysis.options]
    for number, option in enumerate(analysis.options, 1):
        for reason in _flaws(option, ground):
            yield f"option {number} ({shorten(option.name, 60)}): {reason}"
        if option.edit in edits[: number - 1]:
            yield f"option {number} ({shorten(option.name, 60)}): expected an edit of its own, found one from above"
    for case in analysis.hypothesis.prediction:
        if case not in ground.cases:
            yield f"hypothesis: expected cases of this workload in its prediction, found {case!r}"


def _flaws(option: Option, ground: AnalysisContext) -> Iterator[str]:
    if _is_vague(option):
        yield f"expected a mechanism (why the edit changes what comes out), found {shorten(option.mechanism, 60)!r}"
    if not option.improves:
        yield "expected the cases that it improves, found none"
    for case in (*option.improves, *option.regresses):
        if case not in ground.cases:
            yield f"expected cases of this workload, found {case!r}"
    if not option.risk:
        yield "expected a risk, found none"
    if problem := _misfit(option, ground.files):
        yield problem
    elif any(one.edit == option.edit and one.failing == ground.failing for one in ground.tried):
        yield "expected an edit that was not tried when the same cases failed, found one that was"


def _is_vague(option: Option) -> bool:
    """A mechanism is a sentence of its own."""
    words = option.mechanism.casefold()
    return len(words.split()) < FEWEST_WORDS or words in (option.name.casefold(), option.proposed.strip().casefold())


def _misfit(option: Option, files: Mapping[str, str]) -> str | None:
    if option.file not in files:
        return f"expected one of {', '.join(sorted(files))} as the file, found {option.file!r}"
    if option.current == option.proposed:
        return "expected a proposed text that differs from the current one, found the same"
    places = len(_places(files[option.file], option))
    if places != 1:
        found = "none" if not places else f"it {places} times"
        return f"expected the current text once in {option.file}, found {found}: {shorten(option.current, 60)!r}"
    return None


def apply_edit(text: str, option: Option) -> str:
    """The file with the edit of an option; one that does not fit was refused before."""
    (at,) = _places(text, option)
    return text[:at] + option.proposed + text[at + len(option.current) :]


def _places(text: str, option: Option) -> list[int]:
    """Where the current text stands: anywhere if that is one place, else in its section; where nothing is replaced,
    the end of the section."""
    start, end = _section(text, option.section)
    if not option.current:
        return [end]
    places = _found(text, option.current)
    return places if len(places) == 1 else [at for at in places if start <= at and at + len(option.current) <= end]


def _found(text: str, part: str) -> list[int]:
    return [match.start() for match in re.finditer(re.escape(part), text)]


def _section(text: str, name: str) -> tuple[int, int]:
    """From a heading to the next one of its level or above; the whole text where there is no such heading."""
    headings = list(_HEADING.finditer(text))
    wanted = name.strip("# ").casefold()
    for at, one in enumerate(headings):
        if wanted and one[2].casefold() == wanted:
            following = (other.start() for other in headings[at + 1 :] if len(other[1]) <= len(one[1]))
            return one.start(), next(following, len(text))
    return 0, len(text)
