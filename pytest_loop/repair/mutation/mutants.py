"""Make the mutants of a file: small changes of its functions that tests should notice."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from pytest_loop.repair.candidates import EditCandidate
from pytest_loop.repair.edit_unit import EditUnit, FunctionNode, split_units
from pytest_loop.repair.python_source import PythonSource
from pytest_loop.repair.suspicion import Line
from pytest_loop.repair.templates import TEMPLATES
from pytest_loop.repair.templates.template import Hints
from pytest_loop.repair.text_edits import TextEdit, apply_edits

# The templates that make mutants, the nodes they apply to, and the number of mutants at each node.
_MUTATIONS: tuple[tuple[str, tuple[type[ast.AST], ...], int], ...] = (
    ("cmp_op", (ast.Compare,), 2),
    ("bin_op", (ast.BinOp,), 1),
    ("aug_op", (ast.AugAssign,), 1),
    ("and_or", (ast.BoolOp,), 1),
    ("const", (ast.Constant,), 1),
    ("negate", (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.UnaryOp), 1),
    ("minmax", (ast.Name,), 1),
    ("stmt_delete", (ast.Expr, ast.Assign, ast.AugAssign, ast.Raise), 1),
)
_TEMPLATES = {
    name: [template for template in TEMPLATES if template.name == name] for name in {name for name, _, _ in _MUTATIONS}
}


@dataclass(frozen=True)
class Mutant:
    """One change; a test reaches it by executing one of `lines`."""

    candidate: EditCandidate
    lines: frozenset[Line]

    @property
    def change(self) -> str:
        """The changed lines before and after, in one line."""
        candidate = self.candidate
        source = candidate.source
        first = source.get_line_number(min(edit.start for edit in candidate.edits))
        last = source.get_line_number(max(max(edit.end - 1, edit.start) for edit in candidate.edits))
        start, end = source.get_line_start(first), source.get_line_start(last + 1)
        before = source.text[start:end]
        inner = tuple(TextEdit(edit.start - start, edit.end - start, edit.text) for edit in candidate.edits)
        after = apply_edits(before, inner)
        old, new = (" / ".join(line.strip() for line in text.splitlines()) for text in (before, after))
        return f"`{old}` becomes `{new}`" if new else f"without `{old}`"


def make_mutants(source: PythonSource) -> Iterator[Mutant]:
    """Yield the mutants of all functions of a file, including duplicates and mutants that do not parse."""
    for unit in split_units(source):
        if unit.function is not None:
            yield from _mutate_function(unit, unit.function)


def _mutate_function(unit: EditUnit, function: FunctionNode) -> Iterator[Mutant]:
    first = function.body[0].lineno  # a change of the header would not change loaded functions
    for node in unit.nodes:
        line = getattr(node, "lineno", 0)
        if line < first or node is function:
            continue
        # Most tests cannot tell `is not` from `!=`.
        is_identity = isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Is | ast.IsNot)
        for name, nodes, limit in _MUTATIONS:
            if isinstance(node, nodes):
                yield from islice(_apply_template(name, node, unit, line), 1 if is_identity else limit)


def _apply_template(name: str, node: ast.AST, unit: EditUnit, line: int) -> Iterator[Mutant]:
    stmt = unit.find_statement(node)
    lines = {line} if stmt is None or hasattr(stmt, "body") else {line, stmt.lineno}
    reach = frozenset((str(unit.source.path), number) for number in lines)
    text = unit.source.text
    for template in _TEMPLATES[name]:
        if isinstance(node, template.nodes):
            for edits in template.edits(node, unit, Hints()):
                if any(text[edit.start : edit.end] != edit.text for edit in edits):
                    yield Mutant(EditCandidate(unit, edits, name, line, 1.0, 1), reach)
