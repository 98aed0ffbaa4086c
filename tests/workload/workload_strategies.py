"""Hypothesis strategies for workloads, and small ones written out by hand."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd
from hypothesis import strategies as st

from bridge.workload.table import FLOAT_COLUMNS, LONGEST, SWF_COLUMNS, TIME_COLUMNS, Workload

#: Writes a text, or a value as JSON, to a file (of this name) and returns its path.
Written = Callable[..., Path]

WHOLE = st.integers(-1, 2**53)
REAL = st.floats(allow_nan=False, allow_infinity=False)
#: What a time can be: whole seconds, and any.
SECONDS = (st.integers(-1, LONGEST), st.floats(-LONGEST, LONGEST))
TEXT = st.text(alphabet="abcxyz", min_size=1, max_size=4)
LINE = st.text(st.characters(exclude_categories=["C", "Z"]) | st.just(" "), max_size=12).map(str.strip)
HEADER = st.dictionaries(
    st.sampled_from(["Version", "Computer", "Note", "Queue", "UnixStartTime"]),
    st.lists(LINE, min_size=1, max_size=3).map("\n".join),
    max_size=3,
)


@st.composite
def workloads(draw: st.DrawFn, *, runnable: bool = False, text: bool = False) -> Workload:
    """Workloads with any numbers; `runnable`: as Batsim can run them; `text`: also columns of text."""
    count = draw(st.integers(1, 6))

    def column(values: st.SearchStrategy[object]) -> list[object]:
        return draw(st.lists(values, min_size=count, max_size=count))

    jobs: dict[str, object] = {}
    for name in SWF_COLUMNS:
        real = name in FLOAT_COLUMNS and draw(st.booleans())
        kinds = SECONDS if name in TIME_COLUMNS else (WHOLE, REAL)
        jobs[name] = pd.Series(column(kinds[real]), dtype="float64" if real else "int64")
    ids: st.SearchStrategy[object] = st.integers(0, 2**40) if runnable else WHOLE
    if text and draw(st.booleans()):
        ids = st.sampled_from(["x1", "01", "1", "007", "1e5", "-0", "x y", ",", "é"])
        rest = st.lists(ids, min_size=count - 1, max_size=count - 1, unique=True)
        jobs["job_id"] = pd.Series(["a", *draw(rest)], dtype="str")
    else:
        jobs["job_id"] = draw(st.lists(ids, min_size=count, max_size=count, unique=True))
    if runnable:
        jobs["req_procs"] = pd.Series(column(st.integers(1, 2**20)), dtype="int64")
        jobs["submit"] = pd.Series(column(st.floats(0, 1e9)), dtype="float64")
        jobs["run"] = pd.Series(column(st.integers(1, 2**40)), dtype="int64")
    for name in draw(st.lists(st.sampled_from(["burst_buffer", "power", "licence"]), unique=True)):
        jobs[name] = pd.Series(column(WHOLE), dtype="int64")
    if draw(st.booleans()):
        jobs["weight"] = pd.Series(column(REAL), dtype="float64")
    if text and draw(st.booleans()):
        jobs["site"] = pd.Series(column(TEXT), dtype="str")
        jobs["code"] = pd.Series(column(st.sampled_from(["007", "1e5", "1", "NaN", "True"])), dtype="str")
    capacity = draw(
        st.dictionaries(st.sampled_from(["nodes", "burst_buffer", "power"]), st.integers(1, 2**53))
    )
    capacity = {name: capacity[name] for name in ("nodes", "burst_buffer", "power") if name in capacity}
    if runnable:
        capacity = {"nodes": 2**21, **capacity}
    return Workload("w", pd.DataFrame(jobs), capacity, draw(HEADER), source="drawn")


def record(job_id: int, submit: float, run: float, procs: int, req_time: float = -1, **more: float) -> str:
    values = (
        dict.fromkeys(SWF_COLUMNS, -1)
        | {
            "job_id": job_id,
            "submit": submit,
            "run": run,
            "procs": procs,
            "req_procs": procs,
            "req_time": req_time,
        }
        | more
    )
    return " ".join(str(value) for value in values.values())


def small(*rows: tuple[float, ...], nodes: int = 8) -> Workload:
    """Return a workload of (id, submit, run, procs, requested time) rows."""
    table = pd.DataFrame(dict.fromkeys(SWF_COLUMNS, -1), index=range(len(rows)))
    for place, name in enumerate(("job_id", "submit", "run", "procs", "req_time")):
        table[name] = [row[place] for row in rows]
    table["req_procs"] = table["procs"]
    return Workload("small", table, {"nodes": nodes}, source="small")
