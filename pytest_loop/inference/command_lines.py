"""Classify and compare command lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import dropwhile, pairwise

from pytest_loop.inference.shell_script import ASSIGNMENT, split_words
from pytest_loop.inference.tool_purposes import (
    CHECK_FLAGS,
    LANGUAGES,
    LIFECYCLE_PATTERNS,
    SUBCOMMANDS,
    TOOLS,
    Purpose,
    classify_script,
    split_names,
)

COVERAGE_PLUGIN = "pytest-cov"
_PACKAGE_MANAGERS = split_names("npm pnpm yarn bun")
_SCRIPT_RUNNERS = _PACKAGE_MANAGERS | split_names("make gmake just task mise poe invoke inv rake")
# Subcommands of package managers that are not names of scripts.
_MANAGER_SUBCOMMANDS = split_names(
    "ci install i add audit publish exec dlx init create link pack version x why outdated login"
)
_ENVIRONMENT_FLAGS = {"tox": split_names("-e --env"), "nox": split_names("-s -e --session --sessions")}
_PYTHONS = ("python", "python3", "py")
# Programs that run the program after them, with the subcommand or flag for it.
_WRAPPERS: dict[str, frozenset[str]] = {
    **dict.fromkeys(("uv", "poetry", "pdm", "pipenv", "rye", "hatch"), split_names("run")),
    **dict.fromkeys(_PYTHONS, split_names("-m")),
    **dict.fromkeys(("pnpm", "yarn"), split_names("exec dlx")),
    "bundle": split_names("exec"),
}
# Programs that run an installed program; npx and bunx also install it.
_LAUNCHERS = split_names("time env xvfb-run")
_PLAIN_WRAPPERS = _LAUNCHERS | split_names("npx bunx")
_WRAPPER_FLAGS_WITH_VALUE = split_names(
    "--python -p --extra --group --with --package --project --directory --env-file --only-group"
)
_INTERPRETERS = split_names("python python3 sh bash node")
_ALIASES = {"gradlew": "gradle", "gradlew.bat": "gradle", "mvnw": "mvn", "py.test": "pytest"}
# Flags that do not change what is verified: verbosity, colour, parallelism, reports.
_COSMETIC_FLAG = re.compile(
    r"-[qvsx]+|-r[a-zA-Z]+|-n(?:\d+|auto)?|-B|--(?:quiet|verbose|silent|colou?r|no-colou?r|tb|no-header|no-summary"
    r"|durations|maxfail|exitfirst|ci|locked|frozen|cov[\w-]*|no-cov\w*|junit-?xml|pretty|no-progress|output-format"
    r"|run-?in-?band|batch-mode|no-daemon|stacktrace|numprocesses)(?:=.*)?",
    re.IGNORECASE,
)
_COSMETIC_FLAGS_WITH_VALUE = split_names(
    "-n --numprocesses --tb --durations --maxfail --color --cov --cov-report --cov-config --junitxml --junit-xml"
)
_EDITING_FLAG = re.compile(r"--(?:fix|write|in-place|apply|auto-?correct(?:-all)?|watch(?:all)?)", re.IGNORECASE)


def strip_wrappers(command: str) -> list[str]:
    """Return the words of a command without wrappers: `uv run python -m pytest` is `pytest`."""
    words = _drop_wrappers(split_words(command))
    if len(words) > 1 and words[0].rsplit("/", 1)[-1] in _INTERPRETERS and not words[1].startswith("-"):
        words = words[1:]
    if not words:
        return []
    name = words[0].rsplit("/", 1)[-1]
    return [_ALIASES.get(name, name), *words[1:]]


def _drop_wrappers(words: list[str]) -> list[str]:
    while words:
        is_plain = words[0] in _PLAIN_WRAPPERS or ASSIGNMENT.fullmatch(words[0])
        if not is_plain and not _WRAPPERS.get(words[0], frozenset()).intersection(words[1:2]):
            return words
        words = words[1:] if is_plain else words[2:]
        while words and words[0].startswith("-"):
            words = words[2:] if words[0] in _WRAPPER_FLAGS_WITH_VALUE else words[1:]
    return words


def list_requirements(command: str) -> Iterator[str]:
    """Yield the requirements of a command: programs, project paths, modules as `python -m NAME`, pytest plugins.

    Programs that a wrapper such as npx or uv runs are left out: the wrapper finds or installs them.
    """
    words = [word for word in split_words(command) if not ASSIGNMENT.fullmatch(word)]
    while words:
        yield words[0]
        is_module = words[0] in _PYTHONS and words[1:2] == ["-m"]
        if is_module and len(words) > 2:
            yield f"python -m {words[2]}"
        called = words[2:] if is_module else words
        if called[:1] == ["pytest"] and any(re.match(r"--cov\b", word) for word in called):
            yield COVERAGE_PLUGIN
        if words[0] not in _LAUNCHERS:
            return
        words = list(dropwhile(lambda word: word.startswith("-"), words[1:]))


def _find_script_name(words: Sequence[str]) -> str | None:
    """Return the script that a runner such as npm or make is called with; None for other programs."""
    if words[0] not in _SCRIPT_RUNNERS:
        return None
    arguments = [word for word in words[1:] if not word.startswith("-") and not ASSIGNMENT.fullmatch(word)]
    if arguments[:1] in (["run"], ["run-script"]) and words[0] in (*_PACKAGE_MANAGERS, "mise"):
        arguments = arguments[1:]
    elif words[0] in _PACKAGE_MANAGERS:
        if not arguments or arguments[0] in _MANAGER_SUBCOMMANDS:
            return None
        arguments = ["test"] if arguments[0] == "t" else arguments
    return arguments[0] if arguments else "all"


def classify_command(command: str) -> Purpose | None:
    """Return what a command verifies; None if it installs, deploys, edits or does anything else."""
    words = strip_wrappers(command)
    if not words or any(_EDITING_FLAG.fullmatch(word) for word in words[1:]):
        return None
    name, first = words[0], next((word for word in words[1:] if not word.startswith("-")), "")
    if flags := CHECK_FLAGS.get(name) or CHECK_FLAGS.get(f"{name} {first}"):
        return Purpose.LINT if flags.intersection(words) else None
    if name in _CLASSIFIERS:
        return _CLASSIFIERS[name](words)
    purpose = SUBCOMMANDS.get((name, first)) or TOOLS.get(name)
    script = _find_script_name(words) or _find_script_file(command, name)
    return purpose or (classify_script(script) if script else None)


def find_language(command: str) -> str:
    """Return the language that a command is about, empty if its program does not tell."""
    return LANGUAGES.get("".join(strip_wrappers(command)[:1]), "")


def _find_script_file(command: str, name: str) -> str | None:
    """Return the name of a script file, or of a script that hatch or pdm runs; None for other programs."""
    if name.endswith((".sh", ".bash", ".py", ".js", ".mjs")):
        return name.rsplit(".", 1)[0]
    return name if split_words(command)[:2] in (["hatch", "run"], ["pdm", "run"]) else None


def _classify_ruff(words: list[str]) -> Purpose | None:
    if "check" not in words:
        return None
    return Purpose.DOCS if re.search(r"--select[= ]D", " ".join(words)) else Purpose.LINT


def _classify_lifecycle(words: list[str]) -> Purpose | None:
    matches = (purpose for pattern, purpose in LIFECYCLE_PATTERNS if any(pattern.fullmatch(word) for word in words[1:]))
    return next(matches, None)


def _classify_environments(words: list[str]) -> Purpose | None:
    """Classify the environments of tox or the sessions of nox; without a selection they count as tests."""
    flags = _ENVIRONMENT_FLAGS[words[0]]
    selected = next((word for flag, word in pairwise(words) if flag in flags), "")
    purposes = [classify_script(name) for name in selected.split(",")]
    return Purpose.TEST if not selected or Purpose.TEST in purposes else purposes[0]


_CLASSIFIERS: dict[str, Callable[[list[str]], Purpose | None]] = {
    "ruff": _classify_ruff,
    "tsc": lambda words: Purpose.TYPES if "--noEmit" in words else Purpose.BUILD,
    "mvn": _classify_lifecycle,
    "gradle": _classify_lifecycle,
    "tox": _classify_environments,
    "nox": _classify_environments,
}


def normalize_command(command: str, whole_suite: Collection[str] = ()) -> tuple[str, ...]:
    """Return program, subcommand and targets: commands with equal results verify the same.

    Targets in `whole_suite` stand for all tests, as `.` does. The parts of a script's name count separately:
    `npm run test:unit` is a part of `yarn test`.
    """
    words = strip_wrappers(command)
    script = _find_script_name(words) if words else None
    if script is not None:
        return ("script" if words[0] in _PACKAGE_MANAGERS else words[0], *script.split(":"))
    is_pytest = words[:1] == ["pytest"]
    values = {index + 1 for index, word in enumerate(words) if is_pytest and word in _COSMETIC_FLAGS_WITH_VALUE}
    return tuple(
        word.rstrip("/")
        for index, word in enumerate(words)
        if not (index in values or _COSMETIC_FLAG.fullmatch(word) or word.rstrip("/") in (".", "", *whole_suite))
    )


def is_part_of(narrow: Sequence[str], wide: Sequence[str]) -> bool:
    """Return whether the normalized command `narrow` verifies only a part of what `wide` does."""
    return len(narrow) > len(wide) and tuple(narrow[: len(wide)]) == tuple(wide)
