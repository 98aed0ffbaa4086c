"""Looking ahead decides alike in both worlds, start for start, whatever run times are believed."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from detailed import delay_jobs, needs_simgrid, run_on_model
from fake_batsim import FakeBatsim
from test_same_schedule import setup_for

from bridge.batsim.dispatcher import Setup
from bridge.batsim.process import DecisionProcess
from bridge.experiment.prepare import beliefs
from bridge.fast.episode import Prepared
from bridge.fast.replay import replay
from bridge.fast.setup import Setup as Replay
from bridge.workload.catalogue import resolve
from bridge.workload.formats import read


def both(order: str, first: int) -> tuple[Prepared, Setup]:
    """Return jobs under a policy that looks ahead on predictions, for both worlds."""
    fast = Replay(order, estimator="predicted(requested)", first=first)
    work = fast.prepare(fast.select(read(resolve("bundled-128"))))
    believed, _ = beliefs(work)
    return work, replace(setup_for(work), estimator=believed)


def check(work: Prepared, got: dict[str, int]) -> None:
    width = len(str(work.jobs.id.max()))
    starts = replay(work).start
    assert [got[f"{i:0{width}d}"] for i in work.jobs.id] == starts.tolist()
    base = work.compiled.order.name.partition("(")[2].partition(",")[0].rstrip(")")
    rule = Replay(base, estimator="predicted(requested)")
    assert np.any(replay(rule.prepare(work.jobs)).start != starts), "it never leaves its base"


@pytest.mark.parametrize("order", ["lookahead(saf)", "lookahead(wfp3, T=3600, margin=0)", "lookahead(slurm)"])
def test_a_scripted_peer(order: str) -> None:
    work, setup = both(order, 300)
    process = DecisionProcess(setup, strict=True)
    fake = FakeBatsim(delay_jobs(work.jobs), int(work.jobs.capacity[0])).run(process.answer)
    assert not process.result().missing
    check(work, fake.starts)


@needs_simgrid
def test_the_platform_model(tmp_path: Path) -> None:
    work, setup = both("lookahead(saf)", 200)
    process = DecisionProcess(setup, strict=True)
    result = run_on_model(tmp_path, delay_jobs(work.jobs), int(work.jobs.capacity[0]), process)
    assert not result.missing and result.error is None
    check(work, {job_id.partition("!")[2]: start for job_id, start in result.starts.items()})
