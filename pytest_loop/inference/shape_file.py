"""`.loop/shape/SHAPE.md`: criteria, what must not become true, and how each of them is verified."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_loop.inference.command_candidate import Source
from pytest_loop.inference.markdown_commands import rows
from pytest_loop.inference.proposal import ProposedRule, build_command_check
from pytest_loop.inference.shell_script import LONGEST_LINE
from pytest_loop.inference.task_phrases import is_command
from pytest_loop.inference.tool_purposes import split_names

PATH = ".loop/shape/SHAPE.md"
# How something is verified, the strongest first; only the first three are enough to ship.
KINDS = ("execution output", "observation", "measurement", "code review", "assumption")
# What a person has to look at.
_LOOKED_AT = ("observation", "assumption")
_KEY = re.compile(r"\s*(?P<key>criteria|mustNot|must_not|must-not|verification)\s*:\s*(?P<rest>.*)$")
_ITEM = re.compile(r"\s*[-*]\s+(?P<text>.+)$")
_PAIR = re.compile(r"\s{1,8}(?P<name>\"[^\"]+\"|'[^']+'|[^\s:#\"'][^:#]*?)\s*:\s+(?P<value>\S.*)$")
_SCORE = re.compile(r"^[^\w\n]{0,9}spec score\W{1,9}(\d{1,2})\s*(?:/|$)", re.IGNORECASE | re.MULTILINE)
# What forbids: a word at the beginning, or a verb that says nothing else; any other negation is a part of the thing.
_NEGATION = re.compile(r"^\W*(?:no|never|don't|do not|avoid)[*_]*\s+|\bmust (?:not|never)\s+", re.IGNORECASE)
# The keys of an entry that is a mapping: its name, what it says, how that is verified.
_NAMES = split_names("id name")
_SAYING = split_names("description criterion text title")
_VERIFYING = split_names("verification verify command method kind type check")
_FIELD = re.compile(rf"\s*(?P<key>{'|'.join((*_NAMES, *_SAYING, *_VERIFYING))})\s*:(?:\s+(?P<value>.*))?$")


@dataclass(frozen=True)
class ShapeEntry:
    """An entry of a list, the line it stands in, and its name, where it has one."""

    text: str
    line: int
    name: str = ""


@dataclass(frozen=True)
class ShapeFile:
    """What a shape file says; `verification` is a kind and a method for each criterion, by its plain words.

    `clarity` is its spec score.
    """

    criteria: tuple[ShapeEntry, ...] = ()
    must_not: tuple[ShapeEntry, ...] = ()
    verification: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    clarity: int | None = None

    def find_verification(self, criterion: str, name: str = "") -> tuple[str, str]:
        """The kind and the method of a criterion, by its words or its name; nothing where the file does not say."""
        known = map(_plain, (criterion, criterion.partition(":")[0], name))
        return next((said for one in known if any(said := self.verification.get(one, ("", "")))), ("", ""))


def parse_shape_file(text: str) -> ShapeFile:
    """Read a shape file; its lists may be bare or stand in fences, the verification in a mapping or a table."""
    lists: dict[str, list[ShapeEntry]] = {"criteria": [], "mustnot": [], "verification": []}
    verification: dict[str, tuple[str, str]] = {}
    entries: list[_Entry] = []
    entry: _Entry | None = None
    here = ""
    for number, line in enumerate((line[:LONGEST_LINE] for line in text.split("\n")), 1):
        item, pair = _ITEM.match(line), _PAIR.match(line)
        if entry and entry.has(line):
            entry.take(line)
            continue
        entry = None
        if key := _KEY.match(line):
            here = re.sub(r"[_-]", "", key["key"]).lower()
            lists[here] += [ShapeEntry(said, number) for said in _inline(key["rest"])]
        elif here and item and _FIELD.match(item["text"]):
            entry = _Entry(here, number, item.start("text"))
            entries.append(entry)
            entry.take(item["text"])
        elif here == "verification" and pair:
            verification[_plain(pair["name"])] = (_kind(pair["value"]), pair["value"].strip())
        elif here and item:
            lists[here].append(ShapeEntry(_unquoted(item["text"]), number))
        elif line.strip() and not (here and line.lstrip().startswith("#")):
            here = ""
    for one in entries:
        lists[one.list].append(one.stated)
    verification = {_plain(one.stated.text): (one.kind, one.method) for one in entries} | verification | _tabled(text)
    score = _SCORE.search(text)
    clarity = int(score[1]) if score else None
    return ShapeFile(_in_order(lists["criteria"]), _in_order(lists["mustnot"]), verification, clarity)


def _tabled(text: str) -> dict[str, tuple[str, str]]:
    """How criteria are verified, from the tables of a text: criterion, kind, method."""
    found = (cells for cells in rows(text) if len(cells) > 1 and _kind(cells[1]))
    return {_plain(cells[0]): (_kind(cells[1]), cells[2] if len(cells) > 2 else "") for cells in found}


def _in_order(found: list[ShapeEntry]) -> tuple[ShapeEntry, ...]:
    return tuple(sorted((one for one in found if one.text), key=lambda one: one.line))


@dataclass
class _Entry:
    """An entry of a list that is a mapping, line by line; `indent` is where its first key stands."""

    list: str
    line: int
    indent: int
    name: str = ""
    text: str = ""
    kind: str = ""
    method: str = ""

    def has(self, line: str) -> bool:
        """Whether a line belongs to it."""
        return not line.strip() or len(line) - len(line.lstrip()) >= self.indent

    def take(self, line: str) -> None:
        """Read a line of it; keys that nobody knows mean nothing."""
        found = _FIELD.match(line)
        key, value = (found["key"], _unquoted(found["value"] or "")) if found else ("", "")
        if key in _NAMES:
            self.name = self.name or value
        elif key in _SAYING:
            self.text = self.text or value
        elif value:
            self.kind = self.kind or _kind(value)
            is_bare = "`" not in value and (key == "command" or is_command(value, "", ""))
            self.method = f"`{value}`" if is_bare else self.method or ("" if value.lower() in KINDS else value)

    @property
    def stated(self) -> ShapeEntry:
        return ShapeEntry(self.text or self.name, self.line, self.name)


def _inline(rest: str) -> list[str]:
    """The entries of a list on the line of its key: `criteria: [a, b]`."""
    found = re.fullmatch(r"\[(.*)\]\s*", rest)
    return [_unquoted(one) for one in found[1].split(",") if one.strip()] if found else []


def _unquoted(text: str) -> str:
    said = text.strip()
    return said[1:-1].strip() if len(said) > 1 and said[0] == said[-1] and said[0] in "\"'" else said


def _plain(text: str) -> str:
    return " ".join(_unquoted(text).strip("`").lower().split())


def _kind(text: str) -> str:
    return next((kind for kind in KINDS if kind in text.lower()), "")


# -- as rules


def build_shape_rules(shape: ShapeFile, path: str = PATH) -> Iterator[ProposedRule]:
    """The criteria as rules that block, and what must not become true as must-not rules."""
    for stated in shape.criteria:
        kind, method = shape.find_verification(stated.text, stated.name)
        entry = {
            "id": f"a.shape.{make_slug(stated.name or stated.text)}",
            "description": stated.text,
            "check": _check(stated.text, kind, method),
        }
        yield ProposedRule(entry, (Source(path, stated.line),))
    for stated in shape.must_not:
        name = f"a.must-not.{make_slug(stated.name or stated.text)}"
        yield ProposedRule(build_must_not_entry(name, stated.text), (Source(path, stated.line),))


def build_must_not_entry(name: str, text: str) -> dict[str, Any]:
    """A rule whose check passes where the forbidden thing is true: `No eval` forbids `eval`."""
    check: Any = parse_quoted_command(text) or _NEGATION.sub("", text, count=1)
    return {"id": name, "description": text, "must_not": True, "check": check}


def _check(criterion: str, kind: str, method: str) -> Any:
    """A command where the method is one, a question for a person where somebody has to look, else the sentence."""
    if check := parse_quoted_command(method):
        return check
    how = re.sub(r"\s+", " ", method)
    if kind in _LOOKED_AT:
        return {"manual": f"{criterion} ({how})" if how and kind not in how else criterion}
    return f"{criterion}: {how}" if how and kind not in how else criterion


def parse_quoted_command(text: str) -> dict[str, Any] | None:
    """The check of a text that is nothing but a command in backticks, perhaps with a word that it passes."""
    found = re.fullmatch(
        r"\W*(?:run\s+)?`([^`]+)`\W*(?:(?:passes|succeeds|exits 0|is clean|exits with 0)\W*)?", text, re.IGNORECASE
    )
    return build_command_check(found[1].strip(), None) if found else None


def make_slug(text: str) -> str:
    """A few words of a text, as the last part of a rule's id."""
    words = re.findall(r"[a-z0-9]+", text.lower())[:6]
    return "-".join(words)[:40].strip("-") or "rule"
