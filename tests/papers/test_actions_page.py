"""The page of actions is what was measured, and its pooled numbers are those of a case by hand."""

from typing import Any

import pytest

from bridge.judge.action_metrics import ACTION_METRICS
from bridge.report.folding import fold_tables
from papers import actions, store


def document(factor: float, waste: float) -> dict[str, Any]:
    """Return eight sequences that share no job, in which a rule has so much of the reference's values."""

    def row(action: str, belief: str, value: float, waste: float) -> dict[str, Any]:
        values = {name: [value] * 8 for name in ACTION_METRICS} | {"waste": [waste] * 8}
        return {"action": action, "belief": belief, "values": values}

    starts = [actions.LENGTH * k for k in range(8)]
    rows = [row("", "requested", 10.0, 0.0), row("", "predicted", 12.0, 0.0)]
    return {"starts": starts, "rows": [*rows, row("trial(300)", "requested", 10.0 * factor, waste)]}


def test_ratios_are_pooled_by_geometric_mean_and_points_by_mean() -> None:
    documents = [document(0.25, 1.0), document(1.0, 3.0)]
    assert actions.reference(documents[0]) == "requested"
    assert actions.pooled(documents, "trial(300)", "requested", "bsld") == pytest.approx(
        (-50.0, -50.0, -50.0)
    )
    assert actions.pooled(documents, "trial(300)", "requested", "waste") == pytest.approx((2.0, 2.0, 2.0))


def test_the_page_is_what_the_data_say() -> None:
    page = (store.RESULTS / "actions.md").read_text(encoding="utf-8")
    assert page == fold_tables(actions.page()), "run `python -m papers.actions`"
    assert list(actions.read_actions()) == list(actions.LOGS)
