"""Which edits are tried, and in which order: suspicious lines, likely templates and small edits first."""

from __future__ import annotations

import ast
import hashlib
import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from pytest_loop.repair.pieces import Pieces, changed_tokens, edited
from pytest_loop.repair.source import Source
from pytest_loop.repair.templates import TEMPLATES, Hints, Template
from pytest_loop.repair.unit import Unit, units

# What an exception makes more likely. A fixed table: the search must not depend on what it has seen elsewhere.
_RAISED: Mapping[str, Mapping[str, float]] = {
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
_LARGE = 0.7
_MANY = 0.3


@dataclass(frozen=True)
class Candidate:
    """One edit of one unit; `score` is how early it is tried."""

    unit: Unit
    pieces: Pieces
    template: str
    line: int
    suspicion: float
    score: float
    tokens: int

    @property
    def source(self) -> Source:
        return self.unit.source

    @property
    def text(self) -> str:
        """The whole file after the edit."""
        return edited(self.source.text, self.pieces)

    @property
    def is_deletion(self) -> bool:
        """Whether it takes behaviour away rather than changing it."""
        if self.template == "stmt_delete":
            return True
        return self.template == "cond_replace" and self.pieces[0].text.strip("()") in ("True", "False")


def _weight(template: Template, exceptions: Iterable[str]) -> float:
    return template.prior * max((_RAISED.get(name, {}).get(template.name, 1.0) for name in exceptions), default=1.0)


def _places(unit: Unit, suspicion: Mapping[int, float]) -> Iterator[tuple[ast.AST, int, float]]:
    """The nodes of suspicious lines. What spans several lines is as suspicious as the worst of its head."""
    for node in unit.nodes:
        first = getattr(node, "lineno", 0)
        if not first:
            continue
        is_block = isinstance(node, ast.stmt) and hasattr(node, "body")
        last = first if is_block else (getattr(node, "end_lineno", 0) or first)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            last = node.body[0].lineno
        best = max(range(first, last + 1), key=lambda line: suspicion.get(line, 0.0))
        score = suspicion.get(best, 0.0)
        if score <= 0.0:
            stmt = unit.statement(node)
            head = stmt.lineno if stmt is not None and not hasattr(stmt, "body") else 0
            score, best = suspicion.get(head, 0.0), head
        if score > 0.0:
            yield node, best, score


def _raw(unit: Unit, suspicion: Mapping[int, float], hints: Hints, exceptions: tuple[str, ...]) -> Iterator[Candidate]:
    for node, line, score in _places(unit, suspicion):
        for template in TEMPLATES:
            if isinstance(node, template.nodes):
                weight = _weight(template, exceptions)
                edits = [pieces for pieces in template.edits(node, unit, hints) if pieces]
                for rank, pieces in enumerate(edits):
                    size = sum(changed_tokens(unit.source.text[one.start : one.end], one.text) or 1 for one in pieces)
                    value = score * weight / size**_LARGE / (1 + rank) ** _MANY
                    yield Candidate(unit, pieces, template.name, line, score, value, size)


def _within(candidate: Candidate, module: Unit) -> Candidate:
    """The same candidate; that of the whole module, where its edit leaves the function."""
    start, end = candidate.unit.span
    if all(start <= piece.start and start < piece.end <= end for piece in candidate.pieces):
        return candidate
    return replace(candidate, unit=module)


def candidates(
    sources: Iterable[Source],
    suspicion: Mapping[tuple[str, int], float],
    hints: Hints = Hints(),  # noqa: B008 - frozen
    exceptions: tuple[str, ...] = (),
    seed: int = 0,
) -> list[Candidate]:
    """Every candidate, best first; equal scores in an order that the seed decides."""
    found: list[Candidate] = []
    for source in sources:
        lines = {line: score for (path, line), score in suspicion.items() if path == str(source.path)}
        known = list(units(source))
        module = known[-1]
        for unit in known:
            if any(line in unit.lines for line in lines):
                found += (_within(one, module) for one in _raw(unit, lines, hints, exceptions))
    chance = random.Random(seed)  # noqa: S311 - an order, not a secret
    ties = [chance.random() for _ in found]
    order = sorted(range(len(found)), key=lambda at: (-found[at].score, ties[at]))
    return [found[at] for at in order]


class Sieve:
    """Lets through what parses, changes something, and is not what was tried before."""

    def __init__(self) -> None:
        self._seen: set[bytes] = set()
        self._units: set[int] = set()

    def tree(self, candidate: Candidate) -> ast.stmt | ast.Module | None:
        """The tree of a new candidate; None where there is nothing to try."""
        unit = candidate.unit
        if id(unit) not in self._units:
            self._units.add(id(unit))
            original = unit.parsed(())
            if original is not None:
                self._seen.add(_key(unit, original))
        tree = unit.parsed(candidate.pieces)
        if tree is None:
            return None
        key = _key(unit, tree)
        if key in self._seen:
            return None
        self._seen.add(key)
        return tree


def _key(unit: Unit, tree: ast.AST) -> bytes:
    name = f"{unit.source.path}:{unit.first_line}:{type(unit.node).__name__}:"
    return hashlib.blake2b((name + ast.dump(tree)).encode("utf-8", "surrogatepass"), digest_size=16).digest()
