import pytest

from markup import (
    MarkupError,
    clean_url,
    count_words,
    estimate_minutes,
    find_problems,
    make_contents,
    parse,
    render_contents,
    slugify,
    split_cells,
    strip_marks,
    summarise,
    to_html,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# One", '<h1 id="one">One</h1>'),
        ("###### Six ##", '<h6 id="six">Six</h6>'),
        ("#not a heading", "<p>#not a heading</p>"),
        ("Title\n=====", '<h1 id="title">Title</h1>'),
        ("Part\n---", '<h2 id="part">Part</h2>'),
        ("***", "<hr>"),
        ("- - -", "<hr>"),
        ("one\ntwo", "<p>one\ntwo</p>"),
        ("one  \ntwo", "<p>one<br>\ntwo</p>"),
        ("    x = 1\n\n    y = 2", "<pre><code>x = 1\n\ny = 2</code></pre>"),
        ("```python\na < b\n```", '<pre><code class="language-python">a &lt; b</code></pre>'),
        ("~~~\n```\n~~~", "<pre><code>```</code></pre>"),
        ("````\n```\n````", "<pre><code>```</code></pre>"),
        ("> one\n> two", "<blockquote>\n<p>one\ntwo</p>\n</blockquote>"),
        ("> one\nlazy", "<blockquote>\n<p>one\nlazy</p>\n</blockquote>"),
        ("> > deep", "<blockquote>\n<blockquote>\n<p>deep</p>\n</blockquote>\n</blockquote>"),
        ("- a\n- b", "<ul>\n<li>a</li>\n<li>b</li>\n</ul>"),
        ("- a\n\n- b", "<ul>\n<li>a</li>\n<li>b</li>\n</ul>"),
        ("- a\n  - b", "<ul>\n<li>a\n<ul>\n<li>b</li>\n</ul></li>\n</ul>"),
        ("- a\n\nb", "<ul>\n<li>a</li>\n</ul>\n<p>b</p>"),
        ("1. a\n2. b", "<ol>\n<li>a</li>\n<li>b</li>\n</ol>"),
        ("3) c", '<ol start="3">\n<li>c</li>\n</ol>'),
        ("- [x] done", '<ul>\n<li><input type="checkbox" disabled checked> done</li>\n</ul>'),
        ("- [ ] open", '<ul>\n<li><input type="checkbox" disabled> open</li>\n</ul>'),
    ],
)
def test_blocks(text, expected):
    assert to_html(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("**bold** and __bold__", "<strong>bold</strong> and <strong>bold</strong>"),
        ("*em* and _em_", "<em>em</em> and <em>em</em>"),
        ("snake_case_name", "snake_case_name"),
        ("x*y* z", "x*y* z"),
        ("~~gone~~", "<del>gone</del>"),
        ("`a*b*c`", "<code>a*b*c</code>"),
        ("`` a`b ``", "<code>a`b</code>"),
        (r"\*plain\*", "*plain*"),
        ("a < b & c", "a &lt; b &amp; c"),
        ("[a](b.html)", '<a href="b.html">a</a>'),
        ('[a](b.html "T")', '<a href="b.html" title="T">a</a>'),
        ("[*a*](b)", '<a href="b"><em>a</em></a>'),
        ("![alt](p.png)", '<img src="p.png" alt="alt">'),
        ("<https://a.org/x>", '<a href="https://a.org/x">https://a.org/x</a>'),
        ("<mailto:a@b.c>", '<a href="mailto:a@b.c">a@b.c</a>'),
        ("see https://a.org/x.", 'see <a href="https://a.org/x">https://a.org/x</a>.'),
        ("[x](javascript:alert)", '<a href="#">x</a>'),
        ("[a][b]", "[a][b]"),
    ],
)
def test_inline(text, expected):
    assert to_html(text) == f"<p>{expected}</p>"


def test_references_are_found_in_any_case():
    assert to_html('[Site][ The  Site ]\n\n[the site]: https://a.org "T"') == (
        '<p><a href="https://a.org" title="T">Site</a></p>'
    )
    assert to_html("[Site][]\n\n[site]: <x.html>") == '<p><a href="x.html">Site</a></p>'


def test_first_definition_counts():
    assert 'href="one"' in to_html("[a][]\n\n[a]: one\n[a]: two")


def test_table_with_alignment():
    html = to_html("| a | b |\n|:--|--:|\n| 1 | 2 |\n| 3 |")
    assert '<tr><th align="left">a</th><th align="right">b</th></tr>' in html
    assert '<tr><td align="left">3</td><td align="right"></td></tr>' in html


