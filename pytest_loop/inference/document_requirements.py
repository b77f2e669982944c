"""Find what words demand of a document, such as sections, names and sizes, and turn it into checks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from pytest_loop.inference.proposal import make_slug
from pytest_loop.inference.quoted_commands import build_quoted_check
from pytest_loop.inference.task_intent import find_content_words
from pytest_loop.inference.tool_purposes import split_names

MAX_NAMES = 20
Check = Any  # as in a rule file


@dataclass(frozen=True)
class Requirement:
    """One demand: the last part of a rule's id, a description, the check, and the words that ask for it."""

    name: str
    description: str
    check: Check
    words: str


def make_remark(text: str) -> str:
    """Return a regex comment to put before a pattern: in messages, it says what the pattern looks for."""
    return f"(?#{re.sub('[()]', '', text).strip()})"


# -- lists of titles

_QUOTED = r"\"[^\"\n]{1,80}\"|'[^'\n]{1,80}'|`[^`\n]{1,80}`"
_SEPARATOR = r"(?:\s*,\s*(?:and\s+|or\s+)?|\s+and\s+|\s*&\s*|\s*\+\s*)(?:an?\s+|the\s+)?"
_CAPITALIZED = r"[A-Z][\w&/-]*(?:\s+(?:of\s+)?[A-Z][\w&/-]*|\s+(?:started|start|notes|reference)\b){0,3}"
_TITLES = rf"(?:{_QUOTED}|{_CAPITALIZED})(?:{_SEPARATOR}(?:{_QUOTED}|{_CAPITALIZED}))*"


def _split_titles(text: str) -> list[str]:
    titles = re.split(rf"({_QUOTED})|{_SEPARATOR}", text)
    return list(dict.fromkeys(stripped for title in titles if (stripped := (title or "").strip(" \"'`"))))


# -- sections

_USUAL_TITLES = (
    "api|architecture|background|change ?log|configuration|contributing|deployment|development|examples?|faq|features"
    "|getting started|install(?:ation|ing)|introduction|licen[cs]e|limitations|overview|quick ?start|reference"
    "|requirements|roadmap|security|summary|support|testing|troubleshooting|upgrading|usage"
)
_SECTIONS = (
    re.compile(rf"(?i:\bsections?\s*(?:(?:on|for|about|called|named|titled|such as)\b|:)?)\s*(?P<titles>{_TITLES})"),
    re.compile(rf"(?P<titles>{_TITLES})\s+(?i:sections?)\b"),
    re.compile(
        r"\b(?:with|including|containing|covering|includes?|contains?)\s+(?:an?\s+|the\s+)?"
        rf"(?P<titles>(?:{_USUAL_TITLES})(?:{_SEPARATOR}(?:{_USUAL_TITLES}))*)(?=\W*$|[.;,]|\s+in\b)",
        re.IGNORECASE,
    ),
    re.compile(r"\b(?:an?|the)\s+(?P<titles>[a-z][\w-]*(?:\s[a-z][\w-]*)?)\s+section\b"),
)
# Words that name no heading in front of "section".
_NO_TITLES = split_names(
    "MUST SHALL SHOULD The A An Each Every All No Write Add Include This It new own separate short"
)


def find_sections(text: str) -> Iterator[Requirement]:
    """Find headings: `with sections Installation and Usage`, `a Changelog section`."""
    for pattern in _SECTIONS:
        match = pattern.search(text)
        titles = [title for title in _split_titles(match["titles"]) if title not in _NO_TITLES] if match else []
        if match and titles:
            titles = [title[0].upper() + title[1:] for title in titles]
            yield Requirement("sections", f"It has sections: {', '.join(titles)}", {"sections": titles}, match[0])
            return


# -- size, format and links

_AT_LEAST = ("at least", "no fewer than", "a minimum of", "minimum")
_MORE = ("more than", "over", "longer than", "exceed", "exceeds")
_LESS = ("fewer than", "less than", "under", "below")
_BOUNDS = "|".join((*_AT_LEAST, "no more than", "not more than", *_MORE, *_LESS, "at most", "up to"))
_SIZE = re.compile(
    rf"\b(?P<bound>{_BOUNDS}|(?:a )?maximum(?: of)?)\s+(?P<count>\d[\d,]{{0,8}})\s+(?P<unit>words|lines)\b"
    r"|\b(?P<last_count>\d[\d,]{0,8})\s+(?P<last_unit>words|lines)\s+or\s+(?P<last_bound>more|less|fewer)\b",
    re.IGNORECASE,
)
_FORMAT = re.compile(
    r"\b(?:valid|well-formed|parses? as)\s+(?P<format>JSON|YAML|TOML|XML|Markdown|Python)\b", re.IGNORECASE
)
_LINKS = re.compile(r"\blinks\b[^.;]{0,30}\b(?:resolve|work|lead|are valid|exist)\b|\bno (?:broken|dead) links\b")


