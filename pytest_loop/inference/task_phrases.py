"""Parse a task in plain words: what to do, when it is done, how often to try, and where to run."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from pytest_loop.inference.command_lines import classify_command
from pytest_loop.inference.tool_purposes import TOOLS, split_names

DEFAULT_COMPLETION = "tests pass"
MAX_ITERATIONS = 200


class Route(str, Enum):
    """The process of a run: this one, or a background process that outlives the terminal."""

    SESSION = "session"
    BACKGROUND = "background"


@dataclass(frozen=True)
class ParsedTask:
    """A task and the conditions in its words; none of it is confirmed yet.

    `text` is the original text. `completion` is the condition for being done, empty if it has to be inferred.
    `commands` are those that the text spells out. `needs_context` means that the words refer to something said before.
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
    """Parse a text; without any of the known phrases it is the task as it stands."""
    words = text.strip()
    rest, limit = _extract_limit(words)
    rest, flagged = _extract_completion_flag(rest)
    task, completion = _split_phrase(rest)
    task, completion = _tidy(task), flagged or completion
    return ParsedTask(
        text=text,
        task=task or (_derive_task(completion) if completion else ""),
        completion=completion,
        commands=tuple(dict.fromkeys((*find_commands(words), *_parse_commands(flagged)))),
        iteration_limit=limit,
        route=Route.BACKGROUND if any(pattern.search(words) for pattern in _BACKGROUND) else Route.SESSION,
        needs_context=not task and not completion,
        skips_gates=_skips_gates(words),
    )


# -- iteration limit

_NUMBERS = "one two three four five six seven eight nine ten eleven twelve"
_COUNTS = {word: number for number, word in enumerate(_NUMBERS.split(), 1)}
_COUNT = rf"(?P<count>\d{{1,6}}|{'|'.join(_COUNTS)})"
# Phrases count only at the beginning of a clause: "a worker that must stop after 3 cycles" limits no run.
_CLAUSE = r"(?:^|(?<=[\s,;.:(])(?:and|then|but|please)\s+|(?<=[,;.:(\n])\s*|[-\u2013\u2014]\s+)"
_CYCLES = r"(?:cycles?|iterations?|rounds?|loops?)"
_LIMITS = (
    re.compile(rf"{_CLAUSE}stop after {_COUNT} {_CYCLES}\b[.)]?", re.IGNORECASE),
    re.compile(
        rf"{_CLAUSE}(?:at most|up to|max(?:imum|\.)?(?: of)?|no more than) {_COUNT} {_CYCLES}\b[.)]?", re.IGNORECASE
    ),
    re.compile(rf"(?<!\S)--(?:max-)?iterations[ =]{_COUNT}(?!\S)", re.IGNORECASE),
)


def _extract_limit(text: str) -> tuple[str, int | None]:
    """Return the text without its iteration limit, and the limit; zero is no limit."""
    for pattern in _LIMITS:
        if match := pattern.search(text):
            count = match["count"].lower()
            if limit := _COUNTS.get(count) or int(count):
                rest = f"{text[: match.start()].rstrip(' ,;(')} {text[match.end() :].lstrip(' ,;')}".strip()
                return rest, min(limit, MAX_ITERATIONS)
    return text, None


# -- completion

_FLAGS = (
    re.compile(
        r"(?<!\S)--completion[ =](?:\"(?P<quoted>[^\"\n]+)\"|'(?P<single>[^'\n]+)'|(?P<word>\S+))", re.IGNORECASE
    ),
    re.compile(r"(?:^|[;.\n])\s{0,9}completion:\s*(?P<word>(?:[^;\n\"]|\"[^\"\n]*\")+)", re.IGNORECASE),
)
_SENTENCE_END = re.compile(r"[.!;](?=\s|$)|\n|,\s*(?=(?:then|but|and|also)\b)|\s+--\s", re.IGNORECASE)
_DERIVED_TASKS = tuple(
    (re.compile(rf"\b(?:{words})\b", re.IGNORECASE), task)
    for words, task in (
        (r"coverage", "improve coverage"),
        (r"lint\w*|style|warnings?|formatt\w+", "fix lint"),
        (r"typ(?:es?|ing)|type[ -]?check\w*|mypy|pyright|tsc", "fix type errors"),
        (r"builds?|compil\w+", "fix the build"),
        (r"tests?|suite|green|pytest|pass(?:es)?", "fix the failing tests"),
        (r"errors?", "fix errors"),
    )
)


