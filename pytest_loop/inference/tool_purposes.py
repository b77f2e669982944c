"""Tables of verification tools and script names, with the purpose of each."""

from __future__ import annotations

import re
from enum import Enum


def split_names(text: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(text.split())


class Purpose(str, Enum):
    """The purpose of a command that verifies something."""

    TEST = "test"
    COVERAGE = "coverage"
    TYPES = "types"
    LINT = "lint"
    BUILD = "build"
    DOCS = "docs"


# Tools with one purpose, whatever their arguments are.
TOOLS = {
    name: purpose
    for purpose, tools in {
        Purpose.TEST: "pytest unittest nose2 trial jest vitest mocha ava tap jasmine karma rspec minitest phpunit pest "
        "ctest bats",
        Purpose.COVERAGE: "nyc c8",
        Purpose.TYPES: "mypy pyright basedpyright pytype vue-tsc svelte-check srb",
        Purpose.LINT: "flake8 pylint eslint stylelint xo oxlint golangci-lint staticcheck rubocop standardrb "
        "shellcheck hadolint markdownlint markdownlint-cli2 yamllint actionlint ktlint detekt lint-imports codespell "
        "pre-commit",
        Purpose.BUILD: "webpack rollup",
        Purpose.DOCS: "interrogate pydocstyle docstr-coverage sphinx-build lychee vale",
    }.items()
    for name in tools.split()
}

# Tools whose first argument gives the purpose.
_SUBCOMMANDS = {
    Purpose.TEST: "bazel:test bun:test cargo:nextest cargo:test cypress:run deno:test dotnet:test go:test hatch:test "
    "manage.py:test mix:test playwright:test rails:test setup.py:test swift:test",
    Purpose.COVERAGE: "cargo:llvm-cov cargo:tarpaulin coverage:report coverage:run",
    Purpose.TYPES: "cargo:check deno:check flow:check ty:check",
    Purpose.LINT: "biome:check biome:ci biome:lint cargo:clippy deno:lint go:vet next:lint",
    Purpose.BUILD: "bazel:build build: cargo:build dotnet:build go:build next:build swift:build vite:build",
    Purpose.DOCS: "cargo:doc mkdocs:build",
}
SUBCOMMANDS: dict[tuple[str, str], Purpose] = {
    (tool, argument): purpose
    for purpose, pairs in _SUBCOMMANDS.items()
    for tool, _, argument in (pair.partition(":") for pair in pairs.split())
}

# Programs that work on one language, for commands that no manifest names.
LANGUAGES = {
    program: language
    for language, programs in {
        "python": "pytest unittest nose2 trial mypy pyright basedpyright pytype ruff flake8 pylint black isort tox nox "
        "coverage interrogate pydocstyle docstr-coverage manage.py setup.py",
        "node": "npm pnpm yarn bun deno node jest vitest mocha ava tap jasmine karma eslint prettier stylelint xo "
        "oxlint tsc vue-tsc svelte-check biome nyc c8 next vite webpack rollup cypress playwright",
        "rust": "cargo",
        "go": "go gofmt golangci-lint staticcheck",
        "java": "mvn gradle ktlint detekt",
        "ruby": "rspec rake rubocop standardrb minitest rails srb",
    }.items()
    for program in programs.split()
}

# Formatters that verify only with one of these flags.
CHECK_FLAGS: dict[str, frozenset[str]] = {
    "black": split_names("--check"),
    "isort": split_names("--check --check-only -c"),
    "prettier": split_names("--check -c --list-different -l"),
    "gofmt": split_names("-l -d"),
    "cargo fmt": split_names("--check"),
    "ruff format": split_names("--check --diff"),
}

# Goals of Maven and tasks of Gradle, the strongest first.
LIFECYCLE_PATTERNS: tuple[tuple[re.Pattern[str], Purpose], ...] = (
    (re.compile(r"jacoco\w*"), Purpose.COVERAGE),
    (re.compile(r".*(?:checkstyle|spotless|ktlint|detekt|pmd|spotbugs|lint)\w*(?::check)?.*"), Purpose.LINT),
    (re.compile(r"(?:.*:)?(?:test\w*|check|verify|integration-?test\w*|build)"), Purpose.TEST),
    (re.compile(r"(?:.*:)?(?:compile\w*|package|assemble|classes|install)"), Purpose.BUILD),
)

# Parts of the names of scripts, targets, recipes, sessions and environments, the most specific purpose first.
_SCRIPT_NAMES = {
    Purpose.COVERAGE: split_names("coverage cov codecov"),
    Purpose.DOCS: split_names("docs doc docstrings docstring"),
    Purpose.TYPES: split_names("typecheck typechecks types type mypy pyright tsc typing"),
    Purpose.LINT: split_names(
        "lint linting linters eslint style fmt format formatting prettier ruff flake8 clippy rubocop stylelint"
    ),
    Purpose.TEST: split_names(
        "test tests unit spec specs integration e2e unittest unittests pytest jest check verify validate ci"
    ),
    Purpose.BUILD: split_names("build compile dist bundle all"),
}
_UNRELATED_WORDS = split_names(
    "watch fix dev serve start deploy release publish update install clean write snapshot bench benchmark debug ui "
    "open upload html setup prepare image docker push"
)
# A formatting script changes files unless its name also has one of the words below.
_FORMATTING_WORDS = split_names("fmt format formatting prettier")
_CHECKING_WORDS = split_names("check verify ci lint")


def classify_script(name: str) -> Purpose | None:
    """Return the purpose of a script by its name (`test:unit`, `type-check`), or None if it verifies nothing."""
    parts = re.findall(r"[a-z0-9]+", name.lower())
    if _UNRELATED_WORDS.intersection(parts) or (
        _FORMATTING_WORDS.intersection(parts) and not _CHECKING_WORDS.intersection(parts)
    ):
        return None
    if parts and re.match(r"py\d+", parts[0]):
        return Purpose.TEST
    return next((purpose for purpose, names in _SCRIPT_NAMES.items() if names.intersection(parts)), None)
