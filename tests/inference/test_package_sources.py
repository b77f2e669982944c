"""Manifests offer commands: each row is a small project with the expected commands and their places."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import dedent

import pytest

from pytest_loop.inference.command_candidate import CommandCandidate
from pytest_loop.inference.project_files import Project
from pytest_loop.inference.sources import find_manifest_candidates


def list_candidates(files: dict[str, str]) -> Iterator[CommandCandidate]:
    return find_manifest_candidates(Project.from_texts({name: dedent(text) for name, text in files.items()}))


def render_candidate(candidate: CommandCandidate) -> str:
    marks = ("?" if candidate.is_guess else "") + ("!" if candidate.is_trivial else "")
    return f"{marks}{candidate.purpose.value} {candidate.source}: {candidate.command}" + (
        f" in {candidate.folder}" if candidate.folder else ""
    )


POM = "<project>\n<artifactId>maven-checkstyle-plugin</artifactId>\n</project>"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (
            {"pyproject.toml": "[build-system]\n[tool.pytest.ini_options]\n[tool.ruff.lint]\nselect = ['D', 'E']\n[tool.mypy]\nfiles = 'src'\n[tool.coverage.run]\n"},
            ["test pyproject.toml:2: pytest", "coverage pyproject.toml:7: coverage run -m pytest && coverage report",
             "lint pyproject.toml:3: ruff check .", "types pyproject.toml:5: mypy", "docs pyproject.toml:3: ruff check --select D .",
             "?build pyproject.toml:1: python -m build"],
        ),
        (
            {"setup.cfg": "[tool:pytest]\n[flake8]\n[mypy]\n", "requirements-dev.txt": "pytest-cov\n"},
            ["test setup.cfg:1: pytest", "coverage requirements-dev.txt:1: pytest --cov=. --cov-report=term", "lint setup.cfg:2: flake8",
             "types setup.cfg:3: mypy .", "?docs requirements-dev.txt:1: interrogate ."],
        ),
        (
            {"pyproject.toml": "[project.optional-dependencies]\ndev = ['pytest>=8']\n[tool.interrogate]\n[tool.black]\n[tool.pyright]\n"},
            ["test pyproject.toml:2: pytest", "coverage pyproject.toml:2: pytest --cov=. --cov-report=term", "lint pyproject.toml:4: black --check .",
             "types pyproject.toml:5: pyright", "docs pyproject.toml:3: interrogate ."],
        ),
        (
            {"tests/test_a.py": "", "a.py": ""},
            ["test tests/test_a.py:1: pytest", "coverage tests/test_a.py:1: pytest --cov=. --cov-report=term", "?lint a.py:1: ruff check .",
             "?types a.py:1: mypy .", "?docs a.py:1: interrogate ."],
        ),
        (
            {"tests/conftest.py": "", "setup.py": ""},
            ["test tests/conftest.py:1: pytest", "coverage tests/conftest.py:1: pytest --cov=. --cov-report=term", "?lint setup.py:1: ruff check .",
             "?types setup.py:1: mypy .", "?docs setup.py:1: interrogate ."],
        ),
        (
            {"manage.py": ""},
            ["test manage.py:1: python manage.py test", "?lint manage.py:1: ruff check .", "?types manage.py:1: mypy .", "?docs manage.py:1: interrogate ."],
        ),
        (
            {"a.py": "", "ruff.toml": "", ".pre-commit-config.yaml": ""},
            ["?test a.py:1: pytest", "lint ruff.toml:1: ruff check .", "lint .pre-commit-config.yaml:1: pre-commit run --all-files",
             "?types a.py:1: mypy .", "?docs a.py:1: interrogate ."],
        ),
        (
            {"api/pyproject.toml": "[tool.poe.tasks]\ntest = 'pytest'\nfmt = 'black .'\nlint = 'true'\n[tool.pytest.ini_options]\n[tool.ruff]\n[tool.mypy]\n[tool.interrogate]\n", "api/x.py": ""},
            ["test api/pyproject.toml:5: pytest in api", "coverage api/pyproject.toml:5: pytest --cov=. --cov-report=term in api",
             "lint api/pyproject.toml:6: ruff check . in api", "types api/pyproject.toml:7: mypy . in api", "docs api/pyproject.toml:8: interrogate . in api",
             "test api/pyproject.toml:2: poe test in api", "!lint api/pyproject.toml:4: poe lint in api"],
        ),
        (
            {"package.json": '{\n"devDependencies": {\n"jest": "1",\n"typescript": "5"},\n"scripts": {\n"test": "jest",\n"test:unit": "jest unit",\n"start": "x",\n"lint": 3,\n"build": "tsc"}}'},
            ["test package.json:6: npm test", "test package.json:7: npm run test:unit", "build package.json:10: npm run build",
             "types package.json:4: npx tsc --noEmit", "?coverage package.json:1: npm test -- --coverage"],
        ),
        (
            {"package.json": '{"scripts": {"test": "echo \\"Error: no test specified\\" && exit 1"}, "devDependencies": {"vitest": "1"}}', "yarn.lock": ""},
            ["!test package.json:1: yarn test", "test package.json:1: npx vitest run"],
        ),
        ({"tsconfig.json": "{}"}, ["types tsconfig.json:1: npx tsc --noEmit"]),
        (
            {"package.json": '{"scripts": {"test": "jest"}}', "tsconfig.json": "{}"},
            ["test package.json:1: npm test", "types tsconfig.json:1: npx tsc --noEmit", "?coverage package.json:1: npm test -- --coverage"],
        ),
        ({"web/package.json": '{"packageManager": "pnpm@9", "scripts": {"lint": "eslint ."}}'}, ["lint web/package.json:1: pnpm run lint in web"]),
        (
            {"Cargo.toml": "[workspace]\n"},
            ["test Cargo.toml:1: cargo test --workspace", "build Cargo.toml:1: cargo build --workspace", "lint Cargo.toml:1: cargo clippy --workspace -- -D warnings",
             "types Cargo.toml:1: cargo check --workspace", "coverage Cargo.toml:1: cargo llvm-cov --workspace --summary-only", "docs Cargo.toml:1: cargo doc --workspace --no-deps"],
        ),
        (
            {"go.mod": "// x\nmodule a\n", ".golangci.yml": ""},
            ["test go.mod:2: go test ./...", "build go.mod:2: go build ./...", "lint .golangci.yml:1: golangci-lint run", "lint go.mod:2: go vet ./...",
             "types go.mod:2: go vet ./...", "coverage go.mod:2: go test -coverprofile=cover.out ./... && go tool cover -func=cover.out"],
        ),
        (
            {"pom.xml": POM, "mvnw": ""},
            ["test pom.xml:1: ./mvnw -q test", "build pom.xml:1: ./mvnw -q -DskipTests package", "lint pom.xml:2: ./mvnw -q checkstyle:check", "types pom.xml:1: ./mvnw -q compile"],
        ),
        (
            {"build.gradle.kts": "plugins {\n id(\"spotless\")\n}", "gradlew": ""},
            ["test build.gradle.kts:1: ./gradlew test", "build build.gradle.kts:1: ./gradlew assemble", "lint build.gradle.kts:2: ./gradlew spotlessCheck",
             "types build.gradle.kts:1: ./gradlew classes"],
        ),
        ({"Gemfile": "gem 'rspec'\ngem 'rubocop'\n"}, ["test Gemfile:1: bundle exec rspec", "lint Gemfile:2: bundle exec rubocop"]),
        ({"Gemfile": "gem 'minitest'\n"}, ["test Gemfile:1: bundle exec rake test"]),
        (
            {"Makefile": "\n.PHONY: test\nX := 1\ntest check: build\n\tpytest\n\nlint:\n\t@echo no\n\n# x\nbuild:\n\n\t-$(CC) x\ndeploy:\n\tscp\n"},
            ["test Makefile:4: make test", "test Makefile:4: make check", "!lint Makefile:7: make lint", "build Makefile:11: make build"],
        ),
        ({"justfile": "\nx := 'y'\ntest *args:\n    pytest {{args}}\n@lint: test\n"}, ["test justfile:3: just test", "lint justfile:5: just lint"]),
        (
            {"mise.toml": "[tasks.test]\nrun = ['true']\n[tasks]\nlint = 'eslint .'\nserve = 'x'\n"},
            ["!test mise.toml:1: mise run test", "lint mise.toml:4: mise run lint"],
        ),
        (
            {"noxfile.py": "import nox\n@nox.session\ndef tests(session): ...\n@nox.session(name='lint')\n@x\ndef style(session): ...\n@nox.session\ndef shell(session): ...\n", "README": ""},
            ["test noxfile.py:2: nox -s tests", "lint noxfile.py:4: nox -s lint"],
        ),
        (
            {"go.mod": "module a\n"},
            ["test go.mod:1: go test ./...", "build go.mod:1: go build ./...", "lint go.mod:1: go vet ./...", "types go.mod:1: go vet ./...",
             "coverage go.mod:1: go test -coverprofile=cover.out ./... && go tool cover -func=cover.out"],
        ),
        ({"README.md": ""}, []),
    ],
)  # fmt: skip
def test_manifests_offer_commands(files: dict[str, str], expected: list[str]) -> None:
    python_guesses = {"noxfile.py"} & set(files)
    rendered = [
        render_candidate(candidate)
        for candidate in list_candidates(files)
        if not (python_guesses and candidate.family == "python")
    ]
    assert rendered == expected


def test_a_tox_file_may_configure_only_pytest() -> None:
    assert [
        render_candidate(candidate)
        for candidate in list_candidates({"tox.ini": "[pytest]\n"})
        if not candidate.is_guess
    ] == ["test tox.ini:1: pytest", "coverage tox.ini:1: pytest --cov=. --cov-report=term"]


def test_tox_offers_its_environments() -> None:
    files = {"tox.ini": "[tox]\nenvlist = py\n[testenv]\n[testenv:lint]\n[testenv:shell]\n[pytest]\n"}
    rendered = [render_candidate(candidate) for candidate in list_candidates(files) if not candidate.is_guess]
    assert rendered == [
        "test tox.ini:6: pytest",
        "coverage tox.ini:6: pytest --cov=. --cov-report=term",
        "test tox.ini:1: tox",
        "lint tox.ini:4: tox -e lint",
    ]
