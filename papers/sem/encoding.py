"""SEM's tables and figures in which nothing is learnt: running jobs, what K rows lose, sizes and speed."""

import itertools
from pathlib import Path
from typing import Any

import pandas as pd

from bridge.learn.network import parameter_counts
from bridge.learn.registry import recipe_of
from papers import store
from papers.output import LineWriter
from papers.pages import render
from papers.sem import pictures
from papers.sem.running import LOGS, NAME, REPLAYED, SCHEDULES, pick, running
from papers.sem.speed import DENSER, GROWING_ROUNDS, LARGER, agents, cases, compared, growing, speed

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


def most_running(data: pd.DataFrame) -> dict[str, Any]:
    """Return Table 2."""
    both = {log: [pick(data, "cdf", log, schedule) for schedule in SCHEDULES] for log in MOST}
    most = {log: [int(shares.index.max()) for shares in shares_of_log] for log, shares_of_log in both.items()}
    return {
        "rows": [
            (log, paper, *most[log], *(int((shares < 0.99).sum()) for shares in both[log]))
            for log, paper in MOST.items()
        ],
        "exact": [log for log in MOST if most[log][0] == MOST[log]],
        "off": [
            f"{most[log][0]} on {log} (the paper: {MOST[log]})" for log in MOST if most[log][0] != MOST[log]
        ],
        "datastar": most["DataStar"][1],
    }


def node_hours(data: pd.DataFrame) -> dict[str, Any]:
    """Return Table 3."""
    rows, off = [], []
    for log in ("DataStar", "Atlas", "Theta"):
        both = [100 * pick(data, "lost", log, schedule) for schedule in SCHEDULES]
        for k in (30, 40, 50):
            paper = LOSS.get((log, k))
            rows.append((log, k, "–" if paper is None else f"{paper:g} %", *(f"{s[k]:.3f} %" for s in both)))
            if paper is not None and abs(both[0][k] - paper) > 0.005:
                off.append(f"{log} at K = {k} ({both[0][k]:.3f} %, the paper: {paper:g} %)")
    return {
        "rows": rows,
        "off": off,
        "most": 100 * max(pick(data, "lost", log, REPLAYED)[30] for log in LOGS),
    }


def as_said(ours: float, printed: str) -> bool:
    """Tell whether a percentage is what the paper says: a number, rounded, `> 99`, or nothing (`–`)."""
    if printed.startswith("> "):
        return ours > float(printed.removeprefix("> "))
    return printed == "–" or abs(ours - float(printed)) <= 0.5


def coverage(data: pd.DataFrame) -> dict[str, Any]:
    """Return Figure 7."""
    rows, off = [], []
    for (log, k), paper in COVERED.items():
        logged, replayed = (
            [100 * float(pick(data, f"covered {p}", log, schedule)[k]) for p in (90, 95)]
            for schedule in SCHEDULES
        )
        cells = (" / ".join(f"{value:.1f}" for value in both) for both in (logged, replayed))
        rows.append((log, k, " / ".join(paper), *cells))
        for percent, ours, printed in zip((90, 95), logged, paper, strict=True):
            if not as_said(ours, printed):
                off.append(
                    f"{log} at K = {k} ({percent} % of the nodes: {ours:.1f} %, the paper: {printed} %)"
                )
    least = min(float(pick(data, "covered 95", log, SCHEDULES[0])[40]) for log in LOGS)
    return {"rows": rows, "off": off, "least": 100 * least}


