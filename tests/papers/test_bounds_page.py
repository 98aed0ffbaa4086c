"""What is left on each log stands in the pages, as it was measured."""

from pathlib import Path

import pytest

from bridge.report.folding import fold_tables
from papers import bounds, store

#: Eight windows that share no job; beside the base each row's differences are alike but for the last row's.
_OTHERS = (
    ("what is believed", "lookahead(f4)", [41.0] * 8),
    ("run times", "saf+easy", [30.0] * 8),
    ("run times", "lookahead(saf)", [28.0] * 8),
    ("run times and arrivals", "lookahead(saf)", [12.0, 20.0] * 4),
)
FOUND = {
    "starts": [bounds.LENGTH * k for k in range(8)],
    "rows": [
        {"known": known, "policy": policy, "mean": sum(values) / 8, "values": values}
        for known, policy, values in (("what is believed", "f4+easy", [40.0] * 8), *_OTHERS)
    ],
}


@pytest.fixture
def one_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "read_bounds", lambda: {"Lublin-1": FOUND})


@pytest.mark.usefixtures("one_log")
def test_the_best_that_knows_as_much_is_said_of_each_log_once() -> None:
    said = bounds.format_bound(["Lublin-1", "nowhere", "Lublin-1"])
    assert said.endswith("bounded slowdown differs by: Lublin-1 -30 %, -60 % ([bounds](bounds.md)).")
    assert bounds.format_bound(["nowhere"]) == ""


@pytest.mark.usefixtures("one_log")
def test_the_page_has_a_row_per_log() -> None:
    # -60 % ± t(0.975, 7) · 10 · √(8 / 7) / √8, of which the eight windows are as many blocks
    ahead, times = "+2 % [+2, +2] t", "-25 % [-25, -25] t; -30 % [-30, -30] t"
    row = f"| Lublin-1 | 8 | f4+easy | 40.00 | {ahead} | {times} | -60 % [-69, -51] t |"
    assert row in bounds.page()


def test_the_page_is_what_the_data_say() -> None:
    assert (store.RESULTS / "bounds.md").read_text(encoding="utf-8") == fold_tables(bounds.page()), (
        "run `python -m papers.bounds`"
    )
    assert list(bounds.read_bounds()) == [name for name in bounds.LOGS if name in bounds.read_bounds()]
    for found in bounds.read_bounds().values():
        assert [row["oracle"] for row in found["rows"]] == [False, False, True, True, True]


def test_logs_are_measured_one_by_one_and_kept_in_their_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "RESULTS", tmp_path)
    (tmp_path / "data").mkdir()
    assert list(store.measure_logs("trial", ("a", "b"), str.upper, ["b"])) == [("b", "B")]
    assert list(store.measure_logs("trial", ("a", "b"), str.upper, ["a"])) == [("a", "A")]
    assert list(store.read_json("trial").items()) == [("a", "A"), ("b", "B")]
    store.read_json.cache_clear()
