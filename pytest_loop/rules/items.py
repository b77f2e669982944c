"""Rule files as pytest modules, rules as pytest items."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache, cached_property, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from pydantic import BaseModel

from pytest_loop.core.model.rules import Evidence, Finding, Outcome
from pytest_loop.core.model.session_order import SessionOrder
from pytest_loop.errors import LoopError, NotJudgedError, RuleFileError
from pytest_loop.rules import garbage
from pytest_loop.rules.checks.check import Answer, Context, run_check
from pytest_loop.rules.checks.registry import BUILT_IN_KINDS, COMPOSED, Kinds, build_check
from pytest_loop.rules.document import Documents
from pytest_loop.rules.repeats import Tally
from pytest_loop.rules.reuse import Reuse
from pytest_loop.rules.rule_files import LoadedRule, LoadedRuleFile, load_rule_file
from pytest_loop.rules.sources import INFERRED_FILE, TEMPLATES

LOADED = pytest.StashKey[list[LoadedRuleFile]]()
DOCUMENTS = pytest.StashKey[Documents]()
TALLY = pytest.StashKey[Tally]()
BAD_FILES = pytest.StashKey[int]()
ORDER = pytest.StashKey[SessionOrder]()
ASK = pytest.StashKey[Callable[..., Answer]]()
REUSE = pytest.StashKey[Reuse]()
_PASSED = Evidence(outcome=Outcome.PASSED)


class RuleFailed(Exception):  # noqa: N818 - the way in which an item says that its rule failed
    """What a rule found, on its way to the report."""

    def __init__(self, evidence: Evidence, text: str) -> None:
        self.evidence = evidence
        super().__init__(text)


def explained(excinfo: pytest.ExceptionInfo[BaseException], failed: RuleFailed, path: Path, line: int) -> Any:
    """What pytest shows of a `RuleFailed`: the words for a person below the name, and the findings in the summary."""
    shown: Any = excinfo.getrepr(style="value")
    shown.reprtraceback.reprentries[0].lines = str(failed).splitlines()
    shown.reprcrash.path = str(path)
    shown.reprcrash.lineno = line
    shown.reprcrash.message = str(failed.evidence)
    return shown


class ManyItems:
    """A file with many items: what is the same for all of them is looked for once."""

    path: Path
    config: pytest.Config
    ihook: Any

    @cached_property
    def shown(self) -> str:
        """The file as reports name it: its path from pytest's rootdir."""
        return os.path.relpath(self.path, self.config.rootpath)

    @cached_property
    def hook(self) -> Any:
        """The hooks of this folder: pytest would look for them again for each item."""
        return self.ihook


class RuleFile(ManyItems, pytest.Module):
    """A rule file; a module to pytest, so that fixtures of module scope have a place."""

    obj = None

    def collect(self) -> Iterable[pytest.Item]:
        with garbage.kept():
            return list(self._collected())

    def _collected(self) -> Iterator[pytest.Item]:
        root = _root(self.config, self.path)
        order = self.config.stash.get(ORDER, None) or SessionOrder()
        kinds = self._kinds()
        try:
            loaded = load_rule_file(self.path, root, kinds, self.nodeid or self.path.as_posix(), order.artifact or None)
        except RuleFileError as error:
            self.session.stash[BAD_FILES] = self.session.stash.get(BAD_FILES, 0) + 1
            raise self.CollectError(str(error)) from None
        self.session.stash.setdefault(LOADED, []).append(loaded)
        autouse = bool(pytest.Function.from_parent(self, name="probe", callobj=_probe).fixturenames)
        shared = cache(partial(self._context, root, loaded))
        marked = pytest.mark.loop_rule
        for judged in loaded.rules:
            key = f"{loaded.criteria.source}::{judged.rule.id}"
            context = shared(judged.folder, judged.rule.id in order.confirmed_rules)
            if key in order.prepared_checks:
                judged = _prepared(judged, order.prepared_checks[key], kinds)
            is_plain = not (autouse or judged.fixtures)
            yield from self._items(judged, key, context, RuleItem if is_plain else FixtureRuleItem, marked)

    def _context(self, root: Path, loaded: LoadedRuleFile, folder: Path, is_confirmed: bool) -> Context:
        ask = self.config.stash.get(ASK, None)
        return Context(
            root,
            folder,
            loaded.artifact,
            self.session.stash.setdefault(DOCUMENTS, Documents(root)),
            name=loaded.artifact_name,
            ask=partial(ask, artifact=folder / loaded.artifact if loaded.artifact else None) if ask else None,
            is_confirmed=is_confirmed,
        )

    def _items(
        self, judged: LoadedRule, key: str, context: Context, item: type[_Judging], marked: pytest.MarkDecorator
    ) -> Iterator[pytest.Item]:
        rule = judged.rule
        mark = marked(
            rule.id,
            severity=rule.severity.value,
            weight=_number(rule.weight),
            phase=rule.phase.value,
            description=rule.description,
        )
        for index in range(1, rule.repeat + 1):
            name = f"{rule.id}[{index}]" if rule.repeat > 1 else rule.id
            made = item.from_parent(self, name=name, judged=judged, context=context, index=index)
            made.key = key
            made.add_marker(mark)
            yield made

    def _kinds(self) -> Kinds:
        offered = self.ihook.pytest_loop_checks()
        if not offered:
            return BUILT_IN_KINDS
        kinds = dict(BUILT_IN_KINDS)
        for added in offered:
            for name, model in added.items():
                if problem := _unusable(name, model, kinds):
                    raise self.CollectError(f"pytest_loop_checks: expected {problem}")
                kinds[name] = model
        return kinds


