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
from dataclasses import dataclass, field, replace

import numpy as np

from bridge.base import plugins
from bridge.base.arrays import Array
from bridge.base.errors import BridgeError
from bridge.scheduler.lookahead import Lookahead, split
from bridge.scheduler.names import CLUSTER_ORDERS, ORDERS, RECORDED, refuse_recorded
from bridge.scheduler.python_rules import Scorer
from bridge.scheduler.score import FIRST_VIEW, LAST_VARIABLE, Op
from bridge.scheduler.state import INSTRUCTION, STACK, VIEWS


def _names(first: Op, last: Op) -> dict[str, Op]:
    """Return the opcodes from one to another by what they are called in an expression."""
    return {op.name.lower(): op for op in Op if first <= op <= last}


_VARIABLES = _names(Op.S, Op.N_MAX)
#: What features see beyond orders' variables (times in seconds): free nodes; whether the job fits now; time
#: until the blocked head's reservation, and the nodes that are extra then (0 without one); whether the job is
#: that head; whether EASY may start it now; how often it was rejected; jobs waiting and running; the sum of
#: 1/max(t, 10) over the waiting jobs, which is the rate at which their bounded slowdowns grow; how many
#: others fit now (0 without backfilling); wait, length and nodes of the head; for how long a running job is
#: believed to run on; how long a job has run (under a rule of action: what of it is kept), and what orders
#: believe is left of it; the former of the head; whether the rule of action would choose the job
#: (1; of the row that declines −1); the sum of 1/max(t, 1) over waiting and running jobs.
VIEW = _names(Op.FREE, Op.LOAD)
#: Variables of one resource, ``share[0]`` for nodes: the job's demand and what is in use, as fractions of the
#: capacity; and the resource's part in all that waiting and running jobs ask for (MRSch, Eq. 1).
OF_RESOURCE = _names(Op.SHARE, Op.GOAL)
#: On a cluster, of a job: share of the nodes that may take it; share of its partition's cores that are free,
#: and jobs that wait there; share of the cluster's cores that its account uses; priority of its QOS, of the
#: highest. Of the site: jobs that wait for a begin time or the end of a hold, for other jobs, at a limit, for
#: ever.
OF_CLUSTER = _names(Op.ADMISSIBLE, Op.WAITING_NEVER)
#: Of one partition or QOS, by its place in the description (``in_partition[0]``): whether the job is there.
#: Of one amount of a node (0 cores, 1 memory, 2 GPUs): what the job asks of each node (or for each task), and
#: the most that is free on a node that may take it, as shares of the largest node's.
OF_PLACE = _names(Op.IN_PARTITION, Op.FREE_NODE)
#: How many places there are: amounts of a node; those of partitions and QOS are compared with the cluster.
_PLACES = {"in_partition": 1_000, "in_qos": 1_000, "per_node": 3, "free_node": 3}
#: Of all these, what says nothing about a particular job.
OF_MACHINE = frozenset(
    {"t_max", "n_max", "free", "gap", "extra", "waiting", "running", "cost", "backfillable"}
    | {"head_w", "head_t", "head_n", "head_served", "load", "used", "goal"}
    | {"waiting_begin", "waiting_dependency", "waiting_limit", "waiting_never"}
)
#: What changes while a job waits.
_CHANGING = frozenset({"w", "z", "l", "fairshare"})
#: Operators by the names of Python's syntax tree.
_BINARY = _names(Op.ADD, Op.POW)
_UNARY_CALLS, _FOLD_CALLS = _names(Op.SQRT, Op.ABS), _names(Op.MIN, Op.MAX)
_LONGEST_TEXT = 1000


@dataclass(frozen=True)
class Order:
    """An order, compiled.

    Attributes:
        name: the name or the expression it was made from.
        expression: the expression.
        program: INSTRUCTION [P], postfix.
        dynamic: scores change while jobs wait, so the queue is sorted at every pass.
        uses: the variables that it reads.
        scorer: the rule, if it is one in Python; the program is then never run.
        lookahead: how the program's order is looked ahead of, if it is.
        others: programs of further orders that it looks ahead of.
        by_priority: by priorities of a cluster, see `bridge.worlds.fast.multifactor`, `user_shares`.
    """

    name: str
    expression: str
    program: Array
    dynamic: bool
    uses: frozenset[str]
    scorer: Scorer | None = None
    lookahead: Lookahead | None = None
    others: tuple[Array, ...] = ()
    by_priority: bool = False


