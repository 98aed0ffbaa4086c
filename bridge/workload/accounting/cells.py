"""From the named cells of a row, as `sacct` and jobcomp write them, to one life of a job."""

from collections.abc import Mapping
from datetime import tzinfo

from bridge.workload.accounting import values
from bridge.workload.accounting.lives import STATES, Life

#: Column of `sacct`, in small letters -> what it is called among a life's words.
WORDS = {
    "user": "user",
    "uid": "user",
    "account": "account",
    "partition": "partition",
    "qos": "qos",
    "jobname": "name",
    "exitcode": "exit_code",
    "reason": "reason",
    "cluster": "cluster",
    "workdir": "directory",
    "submitline": "command",
}
#: Columns without which nothing can be said of a job.
NEEDED = ("jobid", "state", "submit", "start")
#: Columns that users fill with any text.
FREE = frozenset({"jobname", "comment", "admincomment", "systemcomment", "submitline", "workdir", "wckey"})


def life(cells: Mapping[str, str], zone: tzinfo) -> Life:
    """Return the life that a row tells of; ValueError: a cell is not what its column holds.

    `cells`: column of `sacct`, in small letters -> text; any but `NEEDED` may be missing. `zone`: of dates.
    """
    state = STATES.fullmatch(cells["state"].rstrip("+"))
    if not state:
        raise ValueError(f"{cells['state'][:40]!r} is no state of a job")
    label = cells["jobid"]
    submit = values.instant(cells["submit"], zone)
    if submit is None:
        raise ValueError("it was never submitted")
    return Life(
        label=label,
        number=_number(cells.get("jobidraw") or label),
        state=state[1],
        submit=submit,
        eligible=values.instant(cells.get("eligible", ""), zone),
        start=values.instant(cells["start"], zone),
        end=values.instant(cells.get("end", ""), zone),
        elapsed=_elapsed(cells),
        suspended=values.duration(cells["suspended"]) if cells.get("suspended") else None,
        limit=_limit(cells),
        requested=_requested(cells),
        allocated=_allocated(cells),
        words={WORDS[name]: text for name, text in cells.items() if name in WORDS and text},
    )


def _number(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 18):
        # A task of an array, or a component, of which Slurm's own number is not told.
        raise ValueError(f"{text[:40]!r} is not the number of one job: have JobIDRaw listed, too")
    return int(text)


def _elapsed(cells: Mapping[str, str]) -> float | None:
    text = cells.get("elapsedraw") or cells.get("elapsed") or ""
    return values.duration(text) if text else None


def _limit(cells: Mapping[str, str]) -> float | None:
    if cells.get("timelimitraw"):
        return values.limit(cells["timelimitraw"], minutes=True)
    return values.limit(cells.get("timelimit", ""), minutes=True)


def _whole(cells: Mapping[str, str], *names: str) -> int:
    """Return the first of some cells that is filled, as a whole number; 0 if none is."""
    text = next((cells[name] for name in names if cells.get(name)), "0")
    if not (text.isascii() and text.isdecimal() and len(text) <= 18):
        raise ValueError(f"{text[:40]!r} is no whole number")
    return int(text)


def _requested(cells: Mapping[str, str]) -> dict[str, int]:
    found = values.resources(cells.get("reqtres", ""))
    plain = {"nodes": _whole(cells, "reqnodes", "nnodes"), "cores": _whole(cells, "reqcpus", "ncpus")}
    found = {name: number for name, number in plain.items() if number} | found
    if "main_memory" not in found and cells.get("reqmem"):
        found["main_memory"] = values.amount(cells["reqmem"], found.get("nodes", 1), found.get("cores", 1))
    return found


def _allocated(cells: Mapping[str, str]) -> dict[str, int]:
    found = values.resources(cells.get("alloctres", ""))
    plain = {"nodes": _whole(cells, "allocnodes", "nnodes"), "cores": _whole(cells, "alloccpus", "ncpus")}
    named = cells.get("nodelist", "")
    if not plain["nodes"] and named and named != "None assigned":
        plain["nodes"] = sum(1 for _ in values.node_names(named))
    return {name: number for name, number in plain.items() if number} | found
