"""Find verification commands of Python packages: pytest, coverage, linters, type checkers and scripts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple

from pytest_loop.inference.command_candidate import CommandCandidate, Layer, SourceLine
from pytest_loop.inference.data_files import collect_strings, get_mapping
from pytest_loop.inference.project_files import (
    MAX_SCRIPTS,
    Project,
    get_folder,
    is_in_folder,
    is_loop_file,
    join_folder,
)
from pytest_loop.inference.shell_script import is_trivial
from pytest_loop.inference.tool_purposes import Purpose, classify_script

_MANIFESTS = ("pyproject.toml", "setup.cfg", "setup.py", "tox.ini", "pytest.ini")
_REQUIREMENT_FILE = re.compile(r"pyproject\.toml|setup\.(?:cfg|py)|requirements[\w.-]*\.txt")
_PYTEST_REQUIRED = r"^pytest\b|[\"'\s]pytest\b"
_PYTEST_COV = "pytest --cov --cov-report=term"
# Without settings, coverage would count every imported file, also of other projects: limit it to this folder.
_PYTEST_COV_OF_PROJECT = "pytest --cov=. --cov-report=term"
_PYTEST_COV_REQUIRED = r"\bpytest-cov\b"


class _Tool(NamedTuple):
    """A tool, its table in pyproject.toml, and pairs of another file and its section, empty for the whole file."""

    command: str
    table: str
    files: tuple[tuple[str, str], ...] = ()


_PYTEST = _Tool("pytest", "pytest", (("pytest.ini", ""), ("setup.cfg", "tool:pytest"), ("tox.ini", "pytest")))
_COVERAGE = _Tool(
    "coverage run -m pytest && coverage report",
    "coverage",
    ((".coveragerc", ""), ("setup.cfg", "coverage:run"), ("tox.ini", "coverage:run")),
)
_RUFF = _Tool("ruff check .", "ruff", (("ruff.toml", ""), (".ruff.toml", "")))
_CHECKERS: dict[Purpose, tuple[_Tool, ...]] = {
    Purpose.LINT: (
        _RUFF,
        _Tool("flake8", "flake8", ((".flake8", "flake8"), ("setup.cfg", "flake8"), ("tox.ini", "flake8"))),
        _Tool("pre-commit run --all-files", "pre-commit", ((".pre-commit-config.yaml", ""),)),
        _Tool("black --check .", "black"),
    ),
    Purpose.TYPES: (
        _Tool("mypy .", "mypy", (("mypy.ini", "mypy"), ("setup.cfg", "mypy"))),
        _Tool("pyright", "pyright", (("pyrightconfig.json", ""),)),
    ),
    Purpose.DOCS: (_Tool("interrogate .", "interrogate"),),
}
# Tables that declare scripts, with the command that runs one by its name.
_SCRIPT_TABLES = {
    "poe.tasks": "poe",
    "pdm.scripts": "pdm run",
    "taskipy.tasks": "task",
    "hatch.envs.default.scripts": "hatch run",
}


def find_python_candidates(project: Project) -> Iterator[CommandCandidate]:
    """Yield the commands of every Python package; Python files without a manifest make the root a package."""
    folders = dict.fromkeys(get_folder(path) for path in project.find_by_name(*_MANIFESTS))
    tests = project.find_python_tests()
    has_loose_tests = any(not any(is_in_folder(path, folder) for folder in folders) for path in tests)
    has_no_manifest = not folders and any(path.endswith(".py") for path in project.files)
    for folder in (*folders, *([""] if has_loose_tests or has_no_manifest else [])):
        yield from _Package(project, folder).list_candidates()


@dataclass(frozen=True)
class _Package:
    """A folder with a manifest, or the root of a project without one."""

    project: Project
    folder: str

    def list_candidates(self) -> Iterator[CommandCandidate]:
        yield from self._list_tests()
        for purpose, tools in _CHECKERS.items():
            yield from self._list_checkers(purpose, tools)
        yield from self._list_scripts()
        if "build-system" in self.project.data.get(self.manifest, {}):
            source = self.project.locate(self.manifest, r"^\[build-system\]")
            yield self._build_candidate("python -m build", Purpose.BUILD, source, is_guess=True)

    @property
    def manifest(self) -> str:
        return join_folder(self.folder, "pyproject.toml")

    @cached_property
    def tool_tables(self) -> dict[Any, Any]:
        return get_mapping(self.project.data.get(self.manifest), "tool")

    @cached_property
    def first_file(self) -> SourceLine:
        """The first Python file as the source of guesses; without one, the first file."""
        paths = (path for path in self.project.files if is_in_folder(path, self.folder) and not is_loop_file(path))
        return SourceLine(min(paths, key=lambda path: (not path.endswith(".py"), path)))

    def _build_candidate(self, command: str, purpose: Purpose, source: SourceLine, **fields: Any) -> CommandCandidate:
        return CommandCandidate(command, purpose, Layer.MANIFESTS, source, self.folder, "python", **fields)

    def _locate_settings(self, tool: _Tool) -> SourceLine | None:
        if tool.table in self.tool_tables:
            return self.project.locate(self.manifest, rf"^\[+tool\.{re.escape(tool.table)}\b")
        for file, section in tool.files:
            path = join_folder(self.folder, file)
            if section and section in self.project.data.get(path, {}):
                return self.project.locate(path, rf"^\[{re.escape(section)}")
            if not section and path in self.project.files:
                return SourceLine(path)
        return None

    def _list_tests(self) -> Iterator[CommandCandidate]:
        tests = self.project.find_python_tests(self.folder)
        source = (
            self._locate_settings(_PYTEST) or self._locate_requirement() or (SourceLine(tests[0]) if tests else None)
        )
        if source:
            yield self._build_candidate(_PYTEST.command, Purpose.TEST, source)
            yield self._build_coverage_candidate(source)
        elif self.project.has_file(self.folder, "manage.py"):
            yield self._build_candidate(
                "python manage.py test", Purpose.TEST, SourceLine(join_folder(self.folder, "manage.py"))
            )
        else:
            yield self._build_candidate(_PYTEST.command, Purpose.TEST, self.first_file, is_guess=True)

    def _locate_requirement(self) -> SourceLine | None:
        """Return the line that requires pytest, or else a conftest file; None without either."""
        for path, text in self.project.texts.items():
            is_here = get_folder(path) == self.folder and _REQUIREMENT_FILE.fullmatch(path.rpartition("/")[2])
            if is_here and re.search(_PYTEST_REQUIRED, text, re.MULTILINE):
                return self.project.locate(path, _PYTEST_REQUIRED)
        conftests = (join_folder(self.folder, name) for name in ("conftest.py", "tests/conftest.py"))
        return next((SourceLine(path) for path in conftests if path in self.project.files), None)

    def _build_coverage_candidate(self, tests: SourceLine) -> CommandCandidate:
        settings = self._locate_settings(_COVERAGE)
        command = _PYTEST_COV if settings else _PYTEST_COV_OF_PROJECT
        for path, text in self.project.texts.items():
            if is_in_folder(path, self.folder) and re.search(_PYTEST_COV_REQUIRED, text):
                return self._build_candidate(command, Purpose.COVERAGE, self.project.locate(path, _PYTEST_COV_REQUIRED))
        if settings:
            return self._build_candidate(_COVERAGE.command, Purpose.COVERAGE, settings)
        return self._build_candidate(command, Purpose.COVERAGE, tests)

    def _list_checkers(self, purpose: Purpose, tools: tuple[_Tool, ...]) -> Iterator[CommandCandidate]:
        """Yield the tools that are configured; if none is, the first of them as a guess."""
        configured = [(tool, source) for tool in tools if (source := self._locate_settings(tool))]
        for rank, (tool, source) in enumerate(configured):
            command = "mypy" if tool.table == "mypy" and self._has_mypy_targets(source) else tool.command
            yield self._build_candidate(command, purpose, source, rank=rank)
        if purpose is Purpose.DOCS and not configured and (ruff := self._locate_ruff_docs()):
            yield self._build_candidate("ruff check --select D .", purpose, ruff)
        elif not configured:
            yield self._build_candidate(tools[0].command, purpose, self.first_file, is_guess=True)

    def _has_mypy_targets(self, source: SourceLine) -> bool:
        settings = get_mapping(self.tool_tables, "mypy") or get_mapping(self.project.data.get(source.path), "mypy")
        return any(name in settings for name in ("files", "packages", "modules"))

    def _locate_ruff_docs(self) -> SourceLine | None:
        tables = (get_mapping(self.tool_tables, *keys) for keys in (("ruff", "lint"), ("ruff",)))
        codes = (code for table in tables for code in collect_strings(table.get("select")))
        return self._locate_settings(_RUFF) if any(code.startswith("D") for code in codes) else None

    def _list_scripts(self) -> Iterator[CommandCandidate]:
        for table, runner in _SCRIPT_TABLES.items():
            for name, body in islice(get_mapping(self.tool_tables, *table.split(".")).items(), MAX_SCRIPTS):
                if purpose := classify_script(name):
                    pattern = rf"^\s*[\"']?{re.escape(name)}[\"']?\s*="
                    source = self.project.locate(self.manifest, pattern, rf"^\[tool\.{re.escape(table)}")
                    is_empty = isinstance(body, str) and is_trivial(body)
                    yield self._build_candidate(f"{runner} {name}", purpose, source, rank=5, is_trivial=is_empty)
