from __future__ import annotations

import ast
import re
from pathlib import Path
from textwrap import dedent

import pytest

from pytest_loop.repair.candidates import rank_candidates
from pytest_loop.repair.python_source import PythonSource
from pytest_loop.repair.templates import TEMPLATES
from pytest_loop.repair.templates.template import Hints
from pytest_loop.repair.text_edits import TextEdit, apply_edits, count_changed_tokens


def list_edits(text: str, hints: Hints = Hints()) -> set[tuple[str, str]]:  # noqa: B008 - frozen
    """Return every edit of a text, by template and result."""
    source = PythonSource(Path("/it.py"), text)
    lines = {("/it.py", line): 1.0 for line in range(1, text.count("\n") + 2)}
    candidates = rank_candidates([source], lines, hints)
    return {
        (candidate.template, candidate.text)
        for candidate in candidates
        if candidate.unit.parse_edited(candidate.edits) is not None
    }


def make_function(body: str, head: str = "def f(a, b, items):") -> str:
    return head + "\n" + "".join(f"    {line}\n" for line in body.splitlines())


ROWS = [
    ("return a + 1", "const", "return a + 2"),
    ("return a and True", "const", "return a and False"),
    ("return ' '.join(a)", "const", "return ''.join(a)"),
    ("return a < b", "cmp_op", "return a <= b"),
    ("return a  not  in b", "cmp_op", "return a  in b"),
    ("return a is not b", "cmp_op", "return a is b"),
    ("return a", "var_swap", "return b"),
    ("return a - 1", "var_swap", "return a - b"),
    ("return range(len(a))", "off_by_one", "return range(len(a) + 1)"),
    ("return range(1, a)", "off_by_one", "return range(a)"),
    ("return items", "slice_add", "return items[1:]"),
    ("return items[a:]", "slice_add", "return items[:a]"),
    ("return items[a]", "slice_add", "return items[a - 1]"),
    ("return a  -  b", "bin_op", "return a  +  b"),
    ("return a * b + 1", "bin_op", "return a * (b + 1)"),
    ("a -= b", "aug_op", "a += b"),
    ("a = b", "aug_op", "a += b"),
    ("return min(a, b)", "minmax", "return max(a, b)"),
    ("while a:\n    b += 1", "state_update", "while a:\n        b += 1\n        a -= 1"),
    ("return str(a)", "unwrap_call", "return a"),
    ("return a.strip()", "unwrap_call", "return a"),
    ("return a.lower()", "func_swap", "return a.upper()"),
    ("x = len(a)\nreturn b / x", "donor_expr", "x = len(a)\n    return b / len(a)"),
    ("return a - b", "wrap_call", "return abs(a - b)"),
    ("return a", "wrap_call", "return a.lower()"),
    ("if a > b:\n    return 1", "cond_extend", "if a > b and items:\n        return 1"),
    ("return f(a, b, items)", "arg_swap", "return f(b, a, items)"),
    ("return [a, b]", "arg_swap", "return [b, a]"),
    ("return a", "extend_expr", "return a + b"),
    ("return a - b", "operand_swap", "return b - a"),
    ("return a and b or items", "and_or", "return a and b and items"),
    ("return a + b", "drop_operand", "return a"),
    ("return a == 1 or b == 2", "drop_operand", "return b == 2"),
    ("return [a, b, 3]", "drop_operand", "return [a, 3]"),
    ("return a.x + b.y", "attr_swap", "return a.y + b.y"),
    ("if a:\n    return 1", "cond_replace", "if b:\n        return 1"),
    ("if a.ok():\n    return 1", "negate", "if not a.ok():\n        return 1"),
    ("if not a:\n    return 1", "negate", "if a:\n        return 1"),
    ("return -a", "unary", "return a"),
    ("b = 1\nreturn a", "stmt_copy", "b = 1\n    b = 1\n    return a"),
    ("return a / len(items)", "early_exit", "if not items:\n        return 0\n    return a / len(items)"),
    ("items.append(a)", "guard_stmt", "if a not in items:\n        items.append(a)"),
    ("return a or b", "default_value", None),
    ("return a[b]", "dict_get", "return a.get(b, 0)"),
    ("return a.get(b)", "dict_get", "return a[b]"),
    ("if a:\n    b = 1", "if_while", "while a:\n        b = 1"),
    ("while a:\n    b = 1", "if_while", "if a:\n        b = 1"),
    ("a = 1\nreturn b", "return_expr", "a = 1\n    return a"),
    ("if a:\n    return True\nreturn False", "return_expr", "if a:\n        return False\n    return True"),
    ("a = 1\nb = 2", "stmt_delete", "b = 2"),
    ("for x in items:\n    b = x\n    return b", "stmt_move", "for x in items:\n        b = x\n    return b"),
    ("return a.b", "drop_attr", "return a"),
    ("return a - (b - items)", "bin_op", "return (a - b) - items"),
    ("return a and b and items", "and_or", "return a and b or items"),
    ("return a + b * items", "drop_operand", "return a * items"),
    ("return a or b or items", "drop_operand", "return b or items"),
    ("return a or b or items", "drop_operand", "return a or b"),
    ("return a if b else items", "drop_operand", "return items"),
    ("return a < b < items", "drop_operand", "return a < b"),
    ("return a if b else items", "operand_swap", "return items if b else a"),
    ("return a + b + items", "operand_swap", "return a + items + b"),
    ("return a * 1.5", "const", "return a * 15.0"),
    ("return None", "const", "return []"),
    ("return a[2] + b[2]", "const", "return a[3] + b[3]"),
    ("return range(a, b, 2)", "off_by_one", "return range(a, b, -2)"),
    ("return a[b][items]", "arg_swap", "return a[items][b]"),
    ("return a.split(b)", "arg_swap", "return a.split(b, maxsplit=1)"),
    ("return a.one(b.two())", "func_swap", "return a.two(b.two())"),
    ("if a:\n    b = 1\nif b:\n    a = 1", "if_while", "if a:\n        b = 1\n    elif b:\n        a = 1"),
    ("if a:\n    b = 1\nelif b:\n    a = 1", "if_while", "if a:\n        b = 1\n    if b:\n        a = 1"),
    ("if a:\n    b = 1\nelse:\n    a = 1", "negate", "if a:\n        a = 1\n    else:\n        b = 1"),
    ("if a:\n    b = 1", "stmt_delete", "b = 1"),
    ("return sorted(a, key=lambda x: x)", "wrap_call", "return sorted(a, key=lambda x: abs(x))"),
    ("return sorted(a, key=lambda x: x.y)", "wrap_call", "return sorted(a, key=lambda x: (x.y, x))"),
    ("return a == b", "wrap_call", "return set(a) == set(b)"),
    ("return a == b", "wrap_call", "return a.lower() == b.lower()"),
    ("return a[-1]", "wrap_call", "return sum(a)"),
    ("return a.b", "wrap_call", "return a.b()"),
    ("return a.b()", "unwrap_call", "return a.b"),
    ("return a", "wrap_call", "return dict(sorted(a.items()))"),
    ("return a.sort(key=len)", "func_swap", "return sorted(a, key=len)"),
    ("return a.reverse()", "func_swap", "return a[::-1]"),
    ("sorted(a, reverse=True)", "func_swap", "a.sort(reverse=True)"),
    ("reversed(a)", "func_swap", "a.reverse()"),
    ("return {x: y for x, y in items}", "arg_swap", "return {y: x for x, y in items}"),
    ("a[b] = items", "dict_get", "a[b] = a.get(b, 0) + items"),
    ("a[b] += 1", "dict_get", "a[b] = a.get(b, 0) + 1"),
    ("a[b].append(1)", "dict_get", "a.setdefault(b, []).append(1)"),
    ("for x in items:\n    break", "if_while", "for x in items:\n        continue"),
    ("return f'{a} of {b}'", "var_swap", "return f'{b} of {b}'"),
    ("return f'{{a}} {a + b:>3}'", "bin_op", "return f'{{a}} {a - b:>3}'"),
    ('return f"""{a}\n{b.x}"""', "drop_attr", 'return f"""{a}\n    {b}"""'),
    ("return f'é{a}'", "var_swap", "return f'é{b}'"),
    ("return f'{a:>10}'", "format", "return f'{a:>10.2f}'"),
    ("return f'{a}'", "format", "return f'{a:.2f}'"),
    ("return f'{a}'", "format", "return f'{a!r}'"),
    ("return f'{a!r:<8}'", "format", "return f'{a:<8}'"),
    ("return f'{a:<8}'", "format", "return f'{a:>8}'"),
    ("return f'{a:.1f}'", "format", "return f'{a:.2f}'"),
]


