"""What the docs template asks of a Markdown document beyond headings and links."""

from __future__ import annotations

import doctest
import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

from markdown_it import MarkdownIt

from pytest_loop.rules.document import Document, find_syntax_error
from pytest_loop.rules.markdown_document import Block
from pytest_loop.rules.syntax import ContentError
from pytest_loop.rules.templates import artifact_reader

LANGUAGES = {"python": "python", "py": "python", "python3": "python", "json": "json", "toml": "toml", "xml": "xml"}
LANGUAGES |= {"yaml": "yaml", "yml": "yaml", "pycon": "python"}
_PLACEHOLDER = re.compile(r"\W*(todo|tbd|fixme|coming soon|to be (written|done))\W*", re.IGNORECASE)
_YAML_DOCUMENT = re.compile(r"^---[ \t]*$", re.MULTILINE)


def check_sections(artifact: Path, workspace: Path) -> None:
    """There are headings, and something stands below each of them."""
    source = artifact_reader.read_document(artifact, workspace)
    sections = source.markdown.sections
    if not sections:
        raise AssertionError(f"{source.line(1)}: expected headings, found none")
    empty = [one for one in sections if not one.words or _PLACEHOLDER.fullmatch(one.text)]
    artifact_reader.fail_with(
        f"{source.line(one.line)}: expected text in the section {one.title!r}, found none" for one in empty
    )


def check_examples(artifact: Path, workspace: Path) -> None:
    """There are fenced examples, each is closed and not empty, and those of a known language parse."""
    source = artifact_reader.read_document(artifact, workspace)
    if not source.markdown.blocks:
        raise AssertionError(f"{source.line(1)}: expected a fenced example, found none")
    artifact_reader.fail_with(problem for block in source.markdown.blocks if (problem := _broken(source, block)))


def _broken(source: Document, block: Block) -> str | None:
    if not block.closed:
        return f"{source.line(block.line - 1)}: expected a closing fence, found the end of the text"
    if not block.text.strip():
        return f"{source.line(block.line - 1)}: expected an example, found an empty block"
    for line, text in _pieces(block):
        problem = _problem(text, LANGUAGES[block.language])
        if problem:
            return f"{source.line(block.line + line + problem.line - 1)}: {problem}"
    return None


def _problem(text: str, kind: str) -> ContentError | None:
    """What keeps an example from being read; of Python it may be a part of a function, such as a lone `return`."""
    problem = find_syntax_error(text, kind)
    if problem and kind == "python" and "outside" in problem.found:
        return None
    return problem


def _pieces(block: Block) -> Iterator[tuple[int, str]]:
    """What must parse in a block, each with its first line: examples of a session, YAML documents, or the whole."""
    kind = LANGUAGES.get(block.language)
    if kind == "python" and block.text.lstrip().startswith(">>>"):
        try:
            yield from ((one.lineno, one.source) for one in doctest.DocTestParser().get_examples(block.text))
        except ValueError:  # prompts that do not line up: not a session after all
            yield 0, block.text
    elif kind == "yaml":
        starts = [0, *(match.end() for match in _YAML_DOCUMENT.finditer(block.text))]
        ends = [*(match.start() for match in _YAML_DOCUMENT.finditer(block.text)), len(block.text)]
        yield from (
            (block.text.count("\n", 0, start), block.text[start:end]) for start, end in zip(starts, ends, strict=True)
        )
    elif kind:
        yield 0, dedent(block.text)


def check_hierarchy(artifact: Path, workspace: Path) -> None:
    """The first heading is a title, and no level is skipped on the way down."""
    source = artifact_reader.read_document(artifact, workspace)
    sections = source.markdown.sections
    if not sections:
        raise AssertionError(f"{source.line(1)}: expected headings, found none")
    # A title may stand in the front matter or in HTML, so the first heading may be of level 2.
    levels = [1, *(one.level for one in sections)]
    steps = zip(levels, sections, strict=False)
    artifact_reader.fail_with(
        f"{source.line(one.line)}: expected {one.title!r} at level {above + 1} or above, found it at level {one.level}"
        for above, one in steps
        if one.level > above + 1
    )


def check_style(artifact: Path, workspace: Path) -> None:
    """Headings are underlined everywhere or nowhere, and the bullets of a level are the same."""
    source = artifact_reader.read_document(artifact, workspace)
    used: dict[str, tuple[str, int]] = {}
    problems = []
    for place, style, line in _styles(source):
        known, first = used.setdefault(place, (style, line))
        if style != known:
            problems.append(f"{source.line(line)}: expected {place} as in line {first} ({known}), found {style}")
    artifact_reader.fail_with(problems)


def _styles(source: Document) -> Iterator[tuple[str, str, int]]:
    """What may be written in several ways: headings, and bullets by their depth."""
    depth = 0
    for token in MarkdownIt("commonmark").parse(source.markdown.text):
        line = token.map[0] + 1 if token.map else 0
        if token.type == "heading_open" and int(token.tag[1]) <= 2:  # only these can be underlined
            yield "headings", "#" if token.markup.startswith("#") else "underlined", line
        if token.type in ("bullet_list_open", "ordered_list_open"):
            depth += 1
        if token.type == "bullet_list_open":
            yield f"bullets of level {depth}", token.markup, line
        if token.type in ("bullet_list_close", "ordered_list_close"):
            depth -= 1