def _unusable(name: str, model: object, kinds: Kinds) -> str | None:
    """Why a third party's kind cannot be used, or None."""
    if name in kinds or name in COMPOSED or name == "type":
        return f"a new name, found {name!r}, which exists already"
    if not (isinstance(model, type) and issubclass(model, BaseModel) and callable(getattr(model, "run", None))):
        return f"a pydantic model with run(context) for {name!r}, found {model!r}"
    return None


def _prepared(judged: LoadedRule, raw: Any, kinds: Kinds) -> LoadedRule:
    """The rule with the check that somebody made of its sentence."""
    return replace(judged, check=build_check(raw, kinds), is_quiet=False, is_slow=True, raw=raw) if raw else judged


def _probe() -> None:
    """Stands for a rule while pytest is asked which fixtures every test here uses."""


def _number(weight: Any) -> int | float:
    return int(weight) if weight.denominator == 1 else float(weight)


def _root(config: pytest.Config, path: Path) -> Path:
    """The project: pytest's rootdir, or the file's own folder where it lies outside of it; a template is everywhere."""
    is_ours = path.parent == TEMPLATES or path.name == INFERRED_FILE
    return config.rootpath if path.is_relative_to(config.rootpath) or is_ours else path.parent


class _Judging(pytest.Item):
    """What both kinds of items share: judging a rule, and saying what was found."""

    judged: LoadedRule
    context: Context
    index: int
    key: str
    unbound: tuple[str, ...] = ()
    kept: Mapping[str, Any] = MappingProxyType({})

    def judge(self, context: Context) -> None:
        rule = self.judged.rule
        tally = self.session.stash[TALLY] if rule.repeat > 1 else None
        if tally and (known := tally.decision(self.key, rule.need)) is not None:
            pytest.skip(f"already certain: the rule {'passes' if known else 'fails'}")
        evidence = self._known_or_found(context)
        if tally:
            tally.add(self.key, self.index, evidence.outcome is Outcome.PASSED)
        if evidence.outcome is not Outcome.PASSED:
            raise self.failure(evidence)

    def failure(self, evidence: Evidence) -> RuleFailed:
        return RuleFailed(evidence, self._told(evidence))

    def _known_or_found(self, context: Context) -> Evidence:
        reuse = self.session.stash.get(REUSE, None)
        if reuse is None:
            return self._found(context)
        inputs = reuse.inputs(self.judged, context)
        known = reuse.known(self.nodeid, inputs)
        self.kept = {"inputs": inputs, "reused": known is not None} if inputs else {}
        return known or self._found(context)

    def _found(self, context: Context) -> Evidence:
        try:
            found = run_check(self.judged.check, context)
        except NotJudgedError as reason:
            return Evidence(outcome=Outcome.ASSUMED, text=str(reason))
        except LoopError as error:
            return Evidence(outcome=Outcome.ERROR, text=str(error))
        found += tuple(
            Finding(expected=f"tests {selector!r} in this session", found="none: add their path to the command")
            for selector in self.unbound
        )
        if self.judged.rule.must_not:
            found = () if found else (Finding(expected="this never to be true", found="that it is"),)
        return Evidence(outcome=Outcome.FAILED, findings=found) if found else _PASSED

    def _told(self, evidence: Evidence) -> str:
        """The failure as a person reads it below the rule's name: each finding, and the advice."""
        lines = []
        for finding in evidence.findings:
            lines.append(str(finding))
            lines += [f"    {row}" for row in finding.detail.splitlines()]
        if evidence.text:
            lines.append(evidence.text)
        if self.judged.rule.fix:
            lines.append(f"fix: {self.judged.rule.fix}")
        return "\n".join(lines)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *args: Any, **kwargs: Any) -> Any:
        if isinstance(excinfo.value, RuleFailed):
            return explained(excinfo, excinfo.value, self.path, self.judged.line)
        return super().repr_failure(excinfo, *args, **kwargs)

    def reportinfo(self) -> tuple[os.PathLike[str] | str, int | None, str]:
        return self.path, self.judged.line - 1, f"{self.name}: {self.judged.rule.description}"


class RuleItem(_Judging):
    """A rule that needs no fixture: judged without the machinery for them."""

    parent: RuleFile

    def __init__(self, *, judged: LoadedRule, context: Context, index: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.judged = judged
        self.context = context
        self.index = index

    def runtest(self) -> None:
        self.judge(self.context)

    @cached_property
    def location(self) -> tuple[str, int | None, str]:
        """The way to the file is the same for all its rules, and pytest would look for it again for each."""
        _, line, name = self.reportinfo()
        return self.parent.shown, line, name


class FixtureRuleItem(_Judging, pytest.Function):
    """A rule with fixtures: those it asks for, and those that every test here uses."""

    def __init__(self, *, judged: LoadedRule, context: Context, index: int, **kwargs: Any) -> None:
        def judge() -> None:
            wanted = {name: self.funcargs[name] for name in judged.fixtures}
            self.judge(replace(context, fixtures=wanted))

        marks = [pytest.mark.usefixtures(*judged.fixtures)] if judged.fixtures else []
        judge.pytestmark = marks  # type: ignore[attr-defined]
        super().__init__(callobj=judge, **kwargs)
        self.judged = judged
        self.context = context
        self.index = index