@pytest.mark.parametrize(("before", "template", "after"), ROWS, ids=[f"{row[1]}-{at}" for at, row in enumerate(ROWS)])
def test_template_makes_the_expected_edit(before: str, template: str, after: str | None) -> None:
    edits = list_edits(make_function(before))
    if after is None:
        assert any(name == template for name, _ in edits)
        return
    head = "def f(a, b, items):\n"
    results = [text for name, text in edits if name == template]
    assert f"{head}    {after}\n" in results, "\n".join(results)


def test_name_becomes_an_attribute_of_the_object() -> None:
    text = "class A:\n    def f(self):\n        size = 1\n        return size + self.size\n"
    assert ("self_attr", text.replace("return size", "return self.size")) in list_edits(text)


def test_missing_await_is_added() -> None:
    text = "async def f(g):\n    return g()\n"
    assert ("await", text.replace("g()", "await g()")) in list_edits(text)


def test_superfluous_await_is_removed() -> None:
    text = "async def f(g):\n    return await g()\n"
    assert ("await", text.replace("await g()", "g()")) in list_edits(text)


@pytest.mark.parametrize(
    ("before", "after"),
    [("a=[]", "a=None"), ("a=1", "a=2"), ("*, a=1", "*, a=0"), ("a", "a=None"), ("a: int", "a: int = None")],
)
def test_default_of_a_parameter_is_changed(before: str, after: str) -> None:
    text = f"def f({before}):\n    return a\n"
    assert ("default_value", text.replace(f"({before})", f"({after})")) in list_edits(text)


