"""The types of documents: the file name that a template or the words of a task give to a run's document."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

DEFAULT_NAME = "artifact.md"
_MARKDOWN = (".md", ".markdown")


@dataclass(frozen=True)
class DocumentType:
    """The documents that a template judges.

    `suffixes` are the file suffixes that the checks can read; none means all but Markdown. `names` are other file
    names, each for the words of a task that ask for it.
    """

    default: str
    suffixes: tuple[str, ...] = ()
    names: tuple[tuple[re.Pattern[str], str], ...] = ()

    def accepts(self, name: str) -> bool:
        """Return whether the checks of the template can read a file of this name."""
        suffix = PurePosixPath(name).suffix.lower()
        return suffix in self.suffixes if self.suffixes else suffix not in _MARKDOWN

    def choose_name(self, task: str) -> str:
        """Return the file name that the words of a task ask for, else the default."""
        return next((name for pattern, name in self.names if pattern.search(task)), self.default)


def _match(words: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w.-])(?:{words})(?![\w-])", re.IGNORECASE)


def _match_format(name: str) -> re.Pattern[str]:
    """Match words that ask for a format, such as "in JSON" and "a JSON file", but not "with JSON examples"."""
    return _match(rf"(?:in|as|to|into)\s+{name}|{name}\s+(?:file|format|document|config\w*|spec\w*|openapi)")


def _match_language(names: str) -> re.Pattern[str]:
    """Match names of languages that are also ordinary words, such as "go": only after "in" or before "code" etc."""
    return _match(rf"in\s+(?:{names})|(?:{names})\s+(?:code|file|function|module|package|program|script|service|tool)")


DOCUMENT_TYPES = {
    "api-spec": DocumentType(
        "openapi.yaml",
        (".yaml", ".yml", ".json"),
        ((_match_format("json"), "openapi.json"),),
    ),
    "code": DocumentType(
        "main.py",
        names=(
            (_match("golang"), "main.go"),
            (_match_language("go"), "main.go"),
            (_match("typescript"), "main.ts"),
            (_match(r"javascript|node(?:\.js)?"), "main.js"),
            (_match(r"bash|(?:shell|sh) script"), "script.sh"),
            (_match_language("rust"), "main.rs"),
            (_match_language("java"), "Main.java"),
            (_match_language("ruby"), "main.rb"),
            (_match("php"), "main.php"),
            (_match_language(r"c\+\+|cpp"), "main.cpp"),
            (_match_language("c"), "main.c"),
        ),
    ),
    "docs": DocumentType(
        DEFAULT_NAME,
        _MARKDOWN,
        (
            (_match("readme"), "README.md"),
            (_match("changelog"), "CHANGELOG.md"),
            (_match(r"contributing(?: guide| file)?"), "CONTRIBUTING.md"),
        ),
    ),
    "config": DocumentType(
        "config.yaml",
        names=(
            (_match("nginx"), "nginx.conf"),
            (_match("apache|httpd"), "httpd.conf"),
            (_match("haproxy"), "haproxy.cfg"),
            (_match("dockerfile"), "Dockerfile"),
            (_match(r"docker[ -]compose|compose file"), "compose.yaml"),
            (_match_format("toml"), "config.toml"),
            (_match_format("json"), "config.json"),
            (_match_format("ini"), "config.ini"),
            (_match_format("xml"), "config.xml"),
        ),
    ),
}
# A document without a template: in the format that the task names, or else Markdown.
_OTHER_DOCUMENT = DocumentType(
    DEFAULT_NAME,
    names=(
        (_match(r"openapi|swagger"), DOCUMENT_TYPES["api-spec"].default),
        *((_match_format(name), f"artifact.{name}") for name in ("json", "yaml", "toml", "xml")),
        *DOCUMENT_TYPES["docs"].names,
    ),
)
_VERBS = (
    "write|create|draft|generate|produce|make|compose|improve|update|edit|rewrite|revise|extend|complete|polish|refine"
)
_PATH = re.compile(
    # The file that is written: "write a new docs/guide.md", "... into openapi.yaml"; not "a summary of notes.md".
    rf"(?:\b(?:{_VERBS})\s+(?:(?:an?|the|our|my|your|its|new|better|good)\s+){{0,3}}|\b(?:to|into|as)\s+(?:the\s+file\s+)?)"
    r"[`'\"]?(?P<path>(?:[\w.-]+/)*[\w-][\w.-]*\.(?:md|markdown|ya?ml|json|toml|xml|ini|cfg|conf|py|go|[jt]s|sh|rb|rs|php|java|c|cpp))"
    r"(?![\w/])",
    re.IGNORECASE,
)


def find_document_path(task: str) -> str:
    """Return the path of the file that a task says to write or to improve; empty if it names none."""
    match = _PATH.search(task)
    return match["path"] if match else ""


def choose_document_name(template: str, task: str) -> str:
    """Return the file name of a document: what the words of its task ask for, else the default of its template."""
    return DOCUMENT_TYPES.get(template, _OTHER_DOCUMENT).choose_name(task)
