"""What is repeated, as data (`*/study.toml`): tables of rows: an agent, a workload, who stands beside."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from bridge.config import build, read_toml
from bridge.errors import BridgeError

HERE = Path(__file__).resolve().parent
#: Papers whose tables hold agents of `bridge.policies` on logs, in the order of the index.
PAPERS = ("rlbackfilling", "schedinspector", "mrsch", "sem")


@dataclass(frozen=True)
class Test:
    """Which sequences policies are compared on.

    Attributes:
        name: ``held-out``, ``whole`` or one of the study's.
        sampler, sequences, length, seed: see `bridge.judge.sampling`; the sampler ``whole`` takes all jobs
            as one sequence.
        held_out: only behind the part of the log that agents learn from.
    """

    name: str
    sampler: str
    sequences: int
    length: int
    seed: int
    held_out: bool


#: As MRSch and SEM are judged: everything behind the training part, in one go.
WHOLE = Test("whole", "whole", 1, 0, 0, held_out=True)
HELD_OUT = Test("held-out", "standard", 200, 256, 1, held_out=True)


@dataclass(frozen=True)
class Baseline:
    """One who does not learn: other rules under which the same sequences are scheduled, or a fixed rule."""

    label: str
    setup: Mapping[str, Any] = field(default_factory=dict)
    rule: str = ""


@dataclass(frozen=True)
class Row:
    """One agent on one workload.

    Attributes:
        table: file name of its table.
        name: the row's name, unique in its table.
        trace: a log of `papers.logs`: what it is judged on.
        policy, setting, changes: the agent's recipe; empty policy = nothing is learnt.
        learnt_on: a log, if not `trace`.
        tests: sequences to judge it on.
        paper: published numbers by label (``base``, ``agent``, others).
        baselines: who stands beside it.
        headline: three seeds are asked for; else one.
        shipped: the zoo has the best of its agents.
    """

    table: str
    name: str
    trace: str
    policy: str = ""
    setting: str = ""
    changes: Mapping[str, Any] = field(default_factory=dict)
    learnt_on: str = ""
    tests: tuple[Test, ...] = (HELD_OUT,)
    paper: Mapping[str, float] = field(default_factory=dict)
    baselines: tuple[Baseline, ...] = ()
    headline: bool = False
    shipped: bool = False

    @property
    def seeds(self) -> int:
        """Seeds that we ask for."""
        return 3 if self.headline else 1


@dataclass(frozen=True)
class Table:
    """A table or figure of a paper.

    Attributes:
        name: file name of its results and its page.
        title, says: of the page.
        rows: see `Row`.
        metric: what the agents are judged by.
        more: further metrics of everybody.
        rivals: (agent's row, rival's row) by the beginning of their names: agents that are compared directly.
    """

    name: str
    title: str
    says: str
    rows: tuple[Row, ...]
    metric: str = "bsld"
    more: tuple[str, ...] = ()
    rivals: tuple[tuple[str, str], ...] = ()

    @property
    def learns(self) -> bool:
        """Whether there is any agent in it."""
        return any(row.policy for row in self.rows)

    @property
    def policy(self) -> str:
        """Whose agents are in it."""
        return self.rows[0].policy

    @property
    def tests(self) -> tuple[Test, ...]:
        """Sequences that its rows are judged on, one of each name."""
        found: dict[str, Test] = {}
        for test in (test for row in self.rows for test in row.tests):
            found.setdefault(test.name, test)
        return tuple(found.values())


# How the file writes it.


@dataclass(frozen=True)
class _Sequences:
    """A study's own `Test`; `seeds`: of logs whose seed is another one."""

    sampler: str
    sequences: int
    length: int
    seed: int = 1
    seeds: Mapping[str, int] = field(default_factory=dict)
    held_out: bool = False


@dataclass(frozen=True)
class _Agent:
    """A `Row` for each of some logs: ``{trace}`` in its name; `beside` names a list of baselines.

    `paper` is by log; `zoo` names the logs whose best agent is shipped.
    """

    name: str
    setting: str = ""
    policy: str = ""
    changes: Mapping[str, Any] = field(default_factory=dict)
    learnt_on: str = ""
    tests: tuple[str, ...] = ("held-out",)
    paper: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    beside: str = ""
    headline: bool = False
    zoo: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Rows:
    """Rows in the order of the logs, for each log in the order of the agents."""

    traces: tuple[str, ...]
    agents: tuple[_Agent, ...]


@dataclass(frozen=True)
class _Table:
    name: str
    title: str
    says: str
    rows: tuple[_Rows, ...]
    metric: str = "bsld"
    more: tuple[str, ...] = ()
    rivals: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Study:
    """A paper's file: the policy of its agents, sequences and baselines by name, and the tables."""

    policy: str
    tables: tuple[_Table, ...]
    tests: Mapping[str, _Sequences] = field(default_factory=dict)
    beside: Mapping[str, tuple[Baseline, ...]] = field(default_factory=dict)

    def test(self, name: str, trace: str) -> Test:
        """Return the sequences of a log that have this name."""
        if name in (HELD_OUT.name, WHOLE.name):
            return HELD_OUT if name == HELD_OUT.name else WHOLE
        of = self.tests[name]
        return Test(name, of.sampler, of.sequences, of.length, of.seeds.get(trace, of.seed), of.held_out)

    def row(self, table: str, agent: _Agent, trace: str) -> Row:
        """Return an agent's row for a log."""
        return Row(
            table,
            agent.name.format(trace=trace),
            trace,
            (agent.policy or self.policy) if agent.setting else "",
            agent.setting,
            agent.changes,
            agent.learnt_on,
            tuple(self.test(name, trace) for name in agent.tests),
            agent.paper.get(trace, {}),
            self.beside[agent.beside],
            agent.headline,
            trace in agent.zoo,
        )


def of_file(path: Path) -> tuple[Table, ...]:
    """Return the tables of a study's file.

    Raises:
        BridgeError: what it says is no study.
    """
    study = build(Study, read_toml(path), str(path))
    tables = []
    for one in study.tables:
        rows = tuple(
            study.row(one.name, agent, trace)
            for group in one.rows
            for trace in group.traces
            for agent in group.agents
        )
        tables.append(Table(one.name, one.title, one.says.strip(), rows, one.metric, one.more, one.rivals))
    return tuple(tables)


@cache
def tables() -> tuple[Table, ...]:
    """Return the tables of all `PAPERS`."""
    return tuple(table for paper in PAPERS for table in of_file(HERE / paper / "study.toml"))


def chosen(names: tuple[str, ...], rows: tuple[str, ...]) -> list[tuple[Table, Row]]:
    """Return rows of the tables of these names, or of all, whose names contain one of the words.

    Raises:
        BridgeError: there is no such table or row.
    """
    known = {table.name: table for table in tables()}
    for name in names:
        if name not in known:
            raise BridgeError("unknown table", where=repr(name), remedy=f"Choose {', '.join(known)}.")
    some = [known[name] for name in names] or list(tables())
    found = [(t, r) for t in some for r in t.rows if not rows or any(word in r.name for word in rows)]
    if not found:
        raise BridgeError("no such row", where=", ".join(rows), remedy="See `python -m papers list`.")
    return found
