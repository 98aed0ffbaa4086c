"""What a critic knows: every number by hand."""

import numpy as np
from small_pools import pools_in_play, sequences_of

from bridge.pool.settings import PoolConfig
from bridge.pool.world import N_CRITIC_FEATURES

SMALL = PoolConfig(units=4, slots=1, kill_slots=2, horizon=16)


def test_an_outlook_by_hand() -> None:
    # step 3: job 0 (3 units, 4 steps) runs since 1; job 1 (2 units, 2 steps) is booked for 5; job 2 is in
    # the slot, and no job will come
    rows = [(3, 4, 4, [4]), (2, 2, 2, [2]), (1, 3, 3, [3]), (4, 5, 5, [5])]
    arrivals = np.full(20, -1)
    arrivals[[1, 2, 3]] = [0, 1, 2]
    pools = pools_in_play(sequences_of(rows, arrivals.tolist()), SMALL, answers=(1, 0, 1, 0, 1))
    found = pools.outlooks(np.array([0]))[0].astype(float).round(6).tolist()
    groups = {
        "visible": [1 / 20, 1 / 3 / 4, 3 / 200],
        "hidden": [0, 0, 0],
        "ready": [0, 0, 0],
        "running": [1 / 20, 1 / 2 / 4, 6 / 200],
        "booked": [1 / 20, 1 / 2 / 4, 4 / 200],
        "10": [0, 0, 0],
        "30": [0, 0, 0],
        "100": [0, 0, 0],
        "ever": [0, 0, 0],
    }
    free = [1 / 4, (1 + 1 + 2 + 2 + 4) / 20, (2 + 4 + 12 * 4) / 64, (2 + 4 + 12 * 4) / 64]
    expected = [number for group in groups.values() for number in group] + free + [17 / 200, 0, 0]
    assert len(found) == N_CRITIC_FEATURES
    assert found == np.array(expected).astype(np.float32).astype(float).round(6).tolist()


def test_hidden_jobs_and_arrivals_to_come() -> None:
    rows = [(3, 4, 4, [4]), (4, 5, 5, [5]), (2, 8, 8, [8])]
    arrivals = np.full(60, -1)
    arrivals[[1, 2, 3, 15, 50]] = [0, 1, 2, 1, 2]
    pools = pools_in_play(sequences_of(rows, arrivals.tolist()), SMALL, answers=(1, 1, 1))
    found = pools.outlooks(np.array([0]))[0]
    hidden = [2 / 20, (1 / 5 + 1 / 8) / 4, (20 + 16) / 200]
    soon, late = [1 / 20, 1 / 5 / 4, 20 / 200], [2 / 20, (1 / 5 + 1 / 8) / 4, 36 / 200]
    np.testing.assert_allclose(found[3:6], hidden, rtol=1e-6)
    np.testing.assert_allclose(found[15:27].reshape(4, 3), [[0, 0, 0], soon, late, late], rtol=1e-6)
