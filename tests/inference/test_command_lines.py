"""Command lines have a purpose and a normal form, and scripts are split into steps."""

from __future__ import annotations

import pytest

from pytest_loop.inference.command_lines import (
    classify_command,
    is_part_of,
    list_requirements,
    normalize_command,
    strip_wrappers,
)
from pytest_loop.inference.shell_script import (
    ScriptCommand,
    is_trivial,
    needs_shell,
    resolve_folder,
    split_steps,
    split_words,
)
from pytest_loop.inference.tool_purposes import Purpose, classify_script

TEST, COVERAGE, TYPES, LINT, BUILD, DOCS = Purpose


@pytest.mark.parametrize(
    ("command", "purpose"),
    [
        ("pytest -q", TEST),
        ("uv run --python 3.12 --frozen pytest", TEST),
        ("CI=1 npx --yes jest", TEST),
        (".venv/bin/pytest tests", TEST),
        ("python manage.py test", TEST),
        ("npm t", TEST),
        ("npm run test:unit", TEST),
        ("yarn test --ci", TEST),
        ("make check", TEST),
        ("tox", TEST),
        ("tox -e py311,lint", TEST),
        ("nox -s tests", TEST),
        ("./gradlew test", TEST),
        ("mvn -B verify", TEST),
        ("./scripts/run-tests.sh", TEST),
        ("bash scripts/test.sh --all", TEST),
        ("hatch run test", TEST),
        ("coverage report", COVERAGE),
        ("npm run test:coverage", COVERAGE),
        ("mvn jacoco:report", None),
        ("gradle jacocoTestReport", COVERAGE),
        ("mypy src", TYPES),
        ("npx tsc --noEmit", TYPES),
        ("tsc -p .", BUILD),
        ("npm run type-check", TYPES),
        ("tox -e mypy", TYPES),
        ("ruff check .", LINT),
        ("ruff check --select D src", DOCS),
        ("ruff format --check .", LINT),
        ("black --check .", LINT),
        ("cargo fmt -- --check", LINT),
        ("npm run format:check", LINT),
        ("gradle spotlessCheck", LINT),
        ("cargo build --release", BUILD),
        ("python -m build", BUILD),
        ("make", BUILD),
        ("mvn -DskipTests package", BUILD),
        ("interrogate src", DOCS),
        ("ruff format .", None),
        ("ruff clean", None),
        ("black .", None),
        ("eslint --fix .", None),
        ("npm run format", None),
        ("npm run test:watch", None),
        ("npm ci", None),
        ("yarn", None),
        ("pip install -e .", None),
        ("terraform apply", None),
        ("hatch run serve", None),
        ("mvn clean", None),
        ("", None),
        ("A=1", None),
        ("python", None),
    ],
)
def test_a_command_has_a_purpose(command: str, purpose: Purpose | None) -> None:
    assert classify_command(command) is purpose


@pytest.mark.parametrize(
    ("name", "purpose"),
    [("py311", TEST), ("unit_tests", TEST), ("CI", TEST), ("docs", DOCS), ("fmt", None), ("lint-fix", None), ("", None), ("zap", None)],
)  # fmt: skip
def test_the_name_of_a_script_tells_its_purpose(name: str, purpose: Purpose | None) -> None:
    assert classify_script(name) is purpose


@pytest.mark.parametrize(
    ("command", "other"),
    [
        ("pytest", "pytest -q"),
        ("pytest", "python -m pytest -vv --color=yes --tb short ."),
        ("pytest", "uv run pytest -n auto --cov=src --cov-report term"),
        ("pytest tests/unit", "poetry run pytest tests/unit/ -ra"),
        ("npm test", "yarn run test"),
        ("npm test", "npm t -- --ci"),
        ("npx eslint .", "./node_modules/.bin/eslint"),
        ("./gradlew test --no-daemon", "gradle test"),
        ("bundle exec rspec", "rspec"),
    ],
)
def test_equivalent_commands_have_the_same_normal_form(command: str, other: str) -> None:
    assert normalize_command(command) == normalize_command(other)


