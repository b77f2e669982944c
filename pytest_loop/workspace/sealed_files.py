"""The files of a project while agents edit them: what judges is sealed, and put back whenever it was touched."""

from __future__ import annotations

import hashlib
import site
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath

from pytest_loop.core.judging.tampering import Source
from pytest_loop.core.model.evaluation import SealFinding
from pytest_loop.errors import StateError
from pytest_loop.store import disk
from pytest_loop.workspace.content_archive import MAX_SIZE, ContentArchive, RestoreResult
from pytest_loop.workspace.file_tree import (
    FileChanges,
    FileKind,
    FileTree,
    ScanScope,
    compare_trees,
    read_entry,
    scan_files,
)
from pytest_loop.workspace.path_patterns import PathPatterns
from pytest_loop.workspace.project_diff import ProjectDiff, compute_diff
from pytest_loop.workspace.shadowed_modules import select_shadowing_files

TEST_FOLDERS = ("tests", "test", "testing")
# What decides how tests are found and run, and what else judges.
CONFIGURATION_FILES = (
    "conftest.py",
    "*.rules.yaml",
    "*.rules.yml",
    "*.rules.json",
    "*.rules.toml",
    "pytest.ini",
    ".pytest.ini",
    "pytest.toml",
    ".pytest.toml",
    "tox.ini",
    "setup.cfg",
    "pyproject.toml",
    "noxfile.py",
    "sitecustomize.py",
    "usercustomize.py",
    ".coveragerc",
    "mypy.ini",
    ".mypy.ini",
    "ruff.toml",
    ".ruff.toml",
    ".flake8",
    ".pylintrc",
    ".pre-commit-config.yaml",
    "/.github/",
    "/.gitlab-ci.yml",
    "/.circleci/",
    "*.pth",
    "*.pyc",  # beside its source one is imported in the place of another module, and git ignores it
)
# What commands of other tools are told by; they judge where such a command does.
BUILD_FILES = (
    "[mM]akefile",
    "GNUmakefile",
    "[jJ]ustfile",
    ".justfile",
    "mise.toml",
    "Rakefile",
    "package.json",
    "jest.config.*",
    "vitest.config.*",
    ".mocharc*",
    ".eslintrc*",
    "eslint.config.*",
    "tsconfig*.json",
    "Cargo.toml",
    "go.mod",
    "pom.xml",
    "build.gradle*",
)
NEW_TESTS = ("!test_*.py", "!*_test.py")
_SOURCES = ".py"


def build_seal_patterns(
    tests: Iterable[str], seal: Iterable[str] = (), unseal: Iterable[str] = (), *, are_tests_added: bool = False
) -> tuple[str, ...]:
    """What is sealed: the files of tests, the folders of tests they lie in, configuration, and what the person says.

    Where tests are to be added, new ones may be; those that are there stay as they are, and so does what lies by them.
    """
    known = sorted(set(tests))
    own = dict.fromkeys(map(_place_of_a_test, known))
    new = (*NEW_TESTS, *(f"/{_escaped(path)}" for path in known)) if are_tests_added else ()
    return (*CONFIGURATION_FILES, *own, *new, *seal, *(f"!{pattern}" for pattern in unseal))


def _place_of_a_test(path: str) -> str:
    parts = PurePosixPath(path).parts
    for at, part in enumerate(parts[:-1]):
        if part in TEST_FOLDERS:
            return f"/{_escaped('/'.join(parts[: at + 1]))}/"
    return f"/{_escaped(path)}"


def _escaped(path: str) -> str:
    return "".join(f"\\{one}" if one in "*?[]\\! #" else one for one in path)


def hash_site_files() -> str:
    """The hash of what every interpreter of this environment loads before anything else."""
    whole = hashlib.sha256()
    for folder in sorted({*site.getsitepackages(), site.getusersitepackages()}):
        for path in sorted(Path(folder).glob("*")) if Path(folder).is_dir() else ():
            if path.suffix == ".pth" or path.name in ("sitecustomize.py", "usercustomize.py"):
                whole.update(f"{path}\0{disk.hash_file(path)}\0".encode())
    return whole.hexdigest()


