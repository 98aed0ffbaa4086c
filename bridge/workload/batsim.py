"""Reads and writes JSON workloads of Batsim 4 and 5: jobs, and profiles that say what each job does.

Format: both versions' documentation, "Input workload"; what Batsim makes of it was measured on 4.2.1 and
5.0.0-rc2. Jobs of Batsim 5 have fewer fields, and profiles other names.
"""

import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from bridge.base import files
from bridge.base.errors import BridgeError
from bridge.base.jsontext import shortened
from bridge.wire.profile_names import ProfileFields, is_simulated_differently, of_workload, spread, to_file
from bridge.workload.batsim_profiles import delays
from bridge.workload.columns import complete_columns
from bridge.workload.ids import of_texts
from bridge.workload.rules import KEEP, Walltime
from bridge.workload.table import SWF_COLUMNS, Workload, tally

_Row = dict[Hashable, Any]
#: Makes the profiles of jobs (rows of a job table): each job's profile name, and name -> profile.
ProfileBuilder = Callable[[pd.DataFrame], tuple[Sequence[str], Mapping[str, ProfileFields]]]

#: Extra columns ``batsim_user``, ``batsim_queue``, … keep what is text in the file, but a number in SWF.
KEPT = "batsim_"
#: SWF columns that name something, and so may be numbered if they are text.
_NAMES = ("user", "group", "executable", "queue", "partition")
#: Batsim's own fields of a job; all others are further ones, which travel in ``extra_data`` with Batsim 5.
_FIELDS = frozenset({"id", "subtime", "res", "profile", "walltime"})
#: SWF columns that Batsim's own fields stand for.
_STANDS_FOR = frozenset({"job_id", "submit", "procs", "req_procs", "run", "req_time"})
#: What Batsim 5 calls the first workload; ids and names that hold it are taken as complete.
_WORKLOAD = "w0"


def delay_profiles(jobs: pd.DataFrame) -> tuple[list[str], dict[str, ProfileFields]]:
    """Return a delay profile per distinct run time, all positive: as logged, on any platform."""
    _refuse(jobs, jobs["run"] <= 0, "has no positive run time, and Batsim refuses such a delay")
    runs = jobs["run"].tolist()
    profiles: dict[str, ProfileFields] = {
        f"delay{r}": {"type": "delay", "delay": r} for r in sorted(set(runs))
    }
    return [f"delay{run}" for run in runs], profiles


def write_batsim(
    workload: Workload, path: str | Path, profiles: ProfileBuilder = delay_profiles, walltime: Walltime = KEEP
) -> None:
    """Write a Batsim workload; `read_batsim` gives the same table back.

    A job asks for its requested processors (else those it was given) and has its requested time as walltime,
    if that is known, unless another `walltime` is chosen; the requested time then travels as ``req_time``.
    All else that is known of a job travels as further fields under its column's name. Ids are padded with
    zeros, because Batsim submits jobs of one instant in the order of their ids as text.

    The file is compressed if the suffix says so (Batsim itself reads plain files only). Raises BridgeError:
    Batsim cannot run a job, or the file cannot be written.
    """
    _write(path, *_document(workload, profiles, walltime))


def write_batsim5(
    workload: Workload, path: str | Path, profiles: ProfileBuilder = delay_profiles, walltime: Walltime = KEEP
) -> None:
    top, jobs, profiles_by_name = _document(workload, profiles, walltime)
    for job in jobs:
        for name in (job["id"], job["profile"]):
            if _WORKLOAD in str(name):
                what = f"the name {str(name)!r} holds {_WORKLOAD!r}, which Batsim 5 takes for the workload's"
                remedy = "Give the job an id of its own, such as a number."
                raise BridgeError(what, where=f"job {job['id']}", remedy=remedy)
    _write(path, top, list(map(_with_extra_data, jobs)), _profiles(jobs, profiles_by_name))


def _document(
    workload: Workload, profiles: ProfileBuilder, walltime: Walltime
) -> tuple[dict[str, object], list[dict[str, Any]], Mapping[str, ProfileFields]]:
    jobs = workload.jobs
    res = jobs["req_procs"].where(jobs["req_procs"] > 0, jobs["procs"])
    _refuse(jobs, res <= 0, "asks for no processor")
    _refuse(jobs, jobs["submit"] < 0, "is submitted before time 0")
    ids = _ids(jobs)
    _refuse(jobs, pd.Series(ids, index=jobs.index).duplicated(), "has the id of another job")
    names, profiles_by_name = profiles(jobs)
    whole = {str(name) for name in jobs.columns if name in SWF_COLUMNS and jobs[name].dtype.kind == "i"}
    rows = zip(jobs.to_dict("records"), ids, res.tolist(), names, strict=True)
    listed = [
        _job(row, ident, size, name, profiles_by_name[name], whole, walltime)
        for row, ident, size, name in rows
    ]
    top: dict[str, object] = {"nb_res": int(workload.capacity.get("nodes", res.max()))}
    if more := {name: int(amount) for name, amount in workload.capacity.items() if name != "nodes"}:
        top["capacity"] = more
    if workload.header:
        top["header"] = workload.header
    return top, listed, profiles_by_name


