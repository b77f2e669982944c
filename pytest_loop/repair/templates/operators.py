"""Templates for wrong operators in comparisons, arithmetic and conditions."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import permutations

from pytest_loop.repair.edit_unit import EditUnit
from pytest_loop.repair.templates.template import (
    Hints,
    Template,
    get_operand,
    get_term,
    is_read,
    is_whole_value,
    remove_item,
    substitute,
)
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


def _replace_operator(unit: EditUnit, left: ast.expr, right: ast.expr, sign: str, other: str) -> TextEdits:
    """Replace the operator between two expressions."""
    start, end = unit.source.get_span(left)[1], unit.source.get_span(right)[0]
    middle = unit.source.text[start:end]
    words = sign.split()
    at = middle.find(words[0])
    last = middle.find(words[-1], at + (len(words) > 1)) + len(words[-1])
    if at < 0 or "#" in middle[:at]:
        return ()
    return (TextEdit(start + at, start + last, other),)


def _replace_comparison(node: ast.Compare, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    sides = [node.left, *node.comparators]
    for index, op in enumerate(node.ops):
        sign, others = _COMPARISONS[type(op)]
        yield from (_replace_operator(unit, sides[index], sides[index + 1], sign, other) for other in others)


def _replace_arithmetic(node: ast.BinOp, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    if type(node.op) in _ARITHMETIC:
        sign, others = _ARITHMETIC[type(node.op)]
        yield from (_replace_operator(unit, node.left, node.right, sign, other) for other in others)
    for part, rest in ((node.left, node.right), (node.right, node.left)):
        if isinstance(part, ast.BinOp):
            yield from _regroup(node, part, rest, unit)


def _regroup(node: ast.BinOp, part: ast.BinOp, rest: ast.expr, unit: EditUnit) -> Iterator[TextEdits]:
    """Yield the other grouping of three operands."""
    if type(node.op) not in _ARITHMETIC or type(part.op) not in _ARITHMETIC:
        return
    outer, inner = _ARITHMETIC[type(node.op)][0], _ARITHMETIC[type(part.op)][0]
    operands = (part.left, part.right, rest) if part is node.left else (rest, part.left, part.right)
    first, second, third = (get_operand(unit, item) for item in operands)
    if part is node.left:
        yield substitute(unit, node, f"{first} {inner} ({second} {outer} {third})")
    else:
        yield substitute(unit, node, f"({first} {outer} {second}) {inner} {third}")


def _round_division_up(node: ast.BinOp, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Round a division up."""
    if isinstance(node.op, ast.FloorDiv):
        left, right = get_operand(unit, node.left), get_operand(unit, node.right)
        yield substitute(unit, node, f"-(-{left} // {right})")


