"""RLSchert's page: Tables 6–8 and Figures 10 and 11, what was published beside what was measured."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from benchmarks.papers import rlschert_pictures as pictures
from benchmarks.papers import store
from benchmarks.papers.rlschert_rows import (
    BASE,
    HONEST,
    LABELS,
    LOADS,
    METHODS,
    SIZES,
    TABLES,
    Method,
    PaperTable,
    Sample,
)
from benchmarks.papers.rlschert_run import MAIN, SWEEPS, row_of
from bridge.files import replacing
from bridge.judge.stats import Estimate, mean_ci, verdict

Floats = npt.NDArray[np.float64]
NAME = "rlschert"
COMMAND = "python -m benchmarks.papers rlschert"


# Numbers.


def results(data: pd.DataFrame, row: str, sample: Sample, label: str) -> pd.DataFrame:
    """Return a contestant's results on some sequences, one per seed."""
    mine = (data["row"] == row) & (data["test"] == sample.name) & (data["label"] == label)
    return data[mine].sort_values("seed")


def _sums(found: pd.DataFrame, metric: str) -> Floats:
    """Return the sum over each sequence's jobs, the mean over the seeds."""
    sums: Floats = np.mean(np.stack([np.asarray(v, np.float64) for v in found[metric]]), axis=0)
    return sums


def estimate(found: pd.DataFrame, metric: str, base: pd.DataFrame | None = None) -> Estimate:
    """Return the mean over all jobs, which the paper prints, or its difference to the base's.

    Sequences are what is drawn, jobs are not independent; so the interval is that of a ratio of two sums over
    sequences: Student's t on its linearised values (Cochran, Sampling Techniques, 1977, §6.4), 95 %.

    Args:
        found: `results` of one contestant.
        metric: ``slowdown`` or ``completion``.
        base: of another one on the same sequences.
    """
    jobs = np.asarray(found["jobs"].iloc[0], np.float64)
    sums = _sums(found, metric) - (0.0 if base is None else _sums(base, metric))
    ratio = sums.sum() / jobs.sum()
    return mean_ci(ratio + (sums - ratio * jobs) / jobs.mean())


def as_printed(ours: float, paper: str) -> bool:
    """Tell whether a number is the printed one, to its last digit."""
    return f"{ours:.{len(paper.partition('.')[2])}f}" == paper


def _cell(found: pd.DataFrame, metric: str) -> str:
    if not len(found):
        return "not run"
    e = estimate(found, metric)
    return f"{e.mean:.2f} [{e.low:.2f}, {e.high:.2f}]"


def _difference(e: Estimate) -> str:
    return f"{e.mean:+.2f} [{e.low:+.2f}, {e.high:+.2f}]"


def _against(e: Estimate) -> str:
    said = verdict(e)
    return f"{said} {'from' if said == 'not distinguishable' else 'than'} {BASE.row}"


# One table.


def line(table: PaperTable, method: Method, data: pd.DataFrame) -> tuple[list[str], str]:
    """Return a method's cells in one of the tables, and its sentence."""
    row, paper = row_of(method, table.metric), method.paper.get(table.number, "")
    both = {label: results(data, row, table.sample, label) for label in LABELS}
    base = {label: results(data, BASE.row, table.sample, label) for label in LABELS}
    cells = [method.name, method.kill, _seeds(method, both), paper or "–"]
    cells += [_cell(both[label], table.metric) for label in LABELS]
    if not all(len(both[label]) for label in LABELS):
        missing = " and ".join(label for label in LABELS if not len(both[label]))
        cells.append("")
        return cells, f'{method.row}: not run ({missing}); `{COMMAND} --row "{method.row}"`.'
    told = {label: estimate(both[label], table.metric, base[label]) for label in LABELS}
    cells.append("" if method is BASE else _difference(told[HONEST]))
    return cells, f"{method.row}: {_sentence(table, method, both, told, paper)}"


