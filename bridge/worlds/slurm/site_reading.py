"""The site of the agent's partitions, as Slurm describes it now: nodes, licences, advance reservations."""

import re
from collections.abc import Iterator, Mapping, Sequence

from bridge.base.errors import BridgeError
from bridge.cluster.description import Cluster
from bridge.cluster.node_table import build_node_table
from bridge.cluster.slurm_live import read_live_site
from bridge.worlds.slurm.client import Client, Node, QueueEntry
from bridge.worlds.slurm.install import configuration

#: Settings of slurm.conf that decide how nodes are shared, and who preempts whom.
_SETTINGS = ("clustername", "selecttype", "selecttypeparameters")
_OF_PREEMPTION = ("preempttype", "preemptmode", "preemptexempttime")
#: The columns of QOS that preemption needs.
_OF_QOS = "format=name,priority,gracetime,preempt,preemptmode"
_MODES = frozenset({"OFF", "REQUEUE", "CANCEL", "SUSPEND", "GANG"})
#: What states of nodes may end with while jobs can start there: a reservation to come, a plan of Slurm's.
_SUFFIXES = "$-+"
_USABLE = frozenset(
    {
        "idle",
        "mixed",
        "mix",
        "allocated",
        "alloc",
        "completing",
        "comp",
        "reserved",
        "resv",
        "planned",
        "plnd",
    }
)
_IN_USE = frozenset({"mixed", "mix", "allocated", "alloc"})


class SiteReader:
    """Reads the site of some partitions, again when asked; `threads`: CPUs that Slurm gives as one core.

    `preempts`: jobs are to be preempted as Slurm's configuration says. `notes`: what of that is not honoured.
    """

    def __init__(self, client: Client, partitions: Sequence[str], *, preempts: bool = False) -> None:
        self._client, self._partitions = client, tuple(partitions)
        self._preempts, self._qos = preempts, ""
        self.notes: tuple[str, ...] = ()
        self._unknown: frozenset[str] = frozenset()
        self.threads = 1
        self.cluster: Cluster
        self.names: frozenset[str] = frozenset()
        self.read()

    def read(self) -> None:
        """Read the site; where nothing has changed, `cluster` stays the same object."""
        stated = configuration(self._client)
        names = (*_SETTINGS, *_OF_PREEMPTION) if self._preempts else _SETTINGS
        settings = {name: stated.get(name, "") for name in names}
        lines = [f"{name}={value}" for name, value in settings.items() if value]
        show = ("scontrol", "-o", "show")
        texts = [self._client.call(*show, kind) for kind in ("node", "partition", "lic")]
        text = "\n".join([*lines, *texts])
        if self._preempts and settings["preempttype"].lower() == "preempt/qos":
            self._read_qos()
        reservations = self._client.call(*show, "reservation")
        cluster = read_live_site(text, reservations, self._partitions, self._qos, preempts=self._preempts)
        if cluster.scheduler.preempt != "none":
            self.notes = tuple(_not_honoured(stated))
        if self.names and cluster == self.cluster:
            return
        self.cluster = cluster
        self.names = frozenset(build_node_table(cluster).names)
        of_cores = re.search("CR_(?:CORE|SOCKET)", settings["selecttypeparameters"].upper())
        self.threads = max(group.threads for group in cluster.nodes) if of_cores else 1

    def _read_qos(self) -> None:
        """Read the QOS from Slurm's database; while that is away, those read last count."""
        try:
            self._qos = self._client.call("sacctmgr", "-P", "show", "qos", _OF_QOS)
        except BridgeError:
            if not self._qos:
                raise

    def knows_reservations(self, rows: Sequence[QueueEntry]) -> bool:
        """Tell whether no waiting job names a reservation that may have been made since the last reading."""
        there = {row.name for row in self.cluster.reservations}
        names = {row.reservation for row in rows if row.reservation} - there
        is_new = not names <= self._unknown
        self._unknown = frozenset(names)
        return not is_new

    def unusable(self, nodes: Mapping[str, Node], occupied: frozenset[str]) -> frozenset[str]:
        """Return the nodes on which no job can start; `occupied`: those of jobs that are known.

        One is that is in use without a known job: Slurm has told of its jobs before it told of the node.
        """
        return frozenset(
            name
            for name in self.names
            if name not in nodes or not _is_usable(nodes[name].state, is_known=name in occupied)
        )


def _not_honoured(stated: Mapping[str, str]) -> Iterator[str]:
    """Yield what a configuration says of preemption and the agent does not do."""
    words = {word.strip() for word in stated.get("preemptmode", "").upper().split(",")} - {""}
    yield from (f"PreemptMode={word}" for word in sorted(words - _MODES))
    if text := stated.get("preemptparameters", ""):
        yield f"PreemptParameters={text}"


def _is_usable(state: str, *, is_known: bool) -> bool:
    word = state.rstrip(_SUFFIXES)
    return word in _USABLE and (is_known or word not in _IN_USE)


def require_partitions(text: str) -> tuple[str, ...]:
    """Return the names of a list of partitions; BridgeError: there is none, or one comes twice."""
    names = tuple(filter(None, (word.strip() for word in text.split(","))))
    if not names or len({*names}) < len(names):
        remedy = "Name a partition, or several with commas between them."
        raise BridgeError("names no partition, or one twice", where=f"--partition {text}", remedy=remedy)
    return names
