"""RLSchert's Table 3: networks and algorithms, trained as the paper says."""

import pandas as pd

from papers.rlschert.numbers import (
    COMMAND,
    against,
    cell,
    difference,
    estimate,
    markdown,
    results,
    seeds_of,
    smoke_of,
    smoke_warning,
)
from papers.rlschert.play import Player, Wanted, judge, row_of
from papers.rlschert.rows import BASE, CLAMP, NETWORKS, TEST, TRAINING, Method
from papers.rlschert.train import Data, trained

FILE = "rlschert-table-3"
SAMPLES = (TRAINING, TEST)
#: What the paper prints, of sequences that it does not name: far below all of its other tables.
PRINTED = {"paper-pg": "7.16", "paper-cnn": "7.59", "paper": "7.03"}


def run(wanted: Wanted, data: Data) -> None:
    """Train them with the oracle clamp, unless they are; let them play, and whoever else exists."""
    for method in NETWORKS:
        if method not in wanted.methods:
            continue
        pupil = wanted.pupil(method.setting, CLAMP)
        for seed in range(1, wanted.seeds + 1):
            trained(pupil, seed, data, wanted.say)
        for seed in pupil.seeds(data):
            for sample in SAMPLES:
                judge(FILE, Player(method, CLAMP, pupil, seed), sample, data, wanted.say)


def text(data: pd.DataFrame, tables: pd.DataFrame) -> list[str]:
    """Return the section.

    Args:
        data: results of these agents.
        tables: of Tables 6–8, where SAF and the setting `recommended` are.
    """
    rows, said = [], []
    for method in NETWORKS:
        row = row_of(method, "slowdown")
        found = [results(data, row, sample, CLAMP) for sample in SAMPLES]
        rows.append(_row(method, found))
        if not all(len(one) for one in found):
            said.append(f'- {method.row}: not run; `{COMMAND} --part table-3 --row "{method.row}"`.')
            continue
        said.append(f"- {method.row}: {_sentence(found, tables)}")
    recommended = Method("`recommended`, for comparison", "none", setting="recommended")
    ours = [results(tables, "RLSchert (slowdown)", sample, CLAMP) for sample in SAMPLES]
    rows.append(_row(recommended, ours))
    heads = ("network", "setting", "seeds", "paper", *(f"ours, {sample.name}" for sample in SAMPLES))
    return [
        "## Table 3: networks and algorithms",
        "",
        "Mean slowdown of agents without kills, trained as the paper says (settings `paper…`: its Table 4, "
        "the same 16 sequences again and again) with the oracle clamp, and judged with it. The printed "
        "numbers lie below those of all other tables: they are of other sequences, which are not named.",
        "",
        *markdown(heads, rows),
        *said,
        "",
    ]


def _row(method: Method, found: list[pd.DataFrame]) -> list[str]:
    seeds = seeds_of(found, learns=True)
    paper = PRINTED.get(method.setting, "–")
    return [method.name, f"`{method.setting}`", seeds, paper, *(cell(one, "slowdown") for one in found)]


def _sentence(found: list[pd.DataFrame], tables: pd.DataFrame) -> str:
    parts = []
    for sample, one in zip(SAMPLES, found, strict=True):
        base = results(tables, BASE.row, sample, CLAMP)
        if len(base):
            e = estimate(one, "slowdown", base)
            parts.append(f"{sample.name}: {against(e)} ({difference(e)})")
    minutes = found[0]["train_seconds"].mean() / 60
    return f"{'; '.join(parts)}; trained {minutes:.1f} min a seed.{smoke_warning(smoke_of(found[0]))}"
