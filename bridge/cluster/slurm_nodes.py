"""The nodes of a slurm.conf, or of `scontrol show node`, line by line, and lists that name them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bridge.cluster import slurm_values as values
from bridge.cluster.imported import ImportNotes
from bridge.cluster.slurm_conf import Line
from bridge.cluster.slurm_lines import cores_of, count_of, features_of, is_absent, members_of

_DOWN = frozenset({"DOWN", "ERROR", "FAIL", "FAILING", "FAILG", "INVAL", "INVALID_REG", "NOT_RESPONDING"})
_DRAINED = frozenset({"DRAIN", "DRAINED", "DRAINING", "DRNG", "MAINT", "MAINTENANCE"})
#: Settings of nodes that decide where jobs run and have no place here.
_UNHONOURED = {
    name.lower(): name for name in ("MaxCPUsPerSocket", "CPUSpecList", "RestrictedCoresPerGPU", "TmpDisk")
}
#: No GPU of a type: how it is called among the types.
GPU = "gpu"
_NOTHING = frozenset({"", "(null)", "none", "n/a"})


def gpus_of(text: str) -> tuple[dict[str, int], list[str]]:
    """Return GPUs by type of a text of Gres, and the names of other resources; else ValueError.

    GPUs without a type are of the type ``gpu``.
    """
    amounts = values.generic(text)
    typed = {name.removeprefix("gpus_"): n for name, n in amounts.items() if name.startswith("gpus_")}
    plain = amounts.get("gpus", 0) - sum(typed.values())
    gpus = {kind: n for kind, n in typed.items() if n} | ({GPU: plain} if plain > 0 else {})
    return gpus, [name for name in amounts if not name.startswith("gpus")]


def state_of(text: str) -> str:
    """Return up, down or drain of a state as Slurm writes it: ``IDLE+DRAIN``, ``down*``."""
    words = set(re.split(r"[^A-Z_]+", text.upper()))
    if words & _DOWN:
        return "down"
    return "drain" if words & _DRAINED else "up"


@dataclass
class SlurmNodes:
    """Nodes as lines tell of them; later lines replace earlier ones.

    Attributes:
        nodes: name -> fields of `NodeGroup`.
        features: feature -> its nodes.
        named: partition -> nodes that name it, as `scontrol show node` does.
        sets: NodeSet -> its line.
        total: nodes named so far, also those that are named again.
        groups: NodeSet -> its nodes.
        places: node -> where it stands.
    """

    notes: ImportNotes
    nodes: dict[str, dict[str, Any]] = field(default_factory=dict)
    features: dict[str, set[str]] = field(default_factory=dict)
    named: dict[str, list[str]] = field(default_factory=dict)
    sets: dict[str, Line] = field(default_factory=dict)
    total: int = 0
    groups: dict[str, list[str]] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)

    def add(self, line: Mapping[str, str], place: str) -> None:
        names = list(values.node_names(line["nodename"]))
        if is_absent(line):
            self.notes.leave("nodes of State=FUTURE", len(names))
            return
        self.total += len(names)
        if self.total > values.MOST_NODES:
            raise ValueError(f"with this line more than {values.MOST_NODES:,} nodes are named")
        fields = self._fields(line, len(names))
        for feature in fields["features"]:
            self.features.setdefault(feature, set()).update(names)
        for name in names:
            self.nodes[name] = fields
            self.places[name] = place
        for partition in filter(None, line.get("partitions", "").split(",")):
            self.named.setdefault(partition, []).extend(names)

    def _fields(self, line: Mapping[str, str], count: int) -> dict[str, Any]:
        threads = count_of(line, "threadspercore")
        cores = cores_of(line)
        cores -= count_of(line, "corespeccount", default=0) * threads
        if cores < 1:
            raise ValueError("leaves no core to jobs (CoreSpecCount)")
        if threads > 1:
            self.notes.leave(f"nodes with ThreadsPerCore={threads}: a core here is one of their CPUs", count)
        memory = count_of(line, "realmemory", default=0) - count_of(line, "memspeclimit", default=0)
        gpus, others = gpus_of("" if line.get("gres", "").lower() in _NOTHING else line["gres"])
        for name in others:
            self.notes.leave(f"nodes with the generic resource {name.removeprefix('gres_')}", count)
        for name in _UNHONOURED.keys() & line.keys():
            if line[name].lower() not in (*_NOTHING, "0"):
                self.notes.leave(f"nodes with {_UNHONOURED[name]}", count)
        features = tuple(name for name in features_of(line) if name.lower() not in _NOTHING)
        weight = line.get("weight", "1")
        if not re.fullmatch(r"\d{1,12}", weight, re.ASCII):
            raise ValueError(f"weight={weight} is no whole number")
        return {
            "cores": cores,
            "threads": threads,
            "memory": memory if memory > 0 else None,
            "gpus": gpus,
            "features": features,
            "weight": int(weight),
            "state": state_of(line.get("state", "")),
        }

    def set_state(self, names: str, state: str) -> None:
        for name in values.node_names(names):
            if name in self.nodes:
                self.nodes[name] = {**self.nodes[name], "state": state}

    def resolve_sets(self) -> None:
        """Find the nodes of each NodeSet, which may name features, and sets above it; ValueError."""
        for name, (_, line) in self.sets.items():
            members = [*self.members(line.get("nodes", ""))[0]]
            members += sorted(self.features.get(line.get("feature", ""), ()))
            self.groups[name] = list(dict.fromkeys(members))

    def members(self, text: str) -> tuple[list[str], list[str]]:
        """Return the nodes of a list that may name sets, or ALL; and those that are no nodes of the machine.

        In the order of the machine's nodes. ValueError: it is no list.
        """
        members = members_of(text, self.nodes, self.groups)
        there = [name for name in self.nodes if name in members]
        return there, sorted(members - set(there))