def layers() -> dict[str, Any]:
    """Return Table 4."""
    rows, same = [], True
    for (setting, policy), paper in SIZES.items():
        recipe = recipe_of(policy, setting)
        size = recipe.encoder.size
        here = size, (size // 2, *recipe.actor.hidden, recipe.encoder.rows)
        same &= here == paper
        both = (f"{inputs:,}: {'–'.join(map(str, widths))}" for inputs, widths in (paper, here))
        rows.append((setting, policy, *both, f"{parameter_counts(recipe)['actor']:,}"))
    return {"rows": rows, "same": same}


def _pair(row: Any, quantity: str, factor: float = 1.0) -> str:
    return " / ".join(f"{factor * row[quantity, who]:,.3g}" for who in ("SEM", "DRAS"))


def _and_ratio(row: Any, quantity: str) -> tuple[str, str]:
    median, least, most = (f"{row[quantity, what]:,.0f}" for what in ("ratio", "least", "most"))
    return _pair(row, quantity), f"**{median} ×** ({least}–{most})"


def times(costs: pd.DataFrame) -> dict[str, Any]:
    """Return Figure 10."""
    ratios = compared(costs, "pair")
    larger = ratios["parameters", "DRAS"] / ratios["parameters", "SEM"]
    return {
        "rows": [
            (
                log,
                *(_pair(row, quantity, 1e3) for quantity in ("update", "decide", "infer")),
                *_and_ratio(row, "training"),
                *_and_ratio(row, "inference"),
            )
            for log, row in ratios.iterrows()
        ],
        "larger": {log: f"{value:,.0f}" for log, value in larger.items()},
        **{
            quantity: {log: f"{value:.0f}" for log, value in ratios[quantity, "ratio"].items()}
            for quantity in ("training", "inference")
        },
    }


def windows(costs: pd.DataFrame) -> dict[str, Any]:
    """Return Figure 6."""
    ratios = compared(costs, "window")
    dras, inputs = ratios["training", "DRAS"], ratios["inputs", "DRAS"]
    each = 1e3 * dras / ratios["of_decisions", "DRAS"]
    return {
        "denser": DENSER,
        "rows": [
            (
                f"{row['window', '']:.0f}",
                *(f"{row[quantity, 'DRAS']:,.0f}" for quantity in ("inputs", "of_decisions")),
                f"{row['training', 'DRAS']:.1f}",
                f"{row['training', 'SEM']:.2f}",
            )
            for _, row in ratios.iterrows()
        ],
        "least": dras.min(),
        "most": dras.max(),
        "each": (each.min(), each.max()),
        "growth": dras.iloc[-1] - dras.iloc[0],
        "widest": ratios["window", ""].iloc[-1],
        "inputs": 100 * (inputs.max() / inputs.min() - 1),
    }


def scaling(costs: pd.DataFrame) -> dict[str, Any]:
    """Return Figure 11."""
    ratios = compared(costs, "scaling")
    timed = costs[(costs["part"] == "scaling") & (costs["agent"] == "DRAS")]
    updates = timed.groupby("case", sort=False)["updates"].sum()
    last = ratios.iloc[-1]
    return {
        "rows": [
            (
                case,
                " / ".join(f"{row['inputs', who]:,.0f}" for who in ("SEM", "DRAS")),
                f"{row['parameters', 'DRAS'] / 1e6:,.0f} M",
                f"{updates[str(case)]}, {row['of_updates', 'DRAS']:.0f}",
                _pair(row, "update", 1e3),
                *_and_ratio(row, "training"),
                *_and_ratio(row, "inference"),
            )
            for case, row in ratios.iterrows()
        ],
        **{quantity: f"{last[quantity, 'ratio']:,.0f}" for quantity in ("training", "update")},
        "sem": f"{last['training', 'SEM']:.2g}",
        "dras": f"{last['training', 'DRAS']:.0f}",
        **_epoch(last),
    }


def _epoch(row: Any) -> dict[str, str]:
    """Return what an episode of training is made of, and how much each network's size can explain."""
    ratio = row["parameters", "DRAS"] / row["parameters", "SEM"]
    numbers = {"parameters": f"{ratio:,.0f}"}
    for who, name in (("SEM", "of_sem"), ("DRAS", "of_dras")):
        updating = row["of_updates", who] * row["update", who]
        share = 100 * updating / (updating + row["of_decisions", who] * row["decide", who])
        numbers[name] = f"{share:.0f}"
        numbers[f"{name}_each"] = f"{1e9 * row['update', who] / row['parameters', who]:.1f}"
    return numbers


def wider(costs: pd.DataFrame) -> dict[str, Any]:
    """Return Figure 11 with hidden layers of DRAS that grow as well, and its last point, extrapolated."""
    ratios = compared(costs, "growing")
    last, first = ratios.iloc[-1], ratios.iloc[0]
    parameters = _grown(int(first["nodes", ""]), LARGER[-1])
    update = last["update", "DRAS"] * parameters / last["parameters", "DRAS"]
    return {
        "rows": [
            (
                case,
                f"{row['parameters', 'DRAS'] / 1e6:,.0f} M",
                _pair(row, "update", 1e3),
                "**{:,.0f} ×** ({:,.0f}–{:,.0f})".format(
                    *(row["update", what] for what in ("ratio", "least", "most"))
                ),
                *_and_ratio(row, "training"),
            )
            for case, row in ratios.iterrows()
        ],
        "nodes": f"{last['nodes', '']:,.0f}",
        "update": f"{last['update', 'ratio']:,.0f}",
        "parameters": f"{parameters / 1e9:.1f}",
        "seconds": f"{update:.1f}",
        "extrapolated": f"{update / last['update', 'SEM']:,.0f}",
    }


def _grown(nodes: int, times: int) -> int:
    """Return the parameters of DRAS on a machine and with hidden layers so many times as large."""
    recipe = agents("theta", times * nodes, 1, 50, times)["DRAS"]
    widths = (recipe.encoder.size // 2, *recipe.actor.hidden, recipe.encoder.rows)
    return 3 + sum(a * b for a, b in itertools.pairwise(widths)) + widths[-1]


def page(data: pd.DataFrame, costs: pd.DataFrame, grown: pd.DataFrame) -> str:
    return render(
        "sem/encoding.md",
        running=most_running(data),
        lost=node_hours(data),
        covered=coverage(data),
        layers=layers(),
        machine=costs["machine"].iloc[0],
        rounds=costs["round"].nunique(),
        times=times(costs),
        windows=windows(costs),
        scaling=scaling(costs),
        wider=wider(grown),
        grown_rounds=grown["round"].nunique(),
    )


def write(*, again: bool = False, say: LineWriter = lambda _: None) -> list[Path]:
    """Measure what has not been measured (`again`: all), and write the page and its pictures."""
    data = store.kept(f"{NAME}-running", lambda: running(say), again=again)
    costs = store.kept(f"{NAME}-speed", lambda: speed(say, cases()), again=again)
    grown = store.kept(f"{NAME}-growing", lambda: speed(say, growing(), GROWING_ROUNDS), again=again)
    return [*pictures.draw(data, costs), store.written(NAME, page(data, costs, grown))]
