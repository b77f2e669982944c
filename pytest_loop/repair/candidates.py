"""Make candidate edits and rank them: suspicious lines, likely templates and small edits first."""

from __future__ import annotations

import ast
import hashlib
import heapq
import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice

from pytest_loop.repair.edit_unit import EditUnit, split_units
from pytest_loop.repair.python_source import PythonSource
from pytest_loop.repair.templates import TEMPLATES
from pytest_loop.repair.templates.template import Hints, Template
from pytest_loop.repair.text_edits import TextEdits, apply_edits, count_changed_tokens

# Factors for templates by exception type. The table is fixed, so that a search does not depend on earlier ones.
_EXCEPTION_FACTORS: Mapping[str, Mapping[str, float]] = {
    "IndexError": {"off_by_one": 3, "slice_add": 3, "early_exit": 3, "guard_stmt": 2, "cmp_op": 2, "cond_extend": 2},
    "KeyError": {"dict_get": 10, "none_guard": 2, "guard_stmt": 2, "early_exit": 2, "const": 1.5, "cond_extend": 2},
    "NameError": {"var_swap": 3, "add_import": 10, "donor_name": 4, "self_attr": 5},
    "UnboundLocalError": {"var_swap": 2, "state_update": 3, "stmt_move": 3, "stmt_copy": 2},
    "AttributeError": {
        "none_guard": 4,
        "attr_swap": 4,
        "func_swap": 3,
        "self_attr": 3,
        "early_exit": 2,
        "wrap_call": 2,
        "drop_attr": 2,
    },
    "TypeError": {
        "none_guard": 4,
        "wrap_call": 2,
        "arg_swap": 2,
        "early_exit": 2,
        "default_value": 3,
        "await": 3,
        "return_expr": 2,
    },
    "ValueError": {"early_exit": 3, "guard_stmt": 2, "wrap_call": 1.5, "default_value": 2},
    "ZeroDivisionError": {"early_exit": 5, "guard_stmt": 2, "cond_extend": 2, "var_swap": 1.5},
    "RecursionError": {"early_exit": 4, "cmp_op": 2, "off_by_one": 3, "const": 1.5, "aug_op": 2},
    "Endless": {"state_update": 4, "aug_op": 3, "cmp_op": 2, "off_by_one": 2, "if_while": 3, "var_swap": 1.5},
    "StopIteration": {"early_exit": 3, "default_value": 2},
}
_SIZE_EXPONENT = 0.7  # large edits come later
_RANK_EXPONENT = 0.3  # the later edits of one template at one node come later too
_EDITS_AT_A_TIME = 8


@dataclass(frozen=True)
class EditCandidate:
    """One edit of one unit; the highest `score` is tried first. `tokens` counts the tokens that the edit changes."""

    unit: EditUnit
    edits: TextEdits
    template: str
    line: int
    score: float
    tokens: int

    @property
    def source(self) -> PythonSource:
        return self.unit.source

    @property
    def text(self) -> str:
        """The text of the file after the edit."""
        return apply_edits(self.source.text, self.edits)

    @property
    def _removed_words(self) -> list[str]:
        return [word for edit in self.edits for word in self.source.text[edit.start : edit.end].split()]

    @property
    def is_deletion(self) -> bool:
        """Whether the edit removes behaviour or a condition instead of changing it."""
        if self.template == "stmt_delete":
            return True
        if self.template == "drop_operand" and any(word in self._removed_words for word in ("and", "or")):
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


def _widen_unit(candidate: EditCandidate, module: EditUnit) -> EditCandidate:
    """Return the candidate, as an edit of the whole module if its edit reaches outside its unit."""
    start, end = candidate.unit.span
    if all(start <= edit.start and start < edit.end <= end for edit in candidate.edits):
        return candidate
    return replace(candidate, unit=module)


@dataclass(frozen=True)
class _EditSite:
    """A suspicious node, and the templates not yet applied to it, likely ones first."""

    unit: EditUnit
    node: ast.AST
    line: int
    suspicion: float
    templates: tuple[tuple[Template, float], ...]


@dataclass(frozen=True)
class _PendingEdits:
    """The edits of one template at a site that are not queued yet, and the upper bound of their scores."""

    site: _EditSite
    template: Template
    bound: float
    edits: Iterator[tuple[int, TextEdits]]


