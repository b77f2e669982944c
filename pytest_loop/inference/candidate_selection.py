"""Choose among the commands for one purpose: by the scope of the task, then by the trust in their layers."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from pytest_loop.inference.command_candidate import TRUST_ORDER, CommandCandidate, Confidence, Layer, SourceLine
from pytest_loop.inference.command_lines import find_language, is_part_of, normalize_command
from pytest_loop.inference.named_tools import NamedTool
from pytest_loop.inference.tool_purposes import Purpose, split_names

TRIVIAL_REASON = "it comes out the same whatever the code does"
_Key = Callable[[CommandCandidate], tuple[str, ...]]
_Rejected = tuple[CommandCandidate, str]
# Words that name one of several test suites.
_SUITES = split_names(
    "unit integration e2e smoke acceptance functional frontend backend client server api web mobile ui"
)
# Words for a language; "go" is left out because it is a common word.
_LANGUAGE_WORDS = {
    **{name: name for name in ("python", "node", "rust", "java", "ruby")},
    **dict.fromkeys(("javascript", "typescript", "js", "ts", "nodejs", "npm", "pnpm", "yarn"), "node"),
    "golang": "go",
    "kotlin": "java",
}
# A second layer of `_AGREEING` with the same command makes it certain; two layers of `_STATING` with different commands
# contradict each other.
_AGREEING = (Layer.AGENT_FILES, Layer.MANIFESTS, Layer.CI)
_STATING = (Layer.AGENT_FILES, Layer.CI)


@dataclass(frozen=True)
class Choice:
    """The commands chosen for one purpose, those that agree or disagree, and the rejected ones with their reasons."""

    chosen: tuple[CommandCandidate, ...]
    confidence: Confidence
    agreeing: tuple[CommandCandidate, ...] = ()
    opposing: tuple[CommandCandidate, ...] = ()
    rejected: tuple[_Rejected, ...] = ()

    @property
    def is_guess(self) -> bool:
        return all(candidate.is_guess for candidate in self.chosen)

    @property
    def agreeing_sources(self) -> tuple[SourceLine, ...]:
        return tuple(candidate.source for candidate in self.agreeing)


def choose_candidates(
    purpose: Purpose, candidates: Sequence[CommandCandidate], task: str, whole_suite: Collection[str] = ()
) -> Choice | None:
    """Choose the commands for a purpose from the most trusted layer, or else guesses; None without candidates."""

    def make_key(candidate: CommandCandidate) -> tuple[str, ...]:
        return (candidate.folder, *normalize_command(candidate.command, whole_suite))

    relevant = [candidate for candidate in candidates if candidate.purpose is purpose]
    pool = _limit_to_scope(relevant, task)
    solid = [candidate for candidate in pool if candidate.is_solid]
    layers = ([candidate for candidate in solid if candidate.layer is layer] for layer in TRUST_ORDER)
    guesses = [candidate for candidate in pool if candidate.is_guess]
    level = next(filter(None, layers), None) or guesses or pool
    if not level:
        return None
    chosen = _drop_parts(level, make_key)
    keys = {make_key(candidate) for candidate in chosen}
    trivial = [candidate for candidate in pool if candidate.is_trivial and candidate not in chosen]
    rejected = (
        *((other, "the task is about another part of the project") for other in relevant if other not in pool),
        *(
            (other, f"`{chosen[0].command}` is closer to what people run here")
            for other in level
            if other not in chosen and make_key(other) not in keys
        ),
        *((other, TRIVIAL_REASON) for other in trivial),
    )
    if not solid:
        return Choice(tuple(chosen), Confidence.LOW, rejected=rejected)
    return _compare_layers(chosen, solid, rejected, make_key)


def choose_named(
    tool: NamedTool, candidates: Sequence[CommandCandidate], task: str, whole_suite: Collection[str]
) -> Choice:
    """Choose the project's call of a tool that the task names, or else its usual call; both are certain."""
    calls = [
        candidate
        for candidate in candidates
        if candidate.is_solid and any(map(tool.is_called_by, (candidate.command, candidate.script)))
    ]
    choice = choose_candidates(tool.purpose, calls, task, whole_suite)
    if choice:
        return replace(choice, confidence=Confidence.HIGH)
    usual = CommandCandidate(tool.command, tool.purpose, Layer.TASK, SourceLine("the task"))
    return Choice((usual,), Confidence.HIGH)


