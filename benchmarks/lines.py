"""Counts the lines of code that a task of the benchmark of derivatives takes in a tool, from its source.

What counts are the lines of the tool's method and of all formulas and helpers that it uses, each statement on one line,
without comments, docstrings and imports. Of what depends on the task's own settings, the branch that it takes counts;
what only the benchmark needs does not.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from typing import Any

from benchmarks.peers.tasks import Task

__all__ = ["lines"]

OWN = {"jax_library", "jitted", "draw"}  # of the benchmark, in whose place a user has `jax.jit` and imports


class _Taken(ast.NodeTransformer):
    """Leaves of a function's text what a task runs, and notes the names that it uses."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.used: dict[str, None] = {}

    def _holds(self, test: ast.expr) -> bool | None:
        """Whether a condition on the task's settings is true; None for other conditions."""
        if {node.id for node in ast.walk(test) if isinstance(node, ast.Name)} != {"self"}:
            return None
        return bool(eval(compile(ast.Expression(test), "", "eval"), {"self": self.task}))

    def visit_If(self, node: ast.If) -> Any:
        holds = self._holds(node.test)
        if holds is None:
            return self.generic_visit(node)
        return [self.visit(part) for part in (node.body if holds else node.orelse)]

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        holds = self._holds(node.test)
        return self.generic_visit(node) if holds is None else self.visit(node.body if holds else node.orelse)

    def visit_Import(self, node: ast.Import) -> None:
        return None

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        return None

    def visit_Expr(self, node: ast.Expr) -> Any:
        return None if isinstance(node.value, ast.Constant) else self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> Any:
        value = node.value
        imported = isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "jax_library"
        return None if imported else self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        if isinstance(node.value, ast.Name) and node.value.id == "self":
            self.used[f"self.{node.attr}"] = None
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> Any:
        self.used[node.id] = None
        return node


def lines(task: Task, tool: str) -> int:
    """The number of lines that a task takes in a tool: the name of a method of the task."""
    waiting, seen, count = [getattr(type(task), tool)], set(), 0
    while waiting:
        function = waiting.pop()
        seen.add(function)
        text = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
        assert isinstance(text, ast.FunctionDef)
        taken = _Taken(task)
        body: list[ast.stmt] = []
        for statement in text.body:
            made = taken.visit(statement)
            body += made if isinstance(made, list) else [made]
            if body and isinstance(body[-1], ast.Return):
                break
        text.body = [statement for statement in body if statement is not None]
        written = ast.unparse(ast.fix_missing_locations(ast.Module(text.body, [])))
        count += len([line for line in written.splitlines() if line.strip()]) + (function.__name__ != tool)  # its `def`
        for name in taken.used:
            if name.startswith("self."):
                found = getattr(type(task), name[5:], None)
            else:
                found = function.__globals__.get(name)
            if inspect.isfunction(found) and found.__module__.startswith("benchmarks.") and name not in OWN:
                waiting += [found] * (found not in seen and found not in waiting)
    return count
