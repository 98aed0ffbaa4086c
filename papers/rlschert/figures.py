"""Text of RLSchert's Figures 7–9 (convergence), 12 (resource holes, waits) and 13 (who gets killed)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from bridge.arrays import Floats, Ints
from papers.rlschert.found import COMMAND, Found, look, mean_of, not_run, seeds_of
from papers.rlschert.measures import HALF_AS_LONG_AGAIN, LEARNING, SHORT, TWICE, WRONG
from papers.rlschert.play import WITH_HOLES, WITH_KILLS
from papers.rlschert.study import BASE, CLAMP, HONEST, METHODS, TEST, Method, method

#: Epochs of the moving mean over an epoch's own sequences, which are new ones every time.
WINDOW = 10
#: An agent has converged when it is validated within this of its best.
NEAR = 0.01
QUANTILES = (0.25, 0.5, 0.75, 0.9, 0.99)


# Figures 7–9.


@dataclass(frozen=True)
class Panel:
    """One of the figures: (title, objective, who kills)."""

    title: str
    objective: str
    kills: tuple[str, ...]

    @property
    def methods(self) -> list[Method]:
        """Who is in it."""
        return [m for m in METHODS if m.setting and m.kill in self.kills]


PANELS = (
    Panel("slowdown, no kills", "slowdown", ("none",)),
    Panel("completion time", "completion", ("none", "rule", "learned")),
    Panel("slowdown, kills", "slowdown", ("rule", "learned")),
)


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


def convergence(data: pd.DataFrame) -> dict[str, Any]:
    """Return what is said of each agent's training."""
    return {
        "command": COMMAND,
        "window": WINDOW,
        "near": NEAR,
        "said": [
            f"{one.row} ({panel.objective}, {label}, {_learnt(found)}"
            for panel in PANELS
            for one in panel.methods
            for label in (HONEST, CLAMP)
            if len(found := look(data, one, LEARNING, label, panel.objective))
        ],
    }


def _learnt(found: Found) -> str:
    rows = found.rows
    epochs, ratio = np.asarray(rows["epochs"].iloc[0]), mean_of(rows, "valid")
    first, since = passes(epochs, ratio)
    said = "is never validated below SAF" if first < 0 else f"passes SAF at epoch {first}"
    if first >= 0 and since != first:
        said += f", for good at epoch {since}" if since >= 0 else ", not for good"
    best, base = float(ratio.min()), float(rows["base"].iloc[0])
    return (
        f"{len(rows)} seed{'s' if len(rows) > 1 else ''}): {said}; best {best * base:.2f} beside "
        f"SAF's {base:.2f} (means over seeds); converged at epoch {converged(epochs, ratio)}.{found.warning}"
    )


# Figure 12.


def total(found: pd.DataFrame, column: str) -> Floats:
    """Return the sum of arrays of different lengths over the seeds."""
    arrays = [np.asarray(v, np.float64) for v in found[column]]
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
    said = []
    base, deeprm = (look(data, one, TEST, HONEST) for one in (BASE, method("DeepRM")))
    for one in WITH_HOLES:
        found = look(data, one, TEST, HONEST)
        head = [one.row, seeds_of([found], learns=bool(one.setting))]
        if not len(found):
            wide.append([*head, "not run", *[""] * 5])
            waits.append([one.row, "not run", *[""] * (3 + len(QUANTILES))])
            said.append(not_run(one))
            continue
        apart = None if one is BASE or not len(base) else found.against(base, "holes", counts="steps")
        early = found.mean("early_holes", "early_steps")
        of_queue = total(found.rows, "queue_holes") / np.maximum(total(found.rows, "queue_steps"), 1)
        cells = [found.cell("holes", "steps"), apart.text if apart else "", f"{early:.2f}"]
        wide.append([*head, *cells, *(f"{v:.2f}" for v in of_queue)])
        short, long = (f"{v:.1f}" for v in _short_and_long(found.rows))
        waits.append(
            [one.row, f"{found.mean('wait'):.1f}", *quantiles(total(found.rows, "waits")), short, long]
        )
        if apart:
            beside = ""
            if one.name == "RLSchert" and len(deeprm):  # what the paper claims of it
                beside = f", {found.against(deeprm, 'holes', 'DeepRM', 'steps')}"
                arriving = found.against(deeprm, "early_holes", "it", "early_steps")
                beside += f", while jobs arrive {arriving}"
            said.append(
                f"{one.row}: {apart.said} in holes ({apart.text}){beside}; "
                f"short jobs wait {short} steps, long ones {long}.{found.warning}"
            )
    names = [f"{100 * q:.0f} % within" for q in QUANTILES]
    return {"holes": wide, "names": names, "waits": waits, "short": SHORT, "said": said}


def _short_and_long(found: pd.DataFrame) -> tuple[float, float]:
    jobs, wait, short_jobs, short_wait = (
        mean_of(found, name).sum() for name in ("jobs", "wait", "short_jobs", "short_wait")
    )
    return short_wait / max(short_jobs, 1.0), (wait - short_wait) / max(jobs - short_jobs, 1.0)


# Figure 13.


def killed(data: pd.DataFrame) -> dict[str, Any]:
    """Return who gets killed by whom, and how rightly."""
    rows, said = [], []
    for one in WITH_KILLS:
        found = look(data, one, TEST, HONEST)
        seeds = seeds_of([found], learns=bool(one.setting))
        rows.append([one.row, seeds, *(_killed(found.rows) if len(found) else ["not run", *[""] * 9])])
        said.append(f"{one.row}: {_kills(found)}" if len(found) else not_run(one))
    longer = [f"> {TWICE:g} ×", f"> {HALF_AS_LONG_AGAIN:g} ×", f"≤ {WRONG:g} ×"]
    return {"longer": longer, "wrong": WRONG, "rows": rows, "said": said}


def _killed(found: pd.DataFrame) -> list[str]:
    one = found.select_dtypes("number").sum().astype(float)
    kills, jobs, everyone = one["kills"], one["killed_jobs"], one["all_jobs"]

    def share(part: float, whole: float) -> str:
        return f"{100 * part / whole:.1f} %" if whole else "–"

    def mean(part: float, whole: float) -> str:
        return f"{part / whole:.1f}" if whole else "–"

    waits = mean(one["killed_wait"], jobs), mean(one["all_wait"] - one["killed_wait"], everyone - jobs)
    return [
        f"{kills / len(found):.0f}",
        share(jobs, everyone),
        *(share(one[name], kills) for name in ("over_2", "over_1_5", "within_1_2")),
        mean(one["lost"], kills),
        *(
            f"{mean(one[f'killed_{name}'], jobs)} / {mean(one[f'all_{name}'], everyone)}"
            for name in ("length", "believed", "units")
        ),
        " / ".join(waits),
    ]


def _kills(found: Found) -> str:
    names = ("kills", "over_2", "within_1_2", "lost")
    kills, twice, wrong, lost = (float(found.rows[name].mean()) for name in names)
    if not kills:
        return f"kills nobody.{found.warning}"
    return (
        f"{kills:.0f} kills, {100 * twice / kills:.0f} % of them of jobs more than twice as "
        f"long as believed and {100 * wrong / kills:.0f} % of jobs that were believed well; each loses "
        f"{lost / kills:.1f} steps.{found.warning}"
    )
