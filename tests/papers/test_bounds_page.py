"""What is left on each log stands in the pages, as it was measured."""

import pytest

from papers import bounds, store

FOUND = {
    "rows": [
        {"known": "what is believed", "policy": "f4+easy", "mean": 40.0, "difference_percent": None},
        {
            "known": "what is believed",
            "policy": "lookahead(f4)",
            "mean": 41.0,
            "difference_percent": {"mean": 2.5},
        },
        {"known": "run times", "policy": "saf+easy", "mean": 30.0, "difference_percent": {"mean": -25.0}},
        {
            "known": "run times",
            "policy": "lookahead(saf)",
            "mean": 28.0,
            "difference_percent": {"mean": -30.0},
        },
        {
            "known": "run times and arrivals",
            "policy": "lookahead(saf)",
            "mean": 16.0,
            "difference_percent": {"mean": -60.0, "low": -70.4, "high": -50.0},
        },
    ]
}


@pytest.fixture
def one_log(monkeypatch: pytest.MonkeyPatch) -> None:
    for row in FOUND["rows"][1:4]:
        difference = row["difference_percent"]
        assert isinstance(difference, dict)
        difference |= {"low": None, "high": None}
    monkeypatch.setattr(bounds, "known", lambda: {"Lublin-1": FOUND})


@pytest.mark.usefixtures("one_log")
def test_the_best_that_knows_as_much_is_said_of_each_log_once() -> None:
    said = bounds.said(["Lublin-1", "nowhere", "Lublin-1"])
    assert said.endswith("the next 12 h, too: Lublin-1 -30 %, -60 % ([bounds](bounds.md)).")
    assert bounds.said(["nowhere"]) == ""


@pytest.mark.usefixtures("one_log")
def test_the_page_has_a_row_per_log() -> None:
    row = "| Lublin-1 | f4+easy | 40.00 | +2 % | -25 %; -30 % | -60 % [-70, -50] |"
    assert row in bounds.page()


def test_the_page_is_what_the_data_say() -> None:
    assert (store.RESULTS / "bounds.md").read_text(encoding="utf-8") == bounds.page(), (
        "run `python -m papers.bounds`"
    )
    assert list(bounds.known()) == [name for name in bounds.LOGS if name in bounds.known()]
    for found in bounds.known().values():
        assert [row["oracle"] for row in found["rows"]] == [False, False, True, True, True]