def _extract_completion_flag(text: str) -> tuple[str, str]:
    """Return the text without an explicit completion, and that completion."""
    for pattern in _FLAGS:
        if match := pattern.search(text):
            completion = next(filter(None, match.groupdict().values()))
            return f"{text[: match.start()]}{text[match.end() :]}".strip(" \"'"), completion.strip()
    return text, ""


def _derive_task(completion: str) -> str:
    """Return the task for a text that only has a completion."""
    tasks = (task for pattern, task in _DERIVED_TASKS if pattern.search(completion))
    return next(tasks, f"make this true: {completion}")


# -- phrases that start a loop

_PREFIXES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"/goal\s+",
        r"(?:ralph this|ralph it|ralph-external|ralph|agent-loop(?:-ext)?|al)\s*[:,]\s*",
        r"(?:please\s+)?(?:also\s+)?(?:run|start|launch) an? (?:\w+[ -]){0,3}loop (?:to|for|that|which)\s+",
    )
)
_RALPH_THIS = re.compile(r"(?:please\s+)?ralph (?:it|this)\b[.!]?", re.IGNORECASE)
_UNTIL = re.compile(
    rf"{_CLAUSE}(?:keep (?:trying|fixing|going|working|iterating)|loop|iterate)\s+until\s+", re.IGNORECASE
)
_GREEN = re.compile(
    rf"{_CLAUSE}fix(?P<object>[^.;\n]{{0,80}}?)\s+until\s+"
    r"(?:(?:it|all|everything|they|ci)\s+(?:(?:is|are)\s+)?)?green\b[.!]?",
    re.IGNORECASE,
)
_PASSES = re.compile(
    rf"{_CLAUSE}run(?P<object>[^.;\n]{{0,80}}?)\s+until\s+(?:(?:it|all|everything|they)\s+)?pass(?:es)?\b[.!]?",
    re.IGNORECASE,
)


def _split_phrase(text: str) -> tuple[str, str]:
    """Return the task and its completion."""
    prefix = next(filter(None, (pattern.match(text) for pattern in _PREFIXES)), None)
    if prefix:
        text = text[prefix.end() :].strip("\"'")
    if match := _RALPH_THIS.match(text):
        return text[match.end() :], ""
    if match := _UNTIL.search(text):
        end = _SENTENCE_END.search(text, match.end())
        completion = text[match.end() : end.start() if end else None].strip()
        return _join(text[: match.start()], text[end.end() :] if end else ""), completion
    for pattern in (_GREEN, _PASSES):
        if match := pattern.search(text):
            target = match["object"].strip()
            task = _join(text[: match.start()], f"fix {target or 'the failing tests'}{text[match.end() :]}")
            is_measured = any(words.search(target) for words, _ in _DERIVED_TASKS)
            return task, f"{target} pass" if is_measured else DEFAULT_COMPLETION
    return text, ""


def _join(before: str, after: str) -> str:
    return "; ".join(filter(None, (_tidy(before), _tidy(after))))


def _tidy(text: str) -> str:
    return text.strip(" ,;:\t\r\n")


# -- commands

