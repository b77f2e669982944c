"""The result of an inference: criteria with their sources, the reasons, the confidence and the alternatives."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain, count
from typing import Any

import yaml

from pytest_loop.inference.command_candidate import Confidence, Goal, SourceLine
from pytest_loop.inference.shell_script import needs_shell
from pytest_loop.inference.tool_purposes import Purpose

# Seconds; a suite takes longer than the check of a document.
_TIMEOUTS: dict[Purpose | None, int] = {
    **dict.fromkeys((Purpose.TEST, Purpose.COVERAGE, Purpose.BUILD), 600),
    **dict.fromkeys((Purpose.TYPES, Purpose.LINT), 300),
}
_DEFAULT_TIMEOUT = 120
# Commands that need parentheses in a chain.
_CHAIN = re.compile(r"&|;|\|\||^cd ")


@dataclass(frozen=True)
class Criterion:
    """One condition for success.

    `check` has the form of a rule file; None stands for the project's tests, which pytest collects without a rule.
    `targets` limits them, empty means all. `missing_tool` is a program that the command needs and that is absent.
    A criterion that `needs_baseline` asks for a greater number than before the run, which is not measured yet.
    A guard must keep passing, and is not the goal.
    """

    id: str
    description: str
    command: str = ""
    check: Mapping[str, Any] | str | None = None
    sources: tuple[SourceLine, ...] = ()
    targets: tuple[str, ...] = ()
    missing_tool: str = ""
    needs_baseline: bool = False
    is_guard: bool = False

    @property
    def is_project_tests(self) -> bool:
        return self.check is None


@dataclass(frozen=True)
class RejectedCriterion:
    """A criterion that was not chosen."""

    criterion: str
    rejected_because: str


@dataclass(frozen=True)
class Proposal:
    """Criteria for a task that came without any.

    `unmeasured` are conditions of the task that nothing in the project measures. `rewordings` are tasks that would be
    certain. `doubt` says why a low confidence is low; with `can_be_confirmed` a person's yes settles it.
    """

    goal: Goal
    criteria: tuple[Criterion, ...]
    confidence: Confidence
    rationale: tuple[str, ...] = ()
    alternatives: tuple[RejectedCriterion, ...] = ()
    warnings: tuple[str, ...] = ()
    unmeasured: tuple[str, ...] = ()
    doubt: str = ""
    can_be_confirmed: bool = True
    rewordings: tuple[str, ...] = ()
    max_iterations: int = 10

    @property
    def criterion(self) -> str:
        """All criteria in one sentence."""
        return "; ".join(criterion.description for criterion in self.criteria)

    @property
    def verification_command(self) -> str:
        """All commands in one line; each keeps its own folder and its own result."""
        commands = [criterion.command for criterion in self.criteria if criterion.command]
        if len(commands) == 1:
            return commands[0]
        return " && ".join(f"({command})" if _CHAIN.search(command) else command for command in commands)

    @property
    def missing_tool(self) -> str:
        """The first missing program or plugin, or empty; paths and modules do not count: an agent may write them."""
        tools = (criterion.missing_tool for criterion in self.criteria)
        return next((tool for tool in tools if tool and "/" not in tool and " " not in tool), "")

    @property
    def needs_human_confirmation(self) -> bool:
        """Whether a person has to confirm the proposal even if inferred criteria were accepted in advance."""
        has_problems = bool(self.warnings or self.unmeasured) or any(
            criterion.missing_tool for criterion in self.criteria
        )
        return self.confidence is Confidence.LOW or has_problems


def build_command_check(command: str, purpose: Purpose | None) -> dict[str, Any]:
    """Return the check that runs a command."""
    return {"command": command, **build_run_options(command, purpose)}


def build_run_options(command: str, purpose: Purpose | None) -> dict[str, Any]:
    """Return the timeout of a command, and whether it needs a shell."""
    return {"timeout": _TIMEOUTS.get(purpose, _DEFAULT_TIMEOUT), **({"shell": True} if needs_shell(command) else {})}


@dataclass(frozen=True)
class ProposedRule:
    """An entry for a rule file, and its sources, or else the reason for it."""

    entry: Mapping[str, Any]
    sources: tuple[SourceLine, ...] = ()
    reason: str = "the task"

    @property
    def id(self) -> str:
        return str(self.entry["id"])

    @property
    def origin(self) -> str:
        """Where the rule comes from, in a few words."""
        return ", ".join(map(str, self.sources)) or self.reason


def make_slug(text: str) -> str:
    """Return a few words of a text as the last part of a rule id."""
    words = re.findall(r"[a-z0-9]+", text.lower())[:6]
    return "-".join(words)[:40].strip("-") or "rule"


def choose_free_id(rule_id: str, used_ids: Collection[str]) -> str:
    """Return a rule id, with a number if it is used already."""
    ids = chain((rule_id,), (f"{rule_id}-{number}" for number in count(2)))
    return next(candidate for candidate in ids if candidate not in used_ids)


def build_rules(proposal: Proposal) -> tuple[ProposedRule, ...]:
    """Return the criteria as rules; the project's tests need none."""
    return tuple(
        ProposedRule(
            {
                "id": criterion.id,
                "description": criterion.description,
                **({"guard": True} if criterion.is_guard else {}),
                "check": criterion.check,
            },
            criterion.sources,
        )
        for criterion in proposal.criteria
        if not criterion.is_project_tests
    )


def render_rule_file(rules: Sequence[ProposedRule], criteria: str = "inferred") -> str:
    """Render a rule file with the sources of each rule in a comment; empty without rules."""
    return f"criteria: {criteria}\nrules:\n{render_rules(rules)}" if rules else ""


def render_rules(rules: Sequence[ProposedRule]) -> str:
    """Render the entries of a rule file, each below a comment with its origin."""
    text = ""
    for rule in rules:
        text += f"  # {' '.join(rule.origin.split())}\n"
        text += "".join(f"  {line}\n" for line in _dump_yaml([dict(rule.entry)]).splitlines())
    return text


def render_proposal(proposal: Proposal) -> str:
    """Render a proposal as YAML in the form of the contract, with additional keys if they have content."""
    required: dict[str, Any] = {
        "goal": proposal.goal.value,
        "criterion": proposal.criterion,
        "verification_command": proposal.verification_command,
        "rationale": list(proposal.rationale),
        "confidence": proposal.confidence.value,
        "alternatives_considered": [asdict(alternative) for alternative in proposal.alternatives],
        "max_iterations_suggestion": proposal.max_iterations,
        "needs_human_confirmation": proposal.needs_human_confirmation,
    }
    optional = {
        "warnings": list(proposal.warnings),
        "unmeasured": list(proposal.unmeasured),
        "cannot_run_here": [
            f"{criterion.command}: {criterion.missing_tool} is not here"
            for criterion in proposal.criteria
            if criterion.missing_tool
        ],
        "rewordings": list(proposal.rewordings),
    }
    return _dump_yaml({"proposed_completion": required | {key: value for key, value in optional.items() if value}})


def _dump_yaml(data: Any) -> str:
    return yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=110)
