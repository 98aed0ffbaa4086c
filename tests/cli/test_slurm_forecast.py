"""`bridge forecast --slurm`: jobs that have a forecast, and why others have none."""

import json
from collections.abc import Iterator

import pytest
from cli_commands import run_bridge, run_ok, run_refused

import bridge
from bridge.cli import decide_slurm
from bridge.serve.observer import PartitionState

HELD = "held by its user or an operator"


class Observed:
    """Stands for Slurm: two free nodes, a job that waits, three that are held and one too large."""

    def read(self) -> PartitionState:
        waiting = [{"id": "7", "submit": 90, "request": 60, "demand": {"nodes": 1}}]
        document = {
            "format": "bridge-state", "version": 1, "now": 100.0, "policy": "fcfs+easy",
            "capacity": {"nodes": 2}, "free": {"nodes": 2}, "running": [], "waiting": waiting,
        }  # fmt: skip
        left = {"9": "asks for 9 nodes, and 2 have what it asks for"} | dict.fromkeys(
            ("1", "2", "3", "4"), HELD
        )
        return PartitionState(document, (), left)

    def close(self) -> None:
        """Do nothing."""


@pytest.fixture(autouse=True)
def observed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(decide_slurm, "open_observer", lambda *_: Observed())
    yield


WORDS = ("forecast", "--slurm", "--partition", "batch", "--futures", "5")


def test_a_job_without_a_forecast_has_a_reason() -> None:
    assert f"job 2: no forecast: {HELD}" in run_refused(*WORDS, "--job", "2")
    assert "neither runs nor waits" in run_refused(*WORDS, "--job", "5")


def test_the_table_tells_who_is_left_out() -> None:
    told = run_ok(*WORDS)
    assert f"no forecast of 4 (job 1, 2, 3, …): {HELD}" in told
    assert "no forecast of 1 (job 9): asks for 9 nodes, and 2 have what it asks for" in told
    found = json.loads(run_ok(*WORDS, "--json"))
    assert found["left"] == Observed().read().not_forecast
    assert [row["job"] for row in found["jobs"]] == ["7"]


@pytest.mark.parametrize("log", ["bundled-128", "some.swf.gz", "log.parquet"])
def test_a_log_is_to_be_judged(log: str) -> None:
    told = run_bridge("forecast", log)
    assert (told.status, "add --judge" in " ".join(told.err.split())) == (2, True)


@pytest.mark.parametrize("command", ["forecast", "whatif"])
def test_futures_have_a_bound(command: str) -> None:
    told = run_bridge(command, "now.json", "--futures", "10001")
    assert (told.status, "2<=x<=10000" in told.err) == (2, True)


def test_nothing_is_no_state() -> None:
    with pytest.raises(
        TypeError, match="a forecast needs a state, the file of one or a run folder, not None"
    ):
        bridge.forecast(None)  # type: ignore[arg-type]
