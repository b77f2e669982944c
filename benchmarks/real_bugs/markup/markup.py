"""A small markup language: blocks, inline marks, tables, footnotes, front matter and a table of contents."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

_HEADING = re.compile(r"^(#{1,6})[ \t]+(.+?)[ \t]*#*$")
_SETEXT = re.compile(r"^(=+|-+)[ \t]*$")
_RULE = re.compile(r"^ {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})[ \t]*([\w+-]*)[ \t]*$")
_BULLET = re.compile(r"^( *)[-*+][ \t]+(.*)$")
_ORDERED = re.compile(r"^( *)(\d{1,9})[.)][ \t]+(.*)$")
_QUOTE = re.compile(r"^ {0,3}> ?(.*)$")
_TASK = re.compile(r"^\[([ xX])\][ \t]+(.*)$")
_TABLE_RULE = re.compile(r"^\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?$")
_DEFINITION = re.compile(r"^ {0,3}\[([^\]^][^\]]*)\]:[ \t]+(\S+)(?:[ \t]+\"([^\"]*)\")?$")
_FOOTNOTE = re.compile(r"^\[\^([^\]]+)\]:[ \t]+(.*)$")
_FRONT_LINE = re.compile(r"^([A-Za-z_][\w-]*):[ \t]*(.*)$")
_ESCAPE = re.compile(r"\\([\\`*_{}\[\]()#+\-.!|~^<>])")
_CODE = re.compile(r"(`+)(.+?)(?<!`)\1(?!`)")
_IMAGE = re.compile(r"!\[([^\]]*)\]\(([^)\s]+)(?:[ \t]+\"([^\"]*)\")?\)")
_LINK = re.compile(r"\[([^\]]+)\]\(([^)\s]+)(?:[ \t]+\"([^\"]*)\")?\)")
_REFERENCE = re.compile(r"\[([^\]]+)\]\[([^\]]*)\]")
_NOTE = re.compile(r"\[\^([^\]]+)\]")
_AUTOLINK = re.compile(r"<((?:https?|mailto):[^\s<>]+)>")
_BARE_URL = re.compile(r"(?<![\w\"'=/>])(https?://[^\s<>\"]+[^\s<>\".,;:!?)])")
_STRONG = re.compile(r"(\*\*|__)(?=\S)(.+?)(?<=\S)\1")
_EMPHASIS = re.compile(r"(?<![\w*_])([*_])(?=\S)(.+?)(?<=\S)\1(?![\w*_])")
_STRIKE = re.compile(r"~~(?=\S)(.+?)(?<=\S)~~")
_PLACEHOLDER = re.compile("\x00(\\d+)\x00")
_SAFE_SCHEMES = ("http", "https", "mailto", "ftp")
_SCHEME = re.compile(r"^([a-zA-Z][a-zA-Z0-9+.-]*):")
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_WORDS_PER_MINUTE = 200


class MarkupError(ValueError):
    """A document that cannot be read."""

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(f"line {line}: {message}" if line else message)
        self.line = line


@dataclass(frozen=True)
class Block:
    """One block of a document."""

    kind: str
    text: str = ""
    level: int = 0
    info: str = ""
    line: int = 0
    children: tuple[Block, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    aligns: tuple[str, ...] = ()
    checked: bool | None = None


@dataclass
class Document:
    """A parsed document."""

    blocks: list[Block]
    meta: dict[str, object] = field(default_factory=dict)
    references: dict[str, tuple[str, str]] = field(default_factory=dict)
    footnotes: dict[str, str] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The title of the front matter, else the first heading of level 1."""
        if self.meta.get("title"):
            return str(self.meta["title"])
        for block in self.blocks:
            if block.kind == "heading" and block.level == 1:
                return strip_marks(block.text)
        return ""


# -- front matter


