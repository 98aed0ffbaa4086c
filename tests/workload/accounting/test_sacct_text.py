"""The text of `sacct`: rows, steps, names with line breaks, and what is no row."""

from datetime import UTC

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.base.errors import BridgeError
from bridge.workload.accounting.lives import JobLife, RecordCounter
from bridge.workload.accounting.rows import Layout, rows
from bridge.workload.accounting.sacct import COLUMNS, command, read_sacct

HEAD = "JobID|JobIDRaw|State|Submit|Start|End|ElapsedRaw|TimelimitRaw|NNodes|JobName"


def row(label: str, number: int, name: str = "wrap", state: str = "COMPLETED") -> str:
    return f"{label}|{number}|{state}|100|110|130|20|5|2|{name}"


def lives(*rows: str, head: str = HEAD) -> tuple[list[JobLife], dict[str, tuple[int, ...]]]:
    counted = RecordCounter()
    found = list(read_sacct("\n".join((head, *rows)) + "\n", "list", counted, UTC))
    return found, {why: reason.examples for why, reason in counted.tally().items()}


def test_one_row() -> None:
    (life,), counted = lives("# a comment is none here", row("12_3", 15))[0][-1:], {}
    expected = (*("12_3", 15, "COMPLETED"), *(100, 110, 130))
    assert (life.label, life.number, life.state, life.submit, life.start, life.end) == expected
    assert (life.elapsed, life.limit, life.requested, life.words["name"]) == (20, 300, {"nodes": 2}, "wrap")
    assert counted == {}


def test_steps_are_left_out_and_who_cancelled_is_no_state() -> None:
    found, counted = lives(row("7", 7, state="CANCELLED by 1001"), row("7.batch", 7), row("7.0", 7))
    assert [life.state for life in found] == ["CANCELLED"]
    assert counted == {}


def test_a_name_may_hold_line_breaks_and_delimiters() -> None:
    found, counted = lives(
        row("1", 1, "two\nlines|bar"), row("1.batch", 1), row("2", 2, "a|b|c"), row("3", 3)
    )
    assert [life.words["name"] for life in found] == ["two\nlines|bar", "a|b|c", "wrap"]
    assert counted == {}


def test_a_name_in_the_middle_takes_what_is_too_much() -> None:
    head = "State|JobName|JobID|Submit|Start|End"
    found, counted = lives(
        "FAILED|a|b|4|1|2|3", "COMPLETED|two\nlines|5|1|2|3", "COMPLETED|5|1|2|3", head=head
    )
    assert [(life.number, life.words["name"]) for life in found] == [(4, "a|b"), (5, "two\nlines")]
    assert sum(map(len, counted.values())) == 1


def test_rows_that_are_no_record_are_counted_with_their_lines() -> None:
    found, counted = lives(
        row("1", 1), "2|2|COMPLETED", row("3", 3, state="DONE"), row("4", 4).replace("|4|", "|y|")
    )
    assert [life.number for life in found] == [1]
    assert sorted(sum(counted.values(), ())) == [3, 4, 5]


def test_any_delimiter_of_the_list_and_a_trailing_one() -> None:
    for delimiter in "\x1f\t;,":
        found, _ = lives(row("1", 1).replace("|", delimiter), head=HEAD.replace("|", delimiter))
        assert [life.number for life in found] == [1]
    found, counted = lives(row("1", 1) + "|", head=HEAD + "|")
    assert (len(found), counted) == (1, {})


def test_lists_that_were_put_together_repeat_the_names_of_columns() -> None:
    found, counted = lives(row("1", 1), HEAD, row("2", 2))
    assert ([life.number for life in found], counted) == ([1, 2], {})


def test_columns_that_are_needed() -> None:
    with pytest.raises(BridgeError, match="no column submit, start"):
        lives(head="JobID|State")


def test_the_line_to_run_asks_for_free_text_last() -> None:
    line = command("2026-01-01", "2026-02-01")
    assert line.startswith("TZ=UTC SLURM_TIME_FORMAT=%s sacct ")
    assert COLUMNS[-1] == "JobName"
    assert f"--format={','.join(COLUMNS)}" in line


words = st.text(st.characters(exclude_characters="\n\r|"), max_size=12)


@given(st.lists(st.tuples(st.integers(1, 10**9), words), max_size=8), st.permutations(HEAD.split("|")[:-1]))
def test_any_order_of_columns_gives_the_same(jobs: list[tuple[int, str]], names: list[str]) -> None:
    rows = [dict(zip(HEAD.split("|"), row(str(n), n, name).split("|"), strict=True)) for n, name in jobs]
    head = [*names, "JobName"]
    found, counted = lives(*("|".join(r[name] for name in head) for r in rows), head="|".join(head))
    assert [(life.number, life.submit, life.limit) for life in found] == [(n, 100, 300) for n, _ in jobs]
    assert counted == {}


@given(st.text(st.sampled_from("0123456789|_+[].\n\r\x1f:-TCOMPLETEDUnknown é\x00"), max_size=200))
def test_any_text_is_read_or_counted(text: str) -> None:
    found, _ = lives(*text.split("\n"))
    assert all(life.number >= 0 for life in found)


PIPES = "JobName|JobID|State|Submit|Start|Comment|End|Constraints|User|WorkDir"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a|b|1|COMPLETED|1|2||3||ann|/home", ("a|b", "", "")),
        ("a|1|COMPLETED|1|2|see | this|3|knl|ann|/home", ("a", "see | this", "knl")),
        ("a|1|COMPLETED|1|2||3|knl|haswell|ann|/home|x", ("a", "", "knl|haswell")),
        ("a|b|1|COMPLETED|1|2|c|3||ann|/x|y", ("a|b", "c", "")),
    ],
)
def test_delimiters_in_several_columns_of_free_text(text: str, expected: tuple[str, str, str]) -> None:
    (cells,) = (
        cells for _, cells in rows([text], 0, Layout(tuple(PIPES.lower().split("|")), "|", False, ""))
    )
    assert cells is not None
    assert (cells["jobname"], cells["comment"], cells["constraints"]) == expected
    assert (cells["jobid"], cells["end"], cells["user"]) == ("1", "3", "ann")


@pytest.mark.parametrize("text", ["a|1|COMPLETED|1|2|3|4|5||ann|/home", "a|1|COMPLETED|1|2|x|y|z||ann|/home"])
def test_a_row_that_can_be_read_in_several_ways_is_none(text: str) -> None:
    layout = Layout(tuple(PIPES.lower().split("|")), "|", False, "")
    assert [cells for _, cells in rows([text], 0, layout)] == [None]
    assert [cells for _, cells in rows([text.replace("x", "|" * 5000)], 0, layout)] == [None]


def test_unknown_states_are_named_and_columns_that_are_not_read() -> None:
    counted = RecordCounter()
    text = "JobID|State|Submit|Start|MaxRSS|Color\n"
    text += "1|DONE|1|2|5K|\n2|LATE|1|2|5K|\n3|FAILED|1|2|5K|red\n4|FAILED|1|2||\n"
    assert [life.number for life in read_sacct(text, "list", counted, UTC)] == [3, 4]
    assert {why: (reason.kind, reason.count) for why, reason in counted.tally().items()} == {
        "no record ('DONE' is no state of a job; examples are lines)": ("dropped", 2),
        "columns that are not read: maxrss, color": ("ignored", 1),
    }


def test_a_column_that_is_named_twice() -> None:
    with pytest.raises(BridgeError, match="two columns are named jobid"):
        lives(head="JobID|JobID|State|Submit|Start")
