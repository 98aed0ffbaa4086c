"""Our own recordings of a real slurmctld: each is of one statement of how Slurm decides.

`benchmarks/slurm/record.py` made them of `benchmarks/slurm/scenarios`.
"""

import shutil
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from bridge.base.errors import BridgeError
from bridge.worlds.fast.slurm.agreement import play_case
from bridge.worlds.fast.slurm.case import read_case
from bridge.worlds.fast.slurm.playing import SlurmPlayer

CASES = Path(__file__).with_name("slurm_cases")
#: Seconds of one round of the background loop: it sleeps for one, and works.
ROUND = 1.0101


class Counting(SlurmPlayer):
    """Notes the passes that its own clock makes."""

    leaves_out = False

    def __init__(self, folder: Path, seed: int) -> None:
        super().__init__(read_case(folder), clock="own", seed=seed)
        self.passes: list[tuple[float, str]] = []

    def happen(self, time: float, kind: str, what: Any) -> None:
        if what is None:
            self.passes.append((time, kind))
        super().happen(time, kind, what)


def between(passes: list[tuple[float, str]], low: float, high: float) -> Counter[str]:
    return Counter(kind for time, kind in passes if low < time < high)


@pytest.mark.parametrize("name", sorted(path.name for path in CASES.iterdir()))
def test_every_start_is_that_of_the_real_slurm(name: str) -> None:
    agreement = play_case(CASES / name).agreement
    assert agreement.starts > 0
    assert (agreement.misses, agreement.elsewhere, agreement.extra) == ([], [], [])


@pytest.mark.parametrize(
    ("name", "low", "high", "period"),
    [
        # c is passed over; nodes are busy, and one job alone is planned, so that no plan marks anything
        ("closed_partition", 501, 985, 34),
        # a reservation bars b, and nothing is planned
        ("barred_job", 430, 790, 31),
    ],
)
def test_backfill_wakes_as_often_as_recorded(name: str, low: float, high: float, period: float) -> None:
    recorded = between(read_case(CASES / name).passes, low, high)["backfill"]
    assert abs(recorded - (high - low) / period) <= 1.5  # though nothing comes and nothing ends
    for seed in range(3):
        player = Counting(CASES / name, seed)
        player.play()
        assert abs(between(player.passes, low, high)["backfill"] - recorded) <= 0.15 * recorded


def test_new_priorities_wake_backfill() -> None:
    """They are computed each two minutes; the real one passes again 30 s later, the own clock does not."""
    passes = read_case(CASES / "new_priorities").passes
    recorded = [time for time, kind in passes if kind == "backfill" and 70 < time < 985]
    woken = [time for k, time in enumerate(recorded) if not k or time - recorded[k - 1] > 60]
    assert len(woken) == 7
    assert all(abs(later - before - 120) < 1 for before, later in pairwise(woken))
    for seed in range(3):
        player = Counting(CASES / "new_priorities", seed)
        player.play()
        assert between(player.passes, 70, 985)["backfill"] in (7, 8)


def test_one_job_that_waits_for_busy_nodes_does_not_wake_backfill() -> None:
    recorded = between(read_case(CASES / "closed_partition").passes, 70, 495)
    assert (recorded["backfill"], recorded["full"]) == (0, 7)
    for seed in range(3):
        player = Counting(CASES / "closed_partition", seed)
        player.play()
        assert between(player.passes, 70, 495)["backfill"] == 0


def test_the_end_of_a_reservation_asks_for_no_pass() -> None:
    case = read_case(CASES / "reservation_ends")
    for job, end in (("b", 501.0), ("c", 981.0)):
        start = case.starts[job, 0].start
        passes = between(case.passes, end, start + 0.001)
        assert (passes["default"], passes["full"]) == (0, 1)  # the next one of those each minute
        for seed in range(5):
            player = Counting(CASES / "reservation_ends", seed)
            (own,) = (one.start for one in player.play() if one.job == job)
            assert end - 1 <= own <= end + 62
            assert (own, "full") in player.passes


def test_limits_and_main_passes_are_looked_for_by_one_loop() -> None:
    passes = read_case(CASES / "one_loop").passes
    # a job that was killed has a message of its own, which runs a pass at once
    at_once = next(time for time, kind in passes if kind == "default" and 88.95 < time < 89.1)
    loop = [time for time, kind in passes if kind in ("default", "full", "limits") and time != at_once]
    near = [pair for pair in pairwise(loop) if pair[1] - pair[0] < 20]  # its rounds are not quite equal
    assert len(near) == 16
    for before, after in near:
        rounds = (after - before) / ROUND
        assert abs(rounds - round(rounds)) < 0.12, (before, after)


def test_who_may_not_name_a_reservation_is_refused(tmp_path: Path) -> None:
    copy = shutil.copytree(CASES / "reservation_users", tmp_path / "case")
    lines = (copy / "result.csv").read_text().splitlines()
    planned = {job["job"]: job["submit"] for job in read_case(copy).jobs}
    rejected = {line.partition(",")[0] for line in lines if ",REJECTED," in line}
    for k, line in enumerate(lines):
        job, *cells = line.split(",")
        if job in rejected:  # as if it had been let in: the rule itself is to refuse it
            lines[k] = ",".join([job, cells[0], planned[job], planned[job], *cells[3:]])
    (copy / "result.csv").write_text("\n".join(lines) + "\n")
    played = play_case(copy)
    assert rejected == {"a2", "a5", "a6", "a7", "a8", "b2"}
    assert set(played.refused) == rejected
    assert played.agreement.misses == []


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ("Users=-slu01,slu02", "some with a minus"),
        ("CoreCnt=4", "corecnt= of a reservation is not modelled"),
        ("Users=slu01 Flags=DAILY", "DAILY"),
    ],
)
def test_what_is_not_modelled_of_a_reservation_is_an_error(tmp_path: Path, words: str, what: str) -> None:
    copy = shutil.copytree(CASES / "reservation_users", tmp_path / "case")
    with (copy / "events.csv").open("a") as file:
        command = f"scontrol create reservation ReservationName=x StartTime=@9 Duration=1 Nodes=n0 {words}"
        file.write(f'1,1.0,"{command}"\n')
    with pytest.raises(BridgeError, match=what):
        play_case(copy)
