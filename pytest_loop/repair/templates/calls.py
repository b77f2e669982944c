"""Calls that are wrong: another function, one argument too few or too many, or arguments in another order."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import combinations

from pytest_loop.repair.edit_unit import EditUnit
from pytest_loop.repair.templates.shape import Hints, Template, instead, operand
from pytest_loop.repair.text_edits import TextEdit, TextEdits

_FAMILIES = (
    ("min", "max"),
    ("any", "all"),
    ("sum", "len", "max", "min"),
    ("sorted", "reversed", "list", "set", "tuple"),
    ("int", "float", "round", "str", "abs", "bool"),
    ("ord", "chr"),
    ("floor", "ceil", "trunc"),
    ("append", "extend", "add", "insert"),
    ("add", "remove", "discard", "update"),
    ("pop", "popleft", "popitem"),
    ("append", "appendleft"),
    ("push", "pop"),
    ("heappush", "heappop"),
    ("get", "setdefault", "pop"),
    ("keys", "values", "items"),
    ("lower", "upper", "title", "capitalize", "casefold", "swapcase"),
    ("islower", "isupper", "isalpha", "isdigit", "isalnum", "isspace", "isnumeric"),
    ("startswith", "endswith"),
    ("find", "rfind", "index", "rindex", "count"),
    ("split", "rsplit", "splitlines", "partition"),
    ("partition", "rpartition"),
    ("strip", "lstrip", "rstrip"),
    ("removeprefix", "removesuffix"),
    ("ljust", "rjust", "center", "zfill"),
    ("union", "intersection", "difference", "symmetric_difference"),
    ("issubset", "issuperset", "isdisjoint"),
    ("isinstance", "issubclass"),
    ("match", "search", "fullmatch", "findall"),
    ("bisect", "bisect_left", "bisect_right"),
    ("permutations", "combinations", "product"),
    ("zip", "zip_longest", "enumerate"),
    ("read", "readline", "readlines"),
    ("days", "seconds", "total_seconds"),
    ("encode", "decode"),
)


def _relatives(name: str) -> list[str]:
    return list(dict.fromkeys(one for family in _FAMILIES if name in family for one in family if one != name))


def _minmax(node: ast.Name, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    other = {"min": "max", "max": "min", "any": "all", "all": "any"}.get(node.id)
    if other:
        yield unit.replace_node(node, other)


def _func_swap(node: ast.Call, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """A function of the same family, or another one of this module."""
    if isinstance(node.func, ast.Name):
        own = [name for name in unit.module_names if name in callables(unit) and name != node.func.id]
        yield from (unit.replace_node(node.func, name) for name in (*_relatives(node.func.id), *own))
    elif isinstance(node.func, ast.Attribute):
        base = unit.get_code(node.func.value)
        yield from (unit.replace_node(node.func, f"{base}.{name}") for name in _relatives(node.func.attr))
        for name in _methods(unit):
            if name != node.func.attr:
                yield unit.replace_node(node.func, f"{base}.{name}")


def callables(unit: EditUnit) -> set[str]:
    """The functions and classes of the module."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return {one.name for one in unit.source.tree.body if isinstance(one, kinds)}


def _methods(unit: EditUnit) -> list[str]:
    """The methods that are called in this file."""
    called = (one.func for one in ast.walk(unit.source.tree) if isinstance(one, ast.Call))
    return list(dict.fromkeys(one.attr for one in called if isinstance(one, ast.Attribute)))


