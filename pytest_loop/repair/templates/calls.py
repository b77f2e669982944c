"""Templates for wrong calls: another function, other arguments, or another order."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import combinations

from pytest_loop.repair.edit_unit import EditUnit
from pytest_loop.repair.templates.template import Hints, Template, get_operand, remove_item, substitute
from pytest_loop.repair.text_edits import TextEdit, TextEdits

_RELATED_FUNCTIONS = (
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
    ("weekday", "isoweekday"),
    ("date", "time"),
    ("bisect", "bisect_left", "bisect_right"),
    ("permutations", "combinations", "product"),
    ("zip", "zip_longest", "enumerate"),
    ("read", "readline", "readlines"),
    ("days", "seconds", "total_seconds"),
    ("encode", "decode"),
)


_VALUES = ("1", "0", "True", "False", "None", "2")


def _list_related(name: str) -> list[str]:
    return list(
        dict.fromkeys(other for family in _RELATED_FUNCTIONS if name in family for other in family if other != name)
    )


def _swap_min_max(node: ast.Name, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    other = {"min": "max", "max": "min", "any": "all", "all": "any"}.get(node.id)
    if other:
        yield unit.replace_node(node, other)


def _replace_function(node: ast.Call, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Call a related function, or another function of the module."""
    if isinstance(node.func, ast.Name):
        functions = [name for name in unit.module_names if name in unit.source.callables and name != node.func.id]
        yield from (unit.replace_node(node.func, name) for name in (*_list_related(node.func.id), *functions))
    elif isinstance(node.func, ast.Attribute):
        base = unit.get_code(node.func.value)
        yield from (unit.replace_node(node.func, f"{base}.{name}") for name in _list_related(node.func.attr))
        for name in unit.source.list_methods(base):
            if name != node.func.attr:
                yield unit.replace_node(node.func, f"{base}.{name}")


def _toggle_in_place(node: ast.Call, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Sort or reverse in place instead of into a new list, or the other way round."""
    if isinstance(node.func, ast.Attribute):
        base, end = unit.get_code(node.func.value), unit.source.get_span(node)
        rest = unit.source.text[unit.source.get_span(node.func)[1] + 1 : end[1] - 1]
        if node.func.attr == "sort":
            yield unit.replace_node(node, f"sorted({base}{', ' if rest else ''}{rest})")
        elif node.func.attr == "reverse":
            yield unit.replace_node(node, f"{base}[::-1]")
    elif isinstance(node.func, ast.Name) and node.args and isinstance(unit.get_parent(node), ast.Expr):
        rest = "".join(unit.get_code(keyword) for keyword in node.keywords)
        if node.func.id == "sorted":
            yield unit.replace_node(node, f"{unit.get_code(node.args[0])}.sort({rest})")
        elif node.func.id == "reversed":
            yield unit.replace_node(node, f"{unit.get_code(node.args[0])}.reverse()")


def _swap_arguments(
    node: ast.Call | ast.Tuple | ast.List | ast.DictComp | ast.Subscript, unit: EditUnit, _: Hints
) -> Iterator[TextEdits]:
    """Swap two arguments, elements, or parts of a subscript."""
    if isinstance(node, ast.Call):
        args, values = node.args, [keyword.value for keyword in node.keywords if keyword.arg]
        pairs = [*combinations(args, 2), *combinations(values, 2)]
        if isinstance(node.func, ast.Attribute):
            pairs += [(node.func.value, arg) for arg in args]
    elif isinstance(node, ast.Tuple | ast.List):
        pairs = list(combinations(node.elts[:6], 2))
    elif isinstance(node, ast.DictComp):
        pairs = [(node.key, node.value)]
    else:
        pairs = [(node.value, node.slice)]
        if isinstance(node.value, ast.Subscript):
            pairs.append((node.value.slice, node.slice))
    for first, second in pairs:
        if not any(isinstance(part, ast.Slice | ast.Starred) for part in (first, second)):
            yield (
                *unit.replace_node(first, _get_replacement(unit, second, first)),
                *unit.replace_node(second, _get_replacement(unit, first, second)),
            )


def _get_replacement(unit: EditUnit, node: ast.expr, place: ast.expr) -> str:
    """Return the code of an expression in place of another, in brackets if an attribute or a subscript follows."""
    parent = unit.get_parent(place)
    is_head = isinstance(parent, ast.Attribute | ast.Subscript) and parent.value is place
    return get_operand(unit, node) if is_head else unit.get_code(node)


def _change_arguments(node: ast.Call, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Remove or add an argument."""
    parts: list[ast.expr | ast.keyword] = [*node.args, *node.keywords]
    for index, part in enumerate(parts):
        if isinstance(part, ast.GeneratorExp):
            return
        yield remove_item(unit, parts, index) if len(parts) > 1 else unit.replace_node(part, "")
    name = _get_function_name(node)
    end = unit.source.get_span(node)[1] - 1
    comma = ", " if parts else ""
    used = {keyword.arg for keyword in node.keywords}
    for word in _list_keywords(name):
        if word.split("=")[0] not in used:
            yield (TextEdit(end, end, f"{comma}{word}"),)
    if name in unit.source.callables or isinstance(node.func, ast.Attribute):
        yield from ((TextEdit(end, end, f"{comma}{argument}"),) for argument in unit.list_visible_names(node))


def _get_function_name(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def _list_keywords(name: str) -> tuple[str, ...]:
    if name in ("sorted", "sort"):
        return ("reverse=True", "key=len", "key=str", "key=abs", "key=str.lower")
    if name in ("min", "max"):
        return ("key=len", "key=abs", "default=0", "default=None")
    if name in ("enumerate", "sum"):
        return ("start=1",) if name == "enumerate" else ("start=0",)
    if name == "split":
        return ("maxsplit=1",)
    return ()


def _add_parameter(node: ast.Call, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Pass a value for a parameter that the call leaves at its default."""
    name = _get_function_name(node)
    end = unit.source.get_span(node)[1] - 1
    comma = ", " if node.args or node.keywords else ""
    used = {keyword.arg for keyword in node.keywords}
    for parameter in unit.source.default_parameters.get(name, ()):
        if parameter not in used:
            values = [parameter] if parameter in unit.name_scopes else []
            for value in (*values, *_VALUES, *unit.list_visible_names(node)):
                yield (TextEdit(end, end, f"{comma}{parameter}={value}"),)


def _toggle_await(node: ast.Call | ast.Await, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Add or remove `await`."""
    if isinstance(node, ast.Await):
        yield unit.replace_node(node, unit.get_code(node.value))
    elif not isinstance(unit.get_parent(node), ast.Await) and any(
        isinstance(ancestor, ast.AsyncFunctionDef) for ancestor in unit.iterate_ancestors(node)
    ):
        yield substitute(unit, node, f"await {unit.get_code(node)}")


TEMPLATES = (
    Template("minmax", 8, (ast.Name,), _swap_min_max),
    Template("func_swap", 4, (ast.Call,), _replace_function),
    Template("arg_swap", 4, (ast.Call, ast.Tuple, ast.List, ast.DictComp, ast.Subscript), _swap_arguments),
    Template("arg_swap", 1.5, (ast.Call,), _change_arguments),
    Template("argument", 4, (ast.Call,), _add_parameter),
    Template("func_swap", 3, (ast.Call,), _toggle_in_place),
    Template("await", 4, (ast.Call, ast.Await), _toggle_await),
)
