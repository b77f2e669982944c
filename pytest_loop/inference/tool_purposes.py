"""What the tools that verify something are called, and what each of them is for."""

from __future__ import annotations

import re
from enum import Enum


def split_names(text: str) -> frozenset[str]:
    """The words of a text, to look something up in."""
    return frozenset(text.split())


class Purpose(str, Enum):
    """What a command verifies."""

    TEST = "test"
    COVERAGE = "coverage"
    TYPES = "types"
    LINT = "lint"
    BUILD = "build"
    DOCS = "docs"


_TOOLS = {
    Purpose.TEST: "pytest unittest nose2 trial jest vitest mocha ava tap jasmine karma rspec minitest phpunit pest "
    "ctest bats",
    Purpose.COVERAGE: "nyc c8",
    Purpose.TYPES: "mypy pyright basedpyright pytype vue-tsc svelte-check srb",
    Purpose.LINT: "flake8 pylint eslint stylelint xo oxlint golangci-lint staticcheck rubocop standardrb shellcheck "
    "hadolint markdownlint markdownlint-cli2 yamllint actionlint ktlint detekt lint-imports codespell pre-commit",
    Purpose.BUILD: "webpack rollup",
    Purpose.DOCS: "interrogate pydocstyle docstr-coverage sphinx-build lychee vale",
}
# A tool that does one thing, whatever it is told.
TOOLS = {name: purpose for purpose, names in _TOOLS.items() for name in names.split()}

# A tool whose first word says what it does.
SUBCOMMANDS: dict[tuple[str, str], Purpose] = {
    ("bazel", "build"): Purpose.BUILD,
    ("bazel", "test"): Purpose.TEST,
    ("biome", "check"): Purpose.LINT,
    ("biome", "ci"): Purpose.LINT,
    ("biome", "lint"): Purpose.LINT,
    ("build", ""): Purpose.BUILD,
    ("bun", "test"): Purpose.TEST,
    ("cargo", "build"): Purpose.BUILD,
    ("cargo", "check"): Purpose.TYPES,
    ("cargo", "clippy"): Purpose.LINT,
    ("cargo", "doc"): Purpose.DOCS,
    ("cargo", "llvm-cov"): Purpose.COVERAGE,
    ("cargo", "nextest"): Purpose.TEST,
    ("cargo", "tarpaulin"): Purpose.COVERAGE,
    ("cargo", "test"): Purpose.TEST,
    ("coverage", "report"): Purpose.COVERAGE,
    ("coverage", "run"): Purpose.COVERAGE,
    ("cypress", "run"): Purpose.TEST,
    ("deno", "check"): Purpose.TYPES,
    ("deno", "lint"): Purpose.LINT,
    ("deno", "test"): Purpose.TEST,
    ("dotnet", "build"): Purpose.BUILD,
    ("dotnet", "test"): Purpose.TEST,
    ("flow", "check"): Purpose.TYPES,
    ("go", "build"): Purpose.BUILD,
    ("go", "test"): Purpose.TEST,
    ("go", "vet"): Purpose.LINT,
    ("hatch", "test"): Purpose.TEST,
    ("manage.py", "test"): Purpose.TEST,
    ("mix", "test"): Purpose.TEST,
    ("mkdocs", "build"): Purpose.DOCS,
    ("next", "build"): Purpose.BUILD,
    ("next", "lint"): Purpose.LINT,
    ("playwright", "test"): Purpose.TEST,
    ("rails", "test"): Purpose.TEST,
    ("setup.py", "test"): Purpose.TEST,
    ("swift", "build"): Purpose.BUILD,
    ("swift", "test"): Purpose.TEST,
    ("ty", "check"): Purpose.TYPES,
    ("vite", "build"): Purpose.BUILD,
}

# A tool that verifies only where one of these flags says that it looks and does not touch.
LOOKING: dict[str, frozenset[str]] = {
    "black": split_names("--check"),
    "isort": split_names("--check --check-only -c"),
    "prettier": split_names("--check -c --list-different -l"),
    "gofmt": split_names("-l -d"),
    "cargo fmt": split_names("--check"),
    "ruff format": split_names("--check --diff"),
}

# Words of a build tool (Maven, Gradle): the strongest one counts.
LIFECYCLE: tuple[tuple[re.Pattern[str], Purpose], ...] = (
    (re.compile(r"jacoco\w*"), Purpose.COVERAGE),
    (re.compile(r".*(?:checkstyle|spotless|ktlint|detekt|pmd|spotbugs|lint)\w*(?::check)?.*"), Purpose.LINT),
    (re.compile(r"(?:.*:)?(?:test\w*|check|verify|integration-?test\w*|build)"), Purpose.TEST),
    (re.compile(r"(?:.*:)?(?:compile\w*|package|assemble|classes|install)"), Purpose.BUILD),
)

# The names of scripts, targets, recipes, sessions and environments, in parts.
_SCRIPTS: tuple[tuple[Purpose, str], ...] = (
    (Purpose.COVERAGE, "coverage cov codecov"),
    (Purpose.DOCS, "docs doc docstrings docstring"),
    (Purpose.TYPES, "typecheck typechecks types type mypy pyright tsc typing"),
    (
        Purpose.LINT,
        "lint linting linters eslint style fmt format formatting prettier ruff flake8 clippy rubocop stylelint",
    ),
    (
        Purpose.TEST,
        "test tests unit spec specs integration e2e unittest unittests pytest jest check verify validate ci",
    ),
    (Purpose.BUILD, "build compile dist bundle all"),
)
_NOT_VERIFYING = split_names(
    "watch fix dev serve start deploy release publish update install clean write snapshot bench benchmark debug ui "
    "open upload html setup prepare image docker push"
)
# Formatting is verified only by those who say that they look and do not touch.
_CHANGING = split_names("fmt format formatting prettier")
_LOOKING = split_names("check verify ci lint")


def classify_script(name: str) -> Purpose | None:
    """What a script of this name is for: `test:unit`, `type-check`, `lint`; None where it verifies nothing."""
    parts = [part for part in re.split(r"[^a-z0-9]+", name.lower()) if part]
    if _NOT_VERIFYING.intersection(parts) or (_CHANGING.intersection(parts) and not _LOOKING.intersection(parts)):
        return None
    if re.match(r"py\d+", parts[0] if parts else ""):
        return Purpose.TEST
    return next((purpose for purpose, known in _SCRIPTS if split_names(known).intersection(parts)), None)
