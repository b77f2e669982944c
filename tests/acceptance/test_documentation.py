"""The examples in the documentation work, and its tables are complete."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_loop.inference.document_types import DOCUMENT_TYPES
from pytest_loop.rules.checks.registry import BUILT_IN_KINDS, COMPOSITE_KINDS
from pytest_loop.rules.rule_files import load_rule_file

ROOT = Path(__file__).parents[2]
RULES = (ROOT / "docs/rules.md").read_text(encoding="utf-8")


def find_blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", RULES, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("text", find_blocks("yaml"))
def test_rule_file_examples_load(tmp_path: Path, text: str) -> None:
    (tmp_path / "it.rules.yaml").write_text(text)
    assert load_rule_file(tmp_path / "it.rules.yaml", tmp_path).rules


def test_mark_example_works(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("import pytest\n" + find_blocks("python")[0])
    result = pytester.runpytest()
    result.stdout.fnmatch_lines(["tests  PASS  1 (2 of 2) *"])


def test_custom_check_example_works(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(find_blocks("python")[1])
    (pytester.path / "doc.md").write_text("fine\n\tbad\n")
    (pytester.path / "it.rules.yaml").write_text(
        "artifact: doc.md\nrules: [{id: a.x.y, description: x, check: {no_tabs: true}}]"
    )
    pytester.runpytest().stdout.fnmatch_lines(["doc.md:2: expected spaces, found a tab"])


def test_names_of_documents_are_in_the_table() -> None:
    text = (ROOT / "docs/documents.md").read_text(encoding="utf-8")
    rows = [f"| `{template}` | `{kind.default}` |" for template, kind in DOCUMENT_TYPES.items()]
    assert [row for row in rows if row not in text] == []


def test_every_kind_of_check_is_in_the_table() -> None:
    table = RULES[RULES.index("## Checks") : RULES.index("## Python tests")]
    assert [kind for kind in [*BUILT_IN_KINDS, *COMPOSITE_KINDS] if f"`{kind}: " not in table] == []
