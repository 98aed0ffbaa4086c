"""RLSchert's Figure 13: who gets killed, by the rule and by agents that have learnt to."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from bridge.errors import BridgeError
from bridge.pool.evaluate import Evaluation, prepare
from bridge.pool.jobset import JobSet
from bridge.pool.schedule import Schedule
from bridge.report.style import COLOURS, LIMIT, new_figure, plain, save
from papers import store
from papers.rlschert.numbers import (
    COMMAND,
    markdown,
    results,
    seeds_of,
    smoke_of,
    smoke_warning,
)
from papers.rlschert.play import Wanted, judge, row_of
from papers.rlschert.rows import HONEST, METHODS, TEST, Method
from papers.rlschert.train import Data

Ints = npt.NDArray[np.int64]
FILE, PICTURE = "rlschert-figure-13", "rlschert-figure-13.svg"
_SHOWN = ("SAF, rule kill", "RLSchert, rule kill", "RLSchert, learned kill")
SHOWN = tuple(method for method in METHODS if method.row in _SHOWN)
#: True length over believed length: a kill was right, if it is large, and wrong, if it is near 1.
WRONG, HALF_AS_LONG_AGAIN, TWICE = 1.2, 1.5, 2.0
#: Edges of the histogram of true / believed lengths, which are halves and doubles of each other.
EDGES = np.concatenate(([0.0], 2.0 ** np.arange(-2.0, 4.01, 0.5), [np.inf]))


def run(wanted: Wanted, data: Data) -> None:
    """Play the test set again; agents are those for slowdown that exist."""
    for player in wanted.players(data, SHOWN):
        if player.pupil is None or player.pupil.objective == "slowdown":
            judge(FILE, player, TEST, data, wanted.say, measure)


def measure(found: Evaluation, jobs: JobSet) -> dict[str, Any]:
    """Keep counts and sums of killed attempts, of killed jobs, and of all jobs."""
    drawn = prepare(jobs, found.options)
    believed = [drawn.jobs.believed[drawn.drawn(s)[1]] for s in range(len(drawn))]
    return summary(found.schedules, believed)


def summary(schedules: tuple[Schedule, ...], believed: list[Ints]) -> dict[str, Any]:
    """Return counts and sums over all sequences.

    Args:
        schedules: one per sequence.
        believed: what was believed at submission of each of its jobs.

    Returns:
        ``kills``, ``lost``: killed attempts and the steps that they had run; ``over_2``, ``over_1_5``,
        ``within_1_2``: of these, how many were of jobs longer than 2 and 1.5, and at most 1.2 times what was
        believed before they ran; ``killed_*`` and ``all_*``: of jobs that were ever killed, and of all, how
        many, and sums of true length, of what was believed at submission, units and wait (to the last start);
        ``killed_ratios``, ``all_ratios``: histograms of true / believed length, of attempts and of jobs.

    Raises:
        BridgeError: more attempts were killed than are remembered.
    """
    if any(s.kills.sum() > len(s.attempts) for s in schedules):
        raise BridgeError("more attempts were killed than are remembered", where="killed jobs")
    ratio = np.concatenate([s.length[s.attempts["job"]] / s.attempts["believed"] for s in schedules])
    of_all = np.concatenate([s.length / b for s, b in zip(schedules, believed, strict=True)])
    kept: dict[str, Any] = {
        "kills": len(ratio),
        "lost": int(sum(s.lost.sum() for s in schedules)),
        "over_2": int((ratio > TWICE).sum()),
        "over_1_5": int((ratio > HALF_AS_LONG_AGAIN).sum()),
        "within_1_2": int((ratio <= WRONG).sum()),
        "killed_ratios": np.histogram(ratio, EDGES)[0],
        "all_ratios": np.histogram(of_all, EDGES)[0],
    }
    killed = np.concatenate([s.kills > 0 for s in schedules])
    columns = {
        name: np.concatenate([getattr(s, name) for s in schedules]) for name in ("length", "units", "wait")
    }
    columns["believed"] = np.concatenate(believed)
    for who, chosen in (("killed", killed), ("all", np.ones(len(killed), np.bool_))):
        kept[f"{who}_jobs"] = int(chosen.sum())
        kept |= {f"{who}_{name}": int(values[chosen].sum()) for name, values in columns.items()}
    return kept


def text(data: pd.DataFrame) -> list[str]:
    """Return the section."""
    rows, said = [], []
    for method in SHOWN:
        found = results(data, row_of(method, "slowdown"), TEST, HONEST)
        seeds = seeds_of([found], learns=bool(method.setting))
        if not len(found):
            rows.append([method.row, seeds, "not run", *[""] * (len(_HEADS) - 3)])
            said.append(f'- {method.row}: not run; `{COMMAND} --row "{method.row}"`.')
            continue
        rows.append([method.row, seeds, *_cells(found)])
        said.append(f"- {_sentence(method, found)}")
    return [
        "## Figure 13: who gets killed",
        "",
        "The test set, honest; agents for slowdown, means over seeds. *Longer than believed*: killed "
        "attempts whose job is truly longer than so many times what was believed before they ran; killing "
        f"those of at most {WRONG:g} times was an error. Lengths, units and waits are means of jobs that "
        "were killed at least once, and of all jobs (waits: of the others).",
        "",
        *markdown(_HEADS, rows),
        *said,
        "",
        f"![Figure 13]({PICTURE})",
        "",
    ]


_HEADS = (
    *(
        "method",
        "seeds",
        "kills",
        "jobs killed",
        f"> {TWICE:g} ×",
        f"> {HALF_AS_LONG_AGAIN:g} ×",
        f"≤ {WRONG:g} ×",
    ),
    *("steps run at the kill", "true length, killed / all", "believed, killed / all", "units, killed / all"),
    "wait, killed / others",
)


def _cells(found: pd.DataFrame) -> list[str]:
    total = found[[c for c in found.columns if c.startswith(("killed_", "all_", "over_", "within_"))]]
    one = total.drop(columns=["killed_ratios", "all_ratios"]).sum().astype(float)
    kills, killed, everyone = float(found["kills"].sum()), one["killed_jobs"], one["all_jobs"]
    others = everyone - killed

    def share(part: float, whole: float) -> str:
        return f"{100 * part / whole:.1f} %" if whole else "–"

    def mean(part: float, whole: float) -> str:
        return f"{part / whole:.1f}" if whole else "–"

    pairs = [
        f"{mean(one[f'killed_{name}'], killed)} / {mean(one[f'all_{name}'], everyone)}"
        for name in ("length", "believed", "units")
    ]
    waits = f"{mean(one['killed_wait'], killed)} / {mean(one['all_wait'] - one['killed_wait'], others)}"
    return [
        f"{kills / len(found):.0f}",
        share(killed, everyone),
        *(share(one[name], kills) for name in ("over_2", "over_1_5", "within_1_2")),
        mean(float(found["lost"].sum()), kills),
        *pairs,
        waits,
    ]


def _sentence(method: Method, found: pd.DataFrame) -> str:
    kills, twice, wrong = (float(found[name].mean()) for name in ("kills", "over_2", "within_1_2"))
    if not kills:
        return f"{method.row}: kills nobody.{smoke_warning(smoke_of(found))}"
    return (
        f"{method.row}: {kills:.0f} kills, {100 * twice / kills:.0f} % of them of jobs more than twice as "
        f"long as believed and {100 * wrong / kills:.0f} % of jobs that were believed well; each loses "
        f"{found['lost'].mean() / kills:.1f} steps.{smoke_warning(smoke_of(found))}"
    )


def draw(data: pd.DataFrame) -> Path:
    """Draw how long killed attempts' jobs truly are, beside all jobs; smoke rows are left out."""
    figure = new_figure(6.5, 3.6)
    axes = figure.subplots()
    names = ["< ¼", *(f"{edge:.2g}" for edge in EDGES[1:-1])]
    at, everyone = np.arange(len(names)), None
    for method, colour, style in zip(SHOWN, COLOURS, ("-", "--", "-"), strict=False):
        found = results(data, row_of(method, "slowdown"), TEST, HONEST)
        if not len(found) or smoke_of(found):
            continue
        counts, everyone = (np.sum(np.stack(list(found[c])), axis=0) for c in ("killed_ratios", "all_ratios"))
        if counts.sum():
            axes.step(
                at,
                counts / counts.sum(),
                where="mid",
                color=colour,
                linestyle=style,
                label=f"killed: {method.row}",
            )
    if everyone is not None:
        axes.bar(at, everyone / everyone.sum(), width=1.0, color="#dddddd", label="all jobs")
        axes.axvline(float(np.searchsorted(EDGES, 1.0)) - 0.5, color=LIMIT, linewidth=0.8)
        axes.legend(frameon=False, fontsize="small")
    axes.set_xticks(at, names, fontsize="small")
    axes.set_xlabel("true length / believed length, at least")
    axes.set_ylabel("share")
    plain(axes)
    path = store.RESULTS / PICTURE
    path.parent.mkdir(parents=True, exist_ok=True)
    save(figure, path)
    return path
