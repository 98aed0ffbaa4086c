"""The burst buffer of a machine: its hosts, and whether a workload's capacity and requests fit on them.

A request is striped equally over all hosts. As they are equally large, what fits in their sum fits on each.
"""

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from bridge.errors import BridgeError
from bridge.platform.capacities import burst_buffers
from bridge.platform.model import Platform
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
