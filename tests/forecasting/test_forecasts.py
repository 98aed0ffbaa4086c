"""Forecasts, changes and what-if by hand: with requests for beliefs every future is the same."""

import numpy as np
import pytest
from forecast_states import make_state

from bridge.base.errors import BridgeError
from bridge.forecasting.starts import FIRST, draw, forecast, summarize_futures
from bridge.forecasting.state import MOST, MachineState
from bridge.forecasting.whatif import NEW, change_state, parse_job, whatif, with_job, with_nodes

# Four nodes. r1 holds three of them until 190; w1 needs all, w2 fits beside r1 and w1 waits for it anyhow.
STATE = make_state([(40, 150, 3)], [(50, 60, 4), (60, 30, 1)], 4)


def uncorrected(state: MachineState) -> MachineState:
    from dataclasses import replace

    return replace(state, corrections={0: (0.0,) * 5})


def test_a_forecast_by_hand() -> None:
    one = forecast(uncorrected(STATE), futures=4)
    assert one.id == ("w1", "w2")
    assert one.quantiles.tolist() == [[190.0] * 5, [100.0] * 5]
    assert one.reserved.tolist() == [190.0, 100.0]
    assert one.rows()[0] == {
        "job": "w1", "submitted": 50.0, "low90": 190.0, "low50": 190.0, "median": 190.0, "high50": 190.0,
        "high90": 190.0, "reserved": 190.0,
    }  # fmt: skip


def test_corrections_are_those_of_jobs_that_have_waited_as_long() -> None:
    from dataclasses import replace

    state = replace(STATE, corrections={0: (0.0,) * 5, 45: (0.0, 0.0, 1.0, 1.0, 2.0)})
    one = forecast(state, futures=4)
    scale = 60 + 0.1 * 90  # w1 has waited for 50 s
    assert one.quantiles[0] == pytest.approx([190, 190, 190 + scale, 190 + scale, 190 + 2 * scale])
    assert one.quantiles[1] == pytest.approx([100.0] * 5)
    usual = forecast(STATE, futures=4).quantiles
    assert usual[0] == pytest.approx([190 + scale * one for one in FIRST])
    assert usual[1].tolist() == [100.0] * 5  # at once: nothing can come between


def test_quantiles_over_futures_and_infinity() -> None:
    after = np.array([[1.0, 1.0], [2.0, 2.0], [3.0, np.inf], [4.0, np.inf]])
    raw = summarize_futures(after, np.array([5.0, np.inf]))
    assert raw.quantiles[0].tolist() == [1.0, 1.5, 2.5, 3.5, 4.0]
    assert raw.quantiles[1].tolist() == [1.0, 1.5, np.inf, np.inf, np.inf]
    assert raw.scale.tolist() == [3.0 + 0.5 + 60.0, 60.0]


def test_a_job_that_one_might_submit() -> None:
    new = with_job(STATE, 1, 90.0)
    assert forecast(uncorrected(new), jobs=[NEW]).quantiles[0].tolist() == [250.0] * 5  # behind w1
    assert forecast(uncorrected(with_job(STATE, 1, 60.0)), jobs=[NEW]).quantiles[0].tolist() == [130.0] * 5
    with pytest.raises(BridgeError, match=r"job 'new': asks for more than the machine has \(\d+ nodes"):
        with_job(STATE, 5, 90.0)
    again = with_job(new, 1, 60.0)
    assert again.id[-2:] == (NEW, "new'")
    assert forecast(uncorrected(again), jobs=["new'"]).quantiles[0].tolist() == [130.0] * 5


def test_its_run_time_is_believed_to_be_like_the_users() -> None:
    from dataclasses import replace

    state = make_state([(40, 100, 1)], [(50, 200, 1)], 4, levels=[0.5], quantiles=[[50], [20]])
    state = replace(state, user=("ann", "bob"))
    assert with_job(state, 1, 1000.0, "ann").quantiles[-1].tolist() == [500.0]
    assert with_job(state, 1, 1000.0, "cyd").quantiles[-1].tolist() == pytest.approx([300.0])


