"""What of the nodes is in use, as the select plugin counts it; copies play the future."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bridge.base.arrays import Ints
from bridge.scheduler.slurm.choice_kernels import FREE_CPUS, FREE_GRES, FREE_MEMORY, JOBS

if TYPE_CHECKING:
    from bridge.scheduler.slurm.jobs import SlurmJob
    from bridge.scheduler.slurm.site import Site


@dataclass(slots=True)
class SlurmUsage:
    """`book` [N, FREE_GRES + G]: free CPUs (of whole cores), free MiB, jobs, and free generic resources."""

    book: Ints

    @classmethod
    def of_site(cls, site: "Site") -> "SlurmUsage":
        rows = [
            (node.cpus, node.memory, 0, *(node.gres.get(kind, 0) for kind in site.gres))
            for node in site.nodes
        ]
        return cls(np.array(rows, np.int64))

    @property
    def not_full(self) -> int:
        """Nodes with a free CPU."""
        free = np.packbits(self.book[:, FREE_CPUS] > 0, bitorder="little")
        return int.from_bytes(free.tobytes(), "little")

    def copy(self) -> "SlurmUsage":
        """Return a copy."""
        return SlurmUsage(self.book.copy())

    def add(self, job: "SlurmJob", *, without_memory: bool = False) -> None:
        """Give a job what it was allocated; `without_memory`: that it kept."""
        self._change(job, 1, without_memory)

    def remove(self, job: "SlurmJob", *, keep_memory: bool = False) -> None:
        """Take it back; `keep_memory`: of a job that is suspended in its place."""
        self._change(job, -1, keep_memory)

    def _change(self, job: "SlurmJob", sign: int, keep_memory: bool) -> None:
        book, rows = self.book, job.rows
        nodes = rows[:, 0]
        book[nodes, FREE_CPUS] -= sign * rows[:, 1]
        if not keep_memory:
            book[nodes, FREE_MEMORY] -= sign * rows[:, 2]
        book[nodes, JOBS] += sign
        if job.gres:
            book[nodes, FREE_GRES:] -= sign * job.gres_row