def _replace_assignment_operator(node: ast.AST, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    if isinstance(node, ast.AugAssign) and type(node.op) in _ARITHMETIC:
        sign, others = _ARITHMETIC[type(node.op)]
        for other in (*others, ""):
            yield _replace_operator(unit, node.target, node.value, f"{sign}=", f"{other}=")
    elif isinstance(node, ast.Assign) and len(node.targets) == 1 and not isinstance(node.targets[0], ast.Tuple):
        for other in ("+", "-", "*"):
            yield _replace_operator(unit, node.targets[0], node.value, "=", f"{other}=")
        target = unit.get_code(node.targets[0])
        yield unit.replace_node(node.value, f"{target} + {get_term(unit, node.value)}")


def _swap_and_or(node: ast.BoolOp, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    sign, other = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
    pairs = list(zip(node.values, node.values[1:], strict=False))
    each = [_replace_operator(unit, left, right, sign, other) for left, right in pairs]
    yield tuple(edit for edits in each for edit in edits)
    if len(each) > 1:
        yield from each


def _drop_arithmetic_operand(node: ast.BinOp, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Drop an operand of an operation; with three operands, also the middle one."""
    yield from (unit.replace_node(node, get_operand(unit, side)) for side in (node.left, node.right))
    if isinstance(node.left, ast.BinOp):
        start, end = unit.source.get_span(node.left.left)[1], unit.source.get_span(node.left.right)[1]
        yield (TextEdit(start, end, ""),)
    if isinstance(node.right, ast.BinOp):
        yield (TextEdit(unit.source.get_span(node.left)[1], unit.source.get_span(node.right.left)[1], ""),)


def _drop_operand(node: ast.AST, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Drop an operand of a condition, a conditional expression or a chained comparison."""
    if isinstance(node, ast.BoolOp):
        if len(node.values) == 2:
            yield from (substitute(unit, node, unit.get_code(value)) for value in reversed(node.values))
        else:
            yield from (remove_item(unit, node.values, index) for index in range(len(node.values)))
    elif isinstance(node, ast.IfExp):
        yield from (substitute(unit, node, unit.get_code(branch)) for branch in (node.body, node.orelse))
    elif isinstance(node, ast.Compare) and len(node.comparators) > 1:
        yield (TextEdit(unit.source.get_span(node.left)[0], unit.source.get_span(node.comparators[0])[0], ""),)
        yield (
            TextEdit(unit.source.get_span(node.comparators[-2])[1], unit.source.get_span(node.comparators[-1])[1], ""),
        )


def _swap_operands(node: ast.BinOp | ast.Compare | ast.IfExp, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    if isinstance(node, ast.BinOp):
        pairs = [(node.left, node.right)]
        if isinstance(node.left, ast.BinOp):
            pairs.append((node.left.right, node.right))
    elif isinstance(node, ast.Compare):
        pairs = [(node.left, node.comparators[0])]
    else:
        pairs = [(node.body, node.orelse)]
    for first, second in pairs:
        yield (*unit.replace_node(first, get_term(unit, second)), *unit.replace_node(second, get_operand(unit, first)))


def _is_condition(node: ast.AST, unit: EditUnit) -> bool:
    parent = unit.get_parent(node)
    if isinstance(parent, ast.BoolOp):
        return True
    if isinstance(parent, ast.If | ast.While | ast.IfExp | ast.Assert):
        return parent.test is node
    return isinstance(parent, ast.comprehension) and node in parent.ifs


def _negate(node: ast.expr, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Negate a condition or a result."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield substitute(unit, node, unit.get_code(node.operand))
    elif _is_condition(node, unit) or isinstance(unit.get_parent(node), ast.Return):
        text = unit.get_code(node)
        is_plain = isinstance(node, ast.Call | ast.Name | ast.Attribute)
        yield substitute(unit, node, f"not {text}" if is_plain else f"not ({text})")


def _change_sign(node: ast.expr, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Add a minus sign, remove a sign, or replace it by `abs`."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Invert | ast.UAdd):
        yield unit.replace_node(node, get_operand(unit, node.operand))
        yield unit.replace_node(node, f"abs({unit.get_code(node.operand)})")
    elif isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript) and is_whole_value(unit, node):
        yield unit.replace_node(node, f"-{unit.get_code(node)}")


def _extend_condition(node: ast.expr, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Combine a condition with another condition of the function, or with a test of a visible name."""
    if not _is_condition(node, unit) or isinstance(unit.get_parent(node), ast.BoolOp):
        return
    code = get_operand(unit, node) if isinstance(node, ast.BoolOp | ast.IfExp | ast.Lambda) else unit.get_code(node)
    others = [unit.get_code(condition) for condition in unit.conditions if condition is not node]
    names = unit.list_visible_names(node)
    plain = [f"{name}{rest}" for name in names for rest in ("", " is not None", " > 0")]
    for text in (*others, *plain, *(f"not {name}" for name in names)):
        yield unit.replace_node(node, f"{code} and {text}")
        yield unit.replace_node(node, f"{code} or {text}")
        yield unit.replace_node(node, f"{text} and {code}")
    for variant in _vary_condition(node, unit):
        yield unit.replace_node(node, f"{code} or {variant}")
        yield unit.replace_node(node, f"{code} and {variant}")


def _vary_condition(node: ast.expr, unit: EditUnit) -> Iterator[str]:
    """Yield the parts of a condition with one name replaced, or two names swapped."""
    parts = node.values if isinstance(node, ast.BoolOp) else [node]
    for part in parts:
        text, start = unit.get_code(part), unit.source.get_span(part)[0]
        uses = [name for name in ast.walk(part) if isinstance(name, ast.Name) and is_read(name)]
        for use in uses:
            at = unit.source.get_span(use)[0] - start
            for name in unit.list_visible_names(part):
                if name != use.id:
                    yield text[:at] + name + text[at + len(use.id) :]
        for first, second in permutations(uses, 2):
            starts = [unit.source.get_span(use)[0] - start for use in (first, second)]
            if first.id != second.id and starts[0] < starts[1]:
                swapped = (
                    TextEdit(starts[0], starts[0] + len(first.id), second.id),
                    TextEdit(starts[1], starts[1] + len(second.id), first.id),
                )
                yield apply_edits(text, swapped)


def _replace_condition(node: ast.expr, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Use another condition of the function, a visible name or a constant."""
    if not _is_condition(node, unit):
        return
    code = unit.get_code(node)
    for condition in unit.conditions:
        if unit.get_code(condition) != code:
            yield substitute(unit, node, unit.get_code(condition))
    names = unit.list_visible_names(node)
    for name in names:
        yield substitute(unit, node, name)
        yield substitute(unit, node, f"not {name}")
    for sign in ("==", "<", ">"):
        yield from (
            substitute(unit, node, f"{name} {sign} {other}") for name in names for other in names if name < other
        )
    yield substitute(unit, node, "True")
    yield substitute(unit, node, "False")


_CONDITIONS = (ast.Compare, ast.Name, ast.Attribute, ast.Call, ast.BoolOp, ast.UnaryOp, ast.Constant, ast.Subscript)

TEMPLATES = (
    Template("cmp_op", 15, (ast.Compare,), _replace_comparison),
    Template("bin_op", 5, (ast.BinOp,), _replace_arithmetic),
    Template("bin_op", 3, (ast.BinOp,), _round_division_up),
    Template("aug_op", 5, (ast.AugAssign, ast.Assign), _replace_assignment_operator),
    Template("and_or", 6, (ast.BoolOp,), _swap_and_or),
    Template("drop_operand", 4, (ast.BinOp,), _drop_arithmetic_operand),
    Template("drop_operand", 4, (ast.BoolOp, ast.IfExp, ast.Compare), _drop_operand),
    Template("operand_swap", 4, (ast.BinOp, ast.Compare, ast.IfExp), _swap_operands),
    Template("negate", 3, (*_CONDITIONS, ast.BinOp), _negate),
    Template("unary", 2, (ast.UnaryOp, ast.Name, ast.Attribute, ast.Call, ast.Subscript), _change_sign),
    Template("cond_extend", 2, _CONDITIONS, _extend_condition),
    Template("cond_replace", 1.5, _CONDITIONS, _replace_condition),
)