@dataclass
class _Compiler:
    """Turns a parsed expression into postfix instructions; refuses whatever is not arithmetic."""

    text: str
    variables: Mapping[str, Op]
    constants: Mapping[str, float]
    what: str
    resources: int
    code: list[tuple[int, int, float]] = field(default_factory=list)
    depth: int = 0
    deepest: int = 0

    def refuse(self, node: ast.AST, what: str) -> BridgeError:
        column = getattr(node, "col_offset", 0) + 1
        return BridgeError(
            f"{what} at column {column}",
            where=f"{self.what} {self.text!r}",
            remedy="Use numbers, + - * / // % **, "
            f"{', '.join([*map(self.spelt, self.variables), *self.constants])}, "
            f"and {', '.join([*_UNARY_CALLS, *_FOLD_CALLS])}.",
        )

    @staticmethod
    def spelt(name: str) -> str:
        return f"{name}[0]" if name in OF_RESOURCE or name in OF_PLACE else name

    def places(self, name: str) -> int:
        """Return how many places a variable has that is written with one; 0: it has none."""
        return self.resources if name in OF_RESOURCE else _PLACES.get(name, 0)

    def emit(self, op: Op, value: float = 0.0, arg: int = 0) -> None:
        self.code.append((op, arg, value))
        self.depth += 1 if op <= LAST_VARIABLE else -(op <= Op.POW or op >= Op.MIN)  # two operands become one
        self.deepest = max(self.deepest, self.depth)

    def plugged_in(self, node: ast.expr, name: str) -> ast.expr:
        """Return the expression of a feature variable that a plug-in brings."""
        text = plugins.find("feature", name) if self.what == "feature" else None
        if text is None:
            raise self.refuse(node, f"unknown variable {name!r}")
        try:
            return ast.parse(str(text).strip(), mode="eval").body
        except (SyntaxError, ValueError, MemoryError) as error:
            raise BridgeError("the plug-in is no expression", where=f"feature {name!r}") from error

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
                self.emit(Op.CONSTANT, value)
            case ast.Name(id=name) if name in self.constants:
                self.emit(Op.CONSTANT, self.constants[name])
            case ast.Name(id=name) if name in self.variables and name not in OF_RESOURCE | OF_PLACE:
                self.emit(self.variables[name])
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=int(place))) if (
                name in self.variables and name in OF_RESOURCE | OF_PLACE
            ):
                if isinstance(place, bool) or not 0 <= place < self.places(name):
                    what = "resource" if name in OF_RESOURCE else "place"
                    raise self.refuse(node, f"there is no {what} {place} among {self.places(name)}")
                self.emit(self.variables[name], arg=int(place))
            case ast.Name(id=name) if name in self.variables:
                what = "resource" if name in OF_RESOURCE else "place"
                raise self.refuse(node, f"{name} is of one {what} ({self.spelt(name)})")
            case ast.Name(id=name):
                self.visit(self.plugged_in(node, name))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                self.visit(operand)
                self.emit(Op.NEG)
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                self.visit(operand)
            case ast.BinOp(left=left, op=operator, right=right) if (
                name := type(operator).__name__.lower()
            ) in _BINARY:
                self.visit(left)
                self.visit(right)
                self.emit(_BINARY[name])
            case ast.Call(func=ast.Name(id=name), args=[argument], keywords=[]) if name in _UNARY_CALLS:
                self.visit(argument)
                self.emit(_UNARY_CALLS[name])
            case ast.Call(func=ast.Name(id=name), args=[head, *rest], keywords=[]) if (
                name in _FOLD_CALLS and rest
            ):
                self.visit(head)
                for argument in rest:
                    self.visit(argument)
                    self.emit(_FOLD_CALLS[name])
            case _:
                raise self.refuse(node, f"{type(node).__name__} is not allowed")


def compile_expression(text: str, name: str | None = None) -> Order:
    """Compile an order's expression in CQSim's variables; BridgeError: it is none, or nested too deeply."""
    remedy = f"Named orders: {', '.join(ORDERS)}. Otherwise an expression such as (w/t)**3*n."
    program, uses = _compile(text, "order", remedy, _VARIABLES, {}, 1)
    return Order(name or text, text, program, bool(uses & _CHANGING), uses)


