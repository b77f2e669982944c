"""The cases of a workload: which files they are, what belongs to each, and which of them play a part."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from pytest_loop.errors import LoopError, ManifestError, Problem
from pytest_loop.rules.checks.check import format_value
from pytest_loop.workloads.manifest import Source
from pytest_loop.workloads.placeholders import filled


@dataclass(frozen=True)
class Case:
    """One input with its output and its expected file (empty where there is none): paths from the manifest's folder."""

    id: str
    output: str
    expected: str = ""
    is_holdout: bool = False

    @cached_property
    def values(self) -> Mapping[str, str]:
        """What the placeholders of a command stand for."""
        return {**values(self.id), "output": self.output, "expected": self.expected}


def values(case: str) -> dict[str, str]:
    """What the placeholders of a case stand for."""
    folder, name = posixpath.split(case)
    return {"case": case, "case_name": name, "case_stem": _stem(name), "case_dir": folder or "."}


def _stem(path: str) -> str:
    return posixpath.splitext(posixpath.basename(path))[0]


@dataclass(frozen=True)
class Workload:
    """A manifest with the files that it names."""

    source: Source
    root: Path
    cases: tuple[Case, ...]
    artifacts: tuple[str, ...]
    docs: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        return self.source.folder

    @property
    def hidden(self) -> frozenset[str]:
        """The cases that no composer sees."""
        return frozenset(one.id for one in self.cases if one.is_holdout)


def workload(source: Source, root: Path) -> Workload:
    """The files that a manifest names; raises `ManifestError` with every problem."""
    files = _Files(source)
    cases = files.found("casePaths", source.manifest.case_paths)
    artifacts = files.found("artifactPaths", source.manifest.artifact_paths)
    expected = files.found("expectedPaths", source.manifest.expected_paths)
    docs = files.found("domainDocs", source.manifest.domain_docs)
    for role in ("composer", "reviewer"):
        prompt = getattr(source.manifest.agents, role).prompt_file
        files.found("agents", [prompt] if prompt else [], role, "promptFile")
    if files.problems:
        raise ManifestError(files.problems)
    pairs = paired(cases, expected)
    hidden = {pattern: matching(cases, pattern) for pattern in source.manifest.holdout}
    outputs = {case: os.path.normpath(filled(source.manifest.output_path, values(case))) for case in cases}
    problems = [
        *_unpaired(source, cases, expected, pairs),
        *_unmatched(source, hidden),
        *_clashes(source, outputs, root, {*cases, *artifacts, *expected}),
    ]
    if problems:
        raise ManifestError(problems)
    kept = {case for found in hidden.values() for case in found}
    made = tuple(Case(case, outputs[case], (pairs or {}).get(case, ""), case in kept) for case in cases)
    return Workload(source, root, made, artifacts, docs)


