"""Python: pytest, linters, type checkers and coverage, from pyproject.toml, setup.cfg and the files of tests."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple

from pytest_loop.inference.command_candidate import Candidate, Layer, Source
from pytest_loop.inference.data_files import collect_strings, get_mapping
from pytest_loop.inference.project_files import MOST_SCRIPTS, Project, get_folder, is_loop_file, join_folder
from pytest_loop.inference.shell_script import is_trivial
from pytest_loop.inference.tool_purposes import Purpose, classify_script

FAMILY = "python"
_MANIFESTS = ("pyproject.toml", "setup.cfg", "setup.py", "tox.ini", "pytest.ini")
_REQUIRED = r"^pytest\b|[\"'\s]pytest\b"
_COVERAGE = "pytest --cov --cov-report=term"
_PLUGIN = r"\bpytest-cov\b"


class _Tool(NamedTuple):
    """A tool and where it is configured: a table of pyproject.toml, or sections of files; an empty one is the file."""

    command: str
    table: str
    files: tuple[tuple[str, str], ...] = ()


_PYTEST = _Tool("pytest", "pytest", (("pytest.ini", ""), ("setup.cfg", "tool:pytest"), ("tox.ini", "pytest")))
_MEASURED = _Tool(
    "coverage run -m pytest && coverage report",
    "coverage",
    ((".coveragerc", ""), ("setup.cfg", "coverage:run"), ("tox.ini", "coverage:run")),
)
_LINTERS = (
    _Tool("ruff check .", "ruff", (("ruff.toml", ""), (".ruff.toml", ""))),
    _Tool("flake8", "flake8", ((".flake8", "flake8"), ("setup.cfg", "flake8"), ("tox.ini", "flake8"))),
    _Tool("pre-commit run --all-files", "pre-commit", ((".pre-commit-config.yaml", ""),)),
    _Tool("black --check .", "black"),
)
_CHECKERS = (
    _Tool("mypy .", "mypy", (("mypy.ini", "mypy"), ("setup.cfg", "mypy"))),
    _Tool("pyright", "pyright", (("pyrightconfig.json", ""),)),
)
_DOCS = (_Tool("interrogate .", "interrogate"),)
# Where scripts are declared, and who runs them by their names.
_SCRIPTS = {
    "poe.tasks": "poe",
    "pdm.scripts": "pdm run",
    "taskipy.tasks": "task",
    "hatch.envs.default.scripts": "hatch run",
}


def find_candidates(project: Project) -> Iterator[Candidate]:
    """What the Python packages of a project can be verified with."""
    folders = dict.fromkeys(get_folder(path) for path in project.find_named(*_MANIFESTS))
    is_loose = any(not any(_is_in(path, folder) for folder in folders) for path in project.find_python_tests())
    is_bare = not folders and any(path.endswith(".py") for path in project.files)
    for folder in (*folders, *([""] if is_loose or is_bare else [])):
        yield from _Package(project, folder).candidates()


def _is_in(path: str, folder: str) -> bool:
    return not folder or path.startswith(f"{folder}/")


@dataclass(frozen=True)
class _Package:
    """One folder with a manifest, or the root where there is none."""

    project: Project
    folder: str

    def candidates(self) -> Iterator[Candidate]:
        yield from self._tests()
        yield from self._configured(Purpose.LINT, _LINTERS)
        yield from self._configured(Purpose.TYPES, _CHECKERS)
        yield from self._configured(Purpose.DOCS, _DOCS)
        yield from self._scripts()
        if "build-system" in self.project.data.get(self.manifest, {}):
            source = self.project.locate(self.manifest, r"^\[build-system\]")
            yield self._made("python -m build", Purpose.BUILD, source, is_guess=True)

    @property
    def manifest(self) -> str:
        return join_folder(self.folder, "pyproject.toml")

    @cached_property
    def settings(self) -> dict[Any, Any]:
        """The tables of tools in pyproject.toml."""
        return get_mapping(self.project.data.get(self.manifest), "tool")

    @cached_property
    def anything(self) -> Source:
        """What a guess rests on: there is Python here."""
        ours = (path for path in self.project.files if _is_in(path, self.folder) and not is_loop_file(path))
        return Source(min(ours, key=lambda path: (not path.endswith(".py"), path)))

    def _made(
        self, command: str, purpose: Purpose, source: Source, rank: int = 0, *, is_guess: bool = False
    ) -> Candidate:
        return Candidate(command, purpose, Layer.MANIFESTS, source, self.folder, FAMILY, is_guess=is_guess, rank=rank)

    def _place(self, tool: _Tool) -> Source | None:
        """Where a tool is configured."""
        if tool.table in self.settings:
            return self.project.locate(self.manifest, rf"^\[+tool\.{re.escape(tool.table)}\b")
        for file, section in tool.files:
            path = join_folder(self.folder, file)
            if section and section in self.project.data.get(path, {}):
                return self.project.locate(path, rf"^\[{re.escape(section)}")
            if not section and path in self.project.files:
                return Source(path)
        return None

    def _tests(self) -> Iterator[Candidate]:
        files = self.project.find_python_tests(self.folder)
        source = self._place(_PYTEST) or self._required() or (Source(files[0]) if files else None)
        if source:
            yield self._made(_PYTEST.command, Purpose.TEST, source)
            yield self._coverage(source)
        elif self.project.has_file(self.folder, "manage.py"):
            yield self._made("python manage.py test", Purpose.TEST, Source(join_folder(self.folder, "manage.py")))
        else:
            yield self._made(_PYTEST.command, Purpose.TEST, self.anything, is_guess=True)

    def _required(self) -> Source | None:
        """Where pytest is required, or a conftest file."""
        ours = [path for path in self.project.texts if get_folder(path) == self.folder]
        for path in ours:
            if re.fullmatch(r"pyproject\.toml|setup\.(?:cfg|py)|requirements[\w.-]*\.txt", path.rpartition("/")[2]):
                source = self.project.locate(path, _REQUIRED, default=0)
                if source.line:
                    return source
        beside = (join_folder(self.folder, name) for name in ("conftest.py", "tests/conftest.py"))
        return next((Source(path) for path in beside if path in self.project.files), None)

    def _coverage(self, tests: Source) -> Candidate:
        ours = [path for path in self.project.texts if _is_in(path, self.folder)]
        plugin = next((path for path in ours if re.search(_PLUGIN, self.project.texts[path])), None)
        if plugin:
            return self._made(_COVERAGE, Purpose.COVERAGE, self.project.locate(plugin, _PLUGIN))
        configured = self._place(_MEASURED)
        if configured:
            return self._made(_MEASURED.command, Purpose.COVERAGE, configured)
        return self._made(_COVERAGE, Purpose.COVERAGE, tests, is_guess=True)

    def _configured(self, purpose: Purpose, tools: tuple[_Tool, ...]) -> Iterator[Candidate]:
        """The tools that are configured; where none is, the first of them as a guess."""
        found = [(tool, place) for tool in tools if (place := self._place(tool))]
        for rank, (tool, place) in enumerate(found):
            command = "mypy" if tool.table == "mypy" and self._has_targets(place) else tool.command
            yield self._made(command, purpose, place, rank)
        if purpose is Purpose.DOCS and not found and (ruff := self._docs_by_ruff()):
            yield self._made("ruff check --select D .", purpose, ruff)
        elif not found:
            yield self._made(tools[0].command, purpose, self.anything, is_guess=True)

    def _has_targets(self, place: Source) -> bool:
        settings = get_mapping(self.settings, "mypy") or get_mapping(self.project.data.get(place.path), "mypy")
        return any(name in settings for name in ("files", "packages", "modules"))

    def _docs_by_ruff(self) -> Source | None:
        selected = [
            code
            for path in (("ruff", "lint"), ("ruff",))
            for code in collect_strings(get_mapping(self.settings, *path).get("select"))
        ]
        return self._place(_LINTERS[0]) if any(code.startswith("D") for code in selected) else None

    def _scripts(self) -> Iterator[Candidate]:
        for table, runner in _SCRIPTS.items():
            for name, body in islice(get_mapping(self.settings, *table.split(".")).items(), MOST_SCRIPTS):
                if purpose := classify_script(name):
                    pattern = rf"^\s*[\"']?{re.escape(name)}[\"']?\s*="
                    source = self.project.locate(self.manifest, pattern, rf"^\[tool\.{re.escape(table)}")
                    made = self._made(f"{runner} {name}", purpose, source, rank=5)
                    yield replace(made, is_trivial=isinstance(body, str) and is_trivial(body))
