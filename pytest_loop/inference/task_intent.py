"""Classify a task by its words: the goal, the purposes to verify, and the concrete objects that it names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from pytest_loop.inference.command_candidate import Goal
from pytest_loop.inference.coverage_threshold import NumericGoal, parse_coverage_threshold
from pytest_loop.inference.named_tools import NamedTool, find_named_tools
from pytest_loop.inference.tool_purposes import SUBCOMMANDS, TOOLS, Purpose, split_names

DEFAULT_CAP = 10
LARGE_CAP = 20

# The purposes that each goal has to verify; purposes without a command are left out of a regression gate.
PURPOSES: dict[Goal, tuple[Purpose, ...]] = {
    Goal.TEST_PASS: (Purpose.TEST,),
    Goal.COVERAGE: (Purpose.COVERAGE,),
    Goal.TYPE_CLEAN: (Purpose.TYPES,),
    Goal.LINT_CLEAN: (Purpose.LINT,),
    Goal.BUILD_PASS: (Purpose.BUILD,),
    Goal.REGRESSION_GATE: (Purpose.TEST, Purpose.BUILD),
    Goal.IMPLEMENT_FEATURE: (Purpose.TEST,),
    Goal.DOCUMENTED: (Purpose.DOCS,),
    Goal.BUG_FIXED: (Purpose.TEST,),
}
# The purposes that a migration or an unclear change may break, and those of a task about every check.
WORKING_STATE = (Purpose.BUILD, Purpose.TEST, Purpose.LINT)
ALL_CHECKS = (*WORKING_STATE, Purpose.TYPES)
_TOOL_GOALS = {
    Purpose.TEST: Goal.TEST_PASS,
    Purpose.TYPES: Goal.TYPE_CLEAN,
    Purpose.LINT: Goal.LINT_CLEAN,
    Purpose.DOCS: Goal.DOCUMENTED,
}


def _compile(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


_GAP = r"(?:[^.;\n]|\.(?=\w)){0,40}"  # within a sentence; a dot in the name of a file does not end it
_GOOD = r"(?:pass(?:es|ing)?|succeeds?|green|clean|works?)"
_BAD = r"(?:fail(?:s|ed|ing|ures?)?|broken|red|flaky|errors?)"

# Words for something that a command measures.
_MEASURED: dict[Goal, re.Pattern[str]] = {
    Goal.COVERAGE: _compile(
        r"\bcoverage\b",
        r"\b(?:add|write|create|more) (?:(?:more|missing|unit|integration|some|the|new) )*tests?\b",
    ),
    Goal.TYPE_CLEAN: _compile(
        r"\btype(?:script)?[ -](?:errors?|check\w*|hints?|annotations?|safety|issues?)\b",
        r"\b(?:mypy|pyright|tsc|typecheck\w*)\b",
        r"\bfix (?:the |all )*(?:types|typing|typescript)\b",
        rf"\b(?:types|typing)\b{_GAP}\b{_GOOD}\b",
        rf"\b(?:migrat|convert|port)\w*\b{_GAP}\bto typescript\b",
    ),
    Goal.LINT_CLEAN: _compile(
        r"\b(?:lint\w*|ruff|eslint|flake8|pylint|rubocop|clippy|golangci-lint|go vet|checkstyle|prettier|pre-commit)\b",
        r"\b(?:warnings|formatting|style (?:errors?|issues?|violations?))\b",
        r"\bfix (?:the |all )*(?:code )?style\b",
    ),
    Goal.BUILD_PASS: _compile(
        r"\b(?:fix|repair|unbreak|mend)\w*\b[^.;\n]{0,20}\b(?:build|compil\w+)\b",
        r"\bcompil(?:e|er|ation) errors?\b",
        rf"\b(?:build|compilation)\b[^.;\n]{{0,20}}\b(?:{_GOOD}|{_BAD})\b",
        r"\b(?:make|get)\b[^.;\n]{0,30}\b(?:compile|build)s?\b",
        r"\bit (?:compiles|builds)\b",
        r"^\W{0,9}(?:build|compile)(?: (?:it|everything|all|the \w+))?\W{0,9}$",
    ),
    Goal.TEST_PASS: _compile(
        rf"\b(?:fix|repair|mend|{_GOOD}|{_BAD})\b{_GAP}\b(?:tests?|suite)\b",
        rf"\b(?:tests?|suite|pytest|jest|ci)\b{_GAP}\b(?:{_GOOD}|{_BAD})\b",
        r"^\W{0,9}(?:(?:it|all|everything|they) )?(?:(?:is|are) )?green\W{0,9}$",
    ),
    Goal.DOCUMENTED: _compile(
        r"\bdocument (?!store|database|model)",
        r"\bdocstrings?\b",
        rf"\b(?:add|write|update|improve|complete|extend)\b{_GAP}\b(?:docs?|documentation|readme)\b",
    ),
}
_REFACTORING = _compile(
    r"\b(?:refactor|restructur|reorgani[sz]|simplif|deduplicat|modulari[sz])\w*\b",
    r"\b(?:extract|rename|split|inline|move)\b",
)
_MIGRATING = _compile(r"\b(?:migrat\w+|upgrad\w+|port|bump|convert)\b")
_FIXING = _compile(
    r"\b(?:fix|resolv|clos|debug|solv|repair|mend)(?:e|es|ed|s|ing)?\b",
    r"\bbugs?\b|\bissue #?\d+|\bcrash\w*\b|\bregression\b",
)
_BUILDING = _compile(
    r"\b(?:implement|introduce|develop|support)\w*\b",
    r"\b(?:add|create|write|generate|make a|build an?|build new|new feature)\b",
)
_MAKING = _compile(_FIXING.pattern, _BUILDING.pattern)
_CLAUSE_END = _compile(r"[,;\n]", r"\.(?=\s|$)", r"\b(?:and|until|then|but|while)\b")
# Verbs that name a goal but nothing measured; the first in the text counts.
_BY_VERB: tuple[tuple[Goal, re.Pattern[str], tuple[Purpose, ...]], ...] = (
    (Goal.REGRESSION_GATE, _REFACTORING, PURPOSES[Goal.REGRESSION_GATE]),
    (Goal.REGRESSION_GATE, _MIGRATING, WORKING_STATE),
    (Goal.BUG_FIXED, _FIXING, PURPOSES[Goal.BUG_FIXED]),
    (Goal.IMPLEMENT_FEATURE, _BUILDING, PURPOSES[Goal.IMPLEMENT_FEATURE]),
)
# Demands for every check of the project, and for those of CI.
_NO_ERRORS = re.compile(
    r"\W*(?:(?:there are )?(?:no|zero|0|without(?: any)?)(?: more)?|(?:please )?fix (?:all|every|any)(?: the)?) errors?"
    r"(?: (?:left|remain\w*|anywhere|at all))?\W*",
    re.IGNORECASE,
)
_ASKS_FOR_ALL = _compile(
    rf"\b(?:make|get|turn) (?:sure )?(?:everything|(?:all|every)(?: the| of the)? checks?)(?: to| is| are)? {_GOOD}\b",
    rf"\ball (?:the |of the )?checks (?:are )?{_GOOD}\b",
)
_CI = r"(?:the |our )?(?:ci(?: checks?)?|(?:ci |build )?pipelines?|github actions?)"
_ASKS_FOR_CI = _compile(
    rf"\b{_CI}(?: (?:is|are|runs?|to|be|should|must|has))* (?:{_GOOD}|fail(?:s|ed|ing)|broken|red)\b",
    rf"\b(?:fix|repair|unbreak) {_CI}(?=\s*(?:$|[,.;:!]|(?:and|again|in|on|until|by|without)\b))",
    r"\bbuild (?:on|in) (?:ci|github actions?|the pipeline)\b",
)
# In a task that begins with one of these verbs, later words about tests are conditions.
_LEADING = re.compile(rf"\W*(?:{_REFACTORING.pattern}|{_MIGRATING.pattern}|\bimplement\w*\b)", re.IGNORECASE)
_LARGE = _compile(r"\b(?:entire|whole|all (?:files|modules|packages)|code ?base|everywhere|every (?:file|module))\b")


@dataclass(frozen=True)
class Intent:
    """The goal of a task, and the purposes to verify.

    `matched_words` name the goal; an ambiguous task has none: its purposes are the checks that any change
    may break. `objects` are the concrete things in the task, `tools` those that it names as judges. `demanded` are the
    purposes that its words ask for, also beside another goal.
    """

    goal: Goal
    purposes: tuple[Purpose, ...]
    matched_words: str = ""
    is_ambiguous: bool = False
    objects: tuple[str, ...] = ()
    tools: tuple[NamedTool, ...] = ()
    threshold: NumericGoal | None = None
    iteration_cap: int = DEFAULT_CAP
    demanded: tuple[Purpose, ...] = ()


def classify_task(task: str, completion: str = "", files: Iterable[str] = ()) -> Intent:
    """Classify a task: first by what its completion measures, then by what the task measures, last by its verbs."""
    goal, purposes, words = _find_goal(task, completion)
    is_large = goal is Goal.REGRESSION_GATE and words and _LARGE.search(task)
    return Intent(
        goal,
        purposes,
        words,
        is_ambiguous=not words,
        objects=find_concrete_objects(f"{task} {completion}", files),
        tools=find_named_tools(completion) or find_named_tools(task),
        threshold=parse_coverage_threshold(completion) or parse_coverage_threshold(task),
        iteration_cap=LARGE_CAP if is_large else DEFAULT_CAP,
        demanded=_list_demanded_purposes(task, completion),
    )


def _find_goal(task: str, completion: str) -> tuple[Goal, tuple[Purpose, ...], str]:
    """Return the goal, its purposes, and the words that name it; no words if the task is ambiguous."""
    begins_with_verb = _LEADING.match(task)
    if words := _find_all_checks(completion) or ("" if begins_with_verb else _find_all_checks(task)):
        return Goal.REGRESSION_GATE, () if _ASKS_FOR_CI.search(words) else ALL_CHECKS, words
    measured_goals = _find_measured_goals(completion) or _find_measured_goals(task)
    demanded = _list_demanded_purposes(task, completion)
    if measured_goals and not (begins_with_verb and Goal.TYPE_CLEAN not in measured_goals):
        goal, words = next(iter(measured_goals.items()))
        return goal, demanded, words
    verbs = [
        (match.start(), goal, match[0], purposes) for goal, verb, purposes in _BY_VERB if (match := verb.search(task))
    ]
    if not verbs:
        return Goal.REGRESSION_GATE, WORKING_STATE, ""
    _, goal, words, purposes = min(verbs)
    return goal, tuple(dict.fromkeys((*purposes, *demanded))), words


def _list_demanded_purposes(task: str, completion: str) -> tuple[Purpose, ...]:
    """Return the purposes of all measured goals that the completion names, or else the task."""
    goals = _find_measured_goals(completion) or _find_measured_goals(task)
    return tuple(dict.fromkeys(purpose for goal in goals for purpose in PURPOSES[goal]))


def _find_all_checks(text: str) -> str:
    """Return the words that ask for every check of the project or of CI, empty if there are none."""
    match = _NO_ERRORS.fullmatch(text) or _ASKS_FOR_CI.search(text) or _ASKS_FOR_ALL.search(text)
    return match[0].strip() if match else ""


def is_measured(text: str) -> bool:
    """Return whether a text names something that a command can decide."""
    return bool(_find_measured_goals(text) or _find_all_checks(text))


def asks_for_more(task: str) -> bool:
    """Return whether a clause of a task builds or fixes something that no condition measures."""
    clauses = (clause for clause in _CLAUSE_END.split(task) if _MAKING.search(clause) and not is_measured(clause))
    return any(find_content_words(_MAKING.sub(" ", clause)) for clause in clauses)


def _find_measured_goals(text: str) -> dict[Goal, str]:
    """Return the measured goals that a text names with their words, in the order of the text."""
    matches = [
        (match.start(), goal, match[0]) for goal, pattern in _MEASURED.items() if (match := pattern.search(text))
    ]
    matches += [(tool.start, _TOOL_GOALS[tool.purpose], tool.words) for tool in find_named_tools(text)]
    goals: dict[Goal, str] = {}
    for _, goal, words in sorted(matches):
        goals.setdefault(goal, " ".join(words.split()))
    return goals


# -- objects

_PATH = r"(?<![\w/])/?[\w.@*-]{1,80}/[\w./*-]{0,200}\w"
_SUFFIX = "py|[cm]?[jt]sx?|go|rs|java|rb|md|toml|ya?ml|json|sql|s?css|html|svg|cpp|cs|kt|php|sh|proto|ini|cfg"
_FILE = rf"\b[\w-]{{1,80}}\.(?:{_SUFFIX})\b"
_NAME = r"`[^`\n]+`|\b[a-zA-Z]\w*_\w+\b|\b[A-Z][a-z0-9]+[A-Z]\w*\b|\b\w+\(\)"
_COMPARED = r"(?:[<>\u2264\u2265]=?|\b(?:below|under|above|over|at least|at most|within))\s?\d[\d.,]{0,15}\s?\w{0,15}%?"
_MEASURE = r"\b\d[\d.,]{0,15}\s?(?:%|percent\b|ms\b|[kmg]b\b|rps\b)"
_ISSUE = r"#\d+|\b[A-Z]{2,}-\d+\b|\bissue \d+"
_CONCRETE = tuple(re.compile(pattern) for pattern in (_PATH, _FILE, _NAME, _COMPARED, _MEASURE, _ISSUE))
METRIC = re.compile(f"{_COMPARED}|{_MEASURE}", re.IGNORECASE)
PATH = re.compile(f"{_PATH}|{_FILE}")
# Common words that are also names of tools.
_COMMON_WORDS = split_names("build flow next go tap pest vale trial karma")
_TOOL_NAMES = frozenset((*TOOLS, *(name for name, _ in SUBCOMMANDS))) - _COMMON_WORDS

# Words too general to name an object.
_GENERIC = split_names(
    "code codebase app application project repo repository it this that them they everything all things thing stuff "
    "software system program product quality src lib test tests main index core common utils util helpers package "
    "packages module modules file files folder work job whole entire some any more new old our my your what"
)
# Verbs, praise and particles.
_FILLERS = split_names(
    "a an the and or but so then please can could you we i to of in on for with by at from as is are be make do get "
    "let go better best good great nice nicer clean cleaner up improve improved improvement improvements enhance "
    "enhanced polish optimize optimise optimized robust solid perfect awesome beautiful modern professional production "
    "ready performance fast faster maintainable readable elegant simple simpler properly correctly well very much "
    "really just now fix resolve solve repair mend debug refactor rewrite rework restructure implement add create "
    "write build update change bug bugs issue issues problem problems error errors feature features finish complete "
    "done works working until enough less keep trying going look looks feel feels seem seems am"
)


def find_concrete_objects(text: str, files: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the paths, names, numbers, issues, tools, and files of the project that a text names."""
    objects = [match[0].strip("`") for pattern in _CONCRETE for match in pattern.finditer(text)]
    words = frozenset(re.findall(r"[a-z][\w-]+", text.lower()))
    objects += sorted(words & _TOOL_NAMES)
    names = frozenset(part for path in files for part in _split_path(path.lower()))
    objects += sorted(word for word in (words & names) - _GENERIC - _FILLERS if len(word) > 2)
    return tuple(name for index, name in enumerate(objects) if not any(name in other for other in objects[:index]))


def _split_path(path: str) -> list[str]:
    """Return the folders of a path, and its name without the suffix."""
    *folders, name = path.split("/")
    return [*folders, name.rpartition(".")[0] or name]


def find_code_names(text: str) -> list[str]:
    """Return the functions and other names of code in a task: `total`, total() and net_total."""
    names = re.findall(r"`([A-Za-z_]\w*)(?:\(\))?`|\b([A-Za-z_]\w*)\(|\b([a-z]\w*_\w+)\b(?![./])", text)
    return list(dict.fromkeys(next(filter(None, groups)) for groups in names))


def find_content_words(text: str) -> list[str]:
    """Return the words of a task that say something about it: neither generic nor fillers."""
    words = re.findall(r"[^\W\d_][\w-]*", text.lower())
    return [word for word in words if word not in _FILLERS and word not in _GENERIC]
