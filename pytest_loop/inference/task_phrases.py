"""Parse a task in plain words: what to do, when it is done, its limits, its name, and where to run."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import Enum

from pytest_loop.inference.loop_commands import LoopCommand, find_loop_command
from pytest_loop.inference.named_tools import find_named_tools
from pytest_loop.inference.quoted_commands import find_commands, parse_commands
from pytest_loop.inference.task_clauses import CLAUSE, addresses_loop, begins_clause, cut, is_part_of_task
from pytest_loop.inference.task_limits import extract_iteration_limit, extract_time_limit

DEFAULT_COMPLETION = "tests pass"


class Route(str, Enum):
    """The process of a run: this one, or a background process that outlives the terminal."""

    SESSION = "session"
    BACKGROUND = "background"


@dataclass(frozen=True)
class ParsedTask:
    """A task and the conditions in its words; none of it is confirmed yet.

    `text` is the original text, `request` the part of it that does not address the loop. `completion` is the condition
    for being done, empty if it has to be inferred. `commands` are the commands that the text spells out.
    `needs_context` means that the words refer to something said before. `loop_command` is set for a text that is no
    task.
    """

    text: str
    request: str
    task: str
    completion: str = ""
    commands: tuple[str, ...] = ()
    iteration_limit: int | None = None
    time_limit: int | None = None
    alias: str = ""
    route: Route = Route.SESSION
    needs_context: bool = False
    skips_gates: bool = False
    loop_command: LoopCommand | None = None


def parse_task(text: str) -> ParsedTask:
    """Parse a text into a task and its conditions; a text without known phrases is the task, unchanged."""
    stripped = text.strip()
    rest, alias = _extract_alias(stripped)
    rest, limit = extract_iteration_limit(rest)
    rest, seconds = extract_time_limit(rest)
    rest, route = _extract_route(rest)
    rest, explicit_completion = _extract_explicit_completion(_strip_prefix(rest))
    request = _unquote(_tidy(rest))
    task, completion = _split_phrase(request)
    task, completion = _tidy(task), explicit_completion or completion
    return ParsedTask(
        text=text,
        request=request or completion or stripped,
        task=task or (_derive_task(completion) if completion else ""),
        completion=completion,
        commands=tuple(dict.fromkeys((*find_commands(stripped), *parse_commands(completion)))),
        iteration_limit=limit,
        time_limit=seconds,
        alias=alias,
        route=route,
        needs_context=not task and not completion,
        skips_gates=_skips_gates(stripped),
        loop_command=find_loop_command(_strip_prefix(stripped)),
    )


def add_task(parsed: ParsedTask, text: str) -> ParsedTask:
    """Parse the user's answer to the question for the task; keep conditions of the first text that it does not set."""
    added = parse_task(text)
    return replace(
        added,
        iteration_limit=added.iteration_limit or parsed.iteration_limit,
        time_limit=added.time_limit or parsed.time_limit,
        alias=added.alias or parsed.alias,
        route=added.route if parsed.route is Route.SESSION else parsed.route,
        skips_gates=added.skips_gates or parsed.skips_gates,
    )


# -- name

_ALIAS = re.compile(r"(?<!\S)--(?:loop-)?(?:id|alias)[ =](?P<alias>[\w-]{1,80})(?!\S)", re.IGNORECASE)


def _extract_alias(text: str) -> tuple[str, str]:
    """Return the text without the name of the run, and the name."""
    match = _ALIAS.search(text)
    return (cut(match), match["alias"]) if match else (text, "")


# -- completion

_EXPLICIT_COMPLETIONS = (
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


def _extract_explicit_completion(text: str) -> tuple[str, str]:
    """Return the text without `--completion ...` or `completion: ...`, and that completion."""
    for pattern in _EXPLICIT_COMPLETIONS:
        if match := pattern.search(text):
            completion = next(filter(None, match.groupdict().values()))
            return f"{text[: match.start()]}{text[match.end() :]}".strip(" \"'"), completion.strip()
    return text, ""


def _derive_task(completion: str) -> str:
    """Return the task for a text that only has a completion."""
    tasks = (task for pattern, task in _DERIVED_TASKS if pattern.search(completion))
    return next(tasks, f"make this true: {completion}")


# -- phrases that start a loop

_A_LOOP = r"an? (?:\w+[ -]){0,3}loop"
_START_A_LOOP = rf"(?:run|start|launch) {_A_LOOP}(?: in the background)?"
_PREFIXES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"/goal\s+",
        r"/(?:ralph|al|agent-loop|aif-loop|loop)\s+(?:new\s+)?",
        r"(?:ralph this|ralph it|ralph-external|ralph|agent-loop(?:-ext)?|al)\s*[:,]\s*",
        rf"(?:please\s+)?(?:also\s+)?{_START_A_LOOP}(?:\s+(?:to|for|that|which)\s+|:\s*)",
    )
)
_RALPH_THIS = re.compile(r"(?:please\s+)?ralph (?:it|this)\b[.!]?", re.IGNORECASE)
_KEEP_GOING_UNTIL = re.compile(
    rf"{CLAUSE}(?:keep (?:trying|fixing|going|working|iterating)|loop|iterate)\s+until\s+", re.IGNORECASE
)
_UNTIL_COMMAND = re.compile(r"\s+until\s+(?=`)", re.IGNORECASE)
_FIX_UNTIL_GREEN = re.compile(
    rf"{CLAUSE}fix(?P<object>[^.;\n]{{0,80}}?)\s+until\s+"
    r"(?:(?:it|all|everything|they)\s+(?:(?:is|are)\s+)?)?green\b[.!]?",
    re.IGNORECASE,
)
_RUN_UNTIL_PASSES = re.compile(
    rf"{CLAUSE}run(?P<object>(?:[^.;\n]|\.(?=[\w/])){{0,80}}?)\s+until\s+(?:(?:it|all|everything|they)\b\s*)?"
    r"(?:pass(?:es)?|succeeds?|(?:is|are|['\u2019]s|['\u2019]re)?\s*(?:clean|green|happy|quiet))\b[.!]?",
    re.IGNORECASE,
)


