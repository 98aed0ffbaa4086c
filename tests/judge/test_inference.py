"""What a record says of its site: planted sites, of which all is known, and records that say nothing."""

import numpy as np
import pytest

from bridge.judge.fidelity_reasons import RecordedRun
from bridge.judge.inference import (
    FILLED,
    PoolEstimates,
    RecordedUse,
    pass_cycle,
    pass_delay,
    pool_sizes,
    user_limit,
)
from tests.judge.planted_sites import Planted, draw

NOTHING = PoolEstimates({}, {}, ())


def inferred(planted: Planted):  # type: ignore[no-untyped-def]
    run, site = planted.run, planted.site
    names = {code: f"p{code}" for code in range(len(site.sizes))}
    use = RecordedUse(run, names)
    pools = pool_sizes(use)
    delay, cycle = pass_delay(run), pass_cycle(run)
    settle = (delay.value or 0) + (cycle.value or 0)
    known = RecordedRun(
        run.submit, run.start, run.end, run.request, run.nodes.astype(np.int64), run.capacity, run.user,
        run.partition, pools.sizes,
    )  # fmt: skip
    return use, pools, user_limit(known, pools, settle), delay, cycle


def check_pools(planted: Planted, use: RecordedUse, pools: PoolEstimates) -> int:
    """Every size that is given is exact, and it is given wherever the pool is filled; returns how many."""
    site = planted.site
    for code, size in pools.sizes.items():
        assert size == site.sizes[code]
    for code, size in enumerate(site.sizes):
        pool = use.of([code])
        if pool.fill is not None and pool.fill * pool.largest >= FILLED * size:
            assert code in pools.sizes
    return len(pools.sizes)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_planted_sites_are_met(seed: int) -> None:
    planted = draw(seed, 600)
    use, pools, limit, delay, cycle = inferred(planted)
    check_pools(planted, use, pools)
    assert limit.value in (None, planted.site.limit)
    assert cycle.value == planted.site.cycle
    assert abs((delay.value or 0) - planted.site.delay) <= 2


@pytest.mark.slow
def test_twenty_planted_sites() -> None:
    """Issue's bars: sizes exact where filled, limits' precision ≥ 95 %, recall of binding ones ≥ 85 %."""
    given = right = binding = met = sizes = 0
    for seed in range(20):
        planted = draw(100 + seed, 4000)
        use, pools, limit, delay, cycle = inferred(planted)
        sizes += check_pools(planted, use, pools)
        given += limit.value is not None
        right += limit.value is not None and limit.value == planted.site.limit
        if planted.site.limit is not None and planted.held > 2000:  # more than every second job, once
            binding += 1
            met += limit.value == planted.site.limit
        assert cycle.value is not None
        assert abs(cycle.value - planted.site.cycle) <= 2
        assert abs((delay.value or 0) - planted.site.delay) <= 2
    assert sizes > 20
    assert right >= 0.95 * given
    assert met >= 0.85 * binding
