"""Text of RLSchert's Figures 7–9 (convergence), 12 (resource holes, waits) and 13 (who gets killed)."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from bridge.base.arrays import Floats, Ints
from papers import curves
from papers.curves import Curve
from papers.rlschert.contestants import BASE
from papers.rlschert.measures import HALF_AS_LONG_AGAIN, SHORT, TWICE, WRONG
from papers.rlschert.results import RowResults, look, mean_of, seeds_of

#: An agent has converged when it is validated within this of its best.
NEAR = 0.01
QUANTILES = (0.25, 0.5, 0.75, 0.9, 0.99)
#: Who plays for Figures 12 and 13.
WITH_HOLES = ("Tetris", "SJF", BASE, "DeepRM", "RLSchert", "RLSchert, rule kill", "RLSchert, learned kill")
WITH_KILLS = ("SAF, rule kill", "RLSchert, rule kill", "RLSchert, learned kill")
#: Tables whose agents' curves Figures 7 to 9 are, and what these have learnt for.
LEARNT_FOR = {"rlschert-7": "slowdown", "rlschert-8": "completion"}


# Figures 7–9.


def passes(epochs: Ints, ratio: Floats) -> tuple[int, int]:
    """Return (first epoch that was validated below SAF, first since when every one was), -1 = none."""
    below = ratio < 1.0
    if not below.any():
        return -1, -1
    since = len(below) - int(np.argmin(below[::-1])) if not below.all() else 0
    return int(epochs[int(np.argmax(below))]), int(epochs[since]) if since < len(below) else -1


def converged(epochs: Ints, ratio: Floats) -> int:
    """Return the first epoch that was validated within 1 % of the best."""
    return int(epochs[int(np.argmax(ratio <= ratio.min() * (1.0 + NEAR)))])


def convergence(tables: Mapping[str, str] = LEARNT_FOR) -> list[str]:
    """Return what is said of each row's training, by the curves that are kept of it."""
    return [
        f"{row} ({objective}, {_learnt(agents)}"
        for table, objective in tables.items()
        for (row, _), agents in curves.read(table).items()
        if " learnt for " not in row and any(curve.validated for curve in agents)
    ]


def _learnt(agents: list[Curve]) -> str:
    validated, seeds = curves.together(agents, "validated", hold=True)["mean"], curves.seeds_of(agents)
    epochs, ratio = validated.index.to_numpy(np.int64), validated.to_numpy(np.float64)
    first, since = passes(epochs, ratio)
    sentence = "is never validated below SAF" if first < 0 else f"passes SAF at epoch {first}"
    if first >= 0 and since != first:
        sentence += f", for good at epoch {since}" if since >= 0 else ", not for good"
    return (
        f"{seeds} seed{'s' if seeds > 1 else ''}): {sentence}; at best {ratio.min():.3f} of SAF's (mean over "
        f"seeds); converged at epoch {converged(epochs, ratio)}."
    )


# Figure 12.


def total(rows: pd.DataFrame, column: str) -> Floats:
    """Return the sum of arrays of different lengths over the seeds."""
    arrays = [np.asarray(v, np.float64) for v in rows[column]]
    longest = max(map(len, arrays))
    return np.asarray(np.sum([np.pad(a, (0, longest - len(a))) for a in arrays], axis=0))


def quantiles(histogram: Floats) -> list[int]:
    """Return waits that at least `QUANTILES` of the jobs do not exceed, and the longest."""
    share = np.cumsum(histogram) / histogram.sum()
    return [int(np.searchsorted(share, q - 1e-12)) for q in QUANTILES] + [int(np.flatnonzero(histogram)[-1])]


