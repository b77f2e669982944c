"""Read the files that tell how a project is verified, and list the names of all others."""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

from pytest_loop.core.judging.test_files import is_test_file
from pytest_loop.core.text.wording import list_names
from pytest_loop.inference.command_candidate import SourceLine
from pytest_loop.inference.data_files import UnreadableFile, parse_data
from pytest_loop.inference.tool_purposes import split_names

MAX_FILES = 100_000
MAX_FILE_SIZE = 256 * 1024
MAX_TEXTS = 500
MAX_SCRIPTS = 200
MAX_MANIFEST_DEPTH = 3
MAX_NAMES = 3

_SKIPPED_FOLDERS = split_names(
    "node_modules venv env __pycache__ target dist build vendor third_party site-packages htmlcov bower_components"
)
_HIDDEN_FOLDERS = split_names(".github .gitea .circleci .aiwg")
# Folders in which loops keep their state; people write only a few files there.
_LOOP_FOLDER = re.compile(r"\.(?:loop|ai-factory)(?:/|$)")
_LOOP_FOLDERS_WITH_DOCUMENTS = split_names(
    ".loop .loop/shape .ai-factory .ai-factory/skill-context .ai-factory/skill-context/aif-loop"
)
# Names of manifests and files for agents, which count in any folder near the root.
_MANIFEST_NAME = re.compile(
    r"(?:AGENTS|CLAUDE|AIWG)\.md|pyproject\.toml|setup\.(?:cfg|py)|(?:tox|pytest|mypy)\.ini|\.flake8|noxfile\.py"
    r"|requirements[\w.-]*\.txt|\.pre-commit-config\.yaml|package\.json|pnpm-workspace\.yaml|(?:lerna|turbo|nx)\.json"
    r"|Cargo\.toml|go\.(?:mod|work)|(?:GNUm|[mM])akefile|\.?[jJ]ustfile|\.?mise\.toml|Gemfile|pom\.xml"
    r"|(?:build|settings)\.gradle(?:\.kts)?"
)
# Paths of files that count where they are, however deep.
_FIXED_PATH = re.compile(
    r"\.(?:github|gitea)/workflows/[^/]+\.ya?ml|\.gitlab-ci\.yml|\.circleci/config\.yml|Jenkinsfile|\.aiwg/.+\.md"
    r"|\.loop/shape/SHAPE\.md|\.ai-factory/(?:DESCRIPTION|ARCHITECTURE|RULES)\.md"
    r"|\.ai-factory/skill-context/aif-loop/SKILL\.md|(?:.+/)?UC-[\w.-]+\.md"
)
# Manifests in these folders are samples.
_SAMPLE_FOLDERS = split_names("examples example samples fixtures testdata templates docs doc tests test")
_PYTHON_TEST = re.compile(r"(?:test_.*|.*_test)\.py")


@dataclass(frozen=True)
class Project:
    """The files of a project by their paths from its root.

    `texts` holds the files that were read, `data` what they parse to, `problems` those that could not be read. In a
    project that is not versioned, a change cannot be detected. `unseen` are folders that the limit on files left out.
    """

    files: frozenset[str] = frozenset()
    texts: Mapping[str, str] = field(default_factory=dict)
    data: Mapping[str, Mapping[Hashable, Any]] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    is_versioned: bool = False
    unseen: tuple[str, ...] = ()

    @classmethod
    def from_texts(
        cls,
        texts: Mapping[str, str],
        others: Collection[str] = (),
        *,
        problems: Iterable[str] = (),
        is_versioned: bool = False,
        unseen: tuple[str, ...] = (),
    ) -> Project:
        """Build a project from texts and from the names of other files."""
        data, problems = {}, [*problems]
        for path, text in texts.items():
            try:
                data[path] = parse_data(path, text)
            except UnreadableFile as error:
                problems.append(str(error))
        return cls(frozenset((*texts, *others)), texts, data, tuple(problems), is_versioned, unseen)

    def locate(self, path: str, pattern: str, after: str = "") -> SourceLine:
        """Return the line of the first match of `pattern` behind the first match of `after`; line 1 without a match."""
        text = self.texts[path]
        start = re.search(after, text, re.MULTILINE)
        match = re.compile(pattern, re.MULTILINE).search(text, start.end() if start else 0)
        return SourceLine(path, text.count("\n", 0, match.start()) + 1 if match else 1)

    def find_by_name(self, *names: str) -> list[str]:
        """Return the paths of read files with one of these file names, the shallowest first."""
        paths = (path for path in self.texts if PurePosixPath(path).name in names)
        return sorted(paths, key=lambda path: (path.count("/"), path))

    def has_file(self, folder: str, *names: str) -> bool:
        """Return whether a folder holds a file with one of these names."""
        return any(join_folder(folder, name) in self.files for name in names)

    @cached_property
    def _tests(self) -> list[str]:
        return sorted(filter(is_test_file, self.files))

    def find_tests(self, folder: str = "") -> list[str]:
        """Return the test files in a folder, in any language."""
        return [path for path in self._tests if is_in_folder(path, folder)]

    def find_python_tests(self, folder: str = "") -> list[str]:
        """Return the files that pytest collects in a folder."""
        return [path for path in self.find_tests(folder) if _PYTHON_TEST.fullmatch(path.rpartition("/")[2])]


