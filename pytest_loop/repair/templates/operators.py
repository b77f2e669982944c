"""Operators that are wrong: comparisons, arithmetic, conditions and their parts."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pytest_loop.repair.edit_unit import EditUnit
from pytest_loop.repair.templates.shape import Hints, Template, instead, is_read, operand, term
from pytest_loop.repair.text_edits import TextEdit, TextEdits, apply_edits

_COMPARISONS = {
    ast.Lt: ("<", ("<=", ">", ">=", "!=", "==")),
    ast.LtE: ("<=", ("<", ">=", ">", "==", "!=")),
    ast.Gt: (">", (">=", "<", "<=", "!=", "==")),
    ast.GtE: (">=", (">", "<=", "<", "==", "!=")),
    ast.Eq: ("==", ("!=", "<=", ">=", "<", ">", "in", "is")),
    ast.NotEq: ("!=", ("==", "<", ">", "<=", ">=", "not in")),
    ast.In: ("in", ("not in", "==")),
    ast.NotIn: ("not in", ("in", "!=")),
    ast.Is: ("is", ("is not", "==")),
    ast.IsNot: ("is not", ("is", "!=")),
}
_ARITHMETIC = {
    ast.Add: ("+", ("-", "*", "//", "%", "/", "|")),
    ast.Sub: ("-", ("+", "*", "//", "%", "/")),
    ast.Mult: ("*", ("+", "**", "//", "/", "-", "%")),
    ast.Div: ("/", ("//", "*", "%", "-")),
    ast.FloorDiv: ("//", ("/", "%", "*", "-")),
    ast.Mod: ("%", ("//", "/", "*", "-")),
    ast.Pow: ("**", ("*", "//")),
    ast.BitAnd: ("&", ("|", "^", "-")),
    ast.BitOr: ("|", ("&", "^", "-")),
    ast.BitXor: ("^", ("&", "|", "**")),
    ast.LShift: ("<<", (">>",)),
    ast.RShift: (">>", ("<<",)),
}


def _between(unit: EditUnit, left: ast.expr, right: ast.expr, sign: str, other: str) -> TextEdits:
    """The operator between two expressions, exchanged; it is found in the text between them."""
    start, end = unit.source.get_span(left)[1], unit.source.get_span(right)[0]
    middle = unit.source.text[start:end]
    words = sign.split()
    at = middle.find(words[0])
    last = middle.find(words[-1], at + (len(words) > 1)) + len(words[-1])
    if at < 0 or "#" in middle[:at]:
        return ()
    return (TextEdit(start + at, start + last, other),)


def _cmp_op(node: ast.Compare, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    sides = [node.left, *node.comparators]
    for at, op in enumerate(node.ops):
        sign, others = _COMPARISONS[type(op)]
        yield from (_between(unit, sides[at], sides[at + 1], sign, other) for other in others)


def _bin_op(node: ast.BinOp, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    if type(node.op) in _ARITHMETIC:
        sign, others = _ARITHMETIC[type(node.op)]
        yield from (_between(unit, node.left, node.right, sign, other) for other in others)
    for part, rest in ((node.left, node.right), (node.right, node.left)):
        if isinstance(part, ast.BinOp):
            yield from _regrouped(node, part, rest, unit)


def _regrouped(node: ast.BinOp, part: ast.BinOp, rest: ast.expr, unit: EditUnit) -> Iterator[TextEdits]:
    """The same operands, with the brackets elsewhere."""
    if type(node.op) not in _ARITHMETIC or type(part.op) not in _ARITHMETIC:
        return
    outer, inner = _ARITHMETIC[type(node.op)][0], _ARITHMETIC[type(part.op)][0]
    first, second, third = (part.left, part.right, rest) if part is node.left else (rest, part.left, part.right)
    one, two, three = (operand(unit, item) for item in (first, second, third))
    if part is node.left:
        yield instead(unit, node, f"{one} {inner} ({two} {outer} {three})")
    else:
        yield instead(unit, node, f"({one} {outer} {two}) {inner} {three}")


def _aug_op(node: ast.AST, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    if isinstance(node, ast.AugAssign) and type(node.op) in _ARITHMETIC:
        sign, others = _ARITHMETIC[type(node.op)]
        for other in (*others, ""):
            yield _between(unit, node.target, node.value, f"{sign}=", f"{other}=")
    elif isinstance(node, ast.Assign) and len(node.targets) == 1 and not isinstance(node.targets[0], ast.Tuple):
        for other in ("+", "-", "*"):
            yield _between(unit, node.targets[0], node.value, "=", f"{other}=")
        target = unit.get_code(node.targets[0])
        yield unit.replace_node(node.value, f"{target} + {term(unit, node.value)}")


def _and_or(node: ast.BoolOp, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    sign, other = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
    pairs = list(zip(node.values, node.values[1:], strict=False))
    each = [_between(unit, left, right, sign, other) for left, right in pairs]
    yield tuple(piece for one in each for piece in one)
    if len(each) > 1:
        yield from each


def _drop_from_sum(node: ast.BinOp, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """One operand less; of three, also the one in the middle."""
    yield from (unit.replace_node(node, operand(unit, one)) for one in (node.left, node.right))
    if isinstance(node.left, ast.BinOp):
        start, end = unit.source.get_span(node.left.left)[1], unit.source.get_span(node.left.right)[1]
        yield (TextEdit(start, end, ""),)
    if isinstance(node.right, ast.BinOp):
        yield (TextEdit(unit.source.get_span(node.left)[1], unit.source.get_span(node.right.left)[1], ""),)


def _drop_operand(node: ast.AST, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """One operand less."""
    if isinstance(node, ast.BoolOp):
        for at, one in enumerate(node.values):
            if len(node.values) == 2:
                yield instead(unit, node, unit.get_code(node.values[1 - at]))
            elif at + 1 < len(node.values):
                yield (TextEdit(unit.source.get_span(one)[0], unit.source.get_span(node.values[at + 1])[0], ""),)
            else:
                yield (TextEdit(unit.source.get_span(node.values[at - 1])[1], unit.source.get_span(one)[1], ""),)
    elif isinstance(node, ast.IfExp):
        yield from (instead(unit, node, unit.get_code(one)) for one in (node.body, node.orelse))
    elif isinstance(node, ast.Compare) and len(node.comparators) > 1:
        yield (TextEdit(unit.source.get_span(node.left)[0], unit.source.get_span(node.comparators[0])[0], ""),)
        yield (
            TextEdit(unit.source.get_span(node.comparators[-2])[1], unit.source.get_span(node.comparators[-1])[1], ""),
        )


def _operand_swap(node: ast.BinOp | ast.Compare | ast.IfExp, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    if isinstance(node, ast.BinOp):
        pairs = [(node.left, node.right)]
        if isinstance(node.left, ast.BinOp):
            pairs.append((node.left.right, node.right))
    elif isinstance(node, ast.Compare):
        pairs = [(node.left, node.comparators[0])]
    else:
        pairs = [(node.body, node.orelse)]
    for one, two in pairs:
        yield (*unit.replace_node(one, term(unit, two)), *unit.replace_node(two, operand(unit, one)))


def _is_condition(node: ast.AST, unit: EditUnit) -> bool:
    above = unit.get_parent(node)
    if isinstance(above, ast.BoolOp):
        return True
    if isinstance(above, ast.If | ast.While | ast.IfExp | ast.Assert):
        return above.test is node
    return isinstance(above, ast.comprehension) and node in above.ifs


def _negate(node: ast.expr, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """The opposite."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield instead(unit, node, unit.get_code(node.operand))
    elif _is_condition(node, unit) or isinstance(unit.get_parent(node), ast.Return):
        text = unit.get_code(node)
        is_plain = isinstance(node, ast.Call | ast.Name | ast.Attribute)
        yield instead(unit, node, f"not {text}" if is_plain else f"not ({text})")


