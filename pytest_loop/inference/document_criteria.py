"""Draft the criteria of one document: a template, and rules about this very task."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from pytest_loop.inference.api_requirements import find_endpoints, find_entities, find_version
from pytest_loop.inference.document_requirements import (
    Requirement,
    find_additions,
    find_keys,
    find_names,
    find_ports,
    find_sections,
    find_sizes,
    find_statement_check,
    find_subject,
)
from pytest_loop.inference.proposal import ProposedRule, choose_free_id, make_slug, render_rules
from pytest_loop.inference.task_types import API_SPEC, CODE, CONFIG, DOCS

# Longer texts are briefs for agents: not every word in them is a demand.
MAX_TEXT_LENGTH = 600
SECTIONS_RULE = "a.completeness.sections"
_NO_EMPTY_SECTIONS = {"python": "pytest_loop.rules.templates.docs:check_sections"}
# Documents that explain no usage; the template asks for a section about it.
_WITHOUT_USAGE = re.compile(
    r"\b(?:change\s?log|release notes|faqs?|adr|decision record|article|blog post|reference|handbook|runbook)\b",
    re.IGNORECASE,
)
Finder = Callable[[str], Iterator[Requirement]]
_PROSE_FINDERS: tuple[Finder, ...] = (find_sections, find_subject, find_names)
_FINDERS: dict[str, tuple[Finder, ...]] = {
    API_SPEC: (find_version, find_endpoints, find_entities),
    CODE: (find_names,),
    CONFIG: (find_keys, find_names, find_ports),
    DOCS: _PROSE_FINDERS,
}


class InheritedRule(NamedTuple):
    """A rule of the template that the rule file of a document extends."""

    id: str
    severity: str
    description: str


@dataclass(frozen=True)
class DocumentCriteria:
    """The criteria of one document.

    `template` is empty for a document of no known type, `words` are the words of the task that name the type.
    `unjudged` are rules that no agent can judge here. `severities` and `thresholds` replace values of the template.
    """

    template: str
    words: str = ""
    rules: tuple[ProposedRule, ...] = ()
    unjudged: tuple[ProposedRule, ...] = ()
    severities: Mapping[str, str] = field(default_factory=dict)
    thresholds: Mapping[str, float] = field(default_factory=dict)

    def render(self, artifact: str, inherited: Sequence[InheritedRule]) -> str:
        """Render the rule file: it extends the template, whose rules are listed with their severities."""
        replaced_ids = {rule.id for rule in self.rules}
        rules = [rule._replace(severity=self.severities.get(rule.id, rule.severity)) for rule in inherited]
        levels = ", ".join(f"{phase}: {{threshold: {score:g}}}" for phase, score in sorted(self.thresholds.items()))
        lines = [
            "# Drafted from the task. It is yours: edit it, keep it, and judge by it again with --loop-rules.",
            "# `severity: info` turns a rule off. `check` beside an id of the template replaces its check.",
            f"criteria: {self.template or 'document'}",
            *([f"extends: {self.template}"] if self.template else []),
            f"artifact: {_quote(artifact)}",
            *([f"phases: {{{levels}}}"] if levels else []),
            "rules:",
            *(
                f"  - {{id: {rule.id}, severity: {rule.severity}}}  # {rule.description}"
                for rule in rules
                if rule.id not in replaced_ids
            ),
        ]
        return "\n".join(lines) + "\n" + render_rules([self._apply_severity(rule) for rule in self.rules])

    def _apply_severity(self, rule: ProposedRule) -> ProposedRule:
        severity = self.severities.get(rule.id)
        return replace(rule, entry={**rule.entry, "severity": severity}) if severity else rule


def _quote(name: str) -> str:
    """Return a path as YAML: a plain word, or in quotes."""
    return name if re.fullmatch(r"[\w./-]+", name) else "'" + name.replace("'", "''") + "'"


@dataclass(frozen=True)
class DocumentTask:
    """The words about a document: the task, its ideal result, checks that are mandatory, statements of the project."""

    text: str
    ideal: str = ""
    mandatory: tuple[str, ...] = ()
    statements: tuple[ProposedRule, ...] = ()


def draft_criteria(template: str, words: str, task: DocumentTask, *, can_judge: bool) -> DocumentCriteria:
    """Draft the criteria of a document; sentences become rules only if an agent `can_judge` them.

    A mandatory sentence that no agent can judge has to be confirmed by a person.
    """
    is_markdown = template in (DOCS, "")
    drafted = [
        *_build_requirement_rules(template, task),
        *(_build_addition_rule(addition, can_judge) for addition in find_additions(task.text[:MAX_TEXT_LENGTH])),
        *(_build_mandatory_rule(text, is_markdown, can_judge) for text in task.mandatory),
        *(_make_concrete(rule, is_markdown) for rule in task.statements),
        *([_build_ideal_rule(task.ideal)] if task.ideal else []),
    ]
    rules = _number_ids(drafted)
    unjudged = tuple(rule for rule in rules if isinstance(rule.entry["check"], str) and not can_judge)
    return DocumentCriteria(template, words, tuple(rule for rule in rules if rule not in unjudged), unjudged)


def _build_requirement_rules(template: str, task: DocumentTask) -> Iterator[ProposedRule]:
    """Yield the rules for what the task and its ideal result name."""
    finders = (*_FINDERS.get(template, _PROSE_FINDERS), find_sizes)
    # An ideal result describes the document in free words: do not look for its subject or its entities.
    ideal_finders = [find for find in finders if find not in (find_subject, find_entities)]
    requirements = {
        requirement.description: (requirement, place)
        for text, place, text_finders in (
            (task.ideal, "the ideal result", ideal_finders),
            (task.text, "the task", finders),
        )
        for find in text_finders
        for requirement in find(text[:MAX_TEXT_LENGTH])
    }
    if template == DOCS and not any(requirement.name == "sections" for requirement, _ in requirements.values()):
        yield from _list_rules_without_usage(task.text)
    for requirement, place in requirements.values():
        yield _build_requirement_rule(requirement, f"`{requirement.words}` in {place}", template == DOCS)


def _build_requirement_rule(requirement: Requirement, reason: str, is_docs: bool) -> ProposedRule:
    """Return the rule of a requirement; for the template docs, a rule of sections replaces the template's own."""
    name, check = f"a.task.{requirement.name}", requirement.check
    if is_docs and requirement.name == "sections":
        name, check = SECTIONS_RULE, [check, _NO_EMPTY_SECTIONS]
    return ProposedRule({"id": name, "description": requirement.description, "check": check}, reason=reason)


