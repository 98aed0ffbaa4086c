"""Encoders: which rows a decision shows to a network, and which features each row has.

A feature is an expression, as an order is: of the job (w wait, t believed length, n nodes, …), of the
machine and the pass (free, gap, …, see `bridge.scheduler.order.VIEW`), of one resource (``share[0]``), and of
constants that the training workload gave once and for all. An expression with ``[r]`` stands for one column
per resource. An encoder is text, so a checkpoint carries it and no code.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal, NamedTuple, get_args

import numpy as np

from bridge.base.arrays import Array, Records
from bridge.base.errors import BridgeError
from bridge.config.fields import Constraint
from bridge.scheduler.order import compile_feature
from bridge.scheduler.score import FIRST_OF_CLUSTER, FIRST_VIEW, LAST_VARIABLE, Op

DecisionKind = Literal["pick", "backfill", "inspect", "pick+backfill", "preempt", "trial"]
DECISIONS: tuple[DecisionKind, ...] = ("pick", "backfill", "inspect", "pick+backfill", "preempt", "trial")
#: Decisions that a stop row may decline.
STOPPABLE = ("backfill", "preempt", "trial")
#: What a row of the running jobs is about.
By = Literal["job", "unit"]
#: Rows of one kind that a decision shows, at most: more are a mistake.
MOST_ROWS = 1_000_000
#: In an expression: once for each resource.
EACH = "[r]"


class FeatureProgram(NamedTuple):
    """Features as the kernels read them: INSTRUCTION [P], one after the other, and where each ends."""

    code: Records
    ends: Array  # i4 [F]
    views: Array  # i4 [V + 1] where instructions stand that `look` prepares, then P


class EncoderPrograms(NamedTuple):
    """All that a decision's view is made of."""

    rows: FeatureProgram
    running: FeatureProgram
    queued: FeatureProgram
    machine: FeatureProgram
    empty_row: Array  # f4 [F'] a running row of nobody
    running_rows: Array  # i8 [1], or by unit [R]
    by_unit: Array  # i8 [1] 0 or 1
    queued_rows: Array  # i8 [1]


