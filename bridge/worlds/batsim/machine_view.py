"""The machine as decisions see it: free hosts, hosts out of service, and how local the starts were."""

from collections.abc import Sequence
from dataclasses import dataclass

from bridge.wire.hosts import Hosts, HostSet
from bridge.worlds.batsim.placement import FirstFit, PlacementFactory

#: Why hosts can be out of service.
UNAVAILABLE, ASLEEP = "unavailable", "asleep"
#: Starts of which it is not counted yet how local they were.
_UNCOUNTED = 1024


@dataclass
class Locality:
    """How local the allocations were.

    Attributes:
        met: jobs placed as locally as an idle machine would have allowed, in the rule's own terms.
        contiguous: jobs on one interval of host ids.
        intervals: intervals of all jobs together.
        groups: groups (or leaves) of all jobs together; 0 where the rule knows none.
    """

    rule: str
    starts: int = 0
    met: int = 0
    contiguous: int = 0
    intervals: int = 0
    groups: int = 0


class MachineView:
    """Free hosts, named in the order of their ids, under a placement rule, less those out of service."""

    def __init__(self, names: Sequence[str], rule: PlacementFactory, rule_name: str) -> None:
        self._n = len(names)
        self._pool = rule(names)
        self._out = {UNAVAILABLE: HostSet(), ASLEEP: HostSet()}
        self._withheld = HostSet()
        self._locality = Locality(rule_name)
        self._placed: list[tuple[int, Hosts]] = []

    @property
    def free(self) -> int:
        return self._pool.free

    @property
    def n_out_of_service(self) -> int:
        return self._withheld.size

    def place(self, n: int) -> Hosts:
        """Return hosts for a job that was started on `n` of them; sleepers only where no others are left."""
        missing = n - self._pool.free
        if missing > 0:
            sleepers = HostSet(self._withheld.overlap(self._out[ASLEEP].hosts()))
            self.set_in_service(sleepers.take_lowest(missing), ASLEEP)
        hosts = self._pool.allocate(n)
        self._placed.append((n, hosts))
        if len(self._placed) == _UNCOUNTED:
            self._count()
        return hosts

    @property
    def locality(self) -> Locality:
        self._count()
        return self._locality

    def _count(self) -> None:
        """Count how local the starts were that are not counted yet."""
        report, pool = self._locality, self._pool
        for n, hosts in self._placed:
            groups = pool.groups_of(hosts)
            most_intervals, most_groups = pool.goal(n)
            report.starts += 1
            report.intervals += len(hosts)
            report.groups += groups
            report.contiguous += len(hosts) == 1
            report.met += (not most_intervals or len(hosts) <= most_intervals) and (
                not most_groups or groups <= most_groups
            )
        self._placed.clear()

    def release(self, hosts: Hosts) -> None:
        """A job is over; those of its hosts that went out of service meanwhile stay so."""
        if not (self._out[UNAVAILABLE].size or self._out[ASLEEP].size):
            self._pool.release(hosts)
            return
        free = HostSet(hosts)
        for out in self._out.values():
            there = out.overlap(hosts)
            free.remove(there)
            self._withheld.add(there)
        self._pool.release(free.hosts())

    def set_out_of_service(self, hosts: Hosts, why: str) -> None:
        """Hosts go out of service; jobs on them run on."""
        hosts = HostSet(((0, self._n - 1),)).overlap(hosts)  # whatever the platform names
        self._out[why].add(hosts)
        self._withheld.add(self._pool.withdraw(hosts))

    def set_in_service(self, hosts: Hosts, why: str) -> None:
        """Hosts are in service again, unless they are out for another reason."""
        back = HostSet(self._withheld.overlap(self._out[why].overlap(hosts)))
        self._out[why].remove(hosts)
        for out in self._out.values():
            back.remove(out.overlap(hosts))
        self._withheld.remove(back.hosts())
        self._pool.release(back.hosts())


class NamedHosts(MachineView):
    """The hosts where the scheduler itself names those of each job, which others may share."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(names, FirstFit, "cluster")

    def note(self, hosts: Hosts) -> None:
        self._placed.append((0, hosts))
        if len(self._placed) == _UNCOUNTED:
            self._count()

    def release(self, hosts: Hosts) -> None:
        """The scheduler knows by itself what is free."""
