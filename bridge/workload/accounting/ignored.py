"""What slurm.conf, scontrol and sinfo say of a machine and no replay looks at, counted.

A replay has one pool of nodes, on which any job may run at any time.
"""

from collections.abc import Mapping, Sized
from dataclasses import dataclass, field

from bridge.cluster import slurm_values as values
from bridge.cluster.slurm_nodes import state_of

#: Settings of partitions, and of the whole cluster, by which Slurm decides, in small letters -> as written.
_OF_PARTITIONS = {
    name.lower(): name
    for name in (
        *("AllowAccounts", "AllowGroups", "AllowQos", "DenyAccounts", "DenyQos", "QOS", "State", "MaxNodes"),
        *("MinNodes", "MaxCPUsPerNode", "MaxMemPerNode", "DefMemPerCPU", "DefMemPerNode", "OverSubscribe"),
        *("ExclusiveUser", "PriorityTier", "PriorityJobFactor", "PreemptMode", "GraceTime", "LLN"),
    )
}
_OF_CLUSTER = {
    name.lower(): name
    for name in ("PreemptType", "PriorityType", "SchedulerType", "SchedulerParameters", "SelectType")
}
#: What a setting says where it says nothing.
_NOTHING = frozenset({"", "(null)", "none", "n/a", "all", "up", "no", "0", "1", "unlimited"})


@dataclass
class Ignored:
    _states: dict[str, str] = field(default_factory=dict)
    _down: list[str] = field(default_factory=list)
    _features: set[str] = field(default_factory=set)
    _weights: dict[str, str] = field(default_factory=dict)
    _unconsumed: set[str] = field(default_factory=set)
    _partitions: dict[str, set[str]] = field(default_factory=dict)
    _settings: dict[str, str] = field(default_factory=dict)
    _licences: set[str] = field(default_factory=set)
    _reservations: set[str] = field(default_factory=set)

    def add(self, kind: str, line: Mapping[str, str]) -> None:
        """Take a line that tells of nodes or of a partition (`kind`), or of neither; ValueError: no list."""
        if kind == "nodename":
            self.add_nodes(line)
        elif kind == "partitionname":
            names = {
                _OF_PARTITIONS[name] for name in _OF_PARTITIONS.keys() & line.keys() if _says(line[name])
            }
            self._partitions[line["partitionname"]] = names
        elif "downnodes" in line:
            self._down += values.node_names(line["downnodes"])
        elif "reservationname" in line:
            self._reservations.add(line["reservationname"])
        elif "licensename" in line:
            self._licences.add(line["licensename"])
        elif not kind:
            self._settings |= {_OF_CLUSTER[name]: line[name] for name in _OF_CLUSTER.keys() & line.keys()}
            self._licences.update(filter(None, line.get("licenses", "").split(",")))

    def add_nodes(self, line: Mapping[str, str]) -> None:
        names = list(values.node_names(line["nodename"]))
        self._states |= dict.fromkeys(names, line.get("state", ""))
        self._weights |= dict.fromkeys(names, line.get("weight", "1"))
        features = line.get("features") or line.get("feature") or line.get("activefeatures") or ""
        if _says(features):
            self._features.update(names)
        if ":no_consume" in line.get("gres", ""):
            self._unconsumed.update(names)

    def counts(self, nodes: Mapping[str, Mapping[str, int]], partitions: Sized) -> dict[str, int]:
        """Return what is ignored of a machine with these nodes and partitions -> how many say it."""
        states = {name: self._states.get(name, "") for name in nodes} | dict.fromkeys(self._down, "DOWN")
        out = [name for name, state in states.items() if name in nodes and state_of(state) != "up"]
        own = sorted({kind for there in nodes.values() for kind, n in there.items() if n} - {"cores"})
        weights = [weight for name, weight in self._weights.items() if name in nodes]
        limits = {name for names in self._partitions.values() for name in names}
        chosen = sorted(name for name, text in self._settings.items() if not text.lower().endswith("/none"))
        counts_by_text = {
            "nodes down, drained or failing: taken as in service": len(out),
            f"nodes with {', '.join(own)} of their own: taken as one pool": len(nodes) if own else 0,
            "nodes with features": len(self._features & nodes.keys()),
            "nodes with different weights": len(weights) if len({*weights}) > 1 else 0,
            "nodes with resources that jobs do not use up (no_consume)": len(self._unconsumed & nodes.keys()),
            "partitions: taken as one pool of nodes": len(partitions) if len(partitions) > 1 else 0,
            f"partitions with {', '.join(sorted(limits))}": sum(map(bool, self._partitions.values())),
            f"settings of the scheduler: {', '.join(chosen)}": len(chosen),
            "licences": len(self._licences),
            "reservations": len(self._reservations),
        }
        return {what: count for what, count in counts_by_text.items() if count}


def _says(text: str) -> bool:
    return text.lower() not in _NOTHING