def _sort(node: ast.Call, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """What sorts or turns a list in its place gives nothing; what gives a new one changes nothing."""
    if isinstance(node.func, ast.Attribute):
        base, end = unit.get_code(node.func.value), unit.source.get_span(node)
        rest = unit.source.text[unit.source.get_span(node.func)[1] + 1 : end[1] - 1]
        if node.func.attr == "sort":
            yield unit.replace_node(node, f"sorted({base}{', ' if rest else ''}{rest})")
        elif node.func.attr == "reverse":
            yield unit.replace_node(node, f"{base}[::-1]")
    elif isinstance(node.func, ast.Name) and node.args and isinstance(unit.get_parent(node), ast.Expr):
        rest = "".join(unit.get_code(one) for one in node.keywords)
        if node.func.id == "sorted":
            yield unit.replace_node(node, f"{unit.get_code(node.args[0])}.sort({rest})")
        elif node.func.id == "reversed":
            yield unit.replace_node(node, f"{unit.get_code(node.args[0])}.reverse()")


def _arg_swap(
    node: ast.Call | ast.Tuple | ast.List | ast.DictComp | ast.Subscript, unit: EditUnit, _: Hints
) -> Iterator[TextEdits]:
    """Two of several, exchanged."""
    if isinstance(node, ast.Call):
        items, values = node.args, [one.value for one in node.keywords if one.arg]
        pairs = [*combinations(items, 2), *combinations(values, 2)]
        if isinstance(node.func, ast.Attribute):
            pairs += [(node.func.value, arg) for arg in items]
    elif isinstance(node, ast.Tuple | ast.List):
        pairs = list(combinations(node.elts[:6], 2))
    elif isinstance(node, ast.DictComp):
        pairs = [(node.key, node.value)]
    else:
        pairs = [(node.value, node.slice)]
        if isinstance(node.value, ast.Subscript):
            pairs.append((node.value.slice, node.slice))
    for one, two in pairs:
        if not any(isinstance(part, ast.Slice | ast.Starred) for part in (one, two)):
            yield (
                *unit.replace_node(one, operand_or_code(unit, two, one)),
                *unit.replace_node(two, operand_or_code(unit, one, two)),
            )


def operand_or_code(unit: EditUnit, node: ast.expr, place: ast.expr) -> str:
    """The text of one expression in the place of another: in brackets where something follows with a dot."""
    above = unit.get_parent(place)
    is_head = isinstance(above, ast.Attribute | ast.Subscript) and above.value is place
    return operand(unit, node) if is_head else unit.get_code(node)


def _more_args(node: ast.Call, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """One argument more or less."""
    parts: list[ast.expr | ast.keyword] = [*node.args, *node.keywords]
    for at, part in enumerate(parts):
        if isinstance(part, ast.GeneratorExp):
            return
        if at + 1 < len(parts):
            yield (TextEdit(unit.source.get_span(part)[0], unit.source.get_span(parts[at + 1])[0], ""),)
        elif at:
            yield (TextEdit(unit.source.get_span(parts[at - 1])[1], unit.source.get_span(part)[1], ""),)
        else:
            yield unit.replace_node(part, "")
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    end = unit.source.get_span(node)[1] - 1
    comma = ", " if parts else ""
    known = {one.arg for one in node.keywords}
    for word in _keywords(name):
        if word.split("=")[0] not in known:
            yield (TextEdit(end, end, f"{comma}{word}"),)
    if name in callables(unit) or isinstance(node.func, ast.Attribute):
        yield from ((TextEdit(end, end, f"{comma}{one}"),) for one in unit.list_visible_names(node))


def _keywords(name: str) -> tuple[str, ...]:
    if name in ("sorted", "sort"):
        return ("reverse=True", "key=len", "key=str", "key=abs", "key=str.lower")
    if name in ("min", "max"):
        return ("key=len", "key=abs", "default=0", "default=None")
    if name in ("enumerate", "sum"):
        return ("start=1",) if name == "enumerate" else ("start=0",)
    if name == "split":
        return ("maxsplit=1",)
    return ()


def _await(node: ast.Call | ast.Await, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """A coroutine that is not waited for, or the other way round."""
    if isinstance(node, ast.Await):
        yield unit.replace_node(node, unit.get_code(node.value))
    elif not isinstance(unit.get_parent(node), ast.Await) and _is_async(node, unit):
        yield instead(unit, node, f"await {unit.get_code(node)}")


def _is_async(node: ast.expr, unit: EditUnit) -> bool:
    return any(isinstance(one, ast.AsyncFunctionDef) for one in unit.iterate_ancestors(node))


TEMPLATES = (
    Template("minmax", 8, (ast.Name,), _minmax),
    Template("func_swap", 4, (ast.Call,), _func_swap),
    Template("arg_swap", 4, (ast.Call, ast.Tuple, ast.List, ast.DictComp, ast.Subscript), _arg_swap),
    Template("arg_swap", 1.5, (ast.Call,), _more_args),
    Template("func_swap", 3, (ast.Call,), _sort),
    Template("await", 4, (ast.Call, ast.Await), _await),
)