@pytest.mark.parametrize(
    ("command", "other"),
    [("pytest", "pytest tests/unit"), ("npm test", "make test"), ("pytest -k a", "pytest -k b"), ("go test ./...", "go vet ./...")],
)  # fmt: skip
def test_different_commands_have_different_normal_forms(command: str, other: str) -> None:
    assert normalize_command(command) != normalize_command(other)


def test_a_target_may_stand_for_the_whole_suite() -> None:
    assert normalize_command("pytest tests/", ("tests",)) == normalize_command("pytest")


def test_a_command_may_be_a_part_of_another() -> None:
    assert is_part_of(normalize_command("npm run test:unit"), normalize_command("npm test"))
    assert is_part_of(normalize_command("pytest tests/unit"), normalize_command("pytest"))
    assert not is_part_of(normalize_command("pytest"), normalize_command("pytest"))
    assert not is_part_of(normalize_command("make test"), normalize_command("npm test"))


def test_words_are_split_like_in_a_shell() -> None:
    assert split_words("pytest -k 'a b'") == ["pytest", "-k", "a b"]
    assert split_words("echo 'open") == ["echo", "'open"]
    assert strip_wrappers("") == []


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("A=1 uv run pytest", ["uv"]),
        ("npx tsc --noEmit", ["npx"]),
        ("env -i A=1 nosuchtool .", ["env", "nosuchtool"]),
        ("python -m nosuchtool .", ["python", "python -m nosuchtool"]),
        ("python tools/verify.py", ["python"]),
        ("python -m", ["python"]),
        ("pytest --cov=shop", ["pytest", "pytest-cov"]),
        ("python3 -m pytest --cov", ["python3", "python -m pytest", "pytest-cov"]),
        ("pytest -q", ["pytest"]),
        ("", []),
    ],
)
def test_a_command_lists_its_requirements(command: str, expected: list[str]) -> None:
    assert list(list_requirements(command)) == expected


@pytest.mark.parametrize(
    ("command", "expected"),
    [("pytest -q", False), ("a && b", True), ("A=1 pytest", True), ("echo $HOME", True), ("ls *.py", True)],
)
def test_shell_syntax_needs_a_shell(command: str, expected: bool) -> None:
    assert needs_shell(command) is expected


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ('echo "Error: no test specified" && exit 1', True),
        ("true", True),
        ("exit 0", True),
        ("npm test || true", True),
        ("pytest || exit 0", True),
        ("", True),
        ("pytest || npm test", False),
        ("echo testing && pytest", False),
    ],
)
def test_a_command_with_a_fixed_result_is_trivial(command: str, expected: bool) -> None:
    assert is_trivial(command) is expected


def test_a_script_is_split_into_steps() -> None:
    script = """
    # comes first
    set -e
    export A=1
    B=2
    cd web && npm ci; npm test 2>&1 | tee log   # all of them
    cd
    $ pytest -q \\
        tests/unit
    (cd ../api && go test ./...)
    if true; then
    echo "a; b" && make lint || true
    python -c "import x; print(x)" \\"""
    assert list(split_steps(script)) == [
        ScriptCommand("npm ci", "web", 5),
        ScriptCommand("npm test", "web", 5),
        ScriptCommand("pytest -q tests/unit", "", 7),
        ScriptCommand("go test ./...", "api", 9),
        ScriptCommand('echo "a; b"', "api", 11, is_trivial=True),
        ScriptCommand("make lint", "api", 11, is_trivial=True),
        ScriptCommand('python -c "import x; print(x)"', "api", 12),
    ]


def test_overlong_lines_are_skipped() -> None:
    assert list(split_steps(f"pytest {'x' * 2_000}\npytest -q\\\n{'x' * 2_000}\nmypy")) == [
        ScriptCommand("mypy", "", 3)
    ]


@pytest.mark.parametrize(
    ("folder", "name", "expected"),
    [("", "web", "web"), ("web", "./src", "web/src"), ("web", "..", ""), ("", "..", ""), ("a", "/b", "b"), ("a/b", "../c", "a/c")],
)  # fmt: skip
def test_folders_are_resolved_inside_the_project(folder: str, name: str, expected: str) -> None:
    assert resolve_folder(folder, name) == expected
