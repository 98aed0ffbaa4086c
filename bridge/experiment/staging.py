"""The burst buffer: whether requests fit on its hosts, what jobs move before, during and after their work.

| part | moves | Batsim's profile |
|---|---|---|
| stage-in | file system → burst buffer | `data_staging` |
| checkpoint | nodes → burst buffer | `parallel_homogeneous_pfs` on the burst buffer |
| drain | burst buffer → file system | `data_staging` |
| stage-out | burst buffer → file system | `data_staging` |

One part follows the other, and the work between them is that of any profile kind, so that a job alone takes
its logged run time and its transfers' (see `bridge.platform.timing`). It holds nodes and request throughout.

Requests and transfers are striped equally over all burst-buffer hosts. As they are equally large, what fits
in their sum fits on each. Batsim 4 has no transfer between more than two
storage hosts, so that stripes follow one another too: a transfer gets the bandwidth of one host. Nor has it
a background: a job's nodes wait while it stages or drains.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from bridge.errors import BridgeError
from bridge.experiment.profiles import file_system
from bridge.experiment.spec import Staging
from bridge.platform.capacities import burst_buffers
from bridge.platform.model import Platform
from bridge.workload.batsim import Profile, ProfileBuilder
from bridge.workload.table import Workload

if TYPE_CHECKING:
    import pandas as pd

#: The resource, and the column of a workload that holds the requests (bytes).
RESOURCE = "burst_buffer"
#: More bytes than this no machine has; what asks for infinitely many is refused by its selection.
_MOST = 2**62


def requests(jobs: "pd.DataFrame") -> npt.NDArray[np.int64]:
    """Return what each job asks for: [jobs] bytes, 0 where it is nothing or no number."""
    if RESOURCE not in jobs.columns:
        return np.zeros(len(jobs), np.int64)
    column = jobs[RESOURCE]
    if column.dtype.kind not in "iuf":
        return np.zeros(len(jobs), np.int64)
    return np.asarray(np.clip(np.nan_to_num(column.to_numpy()), 0, _MOST), np.int64)


def hosts(platform: Platform) -> dict[str, int]:
    """Return the burst-buffer hosts in the order of their names, and their equal capacities in bytes.

    Raises:
        BridgeError: there is none, or they are not equally large.
    """
    found = burst_buffers(platform)
    if not found:
        raise BridgeError(
            "the platform has no burst-buffer host",
            where=platform.path,
            remedy='Give a storage host the properties storage_kind = "burst_buffer" and capacity, or take '
            f"the column {RESOURCE} out of the workload.",
        )
    if len(set(found.values())) > 1:
        sizes = ", ".join(f"{name} {size:,}" for name, size in found.items())
        raise BridgeError(
            f"its burst-buffer hosts are not equally large ({sizes} bytes)",
            where=platform.path,
            remedy="Give them the same capacity: requests are striped equally over them.",
        )
    return found


def require_room(records: Workload, platform: Platform) -> None:
    """Refuse a workload whose burst buffer the platform does not have; fine if no job asks for any.

    Raises:
        BridgeError: no burst-buffer host, unequal ones, or the workload's capacity is larger than theirs
            together, or it states none and a job asks for more than that.
    """
    asked = requests(records.jobs)
    if not asked.any():
        return
    there, source = sum(hosts(platform).values()), records.where
    stated = records.capacity.get(RESOURCE)
    if stated is None:
        if asked.max() > there:
            job = records.jobs["job_id"].iloc[int(asked.argmax())]
            raise BridgeError(
                f"it asks for {asked.max():,} bytes of burst buffer, the platform {platform.root.name} has "
                f"{there:,}",
                where=f"{source}, job {job}",
                remedy="Name a platform with a larger burst buffer, or leave such jobs out.",
            )
    elif stated > there:
        raise BridgeError(
            f"its machine has {stated:,} bytes of burst buffer, the platform {platform.root.name} {there:,}",
            where=source,
            remedy="Name a platform with a larger burst buffer, or state a smaller capacity in the workload.",
        )


def staged(work: ProfileBuilder, staging: Staging, platform: Platform) -> ProfileBuilder:
    """Return what makes the profiles of jobs that stage; those without a request only work.

    Args:
        work: makes what jobs do besides.
        staging: how much they move.
        platform: has a file system and burst-buffer hosts.

    Raises:
        BridgeError: the platform lacks one of them.
    """
    return _Stager(work, staging, tuple(hosts(platform)), _other_file_system(platform)).profiles


def _other_file_system(platform: Platform) -> str:
    name = file_system(platform).name
    if name in hosts(platform):
        raise BridgeError(
            f"its only storage host {name!r} is the burst buffer: there is no file system to stage from",
            where=platform.path,
            remedy='Add a storage host of storage_kind = "pfs", or use the fidelity alloc_only.',
        )
    return name


@dataclass(frozen=True)
class _Stager:
    """Puts transfers around work."""

    work: ProfileBuilder
    staging: Staging
    buffers: tuple[str, ...]
    file_system: str

    def profiles(self, jobs: "pd.DataFrame") -> tuple[list[str], dict[str, Profile]]:
        """Return each job's profile name, and the profiles (see `bridge.workload.batsim`).

        Raises:
            BridgeError: no job can ask for burst buffer, or a job's work cannot be made.
        """
        if RESOURCE not in jobs.columns:
            raise BridgeError(
                f"the workload has no column {RESOURCE}: no job stages anything",
                where="fidelity io_aware",
                remedy="Take a workload with requests (see `bridge workload generate mrsch --help`), or the "
                "fidelity alloc_only.",
            )
        asked = requests(jobs)
        if self.staging.checkpoints:
            jobs = jobs.assign(run=jobs["run"] / np.where(asked, self.staging.checkpoints + 1, 1))
        names, work = self.work(jobs)
        made = dict(work)
        res = jobs["req_procs"].where(jobs["req_procs"] > 0, jobs["procs"])
        chosen = []
        for segment, size, request in zip(names, res.tolist(), asked.tolist(), strict=True):
            name = segment
            if request:
                name = f"{segment}_{size}_staged_{request}"
                if name not in made:
                    made |= self._staged(name, segment, size, request)
            chosen.append(name)
        return chosen, made

    def _staged(self, name: str, segment: str, size: int, request: int) -> dict[str, Profile]:
        """Return the profile of a job on `size` nodes that asks for so many bytes, and its transfers'."""
        staging = self.staging
        first = self._moved(f"in_{request}", staging.stage_in * request, inwards=True)
        last = self._moved(f"out_{request}", staging.stage_out * request, inwards=False)
        saved: dict[str, Profile] = {}
        if staging.checkpoints:
            saved |= self._written(f"write_{size}_{request}", staging.drain * request, size)
            saved |= self._moved(f"drain_{request}", staging.drain * request, inwards=False)
        again = [segment, *saved] * staging.checkpoints
        whole = {"type": "composed", "repeat": 1, "seq": [*first, *again, segment, *last]}
        return first | saved | last | {name: whole}

    def _moved(self, name: str, total: float, *, inwards: bool) -> dict[str, Profile]:
        """Return the stripes of so many bytes between file system and burst buffer, one after the other."""
        stripes: dict[str, Profile] = {}
        for buffer in self.buffers if total > 0 else ():
            source, target = (self.file_system, buffer) if inwards else (buffer, self.file_system)
            size = total / len(self.buffers)
            stripes[f"{name}_{buffer}"] = {
                "type": "data_staging",
                "nb_bytes": size,
                "from": source,
                "to": target,
            }
        return stripes

    def _written(self, name: str, total: float, nodes: int) -> dict[str, Profile]:
        """Return the stripes of so many bytes that all nodes write to the burst buffer."""
        size = total / len(self.buffers) / nodes
        return {
            f"{name}_{buffer}": {
                "type": "parallel_homogeneous_pfs",
                "bytes_to_read": 0,
                "bytes_to_write": size,
                "storage": buffer,
            }
            for buffer in self.buffers
            if size > 0
        }
