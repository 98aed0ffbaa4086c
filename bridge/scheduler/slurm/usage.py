"""What of the nodes is in use, as the select plugin counts it; copies play the future."""

from dataclasses import dataclass

from bridge.scheduler.slurm.jobs import SlurmJob
from bridge.scheduler.slurm.site import Site


@dataclass(slots=True)
class SlurmUsage:
    """By node: free CPUs (of whole cores), free memory in MiB, jobs, and free generic resources.

    Attributes:
        idle: nodes without jobs.
        full: nodes without a free CPU.
    """

    cpus: list[int]
    memory: list[int]
    jobs: list[int]
    gres: list[dict[str, int]]
    idle: int
    full: int = 0

    @classmethod
    def of_site(cls, site: Site) -> "SlurmUsage":
        return cls(
            [node.cpus for node in site.nodes],
            [node.memory for node in site.nodes],
            [0] * len(site.nodes),
            [node.gres for node in site.nodes],
            site.all_nodes,
        )

    def copy(self) -> "SlurmUsage":
        """Return a copy; tables of generic resources are replaced, never changed."""
        return SlurmUsage(self.cpus[:], self.memory[:], self.jobs[:], self.gres[:], self.idle, self.full)

    def add(self, job: SlurmJob) -> None:
        """Give a job what it was allocated."""
        self._change(job, 1)

    def remove(self, job: SlurmJob, *, keep_memory: bool = False) -> None:
        """Take it back; `keep_memory`: of a job that is suspended in its place."""
        self._change(job, -1, keep_memory=keep_memory)

    def _change(self, job: SlurmJob, sign: int, *, keep_memory: bool = False) -> None:
        for n, cpus in job.alloc.items():
            bit = 1 << n
            self.cpus[n] -= sign * cpus
            self.jobs[n] += sign
            if not keep_memory:
                self.memory[n] -= sign * job.memory.get(n, 0)
            if self.cpus[n] > 0:
                self.full &= ~bit
            else:
                self.full |= bit
            if self.jobs[n]:
                self.idle &= ~bit
            else:
                self.idle |= bit
            if job.gres:
                free = dict(self.gres[n])
                for kind, count in job.gres.items():
                    free[kind] = free.get(kind, 0) - sign * count
                    if kind.startswith("gpu:"):
                        free["gpu"] = free.get("gpu", 0) - sign * count
                self.gres[n] = free
