"""Looking ahead decides alike in both worlds, start for start, whatever run times are believed."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from detailed import needs_simgrid, starts_on_fake, starts_on_model
from test_same_schedule import setup_for

from bridge.experiment.prepare import beliefs
from bridge.workload.table import Workload
from bridge.worlds.batsim.process import DecisionProcess
from bridge.worlds.fast.episode import Scenario
from bridge.worlds.fast.replay import replay
from bridge.worlds.fast.scheduler_config import SchedulerConfig as Replay


def both(workload: Workload, order: str, first: int) -> tuple[Scenario, DecisionProcess]:
    """Return jobs under a policy that looks ahead on predictions, for both worlds."""
    fast = Replay(order, estimator="predicted(requested)", first=first)
    work = fast.build_scenario(fast.select(workload))
    believed, _ = beliefs(work)
    return work, DecisionProcess(replace(setup_for(work), estimator=believed), strict=True)


def check(work: Scenario, got: list[int]) -> None:
    starts = replay(work).start
    assert got == starts.tolist()
    base = work.compiled.order.name.partition("(")[2].partition(",")[0].rstrip(")")
    rule = Replay(base, estimator="predicted(requested)")
    assert np.any(replay(rule.build_scenario(work.jobs)).start != starts), "it never leaves its base"


@pytest.mark.parametrize("order", ["lookahead(saf)", "lookahead(wfp3, T=3600, margin=0)", "lookahead(slurm)"])
def test_a_scripted_peer(bundled: Workload, order: str) -> None:
    work, process = both(bundled, order, 300)
    check(work, starts_on_fake(process, work.jobs))


@needs_simgrid
def test_the_platform_model(bundled: Workload, tmp_path: Path) -> None:
    work, process = both(bundled, "lookahead(saf)", 200)
    check(work, starts_on_model(tmp_path, process, work.jobs))