def split_front_matter(text: str) -> tuple[dict[str, object], str, int]:
    """Return the front matter, the rest of the text, and the number of lines before the rest."""
    lines = text.split("\n")
    if not lines or lines[0].rstrip() != "---":
        return {}, text, 0
    for end in range(1, len(lines)):
        if lines[end].rstrip() in ("---", "..."):
            break
    else:
        raise MarkupError("the front matter has no end", 1)
    meta: dict[str, object] = {}
    key = ""
    for number, line in enumerate(lines[1:end], start=2):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if line.startswith(("  - ", "- ")) and key:
            items = meta[key] if isinstance(meta[key], list) else []
            meta[key] = [*items, parse_scalar(line.strip()[2:])]
            continue
        match = _FRONT_LINE.match(line)
        if match is None:
            raise MarkupError(f"expected `key: value`, found {line.strip()!r}", number)
        key, value = match[1].lower(), match[2].strip()
        if key in meta:
            raise MarkupError(f"the key {key!r} is there twice", number)
        meta[key] = parse_scalar(value)
    return meta, "\n".join(lines[end + 1 :]), end + 1


def parse_scalar(text: str) -> object:
    """Read a value of the front matter."""
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    if text.startswith("[") and text.endswith("]"):
        inner = text[1:-1].strip()
        return [parse_scalar(part.strip()) for part in inner.split(",")] if inner else []
    lowered = text.lower()
    if lowered in ("true", "yes", "on"):
        return True
    if lowered in ("false", "no", "off"):
        return False
    if lowered in ("", "null", "~"):
        return None
    if re.fullmatch(r"[-+]?\d+", text):
        return int(text)
    if re.fullmatch(r"[-+]?\d*\.\d+(?:[eE][-+]?\d+)?", text):
        return float(text)
    return text


# -- blocks


