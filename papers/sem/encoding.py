"""SEM's tables and figures in which nothing is learnt: running jobs, what K rows lose, sizes and speed."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.sem import DENSER, compared
from bridge.files import replacing
from bridge.learn.network import sizes
from bridge.learn.registry import recipe_of
from papers import store
from papers.sem import pictures as sem_pictures
from papers.sem.data import (
    LOGGED,
    LOGS,
    NAME,
    REPLAYED,
    SCHEDULES,
    Say,
    kept,
    pick,
    running,
    speed,
)

#: Table 2: most running jobs. Mira's log is not public.
MOST = {"Theta": 32, "Atlas": 90, "DataStar": 81}
#: Table 3, %: Atlas at K = 50 is printed as 9e-05, which is a fraction.
LOSS = {
    ("DataStar", 30): 1.22,
    ("DataStar", 40): 0.36,
    ("DataStar", 50): 0.01,
    ("Atlas", 30): 0.23,
    ("Atlas", 40): 0.03,
    ("Atlas", 50): 0.009,
}
#: §III-C on Figure 7: % of the period that shows 90 % and 95 % of the allocated nodes.
COVERED = {
    ("DataStar", 30): ("97", "93"),
    ("DataStar", 40): ("99", "97"),
    ("DataStar", 50): ("–", "> 99"),
    ("Atlas", 30): ("99", "> 98"),
    ("Atlas", 40): ("–", "> 99"),
    ("Atlas", 50): ("–", "100"),
}
#: Table 4: inputs, and widths of the layers.
SIZES = {
    ("theta", "sem"): (268, (134, 200, 100, 50)),
    ("theta", "dras"): (8920, (4460, 4000, 1000, 50)),
    ("datastar", "sem"): (280, (140, 200, 100, 50)),
    ("datastar", "dras"): (3528, (1764, 1000, 250, 50)),
}


# Tables: lines of Markdown.


def _table(heads: Iterable[str], rows: Iterable[Iterable[object]]) -> list[str]:
    heads = list(heads)
    lines = [heads, ["---"] * len(heads), *rows]
    return ["| " + " | ".join(map(str, line)) + " |" for line in lines] + [""]


def most_running(data: pd.DataFrame) -> list[str]:
    """Return Table 2."""
    rows, most = [], {}
    for log, paper in MOST.items():
        both = [pick(data, "cdf", log, schedule) for schedule in SCHEDULES]
        most[log] = [int(shares.index.max()) for shares in both]
        rows.append((log, paper, *most[log], *(int((s < 0.99).sum()) for s in both)))
    exact = [log for log, (logged, _) in most.items() if logged == MOST[log]]
    heads = ("log", "paper", LOGGED, REPLAYED, f"99 % of the time, {LOGGED}", f"99 % of the time, {REPLAYED}")
    return [
        "## Table 2 and Figure 5: how many jobs run at once",
        "",
        *_table(heads, rows),
        f"As logged the maximum is the paper's on {', '.join(exact) or 'no log'}; elsewhere "
        + ", ".join(f"{log} {most[log][0]} for {MOST[log]}" for log in MOST if log not in exact)
        + " (Theta: the year 2022, the paper has 2018–2019). Replayed on one pool of processors DataStar, "
        f"which had three partitions, runs up to {most['DataStar'][1]} jobs at once; Theta stays within the "
        "34 that fit. Mira's log is not public: not run.",
        "",
        f"![Figure 5]({NAME}-figure-5.svg)",
        "",
    ]


def node_hours(data: pd.DataFrame) -> list[str]:
    """Return Table 3."""
    rows, off = [], []
    for log in ("DataStar", "Atlas", "Theta"):
        both = [100 * pick(data, "lost", log, schedule) for schedule in SCHEDULES]
        for k in (30, 40, 50):
            paper = LOSS.get((log, k))
            rows.append((log, k, "–" if paper is None else f"{paper:g} %", *(f"{s[k]:.3f} %" for s in both)))
            if paper is not None and abs(both[0][k] - paper) > 0.005:
                off.append(f"{log} at K = {k} ({both[0][k]:.3f} % for {paper:g} %)")
    largest = max(float(pick(data, "lost", log, REPLAYED)[30]) for log in LOGS)
    return [
        "## Table 3: node-hours that the K largest running jobs leave out",
        "",
        *_table(("log", "K", "paper", LOGGED, REPLAYED), rows),
        f"As logged it is the published loss but for {'; '.join(off) or 'none'}; under FCFS + EASY K = 30 "
        f"leaves out at most {100 * largest:.2f} %. Atlas at K = 50 is printed as 9e-05 in a table of "
        "percentages; it is read as a fraction here.",
        "",
    ]


def as_said(ours: float, said: str) -> bool:
    """Tell whether a percentage is what the paper says: a number, rounded, `> 99`, or nothing (`–`)."""
    if said.startswith("> "):
        return ours > float(said.removeprefix("> "))
    return said == "–" or abs(ours - float(said)) <= 0.5


def coverage(data: pd.DataFrame) -> list[str]:
    """Return Figure 7."""
    rows, off = [], []
    for (log, k), paper in COVERED.items():
        logged, replayed = (
            [100 * float(pick(data, f"covered {p}", log, schedule)[k]) for p in (90, 95)]
            for schedule in SCHEDULES
        )
        cells = (" / ".join(f"{value:.1f}" for value in both) for both in (logged, replayed))
        rows.append((log, k, " / ".join(paper), *cells))
        for percent, ours, said in zip((90, 95), logged, paper, strict=True):
            if not as_said(ours, said):
                off.append(f"{log} at K = {k} ({percent} % of the nodes: {ours:.1f} % for {said} %)")
    worst = 100 * min(float(pick(data, "covered 95", log, LOGGED)[40]) for log in LOGS)
    return [
        "## Figure 7: how much of the time K rows show 90 % / 95 % of the nodes in use",
        "",
        *_table(("log", "K", "paper, %", f"{LOGGED}, %", f"{REPLAYED}, %"), rows),
        f"As logged they are the published percentages but for {'; '.join(off) or 'none'}: 40 rows show 95 % "
        f"of the nodes in use for at least {worst:.1f} % of the time.",
        "",
        f"![Figure 7]({NAME}-figure-7.svg)",
        "",
    ]


def layers() -> list[str]:
    """Return Table 4."""
    rows, same = [], True
    for (setting, policy), (inputs, widths) in SIZES.items():
        recipe = recipe_of(policy, setting)
        size = recipe.encoder.size
        ours = (size // 2, *recipe.actor.hidden, recipe.encoder.rows)
        same &= (size, ours) == (inputs, widths)
        paper = f"{inputs:,}: {'–'.join(map(str, widths))}"
        here = f"{size:,}: {'–'.join(map(str, ours))}"
        rows.append((setting, policy, paper, here, f"{sizes(recipe)['actor']:,}"))
    verdict = "All sizes are the published ones" if same else "Sizes differ from the published ones"
    return [
        "## Table 4: inputs, layers, parameters",
        "",
        *_table(("setting", "policy", "paper", "here", "parameters"), rows),
        f"{verdict}; the paper prints no parameter counts. `bridge policies show sem --setting theta --json` "
        "has them.",
        "",
    ]


def _pair(row: "pd.Series[Any]", quantity: str, factor: float = 1.0) -> str:
    return " / ".join(f"{factor * row[quantity, who]:,.3g}" for who in ("SEM", "DRAS"))


def _ratio(row: "pd.Series[Any]", quantity: str) -> str:
    median, least, most = (f"{row[quantity, what]:,.0f}" for what in ("ratio", "least", "most"))
    return f"**{median} ×** ({least}–{most})"


def _times(row: Any) -> str:
    return f"{row['parameters', 'DRAS'] / row['parameters', 'SEM']:,.0f}"


def times(costs: pd.DataFrame) -> list[str]:
    """Return Figure 10."""
    found = compared(costs, "pair")
    rows = [
        (
            log,
            _pair(row, "update", 1e3),
            _pair(row, "decide", 1e3),
            _pair(row, "infer", 1e3),
            _pair(row, "training"),
            _ratio(row, "training"),
            _pair(row, "inference"),
            _ratio(row, "inference"),
        )
        for log, row in found.iterrows()
    ]
    heads = (
        "SEM / DRAS",
        "update, ms",
        "decision while learning, ms",
        "decision once trained, ms",
        "training, s an episode",
        "ratio",
        "inference, s an episode",
        "ratio",
    )
    theta, datastar = found.loc["Theta"], found.loc["DataStar"]
    return [
        "## Figure 10: time to train and to decide",
        "",
        "Published: up to 9 × faster training and 6 × faster inference, more on Theta than on DataStar.",
        "",
        *_table(heads, rows),
        f"SEM trains {theta['training', 'ratio']:.0f} × and decides {theta['inference', 'ratio']:.0f} × as "
        f"fast as DRAS on Theta, {datastar['training', 'ratio']:.0f} × and "
        f"{datastar['inference', 'ratio']:.0f} × on DataStar. The network of DRAS is {_times(theta)} × as "
        f"large on Theta and {_times(datastar)} × on DataStar; updates and decisions also cost what does not "
        "depend on the network, and SEM comes near to that.",
        "",
    ]


def windows(costs: pd.DataFrame) -> list[str]:
    """Return Figure 6."""
    found = compared(costs, "window")
    rows = [
        (
            f"{row['window', '']:.0f}",
            f"{row['inputs', 'DRAS']:,.0f}",
            f"{row['of_decisions', 'DRAS']:,.0f}",
            f"{row['training', 'DRAS']:.1f}",
            f"{row['training', 'SEM']:.2f}",
        )
        for _, row in found.iterrows()
    ]
    dras = found["training", "DRAS"]
    each = 1e3 * (found["training", "DRAS"] / found["of_decisions", "DRAS"])
    return [
        "## Figure 6: training against the window W",
        "",
        f"1,000 jobs of Theta, arrivals {DENSER} × as dense. Published: a figure, and that the cost of DRAS "
        "grows by less than 1 s.",
        "",
        *_table(("W", "inputs of DRAS", "decisions", "DRAS, s", "SEM, s"), rows),
        f"DRAS takes {dras.min():.1f} to {dras.max():.1f} s for 1,000 jobs, and a decision with its share of "
        f"the updates {each.min():.1f} to {each.max():.1f} ms: between the windows lie "
        f"{dras.max() - dras.min():.1f} s (published: less than 1 s), because W changes the inputs of DRAS "
        f"by {_share(found):.1f} % at most.",
        "",
        f"![Figure 6]({NAME}-figure-6.svg)",
        "",
    ]


def _share(found: pd.DataFrame) -> float:
    inputs = found["inputs", "DRAS"]
    return float(100 * (inputs.max() / inputs.min() - 1))


def scaling(costs: pd.DataFrame) -> list[str]:
    """Return Figure 11."""
    found = compared(costs, "scaling")
    timed = costs[(costs["part"] == "scaling") & (costs["agent"] == "DRAS")]
    updates = timed.groupby("case", sort=False)["updates"].sum()
    rows = [
        (
            case,
            " / ".join(f"{row['inputs', who]:,.0f}" for who in ("SEM", "DRAS")),
            f"{row['parameters', 'DRAS'] / 1e6:,.0f} M",
            f"{updates[str(case)]}, {row['of_updates', 'DRAS']:.0f}",
            _pair(row, "update", 1e3),
            _pair(row, "training"),
            _ratio(row, "training"),
            _pair(row, "inference"),
            _ratio(row, "inference"),
        )
        for case, row in found.iterrows()
    ]
    heads = (
        "SEM / DRAS",
        "inputs",
        "parameters of DRAS",
        "updates of DRAS timed, of one episode",
        "update, ms",
        "training, s",
        "ratio",
        "inference, s",
        "ratio",
    )
    last = found.iloc[-1]
    return [
        "## Figure 11: larger machines",
        "",
        "Theta made 2, 4 and 8 times larger, jobs arriving as much faster; 1,000 jobs, hidden layers fixed. "
        "Published at 34,880 nodes: over 8,000 s of training against 7 s.",
        "",
        *_table(heads, rows),
        f"At 34,880 nodes SEM trains {last['training', 'ratio']:,.0f} × as fast, an update alone "
        f"{last['update', 'ratio']:,.0f} × (published: over 1,000 ×): "
        f"{last['training', 'SEM']:.2g} s for 1,000 jobs against {last['training', 'DRAS']:.0f} s, which is "
        "extrapolated from the updates and decisions that were timed. Both need far less time than "
        "published: decisions with one possible answer, of which a larger machine has more, are not put to "
        "the network here, and the paper does not say whether its hidden layers grow.",
        "",
        f"![Figure 11]({NAME}-figure-11.svg)",
        "",
    ]


# The page.

_HEAD = """# SEM: running jobs in place of nodes