@dataclass(frozen=True)
class Encoder:
    """What a network sees of a decision.

    It sees one row for each possible answer (INSPECT: one row, for the inspected job). It may also see a
    context of fixed size: rows of running jobs, rows of waiting jobs, then numbers of the machine. Without
    `running`, `queued` and `machine` there is no context.

    Attributes:
        decision: what is decided; with ``pick+backfill`` one network decides both.
        features: name -> expression; each is a column, in this order.
        window: W, the largest number of candidates that are shown.
        stop: BACKFILL, PREEMPT, TRIAL: the last row is the blocked head (TRIAL: the queue's first job). To
            choose this row means DECLINE.
        padding: [F] the row that stands for an absent candidate where a network wants W rows; zeros if
            empty.
        running: name -> expression of a running job (``left`` is how long it is believed to run on).
        running_rows: K, rows of running jobs: the K largest by nodes, ties by believed end, then id. With
            `row_unit`
            unit: for each of the first resources, its units; a job has as many rows as it holds units,
            rounded up, in the order of believed ends.
        row_unit: ``job`` or ``unit`` (a row per node, as DRAS has it).
        empty_row: the row of a running job that is not there, or of a free unit; zeros if empty.
        queued: name -> expression of a waiting job; these rows are in addition to those that can be chosen.
        queued_rows: rows of waiting jobs: so many that stand first in the queue, but for the head that the
            decision is about; zeros where there are fewer.
        machine: name -> expression that says nothing about a particular job: measurements, goals.
        resources: R, what ``[r]`` stands for; 0 = not known yet, see `for_resources`.
    """

    decision: DecisionKind
    features: Mapping[str, str]
    window: int = 128
    stop: bool = False
    padding: tuple[float, ...] = field(default=())
    running: Mapping[str, str] = field(default_factory=dict)
    running_rows: Annotated[tuple[int, ...], Constraint(key="places")] = ()
    row_unit: Annotated[By, Constraint(key="by")] = "job"
    empty_row: Annotated[tuple[float, ...], Constraint(key="absent")] = ()
    queued: Mapping[str, str] = field(default_factory=dict)
    queued_rows: int = 0
    machine: Mapping[str, str] = field(default_factory=dict)
    resources: int = 1

    def __post_init__(self) -> None:
        for broken, what, where, remedy in self._rules():
            if broken:
                raise BridgeError(what, where=where, remedy=remedy)

    def _rules(self) -> Iterator[tuple[bool, str, str, str]]:
        """Yield what an encoder may not be, one after the other: whether it is, and what is said of it."""
        places, window = f"places {self.running_rows}", f"window {self.window}"
        unknown = self.decision not in DECISIONS
        yield unknown, "unknown decision", repr(self.decision), f"Choose {', '.join(DECISIONS)}."
        yield not self.features, "an encoder needs features", "", ""
        yield self.window < 1, "the window holds at least one candidate", window, ""
        alone = bool(self.queued) != (self.queued_rows > 0) or self.queued_rows < 0
        queued = f"queued_rows {self.queued_rows}"
        yield alone, "rows of waiting jobs need features and at least one row", queued, ""
        most = max(self.window, *self.running_rows, self.queued_rows, 0)
        yield (
            most > MOST_ROWS,
            f"a window of more than {MOST_ROWS:,} rows",
            f"{window}, {self.running_rows}",
            "",
        )
        undue = self.stop and self.decision not in STOPPABLE
        yield undue, f"a {self.decision} decision has no stop row", "", "Leave `stop` out."
        half = bool(self.running) != bool(self.running_rows) or min(self.running_rows, default=1) < 1
        yield half, "rows of running jobs need features and at least one place", places, ""
        several = self.row_unit == "job" and len(self.running_rows) > 1
        yield several, "running jobs have one number of places", places, ""
        other = self.row_unit not in get_args(By)
        yield other, "running jobs are shown by job or by unit", repr(self.row_unit), "Say job or unit."
        yield self.resources < 0, "a machine has at least one resource", f"resources {self.resources}", ""
        if self.resources:
            beyond = self.row_unit == "unit" and len(self.running_rows) > self.resources
            yield (
                beyond,
                f"units of {len(self.running_rows)} resources, and there are {self.resources}",
                places,
                "",
            )
            for name, values, columns in (
                ("padding", self.padding, self.columns),
                ("absent row", self.empty_row, self.running_columns),
            ):
                wrong = bool(values) and len(values) != len(columns)
                yield wrong, f"the {name} has {len(values)} values for {len(columns)} features", "", ""

    def for_resources(self, resources: int) -> "Encoder":
        """Return the encoder for so many resources, if made for any number; BridgeError: it cannot be."""
        return self if self.resources else replace(self, resources=resources)

    @property
    def columns(self) -> dict[str, str]:
        """Name -> expression of each column of a candidate's row."""
        return _each(self.features, self.resources)

    @property
    def running_columns(self) -> dict[str, str]:
        """Name -> expression of each column of a running job's row."""
        return _each(self.running, self.resources)

    @property
    def queued_columns(self) -> dict[str, str]:
        """Name -> expression of each column of a waiting job's row in the context."""
        return _each(self.queued, self.resources)

    @property
    def machine_columns(self) -> dict[str, str]:
        """Name -> expression of each number of the machine."""
        return _each(self.machine, self.resources)

    @property
    def names(self) -> list[str]:
        return [*self.columns, *self.running_columns, *self.queued_columns, *self.machine_columns]

    @property
    def width(self) -> int:
        """F, columns of a row."""
        return len(self.columns)

    @property
    def context(self) -> int:
        """C, numbers of the context."""
        running = sum(self.running_rows) * len(self.running_columns)
        return running + self.queued_rows * len(self.queued_columns) + len(self.machine_columns)

    @property
    def size(self) -> int:
        """Numbers of a whole state: W rows, those of running and of waiting jobs (not the machine's)."""
        return self.rows * self.width + self.context - len(self.machine_columns)

    @property
    def rows(self) -> int:
        """Most rows that one decision can have."""
        return 1 if self.decision == "inspect" else self.window + int(self.stop)

    @property
    def actions(self) -> int:
        """Most answers that one decision can have."""
        return 2 if self.decision == "inspect" else self.rows

    def compile(self, constants: Mapping[str, float]) -> "CompiledEncoder":
        """Return the encoder as the kernels read it; `constants`: name -> value, of the training workload.

        BridgeError: a feature is no expression, or uses an unknown name.
        """
        if not self.resources:
            raise BridgeError("the encoder does not know yet how many resources there are")

        def job(text: str) -> Records:
            return compile_feature(text, constants, self.resources)

        def machine(text: str) -> Records:
            return compile_feature(text, constants, self.resources, of_machine=True)

        running = self.running_columns
        return CompiledEncoder(
            self,
            EncoderPrograms(
                _program(self.columns, job),
                _program(running, job),
                _program(self.queued_columns, job),
                _program(self.machine_columns, machine),
                np.array(self.empty_row or (0.0,) * len(running), np.float32),
                np.array(self.running_rows, np.int64),
                np.array([self.row_unit == "unit"], np.int64),
                np.array([self.queued_rows], np.int64),
            ),
        )


