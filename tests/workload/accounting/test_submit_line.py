"""Lines of submission, as users type them."""

import math
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.workload.accounting.submit_line import SubmitOptions, begin_of, parse_submit_line


@pytest.mark.parametrize(
    ("line", "options"),
    [
        ("sbatch run.sh -N 4", SubmitOptions()),
        ("sbatch -N 4 -n16 -c2 run.sh", SubmitOptions(nodes=4, tasks=16, cores_per_task=2)),
        ("sbatch --nodes=2-4 run.sh", SubmitOptions(nodes=2, is_range=True)),
        ("sbatch -N 1k run.sh", SubmitOptions(nodes=1024)),
        ("sbatch --ntasks 8 --ntasks-per-node=4 x", SubmitOptions(tasks=8, tasks_per_node=True)),
        ("sbatch -L a:2,b -d afterok:12 x", SubmitOptions(licenses="a:2,b", dependency="afterok:12")),
        ("sbatch --array=0-9%3 x", SubmitOptions(array_limit=3)),
        ("sbatch -a 1-5 x", SubmitOptions()),
        (
            "sbatch --exclusive -H --begin=now+1hour x",
            SubmitOptions(exclusive=True, hold=True, begin="now+1hour"),
        ),
        ("sbatch --exclusive=user x", SubmitOptions(exclusive=True)),
        (
            "sbatch -Hw n[1-2] -x n3 -C 'a&b' x",
            SubmitOptions(hold=True, nodelist="n[1-2]", exclude="n3", constraint="a&b"),
        ),
        ("sbatch --wrap 'sleep -N 9' -N 3", SubmitOptions(nodes=3)),
        ("sbatch --wrap='a \"b' -n 2", SubmitOptions(tasks=2)),
        ("sbatch -N 2 -N 3 x", SubmitOptions(nodes=3)),
        ("srun -Q -n 4 hostname -n 9", SubmitOptions(tasks=4)),
        ("sbatch --comment 'it''s' -n 'x' y", SubmitOptions()),
        ('sbatch --job-name="open -n 4', SubmitOptions(tasks=4)),
        ("sbatch -- -n 4", SubmitOptions()),
        ("", SubmitOptions()),
    ],
)
def test_lines(line: str, options: SubmitOptions) -> None:
    assert parse_submit_line(line) == options


@given(st.text())
def test_any_text_is_read(line: str) -> None:
    parse_submit_line(line)


SUBMIT = datetime(2024, 3, 1, 15, 0, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("now", 0),
        ("now+90", 90),
        ("now+2hours", 7200),
        ("now+1weeks", 604_800),
        ("2024-03-01T16:00:00", 3600),
        ("2024-03-01T15:30", 1800),
        ("2024-03-02", 9 * 3600),
        ("16:00", 3600),
        ("14:00:00", 23 * 3600),
    ],
)
def test_begin_times(text: str, after: float) -> None:
    assert begin_of(text, SUBMIT, UTC) == SUBMIT + after


@pytest.mark.parametrize("text", ["teatime", "tomorrow", "now+2moons?", "2024-13-01", "25:00", "", "now-5"])
def test_begin_times_that_are_not_read(text: str) -> None:
    assert begin_of(text, SUBMIT, UTC) is None


def test_begin_times_are_local() -> None:
    begin = begin_of("2024-03-01T16:00", SUBMIT, ZoneInfo("Europe/Paris"))
    assert begin is not None
    assert math.isclose(begin, SUBMIT)
