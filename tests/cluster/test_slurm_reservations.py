"""Advance reservations from what `scontrol show reservation` prints."""

from datetime import UTC
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from click.testing import CliRunner

from bridge.base.errors import BridgeError
from bridge.cli.cluster import cluster as command
from bridge.cluster import AdvanceReservation, Cluster, NodeGroup
from bridge.cluster.clusterfile import read_cluster_toml
from bridge.cluster.imported import ImportNotes
from bridge.cluster.slurm_reservations import read_reservations

SITE = Cluster(nodes=(NodeGroup(name="n", count=8),))
#: 2026-01-01T00:00:00 UTC.
BEGIN = 1_767_225_600
TEXT = """ReservationName=upgrade StartTime=2026-01-01T08:00:00 EndTime=2026-01-01T10:00:00 Duration=02:00:00
   Nodes=n[0-3] NodeCnt=4 CoreCnt=16 Features=(null) PartitionName=(null) Flags=MAINT,SPEC_NODES
   TRES=cpu=16
   Users=root Groups=(null) Accounts=(null) Licenses=(null) State=INACTIVE BurstBuffer=(null)

ReservationName=course StartTime=2025-12-31T23:00:00 EndTime=2026-01-01T01:00:00 Duration=02:00:00
   Nodes=n7 NodeCnt=1 CoreCnt=4 Features=(null) PartitionName=debug Flags=WEEKLY
   Users=(null) Groups=(null) Accounts=physics,laser Licenses=(null) State=ACTIVE

ReservationName=old StartTime=2025-12-30T23:00:00 EndTime=2025-12-31T01:00:00 Duration=02:00:00
   Nodes=n7 NodeCnt=1 Users=-bob,ann Groups=(null) Accounts=(null) Licenses=(null)

ReservationName=matlab StartTime=2026-01-01T08:00:00 EndTime=2026-01-01T09:00:00 Duration=01:00:00
   Nodes=(null) NodeCnt=0 Users=ann Groups=(null) Accounts=(null) Licenses=matlab:2
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "res.txt"
    path.write_text(TEXT)
    return path


def test_reservations_are_on_the_logs_clock(file: Path) -> None:
    notes = ImportNotes()
    site = read_reservations(file, SITE, notes, UTC, BEGIN)
    assert site.reservations == (
        AdvanceReservation(name="upgrade", start=28_800, end=36_000, nodes=("n[0-3]",), users=("root",)),
        AdvanceReservation(name="course", start=0, end=3_600, nodes=("n7",), accounts=("physics", "laser")),
    )
    assert notes.unhonoured == {
        "repetitions of reservations: only the next one counts": 1,
        "users or accounts that a reservation excludes": 1,
        "reservations that end before the log begins": 1,
        "reservations of licences or cores alone, without nodes": 1,
    }
    paris = read_reservations(file, SITE, ImportNotes(), ZoneInfo("Europe/Paris"), BEGIN)
    assert paris.reservations[0].start == 28_800 - 3_600


def test_what_is_no_reservation_is_an_error_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "res.txt"
    for text, message in (
        ("NodeName=n0\n", "holds no reservation"),
        (TEXT.replace("n[0-3]", "x0"), "names the node 'x0'"),
        (TEXT.replace("2026-01-01T10:00:00", "tomorrow"), "'tomorrow' is no time"),
        (TEXT.replace("2026-01-01T10:00:00", "2026-01-01T07:00:00"), "does not end after its start"),
    ):
        path.write_text(text)
        with pytest.raises(BridgeError, match=message.replace("[", r"\[")) as error:
            read_reservations(path, SITE, ImportNotes(), UTC, BEGIN)
        assert "res.txt" in str(error.value)


def test_the_command_writes_them(file: Path, tmp_path: Path) -> None:
    conf, log, out = tmp_path / "slurm.conf", tmp_path / "log.swf", tmp_path / "c.toml"
    conf.write_text("NodeName=n[0-7] CPUs=4\nPartitionName=debug Nodes=ALL\n")
    log.write_text(f"; UnixStartTime: {BEGIN}\n1 0 0 10 1 -1 -1 1 10 -1 1 1 1 1 1 1 -1 -1\n")
    arguments = ["import", str(conf), "--reservations", str(file), "--out", str(out)]
    assert "--reservations needs --log" in CliRunner().invoke(command, arguments).output
    done = CliRunner().invoke(command, [*arguments, "--log", str(log)])
    assert done.exit_code == 0, done.output
    assert [row.name for row in read_cluster_toml(out).reservations] == ["upgrade", "course"]
