"""What Slurm's words for parts of a request mean on a site: partitions, nodes, GPUs, tasks of arrays."""

import re
from collections.abc import Sequence

from bridge.cluster.slurm_values import amount, generic, node_names
from bridge.scheduler.slurm.masks import mask_of
from bridge.scheduler.slurm.site import Site, SlurmPart


def parts_named(names: Sequence[str], site: Site) -> tuple[SlurmPart, ...]:
    """Return partitions in the order in which Slurm tries them: the highest tier first; ValueError."""
    for name in names:
        if name not in site.part_index:
            raise ValueError(f"there is no partition {name}")
    parts = [site.part_index[name] for name in names]
    return tuple(sorted(parts, key=lambda part: -part.about.tier))


def nodes_named(text: str, site: Site) -> int:
    """Return the set of nodes that a list of hosts names, as a mask; ValueError: there is no such node."""
    members = list(node_names(text)) if text else []
    for name in members:
        if name not in site.index:
            raise ValueError(f"there is no node {name}")
    return mask_of(site.index[name] for name in members)


def gres_counts(text: str) -> dict[str, int]:
    """Return counts of GPUs by ``gpu``, ``gpu:TYPE``; ValueError: it asks for other generic resources."""
    gres: dict[str, int] = {}
    for name, count in generic(text).items():
        if name == "gpus":
            gres["gpu"] = count
        elif name.startswith("gpus_"):
            gres[f"gpu:{name.removeprefix('gpus_')}"] = count
        else:
            raise ValueError(f"generic resource {name} is not counted here")
    return gres


def mebibytes(text: str) -> int:
    """Return an amount of memory in MiB; 0: none is stated."""
    return amount(text, 1, 1) >> 20 if text else 0


def tasks_of(text: str) -> tuple[list[int], int]:
    """Return the indices of ``0-9:2,12%3``, ascending, and how many run at one time (0: all)."""
    body, _, most = text.partition("%")
    indices: set[int] = set()
    for word in body.split(","):
        match = re.fullmatch(r"(\d+)(?:-(\d+)(?::(\d+))?)?", word.strip())
        if not match:
            raise ValueError(f"{text[:40]!r} is no array")
        indices.update(range(int(match[1]), int(match[2] or match[1]) + 1, int(match[3] or 1)))
    return sorted(indices), int(most or 0)


def tasks_listed(text: str) -> list[int]:
    """Return the tasks that scontrol lists of an array; of a list cut short (``1,3,1...``), those before."""
    whole, dots, _ = text.partition("...")
    if dots:  # its last number may be cut as well
        whole = whole.rpartition(",")[0]
    return tasks_of(whole)[0] if whole else []
