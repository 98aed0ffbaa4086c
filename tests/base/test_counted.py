"""Numbers with their nouns agree."""

import pytest

from bridge.base.counted import counted


@pytest.mark.parametrize(
    ("number", "words", "text"),
    [
        (1, ("job",), "1 job"),
        (0, ("job",), "0 jobs"),
        (3000, ("job",), "3,000 jobs"),
        (1, ("job is", "jobs are"), "1 job is"),
        (2, ("job is", "jobs are"), "2 jobs are"),
        (-1, ("pass", "passes"), "-1 passes"),
    ],
)
def test_a_noun_agrees_with_its_number(number: int, words: tuple[str, ...], text: str) -> None:
    assert counted(number, *words) == text
