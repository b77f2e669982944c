"""The cases of a workload: their files, and their roles in an experiment."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from pytest_loop.errors import LoopError, ManifestError, Problem, UnmatchedPathsError
from pytest_loop.rules.checks.check import format_value
from pytest_loop.workloads.manifest import LoadedManifest, Manifest, fill_placeholders, load_manifest


@dataclass(frozen=True)
class Case:
    """An input (`id`), its output and its expected file (empty if none), as paths from the manifest's folder."""

    id: str
    output: str
    expected: str = ""
    is_held_out: bool = False

    @cached_property
    def placeholder_values(self) -> Mapping[str, str]:
        """The values of the placeholders in commands."""
        return {**_get_path_values(self.id), "output": self.output, "expected": self.expected}


def _get_path_values(case: str) -> dict[str, str]:
    folder, name = posixpath.split(case)
    return {"case": case, "case_name": name, "case_stem": _get_stem(name), "case_dir": folder or "."}


def _get_stem(path: str) -> str:
    return posixpath.splitext(posixpath.basename(path))[0]


@dataclass(frozen=True)
class Workload:
    """A manifest with the files that it names: agents may edit `editable_files`, and read `docs` about the subject."""

    source: LoadedManifest
    root: Path
    cases: tuple[Case, ...]
    editable_files: tuple[str, ...]
    docs: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        return self.source.folder

    @property
    def manifest(self) -> Manifest:
        return self.source.manifest

    @property
    def held_out_cases(self) -> frozenset[str]:
        """The ids of held-out cases, which the composer (the agent that proposes edits) never sees."""
        return frozenset(case.id for case in self.cases if case.is_held_out)


def load_workload(path: Path, root: Path) -> Workload:
    """Load a manifest and find its files; raise `ManifestError` with every problem."""
    return build_workload(load_manifest(path, root), root)


def build_workload(source: LoadedManifest, root: Path) -> Workload:
    """Find the files that a manifest names, and build its cases; raise `ManifestError` with every problem."""
    manifest = source.manifest
    finder = _FileFinder(source)
    cases = finder.find("casePaths", manifest.case_paths)
    editable_files = finder.find("artifactPaths", manifest.artifact_paths)
    expected = finder.find("expectedPaths", manifest.expected_paths)
    docs = finder.find("domainDocs", manifest.domain_docs)
    for role in ("composer", "reviewer"):
        prompt = getattr(manifest.agents, role).prompt_file
        finder.find("agents", [prompt] if prompt else [], role, "promptFile")
    if finder.problems:
        raise UnmatchedPathsError(finder.problems)
    pairs = pair_expected_files(cases, expected)
    holdout = {pattern: match_cases(cases, pattern) for pattern in manifest.holdout}
    outputs = {case: _make_output_path(manifest.output_path, case) for case in cases}
    problems = [
        *_find_unpaired(source, cases, expected, pairs),
        *_find_unmatched(source, holdout),
        *_find_clashes(source, outputs, root, {*cases, *editable_files, *expected}),
    ]
    if problems:
        raise ManifestError(problems)
    held_out = frozenset().union(*holdout.values())
    return Workload(
        source,
        root,
        cases=tuple(Case(case, outputs[case], (pairs or {}).get(case, ""), case in held_out) for case in cases),
        editable_files=editable_files,
        docs=docs,
    )


def _make_output_path(pattern: str, case: str) -> str:
    return os.path.normpath(fill_placeholders(pattern, _get_path_values(case)))


class _FileFinder:
    """Find the files that a manifest names, and collect the problems with its patterns."""

    def __init__(self, source: LoadedManifest) -> None:
        self.source = source
        self.problems: list[Problem] = []

    def find(self, field: str, patterns: Sequence[str], *keys: str) -> tuple[str, ...]:
        """Return matching files, sorted; for a pattern without files add a problem at `keys` below the field."""
        name = keys[-1] if keys else field
        files: set[str] = set()
        for index, pattern in enumerate(patterns):
            try:
                matches = set(find_files(self.source.folder, pattern))
                problem = "" if matches else f"files that match {format_value(pattern)} for `{name}`, found none"
            except (NotImplementedError, ValueError):
                matches = set()
                problem = f"a path or a glob from the manifest's folder for `{name}`, found {format_value(pattern)}"
            if problem:
                path = (field, *keys) if keys else (field, index)
                self.problems.append(self.source.build_problem(f"expected {problem}", *path))
            files |= matches
        return tuple(sorted(files))


def find_files(folder: Path, pattern: str) -> Iterator[str]:
    """Yield the files that match a glob, relative to the folder; hidden ones only for a pattern that names them."""
    includes_hidden = any(part.startswith(".") and part.strip(".") for part in PurePosixPath(pattern).parts)
    prefix = len(os.path.join(folder, ""))
    for path in map(str, folder.glob(pattern)):
        if os.path.isfile(path) and (includes_hidden or not os.path.basename(path).startswith(".")):
            yield path[prefix:].replace(os.sep, "/")


