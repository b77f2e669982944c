"""Functions of the docs template."""

from __future__ import annotations

import doctest
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from textwrap import dedent

from pytest_loop.rules.document import Document, find_syntax_error
from pytest_loop.rules.markdown_document import FencedBlock, MarkdownDocument, Section
from pytest_loop.rules.templates.artifact_reader import fail_with, read_document

FORMATS_BY_LANGUAGE = {
    **dict.fromkeys(("python", "py", "python3", "pycon"), "python"),
    **dict.fromkeys(("yaml", "yml"), "yaml"),
    "json": "json",
    "toml": "toml",
    "xml": "xml",
}
_PLACEHOLDER = re.compile(r"\W*(todo|tbd|fixme|coming soon|to be (written|done))\W*", re.IGNORECASE)


def check_sections(artifact: Path, workspace: Path) -> None:
    """Fail unless there are headings, and no section is empty."""
    document = read_document(artifact, workspace)
    fail_with(
        f"{document.line(section.line)}: expected text in the section {section.title!r}, found none"
        for section in _get_sections(document)
        if not section.word_count or _PLACEHOLDER.fullmatch(section.text)
    )


def _get_sections(document: Document) -> tuple[Section, ...]:
    if not document.markdown.sections:
        raise AssertionError(f"{document.line(1)}: expected headings, found none")
    return document.markdown.sections


def check_examples(artifact: Path, workspace: Path) -> None:
    """Fail unless there are fenced examples, all closed and not empty, and those of a known language parse."""
    document = read_document(artifact, workspace)
    blocks = document.markdown.blocks
    if not blocks:
        raise AssertionError(f"{document.line(1)}: expected a fenced example, found none")
    fail_with(problem for block in blocks if (problem := _find_problem(document, block)))


def _find_problem(document: Document, block: FencedBlock) -> str | None:
    if not block.is_closed:
        return f"{document.line(block.line - 1)}: expected a closing fence, found the end of the text"
    if not block.text.strip():
        return f"{document.line(block.line - 1)}: expected an example, found an empty block"
    format_name = FORMATS_BY_LANGUAGE.get(block.language)
    if format_name is None:
        return None
    for offset, text in _split_example(block.text, format_name):
        error = find_syntax_error(text, format_name)
        # An example may be part of a function, such as a lone `return`.
        if error and not (format_name == "python" and "outside" in error.found):
            return f"{document.line(block.line + offset + error.line - 1)}: {error}"
    return None


def _split_example(text: str, format_name: str) -> list[tuple[int, str]]:
    """Return each text that must parse, with its offset in lines: the inputs of a Python session, or the whole."""
    if format_name == "python" and text.lstrip().startswith(">>>"):
        with suppress(ValueError):  # misaligned prompts: parse the whole text
            return [(example.lineno, example.source) for example in doctest.DocTestParser().get_examples(text)]
    return [(0, text if format_name == "yaml" else dedent(text))]


def check_hierarchy(artifact: Path, workspace: Path) -> None:
    """Fail if a level of headings is skipped."""
    document = read_document(artifact, workspace)
    # A title may stand in the front matter or in HTML, so the first heading may be of level 2.
    level = 1
    problems = []
    for section in _get_sections(document):
        if section.level > level + 1:
            expected = f"{section.title!r} at level {level + 1} or above"
            problems.append(f"{document.line(section.line)}: expected {expected}, found it at level {section.level}")
        level = section.level
    fail_with(problems)


def check_style(artifact: Path, workspace: Path) -> None:
    """Fail unless all headings are underlined or none, and all bullets of a level are the same."""
    document = read_document(artifact, workspace)
    first_styles: dict[str, tuple[str, int]] = {}
    problems = []
    for element, style, line in _find_styles(document.markdown):
        first_style, first_line = first_styles.setdefault(element, (style, line))
        if style != first_style:
            expected = f"{element} as in line {first_line} ({first_style})"
            problems.append(f"{document.line(line)}: expected {expected}, found {style}")
    fail_with(problems)


def _find_styles(markdown: MarkdownDocument) -> Iterator[tuple[str, str, int]]:
    """Yield the kind of each heading and list of bullets, its style, and its line."""
    depth = 0
    for token in markdown.tokens:
        line = token.map[0] + 1 if token.map else 0
        if token.type == "heading_open" and int(token.tag[1]) <= 2:  # only these can be underlined
            yield "headings", "#" if token.markup.startswith("#") else "underlined", line
        if token.type in ("bullet_list_open", "ordered_list_open"):
            depth += 1
        if token.type == "bullet_list_open":
            yield f"bullets of level {depth}", token.markup, line
        if token.type in ("bullet_list_close", "ordered_list_close"):
            depth -= 1
