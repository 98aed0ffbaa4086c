"""Tables from results: what was published, what we measured, and one honest sentence for each row."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bridge.files import replacing
from bridge.judge.sequences import Judged, judge
from papers import store
from papers.many import everybody, kiviat, rivals
from papers.mrsch import goals
from papers.pictures import curves
from papers.rows import TABLES, Row, Table
from papers.sem import convergence

Judgement = tuple[Judged, float]


def _values(found: pd.DataFrame, label: str) -> np.ndarray[Any, np.dtype[np.float64]] | None:
    """Return a contestant's value per sequence, the mean over its seeds."""
    mine = found[found["label"] == label]
    if not len(mine):
        return None
    return np.mean(np.stack([np.asarray(v, np.float64) for v in mine["values"]]), axis=0)


def _interval(judged: Judged) -> str:
    d = judged.difference
    assert d is not None
    if np.isnan(d.low):
        return f"{d.mean:+.2f} (no interval)"
    return f"{d.mean:+.2f} [{d.low:+.2f}, {d.high:+.2f}]"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _line(table: Table, row: Row, test: str, found: pd.DataFrame) -> tuple[list[str], str]:
    """Return a row's cells and its sentence."""
    found = found[(found["row"] == row.name) & (found["test"] == test)]
    base, agent = _values(found, "base"), _values(found, "agent")
    command = f'`python -m papers run {table.name} --row "{row.name}"`'
    paper = (
        " → ".join(_number(row.paper.get(k)) for k in ("base", "agent"))
        if row.paper and test == "paper"
        else "–"
    )
    if base is None or agent is None:
        return [
            row.name,
            "0",
            paper,
            _number(None if base is None else float(base.mean())),
            "not run",
            "",
            "",
            "",
        ], (f"{row.name}: not run; {command}.")
    some = found[found["label"] == "agent"]
    starts = np.asarray(some["starts"].iloc[0], np.int64)
    length = int(some["length"].iloc[0])
    judged = judge(agent, base, starts, length)
    smoke = int(some["smoke"].max())
    seeds = f"{len(some)}" + (f" (smoke: {smoke} epochs)" if smoke else "")
    everybody = bool(some["oracle"].any())  # the loading rule tells the agent, too
    best, against = None, None
    for one in row.baselines:
        values = _values(found, one.label)
        told = bool(found[found["label"] == one.label]["oracle"].any()) and not everybody
        if values is not None and not told and (best is None or values.mean() < best[1].mean()):
            best = (one.label, values)
    cells = [row.name, seeds, paper, f"{base.mean():.2f}", f"{agent.mean():.2f}", _interval(judged)]
    sentence = f"{row.name}: {_said(judged, 'the base')}"
    if everybody:
        sentence += " (requested times are the true run times, for everybody here)"
    if best is None:
        cells += ["–", "–"]
    else:
        against = judge(agent, best[1], starts, length)
        cells += [f"{best[0]}: {best[1].mean():.2f}", _interval(against)]
        sentence += f", and {_said(against, f'the best that does not learn ({best[0]})')}"
    sentence += f"; {_price(found)}"
    per_seed = ", ".join(f"{m:.2f}" for m in some.sort_values("seed")["mean"])
    sentence += f"; by seed {per_seed}; trained {some['train_seconds'].mean() / 60:.1f} min a seed."
    if smoke:
        sentence += f" A smoke row: {smoke} epochs show that it runs, no more; {command}."
    return cells, sentence


def _price(found: pd.DataFrame) -> str:
    """Say what else differs: mean wait and utilisation, base and agent."""
    means = found.groupby("label")[["wait", "utilisation"]].mean()
    base, agent = means.loc["base"], means.loc["agent"]
    return (
        f"mean wait {base['wait'] / 3600:.1f} h → {agent['wait'] / 3600:.1f} h, "
        f"utilisation {100 * base['utilisation']:.0f} % → {100 * agent['utilisation']:.0f} %"
    )


def _said(judged: Judged, whom: str) -> str:
    said = judged.verdict
    if said == "not distinguishable":
        return f"not distinguishable from {whom}"
    if said in ("better", "worse"):
        return f"{said} than {whom}"
    if judged.mean.n == 1:
        return f"on this one sequence, which has no interval, not to be told from {whom}"
    return f"{said} ({whom})"


def _others(table: Table, test: str, found: pd.DataFrame) -> list[str]:
    """Return the table of everybody else on the same sequences."""
    lines: list[str] = []
    if not len(found):
        return lines
    for row in table.rows:
        mine = found[(found["row"] == row.name) & (found["test"] == test) & (found["kind"] != "agent")]
        cells = [
            f"{one['label']}{'*' if one['oracle'] else ''} {one['mean']:.2f}"
            for label in ("base", *(b.label for b in row.baselines))
            for _, one in mine[mine["label"] == label].iterrows()
        ]
        published = [
            f"{name} {value:.2f}" for name, value in row.paper.items() if name not in ("base", "agent")
        ]
        if cells:
            text = " · ".join(cells)
            if published and test == "paper":
                text += f" (published: {', '.join(published)})"
            lines.append(f"- {row.name}: {text}")
    return lines