def pair_expected_files(cases: Sequence[str], expected: Sequence[str]) -> dict[str, str] | None:
    """Pair cases with expected files by stem, else in order if the counts are equal; return None if neither works."""
    if not expected:
        return {}
    by_stem = {_get_stem(path): path for path in expected}
    case_stems = [_get_stem(case) for case in cases]
    is_unique = len(by_stem) == len(expected) and len(set(case_stems)) == len(cases)
    if is_unique and set(case_stems) <= set(by_stem):
        return {case: by_stem[stem] for case, stem in zip(cases, case_stems, strict=True)}
    if len(cases) == len(expected):
        return dict(zip(sorted(cases), sorted(expected), strict=True))
    return None


def _find_unpaired(
    source: LoadedManifest, cases: Sequence[str], expected: Sequence[str], pairs: dict[str, str] | None
) -> Iterator[Problem]:
    if pairs is None:
        stems = set(map(_get_stem, expected))
        unpaired = next((case for case in cases if _get_stem(case) not in stems), None)
        reason = f"none for {unpaired}" if unpaired else "stems that stand for several"
        needed = f"a file for each of {len(cases)} cases in `expectedPaths`, by its stem or as many in order"
        yield source.build_problem(f"expected {needed}, found {len(expected)}, and {reason}", "expectedPaths")


def _find_unmatched(source: LoadedManifest, holdout: Mapping[str, Collection[str]]) -> Iterator[Problem]:
    for index, (pattern, cases) in enumerate(holdout.items()):
        if not cases:
            text = f"expected cases that match {format_value(pattern)} for `holdout`, found none"
            yield source.build_problem(text, "holdout", index)


def _find_clashes(
    source: LoadedManifest, outputs: Mapping[str, str], root: Path, inputs: Collection[str]
) -> Iterator[Problem]:
    """Yield the first output that is shared, overwrites an input or lies outside of the project."""
    first: dict[str, str] = {}
    folder, inside = str(source.folder), os.path.join(root, "")
    for case, output in outputs.items():
        if first.setdefault(output, case) != case:
            text = f"an output of its own for each case in `outputPath`, found {output} for {first[output]} and {case}"
        elif output in inputs:
            text = f"a new file for the output of {case} in `outputPath`, found {output}, which the workload reads"
        elif not os.path.normpath(os.path.join(folder, output)).startswith(inside):
            text = f"a path inside the project in `outputPath`, found {output}"
        else:
            continue
        yield source.build_problem(f"expected {text}", "outputPath")
        return


def match_cases(ids: Sequence[str], pattern: str) -> tuple[str, ...]:
    """Return the cases that a pattern names: by id, by file name, or by a glob over ids."""
    return tuple(case for case in ids if pattern in (case, PurePosixPath(case).name) or fnmatchcase(case, pattern))


class CaseRoles(NamedTuple):
    """The cases of an experiment by role: selected, in focus, guards against regressions, and excluded.

    Every case in focus and every guard is selected.
    """

    selected: tuple[str, ...]
    focus: tuple[str, ...] = ()
    guards: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()


def assign_roles(
    ids: Sequence[str],
    *,
    only: Sequence[str] = (),
    focus: Sequence[str] = (),
    guards: Sequence[str] = (),
    excluded: Sequence[str] = (),
) -> CaseRoles:
    """Assign roles by patterns; raise `LoopError` for a pattern without cases, or if no case is selected.

    Without `only`, all cases but the excluded ones are selected.
    """
    excluded_cases = _select_cases(ids, excluded, "to exclude")
    candidates = _select_cases(ids, only, "to run") if only else tuple(ids)
    selected = tuple(case for case in candidates if case not in excluded_cases)
    if not selected:
        raise LoopError(f"expected cases to run, found that all {len(ids)} are left out")
    return CaseRoles(
        selected,
        focus=_select_cases(selected, focus, "to focus on"),
        guards=_select_cases(selected, guards, "as a guard"),
        excluded=excluded_cases,
    )


def _select_cases(ids: Sequence[str], patterns: Sequence[str], purpose: str) -> tuple[str, ...]:
    """Return the cases that match a pattern, in the order of `ids`; raise `LoopError` for a pattern without cases.

    `purpose` is a part of the error, such as `to run`.
    """
    selected: set[str] = set()
    for pattern in patterns:
        cases = match_cases(ids, pattern)
        if not cases:
            raise LoopError(f"expected a case {purpose}, found none that is called {pattern!r} among {len(ids)}")
        selected.update(cases)
    return tuple(case for case in ids if case in selected)
