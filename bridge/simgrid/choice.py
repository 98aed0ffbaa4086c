"""Which machinery runs the actors: SimGrid itself, or the ordered queue."""

from collections.abc import Iterable, Iterator

from bridge.simgrid import hosts
from bridge.simgrid.errors import USAGE, ModelError
from bridge.simgrid.options import Options
from bridge.simgrid.profiles import SLEEPING, Profile
from bridge.simgrid.workload import Workload

#: With parallel tasks, the queue's dates can differ from SimGrid's own in the last bits of a float, and
#: one-byte messages meet no contention. Up to so many jobs speed does not matter, and SimGrid's own kernel is
#: taken.
FEW_JOBS = 500


def has_tasks(options: Options, workloads: list[Workload]) -> bool:
    """Whether there may be parallel tasks: jobs that do more than sleep."""
    return options.dynamic_jobs or not all(p.kind in SLEEPING for p in _leaves(workloads))


def use_queue(options: Options, workloads: list[Workload], tasks: bool) -> bool:
    """Whether to take the ordered queue.

    Raises:
        ModelError: the queue is asked for but cannot simulate this.
    """
    obstacle = _obstacle(options, workloads)
    if options.kernel == "queue" and obstacle:
        raise ModelError(
            f"the queue cannot simulate {obstacle}", where="--kernel", remedy="Leave it out.", status=USAGE
        )
    if options.kernel != "auto" or obstacle:
        return options.kernel == "queue"
    return not tasks or sum(len(w.jobs) for w in workloads) > FEW_JOBS


def _obstacle(options: Options, workloads: list[Workload]) -> str:
    if options.energy:
        return "energy"
    if any(p.kind == "usage_trace" for p in _leaves(workloads)):
        return "usage traces"
    if hosts.varies(options.platform):
        return "platforms that change over time"
    return ""


def _leaves(workloads: Iterable[Workload]) -> Iterator[Profile]:
    for workload in workloads:
        for profile in workload.profiles.values():
            if profile is not None and profile.kind != "composed":
                yield profile