def compile_feature(
    text: str, constants: Mapping[str, float], resources: int = 1, *, of_machine: bool = False
) -> Array:
    """Compile a feature: an expression in an order's variables, those of `VIEW`, and named constants.

    `resources`: R, how many `OF_RESOURCE` can speak of; `of_machine`: only `OF_MACHINE`, which says nothing
    about a particular job. Returns INSTRUCTION [P], postfix.

    Raises:
        BridgeError: it is not arithmetic on the known names, or too long, or nested too deeply.
    """
    variables = {**_VARIABLES, **VIEW, **OF_RESOURCE, **OF_CLUSTER, **OF_PLACE}
    if of_machine:
        variables = {name: op for name, op in variables.items() if name in OF_MACHINE}
    remedy = f"Variables: {', '.join([*map(_Compiler.spelt, variables), *constants])}."
    program, _ = _compile(text, "feature", remedy, variables, constants, resources)
    looks = np.count_nonzero((program["op"] >= FIRST_VIEW) & (program["op"] <= LAST_VARIABLE))
    if looks > VIEWS:
        raise BridgeError(
            f"the expression reads more than {VIEWS} variables of machine and pass",
            where=f"feature {text[:80]!r}",
        )
    return program


def _compile(
    text: str,
    what: str,
    remedy: str,
    variables: Mapping[str, Op],
    constants: Mapping[str, float],
    resources: int,
) -> tuple[Array, frozenset[str]]:
    """Return an expression's program and the variables that it reads."""
    where = f"{what} {text[:80]!r}"
    if len(text) > _LONGEST_TEXT:
        raise BridgeError(f"the expression is longer than {_LONGEST_TEXT} characters", where=where)
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise BridgeError(f"neither a named {what} nor an expression", where=where, remedy=remedy) from error
    compiler = _Compiler(text, variables, constants, what, resources)
    if (
        isinstance(tree.body, ast.Name)
        and tree.body.id not in {**variables, **constants}
        and (what == "order" or plugins.find(what, tree.body.id) is None)
    ):
        raise BridgeError(f"unknown {what}", where=where, remedy=remedy)
    try:
        compiler.visit(tree.body)
    except RecursionError as error:
        raise BridgeError("the expression is nested too deeply", where=where) from error
    if compiler.deepest > STACK:
        raise BridgeError(f"the expression needs more than {STACK} stacked values", where=where)
    read = frozenset(Op(op).name.lower() for op, _, _ in compiler.code if Op.CONSTANT < op <= LAST_VARIABLE)
    return np.array(compiler.code, INSTRUCTION), read


def order(name_or_expression: str, overrides: Mapping[str, str] | None = None) -> Order:
    """Return the named order (as a protocol may redefine it), a plug-in's, or the compiled expression.

    ``lookahead(BASE, …)`` is any of them, looked ahead of, see `bridge.scheduler.lookahead`.

    Raises:
        BridgeError: nobody knows the name, it is not arithmetic on the known names, or nested too deeply.
    """
    name = name_or_expression.strip()
    if (lookahead := split(name)) is not None:
        bases = [order(base, overrides) for base in lookahead[0]]
        if any(base.scorer is not None or base.lookahead is not None for base in bases):
            what = "can only look ahead of an order of the compiled core"
            raise BridgeError(what, where=f"order {name!r}", remedy="Choose a named one, or an expression.")
        uses = frozenset().union(*(base.uses for base in bases))
        others = tuple(base.program for base in bases[1:])
        return replace(bases[0], name=name, dynamic=True, uses=uses, lookahead=lookahead[1], others=others)
    if name.lower() == RECORDED:
        raise refuse_recorded()
    if name.lower() in CLUSTER_ORDERS:
        program = compile_expression("0").program
        return Order(name.lower(), "", program, True, frozenset(), by_priority=True)
    expressions = {**ORDERS, **(overrides or {})}
    if name.lower() in expressions:
        return compile_expression(expressions[name.lower()], name.lower())
    rule = plugins.find("order", name)
    if isinstance(rule, str):
        return compile_expression(rule, name)
    if callable(rule):
        return Order(name, "", compile_expression("0").program, True, frozenset(), rule)
    if rule is not None or plugins.is_reference(name) or (name.isidentifier() and name not in _VARIABLES):
        raise plugins.unknown("order", name, ORDERS, "Otherwise an expression such as (w/t)**3*n.")
    return compile_expression(name)
