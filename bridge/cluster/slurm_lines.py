"""What single cells of slurm.conf's lines of nodes say: numbers, cores, features, and lists of nodes."""

import re
from collections.abc import Collection, Iterable, Mapping

from bridge.cluster.slurm_values import node_names

#: States of nodes that are no part of the machine (yet).
_ABSENT = re.compile("FUTURE|UNKNOWN_NODE", re.IGNORECASE)


def is_absent(line: Mapping[str, str]) -> bool:
    """Tell whether a line is of nodes that are no part of the machine."""
    return _ABSENT.match(line.get("state", "")) is not None


def count_of(line: Mapping[str, str], *names: str, default: int = 1) -> int:
    """Return the number in the first of these fields that is set; else ValueError."""
    name = next((one for one in names if line.get(one)), None)
    if name is None:
        return default
    if not re.fullmatch(r"\d{1,9}", line[name], re.ASCII):
        raise ValueError(f"{name}={line[name]} is no whole number")
    return int(line[name])


def cores_of(line: Mapping[str, str]) -> int:
    """Return the cores of a node: its CPUs, else sockets × cores × threads; ValueError."""
    cores = count_of(line, "cpus", "procs", "cputot", default=0)
    if cores:
        return cores
    sockets = count_of(line, "sockets", "socketsperboard") * count_of(line, "boards")
    return sockets * count_of(line, "corespersocket") * count_of(line, "threadspercore")


def features_of(line: Mapping[str, str]) -> list[str]:
    text = line.get("features") or line.get("feature") or line.get("activefeatures") or ""
    return [feature for feature in re.split("[,&]", text) if feature]


def members_of(text: str, nodes: Iterable[str], groups: Mapping[str, Collection[str]]) -> set[str]:
    """Return the nodes of a list that may name sets of nodes, or ALL; ValueError: it is none."""
    members: set[str] = set()
    for word in filter(None, re.split(r",(?![^\[]*\])", text)):
        if word.upper() == "ALL":
            members |= set(nodes)
        else:
            members |= set(groups[word]) if word in groups else set(node_names(word))
    return members