def holes(data: pd.DataFrame) -> dict[str, Any]:
    """Return holes and waits of everybody, and whether SAF has more of them."""
    wide: list[list[object]] = []
    waits: list[list[object]] = []
    sentences = []
    base, deeprm = (look(data, one) for one in (BASE, "DeepRM"))
    for one in WITH_HOLES:
        results = look(data, one)
        if not len(results):
            wide.append([one, "0", "not run", *[""] * 5])
            waits.append([one, "not run", *[""] * (3 + len(QUANTILES))])
            continue
        apart = None if one == BASE or not len(base) else results.against(base, "holes", counts="steps")
        early = results.mean("early_holes", "early_steps")
        of_queue = total(results.rows, "queue_holes") / np.maximum(total(results.rows, "queue_steps"), 1)
        cells = [results.cell("holes", "steps"), apart.text if apart else "", f"{early:.2f}"]
        wide.append([one, seeds_of(results), *cells, *(f"{v:.2f}" for v in of_queue)])
        short, long = (f"{v:.1f}" for v in _short_and_long(results.rows))
        waits.append(
            [one, f"{results.mean('wait'):.1f}", *quantiles(total(results.rows, "waits")), short, long]
        )
        if apart:
            beside = ""
            if one.startswith("RLSchert") and len(deeprm):  # what the paper claims of it
                beside = f", {results.against(deeprm, 'holes', 'DeepRM', 'steps')}"
                arriving = results.against(deeprm, "early_holes", "it", "early_steps")
                beside += f", while jobs arrive {arriving}"
            sentences.append(
                f"{one}: {apart.verdict_text} in holes ({apart.text}){beside}; "
                f"short jobs wait {short} steps, long ones {long}."
            )
    names = [f"{100 * q:.0f} % within" for q in QUANTILES]
    return {"holes": wide, "names": names, "waits": waits, "short": SHORT, "said": sentences}


def _short_and_long(rows: pd.DataFrame) -> tuple[float, float]:
    jobs, wait, short_jobs, short_wait = (
        mean_of(rows, name).sum() for name in ("jobs", "wait", "short_jobs", "short_wait")
    )
    return short_wait / max(short_jobs, 1.0), (wait - short_wait) / max(jobs - short_jobs, 1.0)


# Figure 13.


def killed(data: pd.DataFrame) -> dict[str, Any]:
    """Return who gets killed by whom, and how rightly."""
    rows, sentences = [], []
    for one in WITH_KILLS:
        results = look(data, one)
        cells = _killed(results.rows) if len(results) else ["not run", *[""] * 9]
        rows.append([one, seeds_of(results), *cells])
        if len(results):
            sentences.append(f"{one}: {_kills(results)}")
    longer = [f"> {TWICE:g} ×", f"> {HALF_AS_LONG_AGAIN:g} ×", f"≤ {WRONG:g} ×"]
    return {"longer": longer, "wrong": WRONG, "rows": rows, "said": sentences}


def _killed(rows: pd.DataFrame) -> list[str]:
    one = rows.select_dtypes("number").sum().astype(float)
    kills, jobs, everyone = one["kills"], one["killed_jobs"], one["all_jobs"]

    def share(part: float, whole: float) -> str:
        return f"{100 * part / whole:.1f} %" if whole else "–"

    def mean(part: float, whole: float) -> str:
        return f"{part / whole:.1f}" if whole else "–"

    waits = mean(one["killed_wait"], jobs), mean(one["all_wait"] - one["killed_wait"], everyone - jobs)
    return [
        f"{kills / len(rows):.0f}",
        share(jobs, everyone),
        *(share(one[name], kills) for name in ("over_2", "over_1_5", "within_1_2")),
        mean(one["lost"], kills),
        *(
            f"{mean(one[f'killed_{name}'], jobs)} / {mean(one[f'all_{name}'], everyone)}"
            for name in ("length", "believed", "units")
        ),
        " / ".join(waits),
    ]


def _kills(results: RowResults) -> str:
    names = ("kills", "over_2", "within_1_2", "lost")
    kills, twice, wrong, lost = (float(results.rows[name].mean()) for name in names)
    if not kills:
        return "kills nobody."
    return (
        f"{kills:.0f} kills, {100 * twice / kills:.0f} % of them of jobs more than twice as "
        f"long as estimated and {100 * wrong / kills:.0f} % of jobs that were estimated well; each loses "
        f"{lost / kills:.1f} steps."
    )