def get_folder(path: str) -> str:
    """Return the folder of a file; empty for the root."""
    return path.rpartition("/")[0]


def join_folder(folder: str, name: str) -> str:
    """Return the path of a file in a folder; the empty folder is the root."""
    return f"{folder}/{name}" if folder else name


def is_in_folder(path: str, folder: str) -> bool:
    """Return whether a path lies in a folder; the empty folder is the root."""
    return not folder or path.startswith(f"{folder}/")


def read_project(root: Path) -> Project:
    """Read a project within fixed limits, without following links; a limit that was reached is a problem."""
    paths, unseen = _list_files(root)
    relevant = list(filter(is_relevant, paths))
    texts = {path: text for path in relevant[:MAX_TEXTS] if (text := _read_text(root / path)) is not None}
    return Project.from_texts(
        texts,
        [path for path in paths if path not in texts],
        problems=_describe_limits(root, relevant, unseen),
        is_versioned=any((folder / ".git").exists() for folder in (root, *root.absolute().parents)),
        unseen=tuple(unseen),
    )


def _describe_limits(root: Path, relevant: Sequence[str], unseen: Sequence[str]) -> Iterator[str]:
    """Yield what was left out because of a limit."""
    if unseen:
        folders = list_names([f"{name}/" for name in unseen], MAX_NAMES)
        yield f"only {MAX_FILES:,} files were listed; left out: {folders}"
    if left_out := relevant[MAX_TEXTS:]:
        yield f"only {MAX_TEXTS} manifests and documents were read; left out: {list_names(left_out, MAX_NAMES)}"
    if large := [path for path in relevant[:MAX_TEXTS] if _get_size(root / path) > MAX_FILE_SIZE]:
        yield f"files above {MAX_FILE_SIZE // 1024} kB were not read: {list_names(large, MAX_NAMES)}"


def read_files(root: Path, paths: Iterable[str]) -> Project:
    """Read only these files of a project; missing ones are left out."""
    texts = {path: _read_text(root / path) for path in paths}
    return Project.from_texts({path: text for path, text in texts.items() if text is not None})


def is_relevant(path: str) -> bool:
    """Return whether a file may say how the project is verified."""
    if _FIXED_PATH.fullmatch(path):
        return True
    *folders, name = path.split("/")
    is_sample = len(folders) > MAX_MANIFEST_DEPTH or bool(_SAMPLE_FOLDERS.intersection(folders))
    return not is_sample and not is_loop_file(path) and _MANIFEST_NAME.fullmatch(name) is not None


def is_loop_file(path: str) -> bool:
    """Return whether a path lies in a folder that loops keep their state in."""
    return _LOOP_FOLDER.match(path) is not None


def _list_files(root: Path) -> tuple[list[str], list[str]]:
    """Return the files of a project, the shallowest first, and the folders that the limit left out.

    Manifests and the roots of suites are near the root, so they come before the limit, however large a project is.
    """
    paths: list[str] = []
    folders = deque([""])
    while folders and len(paths) < MAX_FILES:
        folder = folders.popleft()
        for entry in _list_entries(root / folder):
            path = join_folder(folder, entry.name)
            if entry.is_dir(follow_symlinks=False):
                if _may_enter(path):
                    folders.append(path)
            elif not is_loop_file(path) or is_relevant(path):
                paths.append(path)
    return paths, list(folders)


def _list_entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return []


def _may_enter(folder: str) -> bool:
    if is_loop_file(folder):
        return folder in _LOOP_FOLDERS_WITH_DOCUMENTS
    name = PurePosixPath(folder).name
    return name in _HIDDEN_FOLDERS or not (name.startswith(".") or name in _SKIPPED_FOLDERS)


def _read_text(path: Path) -> str | None:
    """Return the text of a file, with bytes that are not UTF-8 replaced; None for links, large and unreadable files."""
    try:
        if path.is_symlink() or not path.is_file() or _get_size(path) > MAX_FILE_SIZE:
            return None
        return path.read_text(encoding="utf-8-sig", errors="replace")
    except OSError:
        return None


def _get_size(path: Path) -> int:
    """Return the size of a file, 0 if it is a link or cannot be read."""
    try:
        return 0 if path.is_symlink() else path.stat().st_size
    except OSError:
        return 0
