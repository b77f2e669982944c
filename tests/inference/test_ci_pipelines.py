"""CI files give the commands that verify a change."""

from __future__ import annotations

from textwrap import dedent
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_loop.inference.project_files import Project
from pytest_loop.inference.sources.ci_pipelines import expand_matrix, find_ci_candidates


def list_commands(**files: str) -> list[str]:
    paths = {
        "github": ".github/workflows/ci.yml", "gitea": ".gitea/workflows/ci.yaml", "release": ".github/workflows/release.yml",
        "gitlab": ".gitlab-ci.yml", "circle": ".circleci/config.yml", "jenkins": "Jenkinsfile",
    }  # fmt: skip
    project = Project.from_texts({paths[name]: dedent(text).lstrip("\n") for name, text in files.items()})
    return [
        f"{'!' if candidate.is_trivial else ''}{candidate.source.line}: {candidate.command}"
        + (f" in {candidate.folder}" if candidate.folder else "")
        for candidate in find_ci_candidates(project)
    ]


GITHUB = """
name: CI
on: [push]
jobs:
  test:
    strategy: {matrix: {python: ["3.10", "3.11"], include: [{suite: unit}, 3]}}
    steps:
      - uses: actions/checkout@v4
      - uses: pre-commit/action@v3
      - run: pip install -e .
      - run: python${{ matrix.python }} -m pytest -q
      - run: |
          npm ci
          cd web && npm run test:${{ matrix.suite }}
          eslint .
      - run: tox -e py${{ matrix.python }}
        working-directory: sub
      - {run: mypy, continue-on-error: true}
      - nonsense
  web:
    defaults: {run: {working-directory: app}}
    strategy: {matrix: {task: [lint, build]}}
    steps:
      - run: npm run ${{ matrix.task }}
  deploy:
    steps: [{run: pytest tests/live}]
  prod:
    environment: prod
    steps: [{run: pytest tests/prod}]
  empty: {steps: 3}
  none: 3
"""


def test_github_workflows_are_read() -> None:
    assert list_commands(github=GITHUB) == [
        "8: pre-commit run --all-files",
        "10: python -m pytest -q",
        "13: npm run test:unit in web",
        "14: eslint . in web",
        "15: tox in sub",
        "!17: mypy",
        "23: npm run lint in app",
        "23: npm run build in app",
    ]


def test_gitea_workflows_are_read_like_github_workflows() -> None:
    assert list_commands(gitea="jobs: {t: {steps: [{run: cargo test}]}}") == ["1: cargo test"]


def test_a_release_workflow_counts_only_without_other_workflows() -> None:
    release = "name: ship it\njobs: {check: {steps: [{run: make test}]}}"
    assert list_commands(release=release) == ["2: make test"]
    assert list_commands(release=release, github="jobs: {t: {steps: [{run: pytest}]}}") == ["1: pytest"]
    assert list_commands(github="name: Deploy\njobs: {t: {steps: [{run: pytest}]}}") == []


def test_gitlab_jobs_are_read() -> None:
    text = """
    stages: [test, deploy]
    default: {script: [mypy]}
    .base:
      script:
        - pytest tests/base
    unit:
      extends: .base
    lint:
      script: ruff check .
      allow_failure: true
    many:
      parallel: {matrix: [{TOXENV: [py310, py311]}]}
      script:
        - [tox -e $TOXENV, "make build"]
    ship:
      stage: deploy
      script: [pytest tests/live]
    nothing:
      needs: [unit]
    """
    assert list_commands(gitlab=text) == ["5: pytest tests/base", "!9: ruff check .", "14: tox", "14: make build"]


def test_circleci_jobs_are_read() -> None:
    text = """
    jobs:
      build:
        working_directory: ~/repo
        steps:
          - checkout
          - run: yarn test
          - run: {name: lint, command: "yarn lint << parameters.flags >>", working_directory: web}
          - run: {name: types, command: yarn typecheck, working_directory: repo}
      publish: {steps: [run: npm test]}
      odd: {steps: 1}
    """
    assert list_commands(circle=text) == ["6: yarn test", "7: yarn lint in web", "8: yarn typecheck"]


def test_jenkins_stages_are_read() -> None:
    text = """
    stage('Test') { steps {
        sh 'mvn -B verify'
        dir("web") { sh(script: "npm test") }
        sh '''
            go vet ./...
            go test ./...
        '''
    } }
    stage("Deploy") { steps { sh 'make test' } }
    """
    assert list_commands(jenkins=text) == [
        "2: mvn -B verify",
        "3: npm test in web",
        "5: go vet ./...",
        "6: go test ./...",
    ]
    assert list_commands(jenkins="sh 'pytest'") == ["1: pytest"]


def test_a_repeated_step_is_read_once() -> None:
    text = "jobs: {a: {steps: [{run: pytest}]}, b: {steps: [{run: pytest}]}}"
    assert list_commands(github=text) == ["1: pytest"]


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("pytest <args>", ["pytest"]),
        ("pytest -n <n> tests", ["pytest tests"]),
        ("pytest --cov=<x>", ["pytest"]),
        ("make test PY=<py>", ["make test"]),
        ("make <task>", ["make a", "make b"]),
        ("make '<task>' -j", ["make a -j", "make b -j"]),
        ("run-<task>", ["run-"]),
        ("npm run test:<task>", ["npm run test:a"]),
        ("npm run test:<odd>", [r"npm run test:\d"]),
        ("pytest '-k a' <n>", ["pytest '-k a'"]),
        ("npm run test:<unknown>", []),
        ("<x>", []),
        ("say \"it", ['say " it']),
    ],
)  # fmt: skip
def test_a_matrix_becomes_local_commands(command: str, expected: list[str]) -> None:
    marked = command.replace("<", "\ue000").replace(">", "\ue001")
    assert expand_matrix(marked, {"task": ["a", "b"], "odd": [r"\d"]}) == expected


def test_the_number_of_commands_of_a_matrix_is_limited() -> None:
    assert len(expand_matrix("make" + " \ue000a\ue001 make" * 5, {"a": [str(number) for number in range(99)]})) <= 400


_ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(
        ["jobs", "test", "steps", "run", "uses", "strategy", "matrix", "include", "script", "extends", "parallel", "defaults", "name"]), inner, max_size=4),
    max_leaves=15,
)  # fmt: skip


@settings(deadline=None)
@given(_ANY)
def test_any_data_can_be_read_as_ci(data: Any) -> None:
    paths = (".github/workflows/a.yml", ".gitlab-ci.yml", ".circleci/config.yml")
    project = Project(frozenset(paths), dict.fromkeys(paths, ""), dict.fromkeys(paths, data))
    assert isinstance(list(find_ci_candidates(project)), list)