QUOTED = re.compile(r"`([^`\n]{1,300})`")
_FORBIDDEN = re.compile(
    r"(?:n't|\bnot(?! (?:be )?(?:done|finished|complete))|\bnever|\bwithout|\bavoid|\binstead of)\b[^.`\n]{0,20}$",
    re.IGNORECASE,
)
_RUN_BEFORE = re.compile(
    r"(?:\b(?:run(?:ning)?|until|(?:verify|check) (?:it )?with|completion:|command(?: is)?:?)|--completion)\s*[\"'=]?$",
    re.IGNORECASE,
)
_PASSES_AFTER = re.compile(
    r"[\"']?\s+(?:pass(?:es)?|succeeds?|exits?|is (?:clean|green)|returns? 0|ends? with|runs? clean\w*)\b",
    re.IGNORECASE,
)
_ONE_WORD_COMMANDS = frozenset(TOOLS) | split_names("tox nox make")


def find_commands(text: str) -> tuple[str, ...]:
    """Return the commands in backticks; names of files, functions and values in backticks are none."""
    commands = {}
    for quoted in QUOTED.finditer(text):
        before = text[max(0, quoted.start() - 60) : quoted.start()]
        if is_command(quoted[1].strip(), before, text[quoted.end() : quoted.end() + 40]):
            commands[quoted[1].strip()] = True
    return tuple(commands)


def is_command(quoted: str, before: str, after: str) -> bool:
    """Return whether a text in backticks is a command, by itself or by the words around it."""
    if not quoted or _FORBIDDEN.search(before):
        return False
    if _RUN_BEFORE.search(before) or _PASSES_AFTER.match(after):
        return True
    may_be_command = " " in quoted or quoted in _ONE_WORD_COMMANDS or quoted.startswith("./")
    return may_be_command and classify_command(quoted) is not None


# Programs that a completion may begin with, with any arguments; make and just with one target.
_PROGRAM = re.compile(
    r"\./\S|(?:make|just) [\w.:/-]+$|(?:npm|npx|pnpm|yarn|uv|poetry|python3?|cargo|node|bash|sh|docker|git) \S"
)
_PASSING = re.compile(
    r"\s{1,9}(?:(?:all|both) )?(?:pass(?:es)?|succeeds?|exits? (?:with )?0|returns? 0|(?:is|are) (?:clean|green))\W*$",
    re.IGNORECASE,
)


def _parse_commands(completion: str) -> tuple[str, ...]:
    """Return the commands of a completion that consists of nothing else."""
    text = re.sub(r"(?<=\w)[.!]+$", "", _PASSING.sub("", completion))
    parts = re.split(r",\s{1,9}|\s{1,9}and\s{1,9}", text)
    are_commands = all(is_command(part, "", "") or _PROGRAM.match(part) for part in parts)
    return tuple(parts) if are_commands and not re.search(r"[<>]=?\s*\d", text) else ()


# -- route

# Only phrases about the run itself: a background job or an external service may be part of the task.
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


# -- questions

_WITHOUT_ASKING = re.compile(
    r"(?P<clause>^|[,;.:(\n]\s{0,9}|\s[-\u2013\u2014]\s{1,9})?"
    r"(?:\b(?:please\s+)?(?:proceed|go (?:on|ahead)|continue|run|work|do (?:it|this|so))\s+)?"
    r"\bwithout (?:asking|(?:any |further )?(?:confirm(?:ation|ing)|questions))"
    r"(?: (?:me|us|anyone|again|first|anything|in between))*\s*(?=$|[.,;:!)]|\b(?:and|then|but)\b)",
    re.IGNORECASE,
)
# After these words the clause describes what the software does without asking.
_PART_OF_TASK = re.compile(
    r"\b(?:that|which|who|where|when|so|mak(?:e|es|ing)|lets?|allow\w*|enabl\w+|can|should|must|may|to)\b",
    re.IGNORECASE,
)


def _skips_gates(text: str) -> bool:
    """Return whether a text tells the loop not to ask questions on the way."""
    for match in _WITHOUT_ASKING.finditer(text):
        clause = re.split(r"[,;.:\n]", text[max(0, match.start() - 200) : match.start()])[-1]
        if match["clause"] is not None or not _PART_OF_TASK.search(clause):
            return True
    return False
