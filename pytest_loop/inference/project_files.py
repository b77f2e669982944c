"""A project as the inference sees it: the names of its files, and the texts of those that say how it is verified."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from pytest_loop.inference.command_candidate import Source
from pytest_loop.inference.data_files import UnreadableFile, parse_data
from pytest_loop.inference.tool_purposes import split_names

MOST_FILES = 20_000
DEEPEST = 8
LARGEST = 256 * 1024
MOST_TEXTS = 500
MOST_SCRIPTS = 200
DEEPEST_MANIFEST = 3

_OTHERS = split_names(
    "node_modules venv env __pycache__ target dist build vendor third_party site-packages htmlcov bower_components"
)
_HIDDEN_ALLOWED = split_names(".github .gitea .circleci .aiwg")
# What loops keep is no part of the project: on the way to the few files that people write there, nothing else is seen.
_OF_LOOPS = re.compile(r"\.(?:loop|ai-factory)(?:/|$)")
_WAY = split_names(".loop .loop/shape .ai-factory .ai-factory/skill-context .ai-factory/skill-context/aif-loop")
_ANYWHERE = re.compile(
    r"(?:AGENTS|CLAUDE|AIWG)\.md|pyproject\.toml|setup\.(?:cfg|py)|(?:tox|pytest|mypy)\.ini|\.flake8|noxfile\.py"
    r"|requirements[\w.-]*\.txt|\.pre-commit-config\.yaml|package\.json|pnpm-workspace\.yaml|(?:lerna|turbo|nx)\.json"
    r"|Cargo\.toml|go\.(?:mod|work)|(?:GNUm|[mM])akefile|\.?[jJ]ustfile|\.?mise\.toml|Gemfile|pom\.xml"
    r"|(?:build|settings)\.gradle(?:\.kts)?"
)
_AT_ROOT = re.compile(
    r"\.(?:github|gitea)/workflows/[^/]+\.ya?ml|\.gitlab-ci\.yml|\.circleci/config\.yml|Jenkinsfile|\.aiwg/.+\.md"
    r"|\.loop/shape/SHAPE\.md|\.ai-factory/(?:DESCRIPTION|ARCHITECTURE|RULES)\.md"
    r"|\.ai-factory/skill-context/aif-loop/SKILL\.md|(?:.+/)?UC-[\w.-]+\.md"
)
# What lies in these folders belongs to the project, and says nothing about how it is verified.
_NOT_OURS = split_names("examples example samples fixtures testdata templates docs doc tests test")
_PYTHON_TEST = re.compile(r"(?:test_.*|.*_test)\.py")
_TEST = re.compile(
    r"(?:^|/)(?:test_[^/]*\.py|tests\.py|[^/]*_test\.(?:py|go|rb|exs)|[^/]*[._](?:test|spec)\.[cm]?[jt]sx?|[^/]*_spec\.rb"
    r"|__tests__/.*|src/test/.*|tests/[^/]+\.rs|test/[^/]+\.(?:js|ts|rb))$"
)


@dataclass(frozen=True)
class Project:
    """Everything is by its path from the root; `problems` are files that could not be read.

    Of a project that is not versioned, nobody can see whether something has changed.
    """

    files: frozenset[str] = frozenset()
    texts: Mapping[str, str] = field(default_factory=dict)
    data: Mapping[str, Mapping[Hashable, Any]] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    is_versioned: bool = False

    @classmethod
    def from_texts(
        cls, texts: Mapping[str, str], others: Collection[str] = (), *, is_versioned: bool = False
    ) -> Project:
        """A project of these texts; `others` are files of which only the names are known."""
        data, problems = {}, []
        for path, text in texts.items():
            try:
                data[path] = parse_data(path, text)
            except UnreadableFile as error:
                problems.append(str(error))
        return cls(frozenset((*texts, *others)), texts, data, tuple(problems), is_versioned)

    def locate(self, path: str, pattern: str, after: str = "", default: int = 1) -> Source:
        """The first place in a text where a pattern stands, behind another one; the default where it does not."""
        text = self.texts[path]
        start = re.search(after, text, re.MULTILINE)
        found = re.compile(pattern, re.MULTILINE).search(text, start.end() if start else 0)
        return Source(path, text.count("\n", 0, found.start()) + 1 if found else default)

    def find_named(self, *wanted: str) -> list[str]:
        """The texts of these names, in any folder, those at the root first."""
        found = (path for path in self.texts if PurePosixPath(path).name in wanted)
        return sorted(found, key=lambda path: (path.count("/"), path))

    def has_file(self, folder: str, *wanted: str) -> bool:
        """Whether a folder holds a file of one of these names."""
        return any(join_folder(folder, name) in self.files for name in wanted)

    def find_tests(self, folder: str = "") -> list[str]:
        """The files of tests in a folder, of any language."""
        start = f"{folder}/" if folder else ""
        return sorted(path for path in self.files if path.startswith(start) and _TEST.search(path))

    def find_python_tests(self, folder: str = "") -> list[str]:
        """The files that pytest collects in a folder."""
        return [path for path in self.find_tests(folder) if _PYTHON_TEST.fullmatch(PurePosixPath(path).name)]


def get_folder(path: str) -> str:
    """The folder of a file; empty for the root."""
    return path.rpartition("/")[0]


def join_folder(folder: str, name: str) -> str:
    """The path of a file in a folder."""
    return f"{folder}/{name}" if folder else name


def read_project(root: Path) -> Project:
    """Look at a project: bounded, without following links out of it, and whatever its files hold."""
    texts: dict[str, str] = {}
    others: list[str] = []
    for path in _walk_files(root):
        text = _read_text(root / path) if len(texts) < MOST_TEXTS and is_relevant(path) else None
        if text is None:
            others.append(path)
        else:
            texts[path] = text
    is_versioned = any((folder / ".git").exists() for folder in (root, *root.absolute().parents))
    return Project.from_texts(texts, others, is_versioned=is_versioned)


def read_files(root: Path, paths: Iterable[str]) -> Project:
    """As much of a project as stands in these files."""
    found = {path: text for path in paths if (text := _read_text(root / path)) is not None}
    return Project.from_texts(found)


def is_relevant(path: str) -> bool:
    """Whether a file may say how the project is verified."""
    if _AT_ROOT.fullmatch(path):
        return True
    parts = PurePosixPath(path).parts
    is_ours = len(parts) <= DEEPEST_MANIFEST + 1 and not _NOT_OURS.intersection(parts[:-1]) and not is_loop_file(path)
    return is_ours and _ANYWHERE.fullmatch(parts[-1]) is not None


def is_loop_file(path: str) -> bool:
    """Whether a path lies where loops keep what they have done."""
    return _OF_LOOPS.match(path) is not None


def _walk_files(root: Path) -> Iterator[str]:
    left = MOST_FILES
    for folder, folders, found in os.walk(root):
        here = Path(folder).relative_to(root).as_posix()
        depth = 0 if here == "." else here.count("/") + 1
        start = "" if here == "." else f"{here}/"
        folders[:] = sorted(name for name in folders if depth < DEEPEST and _is_looked_into(f"{start}{name}"))
        for name in sorted(found)[:left]:
            if not is_loop_file(f"{start}{name}") or is_relevant(f"{start}{name}"):
                yield f"{start}{name}"
        left -= len(found)
        if left <= 0:
            return


def _is_looked_into(path: str) -> bool:
    name = PurePosixPath(path).name
    if is_loop_file(path):
        return path in _WAY
    return name in _HIDDEN_ALLOWED or not (name.startswith(".") or name in _OTHERS)


def _read_text(path: Path) -> str | None:
    """The text of a regular file that is not too large; what is no UTF-8 in it is replaced."""
    try:
        if path.is_symlink() or not path.is_file() or path.stat().st_size > LARGEST:
            return None
        return path.read_text(encoding="utf-8-sig", errors="replace")
    except OSError:
        return None