def _strip_prefix(text: str) -> str:
    """Return the text without the words that only start a loop."""
    prefix = next(filter(None, (pattern.match(text) for pattern in _PREFIXES)), None)
    return text[prefix.end() :] if prefix else text


def _unquote(text: str) -> str:
    is_quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" and text.count(text[0]) == 2
    return _tidy(text[1:-1]) if is_quoted else text


def _split_phrase(text: str) -> tuple[str, str]:
    """Return the task and its completion."""
    if match := _RALPH_THIS.match(text):
        return text[match.end() :], ""
    if match := _KEEP_GOING_UNTIL.search(text) or _UNTIL_COMMAND.search(text):
        end = _SENTENCE_END.search(text, match.end())
        completion = text[match.end() : end.start() if end else None].strip()
        return _join(text[: match.start()], text[end.end() :] if end else ""), completion
    for pattern in (_FIX_UNTIL_GREEN, _RUN_UNTIL_PASSES):
        if match := pattern.search(text):
            target = match["object"].strip()
            task = _join(text[: match.start()], f"fix {target or 'the failing tests'}{text[match.end() :]}")
            return task, f"{target} pass" if _is_measured(target) else DEFAULT_COMPLETION
    return text, ""


def _is_measured(target: str) -> bool:
    """Return whether something that has to pass is a check: tests, a named tool, or a command."""
    is_check = any(words.search(target) for words, _ in _DERIVED_TASKS)
    return is_check or bool(find_named_tools(f"{target} pass") or parse_commands(f"{target} pass"))


def _join(before: str, after: str) -> str:
    return "; ".join(filter(None, (_tidy(before), _tidy(after))))


def _tidy(text: str) -> str:
    return text.strip(" ,;:\t\r\n")


# -- route

# Only phrases about the run itself: a background job or an external service may be part of the task.
_START_VERB = r"(?:run|loop|work on|do|start|keep|launch|execute)"
_THIS = r"(?:this|it|that|the loop)"
_THE_RUN = rf"\b{_START_VERB}\s+(?:{_THIS}|{_A_LOOP})\b"
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
_PLACE = r"(?:in the background|in background|externally|as a daemon|detached|unattended)"
_LATER = r"(?:attach|resume|reconnect|come back)(?: to it| it)? later"
_CIRCUMSTANCE = (
    rf"(?:{_PLACE}|with crash[- ](?:recovery|resilience)|(?:and )?let me {_LATER}"
    rf"|(?:and )?so(?: that)? (?:I can {_LATER}|it surviv\w+[^.,;:\n]{{0,60}}))"
)
# A clause that only says where to run.
_RUN_CLAUSE = re.compile(
    rf"{CLAUSE}(?:please )?{_START_VERB} {_THIS}(?:,? (?:and )?{_CIRCUMSTANCE}){{1,6}}[.!:]?",
    re.IGNORECASE,
)
_AT_END = re.compile(rf"\b{_PLACE}(?:,? (?:and )?{_CIRCUMSTANCE}){{0,6}}[.!]?(?=$|[,;:\n]|\s)", re.IGNORECASE)


def _extract_route(text: str) -> tuple[str, Route]:
    """Return the text without a clause that sends the run to the background, and the route."""
    if match := _RUN_CLAUSE.search(text):
        return cut(match), Route.BACKGROUND
    if (match := _AT_END.search(text)) and addresses_loop(text, match.start()):
        return cut(match), Route.BACKGROUND
    is_background = any(pattern.search(text) for pattern in _BACKGROUND)
    return text, Route.BACKGROUND if is_background else Route.SESSION


# -- questions

_WITHOUT_ASKING = re.compile(
    r"(?:\bdo so\s+)?"
    r"\bwithout (?:asking|(?:any |further )?(?:confirm(?:ation|ing)|questions))"
    r"(?: (?:me|us|anyone|again|first|anything|in between))*\s*(?=$|[.,;:!)]|\b(?:and|then|but)\b)",
    re.IGNORECASE,
)


def _skips_gates(text: str) -> bool:
    """Return whether a text tells the loop not to ask questions on the way."""
    return any(
        begins_clause(text, match.start()) or not is_part_of_task(text, match.start())
        for match in _WITHOUT_ASKING.finditer(text)
    )