def test_draining_and_adding() -> None:
    drained = with_nodes(STATE, -2)  # one at once, one when r1 ends
    one = forecast(uncorrected(drained))
    assert one.rows()[0]["median"] is None
    assert one.quantiles[1].tolist() == [190.0] * 5
    assert forecast(uncorrected(with_nodes(STATE, 4))).quantiles[:, 2].tolist() == [100.0, 100.0]
    with pytest.raises(BridgeError, match="5 nodes cannot be drained: 4 are in service"):
        with_nodes(STATE, -5)
    with pytest.raises(BridgeError, match="cannot be drained"):
        with_nodes(STATE, -(10**30))
    assert with_nodes(STATE, MOST - 4).capacity[0] == MOST
    for more in (MOST - 3, 2**63 - 1, 10**30):
        with pytest.raises(BridgeError, match=f"{more:,} nodes cannot be added\n  Add at most {MOST - 4}"):
            with_nodes(STATE, more)


@pytest.mark.parametrize("text", ["", "4", "0:1h", "4:0", "4:x", "a:1h", "4:1h:u:v"])
def test_what_is_no_job(text: str) -> None:
    with pytest.raises(BridgeError, match="is no job"):
        parse_job(text)


def test_jobs_as_text() -> None:
    assert parse_job("64:2h") == (64, 7200.0, "")
    assert parse_job("1:30m:ann") == (1, 1800.0, "ann")


def test_asking_for_who_does_not_wait() -> None:
    with pytest.raises(BridgeError, match="job 'r1': runs already"):
        forecast(STATE, jobs=["r1"])
    with pytest.raises(BridgeError, match="job 'x': neither runs nor waits"):
        forecast(STATE, jobs=["x"])


def test_what_if_by_hand() -> None:
    base, none, same = whatif([STATE], ["fcfs+easy", "fcfs+none", "sjf+easy"], futures=3)
    assert base.values["wait"].mean == ((190 - 50) + (100 - 60)) / 2
    assert none.values["wait"].mean == ((190 - 50) + (250 - 60)) / 2
    assert (none.differences["wait"].mean, none.better, base.differences) == (75.0, 0.0, {})
    assert none.values["drained"].mean == 150
    assert same.differences["wait"].mean == 0
    assert base.never == 0


def test_what_if_nodes_are_drained_or_a_job_is_submitted() -> None:
    base, after = whatif([STATE, change_state(STATE, submits=["1:85s"])], ["", ""], futures=2)
    assert after.differences["wait"].mean == 0  # it is backfilled behind w2, and ends in time
    base, after = whatif([STATE, change_state(STATE, nodes=-1)], ["", ""], futures=2)
    assert (base.never, after.never) == (0, 1)
    assert after.values["wait"].mean == 190 - 60
    assert base.values["wait"].mean == 100 - 60  # of those who can start in both


def test_a_submitted_job_changes_no_run_time_of_the_others() -> None:
    """The base is the same, whatever is added; a job of a user who is there runs long when that one's do."""
    more = change_state(STATE, submits=["1:85s:u", "2:50s:u"])
    alone, beside = draw(STATE, 50, 7), draw(more, 50, 7, first=len(STATE))
    assert beside.shape == (50, len(STATE) + 2)
    assert (beside[:, :-2] == alone).all()
    assert (draw(STATE, 50, 7, first=len(STATE)) == alone).all()
    base = whatif([STATE], ["fcfs+easy", "sjf+easy"], futures=4, seed=3)[0]
    assert whatif([STATE, more], ["fcfs+easy", ""], futures=4, seed=3)[0].values == base.values


def test_what_if_refuses() -> None:
    with pytest.raises(BridgeError, match="is named twice"):
        whatif([STATE], ["sjf+easy", "sjf+easy"])
    with pytest.raises(BridgeError, match="two futures"):
        whatif([STATE], ["sjf+easy", "saf+easy"], futures=1)
    with pytest.raises(BridgeError, match="no job waits"):
        whatif([make_state([], [], 4)], ["sjf+easy", "saf+easy"])
