"""Of all commands that verify the same thing, those to believe: within the scope of the task, by who says it."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from pytest_loop.inference.command_candidate import TRUST_ORDER, Candidate, Confidence, Layer
from pytest_loop.inference.command_lines import is_part, normalize_command
from pytest_loop.inference.tool_purposes import Purpose, split_names

Key = tuple[str, ...]
Rejected = tuple[Candidate, str]
# Parts of a project that people name when they mean one of several suites.
_SUITES = split_names(
    "unit integration e2e smoke acceptance functional frontend backend client server api web mobile ui"
)
# Layers whose agreement makes something certain; two of them that state a thing differently contradict each other.
_AGREEING = (Layer.AGENT_FILES, Layer.MANIFESTS, Layer.CI)
_STATING = (Layer.AGENT_FILES, Layer.CI)


@dataclass(frozen=True)
class Choice:
    """The commands for one purpose, who else says the same, who says otherwise, and what was passed over, and why."""

    chosen: tuple[Candidate, ...]
    confidence: Confidence
    agreeing: tuple[Candidate, ...] = ()
    opposing: tuple[Candidate, ...] = ()
    rejected: tuple[Rejected, ...] = ()

    @property
    def is_guess(self) -> bool:
        return all(one.is_guess for one in self.chosen)


def choose_candidates(
    purpose: Purpose, found: Sequence[Candidate], task: str, everything: Collection[str] = ()
) -> Choice | None:
    """What to verify a purpose with; None where nobody says anything about it."""
    pool = [one for one in found if one.purpose is purpose]
    pool, rejected = _scoped(pool, task)
    solid = [one for one in pool if not (one.is_guess or one.is_trivial)]
    for layer in TRUST_ORDER:
        here = [one for one in solid if one.layer is layer]
        if here:
            chosen, passed_over = _narrowed(here, everything)
            return _weighed(chosen, solid, [*rejected, *passed_over, *_hollow(pool)], everything)
    rest = [one for one in pool if one.is_guess] or pool
    if not rest:
        return None
    chosen, passed_over = _narrowed(rest, everything)
    others = tuple(one for one in _hollow(pool) if one[0] not in chosen)
    return Choice(tuple(chosen), Confidence.LOW, rejected=(*rejected, *passed_over, *others))


def _hollow(pool: Sequence[Candidate]) -> list[Rejected]:
    return [(one, "it comes out the same whatever the code does") for one in pool if one.is_trivial]


# -- the scope


def _scoped(pool: Sequence[Candidate], task: str) -> tuple[list[Candidate], list[Rejected]]:
    """Those in the folders, or of the suites, that the task names; all where it names none."""
    text = task.lower()
    named = {one.folder for one in pool if one.folder and _is_named(one.folder.lower(), text)}
    kept = [one for one in pool if any(_is_beneath(one.folder, folder) for folder in named)] or list(pool)
    suites = _SUITES.intersection(re.findall(r"[a-z0-9]+", text))
    meant = [
        one for one in kept if suites.intersection(re.findall(r"[a-z0-9]+", f"{one.command} {one.folder}".lower()))
    ]
    kept = meant or kept
    return kept, [(one, "the task is about another part of the project") for one in pool if one not in kept]


def _is_named(folder: str, text: str) -> bool:
    """Whether a text names a folder by its path or by its last name."""
    name = re.escape(folder.rpartition("/")[2])
    return folder in text or re.search(rf"(?<![\w-]){name}(?![\w-])", text) is not None


def _is_beneath(folder: str, other: str) -> bool:
    return folder == other or folder.startswith(f"{other}/")


# -- within a layer


def _narrowed(here: Sequence[Candidate], everything: Collection[str]) -> tuple[list[Candidate], list[Rejected]]:
    """Of a manifest the closest, of a statement all but what is a part of something else in it."""
    kept = _closest(here) if here[0].layer is Layer.MANIFESTS else list(here)
    wide = {_key(one, everything) for one in kept}
    whole = {
        _key(one, everything): one
        for one in reversed(kept)
        if not any(is_part(_key(one, everything), other) for other in wide)
    }
    chosen = list(whole.values())[::-1]
    same = set(whole)
    return chosen, [
        (one, f"`{chosen[0].command}` is closer to what people run here")
        for one in here
        if one not in chosen and _key(one, everything) not in same
    ]


def _closest(here: Sequence[Candidate]) -> list[Candidate]:
    """One for each language and folder; the root speaks for the folders beneath it, and a language before make."""
    best: dict[tuple[str, str], Candidate] = {}
    for one in sorted(here, key=lambda one: one.rank):
        best.setdefault((one.folder, one.family), one)
    at_root = {family for folder, family in best if not folder}
    kept = []
    for (folder, family), one in best.items():
        is_covered = bool(folder) and (family in at_root or (not family and bool(at_root)))
        is_second = not family and any(other and folder == place for place, other in best)
        if not is_covered and not is_second:
            kept.append(one)
    return kept


def _key(one: Candidate, everything: Collection[str]) -> Key:
    return (one.folder, *normalize_command(one.command, everything))


# -- among the layers


def _weighed(
    chosen: Sequence[Candidate], solid: Sequence[Candidate], rejected: list[Rejected], everything: Collection[str]
) -> Choice:
    """How sure it is: the same in two layers is certain, and two statements that differ are not."""
    keys = {_key(one, everything) for one in chosen}
    others = [one for one in solid if one.layer is not chosen[0].layer]
    agreeing = [one for one in others if _key(one, everything) in keys and one.layer in _AGREEING]
    opposing = (
        [one for one in others if one.layer in _STATING and one.layer not in {other.layer for other in agreeing}]
        if chosen[0].layer in _STATING
        else []
    )
    believed = chosen[0].source.path
    passed_over = [
        (one, f"{believed} is believed before {one.layer.value}") for one in others if _key(one, everything) not in keys
    ]
    is_certain = all(any(_key(other, everything) == _key(one, everything) for other in agreeing) for one in chosen)
    if is_certain:
        confidence = Confidence.MEDIUM if opposing else Confidence.HIGH
    else:
        confidence = Confidence.LOW if opposing else Confidence.MEDIUM
    return Choice(tuple(chosen), confidence, tuple(agreeing), tuple(opposing), (*rejected, *passed_over))