def find_sizes(text: str) -> Iterator[Requirement]:
    """Find limits: `at most 300 words`, `100 lines or more`."""
    for match in _SIZE.finditer(text):
        bound = (match["bound"] or match["last_bound"]).lower()
        unit = (match["unit"] or match["last_unit"]).lower()
        count = int((match["count"] or match["last_count"]).replace(",", ""))
        number = count + (bound in _MORE) - (bound in _LESS)
        words, limit = ("at least", "min") if bound in (*_AT_LEAST, *_MORE, "more") else ("at most", "max")
        yield Requirement("size", f"It has {words} {number} {unit}", {"size": {unit: {limit: number}}}, match[0])


def find_formats(text: str) -> Iterator[Requirement]:
    """Find formats: `valid JSON`."""
    if match := _FORMAT.search(text):
        yield Requirement("format", f"It is {match['format']}", {"parses": match["format"].lower()}, match[0])


def find_links(text: str) -> Iterator[Requirement]:
    """Find a demand for links that resolve."""
    if match := _LINKS.search(text):
        yield Requirement("links", "Its links resolve", {"links": True}, match[0])


# -- names

_MENTION = re.compile(
    r"\b(?:contain|include|mention|use|have|show|name|list)(?:s|ing)?\s+(?:the\s+(?:word|text|phrase|term|line)s?\s+)?"
    rf"(?P<names>(?:{_QUOTED})(?:{_SEPARATOR}(?:{_QUOTED}))*)",
    re.IGNORECASE,
)
_NAME = re.compile(
    r"`(?P<code>[^`\n]{1,80})`|\"(?P<quoted>[^\"\n]{1,80})\"|(?P<flag>(?<![\w-])--[a-z][\w-]+)"
    r"|(?P<url>\bhttps?://[^\s,;)\"']+)|(?P<call>\b[a-zA-Z_]\w*)\(\)|(?P<snake>\b[a-zA-Z]\w*_\w+\b)"
)
_PORT = re.compile(r"\bports?\s+(?P<port>\d{2,5})\b", re.IGNORECASE)
_KEYS = re.compile(
    r"\b(?:keys?|options?|settings|fields?|variables?)\s*(?:(?:named|called|such as)\b|:)?\s*"
    rf"(?P<keys>\w[\w.-]*(?:{_SEPARATOR}\w[\w.-]*)*)",
    re.IGNORECASE,
)
# Words that end a list of keys.
_NO_KEYS = split_names("in with for that which of to from on at by and or as is are must should it all so")


def find_mentions(text: str) -> Iterator[Requirement]:
    """Find quoted texts that have to be there: `must mention "TODO"`."""
    if match := _MENTION.search(text):
        names = _split_titles(match["names"])
        yield Requirement("names", f"It has {', '.join(names)}", {"contains": names}, match[0])


def find_names(text: str) -> Iterator[Requirement]:
    """Find code, quoted texts, flags, addresses and identifiers."""
    matches = _NAME.finditer(text)
    names = list(dict.fromkeys(next(filter(None, match.groups())).strip() for match in matches))[:MAX_NAMES]
    titles = [title for requirement in find_sections(text) for title in requirement.check["sections"]]
    names = [name for name in names if name not in titles]
    if names:
        yield Requirement("names", f"It has {', '.join(names)}", {"contains": names}, ", ".join(names))


def find_ports(text: str) -> Iterator[Requirement]:
    """Find ports: `on port 8080`."""
    if ports := list(dict.fromkeys(match["port"] for match in _PORT.finditer(text))):
        check = {"matches": [rf"{make_remark(f'port {port}')}\b{port}\b" for port in ports]}
        yield Requirement("ports", f"It sets port {', '.join(ports)}", check, f"port {', '.join(ports)}")


def find_keys(text: str) -> Iterator[Requirement]:
    """Find keys of a configuration: `with the keys server and database`."""
    if match := _KEYS.search(text):
        keys = list(takewhile(lambda key: key not in _NO_KEYS, _split_titles(match["keys"])))[:MAX_NAMES]
        check = {"matches": [rf"{make_remark(f'the key {key}')}^[ \t'-]*\"?{re.escape(key)}\b" for key in keys]}
        if keys:
            yield Requirement("keys", f"It sets {', '.join(keys)}", check, ", ".join(keys))


