"""Extract rules and prompt notes from the files that a project keeps for agents: `SHAPE.md` and `.ai-factory/`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain, islice

from pytest_loop.core.text.lengths import fit_tokens
from pytest_loop.core.text.sanitizer import clean_text
from pytest_loop.inference.command_candidate import SourceLine
from pytest_loop.inference.markdown_blocks import CHECKBOX, BlockKind, find_list_items, parse_blocks
from pytest_loop.inference.project_files import Project
from pytest_loop.inference.proposal import ProposedRule, choose_free_id, make_slug
from pytest_loop.inference.quoted_commands import build_quoted_check
from pytest_loop.inference.shape_file import SHAPE_FILE, build_must_not_entry, build_shape_rules, parse_shape_file

DESCRIPTION = ".ai-factory/DESCRIPTION.md"
ARCHITECTURE = ".ai-factory/ARCHITECTURE.md"
RULES = ".ai-factory/RULES.md"
OVERRIDES = ".ai-factory/skill-context/aif-loop/SKILL.md"
# The files in the order in which prompts show them, with their titles.
_TITLES = {
    SHAPE_FILE: "What the work has to come to",
    DESCRIPTION: "What this project is",
    ARCHITECTURE: "How it is built",
    RULES: "Its rules",
    OVERRIDES: "Rules of this project for loops; they win over everything above",
}
FILES = tuple(_TITLES)
MAX_RULES = 40
MAX_TOKENS = 2_000

_FORBIDDING_HEADING = re.compile(r"\b(?:must[ -]?not|never|forbidden|don'?ts?|do not|anti-?patterns?)\b", re.IGNORECASE)
_HEADING_WITHOUT_RULES = re.compile(r"\b(?:examples?|notes?|references?|history)\b", re.IGNORECASE)
_STRICT = re.compile(r"\b(?:must|never|always|required|shall|do not|don't|mandatory)\b", re.IGNORECASE)
_RULE = re.compile(r"\*\*Rule\*\*[^\S\n]*:?", re.IGNORECASE)
# Sentences about documents: "The artifact MUST include X", "Evaluation MUST check that Y".
_DEMAND = re.compile(r"\b(?:must|shall|never|always|required to|has to|may not)\b", re.IGNORECASE)
_ARTIFACT = re.compile(r"\b(?:artifacts?|documents?|outputs?|evaluat(?:ions?|ors?)|criteria)\b", re.IGNORECASE)
_EVALUATION = re.compile(
    r"^(?:the |every |each )?(?:evaluat(?:ions?|ors?)|criteria) (?:must|shall)(?: always)? "
    r"(?:check|verify|test|include|ensure)(?: that| whether)? ",
    re.IGNORECASE,
)
_ABOUT_ARTIFACT = re.compile(
    r"^(?:the |every |each |all |final )*(?:artifacts?|documents?|outputs?) (?:must|shall|has to)(?: always)? (?!not)",
    re.IGNORECASE,
)
_ITERATIONS = re.compile(r"\bmax[_ ]iterations\b\W{1,6}(\d{1,3})\b", re.IGNORECASE)
_SHARE = r"[01](?:\.\d+)?"
_PHASE = rf"\b([AB])\b\W{{1,4}}({_SHARE})"
# `thresholds: A 0.8, B 0.9`, or a single `phase A threshold: 0.8`.
_THRESHOLDS = re.compile(rf"\b[Tt]hresholds?\b[^.]{{0,20}}?((?:(?:and |phase )*{_PHASE}\W{{0,9}})+)")
_PHASE_FIRST = re.compile(rf"\b(?:phase )?([AB])\b[^.\n]{{0,20}}?\b[Tt]hreshold\W{{1,6}}({_SHARE})")


@dataclass(frozen=True)
class Note:
    """A file to show in prompts, with its title."""

    title: str
    text: str
    path: str


@dataclass(frozen=True)
class ProjectContext:
    """Rules and notes of a project.

    `document_rules` are statements of the file OVERRIDES about artifacts, which judge only documents.
    `max_iterations` and `thresholds` override the defaults; `clarity` is the spec score in `SHAPE.md`.
    """

    rules: tuple[ProposedRule, ...] = ()
    document_rules: tuple[ProposedRule, ...] = ()
    notes: tuple[Note, ...] = ()
    max_iterations: int | None = None
    thresholds: dict[str, float] = field(default_factory=dict)
    clarity: int | None = None

    @property
    def overriding_rules(self) -> tuple[ProposedRule, ...]:
        """The rules of the file OVERRIDES, which hold for every document, also beside a template."""
        return (*(rule for rule in self.rules if rule.sources[0].path == OVERRIDES), *self.document_rules)


def extract_context(project: Project) -> ProjectContext:
    """Return the context of a project; rules in the file OVERRIDES replace other rules with the same id."""
    shape = parse_shape_file(project.texts.get(SHAPE_FILE, ""))
    overrides = project.texts.get(OVERRIDES, "")
    groups = (build_shape_rules(shape), _list_rules(project.texts.get(RULES, "")), _list_overriding_rules(overrides))
    iterations = _ITERATIONS.search(overrides)
    return ProjectContext(
        rules=tuple(_assign_ids(chain.from_iterable(islice(group, MAX_RULES) for group in groups))),
        document_rules=tuple(_assign_ids(islice(_list_document_rules(overrides), MAX_RULES))),
        notes=tuple(Note(title, project.texts[path], path) for path, title in _TITLES.items() if path in project.texts),
        max_iterations=(int(iterations[1]) or None) if iterations else None,
        thresholds=_parse_thresholds(overrides),
        clarity=shape.clarity,
    )


def render_notes(context: ProjectContext, limit: int = MAX_TOKENS) -> str:
    """Render the notes in at most `limit` tokens; they are untrusted, so the caller marks them as data."""
    share = limit // max(1, len(context.notes))
    return "\n\n".join(
        fit_tokens(f"{note.title} ({note.path}):\n{clean_text(note.text).strip()}", share) for note in context.notes
    )


def _assign_ids(rules: Iterable[ProposedRule]) -> Iterable[ProposedRule]:
    """Return the rules with distinct ids: an override replaces a rule, any other duplicate gets a number."""
    by_id: dict[str, ProposedRule] = {}
    for rule in rules:
        replaceable = {rule_id for rule_id, other in by_id.items() if _is_override(rule, other)}
        rule_id = choose_free_id(rule.id, by_id.keys() - replaceable)
        by_id[rule_id] = replace(rule, entry={**rule.entry, "id": rule_id})
    return by_id.values()


def _is_override(rule: ProposedRule, other: ProposedRule) -> bool:
    return rule.sources[0].path == OVERRIDES and other.sources[0].path != OVERRIDES


def _list_rules(text: str) -> Iterator[ProposedRule]:
    """Yield the list items of RULES.md; those below a forbidding heading are must-not rules."""
    for item in find_list_items(text):
        if any(_HEADING_WITHOUT_RULES.search(title) for title in item.headings):
            continue
        statement = _strip_bold(item.text)
        source = SourceLine(RULES, item.line)
        if any(_FORBIDDING_HEADING.search(title) for title in item.headings):
            yield ProposedRule(build_must_not_entry(f"b.project.{make_slug(statement)}", statement), (source,))
        else:
            yield _build_rule(statement, statement, source)


def _list_overriding_rules(text: str) -> Iterator[ProposedRule]:
    """Yield the paragraphs that begin with `**Rule**:`; the heading above is the description."""
    for block in parse_blocks(text):
        starts = [match.start() for match in _RULE.finditer(block.text)] if block.kind is not BlockKind.CODE else []
        for start, end in zip(starts, [*starts[1:], None], strict=False):
            lines = (line.strip() for line in _RULE.sub("", block.text[start:end], count=1).split("\n"))
            statement = _strip_bold(" ".join(lines).strip())
            title = block.headings[-1] if block.headings else statement
            yield _build_rule(statement, title, SourceLine(OVERRIDES, block.line + block.text.count("\n", 0, start)))


def _list_document_rules(text: str) -> Iterator[ProposedRule]:
    """Yield the sentences that say what an artifact or its evaluation must or must not do."""
    for block in parse_blocks(text):
        if block.kind is BlockKind.CODE or _RULE.search(block.text):
            continue
        for sentence in re.split(r"(?<=[.!])\s+|\n(?=\s*[-*])", CHECKBOX.sub("", block.text)):
            statement = " ".join(_strip_bold(sentence).split()).strip("- ")
            if _DEMAND.search(statement) and _ARTIFACT.search(statement):
                check = _EVALUATION.sub("", statement)
                name = f"a.project.{make_slug(_ABOUT_ARTIFACT.sub('', check))}"
                entry = {"id": name, "description": statement, "check": check}
                yield ProposedRule(entry, (SourceLine(OVERRIDES, block.line),))


def _strip_bold(text: str) -> str:
    return re.sub(r"\*\*(.+?)\*\*", r"\1", text)


def _build_rule(statement: str, description: str, source: SourceLine) -> ProposedRule:
    check = build_quoted_check(statement) or statement
    is_strict = source.path == OVERRIDES or isinstance(check, dict) or _STRICT.search(statement)
    severity = "fail" if is_strict else "warn"
    name = f"b.project.{make_slug(description)}"
    return ProposedRule({"id": name, "description": description, "severity": severity, "check": check}, (source,))


def _parse_thresholds(text: str) -> dict[str, float]:
    """Return the thresholds in a text by phase; values above 1 are ignored."""
    listed = (pair for match in _THRESHOLDS.finditer(text) for pair in re.findall(_PHASE, match[1]))
    pairs = chain(_PHASE_FIRST.findall(text), listed)
    return {phase: float(share) for phase, share in pairs if float(share) <= 1}