class BlockParser:
    """Split lines into blocks."""

    def __init__(self, lines: Iterable[str], first_line: int = 1, depth: int = 0) -> None:
        self.lines = [line.expandtabs(4) for line in lines]
        self.first_line = first_line
        self.depth = depth
        self.position = 0
        self.references: dict[str, tuple[str, str]] = {}
        self.footnotes: dict[str, str] = {}
        if depth > 20:
            raise MarkupError("blocks are nested too deeply", first_line)

    @property
    def number(self) -> int:
        return self.first_line + self.position

    def peek(self, ahead: int = 0) -> str | None:
        """Return a line that was not read yet."""
        index = self.position + ahead
        return self.lines[index] if index < len(self.lines) else None

    def parse(self) -> list[Block]:
        """Return all blocks."""
        blocks: list[Block] = []
        while (line := self.peek()) is not None:
            if not line.strip():
                self.position += 1
                continue
            block = self._parse_block(line)
            if block is not None:
                blocks.append(block)
        return blocks

    def _parse_block(self, line: str) -> Block | None:
        if line.startswith("    "):
            return self._parse_indented()
        if match := _FENCE.match(line):
            return self._parse_fence(match)
        if match := _HEADING.match(line):
            self.position += 1
            return Block("heading", match[2], len(match[1]), line=self.number - 1)
        if _RULE.match(line):
            self.position += 1
            return Block("rule", line=self.number - 1)
        if _QUOTE.match(line):
            return self._parse_quote()
        if _BULLET.match(line) or _ORDERED.match(line):
            return self._parse_list()
        if self._parse_definition(line):
            return None
        following = self.peek(1)
        if "|" in line and following is not None and _TABLE_RULE.match(following.strip()) and "-" in following:
            return self._parse_table()
        return self._parse_paragraph()

    def _parse_definition(self, line: str) -> bool:
        if match := _FOOTNOTE.match(line):
            self.footnotes.setdefault(match[1].lower(), match[2])
        elif match := _DEFINITION.match(line):
            self.references.setdefault(normalise_label(match[1]), (match[2].strip("<>"), match[3] or ""))
        else:
            return False
        self.position += 1
        return True

    def _parse_indented(self) -> Block:
        start, first = self.position, self.number
        while (line := self.peek()) is not None and (line.startswith("    ") or not line.strip()):
            self.position += 1
        lines = [line[4:] for line in self.lines[start : self.position]]
        while lines and not lines[-1].strip():
            lines.pop()
        return Block("code", "\n".join(lines), line=first)

    def _parse_fence(self, match: re.Match[str]) -> Block:
        first, fence = self.number, match[1]
        indent = len(match[0]) - len(match[0].lstrip())
        self.position += 1
        lines: list[str] = []
        while (line := self.peek()) is not None:
            self.position += 1
            closing = line.strip()
            if closing and set(closing) == {fence[0]} and len(closing) >= len(fence):
                return Block("code", "\n".join(lines), info=match[2], line=first)
            lines.append(line[min(indent, len(line) - len(line.lstrip())) :])
        raise MarkupError("a fenced block has no end", first)

    def _parse_quote(self) -> Block:
        first = self.number
        lines: list[str] = []
        while (line := self.peek()) is not None and line.strip():
            match = _QUOTE.match(line)
            if match is None and (not lines or self._starts_block(line)):
                break
            lines.append(match[1] if match else line)
            self.position += 1
        return Block("quote", line=first, children=self._parse_children(lines, first))

    def _starts_block(self, line: str) -> bool:
        patterns = (_FENCE, _HEADING, _RULE, _QUOTE, _BULLET, _ORDERED)
        return any(pattern.match(line) for pattern in patterns)

    def _parse_children(self, lines: list[str], first: int) -> tuple[Block, ...]:
        parser = BlockParser(lines, first, self.depth + 1)
        blocks = tuple(parser.parse())
        self.references = {**parser.references, **self.references}
        self.footnotes = {**parser.footnotes, **self.footnotes}
        return blocks

    def _parse_list(self) -> Block:
        first = self.number
        line = self.peek() or ""
        ordered = _ORDERED.match(line)
        pattern = _ORDERED if ordered else _BULLET
        start = int(ordered[2]) if ordered else 0
        indent = len((ordered or _BULLET.match(line) or [""])[1])
        items: list[Block] = []
        while (line := self.peek() or "") and (match := pattern.match(line)) and len(match[1]) == indent:
            items.append(self._parse_item(match, indent))
            while self.peek() is not None and not (self.peek() or "").strip():
                following = next((text for text in self.lines[self.position :] if text.strip()), "")
                match = pattern.match(following)
                if match is None or len(match[1]) != indent:
                    break
                self.position += 1
        kind = "ordered" if ordered else "bullets"
        return Block(kind, level=start, line=first, children=tuple(items))

    def _parse_item(self, match: re.Match[str], indent: int) -> Block:
        first = self.number
        text = match[match.lastindex or 0]
        checked = None
        if task := _TASK.match(text):
            checked, text = task[1] in "xX", task[2]
        lines = [text]
        self.position += 1
        while (line := self.peek()) is not None and line.strip():
            depth = len(line) - len(line.lstrip())
            if depth <= indent and (self._starts_block(line) or depth < indent):
                break
            lines.append(line[min(depth, indent + 2) :])
            self.position += 1
        return Block("item", line=first, checked=checked, children=self._parse_children(lines, first))

    def _parse_table(self) -> Block:
        first = self.number
        head = split_cells(self.peek() or "")
        self.position += 1
        aligns = tuple(read_alignment(cell) for cell in split_cells(self.peek() or ""))
        self.position += 1
        if len(aligns) != len(head):
            raise MarkupError(f"expected {len(head)} columns, found {len(aligns)}", first + 1)
        rows = [tuple(head)]
        while (line := self.peek()) is not None and "|" in line:
            cells = split_cells(line)[: len(head)]
            rows.append(tuple(cells + [""] * (len(head) - len(cells))))
            self.position += 1
        return Block("table", line=first, rows=tuple(rows), aligns=aligns)

    def _parse_paragraph(self) -> Block:
        first = self.number
        lines: list[str] = []
        while (line := self.peek()) is not None and line.strip():
            if lines and (match := _SETEXT.match(line)):
                self.position += 1
                return Block("heading", " ".join(lines), 1 if match[1][0] == "=" else 2, line=first)
            if lines and self._starts_block(line):
                break
            lines.append(line.strip() + ("  " if line.endswith("  ") else ""))
            self.position += 1
        return Block("paragraph", "\n".join(lines).rstrip(" "), line=first)


def split_cells(line: str) -> list[str]:
    """Split a row of a table; `\\|` is no separator."""
    text = line.strip()
    if text.startswith("|"):
        text = text[1:]
    if text.endswith("|") and not text.endswith("\\|"):
        text = text[:-1]
    cells, current, escaped = [], "", False
    for char in text:
        if char == "|" and not escaped:
            cells.append(current.strip())
            current = ""
        else:
            current += char
        escaped = char == "\\" and not escaped
    cells.append(current.strip())
    return [cell.replace("\\|", "|") for cell in cells]


