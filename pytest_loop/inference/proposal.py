"""What was inferred: criteria with their places, why these, how sure, and what else there was."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from pytest_loop.inference.command_candidate import Confidence, Goal, Source
from pytest_loop.inference.shell_script import needs_shell
from pytest_loop.inference.tool_purposes import Purpose

# A suite takes longer than a check of a document.
TIMEOUTS = {Purpose.TEST: 600, Purpose.COVERAGE: 600, Purpose.BUILD: 600, Purpose.TYPES: 300, Purpose.LINT: 300}
_TIMEOUT = 120
# What would mean something else in a chain, or change what comes after it.
_CHAIN = re.compile(r"&|;|\|\||^cd ")


@dataclass(frozen=True)
class Criterion:
    """One thing that has to be true in the end.

    `check` is as a rule file has it; None means the project's own tests, which pytest collects without any rule.
    `targets` are what of them is meant, all where it is empty. `missing` is a program that is not installed here.
    """

    id: str
    description: str
    command: str = ""
    check: Mapping[str, Any] | str | None = None
    sources: tuple[Source, ...] = ()
    targets: tuple[str, ...] = ()
    missing_tool: str = ""

    @property
    def is_project_tests(self) -> bool:
        return self.check is None


@dataclass(frozen=True)
class Alternative:
    """What else could have been asked for."""

    criterion: str
    rejected_because: str


@dataclass(frozen=True)
class Proposal:
    """Criteria for a task that came without any; `unmeasured` is what was asked for and nothing here measures.

    `rewordings` are ways to say the task so that it would be certain, where it is not.
    """

    goal: Goal
    criteria: tuple[Criterion, ...]
    confidence: Confidence
    rationale: tuple[str, ...] = ()
    alternatives: tuple[Alternative, ...] = ()
    warnings: tuple[str, ...] = ()
    unmeasured: tuple[str, ...] = ()
    rewordings: tuple[str, ...] = ()
    max_iterations: int = 10

    @property
    def criterion(self) -> str:
        """All of it in one sentence."""
        return "; ".join(one.description for one in self.criteria)

    @property
    def verification_command(self) -> str:
        """What a person would type to see for themselves; of several commands, each stays in a shell of its own."""
        commands = [one.command for one in self.criteria if one.command]
        if len(commands) == 1:
            return commands[0]
        return " && ".join(f"({one})" if _CHAIN.search(one) else one for one in commands)

    @property
    def needs_human_confirmation(self) -> bool:
        """Whether somebody has to look at it, whatever was agreed to before."""
        is_odd = bool(self.warnings or self.unmeasured) or any(one.missing_tool for one in self.criteria)
        return self.confidence is Confidence.LOW or is_odd


def build_command_check(command: str, purpose: Purpose | None) -> dict[str, Any]:
    """The check that runs a command."""
    return {"command": command, **build_run_options(command, purpose)}


def build_run_options(command: str, purpose: Purpose | None) -> dict[str, Any]:
    """How a command is run."""
    timeout = TIMEOUTS.get(purpose, _TIMEOUT) if purpose else _TIMEOUT
    return {"timeout": timeout, **({"shell": True} if needs_shell(command) else {})}


@dataclass(frozen=True)
class ProposedRule:
    """A rule as a rule file has it, and where it came from."""

    entry: Mapping[str, Any]
    sources: tuple[Source, ...]


def build_rules(proposal: Proposal) -> tuple[ProposedRule, ...]:
    """The criteria as rules; the project's own tests need none."""
    return tuple(
        ProposedRule({"id": one.id, "description": one.description, "check": one.check}, one.sources)
        for one in proposal.criteria
        if not one.is_project_tests
    )


def render_rule_file(made: tuple[ProposedRule, ...], criteria: str = "inferred") -> str:
    """A rule file with a comment above each rule that says where it came from; empty where there are no rules."""
    if not made:
        return ""
    text = f"criteria: {criteria}\nrules:\n"
    for rule in made:
        places = ", ".join(map(str, rule.sources))
        text += f"  # {places or 'the task'}\n"
        body = _dump_yaml([dict(rule.entry)])
        text += "".join(f"  {line}\n" for line in body.splitlines())
    return text


def render_proposal(proposal: Proposal) -> str:
    """The proposal for a person, and for tools that know its form."""
    said: dict[str, Any] = {
        "goal": proposal.goal.value,
        "criterion": proposal.criterion,
        "verification_command": proposal.verification_command,
        "rationale": list(proposal.rationale),
        "confidence": proposal.confidence.value,
        "alternatives_considered": [
            {"criterion": one.criterion, "rejected_because": one.rejected_because} for one in proposal.alternatives
        ],
        "max_iterations_suggestion": proposal.max_iterations,
        "needs_human_confirmation": proposal.needs_human_confirmation,
    }
    missing = [f"{one.command}: {one.missing_tool} is not here" for one in proposal.criteria if one.missing_tool]
    for name, value in (
        ("warnings", list(proposal.warnings)),
        ("unmeasured", list(proposal.unmeasured)),
        ("cannot_run_here", missing),
        ("rewordings", list(proposal.rewordings)),
    ):
        said |= {name: value} if value else {}
    return _dump_yaml({"proposed_completion": said})


def explain_uncertainty(proposal: Proposal) -> str:
    """Why a proposal is not adopted: all of it, with ways to say the task so that it would be."""
    return f"it is not certain what tells that this is done; say it in the task:\n{render_proposal(proposal)}".rstrip(
        "\n"
    )


def _dump_yaml(data: Any) -> str:
    return yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=110)
