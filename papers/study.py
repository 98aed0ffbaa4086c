"""What is repeated, as data (`*/study.toml`): tables of rows: an agent, a workload, who stands beside."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from bridge.config import build, read_toml
from bridge.errors import BridgeError
from bridge.study.windows import Test

HERE = Path(__file__).resolve().parent
#: Papers whose tables hold agents of `bridge.policies` on logs, in the order of the index.
PAPERS = ("rlbackfilling", "schedinspector", "mrsch", "sem")


#: As MRSch and SEM are judged: everything behind the training part, in one go.
WHOLE = Test("whole", "whole", 1, 0, 0, held_out=True)
HELD_OUT = Test("held-out", "standard", 200, 256, 1, held_out=True)
_TESTS = {test.name: test for test in (HELD_OUT, WHOLE)}


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


def of_file(path: Path) -> tuple[Table, ...]:
    """Return the tables of a study's file.

    It names the policy of its agents, its own sequences (``tests``; ``seeds`` by log), lists of baselines
    (``beside``), and tables. A table's ``rows`` are groups of ``traces`` and ``agents``: a row for each agent
    on each log, log by log. An agent has the fields of a `Row`; ``{trace}`` in its name is the log's,
    ``beside`` and ``tests`` are names, ``paper`` is by log, and ``zoo`` lists the logs whose best agent is
    shipped.

    Raises:
        BridgeError: what it says is no study.
    """
    study = read_toml(path)
    return tuple(build(Table, _table(study, table), str(path)) for table in study["tables"])


def _table(study: Mapping[str, Any], table: Mapping[str, Any]) -> dict[str, Any]:
    rows = [
        _row(study, agent, trace) | {"table": table["name"]}
        for group in table["rows"]
        for trace in group["traces"]
        for agent in group["agents"]
    ]
    return {**table, "rows": rows}


def _row(study: Mapping[str, Any], agent: Mapping[str, Any], trace: str) -> dict[str, Any]:
    made = {
        **agent,
        "name": agent["name"].format(trace=trace),
        "trace": trace,
        "policy": agent.get("policy", study["policy"]) if "setting" in agent else "",
        "tests": [_test(study, name, trace) for name in agent.get("tests", ["held-out"])],
        "paper": agent.get("paper", {}).get(trace, {}),
        "baselines": study["beside"][agent["beside"]],
        "shipped": trace in agent.get("zoo", ()),
    }
    return {name: value for name, value in made.items() if name not in ("beside", "zoo")}


def _test(study: Mapping[str, Any], name: str, trace: str) -> Test | dict[str, Any]:
    if name in _TESTS:
        return _TESTS[name]
    of = dict(study["tests"][name])
    seeds = of.pop("seeds", {})
    return {"name": name, "held_out": False, **of, "seed": seeds.get(trace, of.get("seed", 1))}


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
