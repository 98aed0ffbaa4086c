"""Orders of the waiting queue: named ones and safe expressions, both compiled to one small program.

An order is a score; the highest score stands first. Expressions use CQSim's variables and Python's
arithmetic, and are parsed, never evaluated by Python:

    s submit time, t believed length, n nodes, w wait so far (all seconds),
    z longest wait in the queue (0 counts as 1), l shortest believed length in the queue,
    and beyond CQSim: fairshare, partition (factors in 0…1), t_max (longest t of the workload),
    n_max (nodes of the machine); functions sqrt, log, log2, log10, exp, abs, min, max.
"""

import ast
import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from bridge.errors import BridgeError
from bridge.scheduler import score
from bridge.scheduler.state import INSTRUCTION, STACK, Array

#: Named orders as expressions. Sources: SchedInspector (2022) Table 3 for lcfs, sjf, saf, srf; Tang et
#: al. 2009 for wfp3, unicep; Carastan-Santos & de Camargo 2017 for f1…f4; SchedInspector §4.5 (Slurm's
#: multifactor plug-in, all weights 1000, age over 7 days) for slurm.
NAMED: Mapping[str, str] = {
    "fcfs": "-s",
    "lcfs": "s",
    "sjf": "-t",
    "ljf": "t",
    "saf": "-t*n",
    "srf": "-t/n",
    "wfp3": "(w/t)**3*n",
    "unicep": "w/(log2(max(n, 2))*t)",
    "f1": "-(log10(t)*n + 870*log10(max(s, 0.1)))",
    "f2": "-(sqrt(t)*n + 25600*log10(max(s, 0.1)))",
    "f3": "-(t*n + 6860000*log10(max(s, 0.1)))",
    "f4": "-(t*sqrt(n) + 530000*log10(max(s, 0.1)))",
    "slurm": "1000*min(w/604800, 1) + 1000*fairshare + 1000*t/t_max + 1000*partition",
}

_VARIABLES: Mapping[str, int] = {
    "s": score.OP_SUBMIT,
    "t": score.OP_LENGTH,
    "n": score.OP_NODES,
    "w": score.OP_WAIT,
    "z": score.OP_LONGEST_WAIT,
    "l": score.OP_SHORTEST,
    "fairshare": score.OP_FAIRSHARE,
    "partition": score.OP_PARTITION,
    "t_max": score.OP_LONGEST,
    "n_max": score.OP_MACHINE,
}
_CHANGING = frozenset({score.OP_WAIT, score.OP_LONGEST_WAIT, score.OP_SHORTEST, score.OP_FAIRSHARE})
_BINARY: Mapping[type[ast.operator], int] = {
    ast.Add: score.OP_ADD,
    ast.Sub: score.OP_SUB,
    ast.Mult: score.OP_MUL,
    ast.Div: score.OP_DIV,
    ast.FloorDiv: score.OP_FLOORDIV,
    ast.Mod: score.OP_MOD,
    ast.Pow: score.OP_POW,
}
_UNARY_CALLS: Mapping[str, int] = {
    "sqrt": score.OP_SQRT,
    "log": score.OP_LOG,
    "log2": score.OP_LOG2,
    "log10": score.OP_LOG10,
    "exp": score.OP_EXP,
    "abs": score.OP_ABS,
}
_FOLD_CALLS: Mapping[str, int] = {"min": score.OP_MIN, "max": score.OP_MAX}
_LONGEST_TEXT = 1000


@dataclass(frozen=True)
class Order:
    """An order, compiled.

    Attributes:
        name: the name or the expression it was made from.
        expression: the expression.
        program: INSTRUCTION [P], postfix.
        dynamic: scores change while jobs wait, so the queue is sorted at every pass.
        uses: opcodes of the variables it reads.
    """

    name: str
    expression: str
    program: Array
    dynamic: bool
    uses: frozenset[int]


