"""What a person asked for in plain words: the task, when it is done, how often to try, and where to run."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from pytest_loop.inference.command_lines import classify_command
from pytest_loop.inference.tool_purposes import TOOLS, split_names

DEFAULT_COMPLETION = "tests pass"
MOST_ITERATIONS = 200


class Route(str, Enum):
    """Where a run works: before the eyes of the person, or apart, where it survives its terminal."""

    SESSION = "session"
    BACKGROUND = "background"


@dataclass(frozen=True)
class ParsedTask:
    """A task as it was understood; `text` is all that was said, and nothing in it is confirmed by having been said.

    `completion` is when it is done, in the person's words; empty means that it has to be inferred. `commands` are those
    that the person wrote out, as they stand. `needs_context` says that the words point to something said before.
    """

    text: str
    task: str
    completion: str = ""
    commands: tuple[str, ...] = ()
    iteration_limit: int | None = None
    route: Route = Route.SESSION
    needs_context: bool = False
    skips_gates: bool = False


def parse_task(text: str) -> ParsedTask:
    """The task in a text; one without any of the known phrases is the task as it stands."""
    said = text.strip()
    rest, bound = _bounded(said)
    rest, flagged = _flagged(rest)
    task, completion = _triggered(rest)
    completion = flagged or completion
    return ParsedTask(
        text=text,
        task=_tidy(task) or (_implied(completion) if completion else ""),
        completion=completion,
        commands=tuple(dict.fromkeys((*find_commands(said), *_whole_commands(flagged)))),
        iteration_limit=bound,
        route=Route.BACKGROUND if any(one.search(said) for one in _BACKGROUND) else Route.SESSION,
        needs_context=not _tidy(task) and not completion,
        skips_gates=_skips_gates(said),
    )


# -- how often

_NUMBERS = "one two three four five six seven eight nine ten eleven twelve"
_COUNTS = {word: number for number, word in enumerate(_NUMBERS.split(), 1)}
_COUNT = rf"(?P<count>\d{{1,6}}|{'|'.join(_COUNTS)})"
# A phrase counts where a clause begins: "a worker that must stop after 3 cycles" is no bound of the run.
_CLAUSE = r"(?:^|(?<=[\s,;.:(])(?:and|then|but|please)\s+|(?<=[,;.:(\n])\s*|[-\u2013\u2014]\s+)"
_CYCLES = r"(?:cycles?|iterations?|rounds?|loops?)"
_BOUNDS = (
    re.compile(rf"{_CLAUSE}stop after {_COUNT} {_CYCLES}\b[.)]?", re.IGNORECASE),
    re.compile(
        rf"{_CLAUSE}(?:at most|up to|max(?:imum|\.)?(?: of)?|no more than) {_COUNT} {_CYCLES}\b[.)]?", re.IGNORECASE
    ),
    re.compile(rf"(?<!\S)--(?:max-)?iterations[ =]{_COUNT}(?!\S)", re.IGNORECASE),
)


def _bounded(text: str) -> tuple[str, int | None]:
    """The text without the words that say how often to try, and the number in them; nothing is tried without end."""
    for pattern in _BOUNDS:
        found = pattern.search(text)
        count = found["count"].lower() if found else "0"
        number = _COUNTS.get(count) or int(count)
        if found and number:
            rest = f"{text[: found.start()].rstrip(' ,;(')} {text[found.end() :].lstrip(' ,;')}".strip()
            return rest, min(number, MOST_ITERATIONS)
    return text, None


# -- when it is done

_FLAGS = (
    re.compile(
        r"(?<!\S)--completion[ =](?:\"(?P<quoted>[^\"\n]+)\"|'(?P<single>[^'\n]+)'|(?P<word>\S+))", re.IGNORECASE
    ),
    re.compile(r"(?:^|[;.\n])\s{0,9}completion:\s*(?P<word>(?:[^;\n\"]|\"[^\"\n]*\")+)", re.IGNORECASE),
)


def _flagged(text: str) -> tuple[str, str]:
    """The text without a completion that was named as one, and that completion."""
    for pattern in _FLAGS:
        if found := pattern.search(text):
            said = next(filter(None, found.groupdict().values()))
            return f"{text[: found.start()]}{text[found.end() :]}".strip(" \"'"), said.strip()
    return text, ""


_END = re.compile(r"[.!;](?=\s|$)|\n|,\s*(?=(?:then|but|and|also)\b)|\s+--\s", re.IGNORECASE)


def _first_sentence(text: str) -> tuple[str, str]:
    """What a condition says, and what comes after it."""
    end = _END.search(text)
    return (text[: end.start()].strip(), text[end.end() :].strip()) if end else (text.strip(), "")


_IMPLIED = (
    (re.compile(r"\bcoverage\b", re.IGNORECASE), "improve coverage"),
    (re.compile(r"\b(?:lint\w*|style|warnings?|formatt\w+)\b", re.IGNORECASE), "fix lint"),
    (re.compile(r"\b(?:typ(?:es?|ing)|type[ -]?check\w*|mypy|pyright|tsc)\b", re.IGNORECASE), "fix type errors"),
    (re.compile(r"\b(?:builds?|compil\w+)\b", re.IGNORECASE), "fix the build"),
    (re.compile(r"\b(?:tests?|suite|green|pytest|pass(?:es)?)\b", re.IGNORECASE), "fix the failing tests"),
    (re.compile(r"\berrors?\b", re.IGNORECASE), "fix errors"),
)


def _implied(completion: str) -> str:
    """The task of somebody who only said when it is done."""
    return next((task for pattern, task in _IMPLIED if pattern.search(completion)), f"make this true: {completion}")


# -- the phrases

_PREFIX = re.compile(r"(?:ralph this|ralph it|ralph-external|ralph|agent-loop(?:-ext)?|al)\s*[:,]\s*", re.IGNORECASE)
_THIS = re.compile(r"(?:please\s+)?ralph (?:it|this)\b[.!]?", re.IGNORECASE)
_APART = re.compile(
    r"(?:please\s+)?(?:also\s+)?(?:run|start|launch) an? (?:\w+[ -]){0,3}loop (?:to|for|that|which)\s+", re.IGNORECASE
)
_PREFIXES = (re.compile(r"/goal\s+", re.IGNORECASE), _PREFIX, _APART)
_UNTIL = re.compile(
    rf"{_CLAUSE}(?:keep (?:trying|fixing|going|working|iterating)|loop|iterate)\s+until\s+", re.IGNORECASE
)
_GREEN = re.compile(
    rf"{_CLAUSE}fix(?P<what>[^.;\n]{{0,80}}?)\s+until\s+(?:(?:it|all|everything|they|ci)\s+(?:(?:is|are)\s+)?)?green\b[.!]?",
    re.IGNORECASE,
)
_PASSES = re.compile(
    rf"{_CLAUSE}run(?P<what>[^.;\n]{{0,80}}?)\s+until\s+(?:(?:it|all|everything|they)\s+)?pass(?:es)?\b[.!]?",
    re.IGNORECASE,
)


def _triggered(text: str) -> tuple[str, str]:
    """The task, and when it is done."""
    for pattern in _PREFIXES:
        if found := pattern.match(text):
            return _phrased(text[found.end() :].strip("\"'"))
    return _phrased(text)


def _phrased(text: str) -> tuple[str, str]:
    if found := _THIS.match(text):
        return text[found.end() :], ""
    if found := _UNTIL.search(text):
        completion, more = _first_sentence(text[found.end() :])
        return _joined(text[: found.start()], more), completion
    for pattern in (_GREEN, _PASSES):
        if found := pattern.search(text):
            what = found["what"].strip()
            task = _joined(text[: found.start()], f"fix {what or 'the failing tests'}{text[found.end() :]}")
            is_measured = any(pattern.search(what) for pattern, _ in _IMPLIED)
            return task, f"{what} pass" if is_measured else DEFAULT_COMPLETION
    return text, ""


def _joined(before: str, after: str) -> str:
    return "; ".join(filter(None, (_tidy(before), _tidy(after))))


def _tidy(text: str) -> str:
    """A task without what held it together with the phrase."""
    return text.strip(" ,;:\t\r\n")


# -- commands

_QUOTED = re.compile(r"`([^`\n]{1,300})`")
_FORBIDDEN = re.compile(
    r"(?:n't|\bnot(?! (?:be )?(?:done|finished|complete))|\bnever|\bwithout|\bavoid|\binstead of)\b[^.`\n]{0,20}$",
    re.IGNORECASE,
)
_RUN = re.compile(
    r"(?:\b(?:run(?:ning)?|until|(?:verify|check) (?:it )?with|completion:|command(?: is)?:?)|--completion)\s*[\"'=]?$",
    re.IGNORECASE,
)
_ENDS = re.compile(
    r"[\"']?\s+(?:pass(?:es)?|succeeds?|exits?|is (?:clean|green)|returns? 0|ends? with|runs? clean\w*)\b",
    re.IGNORECASE,
)
_SINGLE = frozenset(TOOLS) | split_names("tox nox make")


def find_commands(text: str) -> tuple[str, ...]:
    """The commands in backticks, as they stand; names of files, functions and values in backticks are none."""
    found = (
        one[1].strip()
        for one in _QUOTED.finditer(text)
        if is_command(one[1].strip(), text[max(0, one.start() - 60) : one.start()], text[one.end() : one.end() + 40])
    )
    return tuple(dict.fromkeys(found))


def is_command(quoted: str, before: str, after: str) -> bool:
    """Whether a text in backticks is a command, by itself or by the words around it."""
    if not quoted or _FORBIDDEN.search(before):
        return False
    if _RUN.search(before) or _ENDS.match(after):
        return True
    return (" " in quoted or quoted in _SINGLE or quoted.startswith("./")) and classify_command(quoted) is not None


# Programs that a completion may begin with, whatever they are told; of make and just, one target.
_PROGRAM = re.compile(
    r"\./\S|(?:make|just) [\w.:/-]+$|(?:npm|npx|pnpm|yarn|uv|poetry|python3?|cargo|node|bash|sh|docker|git) \S"
)
_PASSING = re.compile(
    r"\s{1,9}(?:(?:all|both) )?(?:pass(?:es)?|succeeds?|exits? (?:with )?0|returns? 0|(?:is|are) (?:clean|green))\W*$",
    re.IGNORECASE,
)


def _whole_commands(completion: str) -> tuple[str, ...]:
    """The commands of which a completion consists; none where any part of it is a sentence."""
    said = re.sub(r"(?<=\w)[.!]+$", "", _PASSING.sub("", completion))
    parts = re.split(r",\s{1,9}|\s{1,9}and\s{1,9}", said)
    is_whole = all(is_command(part, "", "") or _PROGRAM.match(part) for part in parts)
    return tuple(parts) if is_whole and not re.search(r"[<>]=?\s*\d", said) else ()


# -- where

# Only who says that the run itself is to go on elsewhere: a background job, or an external service, may be the task.
_THE_RUN = r"\b(?:run|loop|work on|do|start|keep|launch|execute)\s+(?:this|it|that|the loop|an? (?:\w+[ -]){0,3}loop)\b"
_BACKGROUND = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\bagent-loop-ext\b|\bralph-external\b|\bralph daemon\b",
        r"\b(?:external|background|detached|daemon|crash-resilient|unattended) (?:\w+ )?loop\b",
        rf"{_THE_RUN}[^.;\n]{{0,60}}\b(?:background|external(?:ly)?|daemon|detached|unattended)\b",
        rf"{_THE_RUN}[^.;\n]{{0,60}}\bcrash[- ](?:resilien\w+|recovery)",
        rf"{_THE_RUN}[^.;\n]{{0,80}}\b(?:(?:resume|attach)(?: (?:it|to it))? later|surviv\w+)",
        r"\bsession survival\b|\bunattended long[- ]run\w*",
    )
)


# -- without questions

_UNASKED = re.compile(
    r"(?P<own>^|[,;.:(\n]\s{0,9}|\s[-\u2013\u2014]\s{1,9})?"
    r"(?:\b(?:please\s+)?(?:proceed|go (?:on|ahead)|continue|run|work|do (?:it|this|so))\s+)?"
    r"\bwithout (?:asking|(?:any |further )?(?:confirm(?:ation|ing)|questions))"
    r"(?: (?:me|us|anyone|again|first|anything|in between))*\s*(?=$|[.,;:!)]|\b(?:and|then|but)\b)",
    re.IGNORECASE,
)
# Somebody else is to do something without asking: that is a part of the task.
_OTHERS = re.compile(
    r"\b(?:that|which|who|where|when|so|mak(?:e|es|ing)|lets?|allow\w*|enabl\w+|can|should|must|may|to)\b",
    re.IGNORECASE,
)


def _skips_gates(text: str) -> bool:
    """Whether a text tells the loop not to ask, in a clause of its own or at the end of one that gives it work."""
    for found in _UNASKED.finditer(text):
        clause = re.split(r"[,;.:\n]", text[max(0, found.start() - 200) : found.start()])[-1]
        if found["own"] is not None or not _OTHERS.search(clause):
            return True
    return False
