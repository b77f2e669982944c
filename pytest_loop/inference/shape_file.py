"""Read `.loop/shape/SHAPE.md`: criteria, things that must not become true, and how each is verified.

Its lists look like YAML and are read line by line: people write backticks, `: ` and ` #` in them, which YAML refuses
or drops.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_loop.inference.command_candidate import SourceLine
from pytest_loop.inference.markdown_blocks import find_table_rows
from pytest_loop.inference.proposal import ProposedRule, make_slug
from pytest_loop.inference.quoted_commands import build_quoted_check, is_command
from pytest_loop.inference.shell_script import MAX_LINE_LENGTH
from pytest_loop.inference.tool_purposes import split_names

SHAPE_FILE = ".loop/shape/SHAPE.md"
# Kinds of verification, the strongest first.
KINDS = ("execution output", "observation", "measurement", "code review", "assumption")
_DECIDED_BY_PERSON = ("observation", "assumption")
_SECTION = re.compile(r"\s*(?P<name>criteria|mustNot|must_not|must-not|verification)\s*:\s*(?P<rest>.*)$")
_ITEM = re.compile(r"\s*[-*]\s+(?P<text>.+)$")
_PAIR = re.compile(r"\s{1,8}(?P<name>\"[^\"]+\"|'[^']+'|[^\s:#\"'][^:#]*?)\s*:\s+(?P<value>\S.*)$")
_SCORE = re.compile(r"^[^\w\n]{0,9}spec score\W{1,9}(\d{1,2})\s*(?:/|$)", re.IGNORECASE | re.MULTILINE)
# A forbidding word at the beginning, or a verb that only forbids; any other negation is part of the statement.
_NEGATION = re.compile(r"^\W*(?:no|never|don't|do not|avoid)[*_]*\s+|\bmust (?:not|never)\s+", re.IGNORECASE)
_NAME_KEYS = split_names("id name")
_TEXT_KEYS = split_names("description criterion text title")
_VERIFICATION_KEYS = split_names("verification verify command method kind type check")
_FIELD = re.compile(rf"\s*(?P<key>{'|'.join(_NAME_KEYS | _TEXT_KEYS | _VERIFICATION_KEYS)})\s*:(?:\s+(?P<value>.*))?$")


@dataclass(frozen=True)
class ShapeEntry:
    """An entry of a list, its line, and its name if it has one."""

    text: str
    line: int
    name: str = ""


@dataclass(frozen=True)
class ShapeFile:
    """The content of a shape file.

    `verification` holds kind and method by the normalized words of a criterion; `clarity` is the spec score.
    """

    criteria: tuple[ShapeEntry, ...] = ()
    must_not: tuple[ShapeEntry, ...] = ()
    verification: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    clarity: int | None = None

    def find_verification(self, criterion: str, name: str = "") -> tuple[str, str]:
        """Return kind and method of a criterion by its words or its name; empty if the file has none."""
        keys = map(_normalize, (criterion, criterion.partition(":")[0], name))
        return next((self.verification[key] for key in keys if key in self.verification), ("", ""))


@dataclass
class _RawEntry:
    """An entry while it is read; its fields continue on lines that are indented at least as far as the first."""

    section: str
    line: int
    indent: int = 0
    fields: list[tuple[str, str]] = field(default_factory=list)

    def is_continued_by(self, line: str) -> bool:
        return not line.strip() or len(line) - len(line.lstrip()) >= self.indent

    def add_field(self, line: str) -> None:
        if match := _FIELD.match(line):
            self.fields.append((match["key"], _unquote(match["value"] or "")))

    @property
    def entry(self) -> ShapeEntry:
        name = next((value for key, value in self.fields if key in _NAME_KEYS and value), "")
        text = next((value for key, value in self.fields if key in _TEXT_KEYS and value), "")
        return ShapeEntry(text or name, self.line, name)

    @property
    def verification(self) -> tuple[str, str]:
        kind = method = ""
        for key, value in self.fields:
            if key in _VERIFICATION_KEYS and value:
                kind = kind or _find_kind(value)
                is_bare = "`" not in value and (key == "command" or is_command(value))
                method = f"`{value}`" if is_bare else method or ("" if value.lower() in KINDS else value)
        return kind, method


def parse_shape_file(text: str) -> ShapeFile:
    """Parse a shape file; its lists may be bare or in fences, the verification in lists, pairs or tables."""
    entries: list[_RawEntry] = []
    pairs: dict[str, tuple[str, str]] = {}
    entry: _RawEntry | None = None
    section = ""
    for number, line in enumerate((line[:MAX_LINE_LENGTH] for line in text.split("\n")), 1):
        item, pair = _ITEM.match(line), _PAIR.match(line)
        if entry and entry.is_continued_by(line):
            entry.add_field(line)
            continue
        entry = None
        if head := _SECTION.match(line):
            section = re.sub(r"[_-]", "", head["name"]).lower()
            entries += [_RawEntry(section, number, fields=[("text", text)]) for text in _split_list(head["rest"])]
        elif section and item and _FIELD.match(item["text"]):
            entry = _RawEntry(section, number, item.start("text"))
            entry.add_field(item["text"])
            entries.append(entry)
        elif section == "verification" and pair:
            pairs[_normalize(pair["name"])] = (_find_kind(pair["value"]), pair["value"].strip())
        elif section and item:
            entries.append(_RawEntry(section, number, fields=[("text", _unquote(item["text"]))]))
        elif line.strip() and not (section and line.lstrip().startswith("#")):
            section = ""
    listed = {_normalize(raw.entry.text): raw.verification for raw in entries if any(raw.verification)}
    score = _SCORE.search(text)
    return ShapeFile(
        tuple(raw.entry for raw in entries if raw.section == "criteria" and raw.entry.text),
        tuple(raw.entry for raw in entries if raw.section == "mustnot" and raw.entry.text),
        listed | pairs | _read_tables(text),
        int(score[1]) if score else None,
    )


def _read_tables(text: str) -> dict[str, tuple[str, str]]:
    """Return the verification in tables with the columns criterion, kind and method."""
    rows = (cells for cells in find_table_rows(text) if len(cells) > 1 and _find_kind(cells[1]))
    return {_normalize(cells[0]): (_find_kind(cells[1]), "".join(cells[2:3])) for cells in rows}


def _split_list(rest: str) -> list[str]:
    """Return the entries of a list on the line of its key: `criteria: [a, b]`."""
    match = re.fullmatch(r"\[(.*)\]\s*", rest)
    return [_unquote(item) for item in match[1].split(",") if item.strip()] if match else []


def _unquote(text: str) -> str:
    text = text.strip()
    return text[1:-1].strip() if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text


def _normalize(text: str) -> str:
    return " ".join(_unquote(text).strip("`").lower().split())


def _find_kind(text: str) -> str:
    return next((kind for kind in KINDS if kind in text.lower()), "")


# -- rules


def build_shape_rules(shape: ShapeFile) -> Iterator[ProposedRule]:
    """Yield the criteria as blocking rules, then the must-not rules."""
    for entry in shape.criteria:
        check = _build_check(entry.text, *shape.find_verification(entry.text, entry.name))
        rule = {"id": f"a.shape.{make_slug(entry.name or entry.text)}", "description": entry.text, "check": check}
        yield ProposedRule(rule, (SourceLine(SHAPE_FILE, entry.line),))
    for entry in shape.must_not:
        name = f"a.must-not.{make_slug(entry.name or entry.text)}"
        yield ProposedRule(build_must_not_entry(name, entry.text), (SourceLine(SHAPE_FILE, entry.line),))


def build_must_not_entry(name: str, text: str) -> dict[str, Any]:
    """Build a must-not rule; its check passes if the forbidden statement is true: `eval` for `No eval`."""
    check: Any = build_quoted_check(text) or _NEGATION.sub("", text, count=1)
    return {"id": name, "description": text, "must_not": True, "check": check}


def _build_check(criterion: str, kind: str, method: str) -> Any:
    """Return a command if method or criterion is one, a manual check if a person decides, else a sentence to judge."""
    method_command = re.sub(rf"^\s*{re.escape(kind)}[\s:,;(-]*", "", method, flags=re.IGNORECASE)
    if check := build_quoted_check(method_command) or build_quoted_check(criterion):
        return check
    method = re.sub(r"\s+", " ", method)
    has_method = bool(method) and kind not in method
    if kind in _DECIDED_BY_PERSON:
        return {"manual": f"{criterion} ({method})" if has_method else criterion}
    return f"{criterion}: {method}" if has_method else criterion