def read_alignment(cell: str) -> str:
    """Return the alignment that a cell of the second row asks for."""
    left, right = cell.startswith(":"), cell.endswith(":")
    if left and right:
        return "center"
    return "right" if right else "left" if left else ""


def normalise_label(label: str) -> str:
    """Return a label in the form in which labels are compared."""
    return " ".join(label.split()).casefold()


def parse(text: str) -> Document:
    """Parse a document."""
    meta, body, skipped = split_front_matter(text.replace("\r\n", "\n"))
    parser = BlockParser(body.split("\n"), skipped + 1)
    blocks = parser.parse()
    return Document(blocks, meta, parser.references, parser.footnotes)


# -- inline


class InlineRenderer:
    """Render the text of a block."""

    def __init__(self, document: Document, *, smart: bool = False) -> None:
        self.document = document
        self.smart = smart
        self.used_notes: list[str] = []
        self._stash: list[str] = []

    def render(self, text: str) -> str:
        """Return the text as HTML."""
        self._stash = []
        text = _CODE.sub(lambda match: self._keep(f"<code>{html.escape(match[2].strip())}</code>"), text)
        text = _ESCAPE.sub(lambda match: self._keep(html.escape(match[1])), text)
        text = _IMAGE.sub(self._render_image, text)
        text = _AUTOLINK.sub(self._render_autolink, text)
        text = _NOTE.sub(self._render_note, text)
        text = _LINK.sub(self._render_link, text)
        text = _REFERENCE.sub(self._render_reference, text)
        text = _BARE_URL.sub(lambda match: self._keep(make_link(match[1], html.escape(match[1]))), text)
        text = html.escape(text, quote=False)
        if self.smart:
            text = replace_quotes(text)
        text = self._render_emphasis(text)
        text = re.sub(r" {2,}\n", "<br>\n", text)
        return self._restore(text)

    def _keep(self, markup: str) -> str:
        self._stash.append(markup)
        return f"\x00{len(self._stash) - 1}\x00"

    def _restore(self, text: str) -> str:
        while _PLACEHOLDER.search(text):
            text = _PLACEHOLDER.sub(lambda match: self._stash[int(match[1])], text)
        return text

    def _render_emphasis(self, text: str) -> str:
        text = _STRONG.sub(r"<strong>\2</strong>", text)
        text = _EMPHASIS.sub(r"<em>\2</em>", text)
        return _STRIKE.sub(r"<del>\1</del>", text)

    def _render_image(self, match: re.Match[str]) -> str:
        alt, target, title = match[1], match[2], match[3]
        attributes = f' title="{html.escape(title)}"' if title else ""
        return self._keep(f'<img src="{html.escape(clean_url(target))}" alt="{html.escape(alt)}"{attributes}>')

    def _render_autolink(self, match: re.Match[str]) -> str:
        return self._keep(make_link(match[1], html.escape(match[1].removeprefix("mailto:"))))

    def _render_link(self, match: re.Match[str]) -> str:
        return self._keep(make_link(match[2], self._render_label(match[1]), match[3] or ""))

    def _render_label(self, text: str) -> str:
        return self._render_emphasis(html.escape(text, quote=False))

    def _render_reference(self, match: re.Match[str]) -> str:
        label = normalise_label(match[2] or match[1])
        if label not in self.document.references:
            return match[0]
        target, title = self.document.references[label]
        return self._keep(make_link(target, self._render_label(match[1]), title))

    def _render_note(self, match: re.Match[str]) -> str:
        label = match[1].lower()
        if label not in self.document.footnotes:
            return match[0]
        if label not in self.used_notes:
            self.used_notes.append(label)
        number = self.used_notes.index(label) + 1
        return self._keep(f'<sup id="ref-{number}"><a href="#note-{number}">{number}</a></sup>')


def make_link(target: str, label: str, title: str = "") -> str:
    """Return an anchor."""
    attributes = f' title="{html.escape(title)}"' if title else ""
    return f'<a href="{html.escape(clean_url(target))}"{attributes}>{label}</a>'


def clean_url(url: str) -> str:
    """Return a URL, or `#` for one with an unsafe scheme."""
    match = _SCHEME.match(url.strip())
    if match and match[1].lower() not in _SAFE_SCHEMES:
        return "#"
    return url.strip().replace(" ", "%20")


