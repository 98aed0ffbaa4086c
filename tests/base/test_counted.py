"""Numbers with their nouns agree."""

import pytest

from bridge.base.counted import counted, counted_text


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


@pytest.mark.parametrize(
    ("number", "text", "expected"),
    [
        (
            2,
            "jobs follow another job: they arrive as logged",
            "2 jobs follow another job: they arrive as logged",
        ),
        (1, "jobs ask for licences", "1 job asks for licences"),
        (1, "jobs ran in a reservation", "1 job ran in a reservation"),
        (1, "jobs depend on a job that is not there: met", "1 job depends on a job that is not there: met"),
        (1, "jobs of 2 partitions: all nodes are one pool", "1 job of 2 partitions: all nodes are one pool"),
        (1, "never ran: run time set to 60 s", "1 never ran: run time set to 60 s"),
    ],
)
def test_a_text_about_jobs_agrees_with_their_number(number: int, text: str, expected: str) -> None:
    assert counted_text(number, text) == expected
