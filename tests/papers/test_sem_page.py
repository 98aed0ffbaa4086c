"""SEM's page says what its data say."""

import pytest

pytest.importorskip("torch", reason="agents need PyTorch")

import numpy as np
import pandas as pd

from bridge.report.folding import fold_tables
from papers import curves, store
from papers.curves import Curve
from papers.pages import block
from papers.sem import convergence
from papers.sem.encoding import as_said, node_hours, page
from papers.sem.running import LOGS, NAME, SCHEDULES, pick, shares, spans


@pytest.mark.parametrize(
    ("ours", "said", "same"),
    [
        (96.7, "97", True),
        (96.4, "97", False),
        (97.6, "97", False),
        (99.1, "> 99", True),
        (99.0, "> 99", False),
        (12.3, "–", True),
    ],
)
def test_a_percentage_is_as_said_if_it_rounds_to_it(ours: float, said: str, same: bool) -> None:
    assert as_said(ours, said) is same


def _data() -> pd.DataFrame:
    """Return logs in each of which 31 jobs of 1 node run for 10 s: K = 30 leaves out one of them."""
    one = shares(spans(np.zeros(31, np.int64), np.full(31, 10), np.ones(31, np.int64), (30, 40, 50)))
    parts = [one.assign(log=log, schedule=schedule) for log in LOGS for schedule in SCHEDULES]
    return pd.concat(parts, ignore_index=True)


def test_shares_are_found_by_log_and_schedule() -> None:
    data = _data()
    assert pick(data, "lost", "Atlas", SCHEDULES[1]).to_dict() == pytest.approx({30: 1 / 31, 40: 0, 50: 0})
    assert pick(data, "cdf", "Theta", SCHEDULES[0])[31] == 1
    assert pick(data, "covered 90", "Theta", SCHEDULES[0])[30] == 1


def test_the_page_names_what_differs_from_the_paper() -> None:
    text = block("sem/encoding.md", "node_hours", lost=node_hours(_data()))
    assert "| DataStar | 30 | 1.22 % | 3.226 % | 3.226 % |" in text
    assert "Atlas at K = 30 (3.226 %, the paper: 0.23 %)" in text
    assert "leaves out at most 3.23 %" in text


def test_the_page_is_what_its_data_say() -> None:
    parts = ("running", "speed", "growing")
    data, costs, grown = (pd.read_parquet(store.path_of(f"{NAME}-{part}")) for part in parts)
    written = (store.RESULTS / f"{NAME}.md").read_text(encoding="utf-8")
    assert written == fold_tables(page(data, costs, grown)), "run `python -m papers sem`"


def test_an_agent_has_converged_where_it_first_comes_near_its_best(monkeypatch: pytest.MonkeyPatch) -> None:
    validated = ((20, 0.9), (40, 0.63), (60, 0.6), (80, 0.75))
    curve = Curve("SEM", "Theta", ("one", "two"), validated)
    monkeypatch.setattr(curves, "read", lambda _table: {("SEM", "Theta"): [curve]})
    assert convergence.sentences("sem-theta") == [
        "SEM, Theta (2 seeds): within 5 % of its best (0.60 of the base's wait) first at episode 40, then up "
        "to 0.75, validated every 20; published: converged after 60."
    ]