def test_missing_name_of_a_module_is_imported() -> None:
    text = "def f(a):\n    return Counter(a)\n"
    after = f"from collections import Counter\n{text}"
    assert ("add_import", after) in list_edits(text, Hints(missing={"Counter": ()}))


def test_missing_module_is_imported_after_the_docstring() -> None:
    text = '"""Doc."""\nfrom __future__ import annotations\n\n\ndef f(a):\n    return math.floor(a)\n'
    after = text.replace("annotations\n", "annotations\nimport math\n", 1)
    assert ("add_import", after) in list_edits(text, Hints(missing={"math": ()}))


def test_defined_name_is_not_imported() -> None:
    assert not any(name == "add_import" for name, _ in list_edits("def f(math):\n    return math.pi\n"))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("total = sum([1])\nprint(totl)\n", "total = sum([1])\nprint(total)\n"),
        ("import math\nprint(math.totl(4))\n", "import math\nprint(math.total(4))\n"),
        (
            "from shop import (\n    price,\n    totl,  # of all\n)\n",
            "from shop import (\n    price,\n    total,  # of all\n)\n",
        ),
        ("import shop.totl as it\n", "import shop.total as it\n"),
        ("from shop.totl import price\n", "from shop.total import price\n"),
    ],
)
def test_misspelt_name_is_replaced_by_a_similar_one(before: str, after: str) -> None:
    assert ("spelling", after) in list_edits(before, Hints(missing={"totl": ("total",)}))


