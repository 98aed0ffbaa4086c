"""What waits and what runs over time, by hand, and read in pieces."""

import numpy as np
import pytest

from bridge.judge import metrics as module
from bridge.judge.metrics import sweep

#: Three jobs: submitted, started, ended; and how large they are.
SUBMIT, START, END = np.array([0.0, 1.0, 1.0]), np.array([0.0, 4.0, 2.0]), np.array([4.0, 6.0, 3.0])
NODES = np.array([2.0, 3.0, 1.0])


def test_by_hand() -> None:
    ((lengths, (jobs, nodes, used)),) = sweep(SUBMIT, START, END, (np.ones(3, np.bool_), NODES), (NODES,))
    # at 0 job 1 comes and starts; at 1 jobs 2 and 3 come; 3 starts at 2, ends at 3; at 4 job 2 follows 1
    assert lengths.tolist() == [0, 1, 0, 1, 1, 1, 0, 2]
    assert jobs.tolist() == [1, 0, 1, 2, 1, 1, 0, 0]
    assert nodes.tolist() == [2, 0, 3, 4, 3, 3, 0, 0]
    assert used.tolist() == [0, 2, 2, 2, 3, 2, 5, 3]


@pytest.mark.parametrize("piece", [1, 2, 10, 99])
def test_pieces_are_those_of_the_whole(piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    submit = rng.integers(0, 50, 100) / 3.0
    start = submit + rng.integers(0, 9, 100)
    end = start + rng.integers(0, 9, 100)
    amounts = rng.random(100), rng.integers(1, 9, 100).astype(np.float64)
    ((lengths, sums),) = sweep(submit, start, end, amounts, amounts)
    monkeypatch.setattr(module, "PIECE", piece)
    pieces = list(sweep(submit, start, end, amounts, amounts))
    assert len(pieces) > 1
    assert np.concatenate([one for one, _ in pieces]).tolist() == lengths.tolist()
    for k in range(4):
        assert np.concatenate([steps[k] for _, steps in pieces]).tolist() == sums[k].tolist()
