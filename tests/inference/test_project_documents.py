"""Documents name commands, and Markdown is read as blocks."""

from __future__ import annotations

import re
from textwrap import dedent

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_loop.inference.command_candidate import Layer, SourceLine
from pytest_loop.inference.markdown_blocks import BlockKind, find_list_items, find_table_rows, parse_blocks
from pytest_loop.inference.project_files import Project
from pytest_loop.inference.sources.project_documents import (
    UseCase,
    find_agent_file_candidates,
    find_ci_demand,
    find_markdown_commands,
    find_record_candidates,
    find_use_cases,
)

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


def test_a_document_names_the_commands_that_verify_a_change() -> None:
    candidates = find_markdown_commands("A.md", AGENTS, Layer.AGENT_FILES)
    assert [
        (candidate.source.line, candidate.command, candidate.folder, candidate.is_trivial) for candidate in candidates
    ] == [
        (3, "pytest -q", "", False),
        (9, "ruff check .", "", False),
        (12, "npm run lint", "web", True),
        (19, "./gate", "", False),
        (31, "mypy src", "", False),
    ]


def test_blocks_have_the_headings_above_them() -> None:
    blocks = parse_blocks("# A\n## B #\nx\n# C\ny\n```sh\nz\n```\n<p>\nw\n")
    assert [(block.kind, block.line, block.text, block.headings, block.language) for block in blocks] == [
        (BlockKind.TEXT, 3, "x", ("A", "B"), ""),
        (BlockKind.TEXT, 5, "y", ("C",), ""),
        (BlockKind.CODE, 7, "z", ("C",), "sh"),
        (BlockKind.TEXT, 9, "<p>\nw\n", ("C",), ""),
    ]


def test_front_matter_is_skipped_and_counts_as_lines() -> None:
    (block,) = parse_blocks("---\ndescription: releases\n---\nx\n")
    assert (block.line, block.text, block.headings) == (4, "x", ())


def test_list_items_are_read_below_a_heading() -> None:
    text = "## Done when\n- [ ] a\n  and more\n\n  not this\n1. b\n- \n```\n- c\n```\n## Else\n- d\n"
    items = find_list_items(text, re.compile("Done"))
    assert [(item.line, item.text) for item in items] == [(2, "a and more"), (6, "b")]


def test_table_rows_are_read_outside_of_fences() -> None:
    text = "| a | b |\n|---|:-:|\n| c | `d` |\n```\n| x |\n```\n"
    assert list(find_table_rows(text)) == [("a", "b"), ("c", "`d`")]


def test_files_for_agents_apply_to_their_folders() -> None:
    project = Project.from_texts({"AGENTS.md": "use `pytest -q`", "api/CLAUDE.md": "```\ngo test ./...\n```"})
    candidates = find_agent_file_candidates(project)
    assert [
        (candidate.command, candidate.folder, str(candidate.source), candidate.layer) for candidate in candidates
    ] == [
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
def test_a_demand_for_ci_is_found_in_text(text: str, line: int | None) -> None:
    assert find_ci_demand(Project.from_texts({"CLAUDE.md": text})) == (SourceLine("CLAUDE.md", line) if line else None)


def test_use_cases_are_found_by_their_ids() -> None:
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
        UseCase("UC-004", SourceLine(path), (("a user can log in", SourceLine(path, 3)), ("a wrong password is refused", SourceLine(path, 4))))
    ]  # fmt: skip


def test_records_name_commands() -> None:
    project = Project.from_texts(
        {".aiwg/testing/test-strategy.md": "gate: `tox -e lint`", ".aiwg/other.md": "`pytest -q`"}
    )
    assert [(candidate.command, candidate.layer) for candidate in find_record_candidates(project)] == [
        ("tox -e lint", Layer.RECORDS)
    ]


@settings(deadline=None)
@given(
    st.lists(
        st.sampled_from(["# a\n", "```", "```sh", "\n", "`pytest -q`", "- x", "| a |", "  ", "pytest", "~~~"])
    ).map("".join)
)
def test_every_text_can_be_read(text: str) -> None:
    assert isinstance(find_markdown_commands("A.md", text, Layer.AGENT_FILES), list)
    assert isinstance(list(find_list_items(text, re.compile("a"))), list)
    assert isinstance(list(find_table_rows(text)), list)
