"""Groups of jobs, by what the log says of them, for each of which a replay's distance is told."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd

from bridge.base.arrays import Floats, Ints
from bridge.judge.metrics import size_class, size_label

#: Columns that tell jobs apart, by what they are called here: the first that the log has.
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "partition": ("partition_name", "partition"),
    "qos": ("qos_name", "qos"),
    "queue": ("queue",),
}
#: More kinds than this are no groups.
MOST = 60


def groups_of(
    table: pd.DataFrame, header: Mapping[str, str], submit: Floats, nodes: Ints
) -> Iterator[tuple[str, "dict[str, Ints]"]]:
    """Yield kinds of groups, and of each kind the places of its jobs by name.

    `table`: the log's records of the jobs, in their order; `submit`: [n] s on the log's own clock, whose zero
    the header may tell (``UnixStartTime``); `nodes`: [n].
    """
    for kind, names in COLUMNS.items():
        column = next((table[name] for name in names if name in table and _tells_apart(table[name])), None)
        if column is not None:
            codes, values = pd.factorize(column, sort=True)
            yield kind, {str(v): np.flatnonzero(codes == k) for k, v in enumerate(values)}
    sizes = size_class(nodes)
    yield "size", {size_label(int(k)): np.flatnonzero(sizes == k) for k in np.unique(sizes)}
    hours = hour_of_week(header, submit)
    yield "hour_of_week", {str(int(h)): np.flatnonzero(hours == h) for h in np.unique(hours)}


def _tells_apart(column: pd.Series) -> bool:
    kinds = column[column != -1].nunique() if column.dtype.kind in "iuf" else column.nunique()
    return 2 <= int(kinds) <= MOST


def hour_of_week(header: Mapping[str, str], submit: Floats) -> Ints:
    """Return the hour of the week, 0 = Monday from midnight on, of times [n] on a log's clock.

    In the log's time zone where its header states one (``TimeZoneString``), else in UTC; a log that does not
    say when it began is taken to begin on a Monday at midnight.
    """
    try:
        since = int(header.get("UnixStartTime", "").split()[0])
    except (ValueError, IndexError):
        hours: Ints = (submit // 3600).astype(np.int64) % 168
        return hours
    when = pd.DatetimeIndex(pd.to_datetime(since + submit, unit="s", utc=True))
    words = header.get("TimeZoneString", "").split()
    with suppress(KeyError, ValueError, OSError):  # no such zone on this machine: UTC
        when = when.tz_convert(ZoneInfo(words[0])) if words else when
    return np.asarray(when.day_of_week * 24 + when.hour, np.int64)
