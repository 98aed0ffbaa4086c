"""RLSchert's page: what was published beside what was measured; each part is a block of `page.md`."""

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from papers import store
from papers.pages import render
from papers.rlschert import driven, figures, pictures, play, running, synthetic, tables, worlds
from papers.rlschert.found import COMMAND
from papers.rlschert.study import LOADS, SIZE_EPOCHS, SIZES, TEST

NAME, TEMPLATE = "rlschert", "rlschert/page.md"
#: Files of results that the page is made from.
FILES = (
    *(play.MAIN, play.SWEEPS, play.TABLE_9, play.CURVES, play.HOLES, play.KILLED),
    *(worlds.FILE, synthetic.FILE, synthetic.ACCURACY, driven.FILE),
)


def page(data: Mapping[str, pd.DataFrame]) -> str:
    """Return the page as Markdown.

    Args:
        data: what is in each of `FILES`.
    """
    return render(
        TEMPLATE,
        command=COMMAND,
        driven=driven.rows(data[driven.FILE]),
        running=running.rows(data[synthetic.ACCURACY]),
        table_9=tables.table_9(data[play.TABLE_9]),
        convergence=figures.convergence(data[play.CURVES]),
        loads=tables.sweep(data[play.SWEEPS], LOADS),
        sizes=tables.sweep(data[play.SWEEPS], SIZES),
        size_epochs=SIZE_EPOCHS,
        units=TEST.units,
        holes=figures.holes(data[play.HOLES]),
        killed=figures.killed(data[play.KILLED]),
        worlds=worlds.text(data[worlds.FILE]),
        synthetic=synthetic.text(data[synthetic.FILE], data[synthetic.ACCURACY]),
    )


def read() -> dict[str, pd.DataFrame]:
    """Return everything that was measured."""
    return {file: store.read(file) for file in FILES}


def write() -> list[Path]:
    """Write the page and its pictures from what was measured."""
    data = read()
    drawn = [
        pictures.running(data[synthetic.ACCURACY]),
        pictures.convergence(data[play.CURVES]),
        pictures.sweep(data[play.SWEEPS], 10, "jobs per step", LOADS, [s.rate for s in LOADS]),
        pictures.sweep(data[play.SWEEPS], 11, "units", SIZES, [s.units for s in SIZES]),
        pictures.holes(data[play.HOLES]),
        pictures.killed(data[play.KILLED]),
    ]
    return [*(made for made in drawn if made is not None), store.written(NAME, page(data))]
