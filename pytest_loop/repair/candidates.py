"""Make candidate edits and rank them: suspicious lines, likely templates and small edits first."""

from __future__ import annotations

import ast
import hashlib
import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from pytest_loop.repair.edit_unit import EditUnit, split_units
from pytest_loop.repair.python_source import PythonSource
from pytest_loop.repair.templates import TEMPLATES
from pytest_loop.repair.templates.template import Hints, Template
from pytest_loop.repair.text_edits import TextEdits, apply_edits, count_changed_tokens

# Factors for templates by exception type. The table is fixed, so that a search does not depend on earlier ones.
_EXCEPTION_FACTORS: Mapping[str, Mapping[str, float]] = {
    "IndexError": {"off_by_one": 3, "slice_add": 3, "early_exit": 3, "guard_stmt": 2, "cmp_op": 2, "cond_extend": 2},
    "KeyError": {"dict_get": 10, "guard_stmt": 2, "early_exit": 2, "const": 1.5, "cond_extend": 2},
    "NameError": {"var_swap": 3, "add_import": 10, "donor_name": 4, "self_attr": 5},
    "UnboundLocalError": {"var_swap": 2, "state_update": 3, "stmt_move": 3, "stmt_copy": 2},
    "AttributeError": {"attr_swap": 4, "func_swap": 3, "self_attr": 3, "early_exit": 2, "wrap_call": 2, "drop_attr": 2},
    "TypeError": {"wrap_call": 2, "arg_swap": 2, "early_exit": 2, "default_value": 3, "await": 3, "return_expr": 2},
    "ValueError": {"early_exit": 3, "guard_stmt": 2, "wrap_call": 1.5, "default_value": 2},
    "ZeroDivisionError": {"early_exit": 5, "guard_stmt": 2, "cond_extend": 2, "var_swap": 1.5},
    "RecursionError": {"early_exit": 4, "cmp_op": 2, "off_by_one": 3, "const": 1.5, "aug_op": 2},
    "Endless": {"state_update": 4, "aug_op": 3, "cmp_op": 2, "off_by_one": 2, "if_while": 3, "var_swap": 1.5},
    "StopIteration": {"early_exit": 3, "default_value": 2},
}
_SIZE_EXPONENT = 0.7  # large edits come later
_RANK_EXPONENT = 0.3  # and so do the later edits of one template at one node


@dataclass(frozen=True)
class Candidate:
    """One edit of one unit; the highest `score` is tried first."""

    unit: EditUnit
    edits: TextEdits
    template: str
    line: int
    suspicion: float
    score: float
    tokens: int

    @property
    def source(self) -> PythonSource:
        return self.unit.source

    @property
    def text(self) -> str:
        """The whole file after the edit."""
        return apply_edits(self.source.text, self.edits)

    @property
    def is_deletion(self) -> bool:
        """Whether the edit removes behaviour instead of changing it."""
        if self.template == "stmt_delete":
            return True
        return self.template == "cond_replace" and self.edits[0].text.strip("()") in ("True", "False")


def _compute_weight(template: Template, exceptions: Iterable[str]) -> float:
    factors = (_EXCEPTION_FACTORS.get(name, {}).get(template.name, 1.0) for name in exceptions)
    return template.prior * max(factors, default=1.0)


def _find_suspicious_nodes(unit: EditUnit, suspicion: Mapping[int, float]) -> Iterator[tuple[ast.AST, int, float]]:
    """Yield nodes of suspicious lines with their line and score; a multi-line node has its worst line's score."""
    for node in unit.nodes:
        first = getattr(node, "lineno", 0)
        if not first:
            continue
        is_block = isinstance(node, ast.stmt) and hasattr(node, "body")
        last = first if is_block else (getattr(node, "end_lineno", 0) or first)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            last = node.body[0].lineno
        line = max(range(first, last + 1), key=lambda number: suspicion.get(number, 0.0))
        score = suspicion.get(line, 0.0)
        if score <= 0.0:
            stmt = unit.find_statement(node)
            line = stmt.lineno if stmt is not None and not hasattr(stmt, "body") else 0
            score = suspicion.get(line, 0.0)
        if score > 0.0:
            yield node, line, score


def _make_candidates(
    unit: EditUnit, suspicion: Mapping[int, float], hints: Hints, exceptions: tuple[str, ...]
) -> Iterator[Candidate]:
    text = unit.source.text
    for node, line, score in _find_suspicious_nodes(unit, suspicion):
        for template in TEMPLATES:
            if not isinstance(node, template.nodes):
                continue
            weight = _compute_weight(template, exceptions)
            for rank, edits in enumerate(filter(None, template.edits(node, unit, hints))):
                size = sum(count_changed_tokens(text[edit.start : edit.end], edit.text) or 1 for edit in edits)
                value = score * weight / size**_SIZE_EXPONENT / (1 + rank) ** _RANK_EXPONENT
                yield Candidate(unit, edits, template.name, line, score, value, size)


def _widen_unit(candidate: Candidate, module: EditUnit) -> Candidate:
    """Make a candidate one of the whole module if its edit leaves the function."""
    start, end = candidate.unit.span
    if all(start <= edit.start and start < edit.end <= end for edit in candidate.edits):
        return candidate
    return replace(candidate, unit=module)


def rank_candidates(
    sources: Iterable[PythonSource],
    suspicion: Mapping[tuple[str, int], float],
    hints: Hints = Hints(),  # noqa: B008 - frozen
    exceptions: tuple[str, ...] = (),
    seed: int = 0,
) -> list[Candidate]:
    """Return every candidate, best first; the seed decides the order of equal scores."""
    candidates: list[Candidate] = []
    for source in sources:
        lines = {line: score for (path, line), score in suspicion.items() if path == str(source.path)}
        units = list(split_units(source))
        module = units[-1]
        for unit in units:
            if any(line in unit.lines for line in lines):
                made = _make_candidates(unit, lines, hints, exceptions)
                candidates += (_widen_unit(candidate, module) for candidate in made)
    generator = random.Random(seed)  # noqa: S311 - an order, not a secret
    ties = [generator.random() for _ in candidates]
    order = sorted(range(len(candidates)), key=lambda index: (-candidates[index].score, ties[index]))
    return [candidates[index] for index in order]


class DuplicateFilter:
    """Keep candidates that parse, change something, and differ from all earlier ones."""

    def __init__(self) -> None:
        self._keys: set[bytes] = set()
        self._units: set[int] = set()

    def parse_if_new(self, candidate: Candidate) -> ast.stmt | ast.Module | None:
        """Return the tree of a new candidate, or None if there is nothing to try."""
        unit = candidate.unit
        if id(unit) not in self._units:
            self._units.add(id(unit))
            original = unit.parse_edited(())
            if original is not None:
                self._keys.add(_compute_key(unit, original))
        tree = unit.parse_edited(candidate.edits)
        if tree is None:
            return None
        key = _compute_key(unit, tree)
        if key in self._keys:
            return None
        self._keys.add(key)
        return tree


def _compute_key(unit: EditUnit, tree: ast.AST) -> bytes:
    name = f"{unit.source.path}:{unit.first_line}:{type(unit.node).__name__}:"
    return hashlib.blake2b((name + ast.dump(tree)).encode("utf-8", "surrogatepass"), digest_size=16).digest()
