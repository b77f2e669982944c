"""Hold a Python file as text and syntax tree, and convert positions of the tree to offsets in the text."""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from functools import cached_property
from itertools import accumulate
from pathlib import Path

_MAX_STRING_LENGTH = 40


class PythonSource:
    """One parsed file."""

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self.text = text
        self.tree = ast.parse(text)
        self.lines = text.splitlines(keepends=True)
        self._starts = [0, *accumulate(map(len, self.lines))]

    @classmethod
    def read(cls, path: Path, edited_texts: Mapping[str, str]) -> PythonSource | None:
        """Read a file from `edited_texts` or from disk; return None if it is not valid Python."""
        try:
            text = edited_texts.get(str(path))
            return cls(path, path.read_bytes().decode("utf-8") if text is None else text)
        except (OSError, ValueError, SyntaxError):
            return None

    def get_offset(self, line: int, column: int) -> int:
        """Convert a position in the tree, which counts bytes, to an offset in the text."""
        start = self._starts[line - 1]
        if line > len(self.lines):
            return start
        row = self.lines[line - 1]
        return start + (column if row.isascii() else len(row.encode()[:column].decode("utf-8", "ignore")))

    def get_line_number(self, offset: int) -> int:
        return bisect_right(self._starts, offset)

    def get_line_start(self, line: int) -> int:
        return self._starts[min(line, len(self._starts)) - 1]

    def get_span(self, node: ast.expr | ast.stmt | ast.arg | ast.keyword) -> tuple[int, int]:
        end = self.get_offset(node.end_lineno or node.lineno, node.end_col_offset or node.col_offset)
        return self.get_offset(node.lineno, node.col_offset), end

    def get_code(self, node: ast.expr | ast.stmt | ast.arg | ast.keyword) -> str:
        start, end = self.get_span(node)
        return self.text[start:end]

    def has_right_position(self, node: ast.expr) -> bool:
        """Return whether the text at an expression's position is its code; before 3.12, f-strings may differ."""
        try:
            return ast.dump(ast.parse(f"({self.get_code(node)})", mode="eval").body) == ast.dump(node)
        except SyntaxError:
            return False

    def is_alone_on_lines(self, stmt: ast.stmt) -> bool:
        """Return whether nothing but a comment is on the lines of a statement."""
        start, end = self.get_span(stmt)
        before = self.text[self.get_line_start(stmt.lineno) : start]
        after = self.text[end : self.get_line_start(self.get_line_number(end - 1) + 1)].strip()
        return not before.strip() and (not after or after.startswith("#"))

    # -- facts about the whole file, for templates

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.tree))

    @cached_property
    def numbers(self) -> list[str]:
        """The different numbers, as code."""
        values = (node.value for node in self.nodes if isinstance(node, ast.Constant))
        return list(dict.fromkeys(repr(value) for value in values if type(value) in (int, float)))

    @cached_property
    def short_strings(self) -> list[str]:
        values = (node.value for node in self.nodes if isinstance(node, ast.Constant))
        strings = (value for value in values if isinstance(value, str) and len(value) < _MAX_STRING_LENGTH)
        return list(dict.fromkeys(strings))

    @cached_property
    def single_argument_functions(self) -> list[str]:
        """The functions of other modules and the methods of `self` that the file calls with one argument."""
        calls = (
            node for node in self.nodes if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords
        )
        names = (self.get_code(node.func) for node in calls if isinstance(node.func, ast.Attribute))
        return list(
            dict.fromkeys(name for name in names if name.count(".") == 1 and name.replace(".", "").isidentifier())
        )

    @cached_property
    def constant_method_calls(self) -> list[str]:
        """The method calls whose arguments are constants, such as `strip('x')`."""
        calls = [node for node in self.nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)]
        texts: dict[str, None] = {}
        for node in calls:
            values = [*node.args, *(keyword.value for keyword in node.keywords)]
            if all(isinstance(value, ast.Constant) for value in values) and isinstance(node.func, ast.Attribute):
                start, end = self.get_span(node.func.value)[1], self.get_span(node)[1]
                text = self.text[start:end].lstrip(".")
                if "\n" not in text and len(text) < _MAX_STRING_LENGTH:
                    texts[text] = None
        return list(texts)

    @cached_property
    def default_parameters(self) -> dict[str, list[str]]:
        """The names of parameters with a default, by function name."""
        functions = (node for node in self.nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
        parameters: dict[str, list[str]] = {}
        for node in functions:
            positional = node.args.args[len(node.args.args) - len(node.args.defaults) :]
            keywords = [
                arg
                for arg, default in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
                if default is not None
            ]
            parameters.setdefault(node.name, []).extend(arg.arg for arg in (*positional, *keywords))
        return parameters

    @cached_property
    def callables(self) -> dict[str, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
        """The functions and classes of the module, by name."""
        kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
        return {stmt.name: stmt for stmt in self.tree.body if isinstance(stmt, kinds)}

    def list_attributes(self, base: str) -> list[str]:
        """List the attributes that the file reads, writes or declares, those used on `base` first."""
        near = self._attributes_by_base.get(base, {})
        return [*near, *(name for name in self._attributes if name not in near)]

    def list_methods(self, base: str) -> list[str]:
        """List the methods that the file calls, those called on `base` first."""
        near = self._methods_by_base.get(base, {})
        return [*near, *(name for name in self._methods if name not in near)]

    @cached_property
    def _attributes(self) -> dict[str, None]:
        fields = (
            stmt.target.id
            for node in self.tree.body
            if isinstance(node, ast.ClassDef)
            for stmt in node.body
            if isinstance(stmt, ast.AnnAssign) and isinstance(stmt.target, ast.Name)
        )
        accessed = (node.attr for node in self.nodes if isinstance(node, ast.Attribute))
        return dict.fromkeys((*accessed, *fields))

    @cached_property
    def _attributes_by_base(self) -> dict[str, dict[str, None]]:
        return _group_by_base(node for node in self.nodes if isinstance(node, ast.Attribute))

    @cached_property
    def _methods(self) -> dict[str, None]:
        return dict.fromkeys(node.attr for node in self._called_attributes)

    @cached_property
    def _methods_by_base(self) -> dict[str, dict[str, None]]:
        return _group_by_base(self._called_attributes)

    @cached_property
    def _called_attributes(self) -> list[ast.Attribute]:
        functions = (node.func for node in self.nodes if isinstance(node, ast.Call))
        return [function for function in functions if isinstance(function, ast.Attribute)]


def _group_by_base(nodes: Iterable[ast.Attribute]) -> dict[str, dict[str, None]]:
    """Group the names of attributes by the name before the dot."""
    groups: dict[str, dict[str, None]] = {}
    for node in nodes:
        if isinstance(node.value, ast.Name):
            groups.setdefault(node.value.id, {})[node.attr] = None
    return groups