def page(table: Table) -> str:
    """Return a table as Markdown."""
    found = store.read(table.name)
    text = [f"# {table.title}", "", table.says, ""]
    if len(found):
        metric = found["metric"].iloc[0]
        text += [
            f"Metric: {metric}, lower is better. Differences: agent − other on the same sequences (the mean "
            "over seeds), with paired 95 % intervals: moving-block bootstrap where sequences overlap. `*` "
            "reads true run times.",
            "",
        ]
    tests = list(dict.fromkeys(t for row in table.rows for t in row.tests))
    learns = any(row.policy for row in table.rows)
    for name in dict.fromkeys(t.name for t in tests):
        rows = [row for row in table.rows if any(t.name == name for t in row.tests)]
        one = next(t for t in tests if t.name == name)
        where = "that no agent has learnt from" if one.held_out and learns else "of the whole log"
        what = f"{one.sequences} sequences of {one.length} jobs" if one.length else "All jobs in one go,"
        text += [f"## {what} {where}", ""]
        if learns:
            text += [
                "| row | seeds | paper: base → agent | base | agent | agent − base "
                "| best that does not learn | agent − it |",
                "|---|---|---|---|---|---|---|---|",
            ]
            made = [_line(table, row, name, found) for row in rows]
            text += ["| " + " | ".join(cells) + " |" for cells, _ in made]
            text += ["", *(f"- {sentence}" for _, sentence in made), ""]
        if table.more and len(found):
            text += [*rivals(table, name, found), *everybody(table, name, found)]
            continue
        if learns:
            text += ["Everybody else on the same sequences:", ""]
        text += [*_others(table, name, found), ""]
    text.append(f"Made by `python -m papers run {table.name}` and `python -m papers report`.")
    return "\n".join(text).rstrip() + "\n"


def _goals(table: Table) -> bool:
    return bool(table.rivals) and table.rows[0].policy == "mrsch"


def _charts(table: Table) -> tuple[Path | None, ...]:
    """Draw what tables of many metrics have beside the curves."""
    if not table.more:
        return ()
    if table.rows[0].policy == "sem":
        return kiviat(table), convergence.draw(table)
    return kiviat(table), goals.draw(table) if _goals(table) else None


def write() -> list[Path]:
    """Write all tables and their index."""
    store.RESULTS.mkdir(parents=True, exist_ok=True)
    written = []
    for table in TABLES:
        picture = curves(table)
        text = page(table)
        for chart in _charts(table):
            if chart is not None:
                text += f"\n![{chart.stem}]({chart.name})\n"
        if _goals(table) and (sentences := goals.said(table)):
            text += "\nThe goal of each decision, all jobs in one go:\n\n" + "\n".join(sentences) + "\n"
        if table.rows[0].policy == "sem" and (sentences := convergence.said(table)):
            text += (
                "\nConvergence (published: after 60 episodes against 86 on Theta, 53 against 74 on DataStar; "
                "here waits do not fall while they learn, so that no such number can be read off: at first, "
                "picking nearly at random, they wait less than FCFS already, and the published reward pays "
                "for old and large jobs):\n\n"
            )
            text += "\n".join(sentences) + "\n"
        for drawn in (picture, *sorted(store.RESULTS.glob(f"{table.rows[0].policy or '-'}-*-explained.svg"))):
            if drawn is not None and (drawn == picture or any(row.headline for row in table.rows)):
                text += f"\n![{drawn.stem}]({drawn.name})\n"
        path = store.RESULTS / f"{table.name}.md"
        with replacing(path) as out:
            out.write(text.encode())
        written.append(path)
    lines = [
        "# Results",
        "",
        "Published experiments, repeated; see each page for numbers, intervals and commands.",
        "",
    ]
    for table in TABLES:
        found = store.read(table.name)
        done = found[found["kind"] == "agent"] if len(found) else found
        have = (
            sum(
                len(done[(done["row"] == row.name) & (done["smoke"] == 0)]["seed"].unique()) >= row.seeds
                for row in table.rows
            )
            if len(found)
            else 0
        )
        learns = any(row.policy for row in table.rows)
        state = (
            f"{have} of {len(table.rows)} rows complete"
            if learns
            else ("complete" if len(found) else "not run")
        )
        lines.append(f"- [{table.title}]({table.name}.md): {state}")
    for name, title in (
        ("sem-encoding", "SEM: running jobs in place of nodes"),
        ("both-worlds", "The same agents in both worlds"),
        ("mrsch-both-worlds", "Many resources in both worlds: staging and power"),
        ("rlschert", "RLSchert: pick or kill jobs on a slotted pool"),
    ):
        if (store.RESULTS / f"{name}.md").exists():
            lines.append(f"- [{title}]({name}.md)")
    index = store.RESULTS / "README.md"
    with replacing(index) as out:
        out.write(("\n".join(lines) + "\n").encode())
    return [*written, index]