def test_centered_column():
    assert '<th align="center">a</th>' in to_html("| a |\n|:-:|\n| 1 |")


def test_table_needs_as_many_columns_as_its_head():
    with pytest.raises(MarkupError, match="line 2: expected 2 columns, found 1"):
        parse("| a | b |\n|---|")


def test_cells_may_have_escaped_bars():
    assert split_cells(r"| a \| b | c |") == ["a | b", "c"]
    assert split_cells("a|b") == ["a", "b"]


def test_footnotes_are_numbered_by_use():
    html = to_html("A[^b] B[^a] C[^b]\n\n[^a]: first\n[^b]: second")
    assert html.count('href="#note-1"') == 2
    assert '<li id="note-1">second <a href="#ref-1">↩</a></li>' in html
    assert html.index("second") < html.index("first")


def test_unknown_footnote_stays():
    assert to_html("A[^x]") == "<p>A[^x]</p>"


def test_smart_quotes():
    assert to_html("\"a\" -- 'b' --- c...", smart=True) == "<p>“a” – ‘b’ — c…</p>"


def test_front_matter():
    document = parse('---\ntitle: "A: B"\ntags: [x, 2, true]\ndraft: no\nlist:\n  - a\n  - 1.5\nempty:\n---\n# H')
    assert document.meta == {
        "title": "A: B", "tags": ["x", 2, True], "draft": False, "list": ["a", 1.5], "empty": None,
    }  # fmt: skip
    assert document.title == "A: B"
    assert [(block.kind, block.line) for block in document.blocks] == [("heading", 10)]


def test_front_matter_problems_have_lines():
    with pytest.raises(MarkupError, match="line 3: expected `key: value`, found 'oops'"):
        parse("---\na: 1\noops\n---\n")
    with pytest.raises(MarkupError, match="line 3: the key 'a' is there twice"):
        parse("---\na: 1\nA: 2\n---\n")
    with pytest.raises(MarkupError, match="has no end"):
        parse("---\na: 1\n")


def test_fence_without_end():
    with pytest.raises(MarkupError, match="line 3: a fenced block has no end"):
        parse("a\n\n```\nb")


def test_title_without_front_matter():
    assert parse("## Sub\n\n# The *Title*").title == "The Title"
    assert parse("text").title == ""


@pytest.mark.parametrize(
    ("text", "slug"), [("Hello, World!", "hello-world"), ("A  b_c", "a-b-c"), ("`x` y", "x-y"), ("!!!", "section")]
)
def test_slugs(text, slug):
    assert slugify(text) == slug


def test_slugs_are_unique():
    used = set()
    assert [slugify("A", used) for _ in range(3)] == ["a", "a-2", "a-3"]


def test_contents():
    entries = make_contents(parse("# A\n## B\n### C\n#### D\n## E\n# F"))
    assert render_contents(entries) == ("- [A](#a)\n  - [B](#b)\n    - [C](#c)\n  - [E](#e)\n- [F](#f)")


def test_words_without_code():
    document = parse("It's one-two *three*\n\n```\nnot these words\n```\n\n| a b |\n|---|\n| c |")
    assert count_words(document) == 6


def test_reading_time_is_rounded_up():
    assert estimate_minutes(parse("word " * 200)) == 1
    assert estimate_minutes(parse("word " * 201)) == 2
    assert estimate_minutes(parse("")) == 1


def test_summary_is_cut_at_a_word():
    assert summarise(parse("# H\n\nOne two three, four"), 16) == "One two three…"
    assert summarise(parse("# H\n\nShort")) == "Short"


def test_problems():
    text = "# A\n\n### C\n\n![](x.png) [a][nope] b[^n]"
    assert find_problems(parse(text)) == [
        "line 3: level 3 follows level 1",
        "line 5: x.png has no alt text",
        "line 5: [nope] is not defined",
        "line 5: footnote 'n' is not defined",
    ]


def test_clean_url():
    assert clean_url(" a b ") == "a%20b"
    assert clean_url("JavaScript:x") == "#"
    assert clean_url("HTTPS://x") == "HTTPS://x"


def test_strip_marks():
    assert strip_marks("**a** [b](c) `d` ![e](f) ~~g~~ h[^1]") == "a b d e g h"


def test_windows_lines():
    assert to_html("a\r\n\r\nb") == "<p>a</p>\n<p>b</p>"
