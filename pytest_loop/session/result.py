"""The result of one session, read from the messages that it sent through its pipe."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pytest_loop.core.judging.assessment import assess
from pytest_loop.core.judging.parameters import match_parameters
from pytest_loop.core.judging.run_draft import add_module_rules, build_run_criteria
from pytest_loop.core.model.evaluation import ClusterWork, Evaluation
from pytest_loop.core.model.rules import Evidence, Outcome, Phase, SessionPlan
from pytest_loop.core.model.run_criteria import RunCriteria, RunRule
from pytest_loop.session.channel import compute_signature
from pytest_loop.session.history import is_failure

# Fields to which messages add paths, and fields to which they add pairs of a path and a detail.
_PATH_FIELDS = ("opened_to_write", "module_folders", "plugin_files")
_PAIR_FIELDS = ("interference", "reads")


@dataclass
class SessionResult:
    """The plan of a session, what it reported, and how it ended.

    - `evidence`, `unmet_items`: the evidence of each item, and the items that failed or could not be verified; a set of
      its own, because the thread that shows the progress cannot iterate over `evidence` while it grows.
    - `problems`: why files could not be collected, by path.
    - `canaries`: for each hidden test, whether it failed as it must.
    - `reads`: files of the project that were opened, each with the file whose code opened it.
    - `opened_to_write`: files of the project that were opened for writing.
    - `module_folders`: folders of the project in which Python searches modules.
    - `reach`: the files of the project that each test executes, if the session was asked to record them.
    - `cluster`: the shards that workers judged, None if all was judged here.
    - `interference`: how code under test changed the session: a path of the project, or "", and a sentence.
    - `running_item`: the last item that was started.
    - `exit_status`, `pytest_failures`: pytest's exit code, None if the session died, and how many failures it counted.
    - `contradictions`: messages that no undisturbed session sends: code under test may write into the pipe.
    - `ending`: the exit code or the signal of the process, in words.
    """

    plan: SessionPlan | None = None
    evidence: dict[str, Evidence] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    canaries: list[bool] = field(default_factory=list)
    plugins: frozenset[str] = frozenset()
    reads: set[tuple[str, str]] = field(default_factory=set)
    opened_to_write: set[str] = field(default_factory=set)
    module_folders: set[str] = field(default_factory=set)
    plugin_files: set[str] = field(default_factory=set)
    reach: dict[str, frozenset[str]] = field(default_factory=dict)
    interference: set[tuple[str, str]] = field(default_factory=set)
    running_item: str = ""
    exit_status: int | None = None
    pytest_failures: int = 0
    contradictions: list[str] = field(default_factory=list)
    ending: str = ""
    output: str = ""
    unmet_items: set[str] = field(default_factory=set)
    cluster: ClusterWork | None = None

    def describe_progress(self) -> str:
        """Return how many items are done and how many of them fail; empty before the collection is over."""
        if self.plan is None:
            return ""
        failing = f", {len(self.unmet_items):,} failing" if self.unmet_items else ""
        return f"{len(self.evidence):,}/{len(self.plan.items):,}{failing}"

    @property
    def has_failures(self) -> bool:
        return any(map(is_failure, self.evidence.values()))

    @property
    def failed_items(self) -> tuple[str, ...]:
        """The items that ran and failed, without those that could not be verified."""
        outcomes = (Outcome.FAILED, Outcome.ERROR)
        return tuple(nodeid for nodeid, evidence in self.evidence.items() if evidence.outcome in outcomes)

    @property
    def replaced_tests(self) -> tuple[str, ...]:
        """The test functions that are not what their source file says."""
        return self.plan.replaced_tests if self.plan else ()

    @property
    def has_reused_evidence(self) -> bool:
        return any(evidence.reused for evidence in self.evidence.values())

    def collect_evidence(self, rules: Sequence[RunRule]) -> dict[str, list[Evidence]]:
        """Return the evidence of each rule of a run; a rule that stands for a module has that of every test in it."""
        modules = {rule.key: self.find_module_evidence(rule.id) for rule in rules if rule.is_module}
        return self.group_by_rule(rule.key for rule in rules) | modules

    def group_by_rule(self, expected: Iterable[str] = ()) -> dict[str, list[Evidence]]:
        """Return the evidence of each rule; an item without a report is missing.

        If the parameters of a test changed, its `expected` rules get the evidence of the new parameters.
        """
        groups: dict[str, list[Evidence]] = {}
        for nodeid, keys in (self.plan.items if self.plan else {}).items():
            for key in keys:
                groups.setdefault(key, []).append(self.evidence.get(nodeid) or self.make_missing_evidence(nodeid))
        return match_parameters(expected, groups)

    def find_module_evidence(self, path: str) -> list[Evidence]:
        """Return the evidence of all tests in a module; a module that cannot be imported is missing."""
        evidence = [piece for nodeid, piece in self.evidence.items() if nodeid.startswith(f"{path}::")]
        return evidence if evidence and path not in self.problems else [self.make_missing_evidence()]

    def make_missing_evidence(self, nodeid: str = "") -> Evidence:
        """Return evidence that says why an item did not report."""
        if self.problems:
            text = f"not verified: {'; '.join(f'{name}: {_last_line(text)}' for name, text in self.problems.items())}"
        elif self.exit_status is not None:
            text = "not verified: no report arrived"
        elif nodeid == self.running_item:
            text = f"not verified: the session died here ({self.ending})"
        else:
            text = f"not verified: the session died ({self.ending}) in {self.running_item or 'its collection'}"
        return Evidence(outcome=Outcome.MISSING, text=text)

    def read_messages(self, descriptor: int, key: bytes) -> None:
        """Apply every message of a pipe until it is closed; each begins with its signature."""
        with os.fdopen(descriptor, "rb") as pipe:
            number = 1  # of the next genuine message
            for line in pipe:
                signature, _, message = line.rstrip(b"\n").partition(b" ")
                is_genuine = signature == compute_signature(key, number, message)
                number += is_genuine
                try:
                    self._apply(json.loads(message) if is_genuine else None)
                except (AttributeError, TypeError, ValueError):
                    self.contradictions.append("it sent something that is not a message")

    def _apply(self, message: Any) -> None:
        if self.exit_status is not None:
            self.contradictions.append("it reported something after its end")
        for name, value in message.items():
            if name in _PATH_FIELDS:
                getattr(self, name).update([str(path) for path in value])
            elif name in _PAIR_FIELDS:
                getattr(self, name).update([(str(path), str(detail)) for path, detail in value])
            elif apply := getattr(self, f"_apply_{name}", None):
                apply(value)

    def _apply_plan(self, plan: Any) -> None:
        if self.plan is not None:
            self.contradictions.append("it reported two plans")
        self.plan = SessionPlan.model_validate(plan)

    def _apply_evidence(self, pairs: Any) -> None:
        """Keep the worst evidence of each item: a pass never replaces a failure."""
        for nodeid, data in pairs:
            evidence, earlier = Evidence.model_validate(data), self.evidence.get(nodeid)
            if earlier is None or earlier.outcome.rank <= evidence.outcome.rank:
                self.evidence[nodeid] = evidence
                if is_failure(evidence):
                    self.unmet_items.add(nodeid)

    def _apply_problem(self, problem: Any) -> None:
        path, text = problem
        self.problems[str(path)] = str(text)

    def _apply_canary(self, has_failed: Any) -> None:
        self.canaries.append(has_failed is True)

    def _apply_plugins(self, names: Any) -> None:
        self.plugins = frozenset(map(str, names))

    def _apply_start(self, nodeid: Any) -> None:
        self.running_item = str(nodeid)

    def _apply_reach(self, groups: Any) -> None:
        for nodeids, paths in groups:
            self.reach |= dict.fromkeys(map(str, nodeids), frozenset(map(str, paths)))

    def _apply_end(self, end: Any) -> None:
        exit_status, failures = end
        self.exit_status, self.pytest_failures = int(exit_status), int(failures)

    def list_contradictions(self) -> list[str]:
        """Return why the messages cannot come from an undisturbed session; empty if they can."""
        has_failures = bool(self.problems) or any(
            evidence.outcome is not Outcome.PASSED for evidence in self.evidence.values()
        )
        contradictions = [*self.contradictions]
        if self.pytest_failures and not has_failures:
            contradictions.append("pytest counted failures, and none was reported")
        is_complete = bool(self.evidence) and self.evidence.keys() >= (self.plan.items if self.plan else {}).keys()
        if is_complete and not has_failures and self.exit_status is None:
            contradictions.append("every test passed, and the session did not come to its end")
        return list(dict.fromkeys(contradictions))


class BaselineResult(NamedTuple):
    """The result of the last baseline session, and the hash of the files that it judged."""

    digest: str
    result: SessionResult


def assess_session(
    result: SessionResult, thresholds: Mapping[str, str], score: Callable[..., float | None]
) -> tuple[RunCriteria, Evaluation]:
    """Return the criteria and the evaluation of one session outside a run; `score` may replace the usual score."""
    plan = add_module_rules(result.plan or SessionPlan(), (path for path in result.problems if path.endswith(".py")))
    criteria = build_run_criteria(plan, thresholds)
    evidence = result.collect_evidence(criteria.rules)
    return criteria, assess(criteria, Phase.B, evidence, "", None, result.make_missing_evidence(), score)


def _last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")