class SealedFiles:
    """The project's files since the run began."""

    def __init__(
        self,
        root: Path,
        folder: Path,
        sealed: Iterable[str],
        allow: Iterable[str] = (),
        outputs: Iterable[str] = (),
    ) -> None:
        self.root = root
        given = tuple(sealed)
        self.sealed = PathPatterns(given)
        self._closed = PathPatterns(("*", *given))  # all but what somebody has unsealed
        self.allow = PathPatterns(allow)
        inside = folder.is_relative_to(root)
        runs = folder.parent.relative_to(root).as_posix() if inside else ""
        self.scope = ScanScope(runs, self.sealed, outputs=frozenset(outputs))
        self._listing = folder / "files.json"
        self._kept = ContentArchive(folder / "files.kept")
        self._lists: dict[Path, tuple[str, FileTree]] = {}
        self.start = FileTree({})
        self.current = FileTree({})

    # -- the beginning

    def record_start(self) -> str:
        """Look at everything before the first edit, and keep it; gives the hash that proves what was seen."""
        self.start = self.current = scan_files(self.root, self.scope)
        self._kept.add_files(self.root, self.start, self.sealed)
        return self._list(self._listing, self.start)

    def resume(self, proof: str) -> None:
        """In another process: what was seen then is only believed if nobody has touched it since."""
        data = disk.read_file(self._listing) or b""
        if hashlib.sha256(data).hexdigest() != proof:
            raise StateError(
                f"{self._listing} is not as this run wrote it: bring it back, or start anew with --loop-task"
            )
        self.start = FileTree.from_json(data)
        self._lists[self._listing] = (proof, self.start)
        self._kept.open_existing()
        self.current = scan_files(self.root, self.scope, self.start)

    def _list(self, path: Path, tree: FileTree) -> str:
        """Write a list of files down; gives its hash."""
        data = tree.to_json()
        disk.make_folder(path.parent)
        disk.write_atomically(path, data)
        found = hashlib.sha256(data).hexdigest()
        self._lists[path] = (found, tree)
        return found

    def _secure(self) -> None:
        """Agents clean up what git does not know, and the run's folder with it: what was in it is written again."""
        self._kept.rewrite_if_removed()
        for path, (proof, tree) in list(self._lists.items()):
            if disk.hash_file(path) != proof:
                self._list(path, tree)

    # -- as they were in an iteration

    def save_checkpoint(self, number: int) -> None:
        """Keep the files as they are now under the number of an iteration."""
        self._list(self._numbered(number), self.save_current())

    def restore_checkpoint(self, number: int, digest: str) -> RestoreResult:
        """Make the files those of an iteration again; `digest` is what that iteration judged."""
        data = disk.read_file(self._numbered(number))
        then = FileTree.from_json(data) if data else None
        if then is None or then.digest != digest:
            raise StateError(f"the files of iteration {number} are not kept in {self._listing.parent}")
        return self.restore_tree(then)

    def save_current(self) -> FileTree:
        """Keep the files as they are now, to go back to them in this process."""
        self._kept.add_files(self.root, self.current)
        return self.current

    def restore_tree(self, then: FileTree) -> RestoreResult:
        """Make the files those again that were kept."""
        self.current = scan_files(self.root, self.scope, self.start)
        done = self._kept.undo_changes(self.root, then, self.current, compare_trees(then, self.current))
        self.current = scan_files(self.root, self.scope, self.start)
        return done

    def get_content(self, digest: str) -> bytes | None:
        """The content with this hash, if a file had it when the files were kept."""
        return self._kept.get_content(digest)

    def _numbered(self, number: int) -> Path:
        return self._listing.with_name(f"files-{number}.json")

    def discard(self) -> None:
        """The run does not begin: nothing of it stays."""
        self._kept.close()
        for path in (self._listing, self._kept.path):
            disk.remove_file(path)
        with suppress(OSError):
            self._listing.parent.rmdir()
            self._listing.parent.parent.rmdir()

    def close(self) -> None:
        """Let go of the files."""
        self._kept.close()

    # -- after an edit

    def enforce_seal(self) -> list[SealFinding]:
        """Put back what judges, and what nobody allowed to be edited; gives what was found."""
        self._secure()
        self.current = scan_files(self.root, self.scope, self.start)
        found = compare_trees(self.start, self.current)
        sealed = found.select(self.sealed)
        others = found.exclude(self.sealed)
        outside = others.exclude(self.allow) if self.allow else FileChanges()
        allowed = others.select(self.allow) if self.allow else others
        hidden = select_shadowing_files(self.root, self.start, allowed).select(self._closed)
        wrong = ((sealed, "sealed"), (hidden, "sealed"), (outside, "allow"))
        findings = [one for paths, kind in wrong for one in self._put_back(paths, kind)]
        if findings:
            self.current = scan_files(self.root, self.scope, self.start)
        return findings

    def _put_back(self, found: FileChanges, kind: str) -> Iterator[SealFinding]:
        if not found.paths:
            return
        done = self._kept.undo_changes(self.root, self.start, self.current, found)
        words = dict.fromkeys(done.removed, "was new, and was removed")
        words |= dict.fromkeys(done.restored, "was changed, and was put back")
        words |= {path: f"was changed, and cannot be put back: {reason}" for path, reason in done.lost}
        for path in found.paths:
            yield SealFinding(kind=kind, path=path, detail=words.get(path, "was changed"))

    # -- what has changed

    @property
    def digest(self) -> str:
        """The hash of all files as they were last seen."""
        return self.current.digest

    def compute_diff(self) -> ProjectDiff:
        """What has changed since the run began."""
        return compute_diff(self.start, self.current, self._content_then, self._content_now)

    def render_diff(self, then: FileTree, limit: int) -> str:
        """What has changed since the files were as `then`, where these were kept."""

        def content(path: str) -> bytes | None:
            return self._kept.get_content(then.entries[path].digest)

        return compute_diff(then, self.current, content, self._content_now, limit).diff

    def list_changed_sources(self) -> list[Source]:
        """The Python files of the product that have changed."""
        found = compare_trees(self.start, self.current)
        paths = [path for path in (*found.added, *found.modified) if path.endswith(_SOURCES)]
        return [
            Source(path, _text(self._content_then(path)) if path in self.start.entries else None, _text(data))
            for path in paths
            if (data := self._content_now(path)) is not None
        ]

    def read_product_sources(self) -> Iterator[str]:
        """The Python files of the product as they were when the run began."""
        for path in self.start.entries:
            if path.endswith(_SOURCES) and not self.sealed.matches(path):
                yield _text(self._content_then(path))

    def read_sealed_sources(self) -> Iterator[str]:
        """The Python files that are sealed, as they were."""
        for path in self.start.entries:
            if path.endswith(_SOURCES) and self.sealed.matches(path):
                yield _text(self._content_then(path))

    def _content_then(self, path: str) -> bytes | None:
        return self._kept.get_content(self.start.entries[path].digest)

    def _content_now(self, path: str) -> bytes | None:
        entry = self.current.entries[path]
        return read_entry(self.root, path, entry, MAX_SIZE) if entry.kind in (FileKind.FILE, FileKind.LINK) else None


def _text(data: bytes | None) -> str:
    return (data or b"").decode("utf-8", "replace")