What of SEM needs no learning: how many jobs run at once, what the K largest of them leave out, how small the
network gets, and the time that saves against DRAS (Li et al. 2022, Tables 2–4, Figures 5–7, 10, 11), on three
logs: theta_2022, LLNL-Atlas-2006-2.1-cln and SDSC-DS-2004-2.1-cln. *As logged* reads the start times of the
log (Atlas logs no waits, so that a job starts when it was submitted); *FCFS + EASY* replays it under textbook
rules. Data: `docs/results/data/sem-encoding-*.parquet`.
"""


def page(data: pd.DataFrame, costs: pd.DataFrame) -> str:
    """Return the page as Markdown."""
    rounds = costs["round"].nunique()
    measured = [
        "## How times were measured",
        "",
        f"{costs['machine'].iloc[0]}. The machine had other work to do: times are processor time, and both "
        f"agents were measured one behind the other on the same jobs, in {rounds} rounds on different jobs; "
        "medians, of ratios too, with their range. SEM played "
        "its episode to the end; of DRAS some updates and decisions were timed and multiplied by how many "
        "SEM's episode had. A decision is simulation, encoding and network, in single precision while "
        "learning and in double precision once trained, as every agent decides here; these networks had "
        "learnt for one episode at most. Saving and validating are not counted.",
        "",
    ]
    lines = [
        _HEAD,
        *most_running(data),
        *node_hours(data),
        *coverage(data),
        *layers(),
        *measured,
        *times(costs),
        *windows(costs),
        *scaling(costs),
        "Made by `python -m papers sem` (`--again` measures anew); `python benchmarks/sem.py` "
        "prints the times only.",
    ]
    return "\n".join(lines) + "\n"


def write(*, again: bool = False, say: Say = lambda _: None) -> list[Path]:
    """Measure what has not been measured, and write the page and its pictures.

    Args:
        again: measure everything anew.
        say: told what is being done.

    Raises:
        BridgeError: a log is not there.
    """
    data = kept("running", lambda: running(say), again=again)
    costs = kept("speed", lambda: speed(say), again=again)
    pictures = [
        sem_pictures.running_jobs(data),
        sem_pictures.windows(costs),
        sem_pictures.coverage(data),
        sem_pictures.scaling(costs),
    ]
    path = store.RESULTS / f"{NAME}.md"
    with replacing(path) as out:
        out.write(page(data, costs).encode())
    return [*pictures, path]
