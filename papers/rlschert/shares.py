"""RLSchert's Table 9: what becomes of the agent with learnt kills where only some jobs are predicted."""

import pandas as pd

from papers.rlschert.numbers import (
    COMMAND,
    against,
    difference,
    estimate,
    markdown,
    results,
    seeds_of,
    smoke_of,
    smoke_warning,
)
from papers.rlschert.play import Wanted, judge, row_of
from papers.rlschert.rows import CLAMP, HONEST, METHODS, SHARES
from papers.rlschert.train import Data

FILE = "rlschert-table-9"
SJF, DEEPRM, KILLER = (
    next(m for m in METHODS if m.row == row) for row in ("SJF", "DeepRM", "RLSchert, learned kill")
)
#: As printed, for 0, 50, 80 and 100 % predictable jobs.
PRINTED = {
    SJF.row: ("10.29", "10.29", "10.29", "10.29"),
    KILLER.row: ("9.63", "8.55", "8.36", "8.32"),
}
NONE, ALL = SHARES[0], SHARES[-1]


def run(wanted: Wanted, data: Data) -> None:
    """Let SJF and the agents that exist play; DeepRM never knows more than nothing."""
    for player in wanted.players(data, (SJF, DEEPRM, KILLER)):
        if player.pupil is None or player.pupil.objective == "slowdown":
            for sample in (NONE,) if player.method is DEEPRM else SHARES:
                judge(FILE, player, sample, data, wanted.say)


def text(data: pd.DataFrame) -> list[str]:
    """Return the section."""
    rows, said = [], []
    for method in (SJF, DEEPRM, KILLER):
        row = row_of(method, "slowdown")
        if printed := PRINTED.get(method.row):
            rows.append([method.row, "paper", "", *printed])
        for label in (CLAMP, HONEST):
            found = [results(data, row, sample, label) for sample in SHARES]
            seeds = seeds_of(found[:1], learns=bool(method.setting))
            means = [f"{estimate(f, 'slowdown').mean:.2f}" if len(f) else "–" for f in found]
            means = means if len(found[0]) else ["not run", *means[1:]]
            rows.append([method.row, label, seeds, *means])
            if method is KILLER and len(found[0]):
                said.append(f"- {_sentence(label, found, data)}")
    missing = f'- RLSchert, learned kill: not run; `{COMMAND} --row "{KILLER.row}"`.'
    return [
        "## Table 9: mean slowdown by the share of predictable jobs",
        "",
        "The test set. The other jobs keep the belief of their submission while they run; which ones, is "
        "drawn once. Nobody is trained again: the agent with learnt kills is that of Table 7, which has "
        "learnt with all predictions. DeepRM's row is the agent that has learnt without any. SJF does not "
        "look at running jobs.",
        "",
        *markdown(("method", "", "seeds", *(f"{100 * s.predictable:.0f} %" for s in SHARES)), rows),
        *(said or [missing]),
        "",
    ]


def _sentence(label: str, found: list[pd.DataFrame], data: pd.DataFrame) -> str:
    parts = []
    everything = found[-1]
    for sample, one in zip(SHARES[:-1], found, strict=False):
        if len(one) and len(everything):
            e = estimate(one, "slowdown", everything)
            parts.append(f"with {100 * sample.predictable:.0f} % {against(e, 'with all')} ({difference(e)})")
    deeprm = results(data, row_of(DEEPRM, "slowdown"), NONE, label)
    if len(deeprm):
        e = estimate(found[0], "slowdown", deeprm)
        parts.append(f"with 0 % {against(e, 'DeepRM')} ({difference(e)})")
    return f"{KILLER.row}, {label}: {'; '.join(parts)}.{smoke_warning(smoke_of(found[0]))}"
