"""Find the document in an agent's answer."""

from __future__ import annotations

from pathlib import PurePath

from pytest_loop.agents.answers import strip_fence
from pytest_loop.rules.document import DATA_FORMATS, FORMATS_BY_SUFFIX, find_syntax_error
from pytest_loop.rules.markdown_document import FencedBlock, MarkdownDocument
from pytest_loop.rules.syntax import ContentError, parse

# Names of languages in fences, beside the suffix itself.
_LANGUAGES = {
    ".yml": ("yaml",),
    ".py": ("python", "python3"),
    ".js": ("javascript", "node"),
    ".ts": ("typescript",),
    ".sh": ("bash", "shell"),
    ".rb": ("ruby",),
    ".rs": ("rust",),
    ".conf": ("nginx", "apache"),
}


def unwrap_document(text: str, name: str) -> str:
    """Return the document in an answer, without a fence and remarks around it; `name` says its format."""
    suffix = PurePath(name).suffix.lower()
    format_name = FORMATS_BY_SUFFIX.get(suffix)
    if format_name == "markdown":
        return strip_fence(text)
    if format_name and _is_valid(text, format_name):
        return text
    languages = (suffix.lstrip("."), *_LANGUAGES.get(suffix, ()))
    blocks = sorted(MarkdownDocument(text).blocks, key=lambda block: _rank_block(block, languages))
    candidates = [*filter(lambda inner: inner != text, [strip_fence(text)]), *(block.text for block in blocks)]
    valid = (candidate for candidate in candidates if format_name and _is_valid(candidate, format_name))
    return next(valid, candidates[0] if candidates else text)


def _rank_block(block: FencedBlock, languages: tuple[str, ...]) -> tuple[bool, bool, int]:
    """Return a sort key: blocks of the language first, then those without a language; longer ones before shorter."""
    return block.language not in languages, bool(block.language), -len(block.text)


def _is_valid(text: str, format_name: str) -> bool:
    """Return whether a text is of a format; a sentence is valid YAML, and still no document."""
    if format_name not in DATA_FORMATS:
        return find_syntax_error(text, format_name) is None
    try:
        return isinstance(parse(text, format_name), (dict, list))
    except ContentError:
        return False
