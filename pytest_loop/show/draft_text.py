"""Render the draft of a run: its task, rules, limits and agents, and the files that may be edited."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from pytest_loop.core.machine.budgets import get_budgets
from pytest_loop.core.model.rules import INFERRED_FILE
from pytest_loop.core.model.run_criteria import RunRule
from pytest_loop.core.model.run_setup import Limits
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.model.vocabulary import Target
from pytest_loop.core.text.lengths import shorten
from pytest_loop.core.text.wording import format_count, list_names
from pytest_loop.show.look import Look, shorten_agent

SHOWN_RULES = 4
DETAILED_RULES = 12
TEMPLATE_ORIGIN = "template "
UNDO = "undo: pytest-loop restore 0"
_INDENT = 2
_MAX_TASK = 60
_MAX_PLACES = 3
_MIN_DESCRIPTION = 30
_LIMIT_WORDS = {"usd": "{:g} USD", "tokens": "{:,} tokens", "seconds": "{:g} s of completed steps"}


@dataclass(frozen=True)
class DraftFacts:
    """Facts of a draft that the state of a run lacks: origins of rules, numbers of failing rules and sealed files."""

    origins: dict[str, str] = field(default_factory=dict)
    failing: int | None = None
    sealed: int = 0


def render_draft(state: RunState, facts: DraftFacts, look: Look) -> Iterator[str]:
    """Render the draft in a few lines; `-v` adds every setting and more rules."""
    judge = f", judge {state.setup.judge}" if state.setup.judge else ""
    is_project = state.setup.target is Target.WORKSPACE
    yield from look.wrap_parts(
        look.paint(shorten(state.task.prompt, _MAX_TASK), "bold"),
        _count_rules(state, facts.failing),
        "" if is_project else "passes at {A:g} in phase A, {B:g} in phase B".format(**_get_thresholds(state)),
        f"agent {' then '.join(map(shorten_agent, state.setup.agents)) or 'none'}{judge}",
        _describe_limits(state),
        UNDO if is_project else "",
    )
    sealed = f" (sealed, {format_count(facts.sealed, 'file')})" if facts.sealed else ""
    target = f"may edit: {_describe_scope(state)}" if is_project else f"writes: {state.setup.artifact}"
    yield from look.wrap_parts(f"judge: {_list_places(state, facts.origins)}{sealed}", target)
    yield from _render_rules(state, facts, look)
    yield from _render_seal_notes(state, look)
    if look.verbosity > 0:
        yield from _render_details(state)


def _get_thresholds(state: RunState) -> dict[str, float]:
    return {phase.value: float(level.threshold) for phase, level in state.criteria.phase.items()}


def _count_rules(state: RunState, failing: int | None) -> str:
    """Return a text such as `1 rule, 6 tests, 3 failing`, with the number of guards at the end."""
    goals = state.criteria.goals
    tests = sum(rule.is_test for rule in goals)
    parts = [format_count(count, noun) for noun, count in {"rule": len(goals) - tests, "test": tests}.items() if count]
    if failing is not None:
        parts.append(f"{failing} failing")
    if guards := len(state.criteria.guards):
        parts.append(f"{format_count(guards, 'guard')} that must keep passing")
    return ", ".join(parts)


def _describe_limits(state: RunState) -> str:
    """Return the limits of the run without the cost limit if it is the default."""
    budgets = get_budgets(state)
    shown = {name: limit for name, (_, limit) in budgets.items() if limit is not None}
    if shown.get("usd") == Limits().usd:
        del shown["usd"]
    limits = [_LIMIT_WORDS[name].format(limit) for name, limit in shown.items()]
    return ", ".join([f"at most {format_count(state.max_iterations, 'iteration')}", *limits])


def _describe_scope(state: RunState) -> str:
    seal = state.setup.work_seal or state.setup.seal
    allow = seal.allow if seal else ()
    return list_names(allow, _MAX_PLACES) if allow else "everything else"


def _list_places(state: RunState, origins: dict[str, str]) -> str:
    """Return where the rules are: a template, the draft, or files; name only the folder of several files in it."""
    templates = {rule.source: origin for rule in state.criteria.rules if (origin := _find_template(rule, origins))}
    if templates:
        return list_names(sorted(set(templates.values())), _MAX_PLACES)
    paths = dict.fromkeys(map(_name_rule_file, state.criteria.rules))
    folders: dict[str, list[str]] = {}
    for path in filter(None, paths):
        folders.setdefault(PurePosixPath(path).parent.as_posix(), []).append(path)
    places = [
        place
        for folder, names in folders.items()
        for place in (names if folder == "." or len(names) == 1 else [f"{folder}/"])
    ]
    return list_names(places, _MAX_PLACES) or "the project"


def _name_rule_file(rule: RunRule) -> str:
    """Return the path of a rule's file, or `the rules below` for a drafted file, whose rules the draft lists."""
    return "the rules below" if PurePosixPath(rule.path).name == INFERRED_FILE else rule.path