def _write(
    path: str | Path,
    top: Mapping[str, object],
    jobs: list[dict[str, Any]],
    profiles: Mapping[str, ProfileFields],
) -> None:
    parts = [f"{json.dumps(key)}: {_dump(value)}" for key, value in top.items()]
    parts.append('"jobs": [\n' + ",\n".join(f"  {_dump(job)}" for job in jobs) + "\n]")
    described = ",\n".join(f"  {json.dumps(n)}: {_dump(p)}" for n, p in profiles.items())
    parts.append('"profiles": {\n' + described + "\n}")
    with files.open_write(Path(path)) as file:
        file.write(("{" + ",\n".join(parts) + "}\n").encode())


def _dump(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def _refuse(jobs: pd.DataFrame, wrong: pd.Series, what: str) -> None:
    if wrong.any():
        remedy = "Leave such records out before writing: `bridge workload convert` does so."
        raise BridgeError(f"the job {what}", where=f"job {jobs['job_id'][wrong].iloc[0]}", remedy=remedy)


def _ids(jobs: pd.DataFrame) -> list[str]:
    """Return ids as Batsim has them: texts as they are, numbers padded, so that they sort alike as text."""
    if jobs["job_id"].dtype.kind != "i":
        return [str(ident) for ident in jobs["job_id"]]
    _refuse(jobs, jobs["job_id"] < 0, "has a negative id, which sorts wrongly as text")
    width = len(str(jobs["job_id"].max()))
    return [f"{ident:0{width}d}" for ident in jobs["job_id"]]


def _job(
    row: _Row, ident: str, size: int, name: str, profile: ProfileFields, whole: set[str], walltime: Walltime
) -> dict[str, Any]:
    job: dict[str, Any] = {"id": ident, "subtime": row["submit"], "res": size, "profile": name}
    limit = walltime.of(row["req_time"])
    if limit is not None:
        job["walltime"] = limit
    if row["req_time"] > 0:
        job |= {} if limit == row["req_time"] else {"req_time": row["req_time"]}
    elif row["req_time"] != -1 or "req_time" not in whole:
        job["req_time"] = row["req_time"]
    job |= {key: row[key] for key in ("procs", "req_procs") if row[key] != size}
    if profile.get("type") != "delay" or profile.get("delay") != row["run"]:
        job["run"] = row["run"]
    for key, value in row.items():
        is_number = not (isinstance(value, float) and value != value)
        if str(key).startswith(KEPT):
            if is_number:
                job.setdefault(str(key).removeprefix(KEPT), value)
        elif key not in _STANDS_FOR and f"{KEPT}{key}" not in row and not (key in whole and value == -1):
            endless = isinstance(value, float) and math.isinf(value)  # a hold that never ends; JSON has none
            job[str(key)] = str(value) if endless else value if is_number else None
    return job


def _with_extra_data(job: Mapping[str, Any]) -> dict[str, Any]:
    own = {name: value for name, value in job.items() if name in _FIELDS}
    more = {name: value for name, value in job.items() if name not in _FIELDS}
    return own | ({"extra_data": more} if more else {})


def _profiles(
    jobs: list[dict[str, Any]], profiles_by_name: Mapping[str, ProfileFields]
) -> dict[str, ProfileFields]:
    """Return the profiles, each as Batsim 5 has it, or as it gets it right."""
    sizes = _sizes(jobs, profiles_by_name)
    profiles_in_file: dict[str, ProfileFields] = {}
    for name, profile in profiles_by_name.items():
        profile_in_file = to_file(profile)
        kind = profile.get("type")
        if profile_in_file is None or kind == "data_staging":
            why = "dies of a profile" if profile_in_file else "has no profile"
            what = f"Batsim 5 (5.0.0-rc2) {why} of type {kind!r}"
            raise BridgeError(what, where=f"profile {name!r}", remedy="Use another profile, or Batsim 4.")
        if is_simulated_differently(profile):
            if len(sizes[name]) > 1:
                what = "reads and writes different amounts, which Batsim 5.0.0-rc2 confuses, and is used by "
                what += f"jobs of {', '.join(map(str, sorted(sizes[name])))} hosts"
                remedy = "Give jobs of different sizes profiles of their own."
                raise BridgeError(what, where=f"profile {name!r}", remedy=remedy)
            profile_in_file = spread(profile, *sizes[name] or {1})
        profiles_in_file[name] = profile_in_file
    return profiles_in_file


def _sizes(jobs: list[dict[str, Any]], profiles_by_name: Mapping[str, ProfileFields]) -> dict[str, set[int]]:
    """Return how many hosts the jobs have that use a profile, by itself or as a part."""
    sizes_by_profile: dict[str, set[int]] = defaultdict(set)
    todo = list({(str(job["profile"]), int(job["res"])) for job in jobs})
    while todo:
        name, size = todo.pop()
        if size in sizes_by_profile[name]:
            continue
        sizes_by_profile[name].add(size)
        todo += [
            (str(part), size)
            for part in profiles_by_name.get(name, {}).get("seq", ())
            if part in profiles_by_name
        ]
    return sizes_by_profile


def read_batsim(path: str | Path) -> Workload:
    """Read a Batsim workload: run times come from delay profiles, else from a job's field ``run``, else from
    profiles that are composed of delays.

    The job's other fields become columns under their names. Ids are the file's own, texts where not all are
    whole numbers. Users, groups, executables, queues and partitions that are text are numbered from 1, and
    kept in columns ``batsim_user``, … Jobs without a known run time have run -1. Raises BridgeError: the file
    is missing, damaged or no Batsim workload.
    """
    path = Path(path)
    content = _load(path)
    jobs, profiles = content["jobs"], content["profiles"]
    composed = delays(profiles)
    rows = [_row(job, n, profiles, composed, path) for n, job in enumerate(jobs)]
    if not rows:
        raise BridgeError("the workload has no job", where=str(path), remedy="Check what wrote it.")
    names = dict.fromkeys(name for row in rows for name in row)
    capacity = _capacity(content, path)
    # a job without the field asks for nothing of a resource, as in the decision process
    missing = dict.fromkeys(SWF_COLUMNS, -1) | dict.fromkeys(capacity, 0)
    columns: dict[str, Any] = {name: [row.get(name, missing.get(name)) for row in rows] for name in names}
    _once(columns["job_id"], path)
    columns["job_id"] = of_texts(columns["job_id"], padded=True)
    for name in _NAMES:
        if any(isinstance(value, str) for value in columns.get(name, ())):
            words = [None if value == -1 else str(value) for value in columns[name]]
            codes, _ = pd.factorize(pd.Series(words))
            columns[name], columns[f"{KEPT}{name}"] = [int(c) + 1 if c >= 0 else -1 for c in codes], words
    table, repaired = complete_columns(
        pd.DataFrame(columns), lambda n: f"{path}, job {shortened(str(jobs[n]['id']))}", str(path)
    )
    unknown = tally("noted", "run time unknown: the profile is no delay", table["job_id"][table["run"] < 0])
    header = {str(label): str(text) for label, text in content["header"].items()}
    return Workload.of_file(path, table, capacity, header, {**repaired, **unknown})


#: Files of either version are read alike.
read_batsim5 = read_batsim


def _load(path: Path) -> dict[str, Any]:
    content = files.read_json(path)
    kinds = {"jobs": list, "profiles": dict, "header": dict}
    document = {"header": {}, **content} if isinstance(content, dict) else {}
    if not all(isinstance(document.get(name), kind) for name, kind in kinds.items()):
        what = "is no Batsim workload: it needs a list `jobs` and an object `profiles`"
        raise BridgeError(what, where=str(path), remedy="Check that this is the file you mean.")
    return of_workload(document)


def _capacity(content: dict[str, Any], path: Path) -> dict[str, int]:
    try:
        nodes = {"nodes": content["nb_res"]} if "nb_res" in content else {}
        stated = nodes | dict(content.get("capacity", {}).items())
        if any(int(amount) != amount for amount in stated.values()):
            raise ValueError
        return {str(name): int(amount) for name, amount in stated.items()}
    except (TypeError, ValueError, AttributeError, OverflowError):
        what = "`nb_res` or `capacity` is no whole number"
        raise BridgeError(what, where=str(path), remedy="Mend the file.") from None


def _row(
    job: object, n: int, profiles: dict[str, Any], composed: Mapping[str, float], path: Path
) -> dict[str, Any]:
    """Return one job's fields under the names of its columns."""
    place = f"{path}, job number {n + 1}"
    if not isinstance(job, dict):
        raise BridgeError("is no object", where=place, remedy="Mend the file.")
    place = f"{path}, job {shortened(str(job.get('id', f'number {n + 1}')))}"
    for name in ("id", "subtime", "res", "profile"):
        if name not in job:
            raise BridgeError(f"the job has no field `{name}`", where=place, remedy="Mend the file.")
    profile = profiles.get(job["profile"]) if isinstance(job["profile"], str) else None
    if not isinstance(profile, dict):
        what = f"its profile {shortened(str(job['profile']))!r} is not defined"
        raise BridgeError(what, where=place, remedy="Add it under `profiles`.")
    row = {name: value for name, value in job.items() if name not in _FIELDS}
    row |= {"job_id": str(job["id"]), "submit": job["subtime"]}
    row |= {name: job.get(name, job["res"]) for name in ("procs", "req_procs")}
    row["req_time"] = job.get("req_time", job.get("walltime", -1))
    stated = composed.get(job["profile"], -1)
    row["run"] = profile.get("delay", -1) if profile.get("type") == "delay" else job.get("run", stated)
    return row


def _once(ids: list[str], path: Path) -> None:
    if len(set(ids)) < len(ids):
        twice = next(ident for ident, count in Counter(ids).items() if count > 1)
        where = f"{path}, job {shortened(twice)}"
        what = "two jobs have this id, and Batsim refuses such a workload"
        raise BridgeError(what, where=where, remedy="Give every job an id of its own.")
