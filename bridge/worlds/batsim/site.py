"""A cluster's nodes as the hosts of a simulation, and what the referee knows of jobs that share them."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from bridge.base.arrays import Ints
from bridge.base.counted import counted
from bridge.base.errors import BridgeError
from bridge.scheduler.cluster_session import NodeDemand, SiteJobs
from bridge.scheduler.cluster_state import ALL_OF_IT, UNCOUNTED
from bridge.wire import events as ev
from bridge.wire.hosts import Hosts, from_ids


def require_hosts(nodes: Sequence[str], hosts: Collection[str], where: str = "") -> None:
    """Refuse (BridgeError) a platform without a host of each of a cluster's nodes."""
    if missing := [name for name in nodes if name not in hosts]:
        what = f"the platform has no host of {len(missing)} of the cluster's {len(nodes)} nodes"
        remedy = "Write a platform with the same nodes: bridge platform new --cluster FILE -o site.xml."
        raise BridgeError(f"{what}, the first is {missing[0]}", where=where, remedy=remedy)


class SiteHosts:
    """The hosts of a site's nodes, and the amounts that are free on each."""

    def __init__(self, site: SiteJobs, begin: ev.SimulationBegins) -> None:
        by_name = {host.name: host.id for host in begin.compute}
        require_hosts(site.node_names, by_name)
        if site.is_shared and not begin.compute_sharing:
            what, remedy = (
                "jobs share nodes, and hosts run one job each",
                "Start it with --enable-compute-sharing.",
            )
            raise BridgeError(what, where="the platform program", remedy=remedy)
        self.id_of: Ints = np.array([by_name[name] for name in site.node_names], np.int64)
        self.node_of = {host: node for node, host in enumerate(self.id_of.tolist())}

    def hosts(self, nodes: Ints) -> Hosts:
        return from_ids(np.sort(self.id_of[nodes]).tolist())


class SiteRules:
    """Which hosts a job may be started on, by what it asks for and what the others have there.

    It counts for itself: of the scheduler it takes only how many vectors of its demand a job has on a node.

    Args:
        site: the nodes.
        hosts: their hosts.
        demand_of: id of a job -> what it asks for.
        units_of: id of a job -> node -> vectors, where it shares nodes.
    """

    def __init__(
        self,
        site: SiteJobs,
        hosts: SiteHosts,
        demand_of: Callable[[str], NodeDemand],
        units_of: Callable[[str], Mapping[int, int]],
    ) -> None:
        self._site, self._hosts, self._demand_of, self._units_of = site, hosts, demand_of, units_of
        self._free = site.amounts.copy()
        self._is_up, self._outages = site.is_up.copy(), iter(site.outages)
        self._next = next(self._outages, None)
        self._taken: dict[str, list[tuple[int, Ints]]] = {}

    def _follow_calendar(self, now: int) -> None:
        while self._next is not None and self._next[0] <= now:
            _, is_out, nodes = self._next
            self._is_up[nodes] = not is_out
            self._next = next(self._outages, None)

    def take(self, job_id: str, hosts: Hosts, now: int = 0) -> str:
        """Note that a job starts on hosts now (µs); return why it must not, if so."""
        self._follow_calendar(now)
        site, demand, units = self._site, self._demand_of(job_id), self._units_of(job_id)
        vector = np.array(demand.vector, np.int64)
        taken: list[tuple[int, Any]] = []
        tasks = 0
        for host in (host for low, high in hosts for host in range(low, high + 1)):
            node = self._hosts.node_of.get(host, -1)
            if node not in demand.nodes:
                return f"host {host} is no node that the job may have"
            if not self._is_up[node]:
                return f"node {site.node_names[node]} is out of service"
            amounts = np.where(site.amounts[node] < UNCOUNTED, site.amounts[node], 0)
            if not demand.whole:
                tasks += units[node]
                amounts = np.where(vector == ALL_OF_IT, amounts, vector * units[node])
            short = np.flatnonzero(self._free[node] < amounts)
            if len(short):
                r = int(short[0])
                has = f"it has {self._free[node, r]} of {site.resources[r]} left"
                return f"node {site.node_names[node]} cannot hold {amounts[r]} more: {has}"
            taken.append((node, amounts))
        wrong = demand.n_nodes and len(taken) != demand.n_nodes
        if wrong or (not demand.whole and tasks != (demand.tasks or demand.n_nodes)):
            wanted = f"{counted(demand.n_nodes, 'node')} and {counted(demand.tasks, 'task')}"
            return f"the job asks for {wanted}, and is given {len(taken)} and {tasks}"
        for node, amounts in taken:
            self._free[node] -= amounts
        self._taken[job_id] = taken
        return ""

    def release(self, job_id: str) -> None:
        for node, amounts in self._taken.pop(job_id, ()):
            self._free[node] += amounts
