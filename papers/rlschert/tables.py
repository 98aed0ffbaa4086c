"""Text of RLSchert's Table 9, of Figures 10 and 11, and of comparisons on held-out sequences."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from papers.rlschert.found import COMMAND, Apart, Found, estimate, look, seeds_of
from papers.rlschert.play import DEEPRM, KILLER, SJF
from papers.rlschert.study import (
    BASE,
    CLAMP,
    HONEST,
    LABELS,
    METHODS,
    SHARES,
    SHARES_PRINTED,
    Method,
    PaperTable,
    Sample,
    method,
)

#: A row's cells, and its sentence.
Line = tuple[list[str], str]
_WITH = {HONEST: "honest", CLAMP: "with the oracle clamp"}
#: Agents of which one is to be better than the other, by the paper.
RIVALS = (
    ("RLSchert", "DeepRM"),
    ("RLSchert, rule kill", "RLSchert"),
    ("RLSchert, learned kill", "RLSchert"),
    ("RLSchert, learned kill", "RLSchert, rule kill"),
)


def _both(table: PaperTable, one: Method, data: pd.DataFrame) -> dict[str, Found]:
    return {label: look(data, one, table.sample, label, table.metric) for label in LABELS}


def _apart(table: PaperTable, one: Method, both: dict[str, Found], data: pd.DataFrame) -> dict[str, Apart]:
    """Return the differences to the base, of labels that there are."""
    base = _both(table, BASE, data)
    there = [label for label in LABELS if len(both[label]) and len(base[label]) and one is not BASE]
    return {label: both[label].against(base[label], table.metric) for label in there}


def _missing(one: Method, both: dict[str, Found], command: str) -> str:
    missing = " and ".join(label for label in LABELS if not len(both[label]))
    return f'not run ({missing}); `{command} --row "{one.row}"`.' if missing else ""


def _more(table: PaperTable, one: Method, mine: pd.DataFrame) -> str:
    """Say what kills cost, and what each seed of an agent has come to."""
    said = ""
    if one.kill != "none":
        said = f"; {mine['kills'].mean():.0f} kills lose {mine['lost_steps'].mean():.0f} steps"
    if one.setting:
        means = [float(np.sum(v)) / float(np.sum(mine["jobs"].iloc[0])) for v in mine[table.metric]]
        said += f"; by seed {', '.join(f'{value:.2f}' for value in means)}"
    return said


def _warning(both: dict[str, Found]) -> str:
    return max(both.values(), key=lambda found: found.smoke).warning


def held_out_line(table: PaperTable, one: Method, data: pd.DataFrame, command: str) -> Line:
    """Return a method's cells, honest and with the clamp, each beside SAF; and its sentence."""
    both = _both(table, one, data)
    apart = _apart(table, one, both, data)
    cells = [one.name, one.kill, seeds_of(both.values(), learns=bool(one.setting))]
    said = []
    for label in (HONEST, CLAMP):
        cells += [both[label].cell(table.metric), apart[label].text if label in apart else ""]
        if not len(both[label]):
            continue
        if label == CLAMP and cells[-2:] == cells[-4:-2]:
            said.append("the same with the oracle clamp")
            continue
        mean = f"{both[label].mean(table.metric):.2f} {_WITH[label]}"
        said.append(f"{mean}, {apart[label]}" if label in apart else mean)
        if label == HONEST:
            said[-1] += _more(table, one, both[label].rows)
    missing = _missing(one, both, command)
    if not said:
        return cells, f"{one.row}: {missing}"
    return cells, f"{one.row}: {'; '.join(said)}.{_warning(both)}{' N' + missing[1:] if missing else ''}"


def rivals(table: PaperTable, data: pd.DataFrame) -> list[str]:
    """Return a sentence per pair of agents if there are both: means over seeds, paired by sequence."""
    lines = []
    for mine, other in RIVALS:
        one, base = (_both(table, method(row), data) for row in (mine, other))
        parts = [
            f"{_WITH[label]} {one[label].against(base[label], table.metric, other)}"
            for label in (HONEST, CLAMP)
            if len(one[label]) and len(base[label])
        ]
        if parts:
            lines.append(f"{mine}: {'; '.join(parts)}.")
    return lines