def _find_template(rule: RunRule, origins: dict[str, str]) -> str:
    """Return the template of a rule; empty if the rule is in the project's own file, which may extend a template."""
    origin = origins.get(rule.key, "")
    return origin if PurePosixPath(rule.source).is_absolute() and origin.startswith(TEMPLATE_ORIGIN) else ""


def _render_rules(state: RunState, facts: DraftFacts, look: Look) -> Iterator[str]:
    """Render the rules of this task, then those of a template; include the project's tests only with `-v`."""
    rules = [rule for rule in state.criteria.goals if not rule.is_test or look.verbosity > 0]
    rules.sort(key=lambda rule: facts.origins.get(rule.key, "").startswith(TEMPLATE_ORIGIN))
    limit = DETAILED_RULES if look.verbosity > 0 else SHOWN_RULES
    shown = rules[:limit]
    width = max((len(shorten(rule.id, 60)) for rule in shown), default=0)
    for rule in shown:
        yield _format_rule(rule, facts.origins.get(rule.key, ""), width, look)
    if len(rules) > limit:
        yield f"  … and {len(rules) - limit} more"


def _format_rule(rule: RunRule, origin: str, width: int, look: Look) -> str:
    """Return one line for a rule, without an origin that other lines of the draft already name."""
    is_detailed = look.verbosity > 0
    if origin == rule.source or (origin.startswith(TEMPLATE_ORIGIN) and not is_detailed):
        origin = ""
    kinds = ", ".join(filter(None, (origin, "judged" if isinstance(rule.check, str) else "")))
    detail = f"{rule.phase.value} {rule.severity.value:<4} {float(rule.weight):>4g}  " if is_detailed else ""
    head, tail = f"  {detail}{shorten(rule.id, 60).ljust(width)}", f"  [{kinds}]" if kinds else ""
    room = max(_MIN_DESCRIPTION, look.width - len(head) - len(tail) - 2)
    description = f"  {shorten(rule.description, room)}" if rule.description != rule.id else ""
    return f"{head}{description}{look.paint(tail, 'dim')}".rstrip()


def _render_seal_notes(state: RunState, look: Look) -> Iterator[str]:
    """Render notes on the seal: the build command, unsealed or unstable tests, and tests that do not count."""
    seal = state.setup.seal
    if state.setup.work_seal is not None:
        text = "tests first: an agent writes tests for the task; once they are confirmed and sealed, the work begins"
        yield from look.wrap(text, _INDENT)
    if seal and seal.named:
        yield from look.wrap(f"unsealed: {list_names(seal.named, _MAX_PLACES)} (the task names it)", _INDENT)
    if seal and seal.build:
        yield f"build: {shorten(seal.build, 100)} (before an evaluation that may decide)"
    if seal and seal.unstable:
        text = f"unstable: {list_names(seal.unstable, _MAX_PLACES)} (not the same twice, so that it does not block)"
        yield from look.wrap(text, _INDENT)
    if names := state.setup.draft.unmeasured:
        text = (
            f"note: no failing test names {list_names(names, _MAX_PLACES)}: --loop-tests-first lets the agent write one"
        )
        yield from look.wrap(text, _INDENT)
    if seal and seal.unjudged:
        text = f"not judged: {list_names(seal.unjudged, _MAX_PLACES)} (skipped or expected to fail already)"
        yield from look.wrap(text, _INDENT)


def _render_details(state: RunState) -> Iterator[str]:
    """Render what only `-v` shows."""
    if state.task.ideal_result:
        yield f"ideal: {shorten(state.task.ideal_result, 100)}"
    yield "thresholds: A {A:g}, B {B:g}".format(**_get_thresholds(state))
    limits = [_LIMIT_WORDS[name].format(limit) for name, (_, limit) in get_budgets(state).items() if limit is not None]
    yield f"limits: {format_count(state.max_iterations, 'iteration')}, {', '.join(limits) or 'no budget'}"
    if state.criteria.guards and state.setup.seal:
        yield f"guards: about {state.setup.seal.guard_seconds:.1f} s"
