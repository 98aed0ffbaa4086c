"""Which rows of the studies are a paper's headline rows, and what of the paper cannot be repeated."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

HELD_OUT, PAPER = "held-out", "paper"
POOL_HELD_OUT, POOL_PAPER = "200 held-out sequences", "the paper's test set"


@dataclass(frozen=True)
class Source:
    """A row of a table by one of its tests; `base`: the row it is shown against, if not its own first one."""

    table: str
    row: str
    test: str
    base: str = ""


@dataclass(frozen=True)
class Line:
    """A line of a paper's table: the row as its text has it, as its code does it, and the recommended one.

    None: there is no such row, or no public code; the last one is judged on what nothing was learnt on.
    """

    label: str
    log: str
    words: Source | None
    code: Source | None
    recommended: Source | None


@dataclass(frozen=True)
class Headline:
    """A paper.

    Attributes:
        paper: its name among the studies.
        title: of its page.
        cite: authors and where it was published.
        says: what it does, and what the table has.
        of: heading of the lines.
        base: what values are compared with in brackets.
        cannot: what cannot be repeated, and why.
    """

    paper: str
    title: str
    cite: str
    says: str
    of: str
    base: str
    lines: tuple[Line, ...]
    cannot: tuple[str, ...] = ()


def _rlbackfilling(order: str, log: str) -> Line:
    table = f"rlbackfilling-4-{order.lower()}"
    return Line(
        f"{order}, {log}",
        log,
        Source(table, "RLBackfilling, as the paper", PAPER),
        Source("rlbackfilling-code", f"{order}, as the public code", PAPER),
        Source(table, "RLBackfilling, ours", HELD_OUT),
    )


def _schedinspector(log: str) -> Line:
    table = "schedinspector-4"
    return Line(
        f"SJF, {log}",
        log,
        Source(table, "inspector, as the paper", PAPER),
        Source("schedinspector-code", "SJF, as the public code", PAPER),
        Source(table, "inspector, ours, the paper's rules", "held-out from 60 %"),
    )


def _mrsch(log: str) -> Line:
    crossing = log[0] == "C"
    table = "mrsch-c1-c5" if crossing else "mrsch-s1-s5"
    code = "MRSch, as the public code" if crossing else "MRSch, oldest job reserved"
    return Line(
        log,
        log,
        *(Source(table, row, HELD_OUT, "FCFS + EASY") for row in ("MRSch", code, "ours (PPO)")),
    )


def _sem(agent: str, log: str) -> Line:
    source = Source(f"sem-{log.lower()}", agent, HELD_OUT)
    return Line(f"{agent}, {log}", log, None, None, source)


def _rlschert(table: int, name: str) -> Line:
    metric = {7: "slowdown", 8: "completion"}[table]
    base = f"rlschert-{table}"
    # a third party's copy of the code trains RLSchert itself only
    code = Source("rlschert-code", "RLSchert, code, 100 epochs", POOL_PAPER)
    return Line(
        f"{name}: {metric}",
        "VASP jobs",
        Source(base, f"{name}, oracle clamp", POOL_PAPER),
        code if (table, name) == (7, "RLSchert") else None,
        Source(base, name, POOL_HELD_OUT),
    )


_LOGS = ("SDSC-SP2", "HPC2N", "Lublin-1", "Lublin-2")
_KILLS = ("RLSchert, rule kill", "RLSchert, learned kill")
_LINES: Mapping[str, tuple[Line, ...]] = {
    "rlbackfilling": tuple(_rlbackfilling(order, log) for order in ("FCFS", "SJF") for log in _LOGS),
    "schedinspector": tuple(_schedinspector(log) for log in ("SDSC-SP2", "CTC-SP2", "Lublin-1", "HPC2N")),
    "mrsch": tuple(_mrsch(f"{kind}{k}") for kind in "SC" for k in range(1, 6)),
    "sem": tuple(_sem(agent, log) for log in ("Theta", "DataStar") for agent in ("DRAS", "SEM")),
    "rlschert": (
        *(_rlschert(7, name) for name in ("DeepRM", "RLSchert", *_KILLS)),
        *(_rlschert(8, name) for name in ("DeepRM", "RLSchert", _KILLS[1])),
    ),
}


def _headlines() -> tuple[Headline, ...]:
    texts = tomllib.loads(Path(__file__).with_name("headlines.toml").read_text(encoding="utf-8"))
    return tuple(
        Headline(paper, **{**text, "cannot": tuple(text["cannot"])}, lines=_LINES[paper])
        for paper, text in texts.items()
    )


PAPERS = _headlines()
