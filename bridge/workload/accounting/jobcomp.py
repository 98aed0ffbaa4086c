"""The file of jobcomp/filetxt: one line a job at its end, ``JobId=16 UserId=alice(1001) … ExitCode=0:0``.

A job's name may hold anything, also what looks like another field; so fields that Slurm writes before the
name are taken from the left, and all others from the right.
"""

import re
from collections.abc import Iterator
from datetime import UTC, tzinfo

from bridge.base.errors import BridgeError
from bridge.workload.accounting.lives import JobLife, RecordCounter, life

#: Field of jobcomp -> column of `sacct`, in small letters.
_COLUMNS = {
    "JobState": "state",
    "Partition": "partition",
    "TimeLimit": "timelimitraw",
    "StartTime": "start",
    "EndTime": "end",
    "NodeList": "nodelist",
    "NodeCnt": "nnodes",
    "ProcCnt": "ncpus",
    "Tres": "alloctres",
    "Account": "account",
    "QOS": "qos",
    "Cluster": "cluster",
    "SubmitTime": "submit",
    "EligibleTime": "eligible",
    "ExitCode": "exitcode",
    "WorkDir": "workdir",
    "ReservationName": "reservation",
}
#: Fields that say nothing of when and where a job runs.
_UNREAD_COLUMNS = frozenset(
    {"WcKey", "DerivedExitCode", "ArrayJobId", "ArrayTaskId", "HetJobId", "HetJobOffset"}
)
_FIELD = re.compile(r"(?:^| )([A-Z]\w*)=")
_HEAD = re.compile(
    r"JobId=(?P<id>\d+) UserId=(?P<user>[^ (]*)\((?P<uid>\d+)\) GroupId=\S* Name=(?P<rest>.*)", re.DOTALL
)


def read_jobcomp(text: str, where: str, counted: RecordCounter, zone: tzinfo = UTC) -> Iterator[JobLife]:
    """Yield the lives of jobs of a file of jobcomp/filetxt; no line like one of it: BridgeError at `where`.

    `counted` takes lines that are no record, by their number.
    """
    begins = [n.start() for n in re.finditer(r"^JobId=\d+ UserId=", text, re.MULTILINE)]
    if not begins:
        remedy = "Give the file that JobCompLoc names, with JobCompType=jobcomp/filetxt."
        raise BridgeError("no line begins with JobId=… UserId=…", where=where, remedy=remedy)
    if text[: begins[0]].strip():
        counted.drop("no record (examples are lines)", 1)
    line = 1 + text.count("\n", 0, begins[0])
    for begin, end in zip(begins, [*begins[1:], len(text)], strict=True):
        try:
            one, unread = _life(text[begin:end].rstrip("\r\n "), zone)
        except (ValueError, KeyError, OverflowError):
            counted.drop("no record (examples are lines)", line)
        else:
            if unread:
                counted.ignore(f"fields that are not read: {', '.join(sorted(unread))}", one.number)
            yield one
        line += text.count("\n", begin, end)


def _life(record: str, zone: tzinfo) -> tuple[JobLife, set[str]]:
    """Return the life that a record tells of, and the names of fields with a text that nobody reads."""
    head = _HEAD.fullmatch(record)
    if not head:
        raise ValueError("it has no JobId, UserId, GroupId and Name")
    rest = f" {head['rest']}"
    fields = list(_FIELD.finditer(rest))
    last = {matches[1]: (n, matches) for n, matches in enumerate(fields)}
    if missing := {"JobState", "SubmitTime", "StartTime"} - last.keys():
        raise ValueError(f"it has no {', '.join(sorted(missing))}")
    cells = {"jobid": head["id"], "user": head["user"] or head["uid"]}
    for name, column in _COLUMNS.items():
        if name in last:
            n, matches = last[name]
            stop = fields[n + 1].start() if n + 1 < len(fields) else len(rest)
            cells[column] = rest[matches.end() : stop]
    cells["jobname"] = rest[1 : last["JobState"][1].start()]
    if "ArrayJobId" in last and "ArrayTaskId" in last:
        tail = rest[last["ArrayJobId"][1].end() :]
        if found_task := re.match(r"(\d+) ArrayTaskId=(\d+)(?: |$)", tail):
            cells |= {"jobid": f"{found_task[1]}_{found_task[2]}", "jobidraw": head["id"]}
    if cells.get("nodelist") in ("", "(null)", "None"):
        cells |= {"nodelist": "", "start": "Unknown"}  # it never ran: its start is its end
    elif cells["state"] == "PENDING":
        cells["state"] = "REQUEUED"
    behind = (name for name, (n, _) in last.items() if n >= last["JobState"][0])
    return life(cells, zone), {
        name for name in behind if name not in _COLUMNS and name not in _UNREAD_COLUMNS
    }
