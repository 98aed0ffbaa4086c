"""Which rows of the studies are a paper's headline rows, and what of the paper cannot be repeated."""

from dataclasses import dataclass

HELD_OUT, PAPER = "held-out", "paper"
POOL_HELD_OUT, POOL_PAPER = "200 held-out sequences", "the paper's test set"


@dataclass(frozen=True)
class Source:
    """A row of a table by one of its tests."""

    table: str
    row: str
    test: str


@dataclass(frozen=True)
class Line:
    """A line of a paper's table.

    Attributes:
        log: that all of its rows are judged on.
        words: the row as the paper's text has it, which has the published number; None: no such row.
        code: the row as the public code does it; None: there is no public code.
        recommended: ours, on sequences that nothing was learnt on.
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
        Source(table, "MRSch", HELD_OUT),
        Source(table, code, HELD_OUT),
        Source(table, "ours (PPO)", HELD_OUT),
    )


def _sem(agent: str, log: str) -> Line:
    source = Source(f"sem-{log.lower()}", agent, HELD_OUT)
    return Line(f"{agent}, {log}", log, None, None, source)


def _rlschert(table: int, name: str) -> Line:
    metric = {7: "slowdown", 8: "completion"}[table]
    base = f"rlschert-{table}"
    agent, _, kill = name.partition(", ")
    code = ", ".join(part for part in (agent, "code", kill) if part)
    return Line(
        f"{name}: {metric}",
        "VASP jobs",
        Source(base, f"{name}, oracle clamp", POOL_PAPER),
        Source("rlschert-code" if table == 7 else "rlschert-code-8", code, POOL_PAPER),
        Source(base, name, POOL_HELD_OUT),
    )


_LOGS = ("SDSC-SP2", "HPC2N", "Lublin-1", "Lublin-2")
PAPERS = (
    Headline(
        "rlbackfilling",
        "RLBackfilling: an agent in EASY's place",
        "E. Kolker-Hicks, D. Zhang, D. Dai, *A Reinforcement Learning Based Backfilling Strategy for HPC Batch Jobs*, SC-W 2023",
        "Table 4, mean bounded slowdown. Published and *as the code*: the paper's ten windows. *Recommended*: windows "
        "that no agent has learnt on.",
        "order, log",
        "EASY behind the same order",
        tuple(_rlbackfilling(order, log) for order in ("FCFS", "SJF") for log in _LOGS),
    ),
    Headline(
        "schedinspector",
        "SchedInspector: an agent that may reject a scheduler's pick",
        "D. Zhang, D. Dai, B. Xie, *SchedInspector: A Batch Job Scheduling Inspector Using Reinforcement Learning*, HPDC 2022",
        "Table 4, mean bounded slowdown with SJF and no backfilling. Published and *as the code*: the paper's fifty windows. "
        "*Recommended*: windows that no agent has learnt on. A low slowdown may be bought with idle nodes: "
        "[Table 5](schedinspector-5.md) has the utilisation.",
        "order, log",
        "SJF",
        tuple(_schedinspector(log) for log in ("SDSC-SP2", "CTC-SP2", "Lublin-1", "HPC2N")),
    ),
    Headline(
        "mrsch",
        "MRSch: nodes, burst buffer and power at once",
        "B. Li, Y. Fan, M. Dearing, Z. Lan, P. Rich, W. Allcock, M. Papka, *MRSch: Multi-Resource Scheduling for HPC*, CLUSTER 2022",
        "Mean wait, h. The paper draws figures and says *up to 48 % less wait than FCFS*. On S1–S5 *as the code* is the public code's "
        "reservation alone; on C1–C5, whose loads cross as the paper's do, it is the whole of it.",
        "workload",
        "FCFS + EASY",
        tuple(_mrsch(log) for log in (*(f"S{k}" for k in range(1, 6)), *(f"C{k}" for k in range(1, 6)))),
        (
            "Darshan: the burst buffer requests of the paper's jobs come from Theta's Darshan records, which are not public; "
            "ours are drawn, uniformly in S1–S10, with heavy tails in C1–C5.",
        ),
    ),
    Headline(
        "sem",
        "SEM and DRAS: running jobs in place of nodes",
        "B. Li, Y. Fan, M. E. Papka, Z. Lan, *Encoding for Reinforcement Learning Driven Scheduling*, JSSPP 2022; Y. Fan et al., *DRAS*, IPDPS 2021",
        "Mean wait, h. The paper draws figures and says that SEM is *within 4 to 6 %* of DRAS and trains faster. Ours are as the paper "
        "describes them; there is no other recommendation.",
        "agent, log",
        "FCFS + EASY",
        tuple(_sem(agent, log) for log in ("Theta", "DataStar") for agent in ("DRAS", "SEM")),
        ("Mira: the paper's log of 2014 is not public; its rows of Tables 1 and 2 are not run.",),
    ),
    Headline(
        "rlschert",
        "RLSchert: pick or kill jobs on a time-stepped pool",
        "Q. Wang, H. Zhang, C. Qu, Y. Shen, X. Liu, J. Li, *RLSchert: An HPC Job Scheduler Using Deep Reinforcement Learning and "
        "Remaining Time Prediction*, Applied Sciences 11, 9448, 2021",
        "Tables 7 and 8: mean slowdown, mean completion in steps. Published and *as the code* (*: reads true lengths): the paper's test "
        "set. *Recommended*: honest agents on 200 held-out sequences.",
        "agent",
        "SAF",
        tuple(
            _rlschert(7, name)
            for name in ("DeepRM", "RLSchert", "RLSchert, rule kill", "RLSchert, learned kill")
        )
        + tuple(_rlschert(8, name) for name in ("DeepRM", "RLSchert", "RLSchert, learned kill")),
        (
            "VASP: of the paper's jobs only lengths and predictions are public; series of running jobs are synthetic here, and "
            "predictors are judged on those.",
        ),
    ),
)
