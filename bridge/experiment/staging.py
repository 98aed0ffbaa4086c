"""The burst buffer: whether requests fit on its hosts, what jobs move before, during and after their work.

| part | moves | Batsim's profile |
|---|---|---|
| stage-in | file system → burst buffer | `data_staging` |
| checkpoint | nodes → burst buffer | `parallel_homogeneous_pfs` on the burst buffer |
| drain | burst buffer → file system | `data_staging` |
| stage-out | burst buffer → file system | `data_staging` |

One part follows the other, and the work between them is that of any profile kind, so that a job alone takes
its logged run time and its transfers' (see `bridge.platform.routes`). It holds nodes and request throughout.

Requests and transfers are striped equally over all burst-buffer hosts. As they are equally large, what fits
in their sum fits on each. Batsim 4 has no transfer between more than two storage hosts, so that stripes
follow one another too: a transfer gets the bandwidth of one host. Nor has it a background: a job's nodes wait
while it stages or drains.
"""

import numpy as np
import numpy.typing as npt
import pandas as pd

from bridge.base.errors import BridgeError
from bridge.experiment.job_profiles import file_system
from bridge.platform.capacities import burst_buffers
from bridge.platform.model import Platform
from bridge.wire.profile_names import ProfileFields
from bridge.workload.batsim import ProfileBuilder
from bridge.workload.table import Workload

#: The resource, and the column of a workload that holds the requests (bytes).
RESOURCE = "burst_buffer"
#: More bytes than this no machine has; what asks for infinitely many is refused by its selection.
_MOST = 2**62


def requests(jobs: pd.DataFrame) -> npt.NDArray[np.int64]:
    """Return what each job asks for: [jobs] bytes, 0 where it is nothing or no number."""
    if RESOURCE not in jobs.columns or jobs[RESOURCE].dtype.kind not in "iuf":
        return np.zeros(len(jobs), np.int64)
    return np.asarray(np.clip(np.nan_to_num(jobs[RESOURCE].to_numpy()), 0, _MOST), np.int64)


def hosts(platform: Platform) -> dict[str, int]:
    """Return the burst-buffer hosts in the order of their names, and their equal capacities in bytes."""
    buffers = burst_buffers(platform)
    if not buffers:
        remedy = 'Give a storage host the properties storage_kind = "burst_buffer" and capacity, or take '
        remedy += f"the column {RESOURCE} out of the workload."
        raise BridgeError("the platform has no burst-buffer host", where=platform.path, remedy=remedy)
    if len(set(buffers.values())) > 1:
        sizes = ", ".join(f"{name} {size:,}" for name, size in buffers.items())
        what = f"its burst-buffer hosts are not equally large ({sizes} bytes)"
        remedy = "Give them the same capacity: requests are striped equally over them."
        raise BridgeError(what, where=platform.path, remedy=remedy)
    return buffers


def require_room(records: Workload, platform: Platform) -> None:
    """Refuse a workload whose burst buffer the platform does not have; fine if no job asks for any."""
    requested = requests(records.jobs)
    if not requested.any():
        return
    there, where = sum(hosts(platform).values()), records.where
    stated, name = records.capacity.get(RESOURCE), platform.root.name
    remedy = "Name a platform with a larger burst buffer, or "
    if stated is None and requested.max() > there:
        where += f", job {records.jobs['job_id'].iloc[int(requested.argmax())]}"
        what = f"it asks for {requested.max():,} bytes of burst buffer, the platform {name} has {there:,}"
        raise BridgeError(what, where=where, remedy=f"{remedy}leave such jobs out.")
    if stated is not None and stated > there:
        what = f"its machine has {stated:,} bytes of burst buffer, the platform {name} {there:,}"
        raise BridgeError(what, where=where, remedy=f"{remedy}state a smaller capacity in the workload.")


def add_staging(
    work: ProfileBuilder,
    platform: Platform,
    *,
    stage_in: float = 0.0,
    stage_out: float = 0.0,
    checkpoints: int = 0,
    drain: float = 0.0,
) -> ProfileBuilder:
    """Return what makes the profiles of jobs that stage; those without a request only do `work`.

    How much moves: see `bridge.experiment.spec.Detailed`. BridgeError: the platform lacks a file system or
    burst-buffer hosts; later, no job can ask for burst buffer.
    """
    buffers, pfs = tuple(hosts(platform)), file_system(platform).name
    if pfs in buffers:
        what = f"its only storage host {pfs!r} is the burst buffer: there is no file system to stage from"
        remedy = 'Add a storage host of storage_kind = "pfs", or use the fidelity alloc_only.'
        raise BridgeError(what, where=platform.path, remedy=remedy)

    def moved(name: str, total: float, *, inwards: bool) -> dict[str, ProfileFields]:
        """Return the stripes of so many bytes between file system and burst buffer, one after the other."""
        profiles: dict[str, ProfileFields] = {}
        for buffer in buffers if total > 0 else ():
            source, target = (pfs, buffer) if inwards else (buffer, pfs)
            profile = {"type": "data_staging", "nb_bytes": total / len(buffers), "from": source, "to": target}
            profiles[f"{name}_{buffer}"] = profile
        return profiles

    def written(name: str, total: float, nodes: int) -> dict[str, ProfileFields]:
        size = {"bytes_to_read": 0, "bytes_to_write": total / len(buffers) / nodes}
        profile = {"type": "parallel_homogeneous_pfs", **size}
        return {f"{name}_{buffer}": {**profile, "storage": buffer} for buffer in buffers if total > 0}

    def whole(name: str, segment: str, size: int, request: int) -> dict[str, ProfileFields]:
        """Return the profile of a job on `size` nodes that asks for so many bytes, and its transfers'."""
        first = moved(f"in_{request}", stage_in * request, inwards=True)
        last = moved(f"out_{request}", stage_out * request, inwards=False)
        saved: dict[str, ProfileFields] = {}
        if checkpoints:
            saved |= written(f"write_{size}_{request}", drain * request, size)
            saved |= moved(f"drain_{request}", drain * request, inwards=False)
        again = [segment, *saved] * checkpoints
        composed = {"type": "composed", "repeat": 1, "seq": [*first, *again, segment, *last]}
        return first | saved | last | {name: composed}

    def profiles(jobs: pd.DataFrame) -> tuple[list[str], dict[str, ProfileFields]]:
        if RESOURCE not in jobs.columns:
            what = f"the workload has no column {RESOURCE}: no job stages anything"
            remedy = "Take a workload with requests (see `bridge workload generate mrsch --help`), or the "
            remedy += "fidelity alloc_only."
            raise BridgeError(what, where="fidelity io_aware", remedy=remedy)
        requested = requests(jobs)
        if checkpoints:
            jobs = jobs.assign(run=jobs["run"] / np.where(requested, checkpoints + 1, 1))
        names, plain = work(jobs)
        profiles = dict(plain)
        res = jobs["req_procs"].where(jobs["req_procs"] > 0, jobs["procs"])
        chosen = []
        for segment, size, request in zip(names, res.tolist(), requested.tolist(), strict=True):
            name = f"{segment}_{size}_staged_{request}" if request else segment
            if name not in profiles:
                profiles |= whole(name, segment, size, request)
            chosen.append(name)
        return chosen, profiles

    return profiles