class _Files:
    """Looks for what a manifest names, and notes what is not there."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.problems: list[Problem] = []

    def found(self, field: str, patterns: Sequence[str], *below: str) -> tuple[str, ...]:
        """The files that match, in order and each once; hidden files only where a pattern says so."""
        name = below[-1] if below else field
        known: set[str] = set()
        for at, pattern in enumerate(patterns):
            path = (field, *below) if below else (field, at)
            try:
                files = set(_matching(self.source.folder, pattern))
            except (NotImplementedError, ValueError):
                text = (
                    f"expected a path or a glob from the manifest's folder for `{name}`, found {format_value(pattern)}"
                )
                self.problems.append(self.source.problem(text, *path))
                continue
            if not files:
                text = f"expected files that match {format_value(pattern)} for `{name}`, found none"
                self.problems.append(self.source.problem(text, *path))
            known |= files
        return tuple(sorted(known))


def _matching(folder: Path, pattern: str) -> Iterator[str]:
    shows_hidden = any(part.startswith(".") and part.strip(".") for part in PurePosixPath(pattern).parts)
    before = len(os.path.join(folder, ""))
    for path in map(str, folder.glob(pattern)):
        if os.path.isfile(path) and (shows_hidden or not os.path.basename(path).startswith(".")):
            yield path[before:].replace(os.sep, "/")


def paired(cases: Sequence[str], expected: Sequence[str]) -> dict[str, str] | None:
    """The expected file of each case: by stem, else in order where there are as many; None where neither works."""
    if not expected:
        return {}
    stems = {_stem(path): path for path in expected}
    of_cases = [_stem(case) for case in cases]
    is_plain = len(stems) == len(expected) and len(set(of_cases)) == len(cases)
    if is_plain and set(of_cases) <= set(stems):
        return {case: stems[stem] for case, stem in zip(cases, of_cases, strict=True)}
    if len(cases) == len(expected):
        return dict(zip(sorted(cases), sorted(expected), strict=True))
    return None


def _unpaired(
    source: Source, cases: Sequence[str], expected: Sequence[str], pairs: dict[str, str] | None
) -> Iterator[Problem]:
    if pairs is None:
        stems = set(map(_stem, expected))
        lonely = next((case for case in cases if _stem(case) not in stems), None)
        why = f"none for {lonely}" if lonely else "stems that stand for several"
        wanted = f"an expected file for each of {len(cases)} cases, by its stem or as many in order"
        yield source.problem(f"expected {wanted}, found {len(expected)}, and {why}", "expectedPaths")


def _unmatched(source: Source, found: Mapping[str, Collection[str]]) -> Iterator[Problem]:
    for at, (pattern, cases) in enumerate(found.items()):
        if not cases:
            yield source.problem(
                f"expected cases that match {format_value(pattern)} for `holdout`, found none", "holdout", at
            )


def _clashes(source: Source, outputs: Mapping[str, str], root: Path, inputs: Collection[str]) -> Iterator[Problem]:
    """Outputs that would mix with each other or overwrite something; one is enough to know."""
    first: dict[str, str] = {}
    folder, inside = str(source.folder), os.path.join(root, "")
    for case, output in outputs.items():
        place = os.path.normpath(os.path.join(folder, output))
        if first.setdefault(output, case) != case:
            text = f"an output of its own for each case, found {output} for {first[output]} and {case}"
        elif output in inputs:
            text = f"a new file for the output of {case}, found {output}, which the workload reads"
        elif not place.startswith(inside):
            text = f"a path inside the project, found {output}"
        else:
            continue
        yield source.problem(f"expected {text}", "outputPath")
        return


def matching(ids: Sequence[str], pattern: str) -> tuple[str, ...]:
    """The cases that a pattern names: by id, by name, or by a glob over ids."""
    return tuple(one for one in ids if pattern in (one, PurePosixPath(one).name) or fnmatchcase(one, pattern))


class Roles(NamedTuple):
    """Which cases are run, which of them are looked at first, and which guard against regressions."""

    run: tuple[str, ...]
    focus: tuple[str, ...] = ()
    guards: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()


def roles(
    ids: Sequence[str],
    *,
    only: Sequence[str] = (),
    focus: Sequence[str] = (),
    guards: Sequence[str] = (),
    excluded: Sequence[str] = (),
) -> Roles:
    """The part that each case plays, by patterns; one that names no case, or cases that are not run, is an error."""
    left_out = _named(ids, excluded, "to exclude")
    chosen = _named(ids, only, "to run") if only else tuple(ids)
    run = tuple(one for one in chosen if one not in left_out)
    if not run:
        raise LoopError(f"expected cases to run, found that all {len(ids)} are left out")
    return Roles(run, _named(run, focus, "to focus on"), _named(run, guards, "as a guard"), left_out)


def _named(ids: Sequence[str], patterns: Sequence[str], purpose: str) -> tuple[str, ...]:
    found: set[str] = set()
    for pattern in patterns:
        cases = matching(ids, pattern)
        if not cases:
            raise LoopError(f"expected a case {purpose}, found none that is called {pattern!r} among {len(ids)}")
        found.update(cases)
    return tuple(one for one in ids if one in found)
