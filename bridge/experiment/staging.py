"""What jobs with a burst-buffer request move before, during and after their work: composed profiles.

| part | moves | Batsim's profile |
|---|---|---|
| stage-in | file system → burst buffer | `data_staging` |
| checkpoint | nodes → burst buffer | `parallel_homogeneous_pfs` on the burst buffer |
| drain | burst buffer → file system | `data_staging` |
| stage-out | burst buffer → file system | `data_staging` |

One part follows the other, and the work between them is that of any profile kind, so that a job alone takes
its logged run time and its transfers' (see `bridge.platform.timing`). It holds nodes and request throughout.

Each transfer is striped equally over all burst-buffer hosts. Batsim 4 has no transfer between more than two
storage hosts, so that stripes follow one another too: a transfer gets the bandwidth of one host. Nor has it
a background: a job's nodes wait while it stages or drains.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bridge.errors import BridgeError
from bridge.experiment.buffers import RESOURCE, hosts, requests
from bridge.experiment.profiles import file_system
from bridge.experiment.spec import Staging
from bridge.platform.model import Platform
from bridge.workload.batsim import Profile, ProfileBuilder

if TYPE_CHECKING:
    import pandas as pd


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