def test_character_of_the_tests_is_removed_from_a_text() -> None:
    after = "def f(a):\n    return int(a.replace(',', ''))\n"
    assert ("wrap_call", after) in list_edits("def f(a):\n    return int(a)\n", Hints(signs=(",",)))


RAISING = "def f(a):\n    try:\n        return a[0]\n    except KeyError:\n        raise TypeError('no')\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("except KeyError", "except (KeyError, IndexError)"),
        ("except KeyError", "except IndexError"),
        ("raise TypeError", "raise IndexError"),
    ],
)
def test_exception_is_replaced_by_one_of_the_tests(before: str, after: str) -> None:
    assert ("exception", RAISING.replace(before, after)) in list_edits(RAISING, Hints(errors=("IndexError",)))


def test_string_is_replaced_by_a_similar_one_of_the_tests() -> None:
    text = "def f():\n    return 'Jupyter'\n"
    assert ("const", "def f():\n    return 'Jupiter'\n") in list_edits(text, Hints(strings=("Jupiter", "Mars")))


def test_every_kind_of_edit_has_a_template() -> None:
    names = """const cmp_op var_swap off_by_one slice_add bin_op aug_op minmax state_update unwrap_call func_swap donor_expr
    wrap_call cond_extend arg_swap extend_expr operand_swap and_or drop_operand attr_swap cond_replace donor_name negate
    unary stmt_copy early_exit guard_stmt default_value dict_get if_while return_expr stmt_delete self_attr add_import
    await drop_attr"""
    assert set(names.split()) <= {template.name for template in TEMPLATES}


CODE = '''
"""Doc."""
import os  # stays

def f(a,   b):   # odd   spaces
    """Says 'é' and ✓."""
    # a comment
    x = [a,
         b]  # two
    if (a <
            b):   # less
        return x  # ✓

    return  a-b   # the end
'''


def test_comments_and_formatting_outside_of_an_edit_stay() -> None:
    source = dedent(CODE).lstrip("\n")
    comments = ["# stays", "# odd   spaces", "# a comment", "# two", "# less", "# ✓", "# the end"]
    edits = list_edits(source)
    assert len(edits) > 100
    for template, text in edits:
        ast.parse(text)
        if template not in (
            "stmt_delete",
            "stmt_move",
            "stmt_copy",
            "negate",
        ):  # these move or remove lines with their comments
            assert all(comment in text for comment in comments), text
        assert "def f(a,   b):   # odd   spaces" in text or template == "default_value"


def test_edit_replaces_only_its_spans() -> None:
    assert apply_edits("one two three", (TextEdit(8, 13, "3"), TextEdit(0, 3, "1"))) == "1 two 3"


@pytest.mark.parametrize(
    ("before", "after", "number"),
    [("a + b", "a - b", 1), ("a", "a + 1", 2), ("x[1]", "x[1]", 0), ("a", "a.split(', ')", 5), ("'a b'", "'a c d'", 1)],
)
def test_changed_tokens_are_counted(before: str, after: str, number: int) -> None:
    assert count_changed_tokens(before, after) == number


FILE = """
import html
import re

_WORD = re.compile(r"^[a-z.]{1,3}(?:x+)?$")


class ShopError(Exception):
    pass


def shorten(text, length=3, *, dots=False):
    return html.escape(text)[:length].strip("-")
"""