def _each(features: Mapping[str, str], resources: int) -> dict[str, str]:
    variables: dict[str, str] = {}
    for name, text in features.items():
        if EACH in text:
            more = {f"{name}[{r}]": text.replace(EACH, f"[{r}]") for r in range(resources)}
        else:
            more = {name: text}
        if twice := variables.keys() & more.keys():
            raise BridgeError("two columns have one name", where=repr(min(twice)), remedy="Rename a feature.")
        variables |= more
    return variables


def _program(columns: Mapping[str, str], compiled: Callable[[str], Records]) -> FeatureProgram:
    programs = [compiled(text) for text in columns.values()]
    ends = np.cumsum([len(program) for program in programs]).astype(np.int32)
    code = np.concatenate(programs) if programs else compiled("0")  # a kernel wants a record to look at
    views = np.flatnonzero((code["op"] >= FIRST_VIEW) & (code["op"] <= LAST_VARIABLE))
    return FeatureProgram(code.view(np.recarray), ends, np.append(views, len(code)).astype(np.int32))


@dataclass(frozen=True)
class CompiledEncoder:
    """An encoder's programs.

    Attributes:
        encoder: what they were compiled from.
        programs: for the kernels.
    """

    encoder: Encoder
    programs: EncoderPrograms

    def refuse_places(self, partitions: int | None, qos: int) -> None:
        """Raise BridgeError where it sees more partitions or QOS than a cluster has (None: there is none)."""
        of = (self.programs.rows, self.programs.running, self.programs.queued, self.programs.machine)
        steps = np.concatenate([program.code[["op", "arg"]] for program in of])
        names = {Op(op).name.lower() for op in steps["op"] if FIRST_OF_CLUSTER <= op <= LAST_VARIABLE}
        if not names:
            return
        if partitions is None:
            what, remedy = (
                f"sees {', '.join(sorted(names))}, which only a cluster has",
                "Give --cluster FILE.",
            )
            raise BridgeError(what, where="features", remedy=remedy)
        for op, there, name in ((Op.IN_PARTITION, partitions, "partitions"), (Op.IN_QOS, qos, "QOS")):
            most = int(steps["arg"][steps["op"] == op].max(initial=-1))
            if most >= there:
                what = f"the agent sees {op.name.lower()}[{most}], and the cluster has {there} {name}"
                raise BridgeError(what, where="features", remedy="Use the cluster that it was made for.")
