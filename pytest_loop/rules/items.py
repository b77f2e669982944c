"""Rule files as pytest modules, rules as pytest items."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn

import pytest
from pydantic import BaseModel

from pytest_loop.core.model.rules import INFERRED_FILE, Evidence, Finding, Outcome
from pytest_loop.core.model.session_order import SessionOrder
from pytest_loop.errors import LoopError, NotJudgedError, RuleFileError, TrialsDeferredError
from pytest_loop.rules.checks.check import Context, JudgeReply, run_check
from pytest_loop.rules.checks.composite_checks import FirstOf
from pytest_loop.rules.checks.registry import BUILT_IN_KINDS, COMPOSITE_KINDS, Kinds, build_check
from pytest_loop.rules.document import Documents
from pytest_loop.rules.garbage_collection import pause_garbage_collection
from pytest_loop.rules.repeats import RepeatVotes
from pytest_loop.rules.reuse import VerdictCache
from pytest_loop.rules.rule_files import LoadedRule, LoadedRuleFile, load_rule_file
from pytest_loop.rules.sources import TEMPLATES

LOADED_FILES = pytest.StashKey[list[LoadedRuleFile]]()
DOCUMENTS = pytest.StashKey[Documents]()
VOTES = pytest.StashKey[RepeatVotes]()
BAD_FILE_COUNT = pytest.StashKey[int]()
ORDER = pytest.StashKey[SessionOrder]()
ASK_JUDGE = pytest.StashKey[Callable[..., JudgeReply]]()
VERDICT_CACHE = pytest.StashKey[VerdictCache]()
_PASSED = Evidence(outcome=Outcome.PASSED)


class RuleFailed(Exception):  # noqa: N818 - not an error: the outcome of an item
    """Report that a rule does not pass, with its evidence and a text for the terminal."""

    def __init__(self, evidence: Evidence, text: str) -> None:
        self.evidence = evidence
        super().__init__(text)


def render_failure(excinfo: pytest.ExceptionInfo[BaseException], failure: RuleFailed, path: Path, line: int) -> Any:
    """Return pytest's representation of a failure: its text below the item's name, its evidence in the summary."""
    representation: Any = excinfo.getrepr(style="value")
    representation.reprtraceback.reprentries[0].lines = str(failure).splitlines()
    representation.reprcrash.path = str(path)
    representation.reprcrash.lineno = line
    representation.reprcrash.message = str(failure.evidence)
    return representation


def raise_collect_error(collector: pytest.Collector, error: LoopError) -> NoReturn:
    """Raise a collection error, and count it as one that does not stop the evaluation of other files."""
    collector.session.stash[BAD_FILE_COUNT] = collector.session.stash.get(BAD_FILE_COUNT, 0) + 1
    raise collector.CollectError(str(error)) from None


class RuleFile(pytest.Module):
    """Collect a rule file as a pytest module, so that its rules can have fixtures of module scope."""

    obj = None

    def collect(self) -> Iterable[pytest.Item]:
        with pause_garbage_collection():
            return list(self._load_items())

    def _load_items(self) -> Iterator[pytest.Item]:
        root = _find_root(self.config, self.path)
        order = self._order
        kinds = self._collect_kinds()
        try:
            loaded = load_rule_file(self.path, root, kinds, self.nodeid or self.path.as_posix(), order.artifact or None)
        except RuleFileError as error:
            raise_collect_error(self, error)
        self.session.stash.setdefault(LOADED_FILES, []).append(loaded)
        has_autouse = bool(pytest.Function.from_parent(self, name="probe", callobj=_probe).fixturenames)
        make_context = cache(partial(self._make_context, root, loaded))
        for rule in loaded.rules:
            key = f"{loaded.criteria.source}::{rule.rule.id}"
            context = make_context(rule.folder, rule.rule.id in order.confirmed_rules)
            if prepared := order.prepared_checks.get(key):  # an agent's concrete check for a sentence
                check = FirstOf(checks=(build_check(prepared, kinds), rule.check))
                rule = replace(rule, check=check, is_slow=True, raw=prepared)
            if order.shard and rule.rule.repeat == 1 and getattr(rule.check, "has_trials", False):
                context = replace(context, defers_trials=True)
            item_type = FixtureRuleItem if has_autouse or rule.fixtures else RuleItem
            yield from self._make_items(item_type, rule, key, context)

    @property
    def _order(self) -> SessionOrder:
        return self.config.stash.get(ORDER, None) or SessionOrder()

    def _make_context(self, root: Path, loaded: LoadedRuleFile, folder: Path, is_confirmed: bool) -> Context:
        ask = self.config.stash.get(ASK_JUDGE, None)
        return Context(
            root,
            folder,
            loaded.artifact,
            self.session.stash.setdefault(DOCUMENTS, Documents(root)),
            ask=partial(ask, artifact=folder / loaded.artifact if loaded.artifact else None) if ask else None,
            is_confirmed=is_confirmed,
            trials=self._order.trials,
        )

    def _make_items(
        self, item_type: type[_RuleItemBase], loaded: LoadedRule, key: str, context: Context
    ) -> Iterator[pytest.Item]:
        rule = loaded.rule
        weight = int(rule.weight) if rule.weight.denominator == 1 else float(rule.weight)
        mark = pytest.mark.loop_rule(
            rule.id,
            severity=rule.severity.value,
            weight=weight,
            phase=rule.phase.value,
            description=rule.description,
        )
        for index in range(1, rule.repeat + 1):
            name = f"{rule.id}[{index}]" if rule.repeat > 1 else rule.id
            item = item_type.from_parent(self, name=name, loaded=loaded, key=key, context=context, index=index)
            item.add_marker(mark)
            yield item

    def _collect_kinds(self) -> Kinds:
        """Return the built-in kinds of checks with those of plugins."""
        kinds = dict(BUILT_IN_KINDS)
        for plugin_kinds in self.ihook.pytest_loop_checks():
            for name, model in plugin_kinds.items():
                if problem := _find_kind_problem(name, model, kinds):
                    raise self.CollectError(f"pytest_loop_checks: expected {problem}")
                kinds[name] = model
        return kinds


def _find_kind_problem(name: str, model: object, kinds: Kinds) -> str | None:
    """Return why a plugin's kind of check cannot be used, or None."""
    if name in kinds or name in COMPOSITE_KINDS or name == "type":
        return f"a new name, found {name!r}, which exists already"
    if not (isinstance(model, type) and issubclass(model, BaseModel) and callable(getattr(model, "run", None))):
        return f"a pydantic model with run(context) for {name!r}, found {model!r}"
    return None


