"""Advance reservations from what `scontrol show reservation` prints, on a log's clock."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, tzinfo
from pathlib import Path

from bridge.base import files
from bridge.base.errors import BridgeError
from bridge.cluster.description import AdvanceReservation, Cluster
from bridge.cluster.imported import ImportNotes, mending
from bridge.cluster.node_table import build_node_table
from bridge.cluster.slurm_conf import Line, scontrol_records
from bridge.cluster.slurm_values import in_calendar

_NOTHING = ("", "(null)", "none")
_REPEATS = ("HOURLY", "DAILY", "WEEKDAY", "WEEKEND", "WEEKLY")


def read_reservations(
    path: Path, cluster: Cluster, notes: ImportNotes, zone: tzinfo, unix_start: float
) -> Cluster:
    """Return a cluster with the reservations of a file, the output of `scontrol show reservation`.

    `notes` takes what has no place in a cluster; `zone`: of the file's times; `unix_start`: the log's 0,
    s since 1970. BridgeError: the file holds none, or a line is no reservation.
    """
    rows: list[AdvanceReservation] = []
    table = build_node_table(cluster)
    lines = reservation_lines(path, files.read_text(path))
    for place, line in lines:
        with mending(place):
            row = reservation_of(line, notes, zone, unix_start)
            if row is None:
                continue
            unknown = table.indices(row.nodes)[1]
        if unknown:
            what = f"names the node {unknown[0]!r}, which there is not"
            raise BridgeError(what, where=place, remedy="Mend its list of nodes, or leave it out.")
        rows.append(row)
    if not lines:
        remedy = "Give the output of `scontrol show reservation`."
        raise BridgeError("holds no reservation", where=str(path), remedy=remedy)
    if rows:
        notes.note("reservations are known from the beginning on: Slurm does not say since when it knew")
    names = {row.name for row in rows}
    kept = [row for row in cluster.reservations if row.name not in names]
    return replace(cluster, reservations=(*kept, *rows))


def reservation_lines(path: Path, text: str) -> list[Line]:
    """Return the records of what `scontrol show reservation` prints; `path`: its name in errors."""
    return [(place, line) for place, line in scontrol_records(path, text) if "reservationname" in line]


def reservation_of(
    line: Mapping[str, str], notes: ImportNotes, zone: tzinfo, unix_start: float
) -> AdvanceReservation | None:
    """Return a record as a reservation; None if it is past, or of no nodes."""
    name = line["reservationname"]
    start, end = (
        round(_instant(line.get(f"{which}time", ""), zone) - unix_start) for which in ("start", "end")
    )
    if end <= start:
        raise ValueError(f"reservation {name!r} does not end after its start")
    flags = line.get("flags", "").upper().split(",")
    if any(flag in _REPEATS for flag in flags):
        notes.leave("repetitions of reservations: only the next one counts")
    if line.get("groups", "").lower() not in _NOTHING:
        notes.leave("groups of reservations")
    users, accounts = (_names(line.get(which, ""), notes) for which in ("users", "accounts"))
    if end <= 0:
        notes.leave("reservations that end before the log begins")
        return None
    nodes = line.get("nodes", "")
    if nodes.lower() in _NOTHING:
        notes.leave("reservations of licences or cores alone, without nodes")
        return None
    return AdvanceReservation(
        name=name, start=max(start, 0), end=end, nodes=(nodes,), users=users, accounts=accounts
    )


def _names(text: str, notes: ImportNotes) -> tuple[str, ...]:
    if text.lower() in _NOTHING:
        return ()
    names = text.split(",")
    if any(name.startswith("-") for name in names):
        notes.leave("users or accounts that a reservation excludes")
    return tuple(name for name in names if not name.startswith("-"))


def _instant(text: str, zone: tzinfo) -> float:
    if text.isdigit():  # with SLURM_TIME_FORMAT=%s
        return in_calendar(float(text))
    try:
        return datetime.fromisoformat(text).replace(tzinfo=zone).timestamp()
    except ValueError as error:
        raise ValueError(f"{text!r} is no time such as 2026-01-31T08:00:00") from error