class CandidateQueue:
    """Yield candidates best first, and make the edits of a node only when its turn comes."""

    def __init__(self, suspicion: Mapping[tuple[str, int], float], hints: Hints, exceptions: tuple[str, ...]) -> None:
        self._lines: dict[str, dict[int, float]] = {}
        for (path, line), score in suspicion.items():
            self._lines.setdefault(path, {})[line] = score
        self._hints = hints
        templates = (template for template in TEMPLATES if hints.missing or not template.needs_missing_name)
        weights = ((template, _compute_weight(template, exceptions)) for template in templates)
        self._weights = sorted(weights, key=lambda pair: -pair[1])
        self._weights_by_node: dict[type[ast.AST], tuple[tuple[Template, float], ...]] = {}
        self._modules: dict[str, EditUnit] = {}
        self._generator = random.Random(0)  # noqa: S311 - the order of equal scores
        self._count = 0
        self._heap: list[tuple[float, bool, float, int, EditCandidate | EditUnit | _EditSite | _PendingEdits]] = []

    def add_source(self, source: PythonSource) -> None:
        """Add the units of a file that have suspicious lines."""
        lines = self._lines.get(str(source.path), {})
        units = list(split_units(source))
        self._modules[str(source.path)] = units[-1]
        for unit in units:
            if scores := [lines[line] for line in unit.lines & lines.keys()]:
                self._push(max(scores) * self._weights[0][1], unit)

    def __iter__(self) -> Iterator[EditCandidate]:
        while self._heap:
            _, _, _, _, entry = heapq.heappop(self._heap)
            if isinstance(entry, EditCandidate):
                yield entry
            elif isinstance(entry, EditUnit):
                self._open_unit(entry)
            elif isinstance(entry, _EditSite):
                self._open_template(entry)
            else:
                self._make_edits(entry)

    def _push(self, score: float, entry: EditCandidate | EditUnit | _EditSite | _PendingEdits) -> None:
        """Add an entry; among equal scores, candidates come last, so that all are queued before the first is taken."""
        is_candidate = isinstance(entry, EditCandidate)
        self._count += 1
        tie = self._generator.random() if is_candidate else 0.0
        heapq.heappush(self._heap, (-score, is_candidate, tie, self._count, entry))

    def _open_unit(self, unit: EditUnit) -> None:
        for node, line, score in _find_suspicious_nodes(unit, self._lines[str(unit.source.path)]):
            if templates := self._find_templates(type(node)):
                self._push(score * templates[0][1], _EditSite(unit, node, line, score, templates))

    def _open_template(self, site: _EditSite) -> None:
        """Queue the edits of the likeliest unused template of a node, and the node again for its other templates."""
        (template, weight), *others = site.templates
        edits = enumerate(filter(None, template.edits(site.node, site.unit, self._hints)))
        bound = site.suspicion * weight
        self._push(bound, _PendingEdits(site, template, bound, edits))
        if others:
            self._push(site.suspicion * others[0][1], replace(site, templates=tuple(others)))

    def _find_templates(self, node: type[ast.AST]) -> tuple[tuple[Template, float], ...]:
        if node not in self._weights_by_node:
            self._weights_by_node[node] = tuple(pair for pair in self._weights if issubclass(node, pair[0].nodes))
        return self._weights_by_node[node]

    def _make_edits(self, pending: _PendingEdits) -> None:
        """Queue the next candidates of a template, and the template again if it may make more."""
        site = pending.site
        text = site.unit.source.text
        rank = None
        for rank, edits in islice(pending.edits, _EDITS_AT_A_TIME):
            size = sum(count_changed_tokens(text[edit.start : edit.end], edit.text) or 1 for edit in edits)
            value = pending.bound / size**_SIZE_EXPONENT / (1 + rank) ** _RANK_EXPONENT
            candidate = EditCandidate(site.unit, edits, pending.template.name, site.line, value, size)
            self._push(value, _widen_unit(candidate, self._modules[str(site.unit.source.path)]))
        if rank is not None:
            self._push(pending.bound / (2 + rank) ** _RANK_EXPONENT, pending)


def rank_candidates(
    sources: Iterable[PythonSource],
    suspicion: Mapping[tuple[str, int], float],
    hints: Hints = Hints(),  # noqa: B008 - frozen
    exceptions: tuple[str, ...] = (),
) -> Iterator[EditCandidate]:
    """Yield every candidate, best first."""
    queue = CandidateQueue(suspicion, hints, exceptions)
    for source in sources:
        queue.add_source(source)
    return iter(queue)


class DuplicateFilter:
    """Keep candidates that parse, change something, and differ from all earlier ones."""

    def __init__(self) -> None:
        self._keys: set[bytes] = set()
        self._units: set[int] = set()

    def parse_if_new(self, candidate: EditCandidate) -> ast.stmt | ast.Module | None:
        """Return the tree of a candidate; None if it does not parse, changes nothing or repeats an earlier one."""
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
