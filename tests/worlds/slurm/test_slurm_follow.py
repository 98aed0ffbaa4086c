"""The file of events: appended to, replaced, cut."""

from pathlib import Path

from bridge.worlds.slurm.event_file import EventFileReader, EventLine


def test_lines_that_come(tmp_path: Path) -> None:
    path = tmp_path / "events"
    path.write_text("S 1\nE 1.5 7 COMPLETED 1 2 1 n0\n")
    follower = EventFileReader(path)
    assert follower.read() == []
    with path.open("a") as file:
        file.write("S 2\nE 2.5 8 FAILED 1 2 1 n0\nE 3.5 9 COMP")
        file.flush()
        assert follower.read() == [EventLine(), EventLine(8, "FAILED", start=1, submit=1)]
        file.write("LETED 1 2 1 n1\n\nnonsense\nE x y z\n")
    assert follower.read() == [EventLine(9, "COMPLETED", start=1, submit=1)]
    assert follower.read() == []


def test_a_file_that_is_cut_or_replaced_or_not_there_yet(tmp_path: Path) -> None:
    path = tmp_path / "events"
    follower = EventFileReader(path)
    assert follower.read() == []
    path.write_text("S 1\n")
    assert follower.read() == [EventLine()]
    path.write_text("")
    follower.read()
    path.write_text("S 2\nS 3\n")
    assert follower.read() in ([EventLine(), EventLine()], [EventLine()])
    (tmp_path / "new").write_text("E 1 5 TIMEOUT\n")
    (tmp_path / "new").replace(path)
    assert follower.read() == [EventLine(5, "TIMEOUT")]
    follower.close()
    assert EventFileReader(None).read() == []