class _Compiler:
    """Turns a parsed expression into postfix instructions; refuses whatever is not arithmetic."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.code: list[tuple[int, int, float]] = []
        self.depth = 0
        self.deepest = 0

    def refuse(self, node: ast.AST, what: str) -> BridgeError:
        column = getattr(node, "col_offset", 0) + 1
        return BridgeError(
            f"{what} at column {column}",
            where=f"order {self.text!r}",
            remedy="Use numbers, + - * / // % **, "
            f"{', '.join(_VARIABLES)}, and {', '.join([*_UNARY_CALLS, *_FOLD_CALLS])}.",
        )

    def emit(self, op: int, value: float = 0.0, change: int = 0) -> None:
        self.code.append((op, 0, value))
        self.depth += change
        self.deepest = max(self.deepest, self.depth)

    def visit(self, node: ast.expr) -> None:
        match node:
            case ast.Constant(value=bool()):
                raise self.refuse(node, "a truth value is not a number")
            case ast.Constant(value=int() | float()):
                try:
                    value = float(node.value)  # type: ignore[arg-type]
                except OverflowError:
                    value = math.inf
                if not math.isfinite(value):
                    raise self.refuse(node, "the number is too large")
                self.emit(score.OP_CONSTANT, value, 1)
            case ast.Name(id=name) if name in _VARIABLES:
                self.emit(_VARIABLES[name], 0.0, 1)
            case ast.Name(id=name):
                raise self.refuse(node, f"unknown variable {name!r}")
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                self.visit(operand)
                self.emit(score.OP_NEG)
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                self.visit(operand)
            case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _BINARY:
                self.visit(left)
                self.visit(right)
                self.emit(_BINARY[type(operator)], 0.0, -1)
            case ast.Call(func=ast.Name(id=name), args=[argument], keywords=[]) if name in _UNARY_CALLS:
                self.visit(argument)
                self.emit(_UNARY_CALLS[name])
            case ast.Call(func=ast.Name(id=name), args=[head, *rest], keywords=[]) if (
                name in _FOLD_CALLS and rest
            ):
                self.visit(head)
                for argument in rest:
                    self.visit(argument)
                    self.emit(_FOLD_CALLS[name], 0.0, -1)
            case _:
                raise self.refuse(node, f"{type(node).__name__} is not allowed")


def compile_expression(text: str, name: str | None = None) -> Order:
    """Compile an expression in CQSim's variables.

    Raises:
        BridgeError: it is not arithmetic on the known names, or nested too deeply.
    """
    where = f"order {text[:80]!r}"
    known = f"Named orders: {', '.join(NAMED)}. Otherwise an expression such as (w/t)**3*n."
    if len(text) > _LONGEST_TEXT:
        raise BridgeError(f"the expression is longer than {_LONGEST_TEXT} characters", where=where)
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise BridgeError("neither a named order nor an expression", where=where, remedy=known) from error
    compiler = _Compiler(text)
    if isinstance(tree.body, ast.Name) and tree.body.id not in _VARIABLES:
        raise BridgeError("unknown order", where=where, remedy=known)
    try:
        compiler.visit(tree.body)
    except RecursionError as error:
        raise BridgeError("the expression is nested too deeply", where=where) from error
    if compiler.deepest > STACK:
        raise BridgeError(f"the expression needs more than {STACK} stacked values", where=where)
    program = np.array(compiler.code, INSTRUCTION)
    uses = frozenset(int(op) for op, _, _ in compiler.code if op <= score.OP_MACHINE) - {score.OP_CONSTANT}
    return Order(name or text, text, program, bool(uses & _CHANGING), uses)


def order(name_or_expression: str, overrides: Mapping[str, str] | None = None) -> Order:
    """Return the named order (as a protocol may redefine it) or the compiled expression."""
    name = name_or_expression.strip()
    expressions = {**NAMED, **(overrides or {})}
    if name.lower() in expressions:
        return compile_expression(expressions[name.lower()], name.lower())
    return compile_expression(name)