def _unary(node: ast.expr, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Another sign."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Invert | ast.UAdd):
        yield unit.replace_node(node, operand(unit, node.operand))
        yield unit.replace_node(node, f"abs({unit.get_code(node.operand)})")
    elif is_read(node) and isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript):
        above = unit.get_parent(node)
        if not (isinstance(above, ast.Attribute | ast.Starred) or (isinstance(above, ast.Call) and above.func is node)):
            yield unit.replace_node(node, f"-{unit.get_code(node)}")


def _cond_extend(node: ast.expr, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """One more condition: one that stands elsewhere in the function, or one about a name that is used here."""
    if not _is_condition(node, unit) or isinstance(unit.get_parent(node), ast.BoolOp):
        return
    own = operand(unit, node) if isinstance(node, ast.BoolOp | ast.IfExp | ast.Lambda) else unit.get_code(node)
    others = [unit.get_code(one) for one in unit.conditions if one is not node]
    names = unit.list_visible_names(node)
    plain = [f"{name}{rest}" for name in names for rest in ("", " is not None", " > 0")]
    for text in (*others, *plain, *(f"not {name}" for name in names)):
        yield unit.replace_node(node, f"{own} and {text}")
        yield unit.replace_node(node, f"{own} or {text}")
        yield unit.replace_node(node, f"{text} and {own}")
    for shape in _kin(node, unit):
        yield unit.replace_node(node, f"{own} or {shape}")
        yield unit.replace_node(node, f"{own} and {shape}")


def _kin(node: ast.expr, unit: EditUnit) -> Iterator[str]:
    """The conditions that a condition is made of, with one name exchanged for another."""
    parts = node.values if isinstance(node, ast.BoolOp) else [node]
    for part in parts:
        text, start = unit.get_code(part), unit.source.get_span(part)[0]
        uses = [one for one in ast.walk(part) if isinstance(one, ast.Name) and is_read(one)]
        for use in uses:
            at = unit.source.get_span(use)[0] - start
            for name in unit.list_visible_names(part):
                if name != use.id:
                    yield text[:at] + name + text[at + len(use.id) :]
        for one in uses:
            for two in uses:
                first, second = unit.source.get_span(one)[0] - start, unit.source.get_span(two)[0] - start
                if one.id != two.id and first < second:
                    swapped = (
                        TextEdit(first, first + len(one.id), two.id),
                        TextEdit(second, second + len(two.id), one.id),
                    )
                    yield apply_edits(text, swapped)


def _cond_replace(node: ast.expr, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Another condition of the function, a bare name, or none at all."""
    if not _is_condition(node, unit):
        return
    own = unit.get_code(node)
    for one in unit.conditions:
        if unit.get_code(one) != own:
            yield instead(unit, node, unit.get_code(one))
    names = unit.list_visible_names(node)
    for name in names:
        yield instead(unit, node, name)
        yield instead(unit, node, f"not {name}")
    for sign in ("==", "<", ">"):
        yield from (instead(unit, node, f"{one} {sign} {two}") for one in names for two in names if one < two)
    yield instead(unit, node, "True")
    yield instead(unit, node, "False")


_CONDITIONS = (ast.Compare, ast.Name, ast.Attribute, ast.Call, ast.BoolOp, ast.UnaryOp, ast.Constant, ast.Subscript)

TEMPLATES = (
    Template("cmp_op", 15, (ast.Compare,), _cmp_op),
    Template("bin_op", 5, (ast.BinOp,), _bin_op),
    Template("aug_op", 5, (ast.AugAssign, ast.Assign), _aug_op),
    Template("and_or", 6, (ast.BoolOp,), _and_or),
    Template("drop_operand", 4, (ast.BinOp,), _drop_from_sum),
    Template("drop_operand", 4, (ast.BoolOp, ast.IfExp, ast.Compare), _drop_operand),
    Template("operand_swap", 4, (ast.BinOp, ast.Compare, ast.IfExp), _operand_swap),
    Template("negate", 3, (*_CONDITIONS, ast.BinOp), _negate),
    Template("unary", 2, (ast.UnaryOp, ast.Name, ast.Attribute, ast.Call, ast.Subscript), _unary),
    Template("cond_extend", 2, _CONDITIONS, _cond_extend),
    Template("cond_replace", 1.5, _CONDITIONS, _cond_replace),
)