def replace_quotes(text: str) -> str:
    """Use typographic quotes, dashes and ellipses."""
    text = re.sub(r"(^|[\s(\[])\"(?=\S)", r"\1“", text)
    text = text.replace('"', "”")
    text = re.sub(r"(^|[\s(\[])'(?=\S)", r"\1‘", text)
    text = text.replace("'", "’")
    text = re.sub(r"(?<!-)---(?!-)", "—", text)
    text = re.sub(r"(?<!-)--(?!-)", "–", text)
    return text.replace("...", "…")


def strip_marks(text: str) -> str:
    """Return the text of a block without marks."""
    text = _IMAGE.sub(lambda match: match[1], text)
    text = _LINK.sub(lambda match: match[1], text)
    text = _REFERENCE.sub(lambda match: match[1], text)
    text = _NOTE.sub("", text)
    text = _CODE.sub(lambda match: match[2].strip(), text)
    for pattern in (_STRONG, _EMPHASIS):
        text = pattern.sub(lambda match: match[2], text)
    text = _STRIKE.sub(lambda match: match[1], text)
    return _ESCAPE.sub(lambda match: match[1], text)


# -- documents


def slugify(text: str, used: set[str] | None = None) -> str:
    """Return an identifier for a heading, different from the used ones."""
    slug = re.sub(r"[^\w\s-]", "", strip_marks(text).casefold()).strip()
    slug = re.sub(r"[\s_-]+", "-", slug) or "section"
    if used is None:
        return slug
    candidate, number = slug, 1
    while candidate in used:
        number += 1
        candidate = f"{slug}-{number}"
    used.add(candidate)
    return candidate


class HtmlRenderer:
    """Render a document as HTML."""

    def __init__(self, document: Document, *, smart: bool = False, highlight: Callable[[str, str], str] | None = None):
        self.document = document
        self.inline = InlineRenderer(document, smart=smart)
        self.highlight = highlight
        self.slugs: set[str] = set()

    def render(self) -> str:
        """Return the HTML of all blocks and footnotes."""
        parts = [self.render_block(block) for block in self.document.blocks]
        if self.inline.used_notes:
            parts.append(self.render_notes())
        return "\n".join(parts)

    def render_block(self, block: Block) -> str:
        """Return the HTML of one block."""
        renderer = getattr(self, f"_render_{block.kind}")
        return str(renderer(block))

    def _render_heading(self, block: Block) -> str:
        slug = slugify(block.text, self.slugs)
        return f'<h{block.level} id="{slug}">{self.inline.render(block.text)}</h{block.level}>'

    def _render_paragraph(self, block: Block) -> str:
        return f"<p>{self.inline.render(block.text)}</p>"

    def _render_rule(self, _: Block) -> str:
        return "<hr>"

    def _render_code(self, block: Block) -> str:
        if self.highlight is not None and block.info:
            return f"<pre>{self.highlight(block.text, block.info)}</pre>"
        language = f' class="language-{html.escape(block.info)}"' if block.info else ""
        return f"<pre><code{language}>{html.escape(block.text)}</code></pre>"

    def _render_quote(self, block: Block) -> str:
        inner = "\n".join(self.render_block(child) for child in block.children)
        return f"<blockquote>\n{inner}\n</blockquote>"

    def _render_bullets(self, block: Block) -> str:
        return f"<ul>\n{self._render_items(block)}\n</ul>"

    def _render_ordered(self, block: Block) -> str:
        start = f' start="{block.level}"' if block.level != 1 else ""
        return f"<ol{start}>\n{self._render_items(block)}\n</ol>"

    def _render_items(self, block: Block) -> str:
        return "\n".join(self._render_item(item) for item in block.children)

    def _render_item(self, item: Block) -> str:
        parts = []
        for child in item.children:
            is_plain = child.kind == "paragraph"
            parts.append(self.inline.render(child.text) if is_plain else self.render_block(child))
        box = ""
        if item.checked is not None:
            mark = " checked" if item.checked else ""
            box = f'<input type="checkbox" disabled{mark}> '
        return f"<li>{box}{chr(10).join(parts)}</li>"

    def _render_table(self, block: Block) -> str:
        head, *body = block.rows
        lines = ["<table>", "<thead>", self._render_row(head, block.aligns, "th"), "</thead>"]
        if body:
            lines += ["<tbody>", *(self._render_row(row, block.aligns, "td") for row in body), "</tbody>"]
        return "\n".join([*lines, "</table>"])

    def _render_row(self, cells: Iterable[str], aligns: Iterable[str], tag: str) -> str:
        parts = []
        for cell, align in zip(cells, aligns, strict=True):
            style = f' align="{align}"' if align else ""
            parts.append(f"<{tag}{style}>{self.inline.render(cell)}</{tag}>")
        return f"<tr>{''.join(parts)}</tr>"

    def render_notes(self) -> str:
        """Return the footnotes that the text uses, in the order of their first use."""
        lines = []
        for number, label in enumerate(self.inline.used_notes, start=1):
            text = self.inline.render(self.document.footnotes[label])
            lines.append(f'<li id="note-{number}">{text} <a href="#ref-{number}">↩</a></li>')
        return '<ol class="notes">\n' + "\n".join(lines) + "\n</ol>"