def _seeds(method: Method, both: dict[str, pd.DataFrame]) -> str:
    if method.rule:
        return "none needed"
    counts = sorted({len(found) for found in both.values()})
    smoke = max((int(found["smoke"].max()) for found in both.values() if len(found)), default=0)
    return "–".join(map(str, counts)) + (f" (smoke: {smoke} epochs)" if smoke else "")


def _sentence(
    table: PaperTable,
    method: Method,
    both: dict[str, pd.DataFrame],
    told: dict[str, Estimate],
    paper: str,
) -> str:
    clamped, honest = (estimate(both[label], table.metric).mean for label in LABELS)
    if not paper:
        said = f"{clamped:.2f} with the oracle clamp (nothing is printed)"
    elif as_printed(clamped, paper):
        said = "the printed number with the oracle clamp"
    else:
        off = 100 * (clamped / float(paper) - 1)
        said = f"{clamped:.2f} with the oracle clamp, {off:+.1f} % beside the printed {paper}"
    said += ", the same without it" if f"{honest:.2f}" == f"{clamped:.2f}" else f", {honest:.2f} without it"
    if method is not BASE:
        said += f"; honest, it is {_against(told[HONEST])} ({_difference(told[HONEST])})"
    mine = both[HONEST]
    if method.kill != "none":
        said += f"; {mine['kills'].mean():.0f} kills lose {mine['lost_steps'].mean():.0f} steps"
    if method.setting:
        sums = [float(np.sum(v)) / float(np.sum(mine["jobs"].iloc[0])) for v in mine[table.metric]]
        said += f"; by seed {', '.join(f'{value:.2f}' for value in sums)}"
        behind = " behind its teacher" if method.kill == "learned" else ""
        said += f"; trained {mine['train_seconds'].mean() / 60:.1f} min a seed{behind}"
        if smoke := max(int(found["smoke"].max()) for found in both.values()):
            said += f". A smoke row: {smoke} epochs show that it runs, no more"
    return said + "."


def _table(heads: Iterable[str], rows: Iterable[Iterable[object]]) -> list[str]:
    heads = list(heads)
    lines = [heads, ["---"] * len(heads), *rows]
    return ["| " + " | ".join(map(str, line)) + " |" for line in lines] + [""]


def paper_table(table: PaperTable, data: pd.DataFrame) -> list[str]:
    """Return one of Tables 6–8."""
    made = [line(table, method, data) for method in METHODS]
    heads = ("method", "kill", "seeds", "paper", *(f"ours, {label}" for label in LABELS), "honest − SAF")
    return [
        f"## Table {table.number}: {table.title}",
        "",
        *_table(heads, [cells for cells, _ in made]),
        *(f"- {sentence}" for _, sentence in made),
        "",
    ]


# Sweeps.


def sweep(data: pd.DataFrame, samples: tuple[Sample, ...], label: str) -> list[str]:
    """Return a table of mean slowdowns, one column per load or size; half-widths of intervals behind ±."""
    rows = []
    for method in METHODS:
        cells = [method.row]
        seeds: set[str] = set()
        for sample in samples:
            found = results(data, row_of(method, "slowdown"), sample, label)
            if len(found):
                e = estimate(found, "slowdown")
                cells.append(f"{e.mean:.2f} ± {e.high - e.mean:.2f}")
                smoke = int(found["smoke"].max())
                seeds.add(f"{len(found)}" + (f" (smoke: {smoke} epochs)" if smoke else ""))
            else:
                cells.append("not run")
        cells.insert(1, "none needed" if method.rule else ", ".join(sorted(seeds)) or "0")
        rows.append(cells)
    return _table(("method", "seeds", *(sample.name for sample in samples)), rows)