def held_out_table(table: PaperTable, data: pd.DataFrame, title: str, command: str) -> dict[str, Any]:
    """Return the comparison on sequences that the paper does not have.

    Args:
        table: sequences and metric.
        data: results.
        title: of the section.
        command: runs what is missing, together with a row's name.
    """
    there = any(len(found) for one in METHODS for found in _both(table, one, data).values())
    lines = [held_out_line(table, one, data, command) for one in METHODS] if there else []
    return {"title": title, "command": command, "lines": lines, "rivals": rivals(table, data)}


def table_9(data: pd.DataFrame) -> dict[str, Any]:
    """Return what becomes of the agent with learnt kills where only some jobs are predicted."""
    rows, said = [], []
    for one in (SJF, DEEPRM, KILLER):
        if printed := SHARES_PRINTED.get(one.row):
            rows.append([one.row, "paper", "", *printed])
        for label in LABELS:
            found = [look(data, one, sample, label) for sample in SHARES]
            means = [f"{f.mean('slowdown'):.2f}" if len(f) else "–" for f in found]
            means[0] = means[0] if len(found[0]) else "not run"
            rows.append([one.row, label, seeds_of(found[:1], learns=bool(one.setting)), *means])
            if one is KILLER and len(found[0]):
                said.append(f"{KILLER.row}, {label}: {_shares(label, found, data)}.{found[0].warning}")
    missing = f'RLSchert, learned kill: not run; `{COMMAND} --row "{KILLER.row}"`.'
    heads = ("method", "", "seeds", *(f"{100 * s.predictable:.0f} %" for s in SHARES))
    return {"heads": heads, "rows": rows, "said": said or [missing]}


def _shares(label: str, found: list[Found], data: pd.DataFrame) -> str:
    parts = [
        f"with {100 * sample.predictable:.0f} % {one.against(found[-1], 'slowdown', 'with all')}"
        for sample, one in zip(SHARES[:-1], found, strict=False)
        if len(one) and len(found[-1])
    ]
    deeprm = look(data, DEEPRM, SHARES[0], label)
    if len(deeprm):
        parts.append(f"with 0 % {found[0].against(deeprm, 'slowdown', 'DeepRM')}")
    return "; ".join(parts)


def sweep(data: pd.DataFrame, samples: Sequence[Sample]) -> dict[str, Any]:
    """Return Figure 10 or 11: mean slowdowns by load or size, ± half of the interval, and in words."""
    rows = {}
    for label in (HONEST, CLAMP):
        rows[label] = [_swept(data, one, samples, label) for one in METHODS]
    said = [f"{one.row}: {_where(data, one, samples)}" for one in METHODS]
    return {"heads": ["method", "seeds", *(sample.name for sample in samples)], "rows": rows, "said": said}


def _swept(data: pd.DataFrame, one: Method, samples: Sequence[Sample], label: str) -> list[str]:
    found = [look(data, one, sample, label) for sample in samples]
    seeds = sorted({seeds_of([f], learns=True) for f in found if len(f)})
    cells = []
    for f in found:
        e = estimate(f.rows, "slowdown") if len(f) else None
        cells.append(f"{e.mean:.2f} ± {e.high - e.mean:.2f}" if e else "not run")
    return [one.row, "none needed" if one.rule else ", ".join(seeds) or "0", *cells]


def _where(data: pd.DataFrame, one: Method, samples: Sequence[Sample]) -> str:
    if one is BASE:
        return "the one that others are compared with."
    where: dict[str, list[str]] = {}
    warning = ""
    for sample in samples:
        found = look(data, one, sample, HONEST)
        if len(found):
            said = found.against(look(data, BASE, sample, HONEST), "slowdown").said
            where.setdefault(said, []).append(sample.name)
            warning = warning or found.warning
    parts = [f"{said} at {', '.join(names)}" for said, names in where.items()]
    missing = f'not run; `{COMMAND} --row "{one.row}"`'
    return f"{'; '.join(parts) or missing}.{warning}"