def _probe() -> None:
    """Do nothing: the fixtures that pytest finds for this function are the autouse fixtures of the folder."""


def _find_root(config: pytest.Config, path: Path) -> Path:
    """Return pytest's rootdir; for a rule file outside it, except templates and inferred rules, return its folder."""
    has_no_place = path.parent == TEMPLATES or path.name == INFERRED_FILE
    return config.rootpath if path.is_relative_to(config.rootpath) or has_no_place else path.parent


class _RuleItemBase(pytest.Item):
    """Base of items that evaluate a rule, or one repeat of it.

    `unbound_selectors` are selectors of `tests` checks that match no test of the session. `evidence_fields` are added
    to the evidence of its report.
    """

    loaded: LoadedRule
    context: Context
    index: int
    key: str
    unbound_selectors: tuple[str, ...] = ()
    evidence_fields: Mapping[str, Any] = MappingProxyType({})

    @property
    def shard_group(self) -> str:
        return self.key

    def judge(self, context: Context) -> None:
        """Raise `RuleFailed` unless the rule passes; skip a repeat if the vote is already decided."""
        rule = self.loaded.rule
        votes = self.session.stash[VOTES] if rule.repeat > 1 else None
        if votes and (decision := votes.decide(self.key, rule.need)) is not None:
            pytest.skip(f"already certain: the rule {'passes' if decision else 'fails'}")
        evidence = self._reuse_evidence(context) or self._make_evidence(context)
        if votes:
            votes.add(self.key, self.index, evidence.outcome is Outcome.PASSED)
        if evidence.outcome is not Outcome.PASSED:
            raise RuleFailed(evidence, self._render_evidence(evidence))

    def _reuse_evidence(self, context: Context) -> Evidence | None:
        """Return earlier evidence for unchanged inputs, or None; add the hash of the inputs to `evidence_fields`."""
        cache = self.session.stash.get(VERDICT_CACHE, None)
        inputs = cache.hash_inputs(self.loaded, context) if cache is not None else ""
        if cache is None or not inputs:
            return None
        evidence = cache.find_evidence(self.nodeid, inputs)
        tests = evidence.tests if evidence is not None else None
        self.evidence_fields = {"inputs": inputs, "reused": evidence is not None, "tests": tests}
        return evidence

    def _make_evidence(self, context: Context) -> Evidence:
        context.test_counts.clear()
        try:
            findings = run_check(self.loaded.check, context)
        except NotJudgedError as reason:
            return Evidence(outcome=Outcome.ASSUMED, text=str(reason))
        except TrialsDeferredError as request:
            return Evidence(outcome=Outcome.UNCHECKED, text="its trials were not carried out", trials=str(request))
        except LoopError as error:
            return Evidence(outcome=Outcome.UNCHECKED, text=str(error))
        if counts := context.test_counts:
            tests = (sum(count.run for count in counts), sum(count.passed for count in counts))
            self.evidence_fields = {**self.evidence_fields, "tests": tests}
        findings += tuple(
            Finding(expected=f"tests {selector!r} in this session", found="none: add their path to the command")
            for selector in self.unbound_selectors
        )
        if self.loaded.rule.must_not:
            findings = () if findings else (Finding(expected="this never to be true", found="that it is"),)
        return Evidence(outcome=Outcome.FAILED, findings=findings) if findings else _PASSED

    def _render_evidence(self, evidence: Evidence) -> str:
        """Return the findings and the advice as lines for the terminal."""
        lines = []
        for finding in evidence.findings:
            lines.append(str(finding))
            lines += [f"    {row}" for row in finding.detail.splitlines()]
        if evidence.text:
            lines.append(evidence.text)
        if evidence.outcome is Outcome.UNCHECKED:
            lines.append("The check could not run: fix the set-up, not the judged files.")
        elif self.loaded.rule.fix:
            lines.append(f"fix: {self.loaded.rule.fix}")
        return "\n".join(lines)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *args: Any, **kwargs: Any) -> Any:
        if isinstance(excinfo.value, RuleFailed):
            return render_failure(excinfo, excinfo.value, self.path, self.loaded.line)
        return super().repr_failure(excinfo, *args, **kwargs)

    def reportinfo(self) -> tuple[os.PathLike[str] | str, int | None, str]:
        return self.path, self.loaded.line - 1, f"{self.name}: {self.loaded.rule.description}"


class RuleItem(_RuleItemBase):
    """A rule without fixtures."""

    def __init__(self, *, loaded: LoadedRule, key: str, context: Context, index: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.loaded, self.key, self.context, self.index = loaded, key, context, index

    def runtest(self) -> None:
        self.judge(self.context)


class FixtureRuleItem(_RuleItemBase, pytest.Function):
    """A rule with fixtures: its own, and the autouse fixtures of the folder."""

    def __init__(self, *, loaded: LoadedRule, key: str, context: Context, index: int, **kwargs: Any) -> None:
        def judge() -> None:
            fixtures = {name: self.funcargs[name] for name in loaded.fixtures}
            self.judge(replace(context, fixtures=fixtures))

        marks = [pytest.mark.usefixtures(*loaded.fixtures)] if loaded.fixtures else []
        judge.pytestmark = marks  # type: ignore[attr-defined]  # where pytest reads marks
        super().__init__(callobj=judge, **kwargs)
        self.loaded, self.key, self.context, self.index = loaded, key, context, index