def _limit_to_languages(pool: Sequence[CommandCandidate], words: Collection[str]) -> list[CommandCandidate]:
    """Keep the commands for languages that `words` name, or for an unknown language; all if none would be left."""
    languages = {_LANGUAGE_WORDS[word] for word in words if word in _LANGUAGE_WORDS}
    if not languages:
        return list(pool)
    allowed = ("", *languages)  # the language of a command may be unknown
    limited = [candidate for candidate in pool if (candidate.family or find_language(candidate.command)) in allowed]
    return limited or list(pool)


def _limit_to_scope(candidates: Sequence[CommandCandidate], task: str) -> list[CommandCandidate]:
    """Keep the commands for the languages, folders and suites that the task names; ignore names without commands."""
    words = _split_words(task)
    pool = _limit_to_languages(candidates, words)
    folders = {candidate.folder for candidate in pool if _names_folder(task.lower(), candidate.folder.lower())}
    in_folders = [
        candidate for candidate in pool if any(f"{candidate.folder}/".startswith(f"{folder}/") for folder in folders)
    ]
    pool = in_folders or pool
    suites = _SUITES.intersection(words)
    of_suites = [
        candidate for candidate in pool if suites.intersection(_split_words(f"{candidate.command} {candidate.folder}"))
    ]
    return of_suites or pool


def _split_words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.lower())


def _names_folder(text: str, folder: str) -> bool:
    """Return whether a text names a folder by its path or by its last part."""
    name = re.escape(folder.rpartition("/")[2])
    return bool(folder) and (folder in text or re.search(rf"(?<![\w-]){name}(?![\w-])", text) is not None)


def _drop_parts(level: Sequence[CommandCandidate], make_key: _Key) -> list[CommandCandidate]:
    """Drop duplicates and commands that are part of another; of manifests, keep one per folder and language."""
    closest = _choose_for_folders(level) if level[0].layer is Layer.MANIFESTS else level
    by_key: dict[tuple[str, ...], CommandCandidate] = {}
    for candidate in closest:
        by_key.setdefault(make_key(candidate), candidate)
    return [candidate for key, candidate in by_key.items() if not any(is_part_of(key, other) for other in by_key)]


def _choose_for_folders(candidates: Sequence[CommandCandidate]) -> list[CommandCandidate]:
    """Return one command for each folder and language.

    A language at the root covers the folders below it. A task runner counts only without a language beside it, and
    below the root only if no command stands there.
    """
    closest: dict[tuple[str, str], CommandCandidate] = {}
    for candidate in sorted(candidates, key=lambda candidate: candidate.rank):
        closest.setdefault((candidate.folder, candidate.family), candidate)
    families_at_root = {family for folder, family in closest if not folder}
    folders_with_language = {folder for folder, family in closest if family}
    return [
        candidate
        for (folder, family), candidate in closest.items()
        if not (folder and (family in families_at_root or (not family and families_at_root)))
        and (family or folder not in folders_with_language)
    ]


def _compare_layers(
    chosen: Sequence[CommandCandidate],
    candidates: Sequence[CommandCandidate],
    rejected: tuple[_Rejected, ...],
    make_key: _Key,
) -> Choice:
    """Build the choice; missing agreement and a contradiction of other layers lower its confidence by a level each."""
    layer = chosen[0].layer
    keys = {make_key(candidate) for candidate in chosen}
    others = [candidate for candidate in candidates if candidate.layer is not layer]
    agreeing = [other for other in others if make_key(other) in keys and other.layer in _AGREEING]
    agreeing_layers = {other.layer for other in agreeing}
    stating = [other for other in others if other.layer in _STATING and other.layer not in agreeing_layers]
    opposing = stating if layer in _STATING else []
    lacks_agreement = not keys <= {make_key(other) for other in agreeing}
    less_trusted = (
        (other, f"{chosen[0].source.path} is believed before {other.layer.value}")
        for other in others
        if make_key(other) not in keys
    )
    return Choice(
        tuple(chosen),
        list(Confidence)[lacks_agreement + bool(opposing)],  # each of them costs one level
        tuple(agreeing),
        tuple(opposing),
        (*rejected, *less_trusted),
    )
