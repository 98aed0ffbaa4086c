"""Text of RLSchert's Tables 6–8, and of the same comparison on held-out sequences."""

import numpy as np
import pandas as pd

from bridge.judge.stats import Estimate
from papers.rlschert.numbers import (
    COMMAND,
    against,
    as_printed,
    cell,
    difference,
    estimate,
    markdown,
    results,
    seeds_of,
    smoke_of,
    smoke_warning,
)
from papers.rlschert.play import row_of
from papers.rlschert.rows import BASE, CLAMP, HONEST, LABELS, METHODS, Method, PaperTable

#: Results of one method, or its difference to the base, by label.
Both = dict[str, pd.DataFrame]


def _both(table: PaperTable, method: Method, data: pd.DataFrame) -> Both:
    row = row_of(method, table.metric)
    return {label: results(data, row, table.sample, label) for label in LABELS}


def _told(table: PaperTable, both: Both, data: pd.DataFrame) -> dict[str, Estimate]:
    """Return the differences to the base, of labels that there are."""
    base = _both(table, BASE, data)
    return {
        label: estimate(both[label], table.metric, base[label])
        for label in LABELS
        if len(both[label]) and len(base[label])
    }


def _missing(method: Method, both: Both, command: str) -> str:
    missing = " and ".join(label for label in LABELS if not len(both[label]))
    return f'not run ({missing}); `{command} --row "{method.row}"`.' if missing else ""


# Tables of the paper.


def line(table: PaperTable, method: Method, data: pd.DataFrame) -> tuple[list[str], str]:
    """Return a method's cells in one of the tables, and its sentence."""
    both, paper = _both(table, method, data), method.paper.get(table.number, "")
    seeds = seeds_of(both.values(), learns=bool(method.setting))
    cells = [method.name, method.kill, seeds, paper or "–"]
    cells += [cell(both[label], table.metric) for label in LABELS]
    if missing := _missing(method, both, COMMAND):
        return [*cells, ""], f"{method.row}: {missing}"
    told = _told(table, both, data)
    cells.append("" if method is BASE else difference(told[HONEST]))
    return cells, f"{method.row}: {_sentence(table, method, both, told, paper)}"


def _sentence(table: PaperTable, method: Method, both: Both, told: dict[str, Estimate], paper: str) -> str:
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
        said += f"; honest, it is {against(told[HONEST])} ({difference(told[HONEST])})"
    mine = both[HONEST]
    said += _kills(method, mine)
    if method.setting:
        said += _by_seed(table, mine)
        behind = " behind its teacher" if method.kill == "learned" else ""
        said += f"; trained {mine['train_seconds'].mean() / 60:.1f} min a seed{behind}"
    return said + "." + smoke_warning(max(smoke_of(found) for found in both.values()))


def _kills(method: Method, mine: pd.DataFrame) -> str:
    if method.kill == "none":
        return ""
    return f"; {mine['kills'].mean():.0f} kills lose {mine['lost_steps'].mean():.0f} steps"


def _by_seed(table: PaperTable, mine: pd.DataFrame) -> str:
    means = [float(np.sum(v)) / float(np.sum(mine["jobs"].iloc[0])) for v in mine[table.metric]]
    return f"; by seed {', '.join(f'{value:.2f}' for value in means)}"


def paper_table(table: PaperTable, data: pd.DataFrame) -> list[str]:
    """Return one of Tables 6–8."""
    made = [line(table, method, data) for method in METHODS]
    heads = ("method", "kill", "seeds", "paper", *(f"ours, {label}" for label in LABELS), "honest − SAF")
    return [
        f"## Table {table.number}: {table.title}",
        "",
        *markdown(heads, [cells for cells, _ in made]),
        *(f"- {sentence}" for _, sentence in made),
        "",
    ]


#: Agents of which one is to be better than the other, by the paper.
RIVALS = (
    ("RLSchert", "DeepRM"),
    ("RLSchert, rule kill", "RLSchert"),
    ("RLSchert, learned kill", "RLSchert"),
    ("RLSchert, learned kill", "RLSchert, rule kill"),
)


def rivals(table: PaperTable, data: pd.DataFrame) -> list[str]:
    """Return a sentence per pair of agents if there are both: means over seeds, paired by sequence."""
    methods = {method.row: method for method in METHODS}
    lines = []
    for mine, other in RIVALS:
        one, base = (_both(table, methods[row], data) for row in (mine, other))
        parts = []
        for label in (HONEST, CLAMP):
            if len(one[label]) and len(base[label]):
                e = estimate(one[label], table.metric, base[label])
                parts.append(f"{_WITH[label]} {against(e, other)} ({difference(e)})")
        if parts:
            lines.append(f"- {mine}: {'; '.join(parts)}.")
    return ["Agents against each other:", "", *lines, ""] if lines else []


# Held-out sequences.


def held_out_line(
    table: PaperTable, method: Method, data: pd.DataFrame, command: str
) -> tuple[list[str], str]:
    """Return a method's cells, honest and with the clamp, each beside SAF; and its sentence."""
    both = _both(table, method, data)
    told = _told(table, both, data)
    cells = [method.name, method.kill, seeds_of(both.values(), learns=bool(method.setting))]
    said = []
    for label in (HONEST, CLAMP):
        apart = "" if method is BASE or label not in told else difference(told[label])
        cells += [cell(both[label], table.metric), apart]
        if not len(both[label]):
            continue
        if label == CLAMP and cells[-2:] == cells[-4:-2]:
            said.append("the same with the oracle clamp")
            continue
        mean = f"{estimate(both[label], table.metric).mean:.2f} {_WITH[label]}"
        said.append(mean if not apart else f"{mean}, {against(told[label])} ({apart})")
        if label == HONEST:
            said[-1] += _kills(method, both[label])
            said[-1] += _by_seed(table, both[label]) if method.setting else ""
    text = "; ".join(said)
    missing = _missing(method, both, command)
    if not text:
        return cells, f"{method.row}: {missing}"
    smoke = smoke_warning(max(smoke_of(found) for found in both.values()))
    return cells, f"{method.row}: {text}.{smoke}{' N' + missing[1:] if missing else ''}"


_WITH = {HONEST: "honest", CLAMP: "with the oracle clamp"}


def held_out_table(table: PaperTable, data: pd.DataFrame, title: str, command: str) -> list[str]:
    """Return the comparison on sequences that the paper does not have.

    Args:
        table: sequences and metric.
        data: results.
        title: of the section.
        command: runs what is missing, together with a row's name.
    """
    if not any(len(found) for method in METHODS for found in _both(table, method, data).values()):
        return [title, "", f"Not run; `{command}`.", ""]
    made = [held_out_line(table, method, data, command) for method in METHODS]
    heads = ("method", "kill", "seeds", "honest", "honest − SAF", "oracle clamp", "clamp − SAF")
    return [
        title,
        "",
        *markdown(heads, [cells for cells, _ in made]),
        *(f"- {sentence}" for _, sentence in made),
        "",
        *rivals(table, data),
    ]
