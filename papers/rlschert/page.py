"""RLSchert's page: what was published beside what was measured."""

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from bridge.files import replacing
from papers import store
from papers.rlschert import convergence as rlschert_convergence
from papers.rlschert import holes as rlschert_holes
from papers.rlschert import killed as rlschert_killed
from papers.rlschert import networks as rlschert_networks
from papers.rlschert import pictures
from papers.rlschert import shares as rlschert_shares
from papers.rlschert import sweeps as rlschert_sweeps
from papers.rlschert import synthetic as rlschert_synthetic
from papers.rlschert import worlds as rlschert_worlds
from papers.rlschert.numbers import COMMAND
from papers.rlschert.rows import HELD_OUT, HELD_OUT_TABLES, LOADS, SIZES, TABLES
from papers.rlschert.run import HELD, MAIN, SWEEPS
from papers.rlschert.tables import held_out_table, paper_table

NAME = "rlschert"
#: Files of results that the page is made from.
FILES = (
    MAIN,
    SWEEPS,
    HELD,
    rlschert_shares.FILE,
    rlschert_convergence.FILE,
    rlschert_holes.FILE,
    rlschert_killed.FILE,
    rlschert_networks.FILE,
    rlschert_worlds.FILE,
    rlschert_synthetic.FILE,
    rlschert_synthetic.ACCURACY,
)

_HEAD = """# RLSchert: pick or kill jobs on a slotted pool

Tables 3 and 5–11 and Figures 7–13 of Wang et al. 2021 (Applied Sciences 11, 9448): 16 sequences of 200 steps,
20 units and rate 0.7 unless said otherwise; 4,870 logged VASP jobs, which are not ours to ship. The published
numbers were measured with the authors' code, which reads true lengths (see *Oracle clamp* in
[slotted](../slotted.md)): *oracle clamp* does the same, for training and judging alike; *honest* does not.
Agents are the settings `recommended`, `rule-kill`, `kill` and `deeprm` of `policies/rlschert.py`, trained for
the metric that the table shows. Of each training the epoch was kept that did best on the paper's training set
(Table 6, which flatters agents therefore).

Means are over all jobs of all sequences, as printed; behind them 95 % intervals over the sequences (ratio of
two sums, Student's t), for agents of the mean over seeds: what another seed of training changes is in the
sentences, not in the intervals. Differences are paired, sequence by sequence. Each comparison stands alone:
of twenty that differ by chance only, one is called better or worse. Lower is better.
"""

_HELD_OUT = f"""## Held-out sequences

{HELD_OUT.sequences} sequences of seed {HELD_OUT.seed}, which nobody has learnt from or been chosen by. The
paper's test set has 16 only: too few to tell good methods from each other. No numbers are printed for these.
"""


def page(data: Mapping[str, pd.DataFrame]) -> str:
    """Return the page as Markdown.

    Args:
        data: what is in each of `FILES`.
    """
    text = [_HEAD, _HELD_OUT]
    for table in HELD_OUT_TABLES:
        text += held_out_table(table, data[HELD], f"### Held-out sequences: {table.title}", COMMAND)
    for table in TABLES:
        text += paper_table(table, data[MAIN])
    text += rlschert_shares.text(data[rlschert_shares.FILE])
    text += rlschert_networks.text(data[rlschert_networks.FILE], data[MAIN])
    text += rlschert_convergence.text(data[rlschert_convergence.FILE])
    text += rlschert_sweeps.figures(data[SWEEPS])
    text += rlschert_holes.text(data[rlschert_holes.FILE])
    text += rlschert_killed.text(data[rlschert_killed.FILE])
    text += rlschert_worlds.text(data[rlschert_worlds.FILE])
    text += rlschert_synthetic.text(data[rlschert_synthetic.FILE], data[rlschert_synthetic.ACCURACY])
    text.append(
        f"Made by `{COMMAND}` (`--seeds 3`; without training: `--seeds 0`), `{COMMAND} --part table-3` and "
        f"`{COMMAND} --jobs synthetic`. Data: `docs/results/data/rlschert-*.parquet`."
    )
    return "\n".join(text) + "\n"


def read() -> dict[str, pd.DataFrame]:
    """Return everything that was measured."""
    return {file: store.read(file) for file in FILES}


def write() -> list[Path]:
    """Write the page and its pictures from what was measured."""
    data = read()
    drawn = [
        rlschert_convergence.draw(data[rlschert_convergence.FILE]),
        pictures.draw(data[SWEEPS], 10, "jobs per step", LOADS, [s.rate for s in LOADS]),
        pictures.draw(data[SWEEPS], 11, "units", SIZES, [s.units for s in SIZES]),
        rlschert_holes.draw(data[rlschert_holes.FILE]),
        rlschert_killed.draw(data[rlschert_killed.FILE]),
    ]
    path = store.RESULTS / f"{NAME}.md"
    with replacing(path) as out:
        out.write(page(data).encode())
    return [*(made for made in drawn if made is not None), path]
