"""What a project keeps for its agents, a shape file and an AI Factory's context: as rules and words for prompts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain, islice

from pytest_loop.core.text.lengths import fit_tokens
from pytest_loop.core.text.sanitizer import clean_text
from pytest_loop.inference.command_candidate import Source
from pytest_loop.inference.markdown_commands import Line, items, lines
from pytest_loop.inference.project_files import Project
from pytest_loop.inference.proposal import ProposedRule
from pytest_loop.inference.shape_file import PATH as SHAPE
from pytest_loop.inference.shape_file import (
    build_must_not_entry,
    build_shape_rules,
    make_slug,
    parse_quoted_command,
    parse_shape_file,
)

DESCRIPTION = ".ai-factory/DESCRIPTION.md"
ARCHITECTURE = ".ai-factory/ARCHITECTURE.md"
RULES = ".ai-factory/RULES.md"
OVERRIDES = ".ai-factory/skill-context/aif-loop/SKILL.md"
MOST_RULES = 40
MOST_TOKENS = 2_000

_ANY = re.compile("")
_FORBIDDEN = re.compile(r"\b(?:must[ -]?not|never|forbidden|don'?ts?|do not|anti-?patterns?)\b", re.IGNORECASE)
_ASIDE = re.compile(r"\b(?:examples?|notes?|references?|history)\b", re.IGNORECASE)
_STRICT = re.compile(r"\b(?:must|never|always|required|shall|do not|don't|mandatory)\b", re.IGNORECASE)
_RULE = re.compile(r"\*\*Rule\*\*\s*:?\s*(?P<text>.*)", re.IGNORECASE)
_ITERATIONS = re.compile(r"\bmax[_ ]iterations\b\W{1,6}(\d{1,3})\b", re.IGNORECASE)
_SHARE = r"[01](?:\.\d+)?"
_PHASE = rf"\b([AB])\b\W{{1,4}}({_SHARE})"
# Several phases in a list after the word, or one before it.
_THRESHOLDS = re.compile(rf"\b[Tt]hresholds?\b[^.]{{0,20}}?((?:(?:and |phase )*{_PHASE}\W{{0,9}})+)")
_PHASE_FIRST = re.compile(rf"\b(?:phase )?([AB])\b[^.\n]{{0,20}}?\b[Tt]hreshold\W{{1,6}}({_SHARE})")


@dataclass(frozen=True)
class Note:
    """A text for prompts, and where it stands."""

    title: str
    text: str
    path: str


@dataclass(frozen=True)
class Context:
    """What a project says beside its rules.

    `max_iterations` and `thresholds` are overrides of the defaults; `clarity` is the spec score of the shape file.
    """

    rules: tuple[ProposedRule, ...] = ()
    notes: tuple[Note, ...] = ()
    max_iterations: int | None = None
    thresholds: dict[str, float] = field(default_factory=dict)
    clarity: int | None = None


FILES = (SHAPE, DESCRIPTION, ARCHITECTURE, RULES, OVERRIDES)


def extract_context(project: Project) -> Context:
    """All that is there; of two rules with one id, that of the overrides counts."""
    shape = parse_shape_file(project.texts.get(SHAPE, ""))
    overrides = project.texts.get(OVERRIDES, "")
    found = chain.from_iterable(
        islice(rules, MOST_RULES)
        for rules in (build_shape_rules(shape), _listed_rules(project), _overriding_rules(overrides))
    )
    iterations = _ITERATIONS.search(overrides)
    return Context(
        rules=tuple(_by_id(found)),
        notes=tuple(Note(title, project.texts[path], path) for path, title in _TITLES.items() if path in project.texts),
        max_iterations=(int(iterations[1]) or None) if iterations else None,
        thresholds=_thresholds(overrides),
        clarity=shape.clarity,
    )


_TITLES = {
    SHAPE: "What the work has to come to",
    DESCRIPTION: "What this project is",
    ARCHITECTURE: "How it is built",
    RULES: "Its rules",
    OVERRIDES: "Rules of this project for loops; they win over everything above",
}


def render_notes(said: Context, most: int = MOST_TOKENS) -> str:
    """The notes for a prompt, each with its share of what it may cost; written by others, so to be marked as data."""
    share = most // max(1, len(said.notes))
    return "\n\n".join(
        fit_tokens(f"{note.title} ({note.path}):\n{clean_text(note.text).strip()}", share) for note in said.notes
    )


def _by_id(found: Iterable[ProposedRule]) -> Iterator[ProposedRule]:
    """The rules with ids of their own: an override takes the place of a rule, another one of the name gets a number."""
    kept: dict[str, ProposedRule] = {}
    for rule in found:
        name = number = str(rule.entry["id"])
        count = 2
        while number in kept and not _overrides(rule, kept[number]):
            number = f"{name}-{count}"
            count += 1
        kept[number] = replace(rule, entry={**rule.entry, "id": number})
    yield from kept.values()


def _overrides(rule: ProposedRule, other: ProposedRule) -> bool:
    return rule.sources[0].path == OVERRIDES and other.sources[0].path != OVERRIDES


# -- rules in lists


def _listed_rules(project: Project) -> Iterator[ProposedRule]:
    for line in items(project.texts.get(RULES, ""), _ANY):
        if not any(_ASIDE.search(title) for title in line.titles):
            yield _rule(line, RULES)


def _rule(line: Line, path: str, title: str = "") -> ProposedRule:
    """A rule from an entry: what stands under a heading of forbidden things must not become true."""
    text = re.sub(r"\*\*(.+?)\*\*", r"\1", line.text)
    name = f"b.project.{make_slug(title or text)}"
    if not title and any(_FORBIDDEN.search(one) for one in line.titles):
        return ProposedRule(build_must_not_entry(name, text), (Source(path, line.number),))
    check = parse_quoted_command(text) or text
    is_strict = path == OVERRIDES or isinstance(check, dict) or _STRICT.search(text)
    severity = "fail" if is_strict else "warn"
    entry = {"id": name, "description": title or text, "severity": severity, "check": check}
    return ProposedRule(entry, (Source(path, line.number),))


def _overriding_rules(text: str) -> Iterator[ProposedRule]:
    """Rules of the form heading, source, rule; a rule goes on until the next heading or empty line."""
    current: Line | None = None
    for line in lines(text):
        found = _RULE.search(line.text) if line.language is None else None
        is_over = (
            line.language is not None or not line.text.strip() or found or (current and line.titles != current.titles)
        )
        if current and is_over:
            yield _rule(current, OVERRIDES, current.titles[-1] if current.titles else "")
            current = None
        if found:
            current = Line(line.number, found["text"].strip(), line.titles)
        elif current:
            current = replace(current, text=f"{current.text} {line.text.strip()}".strip())
    if current:
        yield _rule(current, OVERRIDES, current.titles[-1] if current.titles else "")


def _thresholds(text: str) -> dict[str, float]:
    """The thresholds in a text by their phases; what is more than all of it is none."""
    listed = (pair for one in _THRESHOLDS.finditer(text) for pair in re.findall(_PHASE, one[1]))
    found = chain(_PHASE_FIRST.findall(text), listed)
    return {phase: float(share) for phase, share in found if float(share) <= 1}