def said(data: pd.DataFrame, samples: tuple[Sample, ...], label: str) -> list[str]:
    """Return a sentence per method: where it is better or worse than SAF."""
    lines = []
    for method in METHODS:
        if method is BASE:
            lines.append(f"- {method.row}: the one that others are compared with.")
            continue
        where: dict[str, list[str]] = {}
        smoke = 0
        for sample in samples:
            found = results(data, row_of(method, "slowdown"), sample, label)
            if len(found):
                base = results(data, BASE.row, sample, label)
                judged = _against(estimate(found, "slowdown", base))
                where.setdefault(judged, []).append(sample.name)
                smoke = max(smoke, int(found["smoke"].max()))
        parts = [f"{judged} at {', '.join(names)}" for judged, names in where.items()]
        missing = f'not run; `{COMMAND} --row "{method.row}"`'
        only = f" A smoke row: {smoke} epochs show that it runs, no more." if smoke else ""
        lines.append(f"- {method.row}: {'; '.join(parts) or missing}.{only}")
    return [*lines, ""]


def _figure(data: pd.DataFrame, number: int, title: str, samples: tuple[Sample, ...], says: str) -> list[str]:
    text = [f"## Figure {number}: {title}", "", says, ""]
    for label in reversed(LABELS):
        text += [f"{label.capitalize()}:", "", *sweep(data, samples, label)]
    text += ["Honest, against SAF:", "", *said(data, samples, HONEST)]
    return [*text, f"![Figure {number}]({NAME}-figure-{number}.svg)", ""]


# The page.

_HEAD = """# RLSchert: pick or kill jobs on a slotted pool

Tables 6–8 and Figures 10 and 11 of Wang et al. 2021 (Applied Sciences 11, 9448): 16 sequences of 200 steps,
20 units and rate 0.7 unless said otherwise; 4,870 logged VASP jobs, which are not ours to ship. The published
numbers were measured with the authors' code, which reads true lengths (see *Oracle clamp* in
[slotted](../slotted.md)): *ours, oracle clamp* does the same, for training and judging alike; *ours, honest*
does not. Agents are the settings `recommended`, `rule-kill`, `kill` and `deeprm` of `policies/rlschert.py`,
trained for the metric that the table shows.

Means are over all jobs of all sequences, as printed; behind them 95 % intervals over the sequences (ratio of
two sums, Student's t), for agents of the mean over seeds: what another seed of training changes is in the
sentences, not in the intervals. Each comparison stands alone: of twenty that differ by chance only, one is
called better or worse. Lower is better.
"""


def page(tables: pd.DataFrame, sweeps: pd.DataFrame) -> str:
    """Return the page as Markdown."""
    text = [_HEAD]
    for table in TABLES:
        text += paper_table(table, tables)
    text += _figure(
        sweeps,
        10,
        "mean slowdown against the load",
        LOADS,
        "Sequences of seed 18; the paper draws its numbers and prints none. Agents are those of Table 7: "
        "they have learnt at rate 0.7.",
    )
    text += _figure(
        sweeps,
        11,
        "mean slowdown against the size of the pool",
        SIZES,
        f"The same at rate 0.7. A pool of another size is another picture: agents are trained for each "
        f"(`{COMMAND} --sizes`).",
    )
    text.append(
        f"Made by `{COMMAND}` (`--seeds 3`; heuristics alone: `--seeds 0`). Data: "
        "`docs/results/data/rlschert-*.parquet`."
    )
    return "\n".join(text) + "\n"


def write() -> list[Path]:
    """Write the page and its pictures from what was measured."""
    tables, sweeps = _read(MAIN), _read(SWEEPS)
    drawn = [
        pictures.draw(sweeps, 10, "jobs per step", LOADS, [s.rate for s in LOADS]),
        pictures.draw(sweeps, 11, "units", SIZES, [s.units for s in SIZES]),
    ]
    path = store.RESULTS / f"{NAME}.md"
    with replacing(path) as out:
        out.write(page(tables, sweeps).encode())
    return [*drawn, path]


def _read(file: str) -> pd.DataFrame:
    found = store.read(file)
    columns: dict[str, Any] = {name: [] for name in ("smoke", "jobs")}
    return found if len(found) else found.assign(**columns)