def _build_addition_rule(requirement: Requirement, can_judge: bool) -> ProposedRule:
    """Return the rule of an addition for an agent to judge; without an agent, a warning if its words are missing."""
    sentence = f"The document has {requirement.words}."
    check = {"check": sentence} if can_judge else {"severity": "warn", "check": requirement.check}
    entry = {"id": f"a.task.{requirement.name}", "description": requirement.description, **check}
    return ProposedRule(entry, reason=f"`{requirement.words}` in the task")


def _list_rules_without_usage(task: str) -> Iterator[ProposedRule]:
    """Yield a rule that replaces the template's and demands no section about usage, if the document needs none."""
    if match := _WITHOUT_USAGE.search(task[:MAX_TEXT_LENGTH]):
        entry = {"id": SECTIONS_RULE, "description": "No section is empty", "check": _NO_EMPTY_SECTIONS}
        yield ProposedRule(entry, reason=f"`{match[0]}` in the task")


def _build_mandatory_rule(text: str, is_markdown: bool, can_judge: bool) -> ProposedRule:
    check = find_statement_check(text, is_markdown=is_markdown) or (text if can_judge else {"manual": text})
    entry = {"id": f"a.task.{make_slug(text)}", "description": text, "check": check}
    return ProposedRule(entry, reason="mandatory check")


def _make_concrete(rule: ProposedRule, is_markdown: bool) -> ProposedRule:
    """Replace the sentence of a rule by a check if a machine can decide it."""
    sentence = rule.entry["check"]
    check = find_statement_check(sentence, is_markdown=is_markdown) if isinstance(sentence, str) else None
    return replace(rule, entry={**rule.entry, "check": check}) if check else rule


def _build_ideal_rule(ideal: str) -> ProposedRule:
    text = " ".join(ideal.split())
    entry = {"id": "b.task.ideal", "description": f"Ideal result: {text}", "severity": "warn", "check": text}
    return ProposedRule(entry, reason="the ideal result")


def _number_ids(rules: Iterable[ProposedRule]) -> list[ProposedRule]:
    """Return the rules with distinct ids: a duplicate gets a number."""
    by_id: dict[str, ProposedRule] = {}
    for rule in rules:
        rule_id = choose_free_id(rule.id, by_id)
        by_id[rule_id] = replace(rule, entry={**rule.entry, "id": rule_id})
    return list(by_id.values())
