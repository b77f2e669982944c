"""Decide which files of a project are sealed, from the files that sessions read before the first edit."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass

from pytest_loop.core.judging.tampering import find_test_machinery

Read = tuple[str, str]
# Documentation in its usual places. A test may read it, and an agent may have to fix it.
_DOCUMENTS = re.compile(r"(?:[^/]+|docs?/.*)\.(?:md|rst|adoc)", re.I)
# Suffixes of source files. A test may read one to check it, and an agent may have to edit it.
_SOURCES = frozenset(
    {
        *("py", "pyi", "js", "mjs", "cjs", "ts", "tsx", "jsx", "vue", "go", "rs", "java", "kt", "c", "h"),
        *("cc", "cpp", "hpp", "rb", "php", "sh", "sql", "html", "css", "j2", "jinja", "tmpl", "proto"),
    }
)
# Files that describe the project; tests compare them with its code.
_PROJECT_FILES = frozenset(
    ["pyproject.toml", "setup.cfg", "setup.py", "package.json", "Cargo.toml", "go.mod", "LICENSE"]
)
_HELPER_NAME = re.compile(
    r"(?:.*_)?(?:tests?|testing|testlib|testutils?|testcase|helpers?|support|fixtures?|factor(?:y|ies)|asserts?|"
    r"assertions?|expected|expectations?|golden|testdata|mocks?|fakes?|stubs?)(?:_.*)?"
)


@dataclass(frozen=True)
class ReadFacts:
    """Facts about a project that its baseline sessions show.

    - `reads`: pairs of a file and the project's source file that opened it; an empty text if installed code did.
    - `listings`: pairs of a folder and the source file that listed it, as in `reads`.
    - `files`: all files of the project; `sources`: the Python files that are no tests.
    - `is_test`: whether a path matches the sealed patterns, as tests do.
    - `plugins`: modules that pytest loaded by name.
    - `packages`: folders of the product.
    - `read_text`: returns the text of a file before the first edit.
    """

    reads: Collection[Read]
    listings: Collection[Read]
    files: Iterable[str]
    is_test: Callable[[str], bool]
    sources: Collection[str]
    read_text: Callable[[str], str]
    plugins: Collection[str] = ()
    packages: Collection[str] = ("src",)


def find_files_to_seal(facts: ReadFacts) -> tuple[str, ...]:
    """Return the files to seal: data that tests open, and modules that only help tests."""
    helpers = _find_helpers(facts)
    readers = {owner for _, owner in facts.reads if not owner or facts.is_test(owner) or owner in helpers}
    data = {path for path, owner in facts.reads if owner in readers and not is_product_file(path)}
    # A test that failed at the first file of a folder will read the others once it passes.
    listed = {folder for folder, owner in facts.listings if owner in readers} & set(map(_get_folder, data))
    data |= {path for path in facts.files if _get_folder(path) in listed and not is_product_file(path)}
    return tuple(sorted(helpers | {path for path in data if not facts.is_test(path)}))


def _get_folder(path: str) -> str:
    return path.rpartition("/")[0]


def is_product_file(path: str) -> bool:
    """Return whether a file stays editable although a test opens it: source code, and documentation."""
    name = path.rpartition("/")[2]
    is_source = name.rpartition(".")[2] in _SOURCES
    return is_source or name in _PROJECT_FILES or bool(_DOCUMENTS.fullmatch(path))


def _find_helpers(facts: ReadFacts) -> set[str]:
    """Return pytest plugins, and helper modules that tests read and the product does not import."""
    modules = {path for path, owner in facts.reads if path.endswith(".py") and facts.is_test(owner)}
    helpers = {
        path
        for path in modules
        if not facts.is_test(path)
        and not _is_in_product(path, facts.packages)
        and (has_helper_name(path) or (find_test_machinery(facts.read_text(path)) and not _has_own_test(path, facts)))
    }
    plugins = {path for path in facts.plugins if not facts.is_test(path)}
    return (helpers - set(_find_used_by_product(helpers, facts))) | plugins


def _find_used_by_product(modules: Collection[str], facts: ReadFacts) -> Iterator[str]:
    """Yield the modules that a source file outside of `modules` imports."""
    names = {_get_module_name(path): path for path in modules}
    for source in facts.sources if names else ():
        text = "" if source in modules else facts.read_text(source)
        if any(name in text for name in names):  # faster than parsing every file
            yield from (names[name] for name in _list_imports(text) if name in names)


def _get_module_name(path: str) -> str:
    *folders, name = path.removesuffix(".py").split("/")
    return folders[-1] if name == "__init__" and folders else name


def _is_in_product(path: str, packages: Iterable[str]) -> bool:
    return any(path.startswith(f"{package}/") for package in packages)


def has_helper_name(path: str) -> bool:
    """Return whether a module, or a folder around it, has a name that is usual for test helpers."""
    *folders, name = path.removesuffix(".py").split("/")
    return any(part != "testing" and _HELPER_NAME.fullmatch(part) for part in (name, *folders))


def _has_own_test(path: str, facts: ReadFacts) -> bool:
    """Return whether a test file named after a module reads it: such a module is product, even if it imports pytest."""
    name = _get_module_name(path)
    tests = {f"test_{name}.py", f"{name}_test.py"}
    return any(read == path and owner.rpartition("/")[2] in tests for read, owner in facts.reads)


def _list_imports(text: str) -> Iterator[str]:
    """Yield every part of the dotted names that a module imports."""
    try:
        nodes = list(ast.walk(ast.parse(text)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            yield from (node.module or "").split(".")
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from (part for alias in node.names for part in alias.name.split("."))