def walk(blocks: Iterable[Block]) -> Iterator[Block]:
    """Yield blocks and all blocks inside of them."""
    for block in blocks:
        yield block
        yield from walk(block.children)


@dataclass
class Entry:
    """An entry of a table of contents."""

    title: str
    slug: str
    level: int
    children: list[Entry] = field(default_factory=list)


def make_contents(document: Document, deepest: int = 3) -> list[Entry]:
    """Return the headings as a tree."""
    roots: list[Entry] = []
    stack: list[Entry] = []
    used: set[str] = set()
    for block in walk(document.blocks):
        if block.kind != "heading":
            continue
        entry = Entry(strip_marks(block.text), slugify(block.text, used), block.level)
        if block.level > deepest:
            continue
        while stack and stack[-1].level >= entry.level:
            stack.pop()
        (stack[-1].children if stack else roots).append(entry)
        stack.append(entry)
    return roots


def render_contents(entries: Iterable[Entry], depth: int = 0) -> str:
    """Return a table of contents as markup."""
    lines: list[str] = []
    for entry in entries:
        lines.append(f"{'  ' * depth}- [{entry.title}](#{entry.slug})")
        if entry.children:
            lines.append(render_contents(entry.children, depth + 1))
    return "\n".join(lines)


def count_words(document: Document) -> int:
    """Count the words of a document; code does not count."""
    total = 0
    for block in walk(document.blocks):
        if block.kind == "code":
            continue
        texts = [block.text, *(cell for row in block.rows for cell in row)]
        total += sum(len(_WORD.findall(strip_marks(text))) for text in texts)
    return total


def estimate_minutes(document: Document) -> int:
    """Estimate how long reading takes, at least one minute."""
    return max(1, -(-count_words(document) // _WORDS_PER_MINUTE))


def summarise(document: Document, length: int = 160) -> str:
    """Return the beginning of the first paragraph, cut at a word."""
    for block in document.blocks:
        if block.kind == "paragraph":
            text = " ".join(strip_marks(block.text).split())
            if len(text) <= length:
                return text
            return text[:length].rsplit(" ", 1)[0].rstrip(",;:.") + "…"
    return ""


def find_problems(document: Document) -> list[str]:
    """Return what an author should look at: levels that are left out, missing alt texts, unknown labels."""
    problems: list[str] = []
    previous = 0
    for block in walk(document.blocks):
        if block.kind == "heading":
            if previous and block.level > previous + 1:
                problems.append(f"line {block.line}: level {block.level} follows level {previous}")
            previous = block.level
        for match in _IMAGE.finditer(block.text):
            if not match[1].strip():
                problems.append(f"line {block.line}: {match[2]} has no alt text")
        for match in _REFERENCE.finditer(block.text):
            label = match[2] or match[1]
            if normalise_label(label) not in document.references:
                problems.append(f"line {block.line}: [{label}] is not defined")
        for match in _NOTE.finditer(block.text):
            if match[1].lower() not in document.footnotes:
                problems.append(f"line {block.line}: footnote {match[1]!r} is not defined")
    return problems


def to_html(text: str, *, smart: bool = False) -> str:
    """Render a text as HTML."""
    return HtmlRenderer(parse(text), smart=smart).render()