# -- the subject

_SUBJECT = re.compile(
    r"\b(?:for|about|of|on|to|describ(?:e|ing)|covering|explain(?:ing)?|^document)\s+(?P<subject>[^,.;:+(\n]{1,120}?)"
    r"(?=$|[,.;:+(\n]|\s+(?:with|that|which|who|in|using|by|so|until|including|containing|where|for|to|and then)\b)",
    re.IGNORECASE,
)
# Words after "for" or "about" that no document has to contain: its readers, and words without a subject.
_NO_SUBJECTS = split_names(
    "users user beginners developers admins administrators operators newcomers contributors maintainers engineers "
    "customers everyone everybody people readers team teams colleagues tool tools service services library website "
    "version us me them how write use using work working"
)


def find_subject(text: str) -> Iterator[Requirement]:
    """Find the words after `for` or `about`, without names, which `find_names` finds, and without readers."""
    match = _SUBJECT.search(_SIZE.sub("", text))
    subject = _NAME.sub("", match["subject"]).strip() if match else ""
    words = [stem_word(word) for word in dict.fromkeys(find_content_words(subject)) if word not in _NO_SUBJECTS]
    if words:
        pattern = rf"{make_remark(f'a word about {subject}')}\b(?:{'|'.join(map(re.escape, words))})"
        yield Requirement("subject", f"It is about {subject}", {"matches": pattern, "ignore_case": True}, subject)


def stem_word(word: str) -> str:
    """Return the beginning that a word shares with its singular."""
    for ending, length in (("ies", 3), ("ses", 2), ("xes", 2), ("ches", 2), ("shes", 2), ("ss", 0), ("s", 1)):
        if word.endswith(ending) and len(word) > max(3, len(ending)):
            return word[: len(word) - length]
    return word


# -- additions

_ADDITION = re.compile(r"\s\+\s*(?P<words>[^+,;.\n]{2,60})")
_COVERED = split_names(
    "examples example notes note json yaml docs documentation spec section sections list diagram some a an the of for"
)


def find_additions(text: str) -> Iterator[Requirement]:
    """Find what a task adds with a plus sign: `+ DDD notes`; leave out words that templates cover, such as examples."""
    for match in _ADDITION.finditer(text):
        words = [word for word in re.findall(r"[\w-]+", match["words"]) if word.lower() not in _COVERED]
        if words:
            addition = match["words"].strip()
            pattern = rf"{make_remark(addition)}\b(?:{'|'.join(map(re.escape, words))})\b"
            check = {"matches": pattern, "ignore_case": True}
            yield Requirement(make_slug(addition), f"It has {addition}", check, addition)


# -- sentences

_FORBIDDING = re.compile(
    r"\b(?:must|shall|should|may|can|do|does)(?:\s+not\b|n't\b|\s+never\b)|\bnever\b|\bavoid\b"
    r"|^\W*no\b(?! more| fewer| less| broken| dead)",
    re.IGNORECASE,
)


def find_statement_check(statement: str, *, is_markdown: bool = True) -> Check | None:
    """Return the check of a sentence such as `MUST include a Changelog section`; None if no machine can decide it."""
    if command_check := build_quoted_check(statement):
        return command_check
    finders = (find_sections, find_sizes, find_formats, find_links, find_mentions)
    checks = [requirement.check for find in finders for requirement in find(statement)]
    if not is_markdown:
        # Other formats have no headings: look for the titles anywhere in the file.
        checks = [
            {"contains": check["sections"], "ignore_case": True} if "sections" in check else check for check in checks
        ]
    if _FORBIDDING.search(statement):
        checks = [_negate(check) for check in checks]
    return checks[0] if len(checks) == 1 else checks or None


def _negate(check: Check) -> Check:
    """Return the opposite of a check; a minimum size becomes a maximum and vice versa: not over 300 is at most 300."""
    match check:
        case {"contains": names, **options}:
            return {"absent": names, **options}
        case {"size": sizes}:
            return {"size": {unit: _flip_limits(limits) for unit, limits in sizes.items()}}
        case _:
            return {"not": check}


def _flip_limits(limits: dict[str, int]) -> dict[str, int]:
    return {"max": limits["min"] - 1} if "min" in limits else {"min": limits["max"] + 1}
