"""What a command line is for, and when two of them are the same."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import dropwhile, pairwise

from pytest_loop.inference.shell_script import ASSIGNMENT, split_words
from pytest_loop.inference.tool_purposes import (
    LIFECYCLE,
    LOOKING,
    SUBCOMMANDS,
    TOOLS,
    Purpose,
    classify_script,
    split_names,
)

# Who runs scripts by their names.
_RUNNERS = split_names("npm pnpm yarn bun make gmake just task mise poe invoke inv rake")
_PACKAGE_MANAGERS = split_names("npm pnpm yarn bun")
# What they do themselves, without a script.
_MANAGING = split_names("ci install i add audit publish exec dlx init create link pack version x why outdated login")
_ENVIRONMENTS = {"tox": split_names("-e --env"), "nox": split_names("-s -e --session --sessions")}
COVERAGE_PLUGIN = "pytest-cov"
_PYTHONS = ("python", "python3", "py")
_WRAPPERS: dict[str, frozenset[str]] = {
    **dict.fromkeys(("uv", "poetry", "pdm", "pipenv", "rye", "hatch"), split_names("run")),
    **dict.fromkeys(_PYTHONS, split_names("-m")),
    **dict.fromkeys(("pnpm", "yarn"), split_names("exec dlx")),
    "bundle": split_names("exec"),
}
_TRANSPARENT = split_names("time env xvfb-run")
_PLAIN_WRAPPERS = _TRANSPARENT | split_names("npx bunx")
_WRAPPER_VALUES = split_names(
    "--python -p --extra --group --with --package --project --directory --env-file --only-group"
)
_INTERPRETERS = split_names("python python3 sh bash node")
_OTHER_NAMES = {"gradlew": "gradle", "gradlew.bat": "gradle", "mvnw": "mvn", "py.test": "pytest"}
# Flags that select nothing: how much is said, in which colour, how many at once.
_QUIET = re.compile(
    r"-[qvsx]+|-r[a-zA-Z]+|-n(?:\d+|auto)?|-B|--(?:quiet|verbose|silent|colou?r|no-colou?r|tb|no-header|no-summary"
    r"|durations|maxfail|exitfirst|ci|locked|frozen|cov[\w-]*|no-cov\w*|junit-?xml|pretty|no-progress|output-format"
    r"|run-?in-?band|batch-mode|no-daemon|stacktrace|numprocesses)(?:=.*)?",
    re.IGNORECASE,
)
_QUIET_VALUES = split_names(
    "-n --numprocesses --tb --durations --maxfail --color --cov --cov-report --cov-config --junitxml --junit-xml"
)
_EDITS = re.compile(r"--(?:fix|write|in-place|apply|auto-?correct(?:-all)?|watch(?:all)?)", re.IGNORECASE)


def strip_wrappers(command: str) -> list[str]:
    """The words of a command without what only wraps it: `uv run python -m pytest` is `pytest`."""
    said = drop_wrappers(split_words(command))
    if not said:
        return said
    name = said[0].rsplit("/", 1)[-1]
    if name in _INTERPRETERS and len(said) > 1 and not said[1].startswith("-"):
        return normalize_program(said[1:])
    return normalize_program(said)


def normalize_program(said: Sequence[str]) -> list[str]:
    """A command whose program is called by its own name: `./gradlew` is `gradle`, `.venv/bin/pytest` is `pytest`."""
    name = said[0].rsplit("/", 1)[-1]
    return [_OTHER_NAMES.get(name, name), *said[1:]]


def drop_wrappers(said: list[str]) -> list[str]:
    """The words after settings of the environment and after programs that run other programs."""
    while said:
        if ASSIGNMENT.fullmatch(said[0]):
            said = said[1:]
            continue
        if said[0] not in _PLAIN_WRAPPERS and not _WRAPPERS.get(said[0], frozenset()).intersection(said[1:2]):
            return said
        said = said[1:] if said[0] in _PLAIN_WRAPPERS else said[2:]
        while said and said[0].startswith("-"):
            said = said[2:] if said[0] in _WRAPPER_VALUES else said[1:]
    return said


def list_requirements(command: str) -> Iterator[str]:
    """What has to be here for a command to run: programs, paths of the project, modules as `python -m NAME`, plugins.

    What a wrapper such as npx or uv runs is for the wrapper to find.
    """
    said = [word for word in split_words(command) if not ASSIGNMENT.fullmatch(word)]
    while said:
        yield said[0]
        is_module = said[0] in _PYTHONS and said[1:2] == ["-m"]
        if is_module and len(said) > 2:
            yield f"python -m {said[2]}"
        rest = said[2:] if is_module else said
        if rest[:1] == ["pytest"] and any(re.match(r"--cov\b", word) for word in rest):
            yield COVERAGE_PLUGIN
        if said[0] not in _TRANSPARENT:
            return
        said = list(dropwhile(lambda word: word.startswith("-"), said[1:]))


def find_script_name(said: Sequence[str]) -> str | None:
    """The name of the script that a runner such as npm or make is asked for; None for what is no runner."""
    if not said or said[0] not in _RUNNERS:
        return None
    rest = [word for word in said[1:] if not word.startswith("-") and not ASSIGNMENT.fullmatch(word)]
    if rest[:1] in (["run"], ["run-script"]) and said[0] in (*_PACKAGE_MANAGERS, "mise"):
        rest = rest[1:]
    elif said[0] in _PACKAGE_MANAGERS:
        if not rest or rest[0] in _MANAGING:
            return None
        rest = ["test"] if rest[0] == "t" else rest
    return rest[0] if rest else "all"


def classify_command(command: str) -> Purpose | None:
    """What a command verifies; None for one that installs, deploys, repairs or does anything else."""
    said = strip_wrappers(command)
    if not said or any(_EDITS.fullmatch(word) for word in said[1:]):
        return None
    name, first = said[0], next((word for word in said[1:] if not word.startswith("-")), "")
    if flags := LOOKING.get(name) or LOOKING.get(f"{name} {first}"):
        return Purpose.LINT if flags.intersection(said) else None
    if name in _SPECIAL:
        return _SPECIAL[name](said)
    known = SUBCOMMANDS.get((name, first)) or TOOLS.get(name)
    if known is not None:
        return known
    script = find_script_name(said) or _own_script(command, name)
    return classify_script(script) if script else None


def _own_script(command: str, name: str) -> str | None:
    """The name of a script of the project: a file of it, or one that its manifest declares."""
    if name.endswith((".sh", ".bash", ".py", ".js", ".mjs")):
        return name.rsplit(".", 1)[0]
    return name if split_words(command)[:2] in (["hatch", "run"], ["pdm", "run"]) else None


def _ruff(said: list[str]) -> Purpose | None:
    if "check" not in said:
        return None
    return Purpose.DOCS if re.search(r"--select[= ]D", " ".join(said)) else Purpose.LINT


def _tsc(said: list[str]) -> Purpose | None:
    return Purpose.TYPES if "--noEmit" in said else Purpose.BUILD


def _lifecycle(said: list[str]) -> Purpose | None:
    found = {purpose for word in said[1:] for pattern, purpose in LIFECYCLE if pattern.fullmatch(word)}
    return next((purpose for _, purpose in LIFECYCLE if purpose in found), None)


def _environment(said: list[str]) -> Purpose | None:
    """What the environments of tox and the sessions of nox are for; all of them together are a test."""
    flags = _ENVIRONMENTS[said[0]]
    named = [word for before, word in pairwise(said) if before in flags]
    if not named:
        return Purpose.TEST
    found = [classify_script(name) for name in named[0].split(",")]
    return Purpose.TEST if Purpose.TEST in found else found[0]


_SPECIAL = {
    "ruff": _ruff,
    "tsc": _tsc,
    "mvn": _lifecycle,
    "gradle": _lifecycle,
    "tox": _environment,
    "nox": _environment,
}


def normalize_command(command: str, everything: Collection[str] = ()) -> tuple[str, ...]:
    """What has to agree for two commands to be the same: program, subcommand and targets.

    `everything` are targets that stand for all there is, as `.` does. Of a script, the parts of its name are parts
    here: `npm run test:unit` is a part of `yarn test`.
    """
    said = strip_wrappers(command)
    script = find_script_name(said)
    if script is not None:
        manager = "script" if said[0] in _PACKAGE_MANAGERS else said[0]
        return (manager, *script.split(":"))
    kept: list[str] = []
    skip = False
    for word in said:
        if skip:
            skip = False
        elif word in _QUIET_VALUES and kept[:1] == ["pytest"]:
            skip = True
        elif not _QUIET.fullmatch(word) and word.rstrip("/") not in (".", "", *everything):
            kept.append(word.rstrip("/"))
    return tuple(kept)


def is_part(narrow: Sequence[str], wide: Sequence[str]) -> bool:
    """Whether one command in its normal form does only a part of what another does."""
    return len(narrow) > len(wide) and tuple(narrow[: len(wide)]) == tuple(wide)
