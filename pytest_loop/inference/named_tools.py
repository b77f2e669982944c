"""Find the tools that a task names as its judges: `make mypy happy`, `format with black`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile

from pytest_loop.inference.command_lines import classify_command, find_language, strip_wrappers
from pytest_loop.inference.tool_purposes import Purpose

# The usual call of each tool, for projects that do not say how they call it.
_USUAL_CALLS = {
    "mypy": "mypy .",
    "pyright": "pyright",
    "basedpyright": "basedpyright",
    "tsc": "npx tsc --noEmit",
    "typescript": "npx tsc --noEmit",
    "ruff": "ruff check .",
    "black": "black --check .",
    "isort": "isort --check-only .",
    "flake8": "flake8",
    "pylint": "pylint --recursive=y .",
    "codespell": "codespell",
    "yamllint": "yamllint .",
    "pre-commit": "pre-commit run --all-files",
    "lint-imports": "lint-imports",
    "eslint": "npx eslint .",
    "prettier": "npx prettier --check .",
    "biome": "npx biome check .",
    "rubocop": "bundle exec rubocop",
    "clippy": "cargo clippy -- -D warnings",
    "rustfmt": "cargo fmt --check",
    "golangci-lint": "golangci-lint run",
    "go vet": "go vet ./...",
    "interrogate": "interrogate .",
    "pydocstyle": "pydocstyle",
    "pytest": "pytest",
    "tox": "tox",
    "nox": "nox",
    "jest": "npx jest",
    "vitest": "npx vitest run",
    "rspec": "bundle exec rspec",
}
_FORMATTING_CALLS = {"ruff": "ruff format --check .", "biome": "npx biome format ."}
_NAME = rf"(?:{'|'.join(sorted(_USUAL_CALLS, key=len, reverse=True))})\b"
_TOOLS = rf"(?P<names>{_NAME}(?:(?:,\s*|,?\s+and\s+){_NAME}){{0,9}})"
_STATE = r"(?:happy|pass(?:es)?|succeeds?|green|clean|content|quiet|silent|satisfied|stops? complaining|shuts? up)"
_COMPLAINTS = r"(?:errors?|warnings?|complaints?|findings?|violations?|issues?|problems?|failures?|checks?)"
_WORK = r"(?:(?:re)?format|lint|check|verify|clean|fix|judge|tidy|sort)\w*"
_PATTERNS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b{_WORK}\b[^.;\n]{{0,40}}?\b(?:with|using|by|via|through)\s+(?:the\s+)?{_TOOLS}",
        rf"\b(?:satisfy|silence|fix)\s+(?:(?:the|all|every)\s+)*{_TOOLS}(?=\s*(?:$|[,.;!]|(?:and|in|for|of|until)\b))",
        rf"\b{_TOOLS}(?:\s+(?:is|are|both|stays?|has|reports|to|be|all|no|type|lint))*\s+(?:{_STATE}|{_COMPLAINTS})\b",
    )
)


@dataclass(frozen=True)
class NamedTool:
    """A tool that a task names, its usual call, and the words of the task with their position."""

    name: str
    command: str
    purpose: Purpose
    words: str
    start: int

    def is_called_by(self, command: str) -> bool:
        """Return whether a command calls this tool; for `typescript`, any command of Node does."""
        if self.name == "typescript" and find_language(command) == "node":
            return True
        call = list(takewhile(lambda word: word[0] not in "-.", strip_wrappers(self.command)))
        return strip_wrappers(command)[: len(call)] == call


def find_named_tools(text: str) -> tuple[NamedTool, ...]:
    """Return the tools that a text names as judges, each once, in the order of the text."""
    tools = {tool.command: tool for tool in sorted(_find_all(text), key=lambda tool: -tool.start)}
    return tuple(sorted(tools.values(), key=lambda tool: tool.start))


def _find_all(text: str) -> Iterator[NamedTool]:
    for match in (match for pattern in _PATTERNS for match in pattern.finditer(text)):
        words = " ".join(match[0].split())
        calls = _USUAL_CALLS | _FORMATTING_CALLS if "format" in words.lower() else _USUAL_CALLS
        for name in re.findall(_NAME, match["names"].lower()):
            purpose = classify_command(calls[name]) or Purpose.LINT
            yield NamedTool(name, calls[name], purpose, words, match.start("names"))