FILE_ROWS = [
    ("regex", r'r"^[a-z.]{1,3}(?:x+)?$"', r'r"^[a-z.]{1,4}(?:x+)?$"'),
    ("regex", r'r"^[a-z.]{1,3}(?:x+)?$"', r'r"^[a-z.]{1,3}(?:x+)$"'),
    ("regex", r'r"^[a-z.]{1,3}(?:x+)?$"', r'r"^[a-z.]{1,3}(?:x*)?$"'),
    ("regex", r'r"^[a-z.]{1,3}(?:x+)?$"', r'r"^[a-z.]{1,3}(?:x+?)?$"'),
    ("regex", r'r"^[a-z.]{1,3}(?:x+)?$"', r'r"^[a-z.@]{1,3}(?:x+)?$"'),
    ("regex", r'r"^[a-z.]{1,3}(?:x+)?$"', r'r"^[^a-z.]{1,3}(?:x+)?$"'),
    ("regex", r'r"^[a-z.]{1,3}(?:x+)?$"', r'r"^[a-z]{1,3}(?:x+)?$"'),
    ("regex", r'r"^[a-z.]{1,3}(?:x+)?$"', r'r"^[a-z.]{1,3}(x+)?$"'),
    ("regex", r'r"^[a-z.]{1,3}(?:x+)?$"', r'r"[a-z.]{1,3}(?:x+)?$"'),
    ("regex", r'r"^[a-z.]{1,3}(?:x+)?$"', r'r"^[a-z.]{1,3}(?:x+)?"'),
    ("regex", '?$")', '?$", re.IGNORECASE)'),
]


@pytest.mark.parametrize(("template", "before", "after"), FILE_ROWS)
def test_parts_of_patterns_are_changed(template: str, before: str, after: str) -> None:
    assert (template, FILE.replace(before, after)) in list_edits(FILE, Hints(signs=("@",)))


def test_patterns_stay_valid() -> None:
    texts = [text for template, text in list_edits(FILE) if template == "regex"]
    patterns = [ast.parse(text).body[2].value.args[0].value for text in texts]  # type: ignore[attr-defined]
    assert len({re.compile(pattern) for pattern in patterns}) > 20


USE_ROWS = [
    ("return a", "file_call", "return html.escape(a)"),
    ("return a", "file_call", 'return a.strip("-")'),
    ("return a", "file_call", "return a.casefold()"),
    ("return a - b", "limit", "return max(0, a - b)"),
    ("return a.end + b.end", "limit", "return a.end + max(a.end, b.end)"),
    ("return shorten(a)", "argument", "return shorten(a, dots=True)"),
    ("return shorten(a)", "argument", "return shorten(a, length=1)"),
    ("return a // b", "bin_op", "return -(-a // b)"),
    ("items[a] = b", "dict_set", "items.setdefault(a, b)"),
    ("items.setdefault(a, b)", "dict_set", "items[a] = b"),
    ("return items[a]", "dict_get", "return items.get(a, 'unknown')"),
    ("return a.endswith(b)", "sign", 'return a.endswith(f".{b}")'),
    ("raise KeyError(a)", "exception", "raise ShopError(a)"),
    ("if a:\n    return b", "none_guard", "if a is not None:\n        return b"),
    ("if not a:\n    return b", "none_guard", "if a is None:\n        return b"),
    ("if a is None:\n    return b", "none_guard", "if not a:\n        return b"),
    ("if a[0] > b:\n    return b", "none_guard", "if a is None or a[0] > b:\n        return b"),
    ("return a.name", "none_guard", "return (a.name if a is not None else None)"),
    ("c = a % b\nreturn a - c", "none_guard", "c = a % b\n    if not c:\n        return a\n    return a - c"),
]


@pytest.mark.parametrize(("before", "template", "after"), USE_ROWS)
def test_what_the_file_does_elsewhere_is_done_here(before: str, template: str, after: str) -> None:
    edits = list_edits(FILE + make_function(before), Hints(strings=("unknown",)))
    assert (template, f"{FILE}def f(a, b, items):\n    {after}\n") in edits


def test_an_attribute_of_the_object_is_returned_or_preferred() -> None:
    text = "class A:\n    size: int\n\n    def get(self, other):\n        return other\n"
    edits = list_edits(text)
    assert ("return_expr", text.replace("return other", "return self.size")) in edits
    assert ("default_value", text.replace("return other", "return self.size or other")) in edits
