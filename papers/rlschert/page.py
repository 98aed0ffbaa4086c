"""RLSchert's page: what is no table of agents, published beside measured; its template is `page.md`."""

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from papers import store
from papers.pages import headline, render
from papers.rlschert import figures, job_sizes, pictures, predictor_runs, running, synthetic, worlds
from papers.rlschert.results import COMMAND

NAME, TEMPLATE = "rlschert", "rlschert/page.md"
HOLES, KILLED = "rlschert-figure-12", "rlschert-figure-13"
#: Files of results that the page is made from.
FILES = (HOLES, KILLED, job_sizes.FILE, worlds.FILE, synthetic.ACCURACY, predictor_runs.FILE)


def page(data: Mapping[str, pd.DataFrame]) -> str:
    """Return the page as Markdown, of what is in each of `FILES`."""
    return render(
        TEMPLATE,
        headline=headline("rlschert"),
        command=COMMAND,
        driven=predictor_runs.rows(data[predictor_runs.FILE]),
        sizes=job_sizes.text(data[job_sizes.FILE]),
        running=running.rows(data[synthetic.ACCURACY]),
        near=figures.NEAR,
        convergence=figures.convergence(),
        holes=figures.holes(data[HOLES]),
        killed=figures.killed(data[KILLED]),
        worlds=worlds.text(data[worlds.FILE]),
        synthetic=synthetic.text(data[synthetic.ACCURACY]),
    )


def read() -> dict[str, pd.DataFrame]:
    return {file: store.read(file) for file in FILES}


def write() -> list[Path]:
    data = read()
    picture_files = [
        pictures.job_sizes(data[job_sizes.FILE]),
        pictures.running(data[synthetic.ACCURACY]),
        pictures.holes(data[HOLES]),
        pictures.killed(data[KILLED]),
    ]
    return [*(picture for picture in picture_files if picture is not None), store.written(NAME, page(data))]
