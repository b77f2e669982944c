"""Texts for agents: what they say verifies a change, and what they only show."""

from __future__ import annotations

import re
from textwrap import dedent

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_loop.inference.command_candidate import Layer, Source
from pytest_loop.inference.markdown_commands import commands, items, lines, rows
from pytest_loop.inference.project_files import Project
from pytest_loop.inference.sources import agent_files, project_records
from pytest_loop.inference.sources.project_records import UseCase, find_use_cases

AGENTS = """\
# Shop

Run `pytest -q` before you commit; never run `npm test`.

## Development

```bash
$ uv sync
ruff check .            # lint
pytest tests/test_a.py  # a single test file
pytest path/to/test.py
cd web && npm run lint || true
```

```python
pytest.main()
```

Not done until `./gate` passes. To run one test, use `go test`.

### Deployment

    make test

~~~
make test
~~~

## More

- `mypy src` and `ruff check .`
- the `total` of `cart.py`, and `make deploy`
```
never closed
make lint
"""


def test_commands_that_a_text_means() -> None:
    assert [(one.line, one.command, one.folder, one.is_trivial) for one in commands(AGENTS)] == [
        (3, "pytest -q", "", False),
        (9, "ruff check .", "", False),
        (12, "npm run lint", "web", True),
        (19, "./gate", "", False),
        (31, "mypy src", "", False),
    ]


def test_lines_know_their_headings() -> None:
    found = list(lines("# A\n## B #\nx\n# C\ny\n```sh\nz\n```\n"))
    assert [(one.number, one.text, one.titles, one.language) for one in found] == [
        (3, "x", ("A", "B"), None),
        (5, "y", ("C",), None),
        (7, "z", ("C",), "sh"),
        (9, "", ("C",), None),
    ]


def test_entries_of_lists() -> None:
    text = "## Done when\n- [ ] a\n  and more\n\n  not this\n1. b\n- \n```\n- c\n```\n## Else\n- d\n"
    assert [(one.number, one.text) for one in items(text, re.compile("Done"))] == [(2, "a and more"), (6, "b")]


def test_rows_of_tables() -> None:
    assert list(rows("| a | b |\n|---|:-:|\n| c | `d` |\n```\n| x |\n```\n")) == [["a", "b"], ["c", "`d`"]]


def test_files_for_agents_speak_for_their_folders() -> None:
    project = Project.from_texts({"AGENTS.md": "use `pytest -q`", "api/CLAUDE.md": "```\ngo test ./...\n```"})
    found = [(one.command, one.folder, str(one.source), one.layer) for one in agent_files.find_candidates(project)]
    assert found == [
        ("pytest -q", "", "AGENTS.md:1", Layer.AGENT_FILES),
        ("go test ./...", "api", "api/CLAUDE.md:2", Layer.AGENT_FILES),
    ]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("x\nWork is not done until CI passes.", 2),
        ("CI must be green", 1),
        ("Merge only when the pipeline is green", 1),
        ("```\nnot done until CI passes\n```", None),
        ("CI runs nightly", None),
    ],
)
def test_a_demand_for_ci(text: str, line: int | None) -> None:
    assert agent_files.find_ci_demand(Project.from_texts({"CLAUDE.md": text})) == (
        Source("CLAUDE.md", line) if line else None
    )


def test_use_cases_by_their_ids() -> None:
    project = Project.from_texts(
        {
            ".aiwg/requirements/UC-004-login.md": dedent("""\
                # UC-004
                ## Acceptance Criteria
                1. a user can log in
                2. a wrong password is refused
                """),
            ".aiwg/requirements/UC-0041.md": "## Acceptance criteria\n- other\n",
            ".aiwg/requirements/UC-005.md": "nothing",
        }
    )
    path = ".aiwg/requirements/UC-004-login.md"
    assert find_use_cases(project, "implement uc-004 and UC-005 and UC-9") == [
        UseCase("UC-004", Source(path), (("a user can log in", Source(path, 3)), ("a wrong password is refused", Source(path, 4))))
    ]  # fmt: skip


def test_commands_in_records() -> None:
    project = Project.from_texts(
        {".aiwg/testing/test-strategy.md": "gate: `tox -e lint`", ".aiwg/other.md": "`pytest -q`"}
    )
    assert [(one.command, one.layer) for one in project_records.find_candidates(project)] == [
        ("tox -e lint", Layer.RECORDS)
    ]


@settings(deadline=None)
@given(
    st.lists(
        st.sampled_from(["# a\n", "```", "```sh", "\n", "`pytest -q`", "- x", "| a |", "  ", "pytest", "~~~"])
    ).map("".join)
)
def test_any_text_can_be_read(text: str) -> None:
    assert isinstance(commands(text), list)
    assert isinstance(items(text, re.compile("a")), list)
    assert isinstance(list(rows(text)), list)
