"""Who waits for an answer looks out awake only where that takes no core from the other side."""

import pytest

from bridge.wire import busy_wait
from bridge.wire.busy_wait import BusyWaiter


@pytest.mark.parametrize(
    ("cores", "wanting", "awake"),
    [(2, 1.0, True), (2, 2.75, True), (2, 2.8, False), (4, 4.5, True), (1, 1.0, False)],
)
def test_awake_while_a_core_is_free(
    monkeypatch: pytest.MonkeyPatch, cores: int, wanting: float, awake: bool
) -> None:
    monkeypatch.setattr(busy_wait, "_CORES", cores)
    monkeypatch.setattr(busy_wait, "_runnable", lambda: wanting)
    assert BusyWaiter(0.75).should_spin() == awake


def test_one_count_weighs_a_tenth(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = iter([1.0, 15.0, 15.0])
    monkeypatch.setattr(busy_wait, "_CORES", 2)
    monkeypatch.setattr(busy_wait, "_COUNT", 0.0)
    monkeypatch.setattr(busy_wait, "_runnable", lambda: next(counts))
    looks = BusyWaiter(0.75)
    assert [looks.should_spin() for _ in range(3)] == [True, True, False]  # 1.0, 2.4 and 3.66 on average
